r"""How a smooth pairwise objective is minimised.

By Newton's method. Three devices save passes over a large sample: a start from a tenth of the
items, found in the same way; the Hessian of that tenth, which is all that a direction needs; and a
change of variables that makes a small sample's Hessian the identity. Where pairs are kept and a
matrix costs as much as several passes, BFGS corrects the one of fewer items instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from rankbook._progress import Report, newton_callback
from rankbook.models._pair_objective import MAX_COLUMNS, Fit, PairRisk, strong_convexity_gap
from rankbook.solvers import NewtonResult, minimize
from rankbook.solvers.quasi_newton import minimize_from

__all__ = ["COARSE", "coarser", "minimize_smooth", "solve", "with_help"]

# Below this many items a thinner sample is not worth fitting first.
COARSE = 20_000
# Kept pairs that are as much work as an item.
_PAIRS_OF_ITEM = 20
# Steps along the directions of a part of the items before all of them are used.
_PROXY_STEPS = 12
# Steps of little gain, from a matrix that is not the whole's, before that is formed.
_PATIENCE = 1
# A part must have this many items for each column to stand for the whole.
_PROXY_ITEMS = 200
# The same where the steps themselves correct the part's Hessian.
_GUESS_ITEMS = 50
# Half the squared decrement at which a start is good enough, where a step costs a Hessian.
_COARSE_TOL = 1e-4
# Curvature that flat directions are given, of columns of unit size; and of how few items another
# minimum is sought without it, in case it was too much.
_FLAT, _FEW = 1e-13, 2000


def solve(risk: PairRisk, coef: np.ndarray, max_iter: int, **options: Any) -> NewtonResult:
    """Newton in the objective's basis, from and to coefficients.

    Steps along a proxy's directions converge linearly, fast if the proxy is like the whole; if
    not, the whole sample's Hessian takes over.
    """
    if risk.proxy is None and risk.guess is None:
        return _newton(risk, coef, max_iter=max_iter, **options)
    if risk.guess is not None:
        return _from_guesses(risk, coef, max_iter, **options)
    result = _newton(risk, coef, max_iter=min(max_iter, _PROXY_STEPS), **options)
    return _continued(risk, result, max_iter, **options)


def _from_guesses(risk: PairRisk, coef: np.ndarray, max_iter: int, **options: Any) -> NewtonResult:
    """BFGS from a part's Hessian, from the whole's where that was no good, or Newton after all."""
    assert risk.guess is not None
    steps = min(max_iter, _PROXY_STEPS)
    result = minimize_from(risk, coef, risk.guess, max_iter=steps, patience=_PATIENCE, **options)
    taken = result.n_iter
    if not result.converged and taken < max_iter:
        hessian = risk.hessian(risk.point(result.x))
        if _is_definite(hessian):
            steps = min(max_iter - taken, _PROXY_STEPS)
            result = minimize_from(
                risk, result.x, hessian, max_iter=steps, patience=_PATIENCE, **options
            )
            result = replace(result, n_iter=result.n_iter + taken)
    return _continued(risk, result, max_iter, **options)


def _continued(risk: PairRisk, result: NewtonResult, max_iter: int, **options: Any) -> NewtonResult:
    """Newton's own steps, if there is some way to go."""
    taken = result.n_iter
    if result.converged or taken >= max_iter:
        return result
    exact = risk.exact()
    kept = exact.sums.n_kept is not None
    if kept and exact.basis is None and not exact.forms_hessian and _may_whiten(exact):
        exact = exact.in_basis(exact.whitening(result.x))
    result = _newton(exact, result.x, max_iter=max_iter - taken, **options)
    if exact.basis is not risk.basis:
        result = replace(result, gradient=_out_of_basis(exact, result.gradient))
    return replace(result, n_iter=result.n_iter + taken)


def _may_whiten(risk: PairRisk) -> bool:
    n, p = risk.design.shape
    return p <= min(MAX_COLUMNS, n)


def _newton(risk: PairRisk, coef: np.ndarray, **options: Any) -> NewtonResult:
    result = minimize(risk, _in_basis(risk, coef), **options)
    return replace(result, x=risk.coef(result.x))


def coarser(risk: PairRisk) -> PairRisk | None:
    """The objective of a tenth of the items, where there are many."""
    size = _size(risk)
    return risk.thinned(max(0.1, COARSE / 4 / size)) if size > COARSE else None


def _size(risk: PairRisk) -> float:
    """The number of items, or more where many pairs of each are kept."""
    return max(risk.design.shape[0], (risk.sums.n_kept or 0) / _PAIRS_OF_ITEM)


def with_help(risk: PairRisk, coarse: PairRisk, basis: np.ndarray | None) -> PairRisk:
    """The objective in a basis, with a part of the items for its Hessian if that is enough."""
    n, p = coarse.design.shape
    return risk.in_basis(basis, coarse.in_basis(None) if n >= _PROXY_ITEMS * p else None)


def minimize_smooth(risk: PairRisk, tol: float, max_iter: int, report: Report | None = None) -> Fit:
    """Minimise for a differentiable loss.

    Stops when half the squared Newton decrement is at most `tol` times the objective; without a
    ridge, whose objective may have no minimum but zero, times that at the start.
    """
    zero = np.zeros(risk.design.shape[1])
    at_zero = risk.sums.total * float(risk.sums.loss(0.0)) / risk.sums.different
    coef, risk, value = _smooth_start(risk)
    if risk.ridge.min() < _FLAT:
        # Collinear columns leave flat directions, along which a step would be all rounding.
        risk = risk.damped(_FLAT)
    if coef.any() and not risk.value(_in_basis(risk, coef)) <= at_zero:
        # The items left out of the start may lose much there, or overflow.
        coef = zero
    callback = newton_callback(report)
    result = _closer(risk, coef, max_iter, tol, value, callback)
    gap = _gap(risk, result)
    few = risk.damping and risk.ridge.any() and _size(risk) <= _FEW
    if few and gap > tol * result.value:
        # Columns in large units, or pairs far apart, may have less curvature than flat directions
        # were given, so that steps and the estimate of what is left were too short.
        other = _closer(risk.damped(0.0), zero, max_iter, tol, at_zero, callback)
        if other.value < result.value:
            result, gap = other, _gap(risk, other)
    return Fit(result.x, result.value, gap, result.n_iter, result.message, result.converged)


def _gap(risk: PairRisk, result: NewtonResult) -> float:
    return strong_convexity_gap(_out_of_basis(risk, result.gradient), risk.ridge)


def _closer(
    risk: PairRisk, coef: np.ndarray, max_iter: int, tol: float, value: float, callback: Any
) -> NewtonResult:
    """Newton until what is left is small beside the objective, which is about `value` at first."""
    result = solve(risk, coef, max_iter, tol=tol * value, callback=callback)
    while result.converged and result.n_iter < max_iter and risk.ridge.any():
        # The objective may have fallen far below that at the start.
        goal = tol * result.value
        if result.decrement <= goal or result.reason == "rounding":
            break
        taken = result.n_iter
        result = solve(risk, result.x, max_iter - taken, tol=goal, callback=callback)
        result = replace(result, n_iter=result.n_iter + taken)
    return result


def _in_basis(risk: PairRisk, coef: np.ndarray) -> np.ndarray:
    return coef if risk.basis is None else np.linalg.solve(risk.basis, coef)


def _out_of_basis(risk: PairRisk, gradient: np.ndarray) -> np.ndarray:
    return gradient if risk.basis is None else np.linalg.solve(risk.basis.T, gradient)


def _guess(risk: PairRisk, coarse: PairRisk, result: NewtonResult) -> np.ndarray | None:
    """The Hessian of fewer items, where that is a matrix that tells the whole's."""
    few = _size(coarse) < _GUESS_ITEMS * coarse.design.shape[1]
    if few or not (risk.forms_hessian and coarse.forms_hessian):
        return None
    own = coarse.guess is None and coarse.proxy is None
    hessian = result.hessian if own else coarse.hessian(coarse.point(result.x))
    return hessian if _is_definite(hessian) else None


def _is_definite(hessian: np.ndarray) -> bool:
    """Whether the matrix is not singular in rounding, as collinear columns make it."""
    try:
        pivots = np.diagonal(cholesky(hessian, check_finite=False))
    except LinAlgError:
        return False
    return bool(pivots.min() ** 2 > _FLAT * np.trace(hessian))


def _smooth_start(risk: PairRisk) -> tuple[np.ndarray, PairRisk, float]:
    """A start, a basis and about the value, from a tenth of the items where there are many."""
    n, p = risk.design.shape
    coarse = coarser(risk)
    if coarse is not None:
        start, coarse, _ = _smooth_start(coarse)
        result = solve(coarse, start, 20, tol=_COARSE_TOL if risk.forms_hessian else 1e-6)
        basis = coarse.basis
        guess = _guess(risk, coarse, result)
        if guess is not None:
            return result.x, risk.with_guess(guess), result.value
        if coarse.design.shape[0] <= COARSE and p <= MAX_COLUMNS and not risk.forms_hessian:
            basis = coarse.in_basis(None).whitening(result.x)
        return result.x, with_help(risk, coarse, basis), result.value
    coef = np.zeros(p)
    if _may_whiten(risk) and not risk.forms_hessian:
        if risk.sums.n_kept is None:
            risk = risk.in_basis(risk.whitening(coef))
        else:
            risk = risk.with_guess(_multiple_of_identity(risk, coef))
    return coef, risk, risk.value(coef)


def _multiple_of_identity(risk: PairRisk, coef: np.ndarray) -> np.ndarray:
    """The identity times the Hessian's curvature along the gradient."""
    point, p = risk.point(coef), len(coef)
    gradient = risk.loss_gradient(point) + risk.ridge * coef
    unit = gradient / (np.linalg.norm(gradient) or 1.0)
    curvature = float(unit @ risk.product(point, unit))
    return (curvature or 1.0) * np.eye(p)
