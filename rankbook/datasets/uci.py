"""The nine small UCI data sets of Kotlowski et al. (2011), Table 1."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankbook._validation import check_choice, check_flag
from rankbook.datasets import _files

__all__ = ["UCI_NAMES", "UCIData", "load_uci"]

# OpenML keeps the WEKA conversions that the paper's authors used, one number a data set.
_SOURCE = "https://www.openml.org/data/download/{number}/dataset_{number}_{arff}.arff"
_FOLDERS = ("uci-kotlowski2011", "uci")
_MISSING = "?"


@dataclass(frozen=True)
class _Entry:
    number: int  # of the data set at OpenML
    arff: str  # its name there
    positive: str  # label of the positive class
    sha256: str  # of names (letters and digits alone) and rows, joined by commas and newlines


_ENTRIES = {
    "breast-c": _Entry(
        13,
        "breast-cancer",
        "recurrence-events",
        "b4d1d84f49cdceadc6d7bb24e236a8914da55026ff855c3cf8df623b07acc0c8",
    ),
    "breast-w": _Entry(
        15,
        "breast-w",
        "malignant",
        "e327fb2f34cfe3bc454b1a3387b40d911b182a944266b2d63080913372e24096",
    ),
    "colic": _Entry(
        27, "colic", "yes", "47a2bbdc4f1a171cb409294a7cc91fee1236000f22c48df4ac851c608d15fb18"
    ),
    "diabetes": _Entry(
        37,
        "diabetes",
        "tested_positive",
        "5924ff7e865f232a4c13581b223a433369e921565d7070b1f0ab5ed1d3974861",
    ),
    "haberman": _Entry(
        43, "haberman", "2", "bacd01d544ca5da797771d22a3e3f91417222d05997c4220c7bfe82ed3803bf2"
    ),
    "heart-h": _Entry(
        51, "heart-h", ">50_1", "e9f43338e91d4a03dbf830d04c132ee6cb4958acc4443498aed8ed0719384a7f"
    ),
    "hepatitis": _Entry(
        55, "hepatitis", "DIE", "731844d6de7ba163ddffbdc74682692a6cf842d4a79d3800a61ff16d1d03fa7e"
    ),
    "ionosphere": _Entry(
        59, "ionosphere", "g", "371940a4761f49fdc39296202c01b822fd8301fb6f54c9eb44594e9950cb4144"
    ),
    "vote": _Entry(
        56, "vote", "republican", "889994e6d6c92c18dcc9c22d869bd363c2aeee821f0563638bf1b05fa66045c2"
    ),
}
UCI_NAMES = tuple(_ENTRIES)


@dataclass(frozen=True)
class UCIData:
    """A data set ready for a linear model.

    Attributes
    ----------
    name : str
        Its name.
    X : ndarray of shape (n, p)
        Numbers as they are; a nominal attribute as one column for each value (one for the second
        of two values); NaN where a cell is missing.
    y : ndarray of shape (n,)
        Labels, 1 for the positive class and 0 for the other.
    feature_names : tuple of str
        Names of the columns, "attribute" or "attribute=value".
    classes : tuple of str
        The two labels in words, negative first.
    path : Path
        The file that was read.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    classes: tuple[str, str]
    path: Path


def load_uci(
    name: str,
    path: str | os.PathLike | None = None,
    *,
    nominal: Sequence[str] = (),
    download_if_missing: bool = True,
    progress: bool = True,
) -> UCIData:
    """Load one of the nine small data sets of Kotlowski et al. (2011), Table 1.

    Parameters
    ----------
    name : {"breast-c", "breast-w", "colic", "diabetes", "haberman", "heart-h", "hepatitis", \
"ionosphere", "vote"}
        The data set.
    path : path-like, optional
        A folder with ``name.arff``, ``name.csv`` or ``name.csv.gz``, or that file. After it are
        tried ``$RANKBOOK_DATA`` (also its folders ``uci`` and ``uci-kotlowski2011``), the cache,
        and a download of the WEKA conversion from OpenML.
    nominal : sequence of str, optional
        Attributes to take as nominal though their values are numbers.
    download_if_missing : bool, default=True
        Whether to download what is nowhere to be found; otherwise that is an error.
    progress : bool, default=True
        Show the progress of a download.

    Returns
    -------
    UCIData
        Features, labels and names.

    Raises
    ------
    DatasetUnavailable
        If the data set is nowhere to be found; the message says what to fetch and where to put it.
    ValueError
        If a file was found whose rows are not the expected ones.

    Examples
    --------
    >>> from rankbook.datasets import load_uci
    >>> data = load_uci("haberman")                 # doctest: +SKIP
    >>> data.X.shape, int(data.y.sum())             # doctest: +SKIP
    ((306, 3), 81)
    """
    check_choice(name, UCI_NAMES, "name")
    if isinstance(nominal, str) or not all(isinstance(v, str) for v in _entries(nominal)):
        raise TypeError(f"nominal must list names of attributes, got {nominal!r}")
    _files.check_path(path)
    check_flag(download_if_missing, "download_if_missing")
    entry = _ENTRIES[name]
    folders = _files.search_folders(path, _FOLDERS)
    names = [f"{name}.arff", f"{name}.csv", f"{name}.csv.gz"]
    found = _files.find(names, folders)
    if found is None:
        target = _files.cache_folder() / "uci" / f"{name}.arff"
        url = _SOURCE.format(number=entry.number, arff=entry.arff)
        what = f"The UCI data set {name!r}"
        found = _files.fetch(
            what,
            url,
            target,
            lambda content: _check(*_parse(content.decode(), True), entry),
            folders,
            progress,
            download_if_missing,
        )
    text = _files.read_text(found)
    try:
        header, rows = _parse(text, found.suffix == ".arff")
        _check(header, rows, entry)
    except ValueError as error:
        raise ValueError(f"{found} does not hold the data set {name!r}: {error}") from None
    return _encode(name, entry, header, rows, {*nominal}, found)


def _entries(values: Any) -> Iterable:
    is_many = isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
    return values if is_many else (values,)


def _parse(text: str, is_arff: bool) -> tuple[list[str], list[list[str]]]:
    """Attribute names and rows of a CSV file with a header, or of an ARFF file."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("%")]
    header: list[str] = []
    if is_arff:
        start = 0
        for start, line in enumerate(lines):  # noqa: B007
            if line.lower().startswith("@data"):
                break
            if line.lower().startswith("@attribute"):
                header.append(_attribute_name(line[len("@attribute") :].strip()))
        lines = lines[start + 1 :]
    quote = "'" if is_arff else '"'
    reader = csv.reader(lines, quotechar=quote, skipinitialspace=True)
    try:
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of its rows is broken: {error}") from None
    if not rows:
        raise ValueError("it has no rows")
    return (header, rows) if is_arff else (rows[0], rows[1:])


def _attribute_name(rest: str) -> str:
    if rest[:1] in ("'", '"') and rest.find(rest[0], 1) > 0:
        return rest[1 : rest.index(rest[0], 1)]
    if not rest or rest[0] in "'\"":
        raise ValueError(f"it has an attribute without a name: {rest!r}")
    return rest.split(None, 1)[0]


def _check(header: list[str], rows: list[list[str]], entry: _Entry) -> None:
    """Raise unless names and rows are the expected ones; quotes and dashes in names may differ."""
    names = ["".join(c for c in name.casefold() if c.isalnum()) for name in header]
    _files.check_sha256(entry.sha256)("\n".join(",".join(row) for row in [names, *rows]).encode())


def _encode(
    name: str,
    entry: _Entry,
    header: list[str],
    rows: list[list[str]],
    nominal: set[str],
    path: Path,
) -> UCIData:
    unknown = nominal - set(header[:-1])
    if unknown:
        raise ValueError(
            f"nominal must name attributes of {name!r}, got {sorted(unknown)}; there are "
            f"{header[:-1]}"
        )
    table = np.array(rows, dtype=str)
    columns, names = [], []
    for attribute, cells in zip(header[:-1], table[:, :-1].T, strict=True):
        for label, column in _columns(cells, attribute in nominal):
            columns.append(column)
            names.append(f"{attribute}{label}")
    labels = table[:, -1]
    negative = next(label for label in np.unique(labels) if label != entry.positive)
    return UCIData(
        name=name,
        X=np.column_stack(columns),
        y=(labels == entry.positive).astype(np.intp),
        feature_names=tuple(names),
        classes=(str(negative), entry.positive),
        path=path,
    )


def _columns(cells: np.ndarray, nominal: bool) -> list[tuple[str, np.ndarray]]:
    """The numeric columns of one attribute, with what distinguishes their names."""
    missing = cells == _MISSING
    if not nominal:
        try:
            return [("", np.where(missing, "nan", cells).astype(float))]
        except ValueError:
            pass
    values = np.unique(cells[~missing])
    shown = values[1:] if values.size == 2 else values
    return [(f"={v}", np.where(missing, np.nan, (cells == v).astype(float))) for v in shown]
