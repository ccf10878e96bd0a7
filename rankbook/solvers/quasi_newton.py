r"""BFGS from a Hessian that is nearly right: that of a part of the sample, or of a point nearby.

A Newton step with such a matrix converges linearly; the differences of gradients along the steps
correct it, and no other Hessian is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rankbook.solvers.newton import NewtonResult

__all__ = ["bfgs_update", "minimize_from"]

_ARMIJO = 1e-4
_MAX_HALVINGS = 5
_SLOW = 1 / 3
# Curvature along a step, of the size of step and difference, below which it corrects nothing.
_FLAT = 1e-12


def bfgs_update(hessian: np.ndarray, moved: np.ndarray, change: np.ndarray) -> np.ndarray:
    r"""Return the matrix next to a Hessian that takes a step to the gradient's change along it.

    .. math:: B - \frac{B s s^\top B}{s^\top B s} + \frac{y y^\top}{y^\top s}

    Parameters
    ----------
    hessian : ndarray of shape (p, p)
        B, positive definite.
    moved, change : ndarray of shape (p,)
        The step s and the change y of the gradient.

    Returns
    -------
    ndarray of shape (p, p)
        Positive definite again; B itself where :math:`y^\top s` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> bfgs_update(np.eye(2), np.array([1.0, 0.0]), np.array([3.0, 0.0])).tolist()
    [[3.0, 0.0], [0.0, 1.0]]
    """
    image, curvature = hessian @ moved, float(change @ moved)
    if not curvature > 0.0:
        return hessian
    lost, gained = np.outer(image, image / (image @ moved)), np.outer(change, change / curvature)
    return hessian - lost + gained


def minimize_from(
    objective: Any,
    x0: np.ndarray,
    hessian: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    patience: int | None = None,
    callback: Callable[[int, np.ndarray, float, float], bool | None] | None = None,
) -> NewtonResult:
    r"""Minimise a smooth convex function from a matrix close to its Hessian.

    Parameters
    ----------
    objective : object
        Offers ``value_gradient(x)``.
    x0 : ndarray of shape (p,)
        Start.
    hessian : ndarray of shape (p, p)
        Positive definite.
    tol : float
        Stop when :math:`\tfrac12 g^\top B^{-1} g`, B the corrected matrix, is at most this.
    max_iter : int
        Largest number of steps.
    patience : int, optional
        So many steps that do not bring the decrement to a third end the iteration.
    callback : callable, optional
        As for `rankbook.solvers.newton.minimize`.

    Returns
    -------
    NewtonResult
        The last iterate, with the corrected matrix as its Hessian; `reason` is "line_search" or,
        for want of patience, "max_iter" where the matrix was too far from the Hessian.

    Examples
    --------
    >>> import numpy as np
    >>> class Example:
    ...     def value_gradient(self, x):
    ...         return float(np.exp(x[0]) - 2 * x[0]), np.exp(x) - 2
    >>> result = minimize_from(Example(), np.zeros(1), np.eye(1), tol=1e-14, max_iter=20)
    >>> bool(abs(result.x[0] - np.log(2)) < 1e-6), result.converged
    (True, True)
    """
    factor = cho_factor(hessian, check_finite=False)
    x = x0
    value, gradient = objective.value_gradient(x)
    pairs: list[tuple[np.ndarray, np.ndarray, float]] = []
    n_iter, n_evaluations, reason, slow, decrement = 0, 1, "", 0, np.inf
    while True:
        step = -_inverse_product(factor, pairs, gradient)
        slow += -0.5 * float(gradient @ step) > _SLOW * decrement
        decrement = -0.5 * float(gradient @ step)
        if decrement <= tol:
            reason = "decrement"
        elif callback is not None and callback(n_iter, x, value, decrement):
            reason = "callback"
        elif n_iter >= max_iter or (patience is not None and slow >= patience):
            reason = "max_iter"
        if reason:
            break
        found = None
        for halving in range(_MAX_HALVINGS):
            t = 0.5**halving
            there, slope = objective.value_gradient(x + t * step)
            n_evaluations += 1
            if np.isfinite(there) and there <= value - 2.0 * _ARMIJO * t * decrement:
                found = t * step, there, slope
                break
        if found is None:
            reason = "line_search"
            break
        moved, value, new = found[0], found[1], found[2]
        change = new - gradient
        curvature = float(moved @ change)
        if curvature > _FLAT * float(np.linalg.norm(moved) * np.linalg.norm(change)):
            pairs.append((moved, change, curvature))
        x, gradient, n_iter = x + moved, new, n_iter + 1
    matrix = hessian
    for moved, change, _ in pairs:
        matrix = bfgs_update(matrix, moved, change)
    return NewtonResult(
        x=x,
        value=float(value),
        gradient=gradient,
        hessian=matrix,
        gradient_norm=float(np.max(np.abs(gradient), initial=0.0)),
        decrement=decrement,
        n_iter=n_iter,
        n_evaluations=n_evaluations,
        converged=reason == "decrement",
        reason=reason,
    )


def _inverse_product(
    factor: Any, pairs: list[tuple[np.ndarray, np.ndarray, float]], gradient: np.ndarray
) -> np.ndarray:
    """The inverse of the corrected matrix times a gradient, by two loops over the steps."""
    direction, shares = gradient.copy(), []
    for moved, change, curvature in reversed(pairs):
        share = float(moved @ direction) / curvature
        direction -= share * change
        shares.append(share)
    direction = cho_solve(factor, direction, check_finite=False)
    for (moved, change, curvature), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - float(change @ direction) / curvature) * moved
    return direction
