"""How many items of each grade the groups of tied items hold, and the places above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rankbook.metrics._blocks import Block

__all__ = ["CODE_BITS", "Tally", "tally_of"]

# Bits of an integer that hold counts; the others hold the code of a small group.
_COUNT_BITS, CODE_BITS = 48, 16
# Codes tell apart groups of fewer items than this.
_LARGEST_RADIX = 17
# Counts that no integer holds are kept if they are at most so many for an item.
_COUNTS_PER_ITEM = 4
# Entries of a table of what several counts give together: few enough for the processor's cache.
_TABLE = 1 << 14


def tally_of(block: Block) -> Tally | None:
    """The tally of a block with ties; None where it would be more work than the items."""
    if block.grades.dtype != np.uint8:
        return None
    n_grades = int(block.grades.max()) + 1
    if (n_grades - 1) * block.width.bit_length() <= _COUNT_BITS:
        return _Packed(block, n_grades)
    n_counts = block.starts.size * n_grades
    return _Dense(block, n_grades) if n_counts <= _COUNTS_PER_ITEM * block.grades.size else None


class Tally(ABC):
    """Items of each grade in each group of ties, padding in none."""

    # Groups with fewer items than this have a code of their composition.
    radix = 0

    def __init__(self, block: Block, n_grades: int) -> None:
        self.n_grades = n_grades
        self._block = block
        self._n_items = block.sizes
        if block.padded:
            # Padding is the last group of its row.
            last = np.append(block.first_groups[1:], block.starts.size) - 1
            self._padding = last[block.lengths < block.width]
            self._n_items = block.sizes.copy()
            self._n_items[self._padding] = 0

    def codes(self) -> np.ndarray:
        """sum_g c_g radix^g of the counts c of each group with fewer items, else any code."""
        return np.zeros(self._n_items.size, dtype=np.intp)

    @abstractmethod
    def counts(self, groups: np.ndarray) -> np.ndarray:
        """Items of each grade (rows) in each group (columns)."""

    @abstractmethod
    def sums(self, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The sum of a weight of each grade over the items of each group."""

    @abstractmethod
    def products_above(self, logs: np.ndarray) -> np.ndarray:
        """The product of a factor of each grade, 1 for grade 0, over the items above each group.

        The factors are given by their logarithms.
        """

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

    Digit g is the number of items of a higher grade than g. The highest bits add up to a code,
    which may overflow where the group is not small: that does no harm to the digits.
    """

    def __init__(self, block: Block, n_grades: int) -> None:
        super().__init__(block, n_grades)
        self._bits = block.width.bit_length()
        self.radix = min(int(2 ** (CODE_BITS / n_grades) + 1e-9), _LARGEST_RADIX)
        digits = np.left_shift(1, self._bits * np.arange(n_grades - 1))
        code = self.radix ** np.arange(n_grades) % (1 << CODE_BITS)
        weight = (code.astype(np.uint64) << np.uint64(_COUNT_BITS)).view(np.int64)
        weight[1:] += np.cumsum(digits)
        # Differences of sums over all rows are exact, though the sums may overflow.
        sums = np.zeros(block.grades.size + 1, dtype=np.int64)
        np.cumsum(weight.take(block.grades), out=sums[1:])
        sums = sums.take(block.bounds)
        self._packed = np.diff(sums)
        before = sums.take(block.first_groups)
        self._above = sums[:-1] - np.repeat(before, block.n_groups)
        self._rows = np.diff(before, append=sums[-1])

    def counts(self, groups: np.ndarray) -> np.ndarray:
        return self._counts(self._packed[groups], self._n_items[groups])

    def _counts(self, packed: np.ndarray, n_items: np.ndarray) -> np.ndarray:
        counts = np.empty((self.n_grades, packed.size))
        counts[0] = n_items
        for grade in range(self.n_grades - 1):
            counts[grade + 1] = self._digit(packed, grade)
            counts[grade] -= counts[grade + 1]
        return counts

    def _digit(self, packed: np.ndarray, grade: int) -> np.ndarray:
        digit: np.ndarray = packed >> self._bits * grade
        digit &= (1 << self._bits) - 1
        return digit

    def sums(self, weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return np.asarray(weights @ self.counts(groups))

    def products_above(self, logs: np.ndarray) -> np.ndarray:
        # One more item above grade g has the factor of grade g + 1 in place of that of g.
        steps = np.diff(logs)
        if self._above.size >> self._bits == 0:
            # Fewer groups than numbers that they may have above them: no table pays.
            sums = np.zeros(self._above.size)
            for grade, step in enumerate(steps):
                sums += step * self._digit(self._above, grade)
            return np.exp(sums)
        powers = [np.exp(step * np.arange(1 << self._bits)) for step in steps]
        together = max((min(self._above.size, _TABLE).bit_length() - 1) // self._bits, 1)
        products = np.ones(self._above.size)
        for first in range(0, len(powers), together):
            table = powers[first]
            for power in powers[first + 1 : first + together]:
                table = np.multiply.outer(power, table).ravel()
            products *= table.take(self._above >> self._bits * first & (table.size - 1))
        return products

    def of_rows(self) -> np.ndarray:
        return self._counts(self._rows, self._block.lengths)

    def hits(self, threshold: float) -> np.ndarray:
        return self._exceeding(threshold, self._packed)

    def hits_above(self, threshold: float) -> np.ndarray:
        return self._exceeding(threshold, self._above)

    def _exceeding(self, threshold: float, packed: np.ndarray) -> np.ndarray:
        if threshold >= self.n_grades - 1:
            return np.zeros(packed.size)
        return self._digit(packed, int(threshold)).astype(float)

    def codes(self) -> np.ndarray:
        return (self._packed.view(np.uint64) >> np.uint64(_COUNT_BITS)).view(np.int64)


class _Dense(Tally):
    def __init__(self, block: Block, n_grades: int) -> None:
        super().__init__(block, n_grades)
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

    def products_above(self, logs: np.ndarray) -> np.ndarray:
        return np.exp(logs @ self._block.sums_above(self._counts))

    def of_rows(self) -> np.ndarray:
        return np.add.reduceat(self._counts, self._block.first_groups, axis=1)

    def hits(self, threshold: float) -> np.ndarray:
        hits: np.ndarray = self._counts[int(threshold) + 1 :].sum(axis=0)
        return hits

    def hits_above(self, threshold: float) -> np.ndarray:
        return self._block.sums_above(self.hits(threshold))
