"""What runs inside the sandbox: the student's cells, then the student's functions.

Requests come as lines of JSON on standard input, replies go to the file descriptor that is the
argument. Everything here shares a process with the student's code, so nothing here is trusted: it
makes life easy for honest code, and the grader outside believes values alone.
"""

from __future__ import annotations

import builtins
import functools
import gc
import importlib.abc
import json
import os
import re
import sys
import sysconfig
import threading
import types
from pathlib import Path
from typing import Any, BinaryIO

from rankbook.grading import _wire

CELL = "<cell {}>"
# Where code lies that is not the student's: all else was written, or made of text, by the notebook.
LIBRARIES = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
LIBRARIES |= {path for path in sys.path if path and Path(path).resolve() != Path.cwd()}
LIBRARIES |= {str(Path(__file__).parents[1])}
TRUSTED = ("<frozen ", *(path + os.sep for path in LIBRARIES))
# The names of errors that a reply may carry: a class of the student's own could smuggle inputs.
ERRORS = {name for name, value in vars(builtins).items() if isinstance(value, type)} | {
    "LinAlgError",
    "AxisError",
    "NotFittedError",
}


class Forbidden(Exception):
    """The answer uses what its question forbids."""


class Shell:
    """Stands for IPython: takes every call, does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: None


def strip_magics(source: str) -> str:
    """Return a cell without IPython's magics; a cell in another language becomes empty."""
    try:
        compile(source, CELL, "exec")
        return source
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    lines = source.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        if lines[first].split()[0] not in ("%%time", "%%timeit", "%%capture", "%%prun"):
            return ""
        lines[first] = ""
    for i, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        if re.match(r"\s*([%!?]|[\w.]+\?\??\s*$)", line):
            lines[i] = indent + "pass"
        else:
            lines[i] = re.sub(r"^(\s*[\w, ]+=)\s*[%!].*$", r"\1 None", line)
    return "\n".join(lines)


def run_cells(cells: list[str], namespace: dict[str, Any]) -> list[dict]:
    """Execute the cells in order; return where and with what some of them failed."""
    failures = []
    for number, source in enumerate(cells, start=1):
        name = CELL.format(number)
        try:
            exec(compile(strip_magics(source), name, "exec"), namespace)
        except BaseException as error:  # noqa: BLE001 - SystemExit too: the next cell goes on
            failures.append({"cell": number, "line": _line(error, name), "error": _short(error)})
    return failures


def _line(error: BaseException, name: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _short(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the student's own __str__
        text = ""
    return f"{type(error).__name__}: {text}"[:500]


class Guard(importlib.abc.MetaPathFinder):
    """Stops a call that imports, or calls from the student's code, what its question forbids.

    A name is a module, or an attribute of one. A forbidden module that is loaded already is caught
    when the student's code enters one of its functions, by whatever way it got hold of it.
    """

    def __init__(self, names: list[str]):
        self.names = names
        self.codes: set[Any] = set()
        self.intact = True

    def __enter__(self) -> Guard:
        if not self.names:
            return self
        for name in self.names:
            module, _, attribute = name.rpartition(".")
            # Not getattr: a package that loads its parts when asked, as scipy, would load one here.
            value = getattr(sys.modules.get(module), "__dict__", {}).get(attribute)
            value = getattr(value, "__wrapped__", value)
            self.codes.add(getattr(value, "__code__", None))
        self.codes.discard(None)
        sys.meta_path.insert(0, self)
        threading.setprofile(self.watch)
        sys.setprofile(self.watch)
        return self

    def __exit__(self, *_: object) -> None:
        if self.names:
            self.intact = sys.getprofile() == self.watch
            sys.setprofile(None)
            threading.setprofile(None)
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Refuse a module that was not loaded before the call."""
        for name in self.names:
            if fullname == name or fullname.startswith(name + "."):
                if _student_asks(sys._getframe(1)):
                    raise Forbidden(name)

    def watch(self, frame: Any, event: str, value: Any) -> None:
        """Look at every call that the student's code makes."""
        if event == "call":
            caller = frame.f_back
            while caller is not None and caller.f_code.co_name == "wrapper":
                caller = caller.f_back
            if not _is_student(caller):
                return
            if frame.f_code in self.codes:
                raise Forbidden(frame.f_code.co_name)
            self._compare(str(frame.f_globals.get("__name__")))
            if not _is_student(frame):
                self._look_into(frame)
        elif event == "c_call" and _is_student(frame):
            module = getattr(value, "__module__", None) or "builtins"
            name = getattr(value, "__name__", "")
            self._compare(name if module == "builtins" else f"{module}.{name}")

    def _look_into(self, frame: Any) -> None:
        """Refuse a forbidden function that is handed to another module, which would call it."""
        for value in list(frame.f_locals.values()):
            for part in filter(callable, _members(value)):
                part = part.func if type(part) is functools.partial else part
                inner = getattr(part, "__wrapped__", part)
                name = getattr(part, "__name__", "")
                if getattr(inner, "__code__", None) in self.codes:
                    raise Forbidden(name)
                self._compare(f"{getattr(part, '__module__', '')}.{name}")

    def _compare(self, called: str) -> None:
        for name in self.names:
            if called == name or called.startswith(name + "."):
                raise Forbidden(name)


def _members(value: Any) -> Any:
    """A value, or what a short collection holds: long ones are data."""
    if type(value) in (tuple, list, dict) and len(value) <= 20:
        return list(value.values() if type(value) is dict else value)
    return (value,)


@functools.lru_cache(1000)
def _is_library(file: str) -> bool:
    return file.startswith(TRUSTED)


def _is_student(frame: Any) -> bool:
    return frame is not None and not _is_library(frame.f_code.co_filename)


def _student_asks(frame: Any) -> bool:
    """Whether the first frame outside the import system is the student's."""
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return _is_student(frame)


def call(namespace: dict[str, Any], request: dict) -> dict:
    """Call one function of the student's; say what came of it."""
    function = namespace.get(request["call"])
    if not callable(function):
        return {"missing": True}
    arguments = _wire.decode(request["arguments"])
    guard = Guard(request["forbidden"])
    try:
        with guard:
            value = function(*arguments)
    except Forbidden as error:
        return {"forbidden": str(error)}
    except BaseException as error:  # noqa: BLE001 - SystemExit is an answer like any other
        name = type(error).__name__
        return {"error": name if name in ERRORS else "an error of its own", "intact": guard.intact}
    try:
        return {"value": _wire.encode(value), "intact": guard.intact}
    except _wire.WireError as error:
        return {"refused": str(error)}
    except BaseException:  # noqa: BLE001 - the methods of the student's own classes
        return {"refused": "a value that cannot be read"}


def _reply(stream: BinaryIO, message: dict) -> None:
    stream.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    stream.flush()


def main() -> None:
    """Serve one notebook until the requests end."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(int(sys.argv[1]), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.argv = ["notebook"]
    module = types.ModuleType("__main__")
    namespace = vars(module)
    shell = Shell()
    namespace.update(display=lambda *args, **options: None, get_ipython=lambda: shell)
    sys.modules["__main__"] = module
    for line in requests:
        request = _wire.parse(line)
        if "cells" in request:
            failures = run_cells(request["cells"], namespace)
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except BaseException:  # noqa: BLE001 - the student may have put anything there
                    continue
            gc.collect()
            _reply(replies, {"ready": failures[:200]})
        else:
            _reply(replies, call(namespace, request))


if __name__ == "__main__":
    main()
