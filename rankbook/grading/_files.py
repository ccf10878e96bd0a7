"""Files that are there whole or not at all, whenever the power fails."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def write(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write beside the target, force it to the disk, then put it in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding=encoding, newline="") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, path)


def file_name(student: str) -> str:
    """Return a name for a student's files that no id can turn into a path or another's name."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", student).strip("-")[:40] or "student"
    return f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}"


def to_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def harmless(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def points(value: float | None) -> str:
    """Return points as people write them; nothing where they are not known."""
    return "" if value is None else f"{value:.10g}"
