"""The linear support vector machine with a free intercept, by a primal-dual interior point.

`_hinge_sum` has several free variables, but one weight for all hinges and a coarser gap;
`_kept_pairs` holds no solver of its own, only `PairwiseRanker` told to list its pairs.
"""

from __future__ import annotations

import warnings
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgWarning, lu_factor, lu_solve
from scipy.optimize import linprog
from sklearn.base import BaseEstimator

__all__ = ["LinearSVM"]

_MAX_STEPS = 100
_FEASIBLE = 1e-5  # residual below which the gap should fall at every step
_LOST = 1e-3  # a gap so large after a least one of its square is the work of rounding
_NEAR_END = 0.995  # share of the way to the boundary
_ROUNDING = 1e-14  # a gap below this is as good as this one
# Bound on `hull_distance`, in standard deviations, of what counts as inside. Of the 1760 training
# sets of does_pairwise_pay 209 are below 1e-12 and all others above 9e-4.
_INSIDE = 1e-6


class LinearSVM(BaseEstimator):
    r"""Minimise the mean of :math:`w_i (1 - y_i (x_i^\top b + b_0))_+` + (alpha/2) b'b.

    Its dual is a quadratic program of n variables in a box, whose matrix has rank p. A step costs
    O(n p^2) whatever the penalty, which libsvm's does not at small ones, and unlike liblinear's
    the intercept is not penalised.

    If the classes weigh differently the minimiser is often zero, whatever alpha: where
    `hull_distance` is zero. Then the coefficients are exactly zero, not what an iteration leaves.

    Parameters
    ----------
    alpha : float
        Weight of the penalty beside the mean loss, more than 0.
    balanced : bool, default=False
        Weigh each class by 1 / (2 P(class)).
    tol : float, default=1e-7
        Duality gap to reach, relative to the objective.
    accept : float, optional
        Largest gap to accept if rounding keeps `tol` out of reach; by default `tol`.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients.
    dual_gap_ : float
        Upper bound on the relative distance of the objective to its minimum: its value, at the
        intercept found, less that of the dual.
    silent_ : bool
        Whether the coefficients are zero, so that all items tie.
    """

    def __init__(
        self,
        alpha: float,
        balanced: bool = False,
        tol: float = 1e-7,
        accept: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.balanced = balanced
        self.tol = tol
        self.accept = accept

    def fit(self, X: ArrayLike, y: ArrayLike) -> LinearSVM:
        """Fit the coefficients to labels 0 and 1."""
        items, y = np.asarray(X, dtype=float), np.asarray(y)
        sign = np.where(y == 1, 1.0, -1.0)
        weight = np.ones(y.size)
        if self.balanced:
            weight = 0.5 / np.where(y == 1, y.mean(), 1 - y.mean())
        limit = weight / (self.alpha * y.size)
        left, size, right = _span(items)
        signed = sign[:, None] * left * size
        w, self.dual_gap_ = _solve_dual(signed, sign, limit, self.tol)
        # The objective grows by |w|^2 / 2 at least away from its minimiser, were that zero.
        at_zero = 2 * min(limit[sign > 0].sum(), limit[sign < 0].sum())
        self.silent_ = False
        if w @ w / 2 <= max(self.dual_gap_, _ROUNDING) * at_zero:
            distance, share = _nearest_in_hull(left, sign, limit)
            self.silent_ = distance <= _INSIDE
            if self.silent_:
                w, gradient = np.zeros_like(w), signed.T @ (share * limit)
                self.dual_gap_ = float(gradient @ gradient / 2 / at_zero)
        if self.dual_gap_ > (self.tol if self.accept is None else self.accept):
            raise RuntimeError(f"the interior point stopped at a gap of {self.dual_gap_:.1e}")
        self.coef_ = w @ right
        return self

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Scores up to a constant."""
        return np.asarray(X, dtype=float) @ self.coef_


def hull_distance(X: ArrayLike, y: ArrayLike) -> float:
    """How far the mean of the smaller class is from the larger one's reduced convex hull.

    The hull is that of the means of the larger class with no item counting for more than one of
    the smaller. If and only if the distance is zero, the minimiser of `LinearSVM` without class
    weights is zero, whatever alpha. It is found by linear programming, in the sup norm of
    coordinates that are uncorrelated and have variance 1.
    """
    items, y = np.asarray(X, dtype=float), np.asarray(y)
    sign = np.where(y == 1, 1.0, -1.0)
    return _nearest_in_hull(_span(items)[0], sign, np.ones(y.size))[0]


def _span(items: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values and vectors of centred items: with a free intercept no more matters."""
    left, size, right = np.linalg.svd(items - items.mean(axis=0), full_matrices=False)
    rank = int((size > 1e-10 * size[0]).sum())
    return left[:, :rank], size[:rank], right[:rank]


def _nearest_in_hull(
    left: np.ndarray, sign: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray]:
    """The distance of `hull_distance`, and the shares of the items in the nearest point."""
    total = {s: weight[sign == s].sum() for s in (-1.0, 1.0)}
    large = sign == max(total, key=total.__getitem__)
    u = left * np.sqrt(sign.size)
    mean = u[~large].mean(axis=0)
    number = min(total.values()) / weight[large][0]  # of items of the larger class that balance
    share = np.ones(sign.size)
    if number < large.sum() * (1 - _ROUNDING):
        ones = np.ones((mean.size, 1))
        A = u[large].T / number
        solution = linprog(
            np.append(np.zeros(large.sum()), 1.0),
            A_ub=np.block([[A, -ones], [-A, -ones]]),
            b_ub=np.concatenate([mean, -mean]),
            A_eq=np.append(np.ones(large.sum()), 0.0)[None],
            b_eq=[number],
            bounds=[(0, 1)] * int(large.sum()) + [(0, None)],
            method="highs",
        )
        if solution.status:
            raise RuntimeError(f"the linear program failed: {solution.message}")
        share[large] = np.clip(solution.x[:-1], 0, 1)
    return float(np.abs(share[large] @ u[large] / number - mean).max()), share


def _solve_dual(
    Z: np.ndarray, sign: np.ndarray, limit: np.ndarray, tol: float
) -> tuple[np.ndarray, float]:
    """Minimise |Z'a|^2 / 2 - sum(a) over 0 <= a <= limit with sign'a = 0 (Mehrotra's steps).

    Returned are the coefficients Z'a and the relative gap to the primal, sum(limit * hinge) +
    |Z'a|^2 / 2 at the intercept that is the multiplier of the equation: those of least gap.
    """
    total = {s: limit[sign == s].sum() for s in (-1.0, 1.0)}
    a = limit / 2 * min(total.values()) / np.where(sign > 0, total[1.0], total[-1.0])
    room = limit - a
    low, high = np.ones_like(a), np.ones_like(a)  # multipliers of the two bounds
    offset, best = 0.0, (np.zeros(Z.shape[1]), np.inf)
    for _ in range(_MAX_STEPS):
        w = Z.T @ a
        short = 1 - Z @ w - offset * sign
        value = limit @ np.maximum(short, 0) + w @ w / 2
        gap = float((value - (a.sum() - w @ w / 2)) / value)
        best = min(best, (w, gap), key=itemgetter(1))
        inside = min(v.min() for v in (a, room, low, high)) > 0
        if best[1] <= tol or not inside or (best[1] < _LOST**2 and gap > _LOST):
            break
        residual = -short - low + high
        products = low @ a + high @ room
        try:
            system = _NewtonSystem(Z, sign, a, room, low, high, residual)
        except (LinAlgWarning, ValueError):
            break  # rounding has made the matrix singular, or no matrix
        first = system.step(-low * a, -high * room)
        t = system.length(first)
        target = (system.products_after(first, t) / products) ** 3 * products / (2 * a.size)
        step = system.step(
            target - low * a - first[0] * first[2], target - high * room + first[0] * first[3]
        )
        t = system.length(step)
        feasible = np.abs(residual).max() <= _FEASIBLE
        if feasible and system.products_after(step, t) > products:
            # The correction can send the steps round in a cycle; without it they go on.
            target = 0.1 * products / (2 * a.size)
            step = system.step(target - low * a, target - high * room)
            t = system.length(step)
        a, room, offset = a + t * step[0], room - t * step[0], offset + t * step[1]
        low, high = low + t * step[2], high + t * step[3]
    return best


class _NewtonSystem:
    """The linearised optimality conditions at one point."""

    def __init__(self, Z: np.ndarray, sign: np.ndarray, *point: Any) -> None:
        self.Z, self.sign = Z, sign
        self.a, self.room, self.low, self.high, self.residual = point
        self.scale = 1 / (self.low / self.a + self.high / self.room)
        matrix = np.eye(Z.shape[1]) + Z.T @ (self.scale[:, None] * Z)
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            self.factor = lu_factor(matrix)
        self.by_sign = self._inverse(sign)

    def _inverse(self, v: np.ndarray) -> np.ndarray:
        """Solve (ZZ' + 1 / scale) u = v; where the classes are all but separable, once is rough."""
        u = self._woodbury(v)
        return u + self._woodbury(v - u / self.scale - self.Z @ (self.Z.T @ u))

    def _woodbury(self, v: np.ndarray) -> np.ndarray:
        v = self.scale * v
        return v - self.scale * (self.Z @ lu_solve(self.factor, self.Z.T @ v))

    def step(self, low_target: np.ndarray, high_target: np.ndarray) -> tuple:
        right = self._inverse(-self.residual + low_target / self.a - high_target / self.room)
        offset = (self.sign @ right + self.sign @ self.a) / (self.sign @ self.by_sign)
        a = right - offset * self.by_sign
        return (
            a,
            offset,
            (low_target - self.low * a) / self.a,
            (high_target + self.high * a) / self.room,
        )

    def products_after(self, step: tuple, t: float) -> float:
        """The sum of the products of slacks and multipliers after a step of length t."""
        a, _, low, high = step
        products = (self.low + t * low) @ (self.a + t * a)
        return float(products + (self.high + t * high) @ (self.room - t * a))

    def length(self, step: tuple) -> float:
        """The longest step, at most 1, that stays inside."""
        a, _, low, high = step
        moves = ((self.a, a), (self.room, -a), (self.low, low), (self.high, high))
        shares = [np.min(-v[d < 0] / d[d < 0], initial=np.inf) for v, d in moves]
        return float(min(1.0, _NEAR_END * min(shares)))
