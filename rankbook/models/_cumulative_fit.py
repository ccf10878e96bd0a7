"""A cumulative link model fitted to a design: the estimate, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, null_space
from sklearn.exceptions import ConvergenceWarning

from rankbook._link import Link
from rankbook.exceptions import CollinearityWarning, CrossingWarning, SeparationWarning
from rankbook.models._cumulative_degenerate import (
    Recession,
    as_reported,
    far_out,
    listed,
    recession,
    reduce_columns,
    settle,
)
from rankbook.models._cumulative_design import Design
from rankbook.models._cumulative_likelihood import Likelihood, fit
from rankbook.models._cumulative_order import crossings, fit_in_order
from rankbook.models._cumulative_spread import SpreadFit, better_start, fit_spreads, is_finite
from rankbook.solvers.newton import NewtonResult, minimize

__all__ = ["Fitted", "fit_design", "without_rounding"]

# Share of curvature below which the fit may be on its way to infinity.
_FLAT = 1e-4
# A loss, an item, that comes of rounding, and logarithms of spreads that may avoid it.
_ROUGH = 1e-9
_WIDTHS = (20.0, 12.0)

Names = tuple[list[str], list[str], list[str]]


@dataclass(frozen=True)
class Fitted:
    """An estimate in the parameters of its design, and the way to the reported ones.

    Attributes
    ----------
    likelihood : Likelihood
        The objective, of the design without redundant columns.
    params : ndarray
        Its (nearly) minimising parameters.
    jacobian : ndarray
        From them to the reported parameters of all columns.
    hessian : ndarray
        The objective's Hessian there.
    across : ndarray
        A basis of the directions that the data identify.
    free : ndarray
        Directions of the reported parameters that they do not.
    n_aliased : int
        How many of them, the first, come from collinear columns.
    in_order : bool
        Whether the order of the thresholds is a constraint that binds.
    n_iter : int
        Newton steps.
    is_far : bool
        Whether spreads of very different sizes make the rounding of parameters matter.
    """

    likelihood: Likelihood
    params: np.ndarray
    jacobian: np.ndarray
    hessian: np.ndarray
    across: np.ndarray
    free: np.ndarray
    n_aliased: int
    in_order: bool
    n_iter: int
    is_far: bool = False

    @cached_property
    def log_likelihood(self) -> float:
        """Log-likelihood at the estimate."""
        if self.is_far:
            return -as_reported(self.likelihood, self.params)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.likelihood.log_likelihood(self.params)

    @property
    def reported(self) -> np.ndarray:
        """The reported parameters."""
        return self.jacobian @ self.params

    @cached_property
    def bread(self) -> np.ndarray:
        """Inverse of the Hessian across what is not identified; NaN where it has none."""
        inner = self.across.T @ self.hessian @ self.across
        try:
            return self.across @ cho_solve(cho_factor(inner), self.across.T)
        except LinAlgError:
            # A fit with scale effects may end on its way, where the likelihood is not concave.
            return np.full_like(self.hessian, np.nan)

    @cached_property
    def identified(self) -> np.ndarray:
        """Which reported parameters the data identify."""
        if self.in_order:
            return np.zeros(len(self.jacobian), dtype=bool)
        return ~np.any(self.free, axis=1)

    @property
    def aliased(self) -> np.ndarray:
        """Which reported parameters collinear columns leave undetermined."""
        return np.any(self.free[:, : self.n_aliased], axis=1)

    def covariance(self, meat: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Covariance of the reported parameters, and standard errors; NaN where not identified.

        Rows are scaled before they are multiplied, so that standard errors are finite where
        variances leave the range of floats.
        """
        inner = self.bread if meat is None else self.bread @ meat @ self.bread
        unit = np.abs(self.jacobian).max(axis=1)
        unit = np.where(unit > 0.0, unit, 1.0)
        rows = self.jacobian / unit[:, None]
        scaled = rows @ inner @ rows.T
        errors = unit * np.sqrt(np.maximum(np.diagonal(scaled), 0.0))
        with np.errstate(over="ignore"):
            covariance = 0.5 * (scaled + scaled.T) * unit[:, None] * unit
        covariance[~self.identified] = np.nan
        covariance[:, ~self.identified] = np.nan
        return covariance, np.where(self.identified, errors, np.nan)


def fit_design(
    design: Design,
    link: Link,
    names: Names,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    callback: Callable[..., Any] | None = None,
) -> tuple[Fitted, list[tuple[type[Warning], str]]]:
    """Fit; return the estimate and the warnings that it deserves.

    `names` are those of the proportional, nominal and scale columns.
    """
    sizes, size, units = design.sizes, design.n_parameters, design.units
    notes: list[tuple[type[Warning], str]] = []
    expand, free = np.eye(size), np.zeros((size, 0))
    if alpha == 0.0:
        reduction = reduce_columns(design, names)
        design, expand, free = reduction.design, reduction.expand, reduction.free
        if reduction.found:
            notes.append((CollinearityWarning, _collinear_message(reduction.found)))
    likelihood, result = _minimise(design, link, alpha, tol, max_iter, callback)
    end = _finish(likelihood, result, alpha, tol, max_iter)
    params, hessian, hidden = end.params, end.hessian, end.hidden
    jacobian = expand @ likelihood.design.jacobian()
    gone = jacobian @ hidden
    if end.separated is not None:
        moved = _moved(jacobian @ end.separated.free, units, sizes, names)
        notes.append((SeparationWarning, _separated_message(end.separated, moved)))
    if end.spreads is not None:
        notes.append(_spreads_note(jacobian, units, end.spreads, names[2]))
    notes += end.notes
    across = null_space(hidden.T) if hidden.shape[1] else np.eye(len(params))
    fitted = Fitted(
        likelihood=likelihood,
        params=params,
        jacobian=jacobian,
        hessian=hessian,
        across=across,
        free=without_rounding(np.hstack([free, gone]), units),
        n_aliased=free.shape[1],
        in_order=end.in_order,
        n_iter=max(1, result.n_iter),
        is_far=end.spreads is not None,
    )
    return fitted, notes


def without_rounding(directions: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Directions without the moves that are tiny beside their largest, in units of their own."""
    size = np.abs(directions) / units[:, None]
    return np.where(size > 1e-7 * size.max(axis=0, initial=0.0), directions, 0.0)


def _minimise(
    design: Design,
    link: Link,
    alpha: float,
    tol: float,
    max_iter: int,
    callback: Callable[..., Any] | None,
) -> tuple[Likelihood, NewtonResult]:
    """Newton; with scale columns once more without their centring, in which all is linear."""
    likelihood = Likelihood(design, link, alpha)
    if not design.sizes[3]:
        return likelihood, fit(likelihood, tol, max_iter, callback)
    early = fit(Likelihood(design, link, alpha), tol, max_iter, callback).x
    r, bound = design.sizes[3], tol * design.total
    likelihood = Likelihood(design.with_raw_scale(), link, alpha)
    growth = float(early[-r:] @ (design.spread.mean / design.spread.scale))
    start = np.concatenate([early[:-r] * np.exp(growth), early[-r:]])
    if not is_finite(likelihood, start):
        start = likelihood.start()
    # There may be several maxima, of which a large sample shows the best one early.
    if design.n_items <= 4 * design.thinned().n_items:
        start = better_start(likelihood, start)
    return likelihood, minimize(likelihood, start, tol=bound, max_iter=max_iter, callback=callback)


@dataclass(frozen=True)
class _End:
    """Where a fit ends: what runs to infinity, the directions that nothing identifies, warnings."""

    params: np.ndarray
    hessian: np.ndarray
    hidden: np.ndarray
    separated: Recession | None
    spreads: SpreadFit | None
    in_order: bool
    notes: list[tuple[type[Warning], str]]


def _finish(
    likelihood: Likelihood, result: NewtonResult, alpha: float, tol: float, max_iter: int
) -> _End:
    """The last step: settle what is separated, keep thresholds in order, or polish."""
    design, bound = likelihood.design, tol * likelihood.design.total
    p, q, _, r = design.sizes
    in_doubt = not result.converged or _is_flat(likelihood, result.hessian)
    found = recession(design) if in_doubt and alpha == 0.0 and p + q else None
    free = np.zeros((design.n_parameters, 0)) if found is None else found.free
    spreads = None
    # Where every item gains, spreads matter no more.
    if r and in_doubt and not (found is not None and found.complete):
        spreads = fit_spreads(likelihood, result.x, free, tol)
    notes: list[tuple[type[Warning], str]] = []
    if spreads is not None and (found is not None or spreads.off.shape[1]):
        if found is None:
            params, hidden = spreads.params, spreads.hidden
        else:
            spreads, params = _far_out(likelihood, result.x, found, spreads, tol)
            hidden = np.hstack([free, _beside(spreads.hidden, free)])
        hessian = _hessian(likelihood, params)
    elif found is not None:
        params, hidden = settle(likelihood, result.x, found, tol, max_iter), free
        hessian = _hessian(likelihood, params)
    else:
        if spreads is not None:
            result = minimize(likelihood, spreads.params, tol=bound, max_iter=max_iter)
        params, hessian = _polished(likelihood, result), result.hessian
        hidden = _flat_directions(hessian)
        if not result.converged:
            message = f"CumulativeLink stopped early: {result.message} (max_iter={max_iter})"
            notes.append((ConvergenceWarning, message))
    crossed = crossings(design, params) if q else 0
    if crossed:
        notes.append((CrossingWarning, _crossing_message(crossed)))
        params = fit_in_order(likelihood, tol, max_iter).x
    off = None
    # What separates the classes explains idle spreads too.
    if spreads is not None and spreads.off.shape[1] and not (spreads.idle and found is not None):
        off = spreads
    return _End(params, hessian, hidden, found, off, crossed > 0, notes)


def _far_out(
    likelihood: Likelihood, last: np.ndarray, found: Recession, spreads: SpreadFit, tol: float
) -> tuple[SpreadFit, np.ndarray]:
    """What separates the classes taken far out, in units of spreads as wide as rounding admits.

    Where the way out, long beside the other items' spreads, costs these more by its rounding than
    it gains, narrower spreads are tried.
    """
    total = likelihood.design.total
    fits: list[tuple[float, SpreadFit, np.ndarray]] = []
    for width in (None, *_WIDTHS):
        fit = spreads if width is None else fit_spreads(likelihood, last, found.free, tol, width)
        if fit is not None:
            point = far_out(likelihood, fit.params, found.direction, fit.value, 0.1 * tol * total)
            value = as_reported(likelihood, point)
            fits.append((value, fit, point))
        if min(value for value, _, _ in fits) <= spreads.value + _ROUGH * total:
            break
    _, fit, point = min(fits, key=lambda entry: entry[0])
    return fit, point


def _beside(directions: np.ndarray, others: np.ndarray) -> np.ndarray:
    """What directions add to others that are orthonormal."""
    rest = directions - others @ (others.T @ directions)
    return np.where(np.abs(rest) > 1e-5 * np.abs(directions).max(axis=0), rest, 0.0)


def _hessian(likelihood: Likelihood, params: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return likelihood.value_gradient_hessian(params)[2]


def _is_flat(likelihood: Likelihood, hessian: np.ndarray) -> bool:
    """Whether some direction has lost nearly all the curvature that it has without effects."""
    if np.linalg.eigvalsh(hessian)[0] > _FLAT * likelihood.design.total:
        return False
    first = likelihood.value_gradient_hessian(likelihood.start())[2]
    try:
        return bool(eigh(hessian, first, eigvals_only=True)[0] < _FLAT)
    except LinAlgError:
        return True


def _flat_directions(hessian: np.ndarray) -> np.ndarray:
    """Directions without curvature; none where the matrix is positive definite."""
    try:
        cho_factor(hessian)
        return np.zeros((len(hessian), 0))
    except LinAlgError:
        values, vectors = np.linalg.eigh(hessian)
        return vectors[:, values <= 1e-12 * values[-1]]


def _polished(likelihood: Likelihood, result: NewtonResult) -> np.ndarray:
    """One more Newton step, whose Hessian is there already."""
    if not result.converged:
        return result.x
    step = np.linalg.lstsq(result.hessian, result.gradient, rcond=None)[0]
    last = result.x - step
    return last if likelihood.is_inside(last) else result.x


def _collinear_message(found: tuple[str, ...]) -> str:
    return (
        "X has collinear columns, so that the coefficients are not unique: "
        f"{'; '.join(found)}. Those of least norm are given, without standard errors; to choose "
        "others drop columns or set alpha > 0"
    )


def _separated_message(found: Recession, columns: str) -> str:
    how = "completely" if found.complete else "in part"
    return (
        f"the classes are separated {how} by a linear combination of {columns}, so that no finite "
        "coefficients maximise the likelihood. The fit is within tol of its supremum, and has no "
        "standard errors for what is not identified; drop or merge columns, merge classes, or set "
        "alpha > 0 for another"
    )


def _spreads_note(
    jacobian: np.ndarray, units: np.ndarray, spreads: SpreadFit, names: list[str]
) -> tuple[type[Warning], str]:
    """What to say of scale coefficients that the data do not hold."""
    r = len(spreads.off)
    off = jacobian[:, jacobian.shape[1] - r :] @ spreads.off
    moved = np.any(without_rounding(off, units), axis=1)
    columns = listed(
        [name for name, is_moved in zip(names, moved[-len(names) :], strict=True) if is_moved]
    )
    if spreads.idle:
        return CollinearityWarning, (
            f"the likelihood is the same for all scale coefficients of {columns}: the fit given "
            "has no standard errors for what is not identified; drop scale columns"
        )
    return SeparationWarning, (
        f"the likelihood grows as scale coefficients of {columns} go to infinity, and with them "
        "spreads of some items to zero or to infinity, so that no finite ones maximise it. The fit "
        "is as near to the supremum as tol and the rounding of its parameters admit, and has no "
        "standard errors for what is not identified; drop scale columns or merge classes"
    )


def _moved(
    gone: np.ndarray, units: np.ndarray, sizes: tuple[int, int, int, int], names: Names
) -> str:
    """Names of the columns whose coefficients are not identified."""
    p, q, m, _ = sizes
    moved = np.any(without_rounding(gone, units), axis=1)
    rows = np.concatenate([moved[:p], moved[p : p + q * m].reshape(q, m).any(axis=1)])
    return listed(
        [name for name, is_moved in zip(names[0] + names[1], rows, strict=True) if is_moved]
    )


def _crossing_message(n: int) -> str:
    return (
        f"the thresholds of the best unconstrained fit cross at {n} items; the fit given keeps "
        "them in order there, and has no standard errors"
    )
