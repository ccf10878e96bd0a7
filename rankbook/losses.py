r"""Surrogate losses of a score difference: values, derivatives, and the facts that solvers ask for.

A **surrogate** replaces the indicator that a pair is misranked, :math:`1[s < 0]` with
:math:`s = f(x) - f(x')` for an item :math:`x` that should be above :math:`x'`, by a convex function
of :math:`s`. It is **ranking calibrated** if on every population of two classes every minimiser of
its risk over all scorers has the least ranking risk, that is, orders items of different likelihood
ratio strictly as the ratio does. Theorem 2 of Uematsu and Lee (2013) gives conditions that suffice:
convex, non-increasing and differentiable with :math:`\ell'(0) < 0`.

Other modules ask a loss for facts, never for its name: a loss of one's own is a subclass of `Loss`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from rankbook._loss import Loss, SmoothedHinge, real
from rankbook._validation import check_choice

__all__ = [
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "get",
]


class Exponential(Loss):
    r"""The loss of RankBoost and AdaBoost, :math:`\ell(s) = e^{-s}`.

    Examples
    --------
    >>> loss = Exponential()
    >>> loss([0.0, 1.0]).round(4).tolist()
    [1.0, 0.3679]
    >>> loss.derivative([0.0]).tolist()
    [-1.0]
    """

    name = "exponential"
    is_ranking_calibrated = True
    is_proper = True
    is_smooth = True
    is_multiplicative = True

    def __call__(self, s: Any) -> np.ndarray:
        """Return exp(-s)."""
        with np.errstate(over="ignore"):
            return np.exp(-real(s))

    def derivative(self, s: Any) -> np.ndarray:
        """Return -exp(-s)."""
        return -self(s)

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return exp(-s)."""
        return self(s)

    def terms(self, s: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the value and both derivatives, from one exponential."""
        value = self(s)
        return value, -value, value

    def conjugate(self, u: Any) -> np.ndarray:
        """Return -u log(-u) + u for u <= 0."""
        from scipy.special import xlogy

        g = -real(u, "u")
        inside = np.where((g >= 0) & (g < np.inf), g, 0.0)
        return np.where(inside == g, xlogy(inside, inside) - inside, np.inf)

    def link(self, p: float) -> float:
        """Return half the log odds."""
        return 0.5 * float(np.log(p) - np.log1p(-p))

    def expression(self, z: Any) -> Any:
        """Return exp(-z) as a cvxpy expression."""
        import cvxpy as cp

        return cp.exp(-z)


class Logistic(Loss):
    r"""The loss of RankNet and logistic regression, :math:`\ell(s) = \log(1 + e^{-s})`.

    Examples
    --------
    >>> loss = Logistic()
    >>> loss([0.0, 1000.0, -1000.0]).round(4).tolist()
    [0.6931, 0.0, 1000.0]
    >>> loss.derivative([0.0]).tolist()
    [-0.5]
    """

    name = "logistic"
    is_ranking_calibrated = True
    is_proper = True
    is_smooth = True
    tail = 48.0

    def __call__(self, s: Any) -> np.ndarray:
        """Return log(1 + exp(-s)), without overflow."""
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            return np.logaddexp(0.0, -real(s))

    def derivative(self, s: Any) -> np.ndarray:
        """Return -1 / (1 + exp(s))."""
        from scipy.special import expit

        return -expit(-real(s))

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 1 / ((1 + exp(s)) (1 + exp(-s)))."""
        from scipy.special import expit

        s = real(s)
        return expit(s) * expit(-s)

    def terms(self, s: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the value and both derivatives, from one exponential."""
        s = real(s)
        e = np.exp(-np.abs(s))
        share = 1.0 / (1.0 + e)
        value = np.log1p(e)
        value -= np.minimum(s, 0.0)
        # 1 where s is negative, e elsewhere; a branch would be guessed wrong for half of the pairs.
        slope = np.maximum(e, s < 0.0)
        slope *= -share
        share *= share
        share *= e
        return value, slope, share

    def conjugate(self, u: Any) -> np.ndarray:
        """Return g log g + (1 - g) log(1 - g) with g = -u, for g in [0, 1]."""
        from scipy.special import xlog1py, xlogy

        g = -real(u, "u")
        inside = np.clip(g, 0.0, 1.0)
        value = xlogy(inside, inside) + xlog1py(1.0 - inside, -inside)
        return np.where((g >= 0) & (g <= 1), value, np.inf)

    def link(self, p: float) -> float:
        """Return the log odds."""
        return float(np.log(p) - np.log1p(-p))

    def expression(self, z: Any) -> Any:
        """Return log(1 + exp(-z)) as a cvxpy expression."""
        import cvxpy as cp

        return cp.logistic(-z)


class Hinge(Loss):
    r"""The loss of RankSVM, :math:`\ell(s) = (1 - s)_+`: convex, not differentiable at 1.

    It is the tightest convex bound of the misranking loss that has slope -1 at zero, but a kink
    makes ties optimal between items of different likelihood ratio, so it is not calibrated.

    Examples
    --------
    >>> loss = Hinge()
    >>> loss([-1.0, 0.0, 1.0, 2.0]).tolist()
    [2.0, 1.0, 0.0, 0.0]
    >>> loss.is_ranking_calibrated
    False
    """

    name = "hinge"
    is_ranking_calibrated = False
    is_proper = False
    is_smooth = False
    is_piecewise_linear = True
    reaches_zero = True
    hinge_parts = ((1.0, 1.0, 1),)

    def __call__(self, s: Any) -> np.ndarray:
        """Return max(1 - s, 0)."""
        return np.maximum(1.0 - real(s), 0.0)

    def derivative(self, s: Any) -> np.ndarray:
        """Return -1 up to and at s = 1, 0 beyond (the left derivative)."""
        return np.where(real(s) <= 1.0, -1.0, 0.0)

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 0, the second derivative wherever it exists."""
        return np.zeros_like(real(s))

    def conjugate(self, u: Any) -> np.ndarray:
        """Return u for -1 <= u <= 0."""
        u = real(u, "u")
        return np.where((u >= -1) & (u <= 0), u, np.inf)

    def rational(self, s: Fraction) -> Fraction:
        """Return max(1 - s, 0)."""
        return max(1 - s, Fraction(0))

    def smoothed(self, width: float) -> Loss:
        """Return the hinge with a parabola of the given width at its kink."""
        return SmoothedHinge(width)

    def link(self, p: float) -> float:
        """Return 1 or -1, the more probable label, or 0."""
        return float(np.sign(p - 0.5))

    def expression(self, z: Any) -> Any:
        """Return max(1 - z, 0) as a cvxpy expression."""
        import cvxpy as cp

        return cp.pos(1 - z)


class SquaredHinge(Loss):
    r"""The squared hinge, :math:`\ell(s) = (1 - s)_+^2`: differentiable, hence calibrated.

    Examples
    --------
    >>> loss = SquaredHinge()
    >>> loss([-1.0, 0.0, 1.0, 2.0]).tolist()
    [4.0, 1.0, 0.0, 0.0]
    >>> loss.derivative([0.0, 2.0]).tolist()
    [-2.0, 0.0]
    """

    name = "squared_hinge"
    is_ranking_calibrated = True
    is_proper = True
    is_smooth = True
    reaches_zero = True
    hinge_parts = ((1.0, 1.0, 2),)

    def __call__(self, s: Any) -> np.ndarray:
        """Return max(1 - s, 0) squared."""
        with np.errstate(over="ignore"):
            return np.maximum(1.0 - real(s), 0.0) ** 2

    def derivative(self, s: Any) -> np.ndarray:
        """Return -2 max(1 - s, 0)."""
        # Adding zero turns the -0.0 beyond the kink into 0.0.
        with np.errstate(over="ignore"):
            return -2.0 * np.maximum(1.0 - real(s), 0.0) + 0.0

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 2 below s = 1, 0 at it and beyond."""
        return np.where(real(s) < 1.0, 2.0, 0.0)

    def conjugate(self, u: Any) -> np.ndarray:
        """Return u + u^2 / 4 for u <= 0."""
        u = real(u, "u")
        with np.errstate(over="ignore"):
            return np.where(u <= 0, u * (1 + u / 4), np.inf)

    def rational(self, s: Fraction) -> Fraction:
        """Return max(1 - s, 0) squared."""
        return max(1 - s, Fraction(0)) ** 2

    def link(self, p: float) -> float:
        """Return 2 p - 1."""
        return 2.0 * p - 1.0

    def expression(self, z: Any) -> Any:
        """Return max(1 - z, 0) squared as a cvxpy expression."""
        import cvxpy as cp

        return cp.square(cp.pos(1 - z))


class Squared(Loss):
    r"""Pairwise least squares, :math:`\ell(s) = (1 - s)^2`: calibrated, though it rises from 1 on.

    Theorem 2 of Uematsu and Lee (2013) does not cover it, since it is not non-increasing. But with
    :math:`\eta = g_+ / (g_+ + g_-)`, the densities of the two classes, its risk is minimised by

    .. math:: f(x) = c + (2 - m)\,\eta(x),

    where :math:`m \le 1` is the difference of the two classes' mean scores: an increasing function
    of the likelihood ratio. (Minimising over :math:`f(x)` gives
    :math:`(g_+ + g_-) f = g_+ (1 + m_-) + g_- (m_+ - 1)`, :math:`m_\pm` the mean scores.)

    Examples
    --------
    >>> loss = Squared()
    >>> loss([-1.0, 0.0, 1.0, 2.0]).tolist()
    [4.0, 1.0, 0.0, 1.0]
    >>> loss.is_ranking_calibrated, loss.is_non_increasing
    (True, False)
    """

    name = "squared"
    is_ranking_calibrated = True
    is_proper = True
    is_smooth = True
    is_non_increasing = False
    reaches_zero = True
    is_quadratic = True

    def __call__(self, s: Any) -> np.ndarray:
        """Return (1 - s) squared."""
        with np.errstate(over="ignore"):
            return (1.0 - real(s)) ** 2

    def derivative(self, s: Any) -> np.ndarray:
        """Return -2 (1 - s)."""
        with np.errstate(over="ignore"):
            return -2.0 * (1.0 - real(s))

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 2."""
        return np.full_like(real(s), 2.0)

    def conjugate(self, u: Any) -> np.ndarray:
        """Return u + u^2 / 4."""
        u = real(u, "u")
        with np.errstate(over="ignore"):
            return u * (1 + u / 4)

    def rational(self, s: Fraction) -> Fraction:
        """Return (1 - s) squared."""
        return (1 - s) ** 2

    def link(self, p: float) -> float:
        """Return 2 p - 1."""
        return 2.0 * p - 1.0

    def expression(self, z: Any) -> Any:
        """Return (1 - z) squared as a cvxpy expression."""
        import cvxpy as cp

        return cp.square(1 - z)


_LOSSES = {cls.name: cls for cls in (Exponential, Logistic, Hinge, SquaredHinge, Squared)}


def get(loss: str | Loss) -> Loss:
    """Return a loss by name, or the loss itself.

    Parameters
    ----------
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "squared"} or Loss
        A name, or a loss, which is handed back.

    Returns
    -------
    Loss
        The loss.

    Raises
    ------
    ValueError
        If the name is not known.

    Examples
    --------
    >>> get("hinge")
    Hinge()
    >>> get(Logistic())
    Logistic()
    """
    if isinstance(loss, Loss):
        return loss
    return _LOSSES[check_choice(loss, _LOSSES, "loss")]()
