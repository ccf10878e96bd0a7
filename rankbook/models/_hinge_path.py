r"""The pairwise objective with a loss that has a kink, minimised with a certificate.

Steps along the loss as it is come first (`_hinge_descent`). Where they gain little the kink is
replaced by a parabola of width :math:`\mu`, Newton solves the smooth problem, and :math:`\mu`
shrinks until the duality gap is at most `tol` times the objective. Minus the smooth loss's
derivative at each pair, :math:`\beta_{ab} \in [0, 1]`, is feasible for the hinge's dual

.. math::

    \max_\beta \; \sum_{a, b} m_{ab} \beta_{ab}
    - \frac{1}{2 \alpha} \Bigl\| \sum_{a, b} m_{ab} \beta_{ab} (x_a - x_b) \Bigr\|^2,

whose value, a lower bound on the minimum, is read off the sums already computed: the norm is
that of the smooth loss's gradient.
"""

from __future__ import annotations

import numpy as np

from rankbook._progress import Report
from rankbook.losses import SquaredHinge
from rankbook.models._hinge_descent import DAMPING, Descended, certify, descend
from rankbook.models._kept_hinge import minimize_kept_hinge
from rankbook.models._pair_fit import COARSE, coarser, solve, with_help
from rankbook.models._pair_objective import (
    MAX_COLUMNS,
    Fit,
    PairRisk,
    better,
    stopped,
    strong_convexity_gap,
    whitened,
)

__all__ = ["minimize_hinge"]

_SMALLEST_SMOOTHING = 1e-9
_FIRST_SMOOTHING = 0.5
_SHRINK = 0.15
# With many items the pairs near the margin are so many that this leaves a gap of about 1e-6.
_LATER_SMOOTHING = 0.0025


def minimize_hinge(
    risk: PairRisk,
    tol: float,
    max_iter: int,
    report: Report | None = None,
    aim: float | None = None,
) -> Fit:
    """Minimise for the hinge; the best point seen is returned, with the best lower bound.

    Where pairs are kept, `aim` is the relative gap to try for, by default that of rounding.
    """
    if risk.sums.n_kept is not None:
        return minimize_kept_hinge(risk, tol, max_iter, report, aim)
    loss = risk.sums.loss
    zero = np.zeros(risk.design.shape[1])
    at_zero = risk.sums.total * float(loss(0.0)) / risk.sums.different
    # No dual value is below zero, that of no pair.
    best = Fit(zero, at_zero, at_zero, 0, "", False)
    n_iter, descended = 0, descend(risk, tol, max_iter, report)
    if descended is not None:
        best, n_iter = better(best, descended.fit), descended.fit.n_iter
        reason = _stop(best.gap <= tol * best.value, n_iter >= max_iter, _FIRST_SMOOTHING)
        if reason:
            return stopped(best, n_iter, reason)
        coef, smoothing, risk, value = _go_on(risk, descended)
    else:
        coef, smoothing, risk, value = _hinge_start(risk)
    # Fewer pairs than columns may lie on the parabola: then the rest is flat but for the ridge.
    damping = DAMPING if risk.ridge.min() < DAMPING else 0.0
    goal = 1e-4 * value
    if smoothing < _FIRST_SMOOTHING:
        goal = min(1e-4, 1e-3 * tol) * value
    if descended is not None:
        goal = min(goal, 0.1 * descended.left)
    reason = ""
    while not reason:
        smooth = risk.with_loss(loss.smoothed(smoothing)).damped(damping)
        result = solve(smooth, coef, max_iter - n_iter, tol=goal)
        coef, n_iter = result.x, n_iter + max(1, result.n_iter)
        found, gradient = certify(smooth, coef, loss)
        residual = strong_convexity_gap(gradient, smooth.ridge)
        best = better(best, found)
        if report is not None:
            report(n_iter, best.value, best.gap)
        target = tol * best.value
        reason = _stop(best.gap <= target, n_iter >= max_iter, smoothing)
        # The gap has two parts: what Newton left, and what the smoothing costs.
        rounded_off = max(found.gap - residual, 0.3 * target)
        closer = 0.1 * result.decrement * rounded_off / residual if residual > 0 else 0.0
        if residual > 0.3 * rounded_off and closer > 1e-26 * best.value and result.converged:
            goal = closer
        else:
            # The second part is about quadratic in the width while many pairs lie in it.
            shrink = min(0.3, max(_SHRINK, 0.7 * (target / rounded_off) ** 0.5))
            smoothing, goal = shrink * smoothing, max(goal * shrink, 1e-16 * best.value)
    return stopped(best, n_iter, reason)


def _stop(closed: bool, out_of_steps: bool, smoothing: float) -> str:
    if closed:
        return "gap"
    if out_of_steps:
        return "max_iter"
    return "rounding" if smoothing <= _SMALLEST_SMOOTHING else ""


def _hinge_start(risk: PairRisk) -> tuple[np.ndarray, float, PairRisk, float]:
    """Coefficients, a smoothing that suits them, the objective with its helps, about its value."""
    n, p = risk.design.shape
    coarse = coarser(risk)
    if coarse is None:
        coef = np.zeros(p)
        value = risk.value(coef)
        # At zero every pair is on the hinge's slope, where it has no curvature; the squared hinge
        # has some, and its minimiser has many pairs near the kink.
        squared = risk.with_loss(SquaredHinge())
        if p <= min(MAX_COLUMNS, n):
            white = squared.whitening(coef)
            risk, squared = risk.in_basis(white), squared.in_basis(white)
        coef = solve(squared, coef, 10, tol=1e-2 * value).x
        return coef, _FIRST_SMOOTHING, risk, value
    start, smoothing, coarse, value = _hinge_start(coarse)
    start, value = _follow(coarse, start, smoothing, value)
    basis = coarse.basis
    if coarse.design.shape[0] <= COARSE and p <= MAX_COLUMNS:
        basis = coarse.with_loss(risk.sums.loss.smoothed(0.1)).in_basis(None).whitening(start)
    return start, _LATER_SMOOTHING, with_help(risk, coarse, basis), value


def _go_on(risk: PairRisk, from_: Descended) -> tuple[np.ndarray, float, PairRisk, float]:
    """The same where steps along the hinge itself came to gain little."""
    start, value, basis = from_.fit.coef, from_.fit.value, whitened(from_.hessian)
    if from_.part is None:
        return start, _FIRST_SMOOTHING, risk.in_basis(basis), value
    if from_.left > _LATER_SMOOTHING * value:
        start, value = _follow(from_.part.in_basis(basis), start, _FIRST_SMOOTHING, value)
    return start, _LATER_SMOOTHING, with_help(risk, from_.part, basis), value


def _follow(
    risk: PairRisk, coef: np.ndarray, smoothing: float, value: float
) -> tuple[np.ndarray, float]:
    """About the minimiser and the minimum at the later width, by way of the widths between."""
    while smoothing > _LATER_SMOOTHING:
        smooth = risk.with_loss(risk.sums.loss.smoothed(smoothing))
        result = solve(smooth, coef, 20, tol=1e-6)
        coef, value, smoothing = result.x, result.value, 0.2 * smoothing
    return coef, value
