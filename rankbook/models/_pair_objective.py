r"""The pairwise objective as a function of coefficients, and how it is minimised.

The objective is :math:`F(b) = S(Xb) / N + \frac{\alpha}{2} b^\top b`, with :math:`S` a pair sum and
:math:`N` the weight of pairs with different labels. Newton's method with conjugate gradients needs
Hessian products only. Three devices save passes over a large sample: a start from a tenth of the
items, found in the same way; Hessian products of that tenth, which is all that a direction needs;
and a change of variables that makes a small sample's Hessian the identity. The value and the
gradient, which decide where the minimum is, are always those of all items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from rankbook import losses
from rankbook.solvers._pair_data import PairData
from rankbook.solvers._sorted_pairs import SortedPairs
from rankbook.solvers.newton import NewtonResult, minimize
from rankbook.solvers.pair_sums import engine

__all__ = ["Fit", "PairObjective", "minimize_hinge", "minimize_smooth"]

# Below this many items a thinner sample is not worth fitting first.
_COARSE = 20_000
# The small sample's Hessian is formed by this many products at most.
_MAX_COLUMNS = 300
# Steps along the directions of a part of the items before all of them are used.
_PROXY_STEPS = 12
# A part must have this many items for each column to stand for the whole.
_PROXY_ITEMS = 200
_SMALLEST_SMOOTHING = 1e-9
_FIRST_SMOOTHING = 0.5
# With many items the pairs near the margin are so many that this leaves a gap of about 1e-6.
_LATER_SMOOTHING = 0.0025

Callback = Callable[[int, float, float], None]


@dataclass(frozen=True)
class Fit:
    """A minimiser, with a bound on how far its objective is from the minimum.

    Attributes
    ----------
    coef : ndarray of shape (p,)
        Coefficients.
    value : float
        Objective there.
    gap : float
        Upper bound on the objective minus its minimum.
    n_iter : int
        Newton steps on the full sample.
    reason : str
        Why the iteration stopped.
    converged : bool
        Whether the bound reached the tolerance.
    """

    coef: np.ndarray
    value: float
    gap: float
    n_iter: int
    reason: str
    converged: bool


@dataclass(frozen=True)
class PairObjective:
    """Pair sum of linear scores plus a ridge; see `rankbook.solvers.newton.Objective`.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Items.
    pairs : engine of `rankbook.solvers.pair_sums`
        The pair sum as a function of the scores.
    scale : float
        One over the weight of pairs with different labels.
    alpha : float
        Weight of the ridge.
    basis : ndarray of shape (p, p) or None
        Coefficients are basis @ z; Newton works on z.
    proxy : PairObjective or None
        Where Hessian products are taken instead: the objective of fewer items.
    last : list
        The coefficients last evaluated with derivatives, the pair sum there, and its gradient.
    """

    X: Any
    pairs: Any
    scale: float
    alpha: float
    basis: np.ndarray | None = None
    proxy: PairObjective | None = None
    last: list = field(default_factory=list, compare=False)

    @classmethod
    def build(cls, X: Any, data: PairData, loss: losses.Loss, alpha: float) -> PairObjective:
        """Set up the objective of a sample; its pairs must not all be of equal labels."""
        return cls(X, engine(loss, data), 1.0 / different_labels(data), alpha)

    def coef(self, z: np.ndarray) -> np.ndarray:
        """Coefficients of a point."""
        return z if self.basis is None else self.basis @ z

    def point(self, coef: np.ndarray) -> Any:
        """The pair sum at the scores of the coefficients."""
        return self.pairs.at(self.X @ coef)

    def loss_gradient(self, point: Any) -> np.ndarray:
        """Gradient of the scaled pair sum with respect to the coefficients."""
        return self.X.T @ (self.scale * point.gradient())

    def value(self, z: np.ndarray) -> float:
        """Objective at a point."""
        coef = self.coef(z)
        return self.scale * self.point(coef).value + 0.5 * self.alpha * float(coef @ coef)

    def value_gradient_hessian(self, z: np.ndarray) -> tuple[float, Any, Any]:
        """Objective, gradient and Hessian product at a point."""
        coef = self.coef(z)
        point = self.point(coef)
        value = self.scale * point.value + 0.5 * self.alpha * float(coef @ coef)
        if not np.isfinite(value):
            return np.inf, None, None
        slope = self.loss_gradient(point)
        self.last[:] = coef, point, slope
        return value, self._back(slope + self.alpha * coef), self._hessian(coef, point)

    def _hessian(self, coef: np.ndarray, point: Any) -> Callable[[np.ndarray], np.ndarray]:
        source = self
        if self.proxy is not None:
            source, point = self.proxy, self.proxy.point(coef)
        return lambda v: self._back(source.product(point, self.coef(v)))

    def _back(self, gradient: np.ndarray) -> np.ndarray:
        return gradient if self.basis is None else self.basis.T @ gradient

    def product(self, point: Any, v: np.ndarray) -> np.ndarray:
        """Hessian at a point times a vector of coefficients."""
        return self.X.T @ (self.scale * point.hessian_product(self.X @ v)) + self.alpha * v

    def smoothed(self, smoothing: float) -> PairObjective:
        """The objective with the hinge's kink rounded off."""
        proxy = None if self.proxy is None else self.proxy.smoothed(smoothing)
        return replace(self, pairs=self.pairs.smoothed(smoothing), proxy=proxy, last=[])

    def whitening(self, coef: np.ndarray) -> np.ndarray:
        """A basis in which the Hessian at the coefficients is the identity."""
        point = self.point(coef)
        p = len(coef)
        hessian = np.stack([self.product(point, column) for column in np.eye(p)])
        # A flat direction keeps its scale: the basis must stay invertible.
        floor = 1e-10 * max(np.trace(hessian) / p, np.finfo(float).tiny)
        factor = cholesky(0.5 * (hessian + hessian.T) + floor * np.eye(p), lower=True)
        return solve_triangular(factor, np.eye(p), lower=True).T

    def thinned(self, share: float) -> PairObjective | None:
        """The objective of a random part of the items (of whole queries), or None if too small."""
        data = self.pairs.data
        # The part decides how fast the minimum is found, not where it is: a fixed seed will do.
        rng = np.random.default_rng(0)
        grouped = data.n_queries > 1
        kept = rng.random(data.n_queries if grouped else data.n) < share
        rows = np.flatnonzero(kept[data.query] if grouped else kept)
        if len(rows) < 100:
            return None
        query = np.unique(data.query[rows], return_inverse=True)[1] if grouped else None
        part = PairData.build(data.codes[rows], data.matrix, data.weight[rows], query)
        if different_labels(part) <= 0 or part.total <= 0:
            return None
        pairs = self.pairs.rebuilt(part)
        return PairObjective(self.X[rows], pairs, 1.0 / different_labels(part), self.alpha)


def different_labels(data: PairData) -> float:
    """Weight of the pairs of one query with different labels."""
    n_classes = len(data.matrix)
    key = data.query * n_classes + data.codes
    mass = np.bincount(key, data.weight, data.n_queries * n_classes).reshape(-1, n_classes)
    # Sums over earlier classes, not a difference of squares: a query of one class gives zero.
    earlier = np.cumsum(mass, axis=1) - mass
    earlier[:, 0] = 0.0
    return float((mass * earlier).sum())


def _solve(
    objective: PairObjective, coef: np.ndarray, max_iter: int, **options: Any
) -> NewtonResult:
    """Newton in the objective's basis, from and to coefficients.

    Steps along a proxy's directions converge linearly, fast if the proxy is like the whole; if
    not, the whole sample's Hessian takes over.
    """
    if objective.proxy is None:
        return _newton(objective, coef, max_iter=max_iter, **options)
    result = _newton(objective, coef, max_iter=min(max_iter, _PROXY_STEPS), **options)
    taken = result.n_iter
    if not result.converged and taken < max_iter:
        exact = replace(objective, proxy=None)
        result = _newton(exact, result.x, max_iter=max_iter - taken, **options)
        objective.last[:] = exact.last
        result = replace(result, n_iter=result.n_iter + taken)
    return result


def _newton(objective: PairObjective, coef: np.ndarray, **options: Any) -> NewtonResult:
    basis = objective.basis
    start = coef if basis is None else np.linalg.solve(basis, coef)
    result = minimize(objective, start, **options)
    return replace(result, x=objective.coef(result.x))


def _newton_callback(callback: Callback | None) -> Callable | None:
    if callback is None:
        return None
    return lambda n_iter, x, value, decrement: callback(n_iter, value, decrement)


def _coarser(objective: PairObjective) -> PairObjective | None:
    n = objective.X.shape[0]
    return objective.thinned(max(0.1, _COARSE / 4 / n)) if n > _COARSE else None


def _with_help(
    objective: PairObjective, coarse: PairObjective, basis: np.ndarray | None
) -> PairObjective:
    """The objective in a basis, with a part of the items for its Hessian if that is enough."""
    enough = coarse.X.shape[0] >= _PROXY_ITEMS * coarse.X.shape[1]
    proxy = replace(coarse, basis=None, proxy=None, last=[]) if enough else None
    return replace(objective, basis=basis, proxy=proxy, last=[])


def minimize_smooth(
    objective: PairObjective, tol: float, max_iter: int, callback: Callback | None = None
) -> Fit:
    """Minimise for a differentiable loss.

    Stops when half the squared Newton decrement is at most `tol` times the objective.
    """
    coef, objective, value = _smooth_start(objective)
    options = dict(tol=tol * value, max_iter=max_iter, callback=_newton_callback(callback))
    try:
        result = _solve(objective, coef, **options)
    except ValueError:
        # Exponentials of the items left out of the start may overflow there; at zero none does.
        result = _solve(objective, np.zeros_like(coef), **options)
    gradient = result.gradient
    if objective.basis is not None:
        gradient = np.linalg.solve(objective.basis.T, gradient)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = float(gradient @ gradient / (2.0 * objective.alpha)) if gradient.any() else 0.0
    return Fit(result.x, result.value, gap, result.n_iter, result.message, result.converged)


def _smooth_start(objective: PairObjective) -> tuple[np.ndarray, PairObjective, float]:
    """A start, a basis and about the value, from a tenth of the items where there are many."""
    p = objective.X.shape[1]
    coarse = _coarser(objective)
    if coarse is not None:
        start, coarse, _ = _smooth_start(coarse)
        result = _solve(coarse, start, 20, tol=1e-6)
        basis = coarse.basis
        if coarse.X.shape[0] <= _COARSE and p <= _MAX_COLUMNS:
            basis = replace(coarse, basis=None).whitening(result.x)
        return result.x, _with_help(objective, coarse, basis), result.value
    coef = np.zeros(p)
    value = objective.value(coef)
    if p <= min(_MAX_COLUMNS, objective.X.shape[0]):
        objective = replace(objective, basis=objective.whitening(coef))
    return coef, objective, value


def minimize_hinge(
    objective: PairObjective, tol: float, max_iter: int, callback: Callback | None = None
) -> Fit:
    r"""Minimise for the hinge, with a certificate.

    The kink is replaced by a parabola of width :math:`\mu`, Newton solves the smooth problem, and
    :math:`\mu` shrinks until the duality gap is at most `tol` times the objective. Minus the smooth
    loss's derivative at each pair, :math:`\beta_{ab} \in [0, 1]`, is feasible for the dual

    .. math::

        \max_\beta \; \sum_{a, b} m_{ab} \beta_{ab}
        - \frac{1}{2 \alpha} \Bigl\| \sum_{a, b} m_{ab} \beta_{ab} (x_a - x_b) \Bigr\|^2,

    whose value, a lower bound on the minimum, is read off the sums already computed: the norm is
    that of the smooth loss's gradient.
    """
    coef, smoothing, objective, value = _hinge_start(objective)
    best = Fit(coef, np.inf, np.inf, 0, "", False)
    goal = 1e-4 * value
    if smoothing < _FIRST_SMOOTHING:
        smoothing, goal = _LATER_SMOOTHING, min(1e-4, 1e-3 * tol) * value
    n_iter, reason = 0, ""
    while not reason:
        smooth = objective.smoothed(smoothing)
        result = _solve(smooth, coef, max_iter - n_iter, tol=goal)
        coef, n_iter = result.x, n_iter + max(1, result.n_iter)
        found, residual = _certify(smooth)
        best = _better(best, found)
        if callback is not None:
            callback(n_iter, best.value, best.gap)
        target = tol * best.value
        reason = _stop_hinge(best.gap <= target, n_iter >= max_iter, smoothing)
        # The gap has two parts: what Newton left, and what the smoothing costs.
        rounded_off = max(found.gap - residual, 0.3 * target)
        if residual > 0.3 * rounded_off and result.reason == "decrement":
            goal = 0.1 * result.decrement * rounded_off / residual
        else:
            # The second part is about quadratic in the width while many pairs lie in it.
            shrink = min(0.3, max(0.03, 0.7 * (target / rounded_off) ** 0.5))
            smoothing, goal = shrink * smoothing, max(goal * shrink, 1e-16 * best.value)
    return replace(best, n_iter=n_iter, reason=_REASONS[reason], converged=reason == "gap")


_REASONS = {
    "gap": "the relative duality gap is at most tol",
    "max_iter": "max_iter Newton steps were taken before the duality gap fell below tol",
    "rounding": "rounding keeps the duality gap from narrowing further",
}


def _stop_hinge(closed: bool, out_of_steps: bool, smoothing: float) -> str:
    if closed:
        return "gap"
    if out_of_steps:
        return "max_iter"
    return "rounding" if smoothing <= _SMALLEST_SMOOTHING else ""


def _better(best: Fit, found: Fit) -> Fit:
    """The lower objective with the higher lower bound: they need not come from one iterate."""
    if not np.isfinite(best.value):
        return found
    bound = max(best.value - best.gap, found.value - found.gap)
    lower = min(best, found, key=lambda fit: fit.value)
    return replace(lower, gap=max(lower.value - bound, 0.0))


def _certify(smooth: PairObjective) -> tuple[Fit, float]:
    """The hinge objective where the smooth one was last evaluated, and its distance to the dual.

    Also returned is the part of that distance that the smooth problem's gradient accounts for.
    """
    coef, point, slope = smooth.last
    alpha = smooth.alpha
    value = smooth.scale * point.hinge_sum() + 0.5 * alpha * float(coef @ coef)
    dual = smooth.scale * point.dual_sum - float(slope @ slope) / (2.0 * alpha)
    gradient = slope + alpha * coef
    residual = float(gradient @ gradient) / (2.0 * alpha)
    return Fit(coef, value, max(value - dual, 0.0), 0, "", False), residual


def _hinge_start(objective: PairObjective) -> tuple[np.ndarray, float, PairObjective, float]:
    """Coefficients, a smoothing that suits them, the objective with its helps, about its value."""
    p = objective.X.shape[1]
    coarse = _coarser(objective)
    if coarse is None:
        coef = np.zeros(p)
        value = objective.value(coef)
        if p <= min(_MAX_COLUMNS, objective.X.shape[0]):
            # At zero every pair is on the hinge's slope, where it has no curvature; that of the
            # squared hinge is the scatter of the differences.
            squared = replace(objective, pairs=SortedPairs(objective.pairs.data, 2))
            objective = replace(objective, basis=squared.whitening(coef))
        return coef, _FIRST_SMOOTHING, objective, value
    start, smoothing, coarse, _ = _hinge_start(coarse)
    while smoothing > _LATER_SMOOTHING:
        result = _solve(coarse.smoothed(smoothing), start, 20, tol=1e-6)
        start, smoothing = result.x, 0.2 * smoothing
    basis = coarse.basis
    if coarse.X.shape[0] <= _COARSE and p <= _MAX_COLUMNS:
        basis = replace(coarse.smoothed(0.1), basis=None).whitening(start)
    helped = _with_help(objective, coarse, basis)
    return start, 4.0 * _LATER_SMOOTHING, helped, result.value
