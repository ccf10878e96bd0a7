"""What can be wrong with the data of a cumulative link model, and a test of its assumption.

Collinear columns leave the coefficients undetermined; separated classes send them to infinity.
Both are decided on the data, not guessed from a failed fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import chdtrc

from rankbook.exceptions import CollinearityError, SeparationError
from rankbook.models._cumulative_likelihood import Design, weighted_gram
from rankbook.models._links import Link

__all__ = ["ProportionalityTest", "check_collinearity", "check_separation", "proportionality"]

# A column whose variance, given those before it, is a smaller share than this is a combination.
_COLLINEAR = 1e-12
_SHOWN = 6


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def check_collinearity(design: Design, names: list[str]) -> None:
    """Raise `CollinearityError` naming each column that the earlier ones and a constant give."""
    constant = np.flatnonzero(design.constant)
    # Columns that are independent on some of the items are so on all of them.
    if not len(constant) and (_is_regular(design.thinned()) or _is_regular(design)):
        return
    found = [f"{names[j]} is constant, as the thresholds are" for j in constant]
    found += _combinations(design.correlation(), design.constant, names)
    if found:
        raise CollinearityError(
            "X has collinear columns, so that the coefficients are not unique: "
            f"{'; '.join(found)}. Drop these columns, or set alpha > 0"
        )


def _is_regular(design: Design) -> bool:
    """Whether no column is nearly a combination of those before it."""
    try:
        residual = np.diagonal(np.linalg.cholesky(design.correlation())) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(residual > _COLLINEAR))


def _combinations(gram: np.ndarray, constant: np.ndarray, names: list[str]) -> list[str]:
    """Cholesky column by column, leaving out the columns that earlier ones explain."""
    kept: list[int] = []
    factor = np.zeros_like(gram)
    found = []
    for j in np.flatnonzero(~constant):
        m = len(kept)
        row = solve_triangular(factor[:m, :m], gram[kept, j], lower=True) if m else np.zeros(0)
        residual = gram[j, j] - row @ row
        if residual > _COLLINEAR * gram[j, j]:
            factor[m, :m], factor[m, m] = row, np.sqrt(residual)
            kept.append(int(j))
            continue
        weights = solve_triangular(factor[:m, :m], row, lower=True, trans="T")
        used = [names[kept[i]] for i in np.flatnonzero(np.abs(weights) > 1e-5)]
        found.append(f"{names[j]} is a combination of {_listed(used)}")
    return found


def check_separation(design: Design, names: list[str]) -> None:
    r"""Raise `SeparationError` if the likelihood has no maximiser.

    It has none exactly if some direction :math:`(\beta, \tau) \neq 0` has
    :math:`\tau_{k-1} \le x_i^\top \beta \le \tau_k` for every item i, k being its class: along it
    no item's probability falls. A linear program looks for the direction with the largest sum of
    slacks.
    """
    slacks = _slack_matrix(design)
    total = np.asarray(slacks.sum(axis=0)).ravel() / slacks.shape[0]
    direction = _best_direction(slacks, total)
    slack = slacks @ direction
    # HiGHS is feasible to 1e-7 in data of unit scale.
    if slack.max() < 1e-4 or slack.min() < -1e-6:
        return
    columns = [names[j] for j in np.flatnonzero(np.abs(direction[: len(names)]) > 1e-6)]
    # With a margin as one more variable: can every item be strictly inside its interval?
    wide = sp.csr_array(sp.hstack([slacks, -np.ones((slacks.shape[0], 1))]))
    margin = _best_direction(wide, np.append(np.zeros(slacks.shape[1]), 1.0))[-1]
    raise SeparationError(
        f"y: the classes are separated {'completely' if margin > 1e-6 else 'in part'} by a linear "
        f"combination of {_listed(columns)}, so that the likelihood grows without bound and has no "
        "maximiser. Drop or merge columns, merge classes, or set alpha > 0"
    )


def _best_direction(slacks: sp.csr_array, gain: np.ndarray) -> np.ndarray:
    """Maximise gain over the directions in the unit cube whose slacks are all non-negative."""
    # Only a fit in trouble comes here, so the solver is not loaded with the package.
    from scipy.optimize import linprog

    b = np.zeros(slacks.shape[0])
    result = linprog(-gain, A_ub=-slacks, b_ub=b, bounds=(-1, 1), method="highs")
    return np.zeros(len(gain)) if result.x is None else result.x


def _slack_matrix(design: Design) -> sp.csr_array:
    """Rows tau_k - x beta (items below the last class) and x beta - tau_(k-1) (above the first)."""
    n, m, edges = design.x.shape[0], design.n_classes - 1, design.edges
    codes = np.repeat(np.arange(m + 1), np.diff(edges))
    x = sp.csr_array(design.x)
    below, above = edges[-2], edges[1]
    upper = sp.csr_array((np.ones(below), (np.arange(below), codes[:below])), shape=(below, m))
    shape = (n - above, m)
    lower = sp.csr_array(
        (np.ones(n - above), (np.arange(n - above), codes[above:] - 1)), shape=shape
    )
    return sp.csr_array(sp.vstack([sp.hstack([-x[:below], upper]), sp.hstack([x[above:], -lower])]))


@dataclass(frozen=True)
class ProportionalityTest:
    """Score test of one coefficient a column against one a column and threshold.

    Attributes
    ----------
    statistic, df, p_value : float, int, float
        All columns at once: chi-squared with p (K - 2) degrees of freedom.
    names : tuple of str
        The columns.
    column_statistics, column_df, column_p_values : ndarray, int, ndarray
        Each column alone: K - 2 degrees of freedom.
    """

    statistic: float
    df: int
    p_value: float
    names: tuple[str, ...]
    column_statistics: np.ndarray
    column_df: int
    column_p_values: np.ndarray

    def __str__(self) -> str:
        width = max(len("all columns"), *(len(name) for name in self.names))
        lines = [f"{'column':<{width}}  {'statistic':>10}  {'df':>3}  {'P>chi2':>7}"]
        rows = zip(self.names, self.column_statistics, self.column_p_values, strict=True)
        for name, statistic, p_value in rows:
            lines.append(
                f"{name:<{width}}  {statistic:>10.3f}  {self.column_df:>3}  {p_value:>7.4f}"
            )
        lines.append(
            f"{'all columns':<{width}}  {self.statistic:>10.3f}  {self.df:>3}  {self.p_value:>7.4f}"
        )
        return "\n".join(lines)


def proportionality(
    design: Design, link: Link, b: np.ndarray, theta: np.ndarray, names: list[str]
) -> ProportionalityTest:
    """Score test at the fitted (standardised) parameters, with the expected information."""
    p, m = len(b), len(theta)
    score, information = _unconstrained(design, link, b, theta)
    # Parameters of the larger model, threshold by threshold: (theta_k, b_k). The fitted model
    # ties the b_k together; `fitted` maps its (theta, b) to the larger model's parameters.
    fitted = np.zeros((m * (p + 1), m + p))
    for k in range(m):
        fitted[k * (p + 1), k] = 1.0
        fitted[k * (p + 1) + 1 : (k + 1) * (p + 1), m:] = np.eye(p)
    if _quadratic(score @ fitted, fitted.T @ information @ fitted) > 1e-6:
        raise ValueError("X, y and sample_weight must be the data that the model was fitted on")
    statistic = _quadratic(score, information)
    columns = np.zeros(p)
    for j in range(p):
        own = np.zeros((m * (p + 1), m - 1))
        own[np.arange(1, m) * (p + 1) + 1 + j, np.arange(m - 1)] = 1.0
        basis = np.hstack([fitted, own])
        columns[j] = _quadratic(score @ basis, basis.T @ information @ basis)
    df = p * (m - 1)
    return ProportionalityTest(
        statistic=statistic,
        df=df,
        p_value=float(chdtrc(df, statistic)),
        names=tuple(names),
        column_statistics=columns,
        column_df=m - 1,
        column_p_values=chdtrc(m - 1, columns),
    )


def _quadratic(score: np.ndarray, information: np.ndarray) -> float:
    return float(score @ cho_solve(cho_factor(information), score))


def _unconstrained(design: Design, link: Link, b: np.ndarray, theta: np.ndarray):
    r"""Score and expected information of the model with its own coefficients at each threshold.

    With :math:`f_k` the density at threshold k and :math:`p_k` the class probabilities, one
    item's information about its K - 1 linear predictors is tridiagonal:
    :math:`f_k^2 (1/p_k + 1/p_{k+1})` and :math:`-f_k f_{k+1} / p_{k+1}`.
    """
    p, m = len(b), len(theta)
    n = design.x.shape[0]
    weights = np.ones(n) if design.weights is None else design.weights
    z = theta - np.asarray(design.x @ b)[:, None]
    log_f = link.log_pdf(z)
    log_p = log_probabilities(link, z, theta)
    score = np.zeros(m * (p + 1))
    information = np.zeros((m * (p + 1), m * (p + 1)))
    parts = [slice(k * (p + 1), (k + 1) * (p + 1)) for k in range(m)]
    for k in range(m):
        slope = np.zeros(n)
        low, mid, high = design.edges[k], design.edges[k + 1], design.edges[k + 2]
        slope[low:mid] = np.exp(log_f[low:mid, k] - log_p[low:mid, k])
        slope[mid:high] = -np.exp(log_f[mid:high, k] - log_p[mid:high, k + 1])
        score[parts[k]] = _with_ones(design.x, slope * weights)
        own = np.exp(2 * log_f[:, k] - log_p[:, k]) + np.exp(2 * log_f[:, k] - log_p[:, k + 1])
        information[parts[k], parts[k]] = _bordered_gram(design.x, own * weights)
        if k + 1 < m:
            mixed = -np.exp(log_f[:, k] + log_f[:, k + 1] - log_p[:, k + 1])
            block = _bordered_gram(design.x, mixed * weights)
            information[parts[k], parts[k + 1]] = information[parts[k + 1], parts[k]] = block
    return score, information


def log_probabilities(link: Link, z: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """log P(Y = k) for each item and class, from z = theta - eta."""
    m = len(theta)
    gaps = [None, *np.diff(theta).tolist(), None]
    ends = [(z[:, k] if k < m else None, z[:, k - 1] if k else None) for k in range(m + 1)]
    return np.stack([link.log_interval(*ends[k], gaps[k]) for k in range(m + 1)], axis=1)


def _with_ones(x, values: np.ndarray) -> np.ndarray:
    """The product of [1, -x]' and values."""
    return np.concatenate([[values.sum()], -np.asarray(x.T @ values).ravel()])


def _bordered_gram(x, weights: np.ndarray) -> np.ndarray:
    """[1, -x]' diag(weights) [1, -x]."""
    border = -np.asarray(x.T @ weights).ravel()
    return np.block(
        [[weights.sum(), border[None, :]], [border[:, None], weighted_gram(x, weights)]]
    )
