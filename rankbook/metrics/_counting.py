"""Counting misranked pairs without forming them.

Everything here works on a `Sample`, the checked and encoded input of a pair metric, and costs one
sort plus O(n K) arithmetic, or O(n log K) in `_bitwise`. No array has more than n or K entries, for
n items and K classes, however many queries there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankbook._pair_counts import Cells, count_cells
from rankbook._validation import (
    check_labels,
    check_qid,
    check_same_length,
    check_scores,
    check_weights,
)

__all__ = [
    "Ordered",
    "Sample",
    "distinct_score_mass",
    "error_rows",
    "ordered",
    "prepare",
    "rate_rows",
    "running_sum",
]

# Codes up to here fit into the last bits of a score without many scores growing equal.
_PACKED_CLASSES = 256
# Up to here, comparing class by class is faster than running sums over all items.
_FEW_CLASSES = 32
# Products of two weights of this size, summed, stay far from overflow and underflow.
_MODERATE = 2.0**200


@dataclass(frozen=True)
class Sample:
    """The checked input of a pair metric: labels encoded 0..K-1, queries 0..Q-1."""

    codes: np.ndarray
    scores: np.ndarray
    weights: np.ndarray | None
    query: np.ndarray | None
    classes: np.ndarray
    n_queries: int

    @property
    def n_classes(self) -> int:
        """The number of classes K, present or only named."""
        return len(self.classes)

    @cached_property
    def cells(self) -> Cells:
        """The classes that occur in each query, with their weights."""
        return count_cells(self.codes, self.weights, self.query, n_classes=self.n_classes)

    @cached_property
    def cell(self) -> np.ndarray:
        """The cell of every item."""
        return self.cells.of_items(self.codes, self.query)

    @cached_property
    def in_order(self) -> Ordered:
        """The sample sorted, once for all that ask."""
        return ordered(self)

    def with_equal_classes(self) -> Sample:
        """The sample with weights that give every class of a query the total weight one."""
        weights = 1.0 if self.weights is None else self.weights
        return replace(self, weights=weights / self.cells.mass[self.cell])


def prepare(y: Any, scores: Any, sample_weight: Any, qid: Any, labels: Any) -> Sample:
    """Check the arguments that all pair metrics share."""
    scores = check_scores(scores)
    codes, classes = check_labels(y, labels=labels)
    check_same_length(codes.size, scores.size, "y", "scores")
    weights = check_weights(sample_weight, codes.size)
    query = check_qid(qid, codes.size)
    n_queries = 1 if query is None else int(query.max()) + 1
    if weights is not None:
        weights = _scaled(weights, query, n_queries)
    return Sample(codes, scores, weights, query, classes, n_queries)


def _scaled(weights: np.ndarray, query: np.ndarray | None, n_queries: int) -> np.ndarray:
    """Weights times a power of two for each query, so that their products are ordinary numbers.

    Every metric is a ratio within each query, so that nothing else changes.
    """
    if query is None:
        largest = weights.max()
        if 1 / _MODERATE < largest < _MODERATE:
            return weights
        exponent = np.frexp(largest)[1]
    else:
        top = np.zeros(n_queries)
        np.maximum.at(top, query, weights)
        exponent = np.frexp(top)[1][query]
    with np.errstate(under="ignore"):
        scaled = np.ldexp(weights, -exponent)
    if np.count_nonzero(scaled) < np.count_nonzero(weights):
        raise ValueError("sample_weight must not span more than the range of floats in a query")
    return scaled


@dataclass(frozen=True)
class Ordered:
    """A sample sorted by query, then score; runs of equal scores are groups."""

    codes: np.ndarray
    weights: np.ndarray | None  # None for equal weights
    query: np.ndarray | None  # query of every item, None for a single one
    is_start: np.ndarray  # whether a group starts here

    @property
    def starts(self) -> np.ndarray:
        return np.flatnonzero(self.is_start)

    @property
    def group(self) -> np.ndarray:
        return np.cumsum(self.is_start) - 1

    def item_weights(self) -> np.ndarray:
        return np.ones(self.codes.size) if self.weights is None else self.weights

    def item_query(self) -> np.ndarray:
        return np.zeros(self.codes.size, dtype=np.intp) if self.query is None else self.query


def ordered(sample: Sample) -> Ordered:
    """Sort a sample by query and score; the cheap way where it is exact."""
    if sample.query is None and sample.weights is None and sample.n_classes <= _PACKED_CLASSES:
        packed = _packed_order(sample)
        if packed is not None:
            return packed
    scores, query, weights = sample.scores, sample.query, sample.weights
    order = np.argsort(scores) if query is None else np.lexsort((scores, query))
    scores = scores[order]
    is_start = np.ones(order.size, dtype=bool)
    np.not_equal(scores[1:], scores[:-1], out=is_start[1:])
    if query is not None:
        query = query[order]
        is_start[1:] |= query[1:] != query[:-1]
    return Ordered(
        sample.codes[order], None if weights is None else weights[order], query, is_start
    )


def _packed_order(sample: Sample) -> Ordered | None:
    """Sort scores that carry their class in the last bits: several times faster than argsort.

    Only the classes in order and the runs of equal scores are wanted. Scores that agree but for
    the last bits fall into one run, which is right if they are equal. Otherwise None is returned.
    """
    mask = (1 << (sample.n_classes - 1).bit_length()) - 1
    key = sample.scores + 0.0  # a copy, in which -0.0 is 0.0
    bits = key.view(np.int64)
    bits &= ~mask
    bits |= sample.codes
    key.sort()
    if _has_tiny_negatives(key, mask):
        return None
    codes = (bits & mask).astype(np.uint8)
    bits &= ~mask
    is_start = np.ones(key.size, dtype=bool)
    np.not_equal(bits[1:], bits[:-1], out=is_start[1:])
    if not is_start.all():
        scores = np.sort(sample.scores)
        if ((scores[1:] != scores[:-1]) != is_start[1:]).any():
            return None
    return Ordered(codes, None, None, is_start)


def _has_tiny_negatives(key: np.ndarray, mask: int) -> bool:
    """Whether negative numbers became -0.0, which sorts are free to mix with 0.0."""
    first = np.searchsorted(key, -mask * np.finfo(float).smallest_subnormal)
    last = np.searchsorted(key, 0.0, side="right")
    return bool(np.signbit(key[first:last]).any())


def distinct_score_mass(sample: Sample) -> np.ndarray:
    """Total weight of the pairs with different scores, per query."""
    data = sample.in_order
    starts = data.starts
    mass = np.add.reduceat(data.item_weights(), starts)
    query = data.item_query()[starts]
    if data.weights is not None:
        groups = np.arange(starts.size)
        return Cells(query, groups, mass, sample.n_queries, starts.size).pair_weight()
    # Counts are exact in one running sum.
    below = running_sum(mass)[:-1]
    below -= below[np.searchsorted(query, np.arange(sample.n_queries))][query]
    return np.bincount(query, weights=mass * below, minlength=sample.n_queries)


def running_sum(values: np.ndarray) -> np.ndarray:
    """Sums of the first 0, 1, ..., n values."""
    total = np.zeros(values.size + 1)
    np.cumsum(values, out=total[1:])
    return total


def query_units(values: np.ndarray, query: np.ndarray, n_queries: int) -> np.ndarray:
    """The sum of the values in the query of each, 1 in place of zero.

    Running sums over all queries are taken in these units: a light query would drown in those
    before it.
    """
    sums = np.bincount(query, weights=values, minlength=n_queries)
    sums[sums == 0] = 1.0
    return sums[query]


def error_rows(sample: Sample, ties: float) -> Iterator[tuple[int, np.ndarray]]:
    """For every class j, the weight of pairs (j above i) + ties * (j level with i).

    Yields j and an array with an entry for every cell; those of classes i > j are filled in.
    """
    data = sample.in_order
    untied = data.query is None and data.is_start.all()
    if untied and data.weights is not None:
        yield from _untied_weighted_rows(data.codes, data.weights, sample)
    elif untied and sample.n_classes <= _FEW_CLASSES:
        yield from _untied_rows(data.codes, sample.cells.label)
    else:
        yield from _cumulative_rows(data, sample, ties)


def rate_rows(sample: Sample, ties: float) -> Iterator[tuple[int, np.ndarray]]:
    """`error_rows` over the weight of all pairs of the two classes; 0 where a class is absent."""
    if sample.weights is not None:
        yield from error_rows(sample.with_equal_classes(), ties)
        return
    cells = sample.cells
    for j, row in error_rows(sample, ties):
        own = np.zeros(sample.n_queries)
        own[cells.query[cells.label == j]] = cells.mass[cells.label == j]
        pairs = own[cells.query] * cells.mass
        yield j, np.divide(row, pairs, out=np.zeros(row.size), where=pairs > 0)


def _untied_rows(codes: np.ndarray, labels: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    # Python's integers: numpy's would widen every comparison.
    present = labels.tolist()
    places = [np.flatnonzero(codes == k) for k in present]
    if len(present) == 2:  # the rank sum: below a positive lie negatives and the earlier positives
        m = places[1].size
        below = int(places[1].sum()) - m * (m - 1) // 2
        yield present[0], np.array([0.0, places[0].size * m - below])
        return
    for j, label in enumerate(present[:-1]):
        seen = np.cumsum(codes == label)
        row = np.zeros(labels.size)
        for i in range(j + 1, labels.size):
            row[i] = places[j].size * places[i].size - int(seen[places[i]].sum())
        yield label, row


def _untied_weighted_rows(
    codes: np.ndarray, weights: np.ndarray, sample: Sample
) -> Iterator[tuple[int, np.ndarray]]:
    wanted = sample.cells.label
    for j in wanted[:-1].tolist():
        # Sums from the top: the weight of class j above every item.
        above = np.cumsum((weights * (codes == j))[::-1])[::-1]
        above *= weights
        yield j, np.bincount(codes, above, minlength=sample.n_classes)[wanted]


def _cumulative_rows(
    data: Ordered, sample: Sample, ties: float
) -> Iterator[tuple[int, np.ndarray]]:
    weights, query = data.item_weights(), data.item_query()
    starts, group = data.starts, data.group
    in_units = data.weights is not None and data.query is not None
    ends = np.append(starts[1:], weights.size)
    query_end = np.searchsorted(query, np.arange(sample.n_queries), side="right")[query[starts]]
    cells = sample.cells
    if data.query is None:
        cell, size, wanted = data.codes, sample.n_classes, cells.label
    else:
        cell, size, wanted = cells.keys_of_items(data.codes, data.query)
    for j in np.unique(cells.label)[:-1].tolist():
        own = np.where(data.codes == j, weights, 0.0)
        if in_units:
            units = query_units(own, query, sample.n_queries)
            own /= units
        seen = running_sum(own)
        before, after = seen[starts], seen[ends]
        error = (seen[query_end] - after) + ties * (after - before)
        if in_units:
            error *= units[starts]
        yield j, np.bincount(cell, weights * error[group], minlength=size)[wanted]
