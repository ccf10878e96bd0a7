r"""Pair sums over pairs that are kept: for many queries of few items, and for any loss.

With the indices of both members of each pair, a gradient is two counts with weights, and the
Hessian with respect to the scores is the Laplacian of the graph whose edges are the pairs, weighted
by their curvatures: :math:`X^\top L X` follows by one sparse product.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from rankbook.losses import Loss
from rankbook.solvers._pair_data import PairData
from rankbook.solvers.design import laplacian

__all__ = ["ExplicitPairs", "ExplicitPoint"]


def _class_pairs(data: PairData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Upper item, lower item and class-pair weight of each pair, query by query for each class."""
    n_classes = len(data.matrix)
    key = data.query * n_classes + data.codes
    order = np.argsort(key, kind="stable").astype(np.int32)
    size = np.bincount(key, minlength=data.n_queries * n_classes).reshape(-1, n_classes)
    start = (np.cumsum(size) - size.ravel()).reshape(size.shape)
    upper, lower, weight = [], [], []
    for j, i in zip(*np.nonzero(data.matrix), strict=True):
        # Each item of class i meets the run of class j's items in its query.
        queries = np.repeat(np.arange(data.n_queries), size[:, i])
        count = size[queries, j]
        within = np.arange(len(queries)) - np.repeat(np.cumsum(size[:, i]) - size[:, i], size[:, i])
        total = int(count.sum())
        shift = start[queries, j] - (np.cumsum(count) - count)
        upper.append(order[np.repeat(start[queries, i] + within, count)])
        lower.append(order[np.arange(total) + np.repeat(shift, count)])
        weight.append(np.full(total, data.matrix[j, i]))
    return np.concatenate(upper), np.concatenate(lower), np.concatenate(weight)


class ExplicitPairs:
    """Sums of a loss over kept pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        self.upper, self.lower, weight = _class_pairs(data)
        if not np.array_equal(data.weight, np.ones(data.n)):
            weight *= data.weight[self.upper] * data.weight[self.lower]
        # One number, if it is the weight of all pairs.
        self.weight = weight[:1] if len(weight) and (weight == weight[0]).all() else weight

    def with_loss(self, loss: Loss) -> ExplicitPairs:
        """The same pairs with another loss."""
        other = object.__new__(ExplicitPairs)
        other.data, other.loss = self.data, loss
        other.upper, other.lower, other.weight = self.upper, self.lower, self.weight
        return other

    def at(self, scores: np.ndarray) -> ExplicitPoint:
        """Evaluate at the scores."""
        return ExplicitPoint(self, scores)


class ExplicitPoint:
    """Value, gradient and Hessian at given scores."""

    def __init__(self, pairs: ExplicitPairs, scores: np.ndarray) -> None:
        self._pairs = pairs
        self._n = pairs.data.n
        difference = scores[pairs.upper]
        difference -= scores[pairs.lower]
        self._difference = difference
        with np.errstate(over="ignore"):
            self._loss, self._slope, self._curvature = pairs.loss.terms(difference)

    def _sum(self, values: np.ndarray) -> float:
        weight = self._pairs.weight
        return float(weight[0] * values.sum() if len(weight) == 1 else weight @ values)

    @property
    def value(self) -> float:
        """The sum over pairs."""
        return self._sum(self._loss)

    def value_of(self, loss: Loss) -> float:
        """The sum of another loss over the same pairs at the same scores."""
        return self._sum(loss(self._difference))

    @property
    def dual_sum(self) -> float:
        """Minus the sum of the derivative over pairs."""
        return -self._sum(self._slope)

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """Add each pair's value to its upper item and take it from its lower one."""
        pairs = self._pairs
        out = np.bincount(pairs.upper, values, self._n)
        out -= np.bincount(pairs.lower, values, self._n)
        return out

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score."""
        return self._spread(self._pairs.weight * self._slope)

    @cached_property
    def curved(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs with curvature: upper items, lower items, and weighted curvatures."""
        upper, lower = self._pairs.upper, self._pairs.lower
        weight = self._curvature * self._pairs.weight
        curved = np.flatnonzero(weight)
        if len(curved) > 0.7 * len(weight):
            return upper, lower, weight
        return upper[curved], lower[curved], weight[curved]

    @cached_property
    def laplacian(self) -> sp.csr_array:
        """The Hessian with respect to the scores, sparse."""
        return laplacian(*self.curved, self._n)

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector (or with each column of a matrix)."""
        return self.laplacian @ v
