"""The nine small UCI data sets of Kotlowski et al. (2011), Table 1."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbook._validation import check_choice
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
    sha256: str  # of the rows, cells joined by commas and rows by newlines


_ENTRIES = {
    "breast-c": _Entry(
        13,
        "breast-cancer",
        "recurrence-events",
        "c2c69c4cbaccb0260fa1a39a83bd269d8b8a952aad27d70025b59ddf58daa5a8",
    ),
    "breast-w": _Entry(
        15,
        "breast-w",
        "malignant",
        "185d53a8c1bb5cf8f852feaf33302f0dcb6d11958cb8fe9e11b868c49fa923e0",
    ),
    "colic": _Entry(
        27, "colic", "yes", "7094fd219d57a3b286b073ac373cd9bda51cebafec07ea9c59bbadc0ddb7c244"
    ),
    "diabetes": _Entry(
        37,
        "diabetes",
        "tested_positive",
        "7a92b14358db960615cbc94f297f5738d99c8ae1b5517fae6f907679dc85f97e",
    ),
    "haberman": _Entry(
        43, "haberman", "2", "18569865605a0d34727ff489c6b08aa8d1a430edd3ca944a57c4c03fbc403fae"
    ),
    "heart-h": _Entry(
        51, "heart-h", ">50_1", "4a91d14b44f097350311e362df4e2554217976db12b9bfd5bb9623ac0e775d41"
    ),
    "hepatitis": _Entry(
        55, "hepatitis", "DIE", "f77c0f28703df5fa237ab2139967afcb5436a6164ab7795c276806bb51f6893d"
    ),
    "ionosphere": _Entry(
        59, "ionosphere", "g", "fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83"
    ),
    "vote": _Entry(
        56, "vote", "republican", "ed81e4056017a73a0716c4f57eb6e6f055745e60affcfdedf9f03c19844b8a42"
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
            lambda b: _check(_parse(b.decode(), True)[1], entry),
            folders,
            progress,
        )
    content = found.read_bytes()
    if found.suffix == ".gz":
        content = gzip.decompress(content)
    header, rows = _parse(content.decode(), found.suffix == ".arff")
    try:
        _check(rows, entry)
    except ValueError as error:
        raise ValueError(f"{found} does not hold the data set {name!r}: {error}") from None
    return _encode(name, entry, header, rows, set(nominal), found)


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
                header.append(line.split(None, 1)[1])
        header = [_attribute_name(rest) for rest in header]
        lines = lines[start + 1 :]
    quote = "'" if is_arff else '"'
    rows = [
        [cell.strip() for cell in row]
        for row in csv.reader(lines, quotechar=quote, skipinitialspace=True)
    ]
    return (header, rows) if is_arff else (rows[0], rows[1:])


def _attribute_name(rest: str) -> str:
    if rest[0] in "'\"":
        return rest[1 : rest.index(rest[0], 1)]
    return rest.split(None, 1)[0]


def _check(rows: list[list[str]], entry: _Entry) -> None:
    _files.check_sha256(entry.sha256)("\n".join(",".join(row) for row in rows).encode())


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
