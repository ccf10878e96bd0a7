r"""Damped Newton for smooth convex functions, with a result that says why it stopped.

One engine serves every estimator whose objective has an analytic Hessian. The Hessian comes as a
dense array (few parameters) or as a function ``v -> H v`` (many, or too costly to form); in the
second case the Newton system is solved by truncated conjugate gradients.

The step :math:`d = -H^{-1} g` is shortened by halving until it satisfies Armijo's condition

.. math:: f(x + t d) \le f(x) + 10^{-4} \, t \, g^\top d,

or, where rounding may hide so small a decrease, what that becomes for a quadratic (Hager and Zhang,
2005),

.. math:: \nabla f(x + t d)^\top d \le (2 \cdot 10^{-4} - 1) \, g^\top d,

and the iteration stops on the *Newton decrement* :math:`\lambda^2 = g^\top H^{-1} g`: half of it is
the decrease that the quadratic model promises, hence an estimate of :math:`f(x) - \min f` that
does not depend on the units of the parameters, as a gradient norm does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankbook._arrays import as_float, require_finite
from rankbook._validation import check_scalar

__all__ = ["NewtonResult", "Objective", "minimize"]

_ARMIJO = 1e-4
_MAX_HALVINGS = 60
# Share of the value below which the decrease to be had may be lost in its rounding.
_ROUGH = 1e-9
_EPS = np.finfo(float).eps

_MESSAGES = {
    "decrement": "half the squared Newton decrement is at most tol",
    "zero_gradient": "the gradient is exactly zero",
    "rounding": "no step lowers the value by more than its rounding error",
    "max_iter": "max_iter Newton steps were taken before the decrement fell below tol",
    "line_search": "no point along the Newton direction satisfies Armijo's condition",
    "callback": "the callback asked to stop",
}


class Objective(Protocol):
    """What `minimize` needs of a function.

    Both methods may return an infinite or NaN value to say that ``x`` is outside the domain; the
    gradient and the Hessian are then ignored and may be None.
    """

    def value(self, x: np.ndarray) -> float:
        """Value at x."""

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, np.ndarray, Any]:
        """Value, gradient, and Hessian: a (p, p) array or a callable v -> H v."""


@dataclass(frozen=True)
class NewtonResult:
    """Where `minimize` stopped, and why.

    Attributes
    ----------
    x : ndarray of shape (p,)
        The last iterate.
    value : float
        The function's value there.
    gradient : ndarray of shape (p,)
        Its gradient there.
    hessian : ndarray or callable
        Its Hessian there, as the objective gave it.
    gradient_norm : float
        Largest absolute entry of the gradient.
    decrement : float
        Half the squared Newton decrement, an estimate of the value minus the minimum.
    n_iter : int
        Newton steps taken.
    n_evaluations : int
        Points at which the function was evaluated.
    converged : bool
        True if `reason` is "decrement", "zero_gradient" or "rounding".
    reason : str
        "decrement", "zero_gradient", "rounding", "max_iter", "line_search" or "callback".
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: Any
    gradient_norm: float
    decrement: float
    n_iter: int
    n_evaluations: int
    converged: bool
    reason: str

    @property
    def message(self) -> str:
        """`reason` in a sentence."""
        return _MESSAGES[self.reason]


def _check_start(objective: Any, x0: Any) -> np.ndarray:
    if not hasattr(objective, "value_gradient_hessian"):
        raise TypeError(f"objective must offer value_gradient_hessian, got {objective!r}")
    x = np.array(as_float(x0, "x0"))
    if x.ndim != 1:
        raise ValueError(f"x0 must be one-dimensional, got shape {x.shape}")
    require_finite(x, "x0")
    return x


def minimize(
    objective: Objective,
    x0: np.ndarray,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    callback: Callable[[int, np.ndarray, float, float], bool | None] | None = None,
) -> NewtonResult:
    r"""Minimise a convex function by damped Newton steps.

    Parameters
    ----------
    objective : Objective
        Offers ``value(x)`` and ``value_gradient_hessian(x)``. A generalised Hessian, such as that
        of the squared hinge, is as good as a Hessian: the method is then semismooth Newton.
    x0 : array-like of shape (p,)
        Start; the value there must be finite.
    tol : float, default=1e-10
        Stop when :math:`\tfrac12 g^\top H^{-1} g \le` `tol`. It has the units of the value, so an
        objective that is a sum over items wants a larger one than a mean.
    max_iter : int, default=100
        Largest number of Newton steps.
    callback : callable, optional
        Called as ``callback(n_iter, x, value, decrement)`` at every iterate, the start included;
        a true return value ends the iteration.

    Returns
    -------
    NewtonResult
        The last iterate, with `converged` and `reason`.

    Raises
    ------
    ValueError
        If the value, the gradient or the Hessian at `x0` is not finite, or a product with the
        Hessian at any iterate is not.

    Notes
    -----
    Where a dense Hessian is not positive definite a multiple of the identity is added to it,
    tenfold larger at each attempt; a conjugate-gradient solve stops at a direction of
    non-positive curvature. Either way the step is a descent direction.

    A value may be a difference of large sums, and then Armijo's condition compares noise long
    before the gradient does. So once the decrement is at most 1e-9 of the value a step to about
    the same value is accepted by its slope. Once it is of the size of the value's own rounding,
    about ``eps * abs(value)``, the condition is relaxed by a few of these, and a search that fails
    there is reported as "rounding", which counts as convergence.

    References
    ----------
    W. W. Hager and H. Zhang, "A new conjugate gradient method with guaranteed descent and an
    efficient line search", SIAM Journal on Optimization 16, 2005: section 4.

    Examples
    --------
    The minimum of :math:`e^x - 2x` is at :math:`\log 2`:

    >>> import numpy as np
    >>> class Example:
    ...     def value(self, x):
    ...         return float(np.exp(x[0]) - 2 * x[0])
    ...     def value_gradient_hessian(self, x):
    ...         e = np.exp(x)
    ...         return self.value(x), e - 2, np.diag(e)
    >>> result = minimize(Example(), [0.0], tol=1e-14)
    >>> bool(abs(result.x[0] - np.log(2)) < 1e-8), result.reason
    (True, 'decrement')
    """
    x = _check_start(objective, x0)
    tol = check_scalar(tol, "tol", low=0.0)
    max_iter = check_scalar(max_iter, "max_iter", low=0, integer=True)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        value, gradient, hessian = objective.value_gradient_hessian(x)
        if not np.isfinite(value):
            raise ValueError(f"the objective must be finite at x0, got {value}")
        first_norm = _norm(gradient)
        n_iter, n_evaluations, reason, decrement = 0, 1, "", np.inf
        while not reason:
            if not np.all(np.isfinite(gradient)):
                raise ValueError("the objective's gradient is not finite where the value is")
            step = _newton_step(hessian, gradient, first_norm)
            decrement = -0.5 * float(gradient @ step)
            asked = callback is not None and callback(n_iter, x, float(value), decrement)
            reason = _stop(gradient, decrement, tol, n_iter, max_iter, bool(asked))
            if reason:
                break
            found = _line_search(objective, x, value, step, decrement)
            n_evaluations += found.n_evaluations
            if found.value is None:
                reason = "rounding" if _is_noise(decrement, value) else "line_search"
                break
            x, value, gradient, hessian = found.x, found.value, found.gradient, found.hessian
            n_iter += 1
    return NewtonResult(
        x=x,
        value=float(value),
        gradient=gradient,
        hessian=hessian,
        gradient_norm=float(np.max(np.abs(gradient), initial=0.0)),
        decrement=decrement,
        n_iter=n_iter,
        n_evaluations=n_evaluations,
        converged=reason in ("decrement", "zero_gradient", "rounding"),
        reason=reason,
    )


def _stop(
    gradient: np.ndarray, decrement: float, tol: float, n_iter: int, max_iter: int, asked: bool
) -> str:
    """The reason to stop at this iterate, or "" to go on."""
    if not np.any(gradient):
        return "zero_gradient"
    if decrement <= tol:
        return "decrement"
    if asked:
        return "callback"
    return "max_iter" if n_iter >= max_iter else ""


def _is_noise(decrement: float, value: float) -> bool:
    """Whether the decrease still to be had is of the size of the value's rounding error."""
    return bool(decrement <= 1e3 * _EPS * max(1.0, abs(value)))


@dataclass(frozen=True)
class _Found:
    """Outcome of a line search; `value` is None where it failed."""

    n_evaluations: int
    x: Any = None
    value: float | None = None
    gradient: Any = None
    hessian: Any = None


def _line_search(
    objective: Objective, x: np.ndarray, value: float, step: np.ndarray, decrement: float
) -> _Found:
    """Halve the step until Armijo's condition holds, in values or, where these round, in slopes.

    The full step is accepted nearly always, so it is evaluated with its derivatives at once;
    shorter ones are tried by value.
    """
    slack = 8 * _EPS * max(1.0, abs(value)) if _is_noise(decrement, value) else 0.0
    rough = _ROUGH * max(1.0, abs(value))
    highest = value + rough if decrement <= rough else -np.inf
    t = 1.0
    for trial in range(1, _MAX_HALVINGS + 1):
        x_new = x + t * step
        if np.array_equal(x_new, x):
            break
        if trial == 1:
            value_new, gradient, hessian = objective.value_gradient_hessian(x_new)
        else:
            value_new = objective.value(x_new)
        bound = value - _ARMIJO * t * 2.0 * decrement + slack
        if np.isfinite(value_new) and value_new <= max(bound, highest):
            if trial > 1:
                value_new, gradient, hessian = objective.value_gradient_hessian(x_new)
            slope = 0.0 if value_new <= bound else float(gradient @ step)
            flat_enough = slope <= (1.0 - 2.0 * _ARMIJO) * 2.0 * decrement
            if flat_enough and _has_derivatives(gradient, hessian):
                return _Found(trial, x_new, value_new, gradient, hessian)
        t *= 0.5
    return _Found(trial)


def _has_derivatives(gradient: np.ndarray, hessian: Any) -> bool:
    """Whether an iteration can go on from a point: far out the value alone may be finite."""
    rows = gradient if callable(hessian) else np.vstack([gradient, hessian])
    return bool(np.isfinite(rows).all())


def _newton_step(hessian: Any, gradient: np.ndarray, first_norm: float) -> np.ndarray:
    """Solve H d = -g, exactly for an array, by truncated CG for a callable."""
    if not np.any(gradient):
        return np.zeros_like(gradient)
    if callable(hessian):
        return _truncated_cg(hessian, -gradient, first_norm)
    return _dense_step(np.asarray(hessian, dtype=float), gradient)


def _dense_step(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Cholesky, with a growing ridge where the matrix is not positive definite."""
    if not np.all(np.isfinite(hessian)):
        raise ValueError("the objective's Hessian is not finite where the value is")
    diagonal = np.abs(np.diagonal(hessian))
    scale = float(diagonal.max(initial=0.0)) or 1.0
    ridge = 0.0
    while True:
        try:
            factor = cho_factor(hessian + ridge * np.eye(len(gradient)), check_finite=False)
            step = -cho_solve(factor, gradient, check_finite=False)
            if np.all(np.isfinite(step)):
                return step
        except LinAlgError:
            pass
        ridge = max(10.0 * ridge, 1e-12 * scale, np.finfo(float).tiny)


def _truncated_cg(
    product: Callable[[np.ndarray], np.ndarray], b: np.ndarray, first_norm: float
) -> np.ndarray:
    """Conjugate gradients on H d = b, to a residual that tightens as the gradient shrinks.

    The relative residual asked for is sqrt(|g| / |g_0|), at most 0.1 and at least 1e-8, which
    keeps the outer convergence superlinear without solving the first systems too well.
    """
    share = min(0.1, max(1e-8, (_norm(b) / first_norm) ** 0.5))
    return conjugate_gradients(product, b, share, 10 * len(b) + 10)[0]


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], b: np.ndarray, share: float, max_products: int
) -> tuple[np.ndarray, bool]:
    """Solve H d = b until the residual is a share of b, or H shows a flat direction.

    Parameters
    ----------
    product : callable
        The function v -> H v.
    b : ndarray of shape (p,)
        Right-hand side, not zero.
    share : float
        Norm of the residual over that of b at which to stop.
    max_products : int
        Largest number of products.

    Returns
    -------
    d : ndarray of shape (p,)
        A solution, or a descent direction where H is not positive definite.
    reached : bool
        False if the products were used up.

    Examples
    --------
    >>> import numpy as np
    >>> d, reached = conjugate_gradients(lambda v: 2.0 * v, np.array([1.0, 3.0]), 1e-8, 5)
    >>> d.tolist(), reached
    ([0.5, 1.5], True)
    """
    # In units of the largest entry, so that no square leaves the range of floats.
    unit = float(np.abs(b).max())
    b = b / unit
    b_norm = float(np.linalg.norm(b))
    target = b_norm * share
    d = np.zeros_like(b)
    residual = b.copy()
    direction = b.copy()
    rho = b_norm**2
    for _ in range(max_products):
        image = np.asarray(product(direction), dtype=float)
        if not np.all(np.isfinite(image)):
            raise ValueError("the Hessian-vector product is not finite where the value is")
        curvature = float(direction @ image)
        if curvature <= 0.0:
            # Flat or concave: what has been solved so far is a descent direction.
            return unit * (d if np.any(d) else b), True
        step = rho / curvature
        d += step * direction
        residual -= step * image
        rho_new = float(residual @ residual)
        if rho_new**0.5 <= target:
            return unit * d, True
        direction = residual + (rho_new / rho) * direction
        rho = rho_new
    return unit * d, False


def _norm(v: np.ndarray) -> float:
    """Euclidean norm of a vector whose squares may overflow or underflow."""
    unit = float(np.abs(v).max(initial=0.0))
    return unit * float(np.linalg.norm(v / unit)) if 0.0 < unit < np.inf else unit
