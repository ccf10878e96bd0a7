"""Queries of similar length as the rows of a matrix, and sums over their groups of tied items."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from rankbook.metrics._tally import Tally, tally_of

__all__ = ["Block", "Function"]

Function = Callable[[np.ndarray], np.ndarray]


class Block:
    """Queries of similar length, a row each, in ranked order; padding has grade 0.

    `starts` is None where the order within the rows is the order to be measured. Otherwise it
    holds the flat position at which each group of tied items begins (padding is a group of its
    own), and the measures average over the orders within the groups.
    """

    def __init__(
        self, queries: np.ndarray, lengths: np.ndarray, grades: np.ndarray, new: np.ndarray | None
    ) -> None:
        self.queries, self.lengths, self.grades = queries, lengths, grades
        self.n_rows, self.width = grades.shape
        self.padded = bool((lengths < self.width).any())
        self._group_hits: tuple[float, tuple[np.ndarray, np.ndarray]] | None = None
        self._top: tuple[int, np.ndarray] | None = None
        # Any: None where nothing is averaged, and then nobody asks for more.
        self.starts: Any = None
        if new is not None:
            # Where the groups begin, and the end of the last one.
            self.bounds = np.append(np.flatnonzero(new), new.size)
            self.starts, self.sizes = self.bounds[:-1], np.diff(self.bounds)
            first = np.arange(0, new.size, self.width)
            self.first_groups = np.searchsorted(self.starts, first)
            self.n_groups = np.diff(self.first_groups, append=self.starts.size)
            self.above = self.starts - np.repeat(first, self.n_groups)

    @property
    def exists(self) -> np.ndarray:
        """Which places of the matrix hold an item."""
        return np.arange(self.width) < self.lengths[:, None]

    def apply(self, function: Function, columns: int | None = None) -> np.ndarray:
        """A function of the grade at each place (of the first columns), 0 at padding."""
        grades = self.grades if columns is None else self.grades[:, :columns]
        if grades.dtype == np.uint8:
            top = int(grades.max(initial=0))
            table = np.asarray(function(np.arange(top + 1.0)))
            values, at_zero = table.take(grades), table[0]
        else:
            values = np.asarray(function(grades))
            at_zero = 1
        if self.padded and at_zero != 0:
            values = np.where(self.exists[:, : grades.shape[1]], values, values.dtype.type(0))
        return values

    def held(self, grades: np.ndarray) -> np.ndarray:
        """Grades, the highest in place of those that no item has: padding's, or a table's."""
        items, top = self.grades[self.exists], self.grades.max()
        if self.grades.dtype == np.uint8:
            known = np.bincount(items) > 0
            return np.where(known[grades.astype(np.intp)], grades, top)
        return grades if (items == 0).any() else np.where(grades == 0, top, grades)

    def hits(self, threshold: float) -> np.ndarray:
        """Which places hold a relevant item: one whose grade exceeds the threshold, not below 0."""
        return self.grades > threshold

    @cached_property
    def row(self) -> np.ndarray:
        """The row of each group."""
        return np.repeat(np.arange(self.n_rows), self.n_groups)

    @cached_property
    def tally(self) -> Tally | None:
        """The items of each grade in each group of ties; None where that is no help."""
        return None if self.starts is None else tally_of(self)

    def group_hits(self, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Relevant items in each group, and above it; kept, as several measures ask for them."""
        if self._group_hits is None or self._group_hits[0] != threshold:
            if self.tally is None:
                hits = self.group_sums(self.hits(threshold))
                above = self.sums_above(hits)
            else:
                hits, above = self.tally.hits(threshold), self.tally.hits_above(threshold)
            self._group_hits = threshold, (hits, above)
        return self._group_hits[1]

    def sums_above(self, counts: np.ndarray) -> np.ndarray:
        """For each group, the sum over the groups above it in its row, of whole numbers."""
        # Sums over all rows are exact, so that their differences lose no digits.
        above = np.cumsum(counts, axis=-1) - counts
        difference: np.ndarray = above - above[..., self.first_groups][..., self.row]
        return difference

    @cached_property
    def kinds(self) -> tuple[int, np.ndarray] | None:
        """The largest group's size, and each group's number among all sizes and places.

        None where these outnumber the groups, so that nothing is gained by listing them.
        """
        largest = int(self.sizes.max())
        if self.width * largest > self.starts.size:
            return None
        return largest, self.above * largest + (self.sizes - 1)

    def mean_weights(self, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Means over the places of some groups; weights, of the first places, do not increase."""
        if self.kinds is None:
            above, sizes = self.above.take(groups), self.sizes.take(groups)
            return _sums_between(weights, above, above + sizes) / sizes
        largest, kind = self.kinds
        above, sizes = np.arange(self.width)[:, None], np.arange(1, largest + 1)
        means = _sums_between(weights, above, above + sizes) / sizes
        return means.take(kind.take(groups))

    def group_sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` over each group of tied items."""
        return np.add.reduceat(values.ravel(), self.starts, dtype=float)

    def averaged(self, values: np.ndarray) -> np.ndarray:
        """Every value replaced by the mean over its group of tied items."""
        if self.starts is None:
            return values
        means = self.group_sums(values) / self.sizes
        return np.repeat(means, self.sizes).reshape(values.shape)

    def top(self, k: int) -> np.ndarray:
        """The groups that begin in the first k places; kept, as several measures ask for them."""
        if self._top is None or self._top[0] != k:
            self._top = k, np.flatnonzero(self.above < k)
        return self._top[1]

    def weighted_groups(self, sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Row sums of a quantity spread evenly over each group's places.

        Weights are those of the first places, and `sums` are over the groups that begin there.
        """
        top = self.top(weights.size)
        values = self.mean_weights(weights, top)
        values *= sums
        return np.add.reduceat(values, np.searchsorted(top, self.first_groups))

    def top_group_sums(self, function: Function, k: int) -> np.ndarray:
        """Sums of a function of the grades over the groups that begin in the first k places."""
        top = self.top(k)
        if self.tally is not None:
            grades = np.arange(float(self.tally.n_grades))
            return self.tally.sums(np.asarray(function(grades), dtype=float), top)
        columns = int((self.above + self.sizes)[top].max())
        near = self.above < columns
        starts = self.row[near] * columns + self.above[near]
        sums = np.add.reduceat(self.apply(function, columns).ravel(), starts, dtype=float)
        return sums[self.above[near] < k]

    def row_sums(self, groups: np.ndarray) -> np.ndarray:
        """Sums over the groups of each row."""
        return np.add.reduceat(groups, self.first_groups)


def _sums_between(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """values[first:last].sum() of many ranges; the values are positive and do not increase."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    # What each of these sums lost in rounding is known exactly; far down it is more than a value.
    lost = np.concatenate([[0.0], np.cumsum(values - np.diff(total))])
    sums = total.take(last, mode="clip") - total.take(first, mode="clip")
    sums += lost.take(last, mode="clip") - lost.take(first, mode="clip")
    return np.asarray(sums)
