r"""Exponential pair sums: a product of two sums.

With :math:`\ell(s) = e^{-s}` the sum over pairs of two classes factors,

.. math::

    \sum_{a \in i} \sum_{b \in j} w_a w_b e^{-(f_a - f_b)}
    = \Bigl(\sum_{a \in i} w_a e^{-f_a}\Bigr) \Bigl(\sum_{b \in j} w_b e^{f_b}\Bigr) = A_i B_j,

so everything costs O(n). The factors are kept as logarithms per class and query, since each may
overflow where the product does not.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rankbook.losses import Loss
from rankbook.solvers._group_pairs import GroupPairs, Partners
from rankbook.solvers._pair_data import PairData

__all__ = ["ExponentialPairs", "ExponentialPoint"]


class ExponentialPairs:
    """Sums of exponential losses over pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        key = data.query * len(data.matrix) + data.codes
        # Items without weight would put log(0) among the factors.
        kept = np.flatnonzero(data.weight > 0)
        order = kept[np.argsort(key[kept], kind="stable")]
        present, self.starts, counts = np.unique(key[order], return_index=True, return_counts=True)
        self.order = None if np.array_equal(order, np.arange(data.n)) else order
        self.segment = np.repeat(np.arange(len(counts)), counts)
        self.weight = data.weight if self.order is None else data.weight[order]
        self.groups = groups = GroupPairs.build(data, present)
        self.log_weight = np.log(groups.weight)
        self.lower_partners = Partners(groups.above, groups.below, self.log_weight, len(present))
        self.upper_partners = Partners(groups.below, groups.above, self.log_weight, len(present))

    def at(self, scores: np.ndarray) -> ExponentialPoint:
        """Evaluate at the scores."""
        return ExponentialPoint(self, scores)

    def sorted(self, values: np.ndarray) -> np.ndarray:
        """Values of the items, grouped by query and class."""
        return values if self.order is None else values[self.order]

    def unsorted(self, values: np.ndarray) -> np.ndarray:
        """Undo `sorted`."""
        if self.order is None:
            return values
        out = np.zeros(self.data.n)
        out[self.order] = values
        return out


class _Factor:
    """One factor of the product: weighted exponentials, relative to the largest of their group."""

    def __init__(self, pairs: ExponentialPairs, exponent: np.ndarray) -> None:
        self.pairs = pairs
        self.top = np.maximum.reduceat(exponent, pairs.starts)
        exponent = exponent - self.top[pairs.segment]
        self.relative = np.exp(exponent, out=exponent)
        self.relative *= pairs.weight
        self.mass = np.add.reduceat(self.relative, pairs.starts)
        self.log_sum = self.top + np.log(self.mass)

    def mean(self, v: np.ndarray) -> np.ndarray:
        """Mean of v in each group, under the factor's weights."""
        return np.add.reduceat(self.relative * v, self.pairs.starts) / self.mass

    def times(self, log_partner: np.ndarray) -> np.ndarray:
        """Per item, its exponential times the other factor."""
        with np.errstate(over="ignore"):
            scale = np.exp(self.top + log_partner)
            return self.relative * scale[self.pairs.segment]


class ExponentialPoint:
    """Value, gradient and Hessian products at given scores."""

    def __init__(self, pairs: ExponentialPairs, scores: np.ndarray) -> None:
        self._pairs = pairs
        f = pairs.sorted(scores)
        self._upper = _Factor(pairs, -f)
        self._lower = _Factor(pairs, f)

    @cached_property
    def _lower_sums(self) -> tuple[np.ndarray, np.ndarray]:
        return self._pairs.lower_partners.log_sums(self._lower.log_sum)

    @cached_property
    def _upper_sums(self) -> tuple[np.ndarray, np.ndarray]:
        return self._pairs.upper_partners.log_sums(self._upper.log_sum)

    @property
    def log_value(self) -> float:
        """Logarithm of the sum, finite where the sum itself overflows."""
        terms = self._upper.log_sum + self._lower_sums[0]
        top = terms.max()
        return float(top + np.log(np.exp(terms - top).sum())) if np.isfinite(top) else float(top)

    @property
    def value(self) -> float:
        """The sum over pairs (infinite where it exceeds the largest float)."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_value))

    @cached_property
    def _item_sums(self) -> tuple[np.ndarray, np.ndarray]:
        return self._upper.times(self._lower_sums[0]), self._lower.times(self._upper_sums[0])

    def along(self, v: np.ndarray) -> tuple[float, float]:
        """Slope and curvature in a direction: its first two moments in each group are enough."""
        groups, v = self._pairs.groups, self._pairs.sorted(v)
        above, below = self._upper.mean(v)[groups.above], self._lower.mean(v)[groups.below]
        squares = self._upper.mean(v**2)[groups.above] + self._lower.mean(v**2)[groups.below]
        logs = self._upper.log_sum[groups.above] + self._lower.log_sum[groups.below]
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.exp(logs + self._pairs.log_weight)
            curvature = (sums * (squares - 2 * above * below)).sum()
            return float((sums * (below - above)).sum()), float(curvature)

    def gradient(self) -> np.ndarray:
        """Derivative with respect to each score."""
        above, below = self._item_sums
        return self._pairs.unsorted(below - above)

    def hessian_product(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector."""
        pairs = self._pairs
        v = pairs.sorted(v)
        above, below = self._item_sums
        lower_mean = pairs.lower_partners.means(self._lower_sums[1], self._lower.mean(v))
        upper_mean = pairs.upper_partners.means(self._upper_sums[1], self._upper.mean(v))
        return pairs.unsorted(
            above * (v - lower_mean[pairs.segment]) + below * (v - upper_mean[pairs.segment])
        )
