r"""The pairwise objective as a function of coefficients.

It is :math:`F(b) = S(Xb) / N + \frac{\alpha}{2} b^\top b`, with :math:`S` a pair sum and :math:`N`
the weight of pairs with different labels. Its Hessian comes as products, or, where all pairs are
kept and that is less work, as a matrix; it may be that of fewer items. The value and the gradient,
which decide where the minimum is, are always those of all items.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from rankbook.losses import Loss
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design

__all__ = [
    "MAX_COLUMNS",
    "Fit",
    "PairRisk",
    "better",
    "stopped",
    "strong_convexity_gap",
    "whitened",
]

# A whitened basis is made, by as many products, for at most so many columns.
MAX_COLUMNS = 300
# Conjugate gradients take about this many products a step, in a whitened basis and without one;
# a matrix may cost as much.
_WHITE_PRODUCTS, _PRODUCTS = 15.0, 40.0
# Multiply-adds of a dense product in the time of one on a kept pair.
_DENSE_SPEED = 10.0


@dataclass(frozen=True)
class Fit:
    """A minimiser, with a bound on how far its objective is from the minimum.

    Attributes
    ----------
    coef : ndarray of shape (p,)
        Coefficients of the scaled columns.
    value : float
        Objective there.
    gap : float
        Upper bound on the objective minus its minimum.
    n_iter : int
        Steps on the full sample.
    reason : str
        Why the iteration stopped.
    converged : bool
        Whether the bound reached the tolerance.
    slopes, dual_sum : ndarray of shape (n,), float
        For the hinge alone: the derivative of the pair sum, smoothed or not, with respect to each
        score, and the sum of the pairs' dual variables, a feasible point of the dual.
    """

    coef: np.ndarray
    value: float
    gap: float
    n_iter: int
    reason: str
    converged: bool
    slopes: np.ndarray | None = None
    dual_sum: float = 0.0


_REASONS = {
    "gap": "the relative duality gap is at most tol",
    "max_iter": "max_iter steps were taken before the duality gap fell below tol",
    "rounding": "rounding keeps the duality gap from narrowing further",
}


def better(best: Fit, found: Fit) -> Fit:
    """The lower objective with the higher lower bound: they need not come from one iterate."""
    dual = max(best, found, key=lambda fit: fit.value - fit.gap)
    lower = min(best, found, key=lambda fit: fit.value)
    gap = max(lower.value - (dual.value - dual.gap), 0.0)
    return replace(lower, gap=gap, slopes=dual.slopes, dual_sum=dual.dual_sum)


def stopped(best: Fit, n_iter: int, reason: str) -> Fit:
    """The best point of an iteration on a duality gap, with the reason for its end."""
    return replace(best, n_iter=n_iter, reason=_REASONS[reason], converged=reason == "gap")


class PairRisk:
    """Pair sum of linear scores plus a ridge; see `rankbook.solvers.newton.Objective`.

    Parameters
    ----------
    design : Design
        Items.
    sums : PairSums
        The pair sum as a function of the scores.
    ridge : ndarray of shape (p,)
        Weight of half the square of each scaled coefficient.
    """

    def __init__(self, design: Design, sums: PairSums, ridge: np.ndarray) -> None:
        self.design, self.sums, self.ridge = design, sums, ridge
        # Coefficients are basis @ z, and Newton works on z.
        self.basis: np.ndarray | None = None
        # Where the Hessian is taken instead: the objective of fewer items.
        self.proxy: PairRisk | None = None
        # A matrix close to the Hessian, to start from where it is the only one.
        self.guess: np.ndarray | None = None
        # Added to the Hessian: directions alone depend on it.
        self.damping = 0.0
        # The coefficients last evaluated, and the pair sum there.
        self._last: tuple[np.ndarray, Any] | None = None

    def _changed(self, **changes: Any) -> PairRisk:
        other = copy(self)
        other._last = None
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def in_basis(self, basis: np.ndarray | None, proxy: PairRisk | None = None) -> PairRisk:
        """The same function of other variables, perhaps with the Hessian of fewer items."""
        return self._changed(basis=basis, proxy=proxy)

    def with_guess(self, hessian: np.ndarray) -> PairRisk:
        """The same function, whose Hessian is close to a matrix."""
        return self._changed(guess=hessian)

    def exact(self) -> PairRisk:
        """The same function in the same variables, with its own Hessian."""
        return self._changed(proxy=None, guess=None)

    def damped(self, damping: float) -> PairRisk:
        """The same function, with at least this curvature in the Hessian that it gives."""
        proxy = None if self.proxy is None else self.proxy.damped(damping)
        return self._changed(proxy=proxy, damping=float(damping))

    def with_loss(self, loss: Loss) -> PairRisk:
        """The objective with another loss of the same pairs."""
        proxy = None if self.proxy is None else self.proxy.with_loss(loss)
        return self._changed(sums=self.sums.with_loss(loss), proxy=proxy, guess=None)

    def coef(self, z: np.ndarray) -> np.ndarray:
        """Coefficients of a point."""
        return z if self.basis is None else self.basis @ z

    def _back(self, gradient: np.ndarray) -> np.ndarray:
        return gradient if self.basis is None else self.basis.T @ gradient

    def point(self, coef: np.ndarray) -> Any:
        """The pair sum at the scores of the coefficients; None where those overflow."""
        if self._last is not None and np.array_equal(self._last[0], coef):
            return self._last[1]
        scores = self.design.scores(coef)
        if not np.isfinite(scores).all():
            return None
        self._last = coef.copy(), self.sums.at(scores)
        return self._last[1]

    def penalty(self, coef: np.ndarray) -> float:
        """The ridge's part of the objective."""
        return 0.5 * float(self.ridge @ coef**2)

    def value(self, z: np.ndarray) -> float:
        """Objective at a point."""
        coef = self.coef(z)
        point = self.point(coef)
        if point is None:
            return np.inf
        return point.value / self.sums.different + self.penalty(coef)

    def loss_gradient(self, point: Any) -> np.ndarray:
        """Gradient of the mean loss with respect to the coefficients."""
        return self.design.adjoint(point.gradient() / self.sums.different)

    def value_gradient(self, z: np.ndarray) -> tuple[float, Any]:
        """Objective and gradient at a point."""
        value = self.value(z)
        if not np.isfinite(value):
            return np.inf, None
        coef = self.coef(z)
        return value, self._back(self.loss_gradient(self.point(coef)) + self.ridge * coef)

    def value_gradient_hessian(self, z: np.ndarray) -> tuple[float, Any, Any]:
        """Objective, gradient and Hessian at a point."""
        value, gradient = self.value_gradient(z)
        return value, gradient, None if gradient is None else self._hessian(self.coef(z))

    def _hessian(self, coef: np.ndarray) -> Any:
        source = self if self.proxy is None else self.proxy
        point = source.point(coef)
        if source.forms_hessian:
            hessian = source.hessian(point)
            return hessian if self.basis is None else self.basis.T @ hessian @ self.basis
        return lambda v: self._back(source.product(point, self.coef(v)))

    @property
    def forms_hessian(self) -> bool:
        """Whether the Hessian is had for the work of a few products."""
        n, p = self.design.shape
        pairs = self.sums.n_kept
        if pairs is None:
            return False
        # Numbers of multiply-adds: X'(LX), and L v, X v, X' u for a product.
        edges = 2.0 * pairs + n
        matrix = edges * p + n * p * p / _DENSE_SPEED
        products = _WHITE_PRODUCTS if p <= min(MAX_COLUMNS, n) else _PRODUCTS
        return matrix <= products * (2.0 * edges + 2.0 * n * p)

    def product(self, point: Any, v: np.ndarray) -> np.ndarray:
        """Hessian at a point times a vector of coefficients."""
        image = point.hessian_product(self.design.scores(v)) / self.sums.different
        return self.design.adjoint(image) + (self.ridge + self.damping) * v

    def hessian(self, point: Any) -> np.ndarray:
        """Hessian at a point."""
        if self.sums.n_kept is None:
            hessian = self.design.gram_of(point.hessian_product)
        else:
            hessian = self.design.pair_gram(*point.curved)
        return hessian / self.sums.different + np.diag(self.ridge + self.damping)

    def whitening(self, coef: np.ndarray) -> np.ndarray:
        """A basis in which the Hessian at the coefficients is the identity."""
        return whitened(self.hessian(self.point(coef)))

    def unkept(self) -> PairRisk:
        """The same objective without a list of pairs."""
        return self._changed(sums=self.sums.unkept())

    def merged(self) -> PairRisk:
        """The same objective with equal items as one, where many are."""
        found = self.sums.merged(self.design.X)
        if found is None:
            return self
        rows, sums = found
        return PairRisk(self.design.subset(rows), sums, self.ridge)

    def thinned(self, share: float) -> PairRisk | None:
        """The objective of a random part of the items (of whole queries), or None if too small."""
        rows, sums = self.sums.thinned(share)
        if len(rows) < 100 or sums.different <= 0 or sums.total <= 0:
            return None
        return PairRisk(self.design.subset(rows), sums, self.ridge)


def whitened(hessian: np.ndarray) -> np.ndarray:
    """A basis in which the Hessian is the identity."""
    p = len(hessian)
    # A flat direction keeps its scale: the basis must stay invertible.
    floor = 1e-10 * max(np.trace(hessian) / p, np.finfo(float).tiny)
    factor = cholesky(hessian + floor * np.eye(p), lower=True)
    return solve_triangular(factor, np.eye(p), lower=True).T


def strong_convexity_gap(gradient: np.ndarray, ridge: np.ndarray) -> float:
    """How far the ridge lets the minimum be below: the sum of g^2 / (2 ridge)."""
    with np.errstate(divide="ignore", over="ignore"):
        terms = (
            0.5 * np.divide(gradient, np.sqrt(ridge), where=gradient != 0, out=0 * gradient) ** 2
        )
    return float(terms.sum())
