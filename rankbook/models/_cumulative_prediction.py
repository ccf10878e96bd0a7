"""What a fitted cumulative link model says of items: scores, probabilities, their precision."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from rankbook._link import Link, within_reach
from rankbook._links import LINKS
from rankbook._validation import check_choice, check_rng, check_same_length, check_scores
from rankbook.exceptions import CrossingWarning
from rankbook.models._base import check_items

__all__ = ["PredictionMixin"]

_CHUNK = 4096
# Logarithm of the widest spread of an item's latent error.
_WIDEST = 700.0


class _Ends(NamedTuple):
    """Standardised thresholds z (n, K - 1), their gaps, each item's spread, and who crosses."""

    z: np.ndarray
    gaps: np.ndarray
    spread: np.ndarray
    crossed: np.ndarray


def check_offset(offset: Any, n: int) -> np.ndarray | None:
    """Return an offset an item, or None."""
    if offset is None:
        return None
    offset = check_scores(offset, "offset")
    check_same_length(offset.size, n, "offset", "X")
    return offset


def _columns(X: Any, index: np.ndarray) -> np.ndarray:
    part = X[:, index]
    return part.toarray() if sp.issparse(part) else part


class PredictionMixin:
    """The methods of `CumulativeLink` that take new items."""

    link: str
    rule: str
    n_features_in_: int
    classes_: np.ndarray
    coef_: np.ndarray
    nominal_coef_: np.ndarray
    thresholds_: np.ndarray
    scale_coef_: np.ndarray
    params_: np.ndarray
    _link: str
    _roles: Any
    _precision: Any

    def _check_items(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        if self.n_features_in_:
            return check_items(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        shape = (1, 0) if X is None else np.shape(X)
        if len(shape) != 2 or shape[1]:
            raise ValueError(
                "X must be None or have no columns, as the model was fitted without any; got "
                f"shape {shape}"
            )
        return np.zeros(shape)

    def _fitted_link(self) -> Link:
        return LINKS[self._link]

    def _location(self, X: Any, offset: Any) -> np.ndarray:
        offset = check_offset(offset, X.shape[0])
        columns = self._roles.proportional
        # The usual model needs no copy of its columns.
        part = X if len(columns) == X.shape[1] else X[:, columns]
        eta = np.asarray(part @ self.coef_[columns]).ravel()
        return eta if offset is None else eta + offset

    def _ends(self, X: Any, offset: Any) -> _Ends:
        n, eta = X.shape[0], self._location(X, offset)
        z = self.thresholds_ - eta[:, None]
        gaps = np.broadcast_to(np.diff(self.thresholds_), (n, z.shape[1] - 1))
        crossed = np.zeros(n, dtype=bool)
        if len(self.nominal_coef_):
            part = _columns(X, self._roles.nominal)
            z = z - part @ self.nominal_coef_
            gaps = gaps - part @ np.diff(self.nominal_coef_, axis=1)
            # Where the fit keeps thresholds in order they may touch, up to rounding.
            slack = 1e-9 * (1.0 + np.abs(z).max(axis=1))
            crossed = (gaps < -slack[:, None]).any(axis=1)
            gaps = np.maximum(gaps, 0.0)
        spread = np.ones(n)
        if len(self.scale_coef_):
            logs = _columns(X, self._roles.scale) @ self.scale_coef_
            spread = np.exp(np.clip(logs, -_WIDEST, _WIDEST))
            with np.errstate(over="ignore"):
                z, gaps = z / spread[:, None], gaps / spread[:, None]
            z, gaps = within_reach(z, gaps)
        if crossed.any():
            message = f"the thresholds cross at {crossed.sum()} items and are sorted there"
            warnings.warn(message, CrossingWarning, stacklevel=4)
            z[crossed] = np.sort(z[crossed], axis=1)
            gaps = np.where(crossed[:, None], np.diff(z, axis=1), gaps)
        return _Ends(z, gaps, spread, crossed)

    def decision_function(self, X: Any, *, offset: Any = None) -> np.ndarray:
        r"""Scores; a larger one ranks higher.

        The score is :math:`x^\top b` (plus the offset). With nominal or scale effects no one
        linear score orders the items, and the score is the expected class, counted from 0,
        :math:`\sum_k P(Y > k \mid x)`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items (None or an array without columns for the model without predictors).
        offset : array-like of shape (n,), optional
            Known parts of the scores.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        X = self._check_items(X)
        if not len(self.nominal_coef_) and not len(self.scale_coef_):
            return self._location(X, offset)
        with np.errstate(over="ignore", divide="ignore"):
            survival = np.exp(self._fitted_link().log_sf(self._ends(X, offset).z))
        return survival.sum(axis=1)

    def predict_log_proba(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Logarithms of the class probabilities, accurate where they underflow.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        offset : array-like of shape (n,), optional
            Known parts of the scores.

        Returns
        -------
        ndarray of shape (n, K)
            Log-probabilities, columns in the order of `classes_`.
        """
        ends = self._ends(self._check_items(X), offset)
        with np.errstate(over="ignore", divide="ignore"):
            return self._fitted_link().log_probabilities(ends.z, ends.gaps)

    def predict_proba(self, X: Any, *, offset: Any = None, return_std: bool = False) -> Any:
        """Class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        offset : array-like of shape (n,), optional
            Known parts of the scores.
        return_std : bool, default=False
            Whether to return standard errors too, by the delta method.

        Returns
        -------
        ndarray of shape (n, K), or two of them
            Probabilities, columns in the order of `classes_`, rows sum to one; and their standard
            errors, NaN where the data do not identify them.
        """
        probabilities = np.exp(self.predict_log_proba(X, offset=offset))
        if not return_std:
            return probabilities
        return probabilities, self._errors(X, offset, classes=True)

    def predict_cumulative(self, X: Any, *, offset: Any = None, return_std: bool = False) -> Any:
        r"""Cumulative probabilities :math:`P(Y \le k \mid x)`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        offset : array-like of shape (n,), optional
            Known parts of the scores.
        return_std : bool, default=False
            Whether to return standard errors too, by the delta method.

        Returns
        -------
        ndarray of shape (n, K - 1), or two of them
            A column for each class but the last, and their standard errors.
        """
        ends = self._ends(self._check_items(X), offset)
        with np.errstate(over="ignore", divide="ignore"):
            probabilities = np.exp(self._fitted_link().log_cdf(ends.z))
        if not return_std:
            return probabilities
        return probabilities, self._errors(X, offset, classes=False)

    def _errors(self, X: Any, offset: Any, *, classes: bool) -> np.ndarray:
        """Standard errors by the delta method, some items at a time."""
        X = self._check_items(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrossingWarning)
            ends = self._ends(X, offset)
        with np.errstate(over="ignore"):
            density = np.exp(self._fitted_link().log_pdf(ends.z))
        m = density.shape[1]
        result = np.empty((X.shape[0], m + 1 if classes else m))
        for a in range(0, X.shape[0], _CHUNK):
            rows = slice(a, a + _CHUNK)
            slopes = [
                density[rows, k, None] * self._slopes(X[rows], ends, rows, k) for k in range(m)
            ]
            if classes:
                none = np.zeros_like(slopes[0])
                pairs = zip([*slopes, none], [none, *slopes], strict=True)
                slopes = [upper - lower for upper, lower in pairs]
            result[rows] = np.column_stack([self._precision.errors(s) for s in slopes])
        result[ends.crossed] = np.nan
        return result

    def _slopes(self, X: Any, ends: _Ends, rows: slice, k: int) -> np.ndarray:
        """Derivatives of the k-th standardised threshold with respect to the parameters."""
        roles, m = self._roles, len(self.thresholds_)
        p, q, r = (len(part) for part in roles)
        slopes = np.zeros((X.shape[0], len(self.params_)))
        spread = ends.spread[rows, None]
        slopes[:, :p] = -_columns(X, roles.proportional) / spread
        slopes[:, p + np.arange(q) * m + k] = -_columns(X, roles.nominal) / spread
        slopes[:, p + q * m + k] = 1.0 / spread[:, 0]
        slopes[:, len(self.params_) - r :] = -ends.z[rows, k, None] * _columns(X, roles.scale)
        return slopes

    def predict(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """Labels, by the rule chosen.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        offset : array-like of shape (n,), optional
            Known parts of the scores.

        Returns
        -------
        ndarray of shape (n,)
            Members of `classes_`.
        """
        if check_choice(self.rule, ("mode", "median"), "rule") == "mode":
            best = np.argmax(self.predict_log_proba(X, offset=offset), axis=1)
            return self.classes_[best]
        ends = self._ends(self._check_items(X), offset)
        below = ends.z < self._fitted_link().quantile(0.5)
        return self.classes_[below.sum(axis=1)]

    def surrogate_residuals(
        self, X: Any, y: Any, *, offset: Any = None, rng: Any = None
    ) -> np.ndarray:
        r"""Residuals on the latent line, drawn given the labels (Liu and Zhang, 2018).

        An item's latent error is drawn from F, truncated to the interval of its label, and F's
        mean is subtracted (nothing, for "cauchit", which has none). If the model holds the
        residuals are a sample of F, centred, and do not depend on the items; a pattern shows what
        is missing.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        y : array-like of shape (n,)
            Their labels, among `classes_`.
        offset : array-like of shape (n,), optional
            Known parts of the scores.
        rng : int or numpy.random.Generator, optional
            Source of the draws.

        Returns
        -------
        ndarray of shape (n,)
            Residuals, in units of the latent error (divided by the item's spread, if the model
            has scale effects).

        References
        ----------
        D. Liu, H. Zhang (2018), Residuals and diagnostics for ordinal regression models: a
        surrogate approach, J. Amer. Statist. Assoc. 113, 845-854.
        """
        link, X = self._fitted_link(), self._check_items(X)
        codes = self._codes_of(y, X.shape[0])
        z = self._ends(X, offset).z
        ends = np.column_stack([np.full(len(z), -np.inf), z, np.full(len(z), np.inf)])
        rows = np.arange(len(z))
        upper, lower = ends[rows, codes + 1], ends[rows, codes]
        share = check_rng(rng).random(len(z))
        # Each side of the median has a function that does not round to 1 there.
        right = lower > link.quantile(0.5)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            low, high = np.exp(link.log_cdf(lower)), np.exp(link.log_cdf(upper))
            from_left = link.quantile(low + share * (high - low))
            low, high = np.exp(link.log_sf(upper)), np.exp(link.log_sf(lower))
            from_right = link.isf(low + share * (high - low))
        drawn = np.clip(np.where(right, from_right, from_left), lower, upper)
        # An interval whose probability underflows has all of it at its end nearest the middle.
        return np.where(np.isfinite(drawn), drawn, np.where(right, lower, upper)) - link.mean

    def _codes_of(self, y: Any, n: int) -> np.ndarray:
        """Places of labels among `classes_`."""
        y = np.asarray(y)
        check_same_length(len(y), n, "y", "X")
        places = {label: k for k, label in enumerate(self.classes_.tolist())}
        try:
            return np.array([places[label] for label in y.tolist()], dtype=int)
        except KeyError as error:
            raise ValueError(f"y holds {error.args[0]!r}, not among {self.classes_}") from None
