"""Submissions read from a folder or from the archive of Moodle or Canvas; nothing is extracted.

Every member is judged by itself: what is refused is named, and costs nobody else anything.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

__all__ = ["Submission", "Submissions", "read_submissions"]

NOTEBOOK_BYTES = 20 << 20
SOURCE_BYTES = 1 << 20
TOTAL_BYTES = 4 << 30
MEMBERS = 20_000
MOODLE = re.compile(r"(?P<name>[^/]+)_(?P<id>\d+)_assignsubmission_file_?/(?P<file>.+)", re.S)
CANVAS = re.compile(
    r"(?P<name>[^_/]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<attachment>\d+)_(?P<file>[^/]+)", re.S
)


@dataclass(frozen=True)
class Submission:
    """The notebook of one student.

    Parameters
    ----------
    student : str
        The id in the learning management system, or the name of the file or folder.
    name : str
        The student's name.
    cells : tuple of str or None
        The source of the code cells; None if there is no notebook to grade.
    ids : tuple of str
        The ids that nbgrader gave to the cells.
    flags : tuple of str
        What a human should know.
    seed : str, default=""
        The name by which inputs are drawn, where it is not `student`.
    """

    student: str
    name: str
    cells: tuple[str, ...] | None
    ids: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    seed: str = ""


@dataclass(frozen=True)
class Submissions:
    """All that was handed in.

    Parameters
    ----------
    layout : str
        "flat", "moodle" or "canvas".
    submissions : tuple of Submission
        One a student, by id.
    refused : tuple of tuple
        Members that were not read, and why.
    """

    layout: str
    submissions: tuple[Submission, ...]
    refused: tuple[tuple[str, str], ...] = ()


class _Refused(ValueError):
    """A member that is not read, with the reason."""


@dataclass
class _Entry:
    name: str
    open: Callable[[], IO[bytes]]
    problem: str = ""


@dataclass
class _Student:
    name: str
    notebooks: list[tuple[int, str, bytes]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


def read_submissions(path: str | Path) -> Submissions:
    """Read what was handed in.

    Parameters
    ----------
    path : str or Path
        A folder of notebooks (one a student, or a folder a student), or the zip file that Moodle
        or Canvas offers; a folder that holds such a zip file alone will do.

    Returns
    -------
    Submissions
        One submission a student, and what was refused.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from rankbook.grading import read_submissions
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> cell = {"cell_type": "code", "source": "x = 1", "metadata": {}}
    >>> _ = (folder / "ada.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    >>> read_submissions(folder).submissions[0].cells
    ('x = 1',)
    """
    path = Path(path)
    if path.is_dir():
        inside = [p for p in path.iterdir() if not p.name.startswith(".")]
        if len(inside) == 1 and inside[0].suffix == ".zip" and not inside[0].is_symlink():
            path = inside[0]
    if path.is_dir():
        return _collect(list(_folder_entries(path)))
    if not path.is_file():
        raise ValueError(f"path must be a folder or a zip file, and {path} is neither")
    try:
        with zipfile.ZipFile(path) as archive:
            return _collect(list(_zip_entries(archive)))
    except zipfile.BadZipFile as error:
        raise ValueError(f"path must be a folder or a zip file: {path}: {error}") from None


def _folder_entries(root: Path) -> Iterator[_Entry]:
    for folder, subfolders, files in os.walk(root):
        subfolders.sort()
        for name in sorted([*files, *(s for s in subfolders if Path(folder, s).is_symlink())]):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            problem = "a symbolic link" if stat.S_ISLNK(mode) else ""
            if not problem and not stat.S_ISREG(mode):
                problem = "not a regular file"
            relative = path.relative_to(root).as_posix()
            yield _Entry(relative, partial(_open, path), problem)


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _zip_entries(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist()[: MEMBERS + 1]:
        if not info.is_dir():
            yield _Entry(info.filename, partial(archive.open, info), _zip_problem(info))


def _zip_problem(info: zipfile.ZipInfo) -> str:
    name, mode = info.orig_filename, info.external_attr >> 16
    if "\0" in name or "\\" in name:
        return "a backslash or a null in its path"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "an absolute path"
    if ".." in name.split("/"):
        return "a path that leaves the archive"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if info.flag_bits & 1:
        return "encrypted"
    return ""


def _collect(entries: list[_Entry]) -> Submissions:
    if len(entries) > MEMBERS:
        raise ValueError(f"path must hold at most {MEMBERS} files")
    entries = [entry for entry in entries if entry.problem or not _is_litter(entry.name)]
    layout = _layout(entries)
    students: dict[str, _Student] = {}
    refused: list[tuple[str, str]] = []
    budget = TOTAL_BYTES
    for entry in entries:
        who, name, order, flag = _owner(entry.name, layout)
        student = students.setdefault(who, _Student(name)) if who else None
        try:
            if entry.problem:
                raise _Refused(entry.problem)
            if student is None or not entry.name.endswith(".ipynb"):
                raise _Refused("not a notebook" if student else "nobody's: its name is unexpected")
            data = _read(entry, min(NOTEBOOK_BYTES, budget))
            budget -= len(data)
            student.notebooks.append((order, entry.name, data))
            student.flags += [flag] if flag else []
        except (_Refused, OSError, zipfile.BadZipFile, RuntimeError, ValueError, EOFError) as error:
            why = str(error) if isinstance(error, _Refused) else f"cannot be read: {error}"
            refused.append((_printable(entry.name), why[:200]))
            if student is not None:
                student.flags.append(f"{_printable(entry.name)} was refused: {why[:200]}")
    found = [_submission(who, students[who]) for who in sorted(students)]
    return Submissions(layout, tuple(found), tuple(refused))


def _is_litter(name: str) -> bool:
    parts = name.split("/")
    return "__MACOSX" in parts or ".ipynb_checkpoints" in parts or parts[-1].startswith(".")


def _layout(entries: list[_Entry]) -> str:
    for layout, pattern in (("moodle", MOODLE), ("canvas", CANVAS)):
        if any(pattern.fullmatch(entry.name) for entry in entries):
            return layout
    return "flat"


def _owner(name: str, layout: str) -> tuple[str, str, int, str]:
    """Whose a member is: id, name, its order among the student's own, and a flag."""
    if layout == "flat":
        first, _, rest = name.partition("/")
        who = _printable(first if rest else first.removesuffix(".ipynb"))
        usable = who not in ("", ".", "..") and "\\" not in who
        return (who, who, 0, "") if usable else ("", "", 0, "")
    match = (MOODLE if layout == "moodle" else CANVAS).fullmatch(name)
    if match is None:
        return "", "", 0, ""
    groups = match.groupdict()
    flag = "handed in late" if groups.get("late") else ""
    return groups["id"], _printable(groups["name"]), int(groups.get("attachment") or 0), flag


def _read(entry: _Entry, limit: int) -> bytes:
    """Read a member, counting: the size in an archive's header may be a lie."""
    chunks, size = [], 0
    with entry.open() as stream:
        while chunk := stream.read(1 << 16):
            size += len(chunk)
            if size > limit:
                raise _Refused(f"larger than {limit >> 20} MB")
            chunks.append(chunk)
    return b"".join(chunks)


def _submission(who: str, student: _Student) -> Submission:
    flags = list(dict.fromkeys(student.flags))
    notebooks = sorted(student.notebooks)
    if not notebooks:
        return Submission(who, student.name, None, (), (*flags, "no notebook"))
    if len(notebooks) > 1:
        names = ", ".join(_printable(name) for _, name, _ in notebooks)
        if notebooks[-1][0] == notebooks[-2][0]:
            return Submission(who, student.name, None, (), (*flags, f"several notebooks: {names}"))
        flags.append(f"several notebooks, the newest attachment was graded: {names}")
    try:
        cells, ids = _cells(notebooks[-1][2])
    except _Refused as error:
        return Submission(who, student.name, None, (), (*flags, str(error)))
    doubles = sorted({name for name in ids if ids.count(name) > 1})
    if doubles:
        flags.append(f"cells with the same id: {_printable(', '.join(doubles))}")
    return Submission(who, student.name, cells, tuple(ids), tuple(flags))


def _cells(data: bytes) -> tuple[tuple[str, ...], list[str]]:
    """The code cells of a notebook, and the ids that nbgrader gave its cells."""
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        raise _Refused("the notebook is not JSON") from None
    found = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(found, list) or notebook.get("nbformat") != 4:
        raise _Refused("the notebook is not of format 4")
    cells, ids = [], []
    for cell in found:
        if not isinstance(cell, dict):
            raise _Refused("the notebook has a cell that is none")
        ids += _nbgrader_id(cell.get("metadata"))
        if cell.get("cell_type") == "code":
            source = cell.get("source", "")
            lines = source if isinstance(source, list) else [source]
            if not all(isinstance(line, str) for line in lines):
                raise _Refused("the notebook has a cell without text")
            cells.append("".join(lines).encode("utf-8", "replace").decode())
    if sum(map(len, cells)) > SOURCE_BYTES:
        raise _Refused("the notebook has more than a megabyte of code")
    return tuple(cells), ids


def _nbgrader_id(metadata: Any) -> list[str]:
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return [name[:200]] if isinstance(name, str) else []


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:200].strip()
