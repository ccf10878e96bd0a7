"""Misranked pairs of many classes at once, bit by bit of their codes: O(n log K) after the sort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankbook.metrics._counting import (
    Sample,
    error_rows,
    ordered,
    query_units,
    rate_rows,
    running_sum,
)

__all__ = ["constant_errors", "equal_class_errors", "scale_errors"]

# Beyond this, O(n log K) with a larger constant beats O(n K).
_ROW_CLASSES = 12


def constant_errors(sample: Sample, ties: float) -> np.ndarray:
    """Weight of the misranked pairs of all classes, in each query."""
    if sample.n_classes > _ROW_CLASSES:
        return _bitwise_errors(sample, ties, None)
    return _sum_of_rows(sample, error_rows(sample, ties))


def equal_class_errors(sample: Sample, ties: float) -> np.ndarray:
    """The same with every class of a query at total weight one: the sum of its error rates."""
    if sample.n_classes > _ROW_CLASSES:
        return _bitwise_errors(sample.with_equal_classes(), ties, None)
    return _sum_of_rows(sample, rate_rows(sample, ties))


def _sum_of_rows(sample: Sample, rows: Iterator[tuple[int, np.ndarray]]) -> np.ndarray:
    cells = sample.cells
    errors = np.zeros(sample.n_queries)
    for j, row in rows:
        errors += cells.row_sums(np.where(cells.label > j, row, 0.0))
    return errors


def scale_errors(sample: Sample, ties: float, place: np.ndarray) -> np.ndarray:
    """The same, a pair counting the distance of its classes' places on a line, in each query.

    `place` has an entry for every cell and does not fall along the classes of a query.
    """
    if sample.n_classes > _ROW_CLASSES:
        return _bitwise_errors(sample, ties, place)
    cells = sample.cells
    errors = np.zeros(sample.n_queries)
    for j, row in error_rows(sample, ties):
        own = np.zeros(sample.n_queries)
        own[cells.query[cells.label == j]] = place[cells.label == j]
        distance = np.where(cells.label > j, place - own[cells.query], 0.0)
        errors += cells.row_sums(row * distance)
    return errors


@dataclass(frozen=True)
class _Blocks:
    """Items sorted by block, then score: a block is one query and one choice of high bits."""

    codes: np.ndarray
    weights: np.ndarray
    group: np.ndarray
    query: np.ndarray
    block: np.ndarray  # the position at which the item's block begins
    place: np.ndarray | None
    in_units: bool  # whether sums are taken in units of each query's own

    def split(self, high: np.ndarray) -> _Blocks:
        """Every block in two, the items with bit 0 first, in the order they had."""
        move, block = _split_blocks(high, self.block)
        values = (self.codes, self.weights, self.group, self.query, block)
        codes, weights, group, query, block = (_reorder(v, move) for v in values)
        place = None if self.place is None else _reorder(self.place, move)
        return _Blocks(codes, weights, group, query, block, place, self.in_units)

    def errors(self, low: np.ndarray, high: np.ndarray, ties: float, n_queries: int) -> np.ndarray:
        """Misranked pairs within blocks, of items with weights `low` and `high`, by query."""
        is_start = np.ones(low.size, dtype=bool)
        is_start[1:] = (self.group[1:] != self.group[:-1]) | (self.block[1:] != self.block[:-1])
        starts = np.flatnonzero(is_start)
        units = query_units(high, self.query, n_queries) if self.in_units else None
        seen = running_sum(high if units is None else high / units)
        below = seen[starts] - seen[self.block[starts]]
        if units is not None:
            below *= units[starts]
        level = np.add.reduceat(high, starts)
        values = np.add.reduceat(low, starts) * (below + ties * level)
        return np.bincount(self.query[starts], weights=values, minlength=n_queries)


def _reorder(values: np.ndarray, move: np.ndarray) -> np.ndarray:
    moved = np.empty_like(values)
    moved[move] = values
    return moved


def _bitwise_errors(sample: Sample, ties: float, place: np.ndarray | None) -> np.ndarray:
    """Two labels differ first at some bit of their codes.

    Bit by bit from the highest, items that agree on all higher bits form a block, in which a pair
    counts if the item with bit 0 has the larger score; then each block is split in two, its order
    kept. With places, a pair counts its distance by way of the lowest place in the high half: the
    two parts are never negative, and do not cancel. Sums run on from block to block, though, so
    that errors of rounding are relative to the distances in all blocks of a bit and a query, not
    in one.
    """
    data, n_queries = ordered(sample), sample.n_queries
    query = data.item_query()
    block = np.searchsorted(query, np.arange(n_queries))[query]
    if place is not None:
        place = place[sample.cells.of_items(data.codes, data.query)]
    in_units = data.query is not None and not (data.weights is None and place is None)
    items = _Blocks(data.codes, data.item_weights(), data.group, query, block, place, in_units)
    errors = np.zeros(n_queries)
    for bit in range((sample.n_classes - 1).bit_length() - 1, -1, -1):
        high = (items.codes >> bit & 1).astype(bool)
        low_weight = np.where(high, 0.0, items.weights)
        high_weight = np.where(high, items.weights, 0.0)
        if items.place is None:
            errors += items.errors(low_weight, high_weight, ties, n_queries)
        else:
            middle = _lowest_place(items.place, high, items.block)
            near = high_weight * np.where(high, items.place - middle, 0.0)
            far = low_weight * np.where(high, 0.0, middle - items.place)
            errors += items.errors(low_weight, near, ties, n_queries)
            errors += items.errors(far, high_weight, ties, n_queries)
        items = items.split(high)
    return errors


def _lowest_place(place: np.ndarray, high: np.ndarray, block: np.ndarray) -> np.ndarray:
    """For every item, the lowest place in the high half of its block; its own if that is empty."""
    is_start = np.ones(block.size, dtype=bool)
    is_start[1:] = block[1:] != block[:-1]
    starts = np.flatnonzero(is_start)
    lowest = np.minimum.reduceat(np.where(high, place, np.inf), starts)
    lowest = np.repeat(lowest, np.diff(starts, append=block.size))
    return np.where(np.isinf(lowest), place, lowest)


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
