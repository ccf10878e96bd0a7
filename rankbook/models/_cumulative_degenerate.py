r"""Data on which a cumulative link model has no unique maximum, and the fit they still deserve.

Collinear columns leave coefficients undetermined: among all that maximise the likelihood the ones
of least norm are taken. Separated classes send some to infinity: the fit stops where the
likelihood is within the tolerance of its supremum. Both are decided on the data, not guessed from
a failed fit, and both leave a list of *free directions*, along which nothing is identified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag, null_space, solve_triangular

from rankbook.models._cumulative_design import Design, Standardised
from rankbook.models._cumulative_likelihood import Likelihood
from rankbook.models._restricted import Restricted
from rankbook.solvers.design import weighted_gram
from rankbook.solvers.newton import minimize
from rankbook.solvers.separation import separation

__all__ = [
    "Recession",
    "Reduction",
    "as_reported",
    "far_out",
    "recession",
    "reduce_columns",
    "settle",
    "slack_matrix",
]

# A column whose variance, given those before it, is a smaller share than this is a combination.
_COLLINEAR = 1e-12
_SHOWN = 6
# A slack that is a smaller share of the largest is the solver's error.
_SLACK = 1e-5
# The largest multiple of a recession direction.
_FAR = 1e300


def listed(names: list[str]) -> str:
    """Names with commas, the first few of many."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


@dataclass(frozen=True)
class Reduction:
    """A design without redundant columns, and the way back.

    `expand` maps reported parameters of the smaller design to those of the full one, of least
    norm; `free` are the full one's directions that change no probability; `found` says in words
    which columns are redundant.
    """

    design: Design
    expand: np.ndarray
    free: np.ndarray
    found: tuple[str, ...]


def reduce_columns(design: Design, names: tuple[list[str], list[str], list[str]]) -> Reduction:
    """Leave out each column that the earlier ones and a constant give (nominal columns first)."""
    size = design.n_parameters
    parts = (design.nominal.constant, design.location.constant, design.spread.constant)
    constant = any(part.any() for part in parts)
    # Columns that are independent on some of the items are so on all of them.
    if not constant and (_is_regular(design.thinned()) or _is_regular(design)):
        return Reduction(design, np.eye(size), np.zeros((size, 0)), ())
    q = design.sizes[1]
    kept, dropped, found = _independent(*_moments(design), names[1] + names[0])
    kept_w, kept_x = kept[kept < q], kept[kept >= q] - q
    spread, _, more = _independent(*_spread_moments(design), names[2])
    found += [f"{line} in the scale" for line in more]
    small = design.keeping(kept_x, kept_w, spread)
    pad = _padding(design, kept_x, kept_w, spread)
    free = _free_directions(design, kept, dropped)
    coefficients = _coefficient_rows(design)
    gone = np.setdiff1d(np.arange(design.sizes[3]), spread)
    unit = np.eye(size)[:, size - design.sizes[3] :][:, gone]
    expand = _least_norm(free, coefficients) @ pad
    return Reduction(small, expand, np.hstack([free, unit]), tuple(found))


def _moments(design: Design) -> tuple[np.ndarray, np.ndarray]:
    """Covariances of nominal and location columns (standardised), and which are constant."""
    x, w = design.location.x, design.nominal.x[:, :-1]
    weights, total = design.weights, design.total
    ones = np.ones(design.n_items) if weights is None else weights
    mean = np.concatenate([w.T @ ones, np.asarray(x.T @ ones).ravel()]) / total
    weighted = w if weights is None else w * weights[:, None]
    cross = np.asarray(x.T @ weighted)
    gram = np.block([[weighted_gram(w, weights), cross.T], [cross, weighted_gram(x, weights)]])
    constant = np.concatenate([design.nominal.constant, design.location.constant])
    return gram / total - np.outer(mean, mean), constant


def _spread_moments(design: Design) -> tuple[np.ndarray, np.ndarray]:
    gram = weighted_gram(design.spread.x, design.weights) / design.total
    return gram, design.spread.constant


def _is_regular(design: Design) -> bool:
    """Whether no column is nearly a combination of those before it."""
    for gram, _ in (_moments(design), _spread_moments(design)):
        try:
            residual = np.diagonal(np.linalg.cholesky(gram)) ** 2
        except np.linalg.LinAlgError:
            return False
        if not np.all(residual > _COLLINEAR):
            return False
    return True


def _independent(
    gram: np.ndarray, constant: np.ndarray, names: list[str]
) -> tuple[np.ndarray, dict[int, np.ndarray], list[str]]:
    """Cholesky column by column: columns kept, the others' weights on all, and words."""
    kept: list[int] = []
    factor = np.zeros_like(gram)
    dropped, found = {}, []
    for j in range(len(gram)):
        weights = np.zeros(len(gram))
        if constant[j]:
            dropped[j] = weights
            found.append(f"{names[j]} is constant, as the thresholds are")
            continue
        m = len(kept)
        row = solve_triangular(factor[:m, :m], gram[kept, j], lower=True) if m else np.zeros(0)
        residual = gram[j, j] - row @ row
        if residual > _COLLINEAR * gram[j, j]:
            factor[m, :m], factor[m, m] = row, np.sqrt(residual)
            kept.append(j)
            continue
        weights[kept] = solve_triangular(factor[:m, :m], row, lower=True, trans="T")
        dropped[j] = weights
        used = [names[i] for i in np.flatnonzero(np.abs(weights) > 1e-5)]
        found.append(f"{names[j]} is a combination of {listed(used)}")
    return np.array(kept, dtype=int), dropped, found


def _coefficient_rows(design: Design) -> np.ndarray:
    p, q, m, _ = design.sizes
    return np.arange(p + q * m)


def _padding(design: Design, x: np.ndarray, w: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Reported parameters of the smaller design among those of the full one."""
    p, q, m, r = design.sizes
    rows = np.concatenate(
        [x] + [p + j * m + np.arange(m) for j in w] + [p + q * m + np.arange(m), p + q * m + m + z]
    ).astype(int)
    pad = np.zeros((design.n_parameters, len(rows)))
    pad[rows, np.arange(len(rows))] = 1.0
    return pad


def _centres(part: Standardised, design: Design) -> np.ndarray:
    """Means of the columns, in standard deviations (a sparse matrix is not centred)."""
    if not sp.issparse(part.x):
        return part.mean / part.scale
    ones = np.ones(design.n_items) if design.weights is None else design.weights
    return np.asarray(part.x.T @ ones).ravel() / design.total


def _free_directions(
    design: Design, kept: np.ndarray, dropped: dict[int, np.ndarray]
) -> np.ndarray:
    """Directions in the reported parameters along which no probability changes."""
    p, q, m, r = design.sizes
    scale = np.concatenate([design.nominal.scale, design.location.scale])
    centre = np.concatenate(
        [design.nominal.mean / design.nominal.scale, _centres(design.location, design)]
    )
    columns = []
    for j, weights in dropped.items():
        change = -weights
        change[j] += 1.0
        level, raw = change @ centre, change / scale
        # A nominal column is free at each threshold alone, another one at all of them together.
        groups = [[k] for k in range(m)] if j < q else [list(range(m))]
        for group in groups:
            direction = np.zeros(design.n_parameters)
            direction[:p] = raw[q:]
            for k in group:
                direction[p + np.arange(q) * m + k] = raw[:q]
                direction[p + q * m + k] = level
            columns.append(direction)
    return np.array(columns).T if columns else np.zeros((design.n_parameters, 0))


def _least_norm(free: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Projection along the free directions to the point whose `rows` have the least norm."""
    project = np.eye(len(free))
    if free.shape[1]:
        unit = free / np.abs(free[rows]).max(axis=0)
        project[:, rows] -= unit @ np.linalg.pinv(unit[rows])
    return project


@dataclass(frozen=True)
class Recession:
    """Where the likelihood has no maximiser.

    `direction` never lowers the likelihood and raises it as far as any can; `free` spans all such
    directions; `complete` says whether every item ends inside its interval.
    """

    direction: np.ndarray
    free: np.ndarray
    complete: bool


def recession(design: Design) -> Recession | None:
    r"""Decide whether the likelihood has a maximiser; where not, say along what it grows.

    It has none exactly if some direction of :math:`(b, \gamma, \theta)` has, for every item, a
    non-negative slack at both ends of its interval, not all zero: along it no item's probability
    falls. Linear programs look for directions with the largest sum of slacks, among the items
    that have none yet, until no more item can gain.
    """
    slacks = _distinct(slack_matrix(design))
    direction = np.zeros(slacks.shape[1])
    zero = np.ones(slacks.shape[0], dtype=bool)
    complete = False
    while zero.any():
        found = separation(slacks[zero])
        if found is None:
            break
        complete = complete or (bool(zero.all()) and found.complete)
        slack = slacks @ found.direction
        # Rows that grow already make up for what the new direction takes from them.
        grown = slacks @ direction
        need = np.max(-slack[~zero] / grown[~zero], initial=0.0)
        direction = (2.0 * need + 1.0) * direction + found.direction
        zero &= slack <= _SLACK * np.abs(slack[zero]).max()
    if not direction.any():
        return None
    tight = slacks[zero]
    values, vectors = np.linalg.eigh((tight.T @ tight).toarray())
    free = vectors[:, values <= 1e-10 * max(values[-1], 1.0)]
    r = design.sizes[3]
    # Where every item gains, the spreads matter no more.
    scale = np.eye(r)[:, : 0 if zero.any() else r]
    free = block_diag(free, scale)
    return Recession(np.append(direction, np.zeros(r)), free, complete)


def _distinct(rows: sp.csr_array) -> sp.csr_array:
    """Rows without repetition, so that a repeated item is one as well as a weighted one is."""
    key = rows @ np.random.default_rng(0).normal(size=rows.shape[1])
    return rows[np.unique(key, return_index=True)[1]]


def slack_matrix(design: Design) -> sp.csr_array:
    """Rows for the upper end of each item below the last class, then for the lower ends."""
    p, q, m, _ = design.sizes
    codes, width = design.codes, q + 1
    parts = []
    for sign, rows, k in (
        (-1.0, slice(0, design.edges[-2]), codes[: design.edges[-2]]),
        (1.0, slice(design.edges[1], None), codes[design.edges[1] :] - 1),
    ):
        w = sign * design.nominal.x[rows]
        places = (k[:, None] * width + np.arange(width)).ravel()
        ends = np.arange(len(k) + 1) * width
        own = sp.csr_array((w.ravel(), places, ends), shape=(len(k), m * width))
        parts.append(sp.hstack([sign * sp.csr_array(design.location.x[rows]), own]))
    return sp.csr_array(sp.vstack(parts))


def settle(
    likelihood: Likelihood, params: np.ndarray, found: Recession, tol: float, max_iter: int
) -> np.ndarray:
    """A finite point whose objective is within the tolerance of the infimum.

    Across the free directions Newton finds the minimum; along the recession direction the point
    moves until the objective falls by no more than a fraction of the tolerance. What the point
    had along other free directions is arbitrary, and goes.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _settled(likelihood, params, found, tol, max_iter)


def _settled(
    likelihood: Likelihood, params: np.ndarray, found: Recession, tol: float, max_iter: int
) -> np.ndarray:
    across = null_space(found.free.T)
    bound = tol * likelihood.design.total
    base, step = across @ (across.T @ params), 2.0**-12
    while not likelihood.is_inside(base + step * found.direction):
        step *= 2.0
    for _ in range(3):
        if across.shape[1]:
            part = Restricted(likelihood, base + step * found.direction, across)
            result = minimize(part, np.zeros(across.shape[1]), tol=bound, max_iter=max_iter)
            base = base + across @ result.x
        first = value = likelihood.value(base + step * found.direction)
        for _ in range(60):
            last, value = value, likelihood.value(base + 2.0 * step * found.direction)
            if not value < last - 0.1 * bound:
                break
            step *= 2.0
        if first - last <= bound:
            break
    return base + step * found.direction


def far_out(
    likelihood: Likelihood, base: np.ndarray, direction: np.ndarray, target: float, bound: float
) -> np.ndarray:
    """A point along a direction at which the objective is within a bound of its limit there.

    Where rounding is in the way, the point from which the objective falls no more.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        step = 2.0**-12
        while not likelihood.is_inside(base + step * direction):
            step *= 2.0
        last, value = np.inf, likelihood.value(base + step * direction)
        rough = target + 1e-6 * likelihood.design.total
        while value > target + bound and (value < last or not value < rough) and step < _FAR:
            step *= 2.0
            last, value = value, likelihood.value(base + step * direction)
    return base + step * direction


def as_reported(likelihood: Likelihood, params: np.ndarray) -> float:
    """The objective at the reported parameters, whose rounding may matter far out."""
    design = likelihood.design

    def raw(part: Standardised, n_others: int = 0) -> Standardised:
        q = part.x.shape[1] - n_others
        x = part.x[:, :q] * part.scale
        if part.mean.any():
            x = x + part.mean
        if n_others:
            x = np.asfortranarray(np.hstack([x, part.x[:, q:]]))
        return replace(part, x=x, mean=np.zeros(q), scale=np.ones(q))

    plain = replace(
        design,
        location=raw(design.location),
        nominal=raw(design.nominal, 1),
        spread=raw(design.spread),
    )
    there = plain.jacobian().T @ (design.jacobian() @ params)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return float(np.nan_to_num(Likelihood(plain, likelihood.link).value(there), nan=np.inf))
