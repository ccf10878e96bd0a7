r"""The pairwise hinge of many items, minimised as it is.

A sum over many pairs is all but smooth: it has a kink wherever some pair has margin one, but each
kink is no larger than a pair. BFGS then converges as on a smooth function, from the Hessian of a
few thousand items with their kinks rounded off. Minus the loss's left derivative, zero or one at
each pair, is feasible for the dual, whose value is below the objective by what the ridge leaves to
the subgradient g, :math:`\|g\|^2 / (2 \alpha)`. Where many pairs share a margin, as they do if few
items are distinct, or the ridge is weak for the number of items, the steps come to gain little, and
another method has to go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from rankbook._progress import Report
from rankbook.losses import Loss
from rankbook.models._pair_objective import (
    MAX_COLUMNS,
    Fit,
    PairRisk,
    better,
    strong_convexity_gap,
)
from rankbook.solvers import NewtonResult
from rankbook.solvers.quasi_newton import minimize_from

__all__ = ["DAMPING", "Descended", "certify", "descend"]

# Curvature of columns of unit size that steps are given where the ridge has less.
DAMPING = 1e-7
# The smallest part that is fitted first: so many items, and so many a column.
_FEWEST, _ITEMS_OF_COLUMN = 2000, 50
# A part is this share of the items; what is not so many times as large as the smallest has none.
_SHARE, _MANY = 0.1, 10
# Width of the parabola at the kink where the Hessian is taken, first and if it has to be again.
_SMOOTHING, _LATER_SMOOTHING = 0.3, 0.1
# Steps, and steps of little gain, before another method takes over; more of them from zero, where
# the Hessian is a guess.
_STEPS, _PATIENCE, _PATIENCE_AT_ZERO = 20, 2, 4
# Steps that show that they had the Hessian nearly right.
_FEW_STEPS = 3
# Hessians that are formed for the smallest part.
_HESSIANS = 3
# Share of the value below which what is left to gain is that of single pairs.
_SINGLE = 1e-9


@dataclass(frozen=True)
class Descended:
    """Where BFGS arrived.

    Attributes
    ----------
    fit : Fit
        The best point and its gap.
    left : float
        About how far above the minimum it is.
    hessian : ndarray of shape (p, p)
        The one that it came from.
    part : PairRisk or None
        The objective of the largest part that was fitted.
    """

    fit: Fit
    left: float
    hessian: np.ndarray
    part: PairRisk | None


def certify(risk: PairRisk, coef: np.ndarray, loss: Loss) -> tuple[Fit, np.ndarray]:
    """The hinge's objective and its distance to the dual, and the gradient of the risk itself.

    The dual variables are minus the slopes of the risk's loss: the hinge or a smooth one below it.
    """
    point, scale = risk.point(coef), 1.0 / risk.sums.different
    slopes = point.gradient()
    slope = risk.design.adjoint(scale * slopes)
    value = scale * point.value_of(loss) + risk.penalty(coef)
    # The dual's second term is the gap that the ridge leaves to the slope alone.
    dual = scale * point.dual_sum - strong_convexity_gap(slope, risk.ridge)
    fit = Fit(coef, value, max(value - dual, 0.0), 0, "", False, slopes, point.dual_sum)
    return fit, slope + risk.ridge * coef


class _Objective:
    """The hinge objective for BFGS, which remembers the best point and the best lower bound."""

    def __init__(
        self, risk: PairRisk, tol: float, report: Report | None = None, hasty: bool = False
    ) -> None:
        self.risk, self.tol, self.report = risk, tol, report
        self.patience = _PATIENCE if hasty else _PATIENCE_AT_ZERO
        self.best: Fit | None = None
        # The coefficients last asked for: steps begin where the start was judged.
        self._last: tuple[np.ndarray, tuple[float, Any]] | None = None

    def value_gradient(self, coef: np.ndarray) -> tuple[float, Any]:
        """Objective and subgradient."""
        if self._last is not None and self._last[0] is coef:
            return self._last[1]
        if self.risk.point(coef) is None:
            return np.inf, None
        found, gradient = certify(self.risk, coef, self.risk.sums.loss)
        self.best = found if self.best is None else better(self.best, found)
        self._last = coef, (found.value, gradient)
        return found.value, gradient

    def is_done(self, n_iter: int, coef: np.ndarray, value: float, decrement: float) -> bool:
        """Whether the gap is small enough."""
        assert self.best is not None
        if self.report is not None:
            self.report(n_iter, self.best.value, self.best.gap)
        return self.best.gap <= self.tol * self.best.value

    def steps(
        self, coef: np.ndarray, hessian: np.ndarray, max_iter: int, tol: float = 0.0
    ) -> NewtonResult:
        """BFGS from coefficients."""
        return minimize_from(
            self,
            coef,
            hessian,
            tol=tol,
            max_iter=min(max_iter, _STEPS),
            patience=_PATIENCE if coef.any() else self.patience,
            callback=self.is_done,
        )


def descend(
    risk: PairRisk,
    tol: float,
    max_iter: int,
    report: Report | None = None,
    close: float = 0.0,
    hasty: bool = False,
) -> Descended | None:
    """Minimise until the gap is at most `tol` times the objective, or steps gain little.

    What is left to gain, as far as the steps tell, need not be less than `close` times the
    objective; `hasty` says that the other method is a good one from anywhere. None where there are
    too many columns for a Hessian, or scores overflow.
    """
    if risk.design.shape[1] > MAX_COLUMNS:
        return None
    try:
        coef, hessian, part = _start(risk, rough=True)
        objective = _Objective(risk, tol, report, hasty)
        value = objective.value_gradient(coef)[0]
        if not np.isfinite(value):
            # Items that are not in the part have scores that overflow.
            return None
        result = objective.steps(coef, hessian, max_iter, close * value)
        assert objective.best is not None
        n_iter = result.n_iter
        stalled = result.reason == "max_iter" and result.decrement > _SINGLE * result.value
        if stalled and part is not None and n_iter < max_iter:
            # The few items were too few, or unlike the others.
            hessian = _rounded_hessian(part, objective.best.coef, _LATER_SMOOTHING)
            result = objective.steps(objective.best.coef, hessian, max_iter - n_iter)
            n_iter += result.n_iter
    except LinAlgError:
        return None
    return Descended(replace(objective.best, n_iter=n_iter), result.decrement, hessian, part)


def _start(risk: PairRisk, rough: bool) -> tuple[np.ndarray, np.ndarray, PairRisk | None]:
    """Coefficients and a Hessian, and the part of the items from which they are, if not zero.

    If `rough`, it may be the one that few steps came from: passes over much larger parts are worth
    a better one.
    """
    n, p = risk.design.shape
    few = max(_FEWEST, _ITEMS_OF_COLUMN * p)
    part = risk.thinned(max(_SHARE, few / n)) if n >= _MANY * few else None
    if part is None:
        return np.zeros(p), _first_hessian(risk), None
    coef, hessian, smaller = _start(part, rough=False)
    # Closer than by how far the minima of two parts are apart would be wasted.
    objective, close = _Objective(part, 0.0), 0.1 * p / part.design.shape[0]
    if not np.isfinite(objective.value_gradient(coef)[0]):
        return coef, hessian, part
    for _ in range(1 if smaller else _HESSIANS):
        result = objective.steps(coef, hessian, _STEPS, close * part.value(coef))
        coef = result.x
        if rough and smaller is None and result.converged and result.n_iter <= _FEW_STEPS:
            hessian = result.hessian
        elif smaller is None:
            hessian = _rounded_hessian(part, coef, _SMOOTHING)
        if result.converged:
            break
    return coef, hessian, part


def _first_hessian(risk: PairRisk) -> np.ndarray:
    """About the Hessian between zero, where no pair is at the kink, and the minimiser."""
    scale = np.sqrt(risk.sums.different) * risk.design.scale
    scatter = risk.sums.scatter(risk.design.X) / np.outer(scale, scale)
    return 0.5 * scatter + np.diag(np.maximum(risk.ridge, DAMPING))


def _rounded_hessian(risk: PairRisk, coef: np.ndarray, width: float) -> np.ndarray:
    # Fewer pairs than columns may lie on the parabola: then the rest is flat but for the ridge.
    smooth = risk.damped(DAMPING if risk.ridge.min() < DAMPING else 0.0)
    smooth = smooth.with_loss(risk.sums.loss.smoothed(width))
    return smooth.hessian(smooth.point(coef))
