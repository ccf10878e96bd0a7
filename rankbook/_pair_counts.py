"""How many pairs there are: classes within queries, and the pairs with different labels.

Only what occurs is counted, so that many labels in many queries cost no more than few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Cells", "count_cells", "pair_weight"]

# A table of all classes in all queries is filled if it is at most this many times the sample.
_DENSE = 4


@dataclass(frozen=True)
class Cells:
    """The classes that occur in each query, sorted by query, then class.

    Attributes
    ----------
    query, label : ndarray of shape (n_cells,)
        Query and class of every cell.
    mass : ndarray of shape (n_cells,)
        Total weight of its items; positive.
    n_queries, n_classes : int
        How many there are, with items or without.
    """

    query: np.ndarray
    label: np.ndarray
    mass: np.ndarray
    n_queries: int
    n_classes: int

    def of_items(self, codes: np.ndarray, query: np.ndarray | None) -> np.ndarray:
        """The cell of every item; of an item of weight zero, any."""
        key = self.query * self.n_classes + self.label
        wanted = codes if query is None else query * self.n_classes + codes
        size = self.n_queries * self.n_classes
        if size > _DENSE * wanted.size:
            return np.minimum(np.searchsorted(key, wanted), key.size - 1)
        cell = np.zeros(size, dtype=np.intp)
        cell[key] = np.arange(key.size)
        return cell[wanted]

    def keys_of_items(
        self, codes: np.ndarray, query: np.ndarray
    ) -> tuple[np.ndarray, int, np.ndarray]:
        """A number for every item, how many there are, and those of the cells.

        Cells have their own, unless a table of all classes in all queries is small.
        """
        size = self.n_queries * self.n_classes
        if size > _DENSE * codes.size:
            return self.of_items(codes, query), self.label.size, np.arange(self.label.size)
        return query * self.n_classes + codes, size, self.query * self.n_classes + self.label

    def row_sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of a value a cell over each query."""
        return np.bincount(self.query, weights=values, minlength=self.n_queries)

    def running(self, values: np.ndarray) -> np.ndarray:
        """Sums over the cells of the same query up to and including each cell.

        By doubling, not as differences of one running sum: those of a query with small weights
        would drown in those of the queries before it.
        """
        if self.n_queries == 1:
            return np.cumsum(values)
        place = np.arange(values.size) - np.searchsorted(self.query, self.query)
        total, shift = values.copy(), 1
        longest = int(place.max(initial=0))
        while shift <= longest:
            reached = np.flatnonzero(place >= shift)
            total[reached] += total[reached - shift]
            shift *= 2
        return total

    def before(self, values: np.ndarray) -> np.ndarray:
        """Sums over the lower classes in the query of each cell."""
        total = self.running(values)
        before = np.zeros(total.size)
        before[1:] = np.where(self.query[1:] == self.query[:-1], total[:-1], 0.0)
        return before

    def above(self) -> np.ndarray:
        """Weight of the higher classes in the query of each cell."""
        turned = Cells(
            self.query[-1] - self.query[::-1],
            self.label[::-1],
            self.mass[::-1],
            self.n_queries,
            self.n_classes,
        )
        return turned.before(turned.mass)[::-1]

    def pair_weight(self) -> np.ndarray:
        """Total weight of the pairs with different labels, in each query."""
        return self.row_sums(self.mass * self.before(self.mass))


def count_cells(
    codes: np.ndarray,
    weights: np.ndarray | None = None,
    query: np.ndarray | None = None,
    *,
    n_classes: int | None = None,
) -> Cells:
    """Weigh the classes of every query: labels encoded 0..K-1, queries 0..Q-1."""
    n_queries = 1 if query is None else int(query.max()) + 1
    n_classes = int(codes.max()) + 1 if n_classes is None else n_classes
    key = codes if query is None else query.astype(np.int64, copy=False) * n_classes + codes
    if n_queries * n_classes <= _DENSE * codes.size or query is None:
        mass = np.bincount(key, weights=weights, minlength=n_queries * n_classes)
        occurs = np.flatnonzero(mass)
        mass = mass[occurs]
    else:
        occurs, cell = np.unique(key, return_inverse=True)
        mass = np.bincount(cell, weights=weights)
        occurs, mass = occurs[mass > 0], mass[mass > 0]
    in_query, label = np.divmod(occurs, n_classes)
    return Cells(in_query, label, mass.astype(float), n_queries, n_classes)


def pair_weight(
    codes: np.ndarray, weights: np.ndarray | None = None, query: np.ndarray | None = None
) -> np.ndarray:
    """Total weight of the pairs with different labels, in each query.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Labels, encoded 0..K-1.
    weights : ndarray of shape (n,), optional
        A pair weighs the product of its items'; without them, 1.
    query : ndarray of shape (n,), optional
        Queries, encoded 0..Q-1; without them there is one.

    Returns
    -------
    ndarray of shape (Q,)
        The weights. No difference is taken, so that a query of one class gives zero and a light
        class beside a heavy one keeps its digits.

    Examples
    --------
    >>> import numpy as np
    >>> pair_weight(np.array([0, 1, 1, 2]))
    array([5.])
    >>> pair_weight(np.array([0, 1, 1, 2]), query=np.array([0, 0, 1, 1]))
    array([1., 1.])
    """
    return count_cells(codes, weights, query).pair_weight()
