"""The sandbox: bubblewrap around the runner, without network, files or privileges.

A session is one process tree. The grader writes requests, reads replies and what the code prints,
counts bytes, seconds and memory while they grow, and kills the whole tree at the first limit.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import rankbook

__all__ = ["Killed", "Limits", "SandboxUnavailable", "Session", "command", "probe"]

MIB = 1 << 20
RUNNER = ["-B", "-u", "-m", "rankbook.grading.runner"]


class SandboxUnavailable(RuntimeError):
    """There is no sandbox on this machine, or not for this user."""


class Killed(Exception):
    """The runner was killed, or ended by itself, before it replied."""


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Parameters
    ----------
    cells_seconds : float, default=60
        For all cells of the notebook, by the clock.
    question_seconds : float, default=20
        For the calls of one question, by the clock.
    seconds : float, default=180
        For the whole submission, by the clock.
    cpu_seconds : int, default=120
        Of a processor, for one process.
    memory : int, default=4 GiB
        Bytes of address space, for one process.
    total_memory : int, default=4 GiB
        Bytes in memory, for all processes together.
    processes : int, default=64
        Processes and threads.
    file_bytes : int, default=64 MiB
        For one file.
    scratch_bytes : int, default=256 MiB
        For all files together.
    kept_bytes : int, default=1 MiB
        Of what the cells print, how much is kept.
    flood_bytes : int, default=20 MiB
        Of what is printed, when to end it.
    reply_bytes : int, default=16 MiB
        For one reply.
    """

    cells_seconds: float = 60.0
    question_seconds: float = 20.0
    seconds: float = 180.0
    cpu_seconds: int = 120
    memory: int = 4096 * MIB
    total_memory: int = 4096 * MIB
    processes: int = 64
    file_bytes: int = 64 * MIB
    scratch_bytes: int = 256 * MIB
    kept_bytes: int = 1 * MIB
    flood_bytes: int = 20 * MIB
    reply_bytes: int = 16 * MIB


def _binds() -> list[Path]:
    """The folders that Python and its packages need, beyond /usr; never a folder of sources."""
    wanted = [Path(sys.base_prefix), Path(sys.prefix)]
    wanted += [Path(p) for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    wanted.append(_package())
    kept: list[Path] = []
    for path in wanted:
        path = path.absolute()
        inside = any(path.is_relative_to(parent) for parent in [Path("/usr"), *kept])
        if not inside and path.is_dir():
            kept.append(path)
    if any(path in (Path("/"), Path.home()) for path in kept):
        raise SandboxUnavailable(f"Python lies in {kept}: the sandbox would show all of it")
    return kept


def _package() -> Path:
    return Path(str(rankbook.__file__)).resolve().parent


def command(limits: Limits) -> list[str]:
    """Return the command that starts the runner in a sandbox."""
    bwrap = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
    bwrap += ["--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox"]
    bwrap += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        old = Path("/", name)
        if old.is_symlink():
            bwrap += ["--symlink", f"usr/{name}", str(old)]
        elif old.is_dir():
            bwrap += ["--ro-bind", str(old), str(old)]
    for name in ("/etc/ld.so.cache", "/etc/alternatives"):
        bwrap += ["--ro-bind-try", name, name]
    for folder in _binds():
        bwrap += ["--ro-bind", str(folder), str(folder)]
    bwrap += ["--proc", "/proc", "--dev", "/dev"]
    # The root of /dev is memory too, and bubblewrap leaves it writable and without a limit.
    for size, path in ((16 * MIB, "/dev/shm"), (limits.scratch_bytes, "/scratch")):
        bwrap += ["--size", str(size), "--tmpfs", path]
    bwrap += ["--size", str(64 * MIB), "--tmpfs", "/home", "--dir", "/home/s"]
    bwrap += ["--chdir", "/scratch", "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in environment().items():
        bwrap += ["--setenv", name, value]
    return [*bwrap, "--", *_limited(limits), sys.executable, *RUNNER]


def environment() -> dict[str, str]:
    """All that the runner has of the environment."""
    paths = [str(p) for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    return {
        "HOME": "/home/s",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": "/scratch",
        "LD_LIBRARY_PATH": str(Path(sys.base_prefix) / "lib"),
        "PYTHONPATH": ":".join([str(_package().parent), *paths]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": "/scratch",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _limited(limits: Limits) -> list[str]:
    return [
        shutil.which("prlimit") or "/usr/bin/prlimit",
        f"--as={limits.memory}",
        f"--cpu={limits.cpu_seconds}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        "--nofile=256",
        "--core=0",
        "--",
    ]


def probe() -> None:
    """Make sure that code can be run safely here; raise `SandboxUnavailable` if not.

    See Also
    --------
    grade_all : Calls this first.

    Examples
    --------
    >>> from rankbook.grading import probe
    >>> probe()                                 # doctest: +SKIP
    """
    if os.geteuid() == 0:
        raise SandboxUnavailable(
            "This is root, for whom the limits on processes do not hold. "
            "Start the grader as an ordinary user."
        )
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        raise SandboxUnavailable(
            "The sandbox needs Linux and bubblewrap (Debian and Ubuntu: apt install bubblewrap)."
        )
    start = command(Limits())
    trial = [*start[: start.index("--") + 1], "/usr/bin/true"]
    run = subprocess.run(trial, capture_output=True, text=True)
    if run.returncode:
        raise SandboxUnavailable(
            f"bubblewrap does not run: {run.stderr.strip()[:300]}\n"
            "It needs version 0.8 and user namespaces, which this machine may forbid (sysctl "
            "user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns). "
            "Where they cannot be had, run the grader in a container without network for each "
            "student."
        )


def tree_memory(pid: int) -> int:
    """Return the bytes that a process and all its descendants hold in memory."""
    total, todo = 0, [pid]
    while todo:
        process = todo.pop()
        try:
            pages = Path(f"/proc/{process}/statm").read_text().split()[1]
            total += int(pages) * os.sysconf("SC_PAGE_SIZE")
            for task in Path(f"/proc/{process}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    return total


class Session:
    """A runner, in the sandbox unless told otherwise."""

    def __init__(self, limits: Limits, *, sandboxed: bool = True):
        self.limits = limits
        self.output = b""
        self.is_listening = True
        self._printed = 0
        self._replies = b""
        read, write = os.pipe()
        try:
            self._process = self._start(sandboxed, write)
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        self._reply_fd = read
        assert self._process.stdin and self._process.stdout
        self._streams = self._process.stdin, self._process.stdout
        self._stdin, self._stdout = (stream.fileno() for stream in self._streams)
        for fd in (self._stdin, self._stdout, read):
            os.set_blocking(fd, False)

    def _start(self, sandboxed: bool, replies: int) -> subprocess.Popen:
        start = command(self.limits)
        if not sandboxed:
            start = start[start.index("--") + 1 :]
        return subprocess.Popen(
            [*start, str(replies)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(replies,),
            bufsize=0,
            cwd="/",
            start_new_session=True,
            env=None if sandboxed else environment() | {"HOME": "/nonexistent", "TMPDIR": "/tmp"},
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the whole tree."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        for stream in self._streams:
            stream.close()
        os.close(self._reply_fd)

    def ask(self, message: bytes, seconds: float, limit: float | None = None) -> bytes:
        """Send a line, return the line that comes back; `Killed` if none does.

        Where `seconds` are what is left of a longer `limit`, the student is told the limit.
        """
        deadline = time.monotonic() + seconds
        todo = memoryview(message)
        self._replies = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._reply_fd, selectors.EVENT_READ)
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while b"\n" not in self._replies:
                self._check(deadline, limit or seconds)
                for key, _ in selector.select(0.1):
                    if key.fd == self._stdin:
                        todo = self._write(todo)
                    elif not self._read(key.fd):
                        selector.unregister(key.fd)
                if not todo and self._stdin in selector.get_map():
                    selector.unregister(self._stdin)
        while self._read(self._stdout):
            pass
        return self._replies.partition(b"\n")[0]

    def _check(self, deadline: float, limit: float) -> None:
        if time.monotonic() > deadline:
            raise Killed(f"it ran longer than {limit:g} s")
        if tree_memory(self._process.pid) > self.limits.total_memory:
            raise Killed("its processes together took too much memory")
        if self._process.poll() is not None and not self._read(self._reply_fd):
            raise Killed(self._why())

    def _why(self) -> str:
        code = self._process.returncode
        number = -code if code < 0 else code - 128
        if number in (signal.SIGXCPU, signal.SIGKILL):
            return "the system killed it (time of the processor, or memory)"
        if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            return "Python itself crashed"
        return f"its process ended by itself, with status {code}"

    def _write(self, todo: memoryview) -> memoryview:
        try:
            return todo[os.write(self._stdin, todo[:65536]) :]
        except OSError:  # nobody reads any more: its end is seen elsewhere
            return todo[:0]

    def _read(self, fd: int) -> bool:
        """Take what is there; whether there was anything."""
        try:
            data = os.read(fd, 1 << 18)
        except OSError:  # nothing there
            return False
        if fd == self._reply_fd:
            self._replies += data
            if len(self._replies) > self.limits.reply_bytes:
                raise Killed("its reply is too long")
        else:
            self._printed += len(data)
            if self.is_listening:
                self.output += data[: max(self.limits.kept_bytes - len(self.output), 0)]
            if self._printed > self.limits.flood_bytes:
                raise Killed("it printed without end")
        return bool(data)
