"""The sandbox: what a session may use, and that the whole tree ends when it takes more."""

import json
import os
import subprocess
import sys

import pytest

from rankbook.grading import sandbox
from rankbook.grading.sandbox import (
    Killed,
    Limits,
    SandboxUnavailable,
    Session,
    command,
    probe,
    tree_memory,
)

MIB = 1 << 20

# Each case: limits, and a cell that goes beyond one of them. Time by the clock is ample for all.
CASES = {
    "memory of all": (
        {"total_memory": 300 * MIB},
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n"
        "        x = bytearray(b'x') * (60 << 20)\n        time.sleep(600)\ntime.sleep(600)",
    ),
    "processor": ({"cpu_seconds": 2}, "while True: pass"),
    "flood": ({"flood_bytes": 10**5}, "while True: print('x' * 1000)"),
    "reply": (
        {"reply_bytes": 10**5},
        "import os\nfor fd in range(3, 40):\n    try:\n        while True: os.write(fd, b'x')\n"
        "    except OSError: pass",
    ),
    "memory of one": (
        {"memory": 1 << 30},
        "try:\n    bytearray(2 << 30)\nexcept MemoryError: print('stopped')",
    ),
    "file": (
        {"file_bytes": MIB},
        "try:\n    open('/scratch/x', 'wb').write(bytes(2 << 20))\n    open('/scratch/x', 'ab')"
        ".write(b'x')\nexcept OSError: print('stopped')",
    ),
    "scratch": (
        {"scratch_bytes": 4 * MIB},
        "try:\n    for i in range(9): open(f'/scratch/{i}', 'wb').write(bytes(1 << 20))\n"
        "except OSError: print('stopped')",
    ),
    "processes": (
        {"processes": 8},
        "import os, time\ntry:\n    for _ in range(20):\n        if os.fork() == 0:\n"
        "            time.sleep(600)\nexcept OSError: print('stopped')",
    ),
    "kept": ({"kept_bytes": 10}, "print('y' * 1000)"),
}
SCRIPT = """
import json, sys
from rankbook.grading.sandbox import Killed, Limits, Session
told = {}
for name, (limits, cell) in json.loads(sys.argv[1]).items():
    with Session(Limits(**limits)) as session:
        try:
            session.ask(json.dumps({"cells": [cell]}).encode() + b"\\n", 600)
            told[name] = session.output.decode()
        except Killed as error:
            told[name] = str(error)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(grader):
    """What became of the cases, one session each, in a real sandbox."""
    code, out, err = grader.run(json.dumps(CASES), program=("-c", SCRIPT))
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("memory of all", "its processes together took too much memory"),
        ("processor", "the system killed it (time of the processor, or memory)"),
        ("flood", "it printed without end"),
        ("reply", "its reply is too long"),
        ("memory of one", "stopped\n"),
        ("file", "stopped\n"),
        ("scratch", "stopped\n"),
        ("processes", "stopped\n"),
        ("kept", "y" * 10),
    ],
)
def test_a_limit_holds(told, name, reason):
    assert told[name] == reason


def test_memory_is_that_of_the_whole_tree():
    """A process with 40 MiB, its child with 60 MiB more."""
    inner = "x = bytearray(b'x') * (60 << 20); print('ready', flush=True); input()"
    outer = (
        "import subprocess, sys; x = bytearray(b'x') * (40 << 20); "
        f"subprocess.run([sys.executable, '-c', {inner!r}])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        assert tree_memory(process.pid) > 100 * MIB
        process.communicate(b"\n")
    assert tree_memory(process.pid) == 0


def test_the_command_shows_python_and_nothing_of_the_user(monkeypatch):
    monkeypatch.setattr(sandbox.Path, "home", lambda: sandbox.Path("/somewhere"))
    line = command(Limits(memory=12345, processes=7))
    shown = {line[i + 2] for i, word in enumerate(line) if word.startswith("--ro-bind")}
    assert str(sandbox._package()) in shown
    assert not {"/", "/home", "/root", "/tmp", str(sandbox._package().parent)} & shown
    assert {"--unshare-all", "--clearenv", "--die-with-parent"} <= set(line)
    assert {"--as=12345", "--nproc=7"} <= set(line[line.index("--") :])


def test_a_home_that_holds_python_itself_is_not_shown(monkeypatch):
    monkeypatch.setattr(sandbox.sys, "base_prefix", "/")
    with pytest.raises(SandboxUnavailable, match="would show all of it"):
        command(Limits())


def test_the_probe_refuses_root_and_machines_without_bubblewrap(monkeypatch):
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 0)
    with pytest.raises(SandboxUnavailable, match="This is root"):
        probe()
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        probe()


def test_the_probe_tries_bubblewrap(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sandbox.Path, "home", lambda: sandbox.Path("/somewhere"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\nfor last; do :; done\n[ $last = /usr/bin/true ]\n")
    fake.chmod(0o755)
    probe()
    fake.write_text("#!/bin/sh\necho No permissions >&2\nexit 1\n")
    with pytest.raises(SandboxUnavailable, match="No permissions\n.*user namespaces"):
        probe()


def test_a_session_goes_through_bubblewrap(monkeypatch, tmp_path):
    """Here one that notes its options and shows everything."""
    monkeypatch.setattr(sandbox.Path, "home", lambda: sandbox.Path("/somewhere"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", sandbox.environment()["PYTHONPATH"])
    told = tmp_path / "told"
    fake = tmp_path / "bwrap"
    fake.write_text(
        f'#!/bin/sh\necho "$@" > {told}\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    )
    fake.chmod(0o755)
    # An ordinary user may have more processes already than a sandbox's own may become.
    monkeypatch.setattr(sandbox, "_limited", lambda limits: [])
    with Session(Limits()) as session:
        assert session.ask(b'{"cells": []}\n', 60) == b'{"ready":[]}'
    assert "--unshare-all" in told.read_text()
    with Session(Limits(), sandboxed=False) as session:
        told.unlink()
        assert session.ask(b'{"cells": []}\n', 60) == b'{"ready":[]}'
    assert not told.exists()


def test_folders_that_are_no_links_are_shown_as_they_are(monkeypatch):
    monkeypatch.setattr(sandbox.Path, "home", lambda: sandbox.Path("/somewhere"))
    monkeypatch.setattr(sandbox.Path, "is_symlink", lambda path: False)
    line = command(Limits())
    at = line.index("/lib")
    assert line[at - 1 : at + 2] == ["--ro-bind", "/lib", "/lib"] and "--symlink" not in line


def test_a_session_that_cannot_start_leaves_no_file_open(monkeypatch):
    monkeypatch.setattr(sandbox.sys, "base_prefix", "/")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxUnavailable):
        Session(Limits())
    assert os.listdir("/proc/self/fd") == before


# Cells of our own need no sandbox. Each case: a cell, limits, and what becomes of it.
OWN = [
    ("print('y' * 1000)", {"kept_bytes": 10}, None),
    ("while True: print('x' * 1000)", {"flood_bytes": 10**5}, "it printed without end"),
    ("while True: pass", {}, "it ran longer than 0.5 s"),
    ("x = bytearray(b'x') * (200 << 20)\nwhile True: pass", {"total_memory": 150 << 20},
     "its processes together took too much memory"),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)", {}, "the system killed it"),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", {}, "Python itself crashed"),
    ("import os\nos._exit(5)", {}, "its process ended by itself, with status 5"),
    ("import os\nfor fd in range(3, 40):\n    try:\n        while True: os.write(fd, b'x' * 999)\n"
     "    except OSError: pass", {"reply_bytes": 10**5}, "its reply is too long"),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "limits", "why"), OWN)
def test_a_session_ends_at_its_limits(monkeypatch, cell, limits, why):
    monkeypatch.setattr(sandbox.Path, "home", lambda: sandbox.Path("/somewhere"))
    message = json.dumps({"cells": [cell]}).encode() + b"\n"
    seconds = 0.5 if why and "0.5 s" in why else 60
    with Session(Limits(**limits), sandboxed=False) as session:
        if why is None:
            assert session.ask(message, seconds) == b'{"ready":[]}'
            assert session.output == b"y" * 10
            session.is_listening = False
            assert session.ask(message, seconds) == b'{"ready":[]}'
            assert session.output == b"y" * 10
        else:
            with pytest.raises(Killed, match=why):
                session.ask(message, seconds)
    assert tree_memory(session._process.pid) == 0


def test_a_long_request_arrives_whole(monkeypatch):
    """Longer than a pipe holds, to a runner that reads it late; and to one that never does."""
    monkeypatch.setattr(sandbox.Path, "home", lambda: sandbox.Path("/somewhere"))
    long = json.dumps({"cells": ["x = '" + "y" * 10**6 + "'", "print(len(x))"]}).encode() + b"\n"
    with Session(Limits(), sandboxed=False) as session:
        session.ask(long, 60)
        assert session.output == b"1000000\n"
        leave = json.dumps({"cells": ["import os\nos._exit(5)"]}).encode() + b"\n"
        with pytest.raises(Killed, match="with status 5"):
            session.ask(leave + long, 60)
        with pytest.raises(Killed, match="with status 5"):
            session.ask(long, 60)
