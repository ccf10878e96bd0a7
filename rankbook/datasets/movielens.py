"""The MovieLens 100K ratings: what 943 people think of 1682 films."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbook._validation import check_flag
from rankbook.datasets import _files
from rankbook.exceptions import DatasetUnavailable

__all__ = ["MovieLensData", "load_movielens"]

_SOURCE = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
_ARCHIVE = "ml-100k.zip"
_FOLDERS = ("movielens-100k", "ml-100k")
_ENCODING = "latin-1"
# Of the lines, whatever ends them, without blank ones.
_SHA256 = {
    "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
    "u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
}
# The last fields of a line of u.item, in this order.
_GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)


@dataclass(frozen=True)
class MovieLensData:
    """Ratings, and what is known of who rated what; users are the queries.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Features of the item and of the user of each rating: the rows of `item_features` and of
        `user_features`, side by side. The year of one film is NaN.
    y : ndarray of shape (n,)
        Ratings 1 to 5.
    qid : ndarray of shape (n,)
        The user of each rating, 1, 2, ...; a user's ratings do not follow each other.
    item_id : ndarray of shape (n,)
        The item of each rating, 1, 2, ...
    timestamp : ndarray of shape (n,)
        When the rating was given, in seconds since 1970-01-01 UTC.
    item_features : ndarray of shape (n_items, p_items)
        Year of release (NaN for the one item that has none) and 19 genres, 0 or 1. Row i is item
        i + 1.
    user_features : ndarray of shape (n_users, p_users)
        Age, 1 for men, and a column for each occupation. Row u is user u + 1.
    feature_names : tuple of str
        Names of the columns of X, "attribute" or "attribute=value".
    item_titles : tuple of str
        Titles; entry i is item i + 1. Some films are listed twice, under two numbers.
    path : Path
        The archive, or the file of the ratings, that was read.
    """

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    item_id: np.ndarray
    timestamp: np.ndarray
    item_features: np.ndarray
    user_features: np.ndarray
    feature_names: tuple[str, ...]
    item_titles: tuple[str, ...]
    path: Path


def load_movielens(
    path: str | os.PathLike | None = None,
    *,
    download_if_missing: bool = True,
    progress: bool = True,
) -> MovieLensData:
    """Load the MovieLens 100K ratings, with users as queries.

    Parameters
    ----------
    path : path-like, optional
        A folder with ``u.data``, ``u.item`` and ``u.user``, each as it is or with ``.gz`` after its
        name, or with ``ml-100k.zip``; or that archive, or the file ``u.data`` itself. After it are
        tried ``$RANKBOOK_DATA`` (also its folders ``movielens-100k`` and ``ml-100k``), the cache,
        and a download of the archive from GroupLens.
    download_if_missing : bool, default=True
        Whether to download what is nowhere to be found; otherwise that is an error.
    progress : bool, default=True
        Show the progress of a download.

    Returns
    -------
    MovieLensData
        The record, with ``X``, ``y``, ``qid`` and more.

    Raises
    ------
    DatasetUnavailable
        If the ratings are nowhere to be found, or some of the files are missing where others lie;
        the message says what to fetch and where to put it.
    ValueError
        If a file was found that is damaged or does not hold what it should.

    Notes
    -----
    The rows are in the order of ``u.data``, which is random: ``np.argsort(data.qid,
    kind="stable")`` puts those of a user together, where a program asks for that.

    A user's features are the same for all ratings of that user. They do not order items within a
    query unless a model lets them interact with those of the items. Zip codes, the days of
    release and the addresses of pages about the films are left out.

    The ratings may be used for research; neither commercial use nor redistribution is allowed
    without permission; and publications must cite the article below. The archive's README has the
    terms.

    References
    ----------
    F. M. Harper and J. A. Konstan (2015), The MovieLens datasets: history and context, ACM
    Transactions on Interactive Intelligent Systems 5(4), article 19.

    Examples
    --------
    >>> from rankbook.datasets import load_movielens
    >>> data = load_movielens()                             # doctest: +SKIP
    >>> data.X.shape, np.bincount(data.y)[1:].tolist()      # doctest: +SKIP
    ((100000, 43), [6110, 11370, 27145, 34174, 21201])
    >>> data.item_titles[data.item_id[0] - 1]               # doctest: +SKIP
    'Kolya (1996)'
    """
    _files.check_path(path)
    check_flag(download_if_missing, "download_if_missing")
    check_flag(progress, "progress")
    names = ["u.data", "u.data.gz", _ARCHIVE]
    if path is not None and Path(path).is_file() and Path(path).name not in names:
        raise ValueError(f"path must be a folder or a file named {' or '.join(names)}, got {path}")
    folders = _files.search_folders(path, _FOLDERS)
    found = _files.find(names, folders)
    if found is None:
        found = _files.fetch(
            "MovieLens 100K",
            _SOURCE,
            _files.cache_folder() / "ml-100k" / _ARCHIVE,
            _check_archive,
            folders,
            progress,
            download_if_missing,
        )
    if found.name == _ARCHIVE:
        return _encode(_unpack(found.read_bytes(), str(found)), found)
    return _encode(_gather(found.parent), found)


def _gather(folder: Path) -> dict[str, list[str]]:
    """The lines of each file of a folder."""
    lines = {}
    for name in _SHA256:
        file = _files.find([name, f"{name}.gz"], [folder])
        if file is None:
            raise DatasetUnavailable(
                f"MovieLens 100K is not complete: path {folder} holds no {name} or {name}.gz. "
                f"Fetch {_SOURCE}\nand unpack it there, or save it there as {_ARCHIVE}"
            )
        lines[name] = _checked(_files.read_text(file, _ENCODING), name, str(file))
    return lines


def _unpack(content: bytes, archive: str) -> dict[str, list[str]]:
    """The lines of each file of the archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            unpacked = {name: members.read(f"ml-100k/{name}").decode(_ENCODING) for name in _SHA256}
    except KeyError as error:
        raise ValueError(f"{archive} is not complete: {error.args[0]}") from None
    except Exception as error:  # of damaged bytes it raises more than `BadZipFile`
        raise ValueError(f"{archive} is damaged: {error}") from error
    return {name: _checked(text, name, f"{archive}/{name}") for name, text in unpacked.items()}


def _check_archive(content: bytes) -> None:
    _unpack(content, _ARCHIVE)


def _checked(text: str, name: str, file: str) -> list[str]:
    # Not `splitlines`, which cuts at letters of this encoding too.
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line]
    try:
        _files.check_sha256(_SHA256[name])("".join(f"{line}\n" for line in lines).encode(_ENCODING))
    except ValueError as error:
        problem = error if lines else "it is empty"
        raise ValueError(f"{file} does not hold MovieLens 100K: {problem}") from None
    return lines


def _encode(lines: dict[str, list[str]], path: Path) -> MovieLensData:
    ratings = np.loadtxt(lines["u.data"], dtype=np.int64, delimiter="\t", ndmin=2)
    qid, item_id, y, timestamp = ratings.T.copy()
    items = [line.split("|") for line in lines["u.item"]]
    users = np.array([line.split("|") for line in lines["u.user"]])
    years = [float(item[2][-4:]) if item[2] else np.nan for item in items]
    genres = np.array([item[-len(_GENRES) :] for item in items], dtype=float)
    item_features = np.column_stack([years, genres])
    occupations = np.unique(users[:, 3])
    user_features = np.column_stack(
        [users[:, 1].astype(float), users[:, 2] == "M", users[:, [3]] == occupations]
    )
    names = ("year", *(f"genre={genre}" for genre in _GENRES), "age", "gender=M")
    return MovieLensData(
        X=np.hstack([item_features[item_id - 1], user_features[qid - 1]]),
        y=y,
        qid=qid,
        item_id=item_id,
        timestamp=timestamp,
        item_features=item_features,
        user_features=user_features,
        feature_names=(*names, *(f"occupation={job}" for job in occupations)),
        item_titles=tuple(item[1] for item in items),
        path=path,
    )
