r"""Squared pair sums: masses and means of the classes.

With :math:`W_i` the mass, :math:`\mu_i` the mean and :math:`V_i` the sum of squared deviations of
the scores of class :math:`i` in a query,

.. math::

    \sum_{a \in i} \sum_{b \in j} w_a w_b (1 - f_a + f_b)^2
    = W_i W_j (1 - \mu_i + \mu_j)^2 + W_j V_i + W_i V_j,

a sum of terms of one sign, in O(n).
"""

from __future__ import annotations

import numpy as np

from rankbook.losses import Loss
from rankbook.solvers._group_pairs import GroupPairs
from rankbook.solvers._pair_data import PairData

__all__ = ["MomentPairs", "MomentPoint"]


class MomentPairs:
    """Sums of squared losses over pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        n_classes = len(data.matrix)
        self.key = data.query * n_classes + data.codes
        self.shape = (data.n_queries, n_classes)
        self.mass = self.table(data.weight)
        # Mass of the lower partners of each upper class, and of the upper partners of each lower.
        self.below = self.mass @ data.matrix
        self.above = self.mass @ data.matrix.T
        self.groups = GroupPairs.build(data, np.flatnonzero(self.mass))

    def at(self, scores: np.ndarray) -> MomentPoint:
        """Evaluate at the scores."""
        return MomentPoint(self, scores)

    def table(self, values: np.ndarray) -> np.ndarray:
        """Sums over the items of each query and class."""
        return np.bincount(self.key, values, self.shape[0] * self.shape[1]).reshape(self.shape)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Weighted means over the items of each query and class, zero where there are none."""
        return self.table(self.data.weight * values) / np.where(self.mass > 0, self.mass, 1.0)


class MomentPoint:
    """Value, gradient and Hessian products at given scores."""

    def __init__(self, pairs: MomentPairs, scores: np.ndarray) -> None:
        self._pairs = pairs
        # A constant added to a query's scores changes nothing, but would cost digits.
        data = pairs.data
        middle = np.bincount(data.query, scores) / np.maximum(data.query_sizes, 1)
        self._scores = scores = scores - middle[data.query]
        self._mean = pairs.means(scores)

    @property
    def value(self) -> float:
        """The sum over pairs."""
        pairs, mean = self._pairs, self._mean
        deviation = self._scores - mean.ravel()[pairs.key]
        spread = pairs.table(pairs.data.weight * deviation**2)
        groups = pairs.groups
        above, below = groups.present[groups.above], groups.present[groups.below]
        apart = 1.0 - mean.ravel()[above] + mean.ravel()[below]
        weight = groups.weight * pairs.mass.ravel()[above] * pairs.mass.ravel()[below]
        return float((weight * apart**2).sum() + (spread * (pairs.below + pairs.above)).sum())

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score."""
        pairs = self._pairs
        # An upper item: -2 sum of (1 - f + mu_j) over its partners; a lower one the opposite.
        return self._linear(self._scores, self._mean, pairs.above - pairs.below)

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector."""
        return self._linear(v, self._pairs.means(v), np.zeros(self._pairs.shape))

    def _linear(self, v: np.ndarray, mean: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Twice the weight times (constant + partners' mass times v - partners' sums of v)."""
        pairs, matrix = self._pairs, self._pairs.data.matrix
        moment = pairs.mass * mean
        shift = (constant - moment @ matrix - moment @ matrix.T).ravel()[pairs.key]
        degree = (pairs.below + pairs.above).ravel()[pairs.key]
        return 2.0 * pairs.data.weight * (degree * v + shift)
