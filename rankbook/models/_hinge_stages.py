r"""Stages of the pairwise hinge over kept pairs: augmented Lagrangians and semismooth Newton.

With multipliers :math:`\bar\beta` from the stage before and a width :math:`\mu`, a stage minimises

.. math::

    \sum_k w_k \max_{0 \le \beta \le 1} \Bigl\{ \beta (1 - d_k^\top b)
    - \frac{\mu}{2} (\beta - \bar\beta_k)^2 \Bigr\} + \frac12 \sum_j r_j b_j^2

over the coefficients, :math:`d_k` the pairs' differences. The maximisers, :math:`\bar\beta_k +
(1 - d_k^\top b)/\mu` clipped to [0, 1], are feasible for the hinge's dual and the multipliers of
the next stage, so that a few stages reach a small duality gap at widths that are not small. Only
pairs strictly between the bounds have curvature. Once these are the right ones, the next stage's
minimiser with the same pairs between the bounds is the hinge's own, whatever the width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankbook.models._pair_objective import PairRisk
from rankbook.solvers.design import Design, weighted_gram
from rankbook.solvers.newton import conjugate_gradients

__all__ = ["AllPairs", "Pairs", "Point", "SomePairs", "Stage", "spread"]

# Curvature of columns of unit size that steps are given where the ridge has less, at first and at
# last; where that keeps them short, it is multiplied by the third number.
_DAMPING, _LEAST_DAMPING, _EASED = 1e-7, 1e-13, 1e-2
# Residuals of conjugate gradients and of a line search, relative to where they begin.
_CG_SHARE, _SLOPE_SHARE = 0.1, 0.2
# Multiply-adds of a dense product of matrices in the time of one in a product with a vector.
_DENSE_SPEED = 5.0
# Matrices with up to so many columns are always factored, none larger than the second number.
_FEW_COLUMNS, _MAX_MATRIX = 40, 3000
_EPS = np.finfo(float).eps


@dataclass(frozen=True)
class Point:
    """Coefficients, one minus each pair's margin, and the multipliers there."""

    coef: np.ndarray
    short: np.ndarray
    beta: np.ndarray


class Pairs(Protocol):
    """What a stage asks of the pairs that it sums over."""

    weight: np.ndarray
    ridge: np.ndarray

    @property
    def damped(self) -> np.ndarray: ...

    def margins(self, coef: np.ndarray) -> np.ndarray: ...

    def sum(self, values: np.ndarray) -> float: ...

    def pull(self, values: np.ndarray) -> np.ndarray: ...

    def value(self, point: Point) -> float: ...

    def chosen_sum(self, beta: np.ndarray) -> float: ...

    def curvature(self, curved: np.ndarray, width: float) -> _Curvature: ...


def _weighted_sum(weight: np.ndarray, values: np.ndarray) -> float:
    return float(weight[0] * values.sum() if len(weight) == 1 else weight @ values)


def _of(weight: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The weights of some pairs, where one number may stand for all."""
    return np.full(len(chosen), weight[0]) if len(weight) == 1 else weight[chosen]


def spread(upper: np.ndarray, lower: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Add each pair's value to its upper item and take it from its lower one."""
    out = np.bincount(upper, values, n)
    out -= np.bincount(lower, values, n)
    return out


class AllPairs:
    """Margins of the kept pairs, and sums over them."""

    def __init__(self, risk: PairRisk) -> None:
        pairs = risk.sums.pairs
        assert pairs is not None
        self.upper, self.lower, weight = pairs
        self.total = risk.sums.different
        self.weight = weight / self.total
        self.design, self.ridge = risk.design, risk.ridge
        self.n = self.design.shape[0]
        self._damping = _DAMPING

    @property
    def damped(self) -> np.ndarray:
        """The ridge, or the damping where that is more."""
        return np.maximum(self.ridge, self._damping)

    def ease(self) -> None:
        """Damp less: a column in a large unit has little ridge, and may have far to go."""
        self._damping = max(_EASED * self._damping, _LEAST_DAMPING)

    def margins(self, coef: np.ndarray) -> np.ndarray:
        scores = self.design.scores(coef)
        margins = scores[self.upper]
        margins -= scores[self.lower]
        return margins

    def sum(self, values: np.ndarray) -> float:
        return _weighted_sum(self.weight, values)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The weighted sum of the values at each item."""
        return spread(self.upper, self.lower, self.weight * values, self.n)

    def pull(self, values: np.ndarray) -> np.ndarray:
        """The weighted sum of the pairs' differences times the values."""
        return self.design.adjoint(self.spread(values))

    def value(self, point: Point) -> float:
        """The hinge objective."""
        hinges = self.sum(np.maximum(point.short, 0.0))
        return hinges + 0.5 * float(self.ridge @ point.coef**2)

    def chosen_sum(self, beta: np.ndarray) -> float:
        """The sum of all multipliers."""
        return self.sum(beta)

    def rows(self, chosen: np.ndarray) -> Any:
        """Differences of some pairs in the columns as stored."""
        return self.design.differences(self.upper[chosen], self.lower[chosen])

    def curvature(self, curved: np.ndarray, width: float) -> _Curvature:
        weight = _of(self.weight, curved) / width
        if len(curved) < self.n:
            return _Rows(self.rows(curved), self.design.scale, weight, self.damped)
        ends = self.upper[curved], self.lower[curved]
        return _Laplacian(self.design, ends, weight, self.damped)


class SomePairs:
    """The same sums over some pairs, the others' multipliers held at their bounds.

    Parameters
    ----------
    pairs : AllPairs
        The pairs.
    chosen : ndarray of int
        Those whose multipliers are free.
    held : ndarray
        Multipliers of all pairs, zero or one; those of the chosen pairs are ignored.
    """

    def __init__(self, pairs: AllPairs, chosen: np.ndarray, held: np.ndarray) -> None:
        self.ridge, self._all = pairs.ridge, pairs
        weight = pairs.weight
        self.weight = weight if len(weight) == 1 else weight[chosen]
        self._rows, self._scale = pairs.rows(chosen), pairs.design.scale
        held = held.copy()
        held[chosen] = 0.0
        self._held_sum, self._held_pull = pairs.sum(held), pairs.pull(held)

    @property
    def damped(self) -> np.ndarray:
        return self._all.damped

    def margins(self, coef: np.ndarray) -> np.ndarray:
        return self._rows @ (coef / self._scale)

    def sum(self, values: np.ndarray) -> float:
        return _weighted_sum(self.weight, values)

    def pull(self, values: np.ndarray) -> np.ndarray:
        return self._rows.T @ (self.weight * values) / self._scale + self._held_pull

    def value(self, point: Point) -> float:
        """The objective with a straight line in place of the hinges of the pairs held."""
        hinges = self.sum(np.maximum(point.short, 0.0)) + self._held_sum
        ridge = 0.5 * self.ridge * point.coef - self._held_pull
        return hinges + float(ridge @ point.coef)

    def chosen_sum(self, beta: np.ndarray) -> float:
        return self.sum(beta) + self._held_sum

    def curvature(self, curved: np.ndarray, width: float) -> _Curvature:
        weight = _of(self.weight, curved) / width
        return _Rows(self._rows[curved], self._scale, weight, self.damped)


class _Curvature(ABC):
    """The Hessian of a stage: the ridge, and the weighted pairs between the bounds."""

    ridge: np.ndarray
    weight: np.ndarray
    # Multiply-adds of a product, and of a matrix.
    product_work: float
    matrix_work: float

    @abstractmethod
    def product(self, v: np.ndarray) -> np.ndarray:
        """The Hessian times a vector."""

    @abstractmethod
    def solve(self, b: np.ndarray) -> np.ndarray:
        """The exact solution of the Newton system."""

    def max_products(self) -> int:
        """As many products as are less work than a matrix and its factor."""
        size = min(len(self.ridge), len(self.weight))
        if size > _MAX_MATRIX:
            return 10 * len(self.ridge) + 10
        if len(self.ridge) <= _FEW_COLUMNS:
            return 0
        return int((self.matrix_work + size**3 / 3 / _DENSE_SPEED) / self.product_work)


class _Rows(_Curvature):
    """By the pairs' differences, which are to be divided by the scale."""

    def __init__(self, rows: Any, scale: np.ndarray, weight: np.ndarray, ridge: np.ndarray) -> None:
        self.rows, self.scale, self.weight, self.ridge = rows, scale, weight, ridge
        k, p = rows.shape
        self.product_work = 2.0 * k * p
        # A matrix times its own transpose takes half the work of other products.
        self.matrix_work = 0.5 * k * p * min(k, p) / _DENSE_SPEED

    def product(self, v: np.ndarray) -> np.ndarray:
        image = self.rows.T @ (self.weight * (self.rows @ (v / self.scale)))
        return image / self.scale + self.ridge * v

    def solve(self, b: np.ndarray) -> np.ndarray:
        """By the smaller of two matrices."""
        k, p = self.rows.shape
        if k >= p:
            matrix = weighted_gram(self.rows, self.weight)
            matrix[np.diag_indices(p)] += self.ridge * self.scale**2
            return self.scale * _factored(matrix, self.scale * b)
        root = np.sqrt(self.ridge)
        rows, b = self.rows * (1.0 / (root * self.scale)), b / root
        # The weights' roots on both sides, as some weights may be zero.
        rows = rows * np.sqrt(self.weight)[:, None]
        inner = rows @ rows.T
        inner = inner.toarray() if sp.issparse(inner) else inner
        inner[np.diag_indices(k)] += 1.0
        return (b - rows.T @ _factored(inner, np.atleast_1d(rows @ b))) / root


class _Laplacian(_Curvature):
    """By scores of the items, where these are fewer than the pairs."""

    def __init__(self, design: Design, ends: Any, weight: np.ndarray, ridge: np.ndarray) -> None:
        self.design, self.weight, self.ridge = design, weight, ridge
        self.upper, self.lower = ends
        n, p = design.shape
        self.product_work = 2.0 * n * p + 6.0 * len(weight)
        self.matrix_work = 4.0 * len(weight) * p + n * p * p / _DENSE_SPEED

    def product(self, v: np.ndarray) -> np.ndarray:
        scores = self.design.scores(v)
        image = self.weight * (scores[self.upper] - scores[self.lower])
        n = self.design.shape[0]
        return self.design.adjoint(spread(self.upper, self.lower, image, n)) + self.ridge * v

    def solve(self, b: np.ndarray) -> np.ndarray:
        matrix = self.design.pair_gram(self.upper, self.lower, self.weight)
        return _factored(matrix + np.diag(self.ridge), b)


def _factored(matrix: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution; pairs that repeat each other may leave the matrix singular in rounding."""
    more = 16 * _EPS * np.trace(matrix)
    while np.isfinite(more):
        try:
            return cho_solve(cho_factor(matrix, check_finite=False), b, check_finite=False)
        except LinAlgError:
            matrix, more = matrix + more * np.eye(len(b)), 4 * more
    return np.zeros(len(b))


class Stage:
    """The function that one stage minimises."""

    def __init__(self, pairs: Pairs, centre: np.ndarray | float, width: float) -> None:
        self.pairs, self.centre, self.width = pairs, centre, width
        # Conjugate gradients are tried first, until they have once been the longer way.
        self.by_products = True

    def multipliers(self, short: np.ndarray) -> np.ndarray:
        beta = short / self.width
        beta += self.centre
        return np.clip(beta, 0.0, 1.0, out=beta)

    def point(self, coef: np.ndarray, short: np.ndarray) -> Point:
        return Point(coef, short, self.multipliers(short))

    def step(self, point: Point, gradient: np.ndarray) -> np.ndarray:
        """Newton's step, or one towards it where that is long in coming."""
        curved = np.flatnonzero((point.beta > 0.0) & (point.beta < 1.0))
        curvature = self.pairs.curvature(curved, self.width)
        if not len(curved):
            return -gradient / curvature.ridge
        most = curvature.max_products()
        if self.by_products and most:
            step, self.by_products = conjugate_gradients(
                curvature.product, -gradient, _CG_SHARE, most
            )
            if self.by_products or min(curved.size, gradient.size) > _MAX_MATRIX:
                return step
        return curvature.solve(-gradient)

    def move(self, point: Point, step: np.ndarray, slope: float) -> Point:
        """Along the step to where the slope is about zero."""
        pairs = self.pairs
        margins = pairs.margins(step)
        # The ridge's part of the slope, and that of pairs held at their bounds.
        square = float(pairs.ridge @ step**2)
        linear = slope + pairs.sum(point.beta * margins)

        def slope_at(t: float) -> float:
            beta = self.multipliers(point.short - t * margins)
            return linear + t * square - pairs.sum(beta * margins)

        t = _root(slope_at, slope)
        return self.point(point.coef + t * step, point.short - t * margins)

    def next(self, point: Point, width: float) -> tuple[Stage, Point]:
        """The next stage, and its minimiser if the same pairs stay between the bounds."""
        stage, pairs = Stage(self.pairs, point.beta, width), self.pairs
        stage.by_products = self.by_products
        inside = (point.beta > 0.0) & (point.beta < 1.0)
        curved = np.flatnonzero(inside)
        if not 0 < len(curved) <= _MAX_MATRIX:
            return stage, stage.point(point.coef, point.short)
        beta = point.beta + np.where(inside, point.short / width, 0.0)
        gradient = pairs.ridge * point.coef - pairs.pull(beta)
        step = pairs.curvature(curved, width).solve(-gradient)
        return stage, stage.point(point.coef + step, point.short - pairs.margins(step))


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
