r"""Nominal effects with the thresholds in order at every item.

Where coefficients differ between thresholds, the thresholds of two classes may cross at items of
other classes: their likelihood does not see it, but a probability would be negative there. The
order at the data is a set of linear constraints; a logarithmic barrier keeps them, with a weight
so small that the objective is within a known distance of the constrained minimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook.models._cumulative_design import Design
from rankbook.models._cumulative_likelihood import Likelihood
from rankbook.solvers.design import weighted_gram
from rankbook.solvers.newton import NewtonResult, minimize

__all__ = ["crossings", "fit_in_order"]

# Barrier weights, as shares of the total weight over the number of constraints.
_WEIGHTS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)


def crossings(design: Design, params: np.ndarray) -> int:
    """Number of items at which some thresholds are not in order."""
    p, q, m, _ = design.sizes
    own = params[p : p + m * (q + 1)].reshape(m, q + 1)
    crossed = np.zeros(design.n_items, dtype=bool)
    for change in -np.diff(own, axis=0):
        crossed |= ~(design.nominal.x @ change > 0.0)
    return int(np.count_nonzero(crossed))


def _gaps(design: Design, params: np.ndarray) -> np.ndarray:
    p, q, m, _ = design.sizes
    own = params[p : p + m * (q + 1)].reshape(m, q + 1)
    return -design.nominal.x @ np.diff(own, axis=0).T


class _InOrder:
    """The objective plus a barrier: `weight` times the sum of log(1 + 1/gap).

    Unlike a logarithm it does not reward gaps that are wide already.
    """

    def __init__(self, likelihood: Likelihood, weight: float) -> None:
        self.likelihood = likelihood
        self.weight = weight

    def value(self, params: np.ndarray) -> float:
        gaps = _gaps(self.likelihood.design, params)
        if not np.all(gaps > 0.0):
            return np.inf
        return self.likelihood.value(params) + self.weight * float(np.log1p(1.0 / gaps).sum())

    def value_gradient_hessian(self, params: np.ndarray) -> tuple[float, Any, Any]:
        design = self.likelihood.design
        gaps = _gaps(design, params)
        if not np.all(gaps > 0.0):
            return np.inf, None, None
        value, gradient, hessian = self.likelihood.value_gradient_hessian(params)
        p, q, m, _ = design.sizes
        width, w = q + 1, design.nominal.x
        for k in range(m - 1):
            gap = gaps[:, k]
            value += self.weight * float(np.log1p(1.0 / gap).sum())
            # The gap is w (own_k - own_(k+1)).
            low, high = (slice(p + j * width, p + (j + 1) * width) for j in (k, k + 1))
            slope = self.weight * (w.T @ (1.0 / (gap * (1.0 + gap))))
            gradient[low] -= slope
            gradient[high] += slope
            bend = self.weight * weighted_gram(w, (1.0 + 2.0 * gap) / (gap * (1.0 + gap)) ** 2)
            hessian[low, low] += bend
            hessian[high, high] += bend
            hessian[low, high] -= bend
            hessian[high, low] -= bend
        return value, gradient, hessian


def fit_in_order(likelihood: Likelihood, tol: float, max_iter: int) -> NewtonResult:
    """Minimise with the thresholds in order at every item.

    The last barrier weight leaves the objective within 1e-10 of the total weight above the
    constrained minimum, the usual duality gap of a barrier.
    """
    design = likelihood.design
    constraints = design.n_items * max(design.sizes[2] - 1, 1)
    params = likelihood.start()
    for share in _WEIGHTS:
        barrier = _InOrder(likelihood, share * design.total / constraints)
        bound = max(tol, 1e-3 * share) * design.total
        result = minimize(barrier, params, tol=bound, max_iter=max_iter)
        params = result.x
    return result
