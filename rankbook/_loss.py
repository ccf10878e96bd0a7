"""What every loss can do, and the facts that other modules ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from rankbook._arrays import as_array
from rankbook._validation import check_scalar

__all__ = ["Loss", "SmoothedHinge", "real"]


_NOT_REAL = (complex, np.complexfloating, str, bytes)


def real(s: Any, name: str = "s") -> np.ndarray:
    """Return real numbers as a float array; None, text and complex numbers are refused."""
    array = as_array(s, name)
    if array.dtype.kind not in "fiub":
        # Fractions and Decimals come as objects that know their float value; None does not.
        for x in array.ravel():
            if not hasattr(x, "__float__") or isinstance(x, _NOT_REAL):
                raise TypeError(f"{name} must hold real numbers, got {x!r}")
    return array.astype(float, copy=False)


class Loss(ABC):
    r"""A convex function of a score difference.

    The losses that `get` knows have no parameters: two of one kind are equal, and all are
    immutable. A subclass defines the value and two derivatives, and states what else is true of
    it; all modules then accept it.

    Attributes
    ----------
    name : str
        What the loss is called in messages and in `get`.
    is_ranking_calibrated : bool
        Whether every minimiser of the pairwise risk over two classes, among all scoring functions,
        orders items as the likelihood ratio does. This is the property itself, which the
        conditions of Theorem 2 of Uematsu and Lee (2013) imply but which does not imply them.
    is_proper : bool
        Whether the minimiser of :math:`p\,\ell(s) + (1 - p)\,\ell(-s)` is strictly increasing in p,
        so that single items give a ranking (Agarwal, 2013).
    is_smooth : bool
        Whether the derivative is continuous.
    is_non_increasing : bool, default=True
        Whether a larger difference never costs more.
    is_piecewise_linear : bool, default=False
        Whether linear programs minimise it, and rational arithmetic is exact.
    reaches_zero : bool, default=False
        Whether the loss is zero at some difference; if not, its infimum is not attained.
    is_multiplicative : bool, default=False
        Whether :math:`\ell(s + t) = \ell(s)\,\ell(t)`: sums over pairs are products of sums.
    is_quadratic : bool, default=False
        Whether it is a polynomial of degree two: sums over pairs are made of moments.
    hinge_parts : tuple of (factor, margin, power), default=()
        The loss as a sum of :math:`c\,(m - s)_+^q`, if it is one.
    tail : float, default=inf
        The loss is :math:`(-s)_+` up to :math:`10^{-20}` for :math:`|s|` beyond it, and analytic
        for imaginary parts below :math:`\pi`; infinite if that is not so.
    """

    name: ClassVar[str]
    is_ranking_calibrated: ClassVar[bool]
    is_proper: ClassVar[bool]
    is_smooth: ClassVar[bool]
    is_non_increasing: ClassVar[bool] = True
    is_piecewise_linear: ClassVar[bool] = False
    reaches_zero: ClassVar[bool] = False
    is_multiplicative: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False
    hinge_parts: tuple[tuple[float, float, int], ...] = ()
    tail: ClassVar[float] = np.inf

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
    def conjugate(self, u: Any) -> np.ndarray:
        r"""Return :math:`\ell^*(u) = \sup_s u s - \ell(s)`, infinite outside its domain."""

    @abstractmethod
    def expression(self, z: Any) -> Any:
        """Return the loss of a cvxpy expression, elementwise, as a cvxpy expression."""

    def terms(self, s: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the value and both derivatives at each score difference, at one go."""
        return self(s), self.derivative(s), self.second_derivative(s)

    def rational(self, s: Fraction) -> Fraction:
        """Return the loss at a rational number, exactly for polynomial pieces, else rounded."""
        return Fraction(float(self(float(s))))

    def smoothed(self, width: float) -> Loss:
        """Return a smooth loss within `width` of this one: itself if it is smooth."""
        if self.is_smooth:
            return self
        raise ValueError(f"{self!r} has no smooth version")

    def link(self, p: float) -> float:
        r"""Return the s that minimises :math:`p\,\ell(s) + (1 - p)\,\ell(-s)`, 0 < p < 1.

        By bisection, within 700 of zero, where a subclass has no formula.
        """
        low, high = -700.0, 700.0
        while low < (middle := 0.5 * (low + high)) < high:
            slope = p * self.derivative(middle) - (1.0 - p) * self.derivative(-middle)
            low, high = (middle, high) if slope < 0 else (low, middle)
        return 0.5 * (low + high)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SmoothedHinge(Loss):
    r"""The hinge with its kink rounded off.

    It is 0 from :math:`s = 1` on, :math:`(1 - s)^2 / (2 \mu)` down to :math:`1 - \mu`, and
    :math:`1 - s - \mu/2` below: at most :math:`\mu/2` under the hinge. Minus its derivative at a
    pair, in [0, 1], is feasible for the hinge's dual.

    Parameters
    ----------
    width : float
        :math:`\mu`, in (0, 1].

    Examples
    --------
    >>> loss = SmoothedHinge(0.5)
    >>> loss([0.0, 0.5, 0.75, 1.0]).tolist()
    [0.75, 0.25, 0.0625, 0.0]
    >>> loss.derivative([0.0, 0.75]).tolist()
    [-1.0, -0.5]
    """

    name = "smoothed_hinge"
    is_ranking_calibrated = True
    is_proper = True
    is_smooth = True
    reaches_zero = True

    def __init__(self, width: float) -> None:
        self.width = check_scalar(width, "width", low=0.0, high=1.0, strict_low=True)

    @property
    def hinge_parts(self) -> tuple[tuple[float, float, int], ...]:  # type: ignore[override]
        """The difference of two squared hinges."""
        return (0.5 / self.width, 1.0, 2), (-0.5 / self.width, 1.0 - self.width, 2)

    def __call__(self, s: Any) -> np.ndarray:
        """Return the hinge less what the parabola cuts off."""
        return self.terms(s)[0]

    def derivative(self, s: Any) -> np.ndarray:
        """Return -1 below the parabola, 0 above it, linear between."""
        return self.terms(s)[1]

    def second_derivative(self, s: Any) -> np.ndarray:
        """Return 1 / width between 1 - width and 1, else 0."""
        return self.terms(s)[2]

    def terms(self, s: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the value and both derivatives."""
        short = np.maximum(1.0 - real(s), 0.0)
        g = np.minimum(short / self.width, 1.0)
        return (
            g * (short - 0.5 * self.width * g),
            -g + 0.0,
            np.where(g % 1.0, 1.0 / self.width, 0.0),
        )

    def conjugate(self, u: Any) -> np.ndarray:
        """Return u + width u^2 / 2 for -1 <= u <= 0."""
        u = real(u, "u")
        inside = np.clip(u, -1.0, 0.0)
        return np.where(inside == u, inside + 0.5 * self.width * inside**2, np.inf)

    def expression(self, z: Any) -> Any:
        """Return the loss as a cvxpy expression, half a Huber function."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 - z), self.width) / (2 * self.width)

    def __repr__(self) -> str:
        return f"SmoothedHinge({self.width!r})"
