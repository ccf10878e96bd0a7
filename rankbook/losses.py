r"""Surrogate losses of a score difference: value, derivatives, and a cvxpy expression.

A **surrogate** replaces the indicator that a pair is misranked, :math:`1[s < 0]` with
:math:`s = f(x) - f(x')` for an item :math:`x` that should be above :math:`x'`, by a convex and
non-increasing function of :math:`s`. Theorem 2 of Uematsu and Lee (2013) calls a loss *ranking
calibrated* if it is convex, non-increasing and differentiable with :math:`\ell'(0) < 0`: every
minimiser of its risk then orders items as the likelihood ratio does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rankbook._validation import check_choice

__all__ = ["Exponential", "Hinge", "Logistic", "Loss", "SquaredHinge", "get"]


class Loss(ABC):
    """A convex, non-increasing function of a score difference.

    Losses have no parameters: two of one kind are equal, and all are immutable.

    Attributes
    ----------
    name : str
        The name that `get` knows the loss by.
    is_ranking_calibrated : bool
        Whether the loss meets the conditions of Theorem 2 of Uematsu and Lee (2013).
    is_smooth : bool
        Whether the derivative is continuous.
    """

    name: str
    is_ranking_calibrated: bool
    is_smooth: bool

    @abstractmethod
    def __call__(self, s: Any) -> np.ndarray:
        """Return the loss at each score difference."""

    @abstractmethod
    def derivative(self, s: Any) -> np.ndarray:
        """Return the derivative at each score difference (at a kink, the left one)."""

    @abstractmethod
    def second_derivative(self, s: Any) -> np.ndarray:
        """Return the second derivative (at a kink, zero)."""

    @abstractmethod
    def expression(self, z: Any) -> Any:
        """Return the loss of a cvxpy expression, elementwise, as a cvxpy expression."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


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
    is_smooth = True

    def __call__(self, s: Any) -> np.ndarray:
        """Return exp(-s)."""
        return np.exp(-np.asarray(s, dtype=float))

    def derivative(self, s: Any) -> np.ndarray:
        """Return -exp(-s)."""
        return -np.exp(-np.asarray(s, dtype=float))

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return exp(-s)."""
        return self(s)

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
    is_smooth = True

    def __call__(self, s: Any) -> np.ndarray:
        """Return log(1 + exp(-s)), without overflow."""
        return np.logaddexp(0.0, -np.asarray(s, dtype=float))

    def derivative(self, s: Any) -> np.ndarray:
        """Return -1 / (1 + exp(s))."""
        from scipy.special import expit

        return -expit(-np.asarray(s, dtype=float))

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 1 / ((1 + exp(s)) (1 + exp(-s)))."""
        from scipy.special import expit

        s = np.asarray(s, dtype=float)
        return expit(s) * expit(-s)

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
    is_smooth = False

    def __call__(self, s: Any) -> np.ndarray:
        """Return max(1 - s, 0)."""
        return np.maximum(1.0 - np.asarray(s, dtype=float), 0.0)

    def derivative(self, s: Any) -> np.ndarray:
        """Return -1 up to and at s = 1, 0 beyond (the left derivative)."""
        return np.where(np.asarray(s, dtype=float) <= 1.0, -1.0, 0.0)

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 0, the second derivative wherever it exists."""
        return np.zeros_like(np.asarray(s, dtype=float))

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
    is_smooth = True

    def __call__(self, s: Any) -> np.ndarray:
        """Return max(1 - s, 0) squared."""
        return np.maximum(1.0 - np.asarray(s, dtype=float), 0.0) ** 2

    def derivative(self, s: Any) -> np.ndarray:
        """Return -2 max(1 - s, 0)."""
        # Adding zero turns the -0.0 beyond the kink into 0.0.
        return -2.0 * np.maximum(1.0 - np.asarray(s, dtype=float), 0.0) + 0.0

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 2 below s = 1, 0 at it and beyond."""
        return np.where(np.asarray(s, dtype=float) < 1.0, 2.0, 0.0)

    def expression(self, z: Any) -> Any:
        """Return max(1 - z, 0) squared as a cvxpy expression."""
        import cvxpy as cp

        return cp.square(cp.pos(1 - z))


_LOSSES = {cls.name: cls for cls in (Exponential, Logistic, Hinge, SquaredHinge)}


def get(loss: str | Loss) -> Loss:
    """Return a loss by name, or the loss itself.

    Parameters
    ----------
    loss : {"exponential", "logistic", "hinge", "squared_hinge"} or Loss
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
