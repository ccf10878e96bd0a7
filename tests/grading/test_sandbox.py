"""The sandbox: what a session may use, and that the whole tree ends when it takes more."""

import json
import subprocess
import sys

import pytest

from rankbook.grading import sandbox
from rankbook.grading.sandbox import Limits, SandboxUnavailable, command, probe, tree_memory

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
