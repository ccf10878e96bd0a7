"""Counting misranked pairs without forming them.

Everything here works on a `Sample`, the checked and encoded input of a pair metric, and costs one
sort plus O(n K) or O(n log K) arithmetic. No array has more than n or Q K entries, for n items, Q
queries and K classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import check_labels, check_qid, check_same_length, check_scores, check_weights

__all__ = [
    "Sample",
    "constant_errors",
    "distinct_score_mass",
    "error_rows",
    "ordered",
    "pair_mass",
    "prepare",
    "running_sum",
]

# Codes up to here fit into the last bits of a score without many scores growing equal.
_PACKED_CLASSES = 256
# Beyond this, O(n log K) with a larger constant beats O(n K).
_ROW_CLASSES = 12


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

    def mass(self) -> np.ndarray:
        """Total weight of every class in every query, shape (Q, K)."""
        shape = (self.n_queries, self.n_classes)
        cell = self.codes if self.query is None else self.query * shape[1] + self.codes
        mass = np.bincount(cell, weights=self.weights, minlength=shape[0] * shape[1])
        return mass.reshape(shape).astype(float, copy=False)


def prepare(y: Any, scores: Any, sample_weight: Any, qid: Any, labels: Any) -> Sample:
    """Check the arguments that all pair metrics share."""
    scores = check_scores(scores)
    codes, classes = check_labels(y, labels=labels)
    check_same_length(codes.size, scores.size, "y", "scores")
    weights = check_weights(sample_weight, codes.size)
    query = check_qid(qid, codes.size)
    n_queries = 1 if query is None else int(query.max()) + 1
    return Sample(codes, scores, weights, query, classes, n_queries)


def pair_mass(mass: np.ndarray) -> np.ndarray:
    """Total weight of the pairs with different labels, per query: (Q, K) -> (Q,)."""
    below = np.cumsum(mass, axis=1) - mass
    return (mass * below).sum(axis=1)


@dataclass(frozen=True)
class _Ordered:
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


def ordered(sample: Sample) -> _Ordered:
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
    return _Ordered(
        sample.codes[order], None if weights is None else weights[order], query, is_start
    )


def _packed_order(sample: Sample) -> _Ordered | None:
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
    codes = (bits & mask).astype(np.uint8)
    bits &= ~mask
    is_start = np.ones(key.size, dtype=bool)
    np.not_equal(bits[1:], bits[:-1], out=is_start[1:])
    if not is_start.all():
        scores = np.sort(sample.scores)
        if ((scores[1:] != scores[:-1]) != is_start[1:]).any():
            return None
    return _Ordered(codes, None, None, is_start)


def distinct_score_mass(sample: Sample) -> np.ndarray:
    """Total weight of the pairs with different scores, per query."""
    data = ordered(sample)
    starts = data.starts
    query = data.item_query()[starts]
    group = np.add.reduceat(data.item_weights(), starts)
    below = np.cumsum(group) - group
    below -= below[np.searchsorted(query, np.arange(sample.n_queries))][query]
    return np.bincount(query, weights=group * below, minlength=sample.n_queries)


def running_sum(values: np.ndarray) -> np.ndarray:
    """Sums of the first 0, 1, ..., n values."""
    total = np.zeros(values.size + 1)
    np.cumsum(values, out=total[1:])
    return total


def error_rows(sample: Sample, ties: float) -> Iterator[tuple[int, np.ndarray]]:
    """For every class j, the weight of pairs (j above i) + ties * (j level with i).

    Yields j and an array (Q, K) whose columns i > j are filled in.
    """
    data = ordered(sample)
    if data.query is None and data.weights is None and data.is_start.all():
        yield from _untied_rows(data.codes, sample.n_classes)
    else:
        yield from _cumulative_rows(data, sample.n_queries, sample.n_classes, ties)


def _untied_rows(codes: np.ndarray, n_classes: int) -> Iterator[tuple[int, np.ndarray]]:
    places = [np.flatnonzero(codes == k) for k in range(n_classes)]
    if n_classes == 2:  # the rank sum: below a positive lie negatives and the earlier positives
        m = places[1].size
        below = int(places[1].sum()) - m * (m - 1) // 2
        yield 0, np.array([[0.0, places[0].size * m - below]])
        return
    for j in range(n_classes - 1):
        seen = np.cumsum(codes == j)
        row = np.zeros((1, n_classes))
        for i in range(j + 1, n_classes):
            row[0, i] = places[j].size * places[i].size - int(seen[places[i]].sum())
        yield j, row


def _cumulative_rows(
    data: _Ordered, n_queries: int, n_classes: int, ties: float
) -> Iterator[tuple[int, np.ndarray]]:
    weights, query = data.item_weights(), data.item_query()
    starts, group = data.starts, data.group
    ends = np.append(starts[1:], weights.size)
    query_end = np.searchsorted(query, np.arange(n_queries), side="right")[query[starts]]
    cell = query * n_classes + data.codes
    for j in range(n_classes - 1):
        seen = running_sum(np.where(data.codes == j, weights, 0.0))
        before, after = seen[starts], seen[ends]
        error = (seen[query_end] - after) + ties * (after - before)
        total = np.bincount(cell, weights * error[group], minlength=n_queries * n_classes)
        yield j, total.reshape(n_queries, n_classes)


def constant_errors(sample: Sample, ties: float) -> np.ndarray:
    """Weight of the misranked pairs of all classes, per query, in O(n log K) after the sort.

    Two labels differ first at some bit of their codes. Bit by bit from the highest, items that
    agree on all higher bits form a block, in which a pair counts if the item with bit 0 has the
    larger score; then each block is split in two, its order kept.
    """
    if sample.n_classes <= _ROW_CLASSES:
        return sum(row[:, j + 1 :].sum(axis=1) for j, row in error_rows(sample, ties))
    data = ordered(sample)
    codes, weights, group = data.codes, data.item_weights(), data.group
    query = data.item_query()
    block = np.searchsorted(query, np.arange(sample.n_queries))[query]
    errors = np.zeros(sample.n_queries)
    for bit in range((sample.n_classes - 1).bit_length() - 1, -1, -1):
        high = (codes >> bit & 1).astype(bool)
        errors += _block_errors(high, weights, group, block, query, ties, sample.n_queries)
        move, block = _split_blocks(high, block)
        block = _reorder(block, move)
        codes, weights, group, query = (_reorder(v, move) for v in (codes, weights, group, query))
    return errors


def _block_errors(high, weights, group, block, query, ties, n_queries) -> np.ndarray:
    """Errors between the low and the high half of every block, per query."""
    is_start = np.ones(high.size, dtype=bool)
    is_start[1:] = (group[1:] != group[:-1]) | (block[1:] != block[:-1])
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], high.size)
    seen_high = running_sum(np.where(high, weights, 0.0))
    seen_low = running_sum(np.where(high, 0.0, weights))
    below = seen_high[starts] - seen_high[block[starts]]
    level = seen_high[ends] - seen_high[starts]
    low = seen_low[ends] - seen_low[starts]
    return np.bincount(query[starts], weights=low * (below + ties * level), minlength=n_queries)


def _split_blocks(high: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each item goes when every block puts its low half first, and its new block's start."""
    n = high.size
    lows = np.concatenate(([0], np.cumsum(~high)))
    is_start = np.ones(n, dtype=bool)
    is_start[1:] = block[1:] != block[:-1]
    starts = np.flatnonzero(is_start)
    sizes = np.diff(np.append(starts, n))
    n_low = np.repeat(lows[starts + sizes] - lows[starts], sizes)
    rank_low = lows[:-1] - lows[block]
    rank_high = np.arange(n) - block - rank_low
    move = block + np.where(high, n_low + rank_high, rank_low)
    return move, block + np.where(high, n_low, 0)


def _reorder(values: np.ndarray, move: np.ndarray) -> np.ndarray:
    moved = np.empty_like(values)
    moved[move] = values
    return moved
