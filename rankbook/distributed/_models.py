"""How each estimator is fitted over blocks: its objective, and the attributes it ends with."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import null_space
from sklearn.exceptions import ConvergenceWarning

from rankbook._links import LINKS
from rankbook._pair_counts import pair_weight
from rankbook.distributed._blocks import Blocks
from rankbook.distributed._moments import ExponentialPairSum, SquaredPairSum
from rankbook.distributed._objectives import (
    LikelihoodBlock,
    MarginBlock,
    PairBlock,
    SquareBlock,
    link_design,
)
from rankbook.distributed._sums import BlockSum, Minimum, find_minimum, least_norm
from rankbook.distributed._survey import Columns, Plan, Rows, Survey, read
from rankbook.exceptions import NotBlockwiseError
from rankbook.models.blockwise import (
    ClassMoments,
    Fitted,
    check_label_costs,
    fitted_least_squares,
    is_least_squares,
    strong_convexity_gap,
    without_rounding,
)

__all__ = ["Task", "fit_cocr", "fit_cumulative", "fit_pairwise", "fit_univariate", "fit_value"]


@dataclass(frozen=True)
class Task:
    """The rows, what the first pass found, and whom to tell of each step."""

    blocks: Blocks
    found: Survey
    has_queries: bool
    callback: Callable[..., Any] | None

    def masses(self, estimator: Any) -> np.ndarray:
        """Weight of each class of the estimator, relative to the largest weight."""
        position = {value: k for k, value in enumerate(estimator.classes_.tolist())}
        codes = [position[value] for value in self.found.values.tolist()]
        return np.bincount(codes, self.found.masses, len(position))


def _say_if_stopped(estimator: Any, minimum: Minimum) -> None:
    result = minimum.result
    if not result.converged:
        warnings.warn(
            f"{type(estimator).__name__} stopped early: {result.message}. Its objective is "
            f"estimated {result.decrement:.1e} above the minimum.",
            ConvergenceWarning,
            stacklevel=4,
        )


def fit_univariate(estimator: Any, task: Task) -> None:
    """Single items: the mean of margin losses."""
    loss = estimator._check_parameters()
    if estimator.classes_.size != 2:
        raise ValueError(
            f"y must hold two classes, got {estimator.classes_.size}: "
            f"{estimator.classes_[:10].tolist()}"
        )
    mass = task.masses(estimator)
    if not (mass > 0).all():
        raise ValueError("sample_weight must be positive for items of both classes")
    divisor = 2.0 * mass if estimator.balanced else np.full(2, mass.sum())
    alpha = float(estimator.alpha)
    columns = Columns.of(task.found, alpha)
    ridge = np.append(alpha / columns.scale**2, 0.0)
    plan = Plan(tuple(estimator.classes_.tolist()), columns, task.found.largest)
    risk = BlockSum(task.blocks, plan, MarginBlock(loss, divisor), ridge)
    start = np.append(np.zeros(len(columns.scale)), loss.link(float(mass[1] / divisor[1])))
    minimum = find_minimum(
        risk, start, ridged=alpha > 0, can_separate=not loss.reaches_zero, tol=estimator.tol,
        max_iter=estimator.max_iter, callback=task.callback,
    )  # fmt: skip
    _say_if_stopped(estimator, minimum)
    raw = minimum.flat[:-1] / columns.scale[:, None]
    step = least_norm(minimum.x[:-1] / columns.scale, raw)
    x = minimum.x + minimum.flat @ step
    estimator.coef_ = x[:-1] / columns.scale
    estimator.intercept_ = float(x[-1] - columns.shift @ estimator.coef_)
    estimator.objective_ = minimum.result.value
    estimator.n_iter_ = max(1, minimum.result.n_iter)


def fit_pairwise(estimator: Any, task: Task) -> None:
    """Pairs within queries, or pairs of all items where their sum factors."""
    loss, tol = estimator._check_parameters()
    if not loss.is_smooth:
        raise NotBlockwiseError(
            f"PairwiseRanker with loss={loss.name!r} is fitted in memory only: Newton's method "
            "over blocks needs a differentiable loss. Take 'squared_hinge' or 'logistic'"
        )
    n_classes = estimator.classes_.size
    sums, unit = estimator._pair_sums(np.arange(n_classes), loss, None, None, None)
    mass = task.masses(estimator)
    different = task.found.different
    if not task.has_queries:
        different = float(pair_weight(np.arange(n_classes), mass).sum())
    if not different > 0:
        where = " within a query" if task.has_queries else ""
        raise ValueError(f"y must hold two items of positive weight{where} with different labels")
    alpha = min(float(estimator.alpha) / unit, 1e300)
    columns = Columns.of(task.found, alpha)
    ridge = alpha / columns.scale**2
    plan = Plan(tuple(estimator.classes_.tolist()), columns, task.found.largest)
    problem: Any
    if task.has_queries or len(task.blocks) == 1:
        build = PairBlock(loss, sums.pair_weights, different)
        problem = BlockSum(task.blocks, plan, build, ridge)
    elif loss.is_multiplicative:
        problem = ExponentialPairSum(task.blocks, plan, sums.pair_weights, different, ridge)
    elif loss.is_quadratic:
        problem = SquaredPairSum(task.blocks, plan, sums.pair_weights, different, ridge)
    else:
        raise NotBlockwiseError(
            f"PairwiseRanker with loss={loss.name!r} over one list of all items is no sum over "
            "blocks: its pairs join items of different blocks. Pass qid, or take "
            "loss='exponential' or 'squared', whose sums over pairs factor"
        )
    zero = np.zeros(len(ridge))
    minimum = find_minimum(
        problem, zero, ridged=alpha > 0,
        can_separate=loss.is_non_increasing and not loss.reaches_zero,
        tol=tol * problem.value_gradient_hessian(zero)[0], max_iter=estimator.max_iter,
        callback=task.callback,
    )  # fmt: skip
    _say_if_stopped(estimator, minimum)
    result = minimum.result
    raw = minimum.flat / columns.scale[:, None]
    estimator.coef_ = minimum.x / columns.scale
    estimator.coef_ = estimator.coef_ + raw @ least_norm(estimator.coef_, raw)
    gap = np.inf if alpha == 0 else strong_convexity_gap(result.gradient, ridge)
    estimator.objective_ = unit * result.value
    estimator.dual_gap_ = gap / result.value if result.value > 0 else 0.0
    estimator.n_iter_ = max(1, result.n_iter)
    estimator.stopped_ = result.message


def fit_value(estimator: Any, task: Task) -> None:
    """Value-regularised linear loss: a quadratic, so that Newton needs one step."""
    mass, grades = task.masses(estimator), estimator._grades()
    estimator._check_features(np.zeros((2, len(task.found.mean))))
    total = float(mass.sum())
    n_pairs = task.found.different
    if not task.has_queries:
        n_pairs = float(pair_weight(np.arange(len(mass)), mass).sum())
    if not n_pairs > 0:
        raise ValueError("qid must leave a query with two different labels in y, got none")
    alpha, theta = float(estimator.alpha), float(estimator.theta)
    columns = Columns.of(task.found, alpha, centred=False)
    ridge = alpha / columns.scale**2
    plan = Plan(tuple(estimator.classes_.tolist()), columns, task.found.largest)
    build = SquareBlock(theta, grades, total, float(mass @ grades) / total, n_pairs)
    risk = BlockSum(task.blocks, plan, build, ridge)
    with warnings.catch_warnings():
        if alpha == 0:  # in memory the solution of least norm is given without a word, too
            warnings.simplefilter("ignore")
        minimum = find_minimum(
            risk, np.zeros(len(ridge)), ridged=alpha > 0, can_separate=False, tol=1e-24,
            max_iter=4, callback=task.callback,
        )  # fmt: skip
    raw = minimum.flat / columns.scale[:, None]
    estimator.coef_ = minimum.x / columns.scale
    estimator.coef_ = estimator.coef_ + raw @ least_norm(estimator.coef_, raw)
    estimator.objective_ = minimum.result.value
    pairs = n_pairs * task.found.largest**2
    estimator.n_pairs_ = int(pairs) if float(pairs).is_integer() else pairs


def fit_cumulative(estimator: Any, task: Task) -> None:
    """Cumulative link models: minus the log-likelihood."""
    link = estimator._check_parameters()
    for name in ("nominal", "scale"):
        if getattr(estimator, name) is not None:
            raise NotBlockwiseError(f"CumulativeLink with {name}= is fitted in memory only")
    if estimator.covariance == "robust":
        raise NotBlockwiseError('CumulativeLink with covariance="robust" is fitted in memory only')
    found = task.found
    mass = task.masses(estimator) * found.largest
    estimator.classes_, mass = estimator.classes_[mass > 0], mass[mass > 0]
    if len(mass) < 2:
        raise ValueError(f"y must hold at least 2 classes, got {estimator.classes_.tolist()}")
    p, m, total = len(found.mean), len(mass) - 1, float(mass.sum())
    columns = Columns.of(found)
    alpha = float(estimator.alpha)
    ridge = np.append(alpha * total / columns.scale**2, np.zeros(m))
    plan = Plan(tuple(estimator.classes_.tolist()), columns, 1.0)
    risk = BlockSum(task.blocks, plan, LikelihoodBlock(LINKS[estimator.link], m + 1), ridge)
    start = np.append(np.zeros(p), link.quantile(np.cumsum(mass)[:-1] / total))
    minimum = find_minimum(
        risk, start, ridged=alpha > 0 or p == 0, can_separate=True, tol=estimator.tol * total,
        max_iter=estimator.max_iter, callback=task.callback,
    )  # fmt: skip
    _say_if_stopped(estimator, minimum)
    _, gradient, hessian = risk.value_gradient_hessian(minimum.x)
    params = _polished(minimum, gradient, hessian, p)
    empty = Rows(np.zeros((0, p)), np.zeros(0, dtype=int), None, None)
    header = replace(link_design(empty, columns, m + 1), total=total)
    jacobian = header.jacobian()
    free = jacobian @ minimum.flat
    params = params + minimum.flat @ least_norm((jacobian @ params)[:p], free[:p])
    hidden = np.hstack([minimum.flat, minimum.separated])
    change = minimum.result.decrement if minimum.result.converged else 0.0
    likelihood = _Known(header, risk.penalty(params) - minimum.result.value + change)
    fitted = Fitted(
        likelihood=likelihood,  # type: ignore[arg-type]
        params=params,
        jacobian=jacobian,
        hessian=hessian,
        across=null_space(hidden.T) if hidden.shape[1] else np.eye(len(params)),
        free=without_rounding(jacobian @ hidden, header.units),
        n_aliased=free.shape[1],
        in_order=False,
        n_iter=max(1, minimum.result.n_iter),
    )
    estimator._roles = estimator._find_roles()
    estimator.sample_id_ = hashlib.sha256(b"".join(found.digest)).hexdigest()[:16]
    estimator._store(header, fitted, None)
    estimator.df_ -= minimum.flat.shape[1]
    estimator._kept = None


@dataclass(frozen=True)
class _Known:
    """What is left of a likelihood once its passes are over."""

    design: Any
    value: float

    def log_likelihood(self, params: np.ndarray) -> float:
        """Log-likelihood at the estimate."""
        return self.value


def _polished(minimum: Minimum, gradient: np.ndarray, hessian: np.ndarray, p: int) -> np.ndarray:
    """One more Newton step, whose Hessian is there already."""
    if not minimum.result.converged or minimum.separated.shape[1]:
        return minimum.x
    last = minimum.x - np.linalg.lstsq(hessian, gradient, rcond=None)[0]
    return last if (np.diff(last[p:]) > 0).all() else minimum.x


def fit_cocr(estimator: Any, task: Task) -> None:
    """Least squares of every class boundary, from moments of the classes, which add."""
    base = estimator._check_parameters()
    if not is_least_squares(base) or estimator.weighting != "sample_weight":
        reason = f"base {type(base).__name__}" if not is_least_squares(base) else "resampling"
        raise NotBlockwiseError(
            f"COCR with {reason} is no sum over blocks. Where X fits in a worker's memory, fit "
            'the boundaries on the cluster: with joblib.parallel_config("dask"): '
            "estimator.fit(X, y)"
        )
    n_classes = estimator.classes_.size
    estimator.label_costs_ = check_label_costs(estimator.label_costs, n_classes)
    steps = np.abs(np.diff(estimator.label_costs_, axis=1))
    estimator._check_steps(steps, task.masses(estimator))
    columns = Columns.of(task.found)
    plan = Plan(tuple(estimator.classes_.tolist()), columns, task.found.largest)
    moments = task.blocks.reduce(_moments, _add_moments, plan)
    solutions = moments.boundary_regressions(steps, intercept=base.fit_intercept)
    if solutions is None:
        raise NotBlockwiseError(
            "columns of X are collinear or nearly so: least squares from sums over blocks would "
            "lose its digits. Drop columns, or fit in memory"
        )
    p = len(columns.scale)
    estimator.estimators_ = [
        fitted_least_squares(base, coef, constant, p) for coef, constant in solutions
    ]


def _moments(plan: Plan, **arrays: Any) -> ClassMoments | None:
    rows = read(plan, **arrays)
    if rows is None:
        return None
    columns, (p, K) = plan.columns, (rows.Z.shape[1], len(plan.classes))
    moments = ClassMoments(
        columns.shift, columns.scale, np.zeros(K), np.zeros((K, p)), np.zeros((K, p, p))
    )
    moments.add(rows.Z, rows.codes, rows.w)
    return moments


def _add_moments(parts: list[ClassMoments]) -> ClassMoments:
    first = parts[0]
    return ClassMoments(
        first.shift,
        first.scale,
        sum(part.mass for part in parts),  # type: ignore[arg-type]
        sum(part.total for part in parts),  # type: ignore[arg-type]
        sum(part.gram for part in parts),  # type: ignore[arg-type]
    )
