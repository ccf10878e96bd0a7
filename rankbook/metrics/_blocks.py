"""Queries of similar length as the rows of a matrix, and sums over their groups of tied items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

__all__ = ["Block", "Function"]

# Counts of the grades in each group of ties are kept if they are at most so many for an item.
_COUNTS_PER_ITEM = 4

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
        self._group_hits: tuple[float, np.ndarray] | None = None
        self._counts: np.ndarray | None = None
        self._inverse_ranks: tuple[int, np.ndarray] | None = None
        # Any: None where nothing is averaged, and then nobody asks for more.
        self.starts = cast(Any, None if new is None else np.flatnonzero(new))
        if new is not None:
            self.sizes = np.diff(self.starts, append=new.size)
            self.row, self.above = np.divmod(self.starts, self.width)
            self.first_groups = np.flatnonzero(self.above == 0)

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
            values, at_zero = table[grades], table[0]
        else:
            values = np.asarray(function(grades))
            at_zero = 1
        if self.padded and at_zero != 0:
            values = np.where(self.exists[:, : grades.shape[1]], values, values.dtype.type(0))
        return values

    def hits(self, threshold: float) -> np.ndarray:
        """Which places hold a relevant item: one whose grade exceeds the threshold, not below 0."""
        return self.grades > threshold

    @property
    def counts(self) -> np.ndarray | None:
        """Items of each grade (rows) in each group (columns), padding in none.

        None where they would be more work than the items: groups are small or grades many.
        """
        if self._counts is None and self.starts is not None and self.grades.dtype == np.uint8:
            n_grades = int(self.grades.max()) + 1
            if self.starts.size * n_grades <= _COUNTS_PER_ITEM * self.grades.size:
                self._counts = self._count(n_grades)
                if self.padded:
                    self._counts[0, self.above == self.lengths[self.row]] = 0
        return self._counts

    def _count(self, n_grades: int) -> np.ndarray:
        bits = 63 // n_grades
        if int(self.sizes.max()) >> bits:
            cells = np.repeat(np.arange(self.starts.size), self.sizes)
            cells += np.multiply(self.grades.ravel(), self.starts.size, dtype=np.intp)
            counts = np.bincount(cells, minlength=n_grades * self.starts.size).astype(float)
            return counts.reshape(n_grades, -1)
        # All counts of a group as the digits of one integer: one sum, in which an overflow of the
        # whole does no harm to the difference of two.
        ones = np.left_shift(1, bits * np.arange(n_grades))
        sums = np.cumsum(ones[self.grades.ravel()])
        digits = np.diff(sums[np.append(self.starts[1:], self.grades.size) - 1], prepend=0)
        counts = np.empty((n_grades, self.starts.size))
        for grade in range(n_grades):
            counts[grade] = digits >> bits * grade & ((1 << bits) - 1)
        return counts

    def group_hits(self, threshold: float) -> np.ndarray:
        """The number of relevant items in each group; kept, as several measures ask for it."""
        if self._group_hits is None or self._group_hits[0] != threshold:
            if self.counts is None:
                hits = self.group_sums(self.hits(threshold))
            else:
                hits = self.counts[int(threshold) + 1 :].sum(axis=0)
            self._group_hits = threshold, hits
        return self._group_hits[1]

    def inverse_ranks(self, k: int) -> np.ndarray:
        """The sum of 1/rank over each group's places up to rank k; kept, as two measures ask."""
        if self._inverse_ranks is None or self._inverse_ranks[0] != k:
            harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1.0, self.width + 1))])
            harmonic[k:] = harmonic[k]
            self._inverse_ranks = k, harmonic[self.above + self.sizes] - harmonic[self.above]
        return self._inverse_ranks[1]

    def group_sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` over each group of tied items."""
        return np.add.reduceat(values.ravel(), self.starts, dtype=float)

    def averaged(self, values: np.ndarray) -> np.ndarray:
        """Every value replaced by the mean over its group of tied items."""
        if self.starts is None:
            return values
        means = self.group_sums(values) / self.sizes
        return np.repeat(means, self.sizes).reshape(values.shape)

    def weighted_groups(self, sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Row sums of a quantity with given group sums, spread evenly over each group's places.

        Only groups that reach into the first `weights.size` places count, and `sums` may end
        with the last of them in each row, as those of `top_group_sums` do.
        """
        total = np.concatenate([[0.0], np.cumsum(weights)])
        top = np.flatnonzero(self.above < weights.size)
        above, size = self.above[top], self.sizes[top]
        last = np.minimum(above + size, weights.size)
        sums = sums[top] if sums.size == self.sizes.size else sums
        values = sums / size * (total[last] - total[above])
        return np.bincount(self.row[top], weights=values, minlength=self.n_rows)

    def top_group_sums(self, function: Function, k: int) -> np.ndarray:
        """Sums of a function of the grades over the groups that begin in the first k places.

        Sums over all groups where the grades are counted already.
        """
        if self.counts is not None:
            return np.asarray(function(np.arange(float(len(self.counts))))) @ self.counts
        top = self.above < k
        columns = int((self.above + self.sizes)[top].max())
        near = self.above < columns
        starts = self.row[near] * columns + self.above[near]
        sums = np.add.reduceat(self.apply(function, columns).ravel(), starts, dtype=float)
        return sums[top[near]]

    def row_sums(self, groups: np.ndarray) -> np.ndarray:
        """Sums over the groups of each row."""
        return np.bincount(self.row, weights=groups, minlength=self.n_rows)
