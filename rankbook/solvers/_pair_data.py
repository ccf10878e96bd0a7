r"""Which pairs are summed, and with which weights: the part that all pair losses share.

A matrix :math:`m_{ji} \ge 0` weights the pairs of an item :math:`a` of class :math:`i` that
should be above an item :math:`b` of class :math:`j`. Written as a sum of products,
:math:`m_{ji} = \sum_r v_{rj} u_{ri}`, it turns one sum over pairs into a few *bipartite* ones, in
which item :math:`a` is a positive of weight :math:`u_{r, y_a} w_a` and item :math:`b` a negative of
weight :math:`v_{r, y_b} w_b`. Both factors are kept non-negative, so nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankbook._pair_counts import pair_weight
from rankbook.solvers.design import weighted_gram

__all__ = ["PairData", "Side", "rank_one_terms"]

# Rows that agree to a few roundings are one row: costs such as c_1i c_jK / c_1K are of rank one.
_PROPORTIONAL = 16 * np.finfo(float).eps


def _proportional_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factor a non-negative matrix as left.T @ right, one term per direction of its rows."""
    n = len(matrix)
    left, right, sums, count = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n), 0
    for j in np.flatnonzero(matrix.any(axis=1)):
        row = matrix[j]
        highest, total = row.argmax(), row.sum()
        known = right[:count, highest]
        ratios = np.divide(row[highest], known, where=known > 0, out=np.zeros(count))
        # The sums agree where the rows do; few others need a look at all entries.
        alike = np.isclose(total, ratios * sums[:count], rtol=2 * _PROPORTIONAL, atol=0.0)
        for term in np.flatnonzero(alike):
            if np.allclose(row, ratios[term] * right[term], rtol=_PROPORTIONAL, atol=0.0):
                left[term, j] = ratios[term]
                break
        else:
            left[count, j], right[count], sums[count] = 1.0, row, total
            count += 1
    return left[:count], right[:count]


def rank_one_terms(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Write a non-negative matrix as few non-negative rank-one terms.

    Parameters
    ----------
    matrix : ndarray of shape (K, K)
        Entry [j, i] weights pairs of a lower item of class j and an upper item of class i.

    Returns
    -------
    upper, lower : ndarrays of shape (R, K)
        ``matrix == lower.T @ upper``. Proportional rows (or columns, if that gives fewer terms)
        share a term, so R is at most K and is 1 for a matrix of rank one.

    Examples
    --------
    >>> import numpy as np
    >>> upper, lower = rank_one_terms(np.outer([2.0, 1.0, 0.0], [0.0, 1.0, 2.0]))
    >>> upper.shape
    (1, 3)
    >>> (lower.T @ upper).tolist()
    [[0.0, 2.0, 4.0], [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
    """
    by_row = _proportional_rows(matrix)
    by_column = _proportional_rows(matrix.T)
    if len(by_column[0]) < len(by_row[0]):
        return by_column
    return by_row[1], by_row[0]


def _class_shares(counts: np.ndarray, size: float) -> np.ndarray:
    """The share of each class in about `size` items, equally many of each as far as they go."""
    rising = np.sort(counts[counts > 0])
    level, left = 0.0, size
    for k, count in enumerate(rising):
        level = left / (len(rising) - k)
        if count >= level:
            break
        left -= count
    return np.minimum(level / np.maximum(counts, 1), 1.0)


def _grouped(weight: np.ndarray, group: np.ndarray, size: int) -> sp.csc_array:
    """The matrix that sums weighted rows by group."""
    n = len(group)
    return sp.csc_array((weight, group, np.arange(n + 1)), shape=(size, n))


@dataclass(frozen=True)
class Side:
    """The items that act as upper (or as lower) members of some pair.

    Attributes
    ----------
    items : ndarray of shape (m,)
        Their positions among all items, grouped by query.
    weights : ndarray of shape (R, m)
        Their weights in each term.
    start, end : ndarrays of shape (Q,)
        Where each query's items lie in `items`.
    query : ndarray of shape (m,)
        Their queries.
    """

    items: np.ndarray
    weights: np.ndarray
    start: np.ndarray
    end: np.ndarray
    query: np.ndarray

    @cached_property
    def key(self) -> np.ndarray:
        """The queries in as few bits as they need."""
        return self.query.astype(np.min_scalar_type(len(self.start)))

    @cached_property
    def is_uniform(self) -> bool:
        """Whether the items of each term weigh the same."""
        return bool((self.weights == self.weights[:, :1]).all())


@dataclass(frozen=True)
class PairData:
    """Labels, pair weights and queries, checked.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Class of each item, 0..K-1.
    matrix : ndarray of shape (K, K)
        Weight of a pair (lower class, upper class).
    weight : ndarray of shape (n,)
        Weight of each item.
    query : ndarray of shape (n,)
        Query of each item, 0..Q-1.
    n_queries : int
        Q.
    """

    codes: np.ndarray
    matrix: np.ndarray
    weight: np.ndarray
    query: np.ndarray
    n_queries: int

    @classmethod
    def build(
        cls,
        codes: np.ndarray,
        matrix: np.ndarray,
        weight: np.ndarray | None = None,
        query: np.ndarray | None = None,
    ) -> PairData:
        """Fill in what is left out: weights of one, and one query."""
        n = len(codes)
        weight = np.ones(n) if weight is None else weight
        query = np.zeros(n, dtype=np.intp) if query is None else query
        return cls(codes, matrix, weight, query, int(query.max()) + 1)

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """The rank-one terms of the matrix, shapes (R, K)."""
        return rank_one_terms(self.matrix)

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        upper, lower = self.factors
        return upper[:, self.codes] * self.weight, lower[:, self.codes] * self.weight

    @property
    def upper(self) -> np.ndarray:
        """Item weights of the rank-one terms, shape (R, n), where the item is the upper one."""
        return self._terms[0]

    @property
    def lower(self) -> np.ndarray:
        """Item weights of the rank-one terms, shape (R, n), where the item is the lower one."""
        return self._terms[1]

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.codes)

    def _table(self, weight: np.ndarray | None) -> np.ndarray:
        """Sums of the items' weights (or counts) in each query and class."""
        n_classes = len(self.matrix)
        key = self.query * n_classes + self.codes
        return np.bincount(key, weight, self.n_queries * n_classes).reshape(-1, n_classes)

    @property
    def total(self) -> float:
        """Sum of the weights of all pairs."""
        mass = self._table(self.weight)
        with np.errstate(over="ignore"):
            return float(((mass @ self.matrix) * mass).sum())

    @property
    def different(self) -> float:
        """Sum of the products of weights over the pairs of one query with different labels."""
        with np.errstate(over="ignore"):
            return float(pair_weight(self.codes, self.weight, self.query).sum())

    @property
    def pair_counts(self) -> np.ndarray:
        """Number of pairs in each query."""
        count = self._table(None).astype(float)
        return ((count @ (self.matrix > 0)) * count).sum(axis=1)

    @property
    def query_sizes(self) -> np.ndarray:
        """Number of items in each query."""
        return np.bincount(self.query, minlength=self.n_queries)

    def subset(self, rows: np.ndarray) -> PairData:
        """The pairs of some items."""
        query = self.query[rows]
        if self.n_queries > 1:
            query = np.unique(query, return_inverse=True)[1]
        return PairData.build(self.codes[rows], self.matrix, self.weight[rows], query)

    def thinned(self, share: float) -> tuple[np.ndarray, PairData]:
        """A random part of the queries, or of one query's items, with weights that make up for it.

        Each class gives as many items as the others, or all it has.
        """
        # Parts decide how fast a minimum is found, not where it is: a fixed seed will do.
        rng = np.random.default_rng(0)
        if self.n_queries > 1:
            draws = rng.random(self.n_queries)
            rows = np.flatnonzero((draws <= max(share, draws.min()))[self.query])
            return rows, self.subset(rows)
        shares = _class_shares(np.bincount(self.codes, minlength=len(self.matrix)), share * self.n)
        rows = np.flatnonzero(rng.random(self.n) < shares[self.codes])
        part = self.subset(rows)
        return rows, replace(part, weight=part.weight * (shares.min() / shares)[part.codes])

    def merged(self, first: np.ndarray, group: np.ndarray) -> PairData:
        """The pairs of groups of items, each of which is one item with the weight of all."""
        weight = np.bincount(group, self.weight)
        return replace(self, codes=self.codes[first], weight=weight, query=self.query[first])

    def scatter(self, X: Any) -> np.ndarray:
        """The sum over pairs of the products of their differences with themselves, (p, p)."""
        n_classes = len(self.matrix)
        key = self.query * n_classes + self.codes
        both = self.matrix + self.matrix.T
        partners = self._table(self.weight) @ both
        gram = weighted_gram(X, self.weight * partners.ravel()[key])
        # Sums of the rows in each query and class that occurs.
        present = np.flatnonzero(self._table(None))
        place = np.empty(self.n_queries * n_classes, dtype=np.intp)
        place[present] = np.arange(len(present))
        sums = _grouped(self.weight, place[key], len(present)) @ X
        sums = sums.toarray() if sp.issparse(sums) else sums
        query, codes = np.divmod(present, n_classes)
        for upper, lower in zip(*self.factors, strict=True):
            above = _grouped(upper[codes], query, self.n_queries) @ sums
            across = above.T @ (_grouped(lower[codes], query, self.n_queries) @ sums)
            gram -= across + across.T
        return gram

    def margin_rows(self, X: Any) -> sp.csr_array:
        """Signed rows of the items, with a threshold for each query and rank-one term."""
        X = sp.csr_array(X)
        blocks, thresholds, count = [], [], 0
        for upper, lower in zip(self.upper, self.lower, strict=True):
            both = [np.flatnonzero(upper > 0), np.flatnonzero(lower > 0)]
            queries = np.intersect1d(self.query[both[0]], self.query[both[1]])
            for items, sign in zip(both, (1.0, -1.0), strict=True):
                items = items[np.isin(self.query[items], queries)]
                place = count + np.searchsorted(queries, self.query[items])
                blocks.append(X[items] * sign)
                thresholds.append((np.full(len(items), -sign), place))
            count += len(queries)
        lengths = [block.shape[0] for block in blocks]
        edges = [
            sp.csr_array((v, (np.arange(n), place)), shape=(n, count))
            for n, (v, place) in zip(lengths, thresholds, strict=True)
        ]
        return sp.csr_array(sp.hstack([sp.vstack(blocks), sp.vstack(edges)]))

    def side(self, weights: np.ndarray) -> Side:
        """The items with a positive weight in some term, grouped by query."""
        items = np.flatnonzero(weights.any(axis=0))
        if self.n_queries > 1:
            items = items[np.argsort(self.query[items], kind="stable")]
        query = self.query[items]
        counts = np.bincount(query, minlength=self.n_queries)
        end = np.cumsum(counts)
        return Side(items, np.ascontiguousarray(weights[:, items]), end - counts, end, query)
