"""Where data sets lie, and how they get there: search path, checksums, atomic downloads."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import sys
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rankbook.exceptions import DatasetUnavailable

__all__ = [
    "cache_folder",
    "check_path",
    "check_sha256",
    "download",
    "fetch",
    "find",
    "read_text",
    "search_folders",
    "sha256",
]

_CHUNK = 1 << 16
_TIMEOUT = 30.0


def cache_folder() -> Path:
    """Return the folder that downloads are kept in; it need not exist."""
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "rankbook"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rankbook"


def search_folders(path: str | os.PathLike | None, subfolders: Iterable[str]) -> list[Path]:
    """Return the folders to look in, in order: `path`, ``$RANKBOOK_DATA``, the cache.

    In each of the last two, the subfolders come first and the folder itself last.
    """
    folders = [] if path is None else [Path(path)]
    root = os.environ.get("RANKBOOK_DATA")
    for base in ([Path(root)] if root else []) + [cache_folder()]:
        folders += [base / name for name in subfolders] + [base]
    return folders


def check_path(path: Any) -> None:
    """Raise unless the place to look in first is a path, or None."""
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be a path, got {path!r}")


def find(names: Iterable[str], folders: Iterable[Path]) -> Path | None:
    """Return the first file of one of the names; a "folder" may be such a file itself."""
    names = list(names)
    for folder in folders:
        if folder.is_file() and folder.name in names:
            return folder
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file, unpacked if its name ends in .gz; `ValueError` if damaged."""
    content = path.read_bytes()
    try:
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode(encoding)
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def sha256(content: bytes) -> str:
    """Return the checksum in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def check_sha256(expected: str) -> Callable[[bytes], None]:
    """Return a check that raises `ValueError` unless the content has the checksum."""

    def check(content: bytes) -> None:
        found = sha256(content)
        if found != expected:
            raise ValueError(f"its sha256 is {found}, expected {expected}")

    return check


def download(url: str, target: Path, check: Callable[[bytes], None], progress: bool = True) -> Path:
    """Fetch a file, check its content, and only then put it in place, in one step.

    Raises `OSError` or `http.client.HTTPException` if it cannot be fetched or written, `ValueError`
    if the check fails.
    """
    from tqdm.auto import tqdm

    parts = []
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
        size = int(response.headers.get("Content-Length") or 0) or None
        with tqdm(
            total=size, unit="B", unit_scale=True, desc=target.name, disable=not progress
        ) as bar:
            while part := response.read(_CHUNK):
                parts.append(part)
                bar.update(len(part))
    content = b"".join(parts)
    check(content)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A reader never sees half a file, and two downloads at once do no harm.
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def fetch(
    what: str,
    url: str,
    target: Path,
    check: Callable[[bytes], None],
    folders: Iterable[Path],
    progress: bool = True,
    download_if_missing: bool = True,
) -> Path:
    """Download, or raise `DatasetUnavailable` that says what to fetch and where to put it."""
    looked = "\n".join(f"  {folder}" for folder in folders)
    advice = (
        f"Fetch {url}\nand save it as {target}, or in a folder of your own as {target.name}: "
        f"pass that folder as path=, or name it in the environment variable "
        f"RANKBOOK_DATA.\nLooked in:\n{looked}"
    )
    if not download_if_missing:
        raise DatasetUnavailable(
            f"{what} is not on this machine, and download_if_missing is False.\n{advice}"
        )
    try:
        return download(url, target, check, progress)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DatasetUnavailable(
            f"{what} is not on this machine and could not be downloaded ({error!r}).\n{advice}"
        ) from error
