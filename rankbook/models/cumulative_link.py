r"""Cumulative link models: ordered classes as intervals of a latent variable."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankbook._validation import check_choice, check_labels, check_scalar, check_weights
from rankbook.models._base import RankerMixin
from rankbook.models._cumulative_checks import (
    ProportionalityTest,
    check_collinearity,
    check_separation,
    log_probabilities,
    proportionality,
)
from rankbook.models._cumulative_likelihood import Design, Likelihood, fit
from rankbook.models._links import LINKS, Link
from rankbook.models._summary import Summary, estimates_table
from rankbook.solvers.newton import NewtonResult

__all__ = ["CumulativeLink"]

# Curvature an item below which the fit may be on its way to infinity.
_FLAT = 1e-8


class CumulativeLink(RankerMixin, BaseEstimator):
    r"""Cumulative link model, by default McCullagh's proportional odds.

    .. math:: P(Y \le k \mid x) = F(\theta_k - x^\top b), \qquad \theta_1 < \dots < \theta_{K-1},

    (Herbrich et al., 1999, equation 3), where F is the distribution function that `link` names.
    The fit minimises minus the weighted log-likelihood plus :math:`(\alpha/2)\, b^\top b`; the
    thresholds are free. The score that ranks is :math:`x^\top b`: larger means higher classes.

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}, default="logit"
        F(z) is :math:`1/(1+e^{-z})`, :math:`\Phi(z)` or :math:`1 - \exp(-e^z)`.
    alpha : float, default=0.0
        Weight of the ridge term. Zero gives maximum likelihood.
    rule : {"mode", "median"}, default="mode"
        How `predict` chooses a class: the likeliest one, or the median of the predicted
        distribution, which is the threshold rule :math:`\theta_{k-1} < x^\top b \le \theta_k` for
        the two symmetric links (for "cloglog" the thresholds are shifted by F's median,
        :math:`\log\log 2`).
    tol : float, default=1e-14
        Newton stops when half the squared Newton decrement, the estimated distance to the
        optimal objective, is at most `tol` times the total weight.
    max_iter : int, default=100
        Largest number of Newton steps.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients b.
    thresholds_ : ndarray of shape (K - 1,)
        Thresholds, strictly increasing.
    classes_ : ndarray of shape (K,)
        The labels, in order.
    log_likelihood_ : float
        Weighted log-likelihood, without the ridge term.
    covariance_ : ndarray of shape (p + K - 1, p + K - 1)
        Inverse of the objective's Hessian at the fit: coefficients, then thresholds. With
        ``alpha > 0`` it includes the ridge term, and intervals ignore the bias that this brings.
    standard_errors_ : ndarray of shape (p + K - 1,)
        Square roots of the covariance's diagonal.
    n_iter_ : int
        Newton steps on the full sample, at least 1.
    n_features_in_ : int
        Columns of X.
    n_obs_ : float
        Total weight.

    Notes
    -----
    *No predictors.* ``fit(None, y)`` fits the thresholds alone; `predict` then takes None (one
    row) or an array without columns. A constant column is an error: thresholds are intercepts.

    *Weights* are frequencies: weight 2 counts as two items, in standard errors too; 0 as none.

    *The objective is convex* as each density is log-concave, so Newton's method (analytic
    Hessian) finds the minimum from any start; the likelihood itself, infinite where thresholds
    meet, keeps them apart. A sparse X stays sparse, but the Hessian is a dense (p, p) array.

    *Other packages.* ``MASS::polr`` and ``ordinal::clm`` in R use this parametrisation, and
    `thresholds_` are their zeta and alpha ("1|2", "2|3", ...). ``OrderedModel`` of statsmodels
    has the same coefficients but reports thresholds in another form: the first one, then the
    *logarithms of the increments*, :math:`\log(\theta_k - \theta_{k-1})`, which its ``summary``
    prints under the same labels; its ``transform_threshold_params`` gives ours, with infinities
    at both ends. The models of Agresti's book, and SAS, write :math:`\theta_k + x^\top \beta`, so
    that :math:`\beta = -b`.

    References
    ----------
    P. McCullagh (1980), Regression models for ordinal data, J. R. Statist. Soc. B 42, 109-142.
    R. Herbrich, T. Graepel, K. Obermayer (1999), section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from rankbook.models import CumulativeLink
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> latent = X @ [1.0, -2.0] + rng.logistic(size=2000)
    >>> y = np.digitize(latent, [-1.0, 2.0])
    >>> model = CumulativeLink().fit(X, y)
    >>> bool(np.all(np.abs(model.coef_ - [1.0, -2.0]) < 3 * model.standard_errors_[:2]))
    True
    """

    def __init__(
        self,
        link: str = "logit",
        alpha: float = 0.0,
        rule: str = "mode",
        *,
        tol: float = 1e-14,
        max_iter: int = 100,
        verbose: int = 0,
    ) -> None:
        self.link = link
        self.alpha = alpha
        self.rule = rule
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Not a classifier to scikit-learn, whose checks yet ask this of all with predict_proba.
        tags.classifier_tags = ClassifierTags()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CumulativeLink:
        """Fit coefficients and thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), or None
            Items; None for the model without predictors.
        y : array-like of shape (n,)
            Ordered labels.
        sample_weight : array-like of shape (n,), optional
            Frequencies of the items.

        Returns
        -------
        CumulativeLink
            The fitted estimator.

        Raises
        ------
        CollinearityError
            If ``alpha == 0`` and a column is a combination of others and a constant.
        SeparationError
            If ``alpha == 0`` and the likelihood has no maximiser.
        """
        link = self._check_parameters()
        design, self.classes_ = self._design(X, y, sample_weight, reset=True)
        names = self._column_names()
        if self.alpha == 0.0 and len(names):
            check_collinearity(design, names)
        likelihood = Likelihood(design, link, float(self.alpha))
        result = self._minimise(likelihood)
        flat = np.linalg.eigvalsh(result.hessian)[0] <= _FLAT * design.total
        if self.alpha == 0.0 and len(names) and (flat or not result.converged):
            check_separation(design, names)
        if not result.converged:
            message = f"CumulativeLink stopped early: {result.message} (max_iter={self.max_iter})"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        self._store(design, likelihood, result)
        return self

    def _minimise(self, likelihood: Likelihood) -> NewtonResult:
        if not self.verbose:
            return fit(likelihood, self.tol, self.max_iter)
        from tqdm.auto import tqdm

        with tqdm(total=self.max_iter, desc="Newton", unit="step", leave=False) as bar:
            return fit(likelihood, self.tol, self.max_iter, lambda n, *_: bar.update(n - bar.n))

    def _store(self, design: Design, likelihood: Likelihood, result: NewtonResult) -> None:
        """Set the fitted attributes, in the columns' own units.

        The Hessian at the last iterate is there anyway, so one more Newton step is free, and its
        gain is the decrement.
        """
        p, size = likelihood.n_features, len(result.x)
        factor = cho_factor(result.hessian)
        polish = result.converged
        x = result.x - cho_solve(factor, result.gradient) if polish else result.x
        value = result.value - (result.decrement if polish else 0.0)
        jacobian = design.jacobian()
        params = jacobian @ x
        self.coef_, self.thresholds_ = params[:p], params[p:]
        covariance = jacobian @ cho_solve(factor, np.eye(size)) @ jacobian.T
        self.covariance_ = (covariance + covariance.T) / 2.0
        self.standard_errors_ = np.sqrt(np.diagonal(self.covariance_))
        self.log_likelihood_ = 0.5 * float(self.alpha) * float(self.coef_ @ self.coef_) - value
        self.n_iter_ = max(1, result.n_iter)
        self.n_obs_ = design.total

    def _check_parameters(self) -> Link:
        check_choice(self.link, tuple(LINKS), "link")
        check_choice(self.rule, ("mode", "median"), "rule")
        check_scalar(self.alpha, "alpha", low=0.0)
        check_scalar(self.tol, "tol", low=0.0)
        check_scalar(self.max_iter, "max_iter", low=1, integer=True)
        return LINKS[self.link]

    def _design(self, X, y, sample_weight, *, reset: bool) -> tuple[Design, np.ndarray]:
        """Checked and sorted data, without the items of weight 0, and their classes."""
        if X is None:
            if y is None:
                raise ValueError("y must be given, got None")
            X = np.zeros((len(np.asarray(y)), 0))
            if reset:
                self.n_features_in_ = 0
        else:
            X, y = validate_data(
                self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
            )
        weights = check_weights(sample_weight, X.shape[0])
        if weights is not None and not np.all(weights > 0):
            kept = np.flatnonzero(weights)
            X, y, weights = X[kept], np.asarray(y)[kept], weights[kept]
        codes, classes = check_labels(y)
        return Design.build(X, codes, len(classes), weights), classes

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        if names is not None and len(names) == self.n_features_in_:
            return [str(name) for name in names]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def decision_function(self, X: Any) -> np.ndarray:
        r"""Scores :math:`x^\top b`; a larger one ranks higher.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items (None or an array without columns for the model without predictors).

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        check_is_fitted(self, "coef_")
        if self.n_features_in_ == 0:
            return np.zeros(1 if X is None else len(X))
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return np.asarray(X @ self.coef_).ravel()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, accurate where they underflow.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n, K)
            Log-probabilities, columns in the order of `classes_`.
        """
        scores = self.decision_function(X)
        z = self.thresholds_ - scores[:, None]
        return log_probabilities(LINKS[self.link], z, self.thresholds_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities, columns in the order of `classes_`; rows sum to one.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Labels, by the rule chosen.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            Members of `classes_`.
        """
        if check_choice(self.rule, ("mode", "median"), "rule") == "mode":
            best = np.argmax(self.predict_log_proba(X), axis=1)
            return self.classes_[best]
        scores = self.decision_function(X)
        cuts = self.thresholds_ - LINKS[self.link].quantile(0.5)
        return self.classes_[np.searchsorted(cuts, scores, side="left")]

    def conf_int(self, level: float = 0.95) -> np.ndarray:
        """Wald intervals, estimate plus and minus a normal quantile of standard errors.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level, strictly between 0 and 1.

        Returns
        -------
        ndarray of shape (p + K - 1, 2)
            Lower and upper ends: coefficients, then thresholds.
        """
        check_is_fitted(self, "coef_")
        if not 0.0 < check_scalar(level, "level") < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
        estimates = np.concatenate([self.coef_, self.thresholds_])
        half = ndtri(0.5 + level / 2.0) * self.standard_errors_
        return np.column_stack([estimates - half, estimates + half])

    def summary(self, level: float = 0.95) -> Summary:
        """Table of estimates, standard errors, z, p-values and intervals.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        Summary
            Prints as text, shows as a table in notebooks; the numbers are in ``values``.
        """
        cuts = [f"{a}|{b}" for a, b in zip(self.classes_[:-1], self.classes_[1:], strict=True)]
        return estimates_table(
            title="Cumulative link model",
            facts=[("Link", self.link)] + ([("Ridge", f"{self.alpha:g}")] if self.alpha else []),
            names=self._column_names() + cuts,
            estimates=np.concatenate([self.coef_, self.thresholds_]),
            standard_errors=self.standard_errors_,
            interval=self.conf_int(level),
            level=level,
            n_coefficients=len(self.coef_),
            log_likelihood=self.log_likelihood_,
            n_obs=self.n_obs_,
        )

    def score_test_proportionality(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> ProportionalityTest:
        r"""Test the assumption that a column has one coefficient at all thresholds.

        The larger model is :math:`P(Y \le k \mid x) = F(\theta_k - x^\top b_k)`. Rao's score test
        needs no fit of it: with U the gradient of its log-likelihood and I its expected
        information, both at the fitted model, :math:`U^\top I^{-1} U` is asymptotically
        chi-squared with p (K - 2) degrees of freedom if the assumption holds. Each column is
        also tested alone, with K - 2 degrees of freedom.

        Parameters
        ----------
        X, y, sample_weight
            The data that the model was fitted on.

        Returns
        -------
        ProportionalityTest
            Statistic, degrees of freedom and p-value, for all columns and for each.
        """
        check_is_fitted(self, "coef_")
        if self.alpha:
            raise ValueError(f"the test needs a fit with alpha=0, got alpha={self.alpha}")
        if len(self.classes_) < 3 or self.n_features_in_ == 0:
            raise ValueError("the test needs at least three classes and one column")
        design, classes = self._design(X, y, sample_weight, reset=False)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(f"y must have the classes {self.classes_}, got {classes}")
        b = self.coef_ * design.scale
        theta = self.thresholds_ - design.mean @ self.coef_
        return proportionality(design, LINKS[self.link], b, theta, self._column_names())
