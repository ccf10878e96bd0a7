r"""Pairs of all items across blocks, where the loss lets a sum over pairs factor.

With :math:`A_i = \sum_{a \in i} w_a e^{-f_a}` and :math:`B_j = \sum_{b \in j} w_b e^{f_b}` the
exponential loss of all pairs is :math:`\sum_{j,i} m_{ji} A_i B_j`: no sum over blocks, but a
function of :math:`2K` numbers that are. So are the derivatives, through the means
and second moments of the rows under the weights :math:`w_a e^{\mp f_a}`. The squared
loss needs the same moments at :math:`f = 0`, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbook._docs import documented
from rankbook.distributed._blocks import Blocks
from rankbook.distributed._sums import SUM_DOCS
from rankbook.distributed._survey import Plan, Rows, read
from rankbook.solvers.design import weighted_gram

__all__ = ["ExponentialPairSum", "SquaredPairSum"]


@dataclass(frozen=True)
class Tilted:
    """Each class under weights w exp(tilt f): logarithm of the mass, mean, second moment."""

    log_mass: np.ndarray  # (K,)
    mean: np.ndarray  # (K, p)
    second: np.ndarray  # (K, p, p)


def _tilted(rows: Rows, scores: np.ndarray, tilt: float, n_classes: int) -> Tilted:
    p = rows.Z.shape[1]
    out = Tilted(np.full(n_classes, -np.inf), np.zeros((n_classes, p)), np.zeros((n_classes, p, p)))
    for k in np.unique(rows.codes):
        chosen = rows.codes == k
        exponent, Z = tilt * scores[chosen], rows.Z[chosen]
        top = exponent.max()
        weights = rows.w[chosen] * np.exp(exponent - top)
        mass = weights.sum()
        out.log_mass[k] = top + np.log(mass)
        out.mean[k] = weights @ Z / mass
        out.second[k] = weighted_gram(Z, weights / mass)
    return out


def _tilted_block(
    plan: Plan, coef: np.ndarray, tilts: tuple[float, ...], **arrays: Any
) -> list[Tilted] | None:
    rows = read(plan, **arrays)
    if rows is None:
        return None
    scores = rows.Z @ coef
    return [_tilted(rows, scores, tilt, len(plan.classes)) for tilt in tilts]


def _merge(parts: list[list[Tilted]]) -> list[Tilted]:
    return [_merged(list(same)) for same in zip(*parts, strict=True)]


def _merged(parts: list[Tilted]) -> Tilted:
    logs = np.stack([part.log_mass for part in parts])
    top = logs.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    share = np.exp(logs - top)
    mass = share.sum(axis=0)
    share = share / np.where(mass > 0, mass, 1.0)
    return Tilted(
        top + np.log(mass),
        np.einsum("bk,bkp->kp", share, np.stack([part.mean for part in parts])),
        np.einsum("bk,bkpq->kpq", share, np.stack([part.second for part in parts])),
    )


def _scatter(sums: np.ndarray, upper: Tilted, lower: Tilted) -> np.ndarray:
    """Mean of (x_a - x_b)(x_a - x_b)' over pairs, times `sums` [j, i]."""
    matrix = np.einsum("ji,ipq->pq", sums, upper.second)
    matrix += np.einsum("ji,jpq->pq", sums, lower.second)
    cross = upper.mean.T @ sums.T @ lower.mean
    return matrix - cross - cross.T


_PAIR_DOCS = {
    **SUM_DOCS,
    "pairs": """
    matrix : ndarray of shape (K, K)
        Weights of pairs of classes.
    different : float
        Weight of the pairs with different labels.
    """,
}


@documented(**_PAIR_DOCS)
class ExponentialPairSum:
    """Exponential loss of all pairs plus a ridge, as Newton's method takes it.

    Parameters
    ----------
    %(rows)s
    %(pairs)s
    %(ridge)s
    """

    def __init__(
        self, blocks: Blocks, plan: Plan, matrix: np.ndarray, different: float, ridge: np.ndarray
    ) -> None:
        self.blocks, self.plan, self.ridge = blocks, plan, ridge
        with np.errstate(divide="ignore"):
            self.log_weight = np.log(matrix) - np.log(different)
        self._last: tuple[np.ndarray, list[Tilted]] | None = None

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, Tilted, Tilted]:
        if self._last is None or not np.array_equal(self._last[0], x):
            found = self.blocks.reduce(_tilted_block, _merge, self.plan, x, (-1.0, 1.0))
            self._last = x.copy(), found
        upper, lower = self._last[1]
        logs = self.log_weight + lower.log_mass[:, None] + upper.log_mass
        return np.exp(logs), upper, lower

    def value(self, x: np.ndarray) -> float:
        """Value at x."""
        return float(self._at(x)[0].sum()) + 0.5 * float(self.ridge @ x**2)

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, Any, Any]:
        """Value, gradient and Hessian at x, by one pass."""
        value = self.value(x)
        if not np.isfinite(value):
            return np.inf, None, None
        sums, upper, lower = self._at(x)
        gradient = sums.sum(axis=1) @ lower.mean - sums.sum(axis=0) @ upper.mean + self.ridge * x
        return value, gradient, _scatter(sums, upper, lower) + np.diag(self.ridge)


@documented(**_PAIR_DOCS)
class SquaredPairSum:
    """Squared loss of all pairs plus a ridge: a quadratic that one pass determines.

    Parameters
    ----------
    %(rows)s
    %(pairs)s
    %(ridge)s
    """

    def __init__(
        self, blocks: Blocks, plan: Plan, matrix: np.ndarray, different: float, ridge: np.ndarray
    ) -> None:
        zero = np.zeros(len(ridge))
        (moments,) = blocks.reduce(_tilted_block, _merge, plan, zero, (0.0,))
        mass = np.exp(moments.log_mass)
        sums = matrix * np.outer(mass, mass) / different
        self.constant = float(sums.sum())
        self.slope = 2.0 * (sums.sum(axis=1) - sums.sum(axis=0)) @ moments.mean
        self.matrix = 2.0 * _scatter(sums, moments, moments) + np.diag(ridge)

    def value(self, x: np.ndarray) -> float:
        """Value at x."""
        return self.constant + float((self.slope + 0.5 * (self.matrix @ x)) @ x)

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, Any, Any]:
        """Value, gradient and Hessian at x."""
        return self.value(x), self.slope + self.matrix @ x, self.matrix
