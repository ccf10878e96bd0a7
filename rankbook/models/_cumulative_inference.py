"""What a fitted cumulative link model says of its parameters: intervals, tests, tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from rankbook._links import LINKS
from rankbook._validation import check_choice, check_scalar
from rankbook.models._cumulative_design import Design
from rankbook.models._cumulative_fit import Fitted, fit_design
from rankbook.models._cumulative_precision import Precision
from rankbook.models._cumulative_profile import profile_interval
from rankbook.models._cumulative_tests import (
    ProportionalityTest,
    proportionality,
    ratio_table,
    wald_table,
)
from rankbook.models._summary import Summary, Table, estimates_table

__all__ = ["InferenceMixin", "sandwich_meat"]


def sandwich_meat(fitted: Fitted, cluster: np.ndarray | None) -> np.ndarray:
    """Sum of outer products of the gradients of items, or of clusters' sums of them."""
    design = fitted.likelihood.design
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scores = fitted.likelihood.scores(fitted.params)
    weights = np.ones(design.n_items) if design.weights is None else design.weights
    if cluster is None:
        return scores.T @ (scores * weights[:, None])
    codes = cluster[design.order]
    sums = np.zeros((codes.max() + 1, scores.shape[1]))
    np.add.at(sums, codes, scores * weights[:, None])
    return sums.T @ sums * (len(sums) / (len(sums) - 1.0))


class InferenceMixin:
    """The methods of `CumulativeLink` that look at its parameters."""

    link: str
    alpha: float
    covariance: str
    tol: float
    max_iter: int
    n_features_in_: int
    classes_: np.ndarray
    params_: np.ndarray
    param_names_: list[str]
    standard_errors_: np.ndarray
    log_likelihood_: float
    df_: int
    n_obs_: float
    _link: str
    n_clusters_: int | None
    _roles: Any
    _precision: Precision
    _kept: tuple[Design, Fitted] | None

    def _data(self) -> tuple[Design, Fitted]:
        """The sample and its fit, which pickles leave behind."""
        check_is_fitted(self, "coef_")
        kept = getattr(self, "_kept", None)
        if kept is None:
            raise ValueError("a model that was pickled has lost its sample: fit it again")
        return kept

    def _role_names(self) -> tuple[list[str], list[str], list[str]]:
        names = self._column_names()
        prop, nominal, scale = ([names[j] for j in part] for part in self._roles)
        return prop, nominal, scale

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        if names is not None and len(names) == self.n_features_in_:
            return [str(name) for name in names]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def describe(self) -> str:
        """Return the model's columns in one line.

        Returns
        -------
        str
            Columns of the location, then nominal and scale ones.
        """
        check_is_fitted(self, "coef_")
        parts = zip(("", "nominal ", "scale "), self._role_names(), strict=True)
        shown = [kind + " + ".join(names) for kind, names in parts if names]
        text = ", ".join(shown) or "no columns"
        return text if len(text) <= 66 else text[:63] + "..."

    def confint(self, level: float = 0.95, *, method: str = "wald") -> np.ndarray:
        """Confidence intervals of all parameters.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, strictly between 0 and 1.
        method : {"wald", "profile"}, default="wald"
            Estimate plus and minus a normal quantile of standard errors; or all values that a
            likelihood-ratio test would not reject, which needs ``alpha=0`` and trusts the model,
            whatever `covariance` is. A profile interval has an infinite end where the classes are
            separated, and is NaN where scale effects run off.

        Returns
        -------
        ndarray of shape (n_parameters, 2)
            Lower and upper ends, in the order of `param_names_`.
        """
        check_is_fitted(self, "coef_")
        if not 0.0 < check_scalar(level, "level") < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
        if check_choice(method, ("wald", "profile"), "method") == "wald":
            half = ndtri(0.5 + level / 2.0) * self.standard_errors_
            return np.column_stack([self.params_ - half, self.params_ + half])
        if self.alpha:
            raise ValueError(f"profile intervals need alpha=0, got alpha={self.alpha}")
        fitted = self._data()[1]
        known = ~fitted.aliased & (not fitted.in_order) & (not fitted.is_far)
        ends = np.full((len(self.params_), 2), np.nan)
        for row in np.flatnonzero(known):
            ends[row] = profile_interval(fitted, int(row), level, self.tol)
        return ends

    def odds_ratios(self, level: float = 0.95, *, method: str = "wald") -> Table:
        r"""Odds ratios :math:`e^{b}` with intervals, for the logit link.

        When a column grows by one, the odds of being above any threshold are multiplied by this
        factor (at its own threshold, for a nominal column).

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.
        method : {"wald", "profile"}, default="wald"
            As in `confint`.

        Returns
        -------
        Table
            A row a coefficient; ``to_frame()`` gives a DataFrame.
        """
        check_is_fitted(self, "coef_")
        if self._link != "logit" or len(self._roles.scale):
            raise ValueError("odds ratios need the logit link and no scale effects")
        size = len(self.params_) - (len(self.classes_) - 1)
        ends = self.confint(level, method=method)[:size]
        tail = (1.0 - level) / 2.0
        return Table(
            title="Odds ratios",
            names=tuple(self.param_names_[:size]),
            headings=("odds ratio", f"[{tail:.4g}", f"{1 - tail:.4g}]"),
            values=np.exp(np.column_stack([self.params_[:size], ends])),
            digits=(4, 4, 4),
        )

    def summary(self, level: float = 0.95) -> Summary:
        """Table of estimates, standard errors, z, p-values and intervals.

        Thresholds have no p-value, as no one asks whether they are zero; under a ridge nothing
        has, and there is no AIC or BIC, since the estimate does not maximise the likelihood. With
        ``covariance="robust"`` it does, but the covariance is there for a model that may be wrong
        or for items that depend on each other: what is maximised then is a pseudo-likelihood, and
        is named so, and there is no AIC or BIC either, as `anova` makes no ratio of it.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the (Wald) intervals.

        Returns
        -------
        Summary
            Prints as text, shows as a table in notebooks; the numbers are in ``values`` and
            ``to_frame()``.
        """
        interval = self.confint(level)
        m, r = len(self.classes_) - 1, len(self._roles.scale)
        size = len(self.params_)
        first = size - r - m
        tested = np.full(size, not self.alpha)
        tested[first : size - r] = False
        return estimates_table(
            title="Cumulative link model",
            facts=self._facts(),
            names=self.param_names_,
            estimates=self.params_,
            standard_errors=self.standard_errors_,
            interval=interval,
            level=level,
            tested=tested,
            rules=[i for i in (first, size - r) if 0 < i < size],
        )

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("Link", self._link)]
        if self.alpha:
            facts.append(("Ridge", f"{self.alpha:g}"))
        is_trusted = self.covariance == "hessian"
        if not is_trusted:
            groups = self.n_clusters_
            kind = self.covariance if groups is None else f"{groups} clusters"
            facts.append(("Covariance", kind))
        value, n = self.log_likelihood_, self.n_obs_
        facts += [("Observations", f"{n:g}"), ("Parameters", str(self.df_))]
        facts += [("Log-likelihood" if is_trusted else "Log pseudolik.", f"{value:.3f}")]
        if is_trusted and not self.alpha:
            facts += [("AIC", f"{2.0 * self.df_ - 2.0 * value:.3f}")]
            facts += [("BIC", f"{np.log(n) * self.df_ - 2.0 * value:.3f}")]
        return facts

    def drop1(self, terms: dict[str, Any] | None = None) -> Table:
        r"""Tests of the model without each column in turn.

        With ``covariance="hessian"`` the model is fitted again without the columns, for
        likelihood-ratio tests. These trust the model and independent items; so with
        ``covariance="robust"``, by clusters or not, they are Wald tests with that covariance V:
        :math:`b_S^\top V_{SS}^{-1} b_S` for the coefficients b_S of the columns.

        Parameters
        ----------
        terms : dict of str to list of str or int, optional
            Columns to drop together, by the name of their term; by default each column alone, or,
            after `fit_formula`, each term. A column leaves the location with all its coefficients;
            scale effects are dropped on their own, named ``scale: column``.

        Returns
        -------
        Table
            A row a term; before them, if fits are compared, the model itself. ``to_frame()``
            gives a DataFrame.
        """
        check_is_fitted(self, "coef_")
        if self.alpha:
            raise ValueError(f"drop1 needs a fit with alpha=0, got alpha={self.alpha}")
        names = self._column_names()
        if terms is None:
            terms = getattr(self, "terms_", None) or {name: [name] for name in names}
        if not isinstance(terms, dict):
            raise TypeError(
                f"terms must be a dict of columns by the name of their term, got {terms!r}"
            )
        cases = [(name, self._places(columns, "terms"), False) for name, columns in terms.items()]
        cases += [(f"scale: {names[j]}", np.array([j]), True) for j in self._roles.scale]
        title, labels = "Single columns dropped", [label for label, _, _ in cases]
        if self.covariance == "robust":
            rows = [self._rows(columns, is_scale) for _, columns, is_scale in cases]
            tests = [self._precision.wald(self.params_, part) for part in rows]
            return wald_table(title, labels, tests)
        design = self._data()[0]
        sizes, values = [self.df_], [self.log_likelihood_]
        for _, columns, is_scale in cases:
            smaller = self._refit(design, columns, is_scale)
            sizes.append(smaller.likelihood.design.n_parameters)
            values.append(smaller.log_likelihood)
        pairs: list[tuple[int, int] | None] = [None]
        pairs += [(i, 0) for i in range(1, len(sizes))]
        return ratio_table(title, ["(none)", *labels], sizes, values, pairs)

    def _rows(self, columns: np.ndarray, is_scale: bool) -> np.ndarray:
        """Where the coefficients of some columns stand among the parameters."""
        prop, nominal, scale = (np.flatnonzero(np.isin(part, columns)) for part in self._roles)
        (p, q, _), m = map(len, self._roles), len(self.classes_) - 1
        if is_scale:
            return p + q * m + m + scale
        return np.concatenate([prop, (p + nominal[:, None] * m + np.arange(m)).ravel()])

    def _refit(self, design: Design, columns: np.ndarray, is_scale: bool) -> Fitted:
        """The same model without some columns."""
        drop = ((), columns) if is_scale else (columns, ())
        kept = [
            np.flatnonzero(~np.isin(part, gone))
            for part, gone in zip(self._roles, (drop[0], drop[0], drop[1]), strict=True)
        ]
        named = zip(self._role_names(), kept, strict=True)
        prop, nominal, scale = ([part[i] for i in index] for part, index in named)
        fitted, _ = fit_design(
            design.keeping(*kept), LINKS[self._link], (prop, nominal, scale),
            alpha=0.0, tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip
        return fitted

    def _places(self, columns: Any, name: str) -> np.ndarray:
        """Column numbers from names or numbers."""
        if columns is None:
            return np.zeros(0, dtype=int)
        if isinstance(columns, (str, int, np.integer)):
            columns = [columns]
        if not isinstance(columns, Iterable) or getattr(columns, "ndim", 1) == 0:
            raise TypeError(f"{name} must name columns of X, got {columns!r}")
        names, places = self._column_names(), []
        for column in columns:
            if isinstance(column, str) and column in names:
                places.append(names.index(column))
            elif (
                isinstance(column, (int, np.integer))
                and not isinstance(column, bool)
                and 0 <= column < len(names)
            ):
                places.append(int(column))
            else:
                raise ValueError(f"{name} must name columns of X, got {column!r}; X has {names}")
        if len(set(places)) < len(places):
            raise ValueError(f"{name} must name each column once, got {list(columns)}")
        return np.array(sorted(places), dtype=int)

    def score_test_proportionality(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> ProportionalityTest:
        r"""Test the assumption that a column has one coefficient at all thresholds.

        The larger model is :math:`P(Y \le k \mid x) = F(\theta_k - x^\top b_k)`. Rao's score test
        needs no fit of it: with U the gradient of its log-likelihood and I its expected
        information, both at the fitted model, :math:`U^\top I^{-1} U` is asymptotically
        chi-squared with p (K - 2) degrees of freedom if the assumption holds. Each column is
        also tested alone, with K - 2 degrees of freedom. The test trusts the rest of the model
        and independent items, whatever `covariance` is.

        Parameters
        ----------
        X, y, sample_weight, offset
            The data that the model was fitted on; they may be left out unless the model comes
            from a pickle.

        Returns
        -------
        ProportionalityTest
            Statistic, degrees of freedom and p-value, for all columns and for each.
        """
        check_is_fitted(self, "coef_")
        if self.alpha:
            raise ValueError(f"the test needs a fit with alpha=0, got alpha={self.alpha}")
        if len(self._roles.nominal) or len(self._roles.scale):
            raise ValueError("the test needs a fit without nominal and scale effects")
        if len(self.classes_) < 3 or self.n_features_in_ == 0:
            raise ValueError("the test needs at least three classes and one column")
        if np.isnan(self.standard_errors_).any():
            raise ValueError("the test needs a fit in which every parameter is identified")
        if X is None:
            design = self._data()[0]
        else:
            design, _, classes = self._design(X, y, sample_weight, offset, reset=False)
            if not np.array_equal(classes, self.classes_):
                raise ValueError(f"y must have the classes {self.classes_}, got {classes}")
        p = self.n_features_in_
        coef = self.params_[:p]
        b = coef * design.location.scale
        theta = self.params_[p:] - design.location.mean @ coef
        return proportionality(design, LINKS[self._link], b, theta, self._column_names())

    @abstractmethod
    def _design(self, X: Any, y: Any, sample_weight: Any, offset: Any, *, reset: bool) -> Any:
        """Checked and sorted data, as `CumulativeLink` makes them."""
