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
    def kinds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes of groups and items above them, and the number of each group's entry there.

        Where groups outnumber the sizes and places that may occur, all of these are listed.
        """
        largest = int(self.sizes.max())
        if self.width * largest > self.starts.size:
            return self.sizes, self.above, np.arange(self.starts.size)
        sizes = np.tile(np.arange(1, largest + 1), self.width)
        above = np.repeat(np.arange(self.width), largest)
        return sizes, above, self.above * largest + (self.sizes - 1)

    def inverse_ranks(self, sizes: np.ndarray, above: np.ndarray, k: int) -> np.ndarray:
        """The sum of 1/rank up to rank k over the places of groups of these sizes."""
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1.0, self.width + 1))])
        harmonic[k:] = harmonic[k]
        return harmonic.take(above + sizes, mode="clip") - harmonic.take(above)

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
        total = np.concatenate([[0.0], np.cumsum(weights)])
        top = self.top(weights.size)
        above, size = self.above.take(top), self.sizes.take(top)
        last = np.minimum(above + size, weights.size)
        values = total.take(last) - total.take(above)
        values *= sums
        values /= size
        return np.add.reduceat(values, np.flatnonzero(above == 0))

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
