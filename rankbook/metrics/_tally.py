"""How many items of each grade the groups of tied items hold, and the places above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rankbook.metrics._blocks import Block

__all__ = ["Tally", "tally_of"]

# Bits of an integer that hold counts; the others hold the code of a small group.
_COUNT_BITS, _CODE_BITS = 48, 16
# Codes tell apart groups of fewer items than this.
_LARGEST_RADIX = 17
# Counts that no integer holds are kept if they are at most so many for an item.
_COUNTS_PER_ITEM = 4


def tally_of(block: Block) -> Tally | None:
    """The tally of a block with ties; None where it would be more work than the items."""
    if block.grades.dtype != np.uint8:
        return None
    if block.width >> _bits(block):
        n_counts = block.starts.size * _n_grades(block)
        return _Dense(block) if n_counts <= _COUNTS_PER_ITEM * block.grades.size else None
    return _Packed(block)


def _n_grades(block: Block) -> int:
    return int(block.grades.max()) + 1


def _bits(block: Block) -> int:
    return _COUNT_BITS // max(_n_grades(block) - 1, 1)


class Tally(ABC):
    """Items of each grade in each group of ties, padding in none."""

    # Groups with fewer items than this have a code of their composition.
    radix = 0

    def __init__(self, block: Block) -> None:
        self.n_grades = _n_grades(block)
        self._block = block
        self._n_items = block.sizes
        if block.padded:
            # Padding is the last group of its row.
            last = np.append(block.first_groups[1:], block.starts.size) - 1
            self._padding = last[block.lengths < block.width]
            self._n_items = block.sizes.copy()
            self._n_items[self._padding] = 0

    def codes(self) -> np.ndarray:
        """sum_g c_g radix^g of the counts c of each group with fewer items, else zero."""
        return np.zeros(self._n_items.size, dtype=np.intp)

    @abstractmethod
    def counts(self, groups: np.ndarray) -> np.ndarray:
        """Items of each grade (rows) in each group (columns)."""

    @abstractmethod
    def sums(self, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The sum of a weight of each grade over the items of each group."""

    @abstractmethod
    def sums_above(self, weights: np.ndarray) -> np.ndarray:
        """The same over the items that stand above each group in its row."""

    @abstractmethod
    def of_rows(self) -> np.ndarray:
        """Items of each grade (rows) in each row of the block (columns)."""

    @abstractmethod
    def hits(self, threshold: float) -> np.ndarray:
        """The number of items in each group whose grade exceeds the threshold, not below 0."""

    @abstractmethod
    def hits_above(self, threshold: float) -> np.ndarray:
        """The same of the items that stand above each group in its row."""


class _Packed(Tally):
    """All counts of a group are the digits of one integer, so that one sum makes them all.

    The highest grade has no digit, as it is what remains. The highest bits add up to a code, which
    may overflow where the group is not small: that does no harm to the digits.
    """

    def __init__(self, block: Block) -> None:
        super().__init__(block)
        n_grades, self._bits = self.n_grades, _bits(block)
        self.radix = min(int(2 ** (_CODE_BITS / n_grades) + 1e-9), _LARGEST_RADIX)
        digit = np.left_shift(1, self._bits * np.arange(n_grades))
        digit[-1] = 0
        code = self.radix ** np.arange(n_grades) % (1 << _CODE_BITS)
        weight = (code.astype(np.uint64) << np.uint64(_COUNT_BITS)).view(np.int64) + digit
        sums = weight.take(block.grades)
        np.cumsum(sums, axis=1, out=sums)
        ends = sums.ravel().take(block.starts + (block.sizes - 1))
        self._above = np.empty_like(ends)
        self._above[1:] = ends[:-1]
        self._above[block.first_groups] = 0
        self._packed = ends - self._above
        self._rows = sums[:, -1].copy()
        if block.padded:
            self._packed[self._padding] = 0

    def counts(self, groups: np.ndarray) -> np.ndarray:
        return self._digits(self._packed[groups], self._n_items[groups])

    def sums(self, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return self._weighted(weights, self._packed[groups], self._n_items[groups])

    def sums_above(self, weights: np.ndarray) -> np.ndarray:
        return self._weighted(weights, self._above, self._block.above)

    def _weighted(self, weights: np.ndarray, packed: np.ndarray, n_items: np.ndarray) -> np.ndarray:
        # Digits stay at their places: as floats they are exact there, and weights move instead.
        digits = np.empty((self.n_grades - 1, packed.size))
        for grade in range(self.n_grades - 1):
            digits[grade] = packed & ((1 << self._bits) - 1) << self._bits * grade
        unit = 2.0 ** (-self._bits * np.arange(self.n_grades - 1))
        # The highest grade has what the others leave.
        last = n_items - unit @ digits
        last *= weights[-1]
        last += (weights[:-1] * unit) @ digits
        return np.asarray(last)

    def of_rows(self) -> np.ndarray:
        counts = self._digits(self._rows, np.full(self._rows.size, self._block.width))
        counts[0] -= self._block.width - self._block.lengths
        return counts

    def _digits(self, packed: np.ndarray, n_items: np.ndarray) -> np.ndarray:
        counts = np.empty((self.n_grades, packed.size))
        last = n_items
        for grade in range(self.n_grades - 1):
            digits = packed >> self._bits * grade
            digits &= (1 << self._bits) - 1
            counts[grade] = digits
            last = last - digits
        counts[-1] = last
        return counts

    def hits(self, threshold: float) -> np.ndarray:
        return self._exceeding(threshold, self._packed, self._n_items)

    def hits_above(self, threshold: float) -> np.ndarray:
        return self._exceeding(threshold, self._above, self._block.above)

    def _exceeding(self, threshold: float, packed: np.ndarray, n_items: np.ndarray) -> np.ndarray:
        if threshold >= self.n_grades - 1:
            return np.zeros(packed.size)
        hits = n_items - (packed & ((1 << self._bits) - 1))
        for grade in range(1, int(threshold) + 1):
            hits -= packed >> self._bits * grade & ((1 << self._bits) - 1)
        return hits.astype(float)

    def codes(self) -> np.ndarray:
        codes = (self._packed.view(np.uint64) >> np.uint64(_COUNT_BITS)).view(np.int64)
        codes *= self._n_items < self.radix
        return codes


class _Dense(Tally):
    def __init__(self, block: Block) -> None:
        super().__init__(block)
        n_groups = block.starts.size
        cells = np.repeat(np.arange(n_groups), block.sizes)
        cells += np.multiply(block.grades.ravel(), n_groups, dtype=np.intp)
        counts = np.bincount(cells, minlength=self.n_grades * n_groups).astype(float)
        self._counts = counts.reshape(self.n_grades, -1)
        if block.padded:
            self._counts[0, self._padding] = 0

    def counts(self, groups: np.ndarray) -> np.ndarray:
        return self._counts[:, groups]

    def sums(self, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return np.asarray(weights @ self._counts[:, groups])

    def sums_above(self, weights: np.ndarray) -> np.ndarray:
        return np.asarray(weights @ self._block.sums_above(self._counts))

    def of_rows(self) -> np.ndarray:
        return np.add.reduceat(self._counts, self._block.first_groups, axis=1)

    def hits(self, threshold: float) -> np.ndarray:
        hits: np.ndarray = self._counts[int(threshold) + 1 :].sum(axis=0)
        return hits

    def hits_above(self, threshold: float) -> np.ndarray:
        return self._block.sums_above(self.hits(threshold))
