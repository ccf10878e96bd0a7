"""Tests of cumulative link models: nested fits, dropped columns, proportionality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import chdtrc

from rankbook._link import Link
from rankbook.models._cumulative_design import Design
from rankbook.models._summary import Table
from rankbook.solvers.design import weighted_gram

__all__ = ["ProportionalityTest", "anova", "proportionality", "ratio_table", "wald_table"]


def ratio_table(
    title: str,
    names: list[str],
    sizes: list[int],
    values: list[float],
    pairs: list[tuple[int, int] | None],
    notes: tuple[str, ...] = (),
) -> Table:
    """Table of likelihood-ratio tests; `pairs` are a smaller and a larger fit's rows, or None."""
    ratios, df = np.full(len(names), np.nan), np.full(len(names), np.nan)
    for i, pair in enumerate(pairs):
        if pair is not None:
            small, large = pair
            ratios[i] = max(0.0, 2.0 * (values[large] - values[small]))
            df[i] = sizes[large] - sizes[small]
    aic = 2.0 * np.array(sizes) - 2.0 * np.array(values)
    return Table(
        title=title,
        names=tuple(names),
        headings=("size", "log-lik.", "AIC", "LR", "df", "P>chi2"),
        values=np.column_stack([sizes, values, aic, ratios, df, chdtrc(df, ratios)]),
        digits=(0, 3, 3, 3, 0, 3),
        notes=notes,
    )


def wald_table(title: str, names: list[str], tests: list[tuple[float, int]]) -> Table:
    """Table of Wald tests, given as statistics and degrees of freedom."""
    values = np.array(tests, dtype=float).reshape(-1, 2)
    return Table(
        title=title,
        names=tuple(names),
        headings=("Wald", "df", "P>chi2"),
        values=np.column_stack([values, chdtrc(values[:, 1], values[:, 0])]),
        digits=(3, 0, 3),
        notes=("Wald tests with the robust covariance",),
    )


def anova(*models: Any) -> Table:
    r"""Likelihood-ratio tests of nested cumulative link models, smallest first.

    Twice the difference of two log-likelihoods is asymptotically chi-squared if the smaller model
    holds, with as many degrees of freedom as it has fewer parameters. Whether one model is a case
    of the other cannot be seen from the fits; what can is checked: the same labels, weights,
    offset and link, no ridge, different numbers of parameters, a likelihood that grows with them.
    The ratio trusts the larger model and independent items. A fit with ``covariance="robust"`` says
    not to trust the model, and with clusters not independence either; it is refused, and its
    columns are tested by `CumulativeLink.drop1`, with that covariance.

    Parameters
    ----------
    *models : CumulativeLink
        Two or more fits, in any order, with ``covariance="hessian"`` and ``alpha=0``.

    Returns
    -------
    Table
        A row a model; each after the first is tested against the one before it. ``to_frame()``
        gives a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from rankbook.models import CumulativeLink, anova
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.digitize(X[:, 0] + rng.logistic(size=300), [-1.0, 1.0])
    >>> one, two = CumulativeLink().fit(X[:, :1], y), CumulativeLink().fit(X, y)
    >>> table = anova(one, two)
    >>> bool(np.isclose(table.values[1, 3], 2 * (two.log_likelihood_ - one.log_likelihood_)))
    True
    """
    if len(models) < 2:
        raise ValueError(f"anova needs at least two fitted models, got {len(models)}")
    for model in models:
        if not hasattr(model, "log_likelihood_") or not hasattr(model, "df_"):
            raise ValueError(f"anova needs fitted CumulativeLink models, got {model!r}")
        if model.alpha:
            raise ValueError(f"anova needs fits with alpha=0, got alpha={model.alpha}")
        if model.covariance != "hessian":
            raise ValueError(
                'anova compares likelihoods and needs fits with covariance="hessian", got '
                f"covariance={model.covariance!r}; drop1 tests columns with that covariance"
            )
    ordered = sorted(models, key=lambda model: model.df_)
    for small, large in zip(ordered, ordered[1:], strict=False):
        _check_nested(small, large)
    pairs = [None] + [(i - 1, i) for i in range(1, len(ordered))]
    return ratio_table(
        "Likelihood-ratio tests",
        [f"model {i + 1}" for i in range(len(ordered))],
        [model.df_ for model in ordered],
        [model.log_likelihood_ for model in ordered],
        pairs,
        tuple(f"model {i + 1}: {model.describe()}" for i, model in enumerate(ordered)),
    )


def _check_nested(small: Any, large: Any) -> None:
    """Raise unless two fits can be nested, by what can be seen."""
    if small.n_obs_ != large.n_obs_:
        raise ValueError(
            "the models must be fitted on the same items, got total weights "
            f"{small.n_obs_:g} and {large.n_obs_:g}"
        )
    if small.sample_id_ != large.sample_id_:
        raise ValueError("the models must be fitted on the same y, weights and offset")
    if small._link != large._link:
        raise ValueError(f"the models must share a link, got {small._link!r} and {large._link!r}")
    if small.df_ == large.df_:
        raise ValueError(f"nested models differ in size, got two with {small.df_} parameters")
    if large.log_likelihood_ < small.log_likelihood_ - 1e-6 * abs(small.log_likelihood_):
        raise ValueError(
            "the models are not nested: the larger has the smaller log-likelihood, "
            f"{large.log_likelihood_:.6g} against {small.log_likelihood_:.6g}"
        )


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

    def _table(self) -> Table:
        columns = [self.column_statistics, np.full(len(self.names), self.column_df)]
        rows = np.column_stack([*columns, self.column_p_values])
        return Table(
            title="Score tests of proportionality",
            names=(*self.names, "all columns"),
            headings=("statistic", "df", "P>chi2"),
            values=np.vstack([rows, [self.statistic, self.df, self.p_value]]),
            digits=(3, 0, 3),
        )

    def __str__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def to_frame(self) -> Any:
        """Return the tests as a pandas DataFrame, the last row all columns at once.

        Returns
        -------
        pandas.DataFrame
            Statistic, degrees of freedom and p-value.
        """
        return self._table().to_frame()


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


def _unconstrained(
    design: Design, link: Link, b: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Score and expected information of the model with its own coefficients at each threshold.

    With :math:`f_k` the density at threshold k and :math:`p_k` the class probabilities, one
    item's information about its K - 1 linear predictors is tridiagonal:
    :math:`f_k^2 (1/p_k + 1/p_{k+1})` and :math:`-f_k f_{k+1} / p_{k+1}`.
    """
    p, m, n, x = len(b), len(theta), design.n_items, design.location.x
    weights = np.ones(n) if design.weights is None else design.weights
    offset = 0.0 if design.offset is None else design.offset
    z = theta - np.asarray(x @ b + offset)[:, None]
    log_f = link.log_pdf(z)
    log_p = link.log_probabilities(z, np.diff(theta))
    score = np.zeros(m * (p + 1))
    information = np.zeros((m * (p + 1), m * (p + 1)))
    parts = [slice(k * (p + 1), (k + 1) * (p + 1)) for k in range(m)]
    for k in range(m):
        slope = np.zeros(n)
        low, mid, high = design.edges[k], design.edges[k + 1], design.edges[k + 2]
        slope[low:mid] = np.exp(log_f[low:mid, k] - log_p[low:mid, k])
        slope[mid:high] = -np.exp(log_f[mid:high, k] - log_p[mid:high, k + 1])
        score[parts[k]] = _with_ones(x, slope * weights)
        own = np.exp(2 * log_f[:, k] - log_p[:, k]) + np.exp(2 * log_f[:, k] - log_p[:, k + 1])
        information[parts[k], parts[k]] = _bordered_gram(x, own * weights)
        if k + 1 < m:
            mixed = -np.exp(log_f[:, k] + log_f[:, k + 1] - log_p[:, k + 1])
            block = _bordered_gram(x, mixed * weights)
            information[parts[k], parts[k + 1]] = information[parts[k + 1], parts[k]] = block
    return score, information


def _with_ones(x: Any, values: np.ndarray) -> np.ndarray:
    """The product of [1, -x]' and values."""
    return np.concatenate([[values.sum()], -np.asarray(x.T @ values).ravel()])


def _bordered_gram(x: Any, weights: np.ndarray) -> np.ndarray:
    """[1, -x]' diag(weights) [1, -x]."""
    border = -np.asarray(x.T @ weights).ravel()
    return np.block(
        [[weights.sum(), border[None, :]], [border[:, None], weighted_gram(x, weights)]]
    )
