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
from rankbook.solvers._pair_data import PairData

__all__ = ["ExponentialPairs", "ExponentialPoint"]


class ExponentialPairs:
    """Sums of exponential losses over pairs; see `rankbook.solvers.pair_sums.PairSums`."""

    def __init__(self, data: PairData, loss: Loss) -> None:
        self.data = data
        self.loss = loss
        n_classes = len(data.matrix)
        key = data.query * n_classes + data.codes
        # Items without weight would put log(0) among the factors.
        kept = np.flatnonzero(data.weight > 0)
        order = kept[np.argsort(key[kept], kind="stable")]
        self.key_present, self.starts, counts = np.unique(
            key[order], return_index=True, return_counts=True
        )
        self.order = None if np.array_equal(order, np.arange(data.n)) else order
        self.segment = np.repeat(np.arange(len(counts)), counts)
        self.weight = data.weight if self.order is None else data.weight[order]
        self.shape = (data.n_queries, n_classes)
        with np.errstate(divide="ignore"):
            self.log_matrix = np.log(data.matrix)

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

    def table(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Spread values of the present (query, class) groups over a full Q x K table."""
        out = np.full(self.shape, fill)
        out.ravel()[self.key_present] = values
        return out


def _log_sum_exp(values: np.ndarray, axis: int) -> np.ndarray:
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis)


class _Factor:
    """One factor of the product: weighted exponentials, relative to the largest of their group."""

    def __init__(self, pairs: ExponentialPairs, exponent: np.ndarray) -> None:
        self.pairs = pairs
        self.top = np.maximum.reduceat(exponent, pairs.starts)
        exponent = exponent - self.top[pairs.segment]
        self.relative = np.exp(exponent, out=exponent)
        self.relative *= pairs.weight
        self.mass = np.add.reduceat(self.relative, pairs.starts)
        self.log_sum = pairs.table(self.top + np.log(self.mass), -np.inf)

    def mean(self, v: np.ndarray) -> np.ndarray:
        """Mean of v in each group, under the factor's weights."""
        return self.pairs.table(
            np.add.reduceat(self.relative * v, self.pairs.starts) / self.mass, 0.0
        )

    def times(self, log_partner: np.ndarray) -> np.ndarray:
        """Per item, its exponential times the other factor."""
        with np.errstate(over="ignore"):
            scale = np.exp(self.top + log_partner.ravel()[self.pairs.key_present])
            return self.relative * scale[self.pairs.segment]


class ExponentialPoint:
    """Value, gradient and Hessian products at given scores."""

    def __init__(self, pairs: ExponentialPairs, scores: np.ndarray) -> None:
        self._pairs = pairs
        f = pairs.sorted(scores)
        self._upper = _Factor(pairs, -f)
        self._lower = _Factor(pairs, f)
        # log m_ji + log B_j, shape (Q, j, i), and log m_ji + log A_i.
        self._log_lower = pairs.log_matrix + self._lower.log_sum[:, :, None]
        self._log_upper = pairs.log_matrix + self._upper.log_sum[:, None, :]

    @cached_property
    def _partner_of_upper(self) -> np.ndarray:
        return _log_sum_exp(self._log_lower, 1)

    @property
    def log_value(self) -> float:
        """Logarithm of the sum, finite where the sum itself overflows."""
        terms = (self._upper.log_sum + self._partner_of_upper).ravel()
        return float(_log_sum_exp(terms, 0))

    @property
    def value(self) -> float:
        """The sum over pairs (infinite where it exceeds the largest float)."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_value))

    @cached_property
    def _item_sums(self) -> tuple[np.ndarray, np.ndarray]:
        return (
            self._upper.times(self._partner_of_upper),
            self._lower.times(_log_sum_exp(self._log_upper, 2)),
        )

    def along(self, v: np.ndarray) -> tuple[float, float]:
        """Slope and curvature in a direction: its first two moments in each group are enough."""
        v = self._pairs.sorted(v)
        above, below = self._upper.mean(v)[:, None, :], self._lower.mean(v)[:, :, None]
        squares = self._upper.mean(v**2)[:, None, :] + self._lower.mean(v**2)[:, :, None]
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.exp(self._log_lower + self._upper.log_sum[:, None, :])
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
        lower_mean = self._partner_mean(self._log_lower, self._lower.mean(v)[:, :, None], 1)
        upper_mean = self._partner_mean(self._log_upper, self._upper.mean(v)[:, None, :], 2)
        lower_mean = lower_mean.ravel()[pairs.key_present][pairs.segment]
        upper_mean = upper_mean.ravel()[pairs.key_present][pairs.segment]
        return pairs.unsorted(above * (v - lower_mean) + below * (v - upper_mean))

    @staticmethod
    def _partner_mean(log_weights: np.ndarray, means: np.ndarray, axis: int) -> np.ndarray:
        """Mean of v over all partners of a class, given the means in each partner class."""
        total = _log_sum_exp(log_weights, axis)
        shift = np.expand_dims(np.where(np.isfinite(total), total, 0.0), axis)
        return (np.exp(log_weights - shift) * means).sum(axis=axis)
