r"""The pairwise hinge where all pairs are kept: augmented Lagrangians and semismooth Newton.

With multipliers :math:`\bar\beta` from the stage before and a width :math:`\mu`, a stage minimises

.. math::

    \sum_k w_k \max_{0 \le \beta \le 1} \Bigl\{ \beta (1 - d_k^\top b)
    - \frac{\mu}{2} (\beta - \bar\beta_k)^2 \Bigr\} + \frac12 \sum_j r_j b_j^2

over the coefficients, :math:`d_k` the pairs' differences. The maximisers, :math:`\bar\beta_k +
(1 - d_k^\top b)/\mu` clipped to [0, 1], are feasible for the hinge's dual and the multipliers of
the next stage, so that a few stages reach a small duality gap at widths that are not small. Only
pairs strictly between the bounds have curvature, and near the end they are few: a Newton step then
costs little more than a pass over the pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from rankbook._progress import Report
from rankbook.models._pair_objective import (
    Fit,
    PairRisk,
    better,
    coarser,
    stopped,
    strong_convexity_gap,
)
from rankbook.solvers.newton import conjugate_gradients

__all__ = ["minimize_kept_hinge"]

_FIRST_WIDTH, _SHRINK, _SMALLEST_WIDTH = 1.0, 0.3, 1e-10
# After a start from fewer items, whose own widths came down to this.
_LATER_WIDTH = 0.03
# The gap to reach, if `tol` asks for less: the last stages are the cheapest.
_GAP, _COARSE_GAP = 1e-8, 1e-3
# A stage ends when this share of the gap is what Newton left.
_LEFT = 0.3
# Curvature of columns of unit size that steps are given where the ridge has less.
_DAMPING = 1e-7
# Residuals of conjugate gradients and of a line search, relative to where they begin.
_CG_SHARE, _SLOPE_SHARE = 0.1, 0.2
# Multiply-adds of a dense product of matrices in the time of one in a product with a vector.
_DENSE_SPEED = 10.0
# Matrices with up to so many columns are always factored, none larger than the second number.
_FEW_COLUMNS, _MAX_MATRIX = 40, 3000
_EPS = np.finfo(float).eps


@dataclass(frozen=True)
class _Point:
    """Coefficients, one minus each pair's margin, and the multipliers there."""

    coef: np.ndarray
    short: np.ndarray
    beta: np.ndarray


class _Pairs:
    """Margins of the kept pairs, and sums over them."""

    def __init__(self, risk: PairRisk) -> None:
        pairs = risk.sums.pairs
        assert pairs is not None
        self.upper, self.lower, weight = pairs
        self.total = risk.sums.different
        self.weight = weight / self.total
        self.design, self.ridge = risk.design, risk.ridge
        self.damped = np.maximum(self.ridge, _DAMPING)

    def margins(self, coef: np.ndarray) -> np.ndarray:
        scores = self.design.scores(coef)
        margins = scores[self.upper]
        margins -= scores[self.lower]
        return margins

    def sum(self, values: np.ndarray) -> float:
        if len(self.weight) == 1:
            return float(self.weight[0] * values.sum())
        return float(self.weight @ values)

    def pull(self, values: np.ndarray) -> np.ndarray:
        """The weighted sum of the pairs' differences times the values."""
        return self.design.adjoint(_spread(self.upper, self.lower, self.weight * values, self.n))

    @property
    def n(self) -> int:
        return self.design.shape[0]

    def certify(self, point: _Point, slope: np.ndarray) -> Fit:
        """The hinge objective, and its distance to the dual value of the multipliers."""
        value = self.sum(np.maximum(point.short, 0.0))
        value += 0.5 * float(self.ridge @ point.coef**2)
        chosen = self.sum(point.beta)
        gap = max(value - (chosen - strong_convexity_gap(slope, self.ridge)), 0.0)
        pulls = _spread(self.upper, self.lower, self.weight * point.beta, self.n)
        total = self.total
        return Fit(point.coef, value, gap, 0, "", False, -total * pulls, total * chosen)


def _spread(upper: np.ndarray, lower: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    out = np.bincount(upper, values, n)
    out -= np.bincount(lower, values, n)
    return out


class _Curvature:
    """The Hessian of a stage: the ridge, and the pairs between the bounds."""

    def __init__(self, pairs: _Pairs, beta: np.ndarray, width: float) -> None:
        curved = np.flatnonzero((beta > 0.0) & (beta < 1.0))
        self.upper, self.lower = pairs.upper[curved], pairs.lower[curved]
        scalar = len(pairs.weight) == 1
        weight = np.full(len(curved), pairs.weight[0]) if scalar else pairs.weight[curved]
        self.weight = weight / width
        self.design, self.ridge, self.n = pairs.design, pairs.damped, pairs.n
        self.rows: Any = None
        if len(curved) < self.n:
            rows = self.design.differences(self.upper, self.lower)
            self.rows = rows * np.sqrt(self.weight)[:, None]

    def product(self, v: np.ndarray) -> np.ndarray:
        if self.rows is not None:
            return self.rows.T @ (self.rows @ v) + self.ridge * v
        scores = self.design.scores(v)
        image = self.weight * (scores[self.upper] - scores[self.lower])
        return self.design.adjoint(_spread(self.upper, self.lower, image, self.n)) + self.ridge * v

    def max_products(self) -> int:
        """As many products as are less work than a matrix and its factor."""
        p, k = len(self.ridge), len(self.weight)
        if min(p, k) > _MAX_MATRIX:
            return 10 * p + 10
        if p <= _FEW_COLUMNS:
            return 0
        if self.rows is None:
            matrix, one = 4.0 * k * p + self.n * p * p / _DENSE_SPEED, 2.0 * self.n * p + 6.0 * k
        else:
            matrix, one = k * p * min(k, p) / _DENSE_SPEED, 2.0 * k * p
        return int((matrix + min(k, p) ** 3 / 3 / _DENSE_SPEED) / one)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The exact solution, by the smaller of two matrices."""
        p, k = len(self.ridge), len(self.weight)
        if self.rows is not None and k < p:
            # A matrix times its own transpose takes half the work of other products.
            root = np.sqrt(self.ridge)
            scaled = self.rows * (1.0 / root)
            inner = _dense(scaled @ scaled.T) + np.eye(k)
            rest = scaled.T @ _factored(inner, np.atleast_1d(scaled @ (b / root)))
            return (b / root - rest) / root
        if self.rows is not None:
            matrix = _dense(self.rows.T @ self.rows)
        else:
            matrix = self.design.pair_gram(self.upper, self.lower, self.weight)
        return _factored(matrix + np.diag(self.ridge), b)


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


def _factored(matrix: np.ndarray, b: np.ndarray) -> np.ndarray:
    return cho_solve(cho_factor(matrix, check_finite=False), b, check_finite=False)


class _Stage:
    """The function that one stage minimises."""

    def __init__(self, pairs: _Pairs, centre: np.ndarray | float, width: float) -> None:
        self.pairs, self.centre, self.width = pairs, centre, width
        # Conjugate gradients are tried first, until they have once been the longer way.
        self.by_products = True

    def multipliers(self, short: np.ndarray) -> np.ndarray:
        beta = short / self.width
        beta += self.centre
        return np.clip(beta, 0.0, 1.0, out=beta)

    def point(self, coef: np.ndarray, short: np.ndarray) -> _Point:
        return _Point(coef, short, self.multipliers(short))

    def step(self, point: _Point, gradient: np.ndarray) -> np.ndarray:
        curvature = _Curvature(self.pairs, point.beta, self.width)
        if not len(curvature.weight):
            return -gradient / curvature.ridge
        most = curvature.max_products()
        if self.by_products and most:
            step, self.by_products = conjugate_gradients(
                curvature.product, -gradient, _CG_SHARE, most
            )
            if self.by_products or min(curvature.weight.size, gradient.size) > _MAX_MATRIX:
                return step
        return curvature.solve(-gradient)

    def move(self, point: _Point, step: np.ndarray, slope: float) -> _Point:
        """Along the step to where the slope is about zero."""
        pairs = self.pairs
        margins = pairs.margins(step)
        linear = float(pairs.ridge @ (point.coef * step))
        square = float(pairs.ridge @ step**2)

        def slope_at(t: float) -> float:
            beta = self.multipliers(point.short - t * margins)
            return linear + t * square - pairs.sum(beta * margins)

        t = _root(slope_at, slope)
        return self.point(point.coef + t * step, point.short - t * margins)


def _root(slope_at: Callable[[float], float], slope: float) -> float:
    """About where an increasing function that is negative at zero crosses it (Illinois)."""
    goal = _SLOPE_SHARE * abs(slope)
    low, below, high = 0.0, slope, 1.0
    above = slope_at(high)
    while above < -goal and high < 1e9:
        low, below, high = high, above, 4.0 * high
        above = slope_at(high)
    t, here, side = high, above, 0
    for _ in range(50):
        if abs(here) <= goal:
            break
        t = (low * above - high * below) / (above - below)
        here = slope_at(t)
        if here < 0:
            low, below = t, here
            above *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, above = t, here
            below *= 0.5 if side > 0 else 1.0
            side = 1
    return t


def minimize_kept_hinge(
    risk: PairRisk, tol: float, max_iter: int, report: Report | None = None
) -> Fit:
    """Minimise for the hinge over kept pairs; the best point seen, with the best lower bound."""
    coarse = coarser(risk)
    coef, width = np.zeros(len(risk.ridge)), _FIRST_WIDTH
    if coarse is not None and coarse.sums.pairs is not None:
        coef, width = minimize_kept_hinge(coarse, _COARSE_GAP, max_iter).coef, _LATER_WIDTH
    goal = min(tol, _GAP) if tol < _COARSE_GAP else tol
    pairs = _Pairs(risk)
    # No dual value is below zero, that of no pair.
    at_zero = pairs.sum(np.ones(len(pairs.upper)))
    best = Fit(np.zeros(len(coef)), at_zero, at_zero, 0, "", False)
    stage = _Stage(pairs, 0.0, width)
    point = stage.point(coef, 1.0 - pairs.margins(coef))
    n_iter = 0
    while True:
        slope = pairs.pull(point.beta)
        found = pairs.certify(point, slope)
        best = better(best, found)
        if report is not None:
            report(n_iter, best.value, best.gap)
        if best.gap <= goal * best.value or n_iter >= max_iter:
            break
        gradient = pairs.ridge * point.coef - slope
        left = strong_convexity_gap(gradient, pairs.ridge)
        step = stage.step(point, gradient) if left > _LEFT * found.gap else 0.0 * gradient
        descent = float(gradient @ step)
        if -descent > _EPS * best.value:
            point, n_iter = stage.move(point, step, descent), n_iter + 1
        elif stage.width < _SMALLEST_WIDTH:
            break
        else:
            stage = _Stage(pairs, point.beta, _SHRINK * stage.width)
            point = stage.point(point.coef, point.short)
    if best.gap <= tol * best.value:
        return stopped(best, n_iter, "gap")
    return stopped(best, n_iter, "max_iter" if n_iter >= max_iter else "rounding")
