"""Lists in ranked order: one sort, shared by every list measure.

Queries are laid out as rows of padded matrices. The lengths in a matrix lie between two powers of
two, so that at most half of it is padding, and every step is a numpy operation on whole matrices.
Within a matrix, the queries whose scores are tied somewhere are kept apart from the others: only
they need the averages over tie orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from rankbook._arrays import as_array
from rankbook._validation import (
    check_choice,
    check_flag,
    check_qid,
    check_same_length,
    check_scalar,
    check_scores,
    check_vector,
)
from rankbook.metrics._blocks import Block

__all__ = [
    "RankedLists",
    "check_cut",
    "check_threshold",
    "lists_of",
    "rank_lists",
    "summary",
]

# Grades up to here are stored in one byte, and functions of a grade become table lookups.
_LARGEST_SMALL_GRADE = 255

# Places in a matrix: few enough that it and its temporaries stay in the processor's cache.
_CHUNK = 1 << 16

# Matrices are put together up to this number of groups of ties: many enough for a numpy call.
_GROUPS = 1 << 17

# The bits of -0.0, as an integer.
_NEGATIVE_ZERO = np.iinfo(np.int64).min

# What a block is made of.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


class RankedLists:
    """Graded items of many queries, sorted by score once; made by `rank_lists`."""

    def __init__(self, blocks: list[Block], n_queries: int, max_grade: float, ties: str) -> None:
        self._blocks = blocks
        self.n_queries = n_queries
        self.max_grade = max_grade
        self.ties = ties

    def __repr__(self) -> str:
        return f"RankedLists(n_queries={self.n_queries}, ties={self.ties!r})"

    def measure(
        self,
        function: Callable[[Block], np.ndarray],
        of_tied: Callable[[list[Block]], list[np.ndarray]] | None = None,
    ) -> np.ndarray:
        """The values of a measure of blocks, one a query, in the order of the sorted qids.

        Blocks in which ties are averaged are taken together where there is a function for them.
        """
        values = np.empty(self.n_queries)
        tied = [b for b in self._blocks if of_tied is not None and b.starts is not None]
        for block in self._blocks:
            if block not in tied:
                values[block.queries] = function(block)
        if of_tied is not None:
            for block, part in zip(tied, of_tied(tied), strict=True):
                values[block.queries] = part
        return values


def rank_lists(y: Any, scores: Any, *, qid: Any = None, ties: str = "average") -> RankedLists:
    """Sort the items of every query by score, once, for several list measures.

    Parameters
    ----------
    y : array-like of shape (n,)
        Grades: finite, not negative, used as they are.
    scores : array-like of shape (n,)
        Higher is ranked higher.
    qid : array-like of shape (n,), optional
        The query of each item, in any order. Without it all items form one list.
    ties : {"average", "order"}
        What is done about equal scores: the exact mean over all orders of the tied items, or the
        order in which the items are given.

    Returns
    -------
    RankedLists
        What every list measure takes in place of `y` and `scores`.

    Examples
    --------
    >>> from rankbook.metrics import average_precision, ndcg, rank_lists
    >>> lists = rank_lists([0, 2, 1, 0, 1], [0.9, 0.8, 0.1, 0.2, 0.7], qid=[1, 1, 1, 2, 2])
    >>> round(ndcg(lists, k=2), 4), round(average_precision(lists), 4)
    (0.7606, 0.7917)
    """
    check_choice(ties, ("average", "order"), "ties")
    scores = check_scores(scores)
    grades = _check_grades(y)
    check_same_length(grades.size, scores.size, "y", "scores")
    max_grade = float(grades.max())
    items, lengths = _by_query(qid, scores.size)
    if items is not None:
        grades, scores = grades[items], scores[items]
    strict: list[Rows] = []
    tied: list[Rows] = []
    for queries, places in _chunks(lengths):
        for part in _ranked_rows(queries, places, lengths[queries], grades, scores, ties):
            (strict if part[3] is None else tied).append(part)
    blocks = [Block(*part) for part in strict + _merged(tied)]
    return RankedLists(blocks, lengths.size, max_grade, ties)


def _merged(parts: list[Rows]) -> list[Rows]:
    """Rows of one width in a sequence put together, until they have many groups of ties."""
    merged: list[list[Rows]] = []
    n_groups = 0
    for part in parts:
        assert part[3] is not None
        if n_groups < _GROUPS and merged and merged[-1][0][2].shape[1] == part[2].shape[1]:
            merged[-1].append(part)
        else:
            merged.append([part])
            n_groups = 0
        n_groups += int(np.count_nonzero(part[3]))
    return [
        cast(Rows, tuple(map(np.concatenate, zip(*rows, strict=True))))
        if len(rows) > 1
        else rows[0]
        for rows in merged
    ]


def _check_grades(y: Any) -> np.ndarray:
    """Return grades, in one byte each if they are small integers, else as floats."""
    grades = as_array(y, "y")
    if grades.dtype.kind not in "iu" or grades.ndim != 1 or grades.size == 0:
        grades = check_vector(y, "y")
    if grades.min() < 0:
        raise ValueError(f"y must hold grades that are not negative, got {grades.min()}")
    if grades.max() <= _LARGEST_SMALL_GRADE:
        small = grades.astype(np.uint8)
        if grades.dtype.kind != "f" or np.array_equal(small, grades):
            return small
    return grades.astype(float, copy=False)


def _by_query(qid: Any, n: int) -> tuple[np.ndarray | None, np.ndarray]:
    """The items in order of their queries (None: they are in order), and the queries' lengths."""
    if qid is None:
        return None, np.array([n])
    given = as_array(qid, "qid")
    if given.dtype.kind in "iu" and given.shape == (n,):
        bounds = np.flatnonzero(given[1:] != given[:-1]) + 1
        if (given[bounds] > given[bounds - 1]).all():
            # Sorted integers, the usual case, need neither an encoding nor a sort.
            return None, np.diff(bounds, prepend=0, append=n)
    codes = check_qid(given, n)
    assert codes is not None
    return np.argsort(codes, kind="stable"), np.bincount(codes)


def _chunks(lengths: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray | slice]]:
    """Queries of similar length, few enough for the processor's cache, and their items' places.

    Places form a matrix, with -1 for padding; a slice stands for lists of one length in a row.
    """
    first = np.cumsum(lengths) - lengths
    magnitude = np.frexp(lengths - 0.5)[1]
    for level in np.flatnonzero(np.bincount(magnitude)):
        similar = np.flatnonzero(magnitude == level)
        rows = max(_CHUNK // int(lengths[similar].max()), 1)
        for queries in np.split(similar, range(rows, similar.size, rows)):
            width, begin = int(lengths[queries].max()), int(first[queries[0]])
            in_a_row = first[queries[-1]] - begin == width * (queries.size - 1)
            if in_a_row and (lengths[queries] == width).all():
                yield queries, slice(begin, begin + width * queries.size)
                continue
            column = np.arange(width)
            places = first[queries, None] + column
            places[column >= lengths[queries, None]] = -1
            yield queries, places


def _ranked_rows(
    queries: np.ndarray,
    places: np.ndarray | slice,
    lengths: np.ndarray,
    grades: np.ndarray,
    scores: np.ndarray,
    ties: str,
) -> Iterator[Rows]:
    """Sort the rows of one matrix; split those with ties off if they are to be averaged."""
    if isinstance(places, slice):
        grades = grades[places].reshape(queries.size, -1)
        scores = scores[places].reshape(queries.size, -1)
    else:
        grades = np.where(places < 0, grades.dtype.type(0), grades[places])
        scores = np.where(places < 0, -np.inf, scores[places])
    together = _sorted_together(grades, scores) if ties == "average" else None
    if together is None:
        order, new = _argsorted(scores)
        tied = _tied_rows(new, lengths)
        if ties == "order" and tied.any():
            order = _in_given_order(order, new)
        grades = _pick(grades, order)
    else:
        grades, new = together
        tied = _tied_rows(new, lengths)
    if ties == "order" or not tied.any():
        yield queries, lengths, grades, None
    elif tied.all():
        yield queries, lengths, grades, new
    else:
        yield queries[~tied], lengths[~tied], grades[~tied], None
        yield queries[tied], lengths[tied], grades[tied], new[tied]


def _tied_rows(new: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Which rows have equal scores, padding apart."""
    width = new.shape[1]
    if lengths.min() < width:
        new = new | (np.arange(width) > lengths[:, None])
    return np.asarray(~new.all(axis=1))


def _sorted_together(
    grades: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The grades in ranked order, and where a new score begins; None where this does not work.

    Values are sorted several times faster than places, so the grades are sorted as the last bits
    of their scores. That is exact if no two scores of a row differ in these bits alone.
    """
    if grades.dtype != np.uint8:
        return None
    last_bits = (1 << int(grades.max()).bit_length()) - 1
    # Not -scores: a negative zero has other bits than zero.
    falling = 0.0 - scores
    bits = falling.view(np.int64)
    spare = not np.bitwise_or.reduce(bits, axis=None) & last_bits
    # All of one type: numpy is slow where types are mixed.
    keys = bits & ~last_bits
    keys |= grades.astype(np.int64)
    # As floats, which they are still: an infinite score is padding, whose grade is 0.
    keys.view(float).sort(axis=1)
    ranked = keys.astype(np.uint8) & np.uint8(last_bits)
    keys &= ~last_bits
    new = _starts(keys)
    if not spare:
        # A number so small that only its sign is left counts as equal to zero in the sort.
        if keys.min() == _NEGATIVE_ZERO:
            return None
        # Scores that differ in the last bits alone begin anew here, and did not there.
        if not new.all():
            falling.sort(axis=1)
            if np.count_nonzero(_starts(falling)) > np.count_nonzero(new):
                return None
    return ranked, new


def _starts(ranked: np.ndarray) -> np.ndarray:
    """Where a new value begins in the rows of a sorted matrix."""
    new = np.empty(ranked.shape, dtype=bool)
    # All rows in one run, which is faster; what their first places are compared with is no matter.
    flat = ranked.ravel()
    np.not_equal(flat[1:], flat[:-1], out=new.ravel()[1:])
    new[:, 0] = True
    return new


def _argsorted(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in ranked order, ties in any order, and where a new score begins."""
    # An unstable sort is several times faster than a stable one and serves rows without ties.
    order = np.argsort(scores, axis=1)[:, ::-1]
    return order, _starts(_pick(scores, order))


def _in_given_order(order: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The order with the items of each tie group sorted by their place in the input."""
    width = order.shape[1]
    # One integer holds group and place, and integers sort faster than a stable sort of scores.
    dtype = np.int32 if width * (width + 1) < np.iinfo(np.int32).max else np.int64
    key: np.ndarray = np.cumsum(new, axis=1, dtype=dtype)
    key *= width
    key += order
    key.sort(axis=1)
    return key % width


def _pick(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """matrix[i, columns[i, j]], faster than take_along_axis for narrow rows."""
    offsets = np.arange(matrix.shape[0])[:, None] * matrix.shape[1]
    return np.ravel(matrix)[columns + offsets]


def lists_of(y: Any, scores: Any, qid: Any, ties: str) -> RankedLists:
    """The lists a measure was called with, sorted now unless `rank_lists` did so before."""
    check_choice(ties, ("average", "order"), "ties")
    if not isinstance(y, RankedLists):
        if scores is None:
            raise TypeError("scores must be given unless y is what rank_lists returned")
        return rank_lists(y, scores, qid=qid, ties=ties)
    if scores is not None or qid is not None:
        raise TypeError("scores and qid must be left out when y is what rank_lists returned")
    if ties not in ("average", y.ties):
        raise ValueError(f"ties must be that of rank_lists, {y.ties!r}, or left out, got {ties!r}")
    return y


def check_cut(k: int | None) -> int | None:
    """Return a cut-off, or None for none."""
    return None if k is None else check_scalar(k, "k", low=1, integer=True)


def summary(values: np.ndarray, per_query: bool) -> float | np.ndarray:
    """Return the values of all queries, or their mean."""
    return values if check_flag(per_query, "per_query") else float(values.mean())


def check_threshold(threshold: float) -> float:
    """Return the grade that a relevant item exceeds."""
    return check_scalar(threshold, "threshold", low=0.0)
