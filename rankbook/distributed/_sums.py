"""An objective that is a sum over blocks, as Newton's method takes it, and how it is minimised."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh

from rankbook._docs import documented
from rankbook.distributed._blocks import Blocks
from rankbook.distributed._survey import Plan, Rows, read
from rankbook.exceptions import CollinearityWarning, SeparationWarning
from rankbook.models.blockwise import Restricted
from rankbook.solvers.design import least_norm_shift, null_space
from rankbook.solvers.newton import NewtonResult, Objective, minimize

__all__ = ["SUM_DOCS", "BlockSum", "Minimum", "find_minimum", "least_norm"]

# Up to this many parameters blocks form their Hessians; beyond it each product is a pass.
_DENSE = 1500
# Share of its first curvature below which a direction may be on its way to infinity.
_FLAT = 1e-4

Build = Callable[[Rows], Objective]

SUM_DOCS = {
    "rows": """
    blocks : Blocks
        The rows.
    plan : Plan
        How they are read.
    """,
    "ridge": """
    ridge : ndarray of shape (d,)
        Weight of half the square of each parameter.
    """,
}


@documented(**SUM_DOCS)
class BlockSum:
    r"""The function :math:`\sum_B f_B(x) + \frac12 \sum_j r_j x_j^2`, a term for each block.

    A sum of objectives is an objective: it offers what `rankbook.solvers.newton` asks for, and
    asks its blocks for the same.

    Parameters
    ----------
    %(rows)s
    build : callable
        Makes a block's objective from its rows; it is pickled.
    %(ridge)s
    """

    def __init__(self, blocks: Blocks, plan: Plan, build: Build, ridge: np.ndarray) -> None:
        self.blocks, self.plan, self.build, self.ridge = blocks, plan, build, ridge
        self._last: tuple[np.ndarray, tuple] | None = None

    def penalty(self, x: np.ndarray) -> float:
        """The ridge's part."""
        return 0.5 * float(self.ridge @ (x * x))

    def value(self, x: np.ndarray) -> float:
        """Value at x, by a pass."""
        return self.penalty(x) + self.blocks.reduce(_value, sum, self.plan, self.build, x)

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, Any, Any]:
        """Value, gradient and Hessian at x, by a pass; the last ones are kept."""
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = x.copy(), self._evaluate(x)
        return self._last[1]

    def _evaluate(self, x: np.ndarray) -> tuple[float, Any, Any]:
        dense = len(x) <= _DENSE
        value, gradient, hessian = self.blocks.reduce(
            _derivatives, _add, self.plan, self.build, x, dense
        )
        if gradient is None:
            return value, None, None
        value, gradient = value + self.penalty(x), gradient + self.ridge * x
        if dense:
            return value, gradient, 0.5 * (hessian + hessian.T) + np.diag(self.ridge)
        return value, gradient, lambda v: self._product(x, v)

    def _product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.ridge * v + self.blocks.reduce(_product, sum, self.plan, self.build, x, v)


def _value(plan: Plan, build: Build, x: np.ndarray, **arrays: Any) -> float | None:
    rows = read(plan, **arrays)
    return None if rows is None else build(rows).value(x)


def _derivatives(
    plan: Plan, build: Build, x: np.ndarray, dense: bool, **arrays: Any
) -> tuple[float, Any, Any] | None:
    rows = read(plan, **arrays)
    if rows is None:
        return None
    value, gradient, hessian = build(rows).value_gradient_hessian(x)
    if gradient is None or not np.isfinite(value):
        return np.inf, None, None
    if not dense:
        return value, gradient, None
    if callable(hessian):
        hessian = np.stack([hessian(column) for column in np.eye(len(x))])
    return value, gradient, hessian


def _product(
    plan: Plan, build: Build, x: np.ndarray, v: np.ndarray, **arrays: Any
) -> np.ndarray | None:
    rows = read(plan, **arrays)
    if rows is None:
        return None
    hessian = build(rows).value_gradient_hessian(x)[2]
    return hessian(v) if callable(hessian) else hessian @ v


def _add(parts: list[tuple[float, Any, Any]]) -> tuple[float, Any, Any]:
    values, gradients, hessians = zip(*parts, strict=True)
    if any(gradient is None for gradient in gradients):
        return np.inf, None, None
    return sum(values), sum(gradients), None if hessians[0] is None else sum(hessians)


@dataclass(frozen=True)
class Minimum:
    """Where Newton stopped, with the directions of parameters that no score depends on."""

    result: NewtonResult
    x: np.ndarray
    flat: np.ndarray
    separated: np.ndarray


def find_minimum(
    objective: Any,
    start: np.ndarray,
    *,
    ridged: bool,
    can_separate: bool,
    tol: float,
    max_iter: int,
    callback: Callable[..., Any] | None,
) -> Minimum:
    """Newton; without a ridge, across the directions that the data leave open, with warnings.

    At the start every item has curvature, so that a direction without any moves no score:
    columns are collinear. A direction that has lost nearly all of it at the end is one along which
    the classes are separated, or nearly.
    """
    size = len(start)
    flat, first, problem = np.zeros((size, 0)), None, objective
    x0, basis = start, None
    if not ridged:
        _, _, first = objective.value_gradient_hessian(start)
        if not callable(first):
            flat = null_space(first)
    if flat.shape[1]:
        warnings.warn(_COLLINEAR, CollinearityWarning, stacklevel=4)
        basis = np.linalg.svd(flat)[0][:, flat.shape[1] :]
        problem, x0 = Restricted(objective, start, basis), np.zeros(basis.shape[1])
    result = minimize(problem, x0, tol=tol, max_iter=max_iter, callback=callback)
    if ridged and result.converged and result.n_iter == 0:
        # In small units the start is nearly as good as the minimiser, but ranks nothing.
        step = minimize(problem, x0, tol=0.0, max_iter=1)
        result = replace(step, converged=True, reason=result.reason)
    separated = np.zeros((size, 0))
    if can_separate and first is not None and not callable(first):
        inner = first if basis is None else basis.T @ first @ basis
        lost = _lost_curvature(inner, result.hessian)
        separated = lost if basis is None else basis @ lost
        if lost.shape[1]:
            warnings.warn(_SEPARATED, SeparationWarning, stacklevel=4)
    x = result.x if basis is None else start + basis @ result.x
    return Minimum(result, x, flat, separated)


_COLLINEAR = (
    "columns of X are linearly dependent, so that the coefficients are not unique with alpha=0; "
    "those of least norm are given. Drop columns or set alpha > 0"
)
_SEPARATED = (
    "the loss has lost nearly all its curvature along a direction, as it does where a linear score "
    "separates the classes of y and no minimiser exists with alpha=0; the fit is finite, and its "
    "objective within the tolerance of the infimum. Set alpha > 0"
)


def _lost_curvature(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    try:
        values, vectors = eigh(last, first)
    except LinAlgError:
        return np.eye(len(first))
    return vectors[:, values < _FLAT]


def least_norm(coef: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """The multiples of directions to add to coefficients for the least norm."""
    if not directions.shape[1]:
        return np.zeros(0)
    return least_norm_shift(coef, directions)
