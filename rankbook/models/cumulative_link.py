r"""Cumulative link models: ordered classes as intervals of a latent variable."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags

from rankbook._arrays import require_normal
from rankbook._link import Link
from rankbook._links import LINKS
from rankbook._progress import check_verbose, newton_callback, progress
from rankbook._validation import check_choice, check_qid, check_scalar, check_weights
from rankbook.models._base import RankerMixin, check_items
from rankbook.models._cumulative_design import Design, Roles
from rankbook.models._cumulative_fit import Fitted, fit_design
from rankbook.models._cumulative_inference import InferenceMixin, sandwich_meat
from rankbook.models._cumulative_precision import Precision
from rankbook.models._cumulative_prediction import PredictionMixin, check_offset

__all__ = ["CumulativeLink"]

# Beyond this, its products with weights and scales overflow.
_LARGEST_ALPHA = 1e100


class CumulativeLink(PredictionMixin, InferenceMixin, RankerMixin, BaseEstimator):
    r"""Cumulative link model, by default McCullagh's proportional odds.

    .. math:: P(Y \le k \mid x) = F(\theta_k - x^\top b), \qquad \theta_1 < \dots < \theta_{K-1},

    (Herbrich et al., 1999, equation 3), where F is the distribution function that `link` names.
    The fit minimises minus the mean (weighted) log-likelihood plus
    :math:`(\alpha/2)\, b^\top b`; the thresholds are free. The score that ranks is
    :math:`x^\top b`: larger means higher classes. Chosen columns w may have a coefficient at each
    threshold (`nominal`: partial proportional odds), chosen columns z may act on the spread of the
    latent variable (`scale`), and a known part o of the score may be given (`offset`):

    .. math:: P(Y \le k \mid x) = F\bigl((\theta_k - x^\top b - w^\top \gamma_k - o)
        \, e^{-z^\top \zeta}\bigr).

    Parameters
    ----------
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default="logit"
        F(z) is :math:`1/(1+e^{-z})`, :math:`\Phi(z)`, :math:`1 - \exp(-e^z)`,
        :math:`\exp(-e^{-z})` or :math:`1/2 + \arctan(z)/\pi`.
    alpha : float, default=0.0
        Weight of the ridge term (all coefficients of the location, those of nominal columns
        too). Zero gives maximum likelihood.
    rule : {"mode", "median"}, default="mode"
        How `predict` chooses a class: the likeliest one, or the median of the predicted
        distribution, which is the threshold rule :math:`\theta_{k-1} < x^\top b \le \theta_k` for
        the symmetric links (for "cloglog" and "loglog" the thresholds are shifted by F's median,
        :math:`\pm\log\log 2`).
    nominal : str, int or list of them, optional
        Columns, by name or number, with one coefficient a threshold in place of one.
    scale : str, int or list of them, optional
        Columns that also act on the logarithm of the latent variable's spread.
    covariance : {"hessian", "robust"}, default="hessian"
        Inverse Hessian, or the sandwich estimate, by clusters if `fit` is given any. Standard
        errors and Wald intervals follow it; with "robust" `drop1` makes Wald tests and `anova`
        refuses, as likelihood ratios trust the model. So do the score test of proportionality and
        profile intervals, whatever the covariance.
    tol : float, default=1e-14
        Newton stops when half the squared Newton decrement, the estimated distance to the
        optimal objective, is at most `tol`.
    max_iter : int, default=100
        Largest number of Newton steps.
    labels : array-like, optional
        All classes, lowest first; needed where y holds neither numbers nor an ordered Categorical.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients b; NaN for a nominal column, which has no single one.
    nominal_coef_ : ndarray of shape (q, K - 1)
        Coefficients of the nominal columns at each threshold.
    thresholds_ : ndarray of shape (K - 1,)
        Thresholds, strictly increasing without nominal effects.
    scale_coef_ : ndarray of shape (r,)
        Coefficients of the scale columns.
    params_, param_names_ : ndarray and list of str
        All parameters: coefficients, nominal coefficients (column by column), thresholds, scale.
    classes_ : ndarray of shape (K,)
        The labels that occur, in order.
    log_likelihood_ : float
        Weighted log-likelihood, without the ridge term; with ``covariance="robust"`` it is a
        pseudo-likelihood, as items may depend on each other.
    covariance_ : ndarray of shape (n_parameters, n_parameters)
        Covariance of `params_`. With ``alpha > 0`` it includes the ridge term, and intervals
        ignore the bias that this brings.
    standard_errors_ : ndarray of shape (n_parameters,)
        Square roots of the covariance's diagonal; NaN for what the data do not identify.
    df_ : int
        Number of parameters, without redundant ones.
    n_iter_ : int
        Newton steps on the full sample, at least 1.
    n_features_in_ : int
        Columns of X.
    n_obs_ : float
        Total weight.
    n_clusters_ : int or None
        Number of clusters, if `fit` was given any.
    sample_id_ : str
        Digest of labels, weights and offset, by which `anova` knows one sample.

    Notes
    -----
    *No predictors.* ``fit(None, y)`` fits the thresholds alone; `predict` then takes None (one
    row) or an array without columns.

    *Weights* are frequencies: weight 2 counts as two items, in standard errors too; 0 as none.

    *Degenerate data.* Where columns are collinear (or constant, as thresholds are intercepts)
    the maximum is not unique: the coefficients of least norm are given, with a
    `CollinearityWarning`. Where the classes are separated there is no maximum: the fit ends where
    the mean log-likelihood is within `tol` of its supremum, with a `SeparationWarning`. Scale
    effects may run off as well: items become certain as their spread tends to zero, or toss a coin
    between the extreme classes as it grows. Such a fit, with the same warning, climbs to a
    supremum, of several perhaps not the highest, as the likelihood is not concave. It ends where
    no step gains more than `tol`, or than the rounding of the parameters costs: where spreads of
    very different sizes meet at thresholds, no floats come much closer. All these fits have NaN
    standard errors for what is not identified.

    *Nominal effects.* Thresholds of their own coefficients may cross. The fit keeps them in order
    at its items (a `CrossingWarning` says if that binds; there are no standard errors then).
    Elsewhere a prediction sorts them, with the same warning.

    *The objective is convex* for log-concave densities (all links but "cauchit") without scale
    effects, so Newton's method finds the minimum from any start; otherwise it finds a local one
    (in small samples with scale effects the best of a few starts with different spreads).
    A sparse X stays sparse, but the Hessian is a dense array.

    *The sample is kept* for `drop1`, profile intervals and tests; a pickle leaves it behind.

    *Other packages.* ``MASS::polr`` and ``ordinal::clm`` in R use this parametrisation, and
    `thresholds_` are their zeta and alpha ("1|2", "2|3", ...); clm's nominal coefficients, like
    VGAM's, have the opposite sign. ``OrderedModel`` of statsmodels
    has the same coefficients but reports thresholds in another form: the first one, then the
    *logarithms of the increments*, :math:`\log(\theta_k - \theta_{k-1})`, which its ``summary``
    prints under the same labels; its ``transform_threshold_params`` gives ours, with infinities
    at both ends. The models of Agresti's book, and SAS, write :math:`\theta_k + x^\top \beta`, so
    that :math:`\beta = -b`.

    References
    ----------
    P. McCullagh (1980), Regression models for ordinal data, J. R. Statist. Soc. B 42, 109-142.
    R. Herbrich, T. Graepel, K. Obermayer (1999), section 2.
    B. Peterson, F. E. Harrell (1990), Partial proportional odds models for ordinal response
    variables, J. R. Statist. Soc. C 39, 205-217.

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
        nominal: Any = None,
        scale: Any = None,
        covariance: str = "hessian",
        tol: float = 1e-14,
        max_iter: int = 100,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        self.link = link
        self.alpha = alpha
        self.rule = rule
        self.nominal = nominal
        self.scale = scale
        self.covariance = covariance
        self.tol = tol
        self.max_iter = max_iter
        self.labels = labels
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Not a classifier to scikit-learn, whose checks yet ask this of all with predict_proba.
        tags.classifier_tags = ClassifierTags()
        return tags

    def __getstate__(self):
        return super().__getstate__() | {"_kept": None}

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        cluster: Any = None,
    ) -> CumulativeLink:
        """Fit coefficients and thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), or None
            Items; None for the model without predictors.
        y : array-like of shape (n,)
            Ordered labels.
        sample_weight : array-like of shape (n,), optional
            Frequencies of the items.
        offset : array-like of shape (n,), optional
            Known parts of the scores, with the coefficient 1.
        cluster : array-like of shape (n,), optional
            Groups of dependent items, for ``covariance="robust"``: gradients are summed by
            group, and the covariance is multiplied by G / (G - 1).

        Returns
        -------
        CumulativeLink
            The fitted estimator.

        Warns
        -----
        CollinearityWarning
            If ``alpha == 0`` and a column is a combination of others and a constant, or if the
            likelihood is the same for all scale coefficients of a column.
        SeparationWarning
            If ``alpha == 0`` and the likelihood has no maximiser, or if scale effects run off.
        CrossingWarning
            If the order of thresholds with nominal effects binds.
        ConvergenceWarning
            If `max_iter` steps were not enough.
        """
        link = self._check_parameters()
        if cluster is not None and self.covariance != "robust":
            raise ValueError('cluster needs covariance="robust"')
        design, kept, self.classes_ = self._design(X, y, sample_weight, offset, reset=True)
        groups = None if cluster is None else check_qid(cluster, len(y), "cluster")
        if groups is not None:
            groups = np.unique(groups[kept], return_inverse=True)[1]
            if groups.max() == 0:
                raise ValueError("cluster must name at least two groups, got one")
        with progress(self.verbose, self.max_iter) as report:
            fitted, notes = fit_design(
                design, link, self._role_names(), alpha=float(self.alpha), tol=float(self.tol),
                max_iter=self.max_iter, callback=newton_callback(report),
            )  # fmt: skip
        for category, message in notes:
            warnings.warn(message, category, stacklevel=2)
        self._store(design, fitted, groups)
        return self

    def _store(self, design: Design, fitted: Fitted, groups: np.ndarray | None) -> None:
        """Set the fitted attributes, in the columns' own units."""
        meat = sandwich_meat(fitted, groups) if self.covariance == "robust" else None
        inner = fitted.bread if meat is None else fitted.bread @ meat @ fitted.bread
        self.params_, self._link = fitted.reported, self.link
        p, q, m, r = design.sizes
        self.coef_ = np.full(self.n_features_in_, np.nan)
        self.coef_[self._roles.proportional] = self.params_[:p]
        self.nominal_coef_ = self.params_[p : p + q * m].reshape(q, m)
        self.thresholds_ = self.params_[p + q * m : p + q * m + m]
        self.scale_coef_ = self.params_[p + q * m + m :]
        self.param_names_ = self._parameter_names()
        self.covariance_, self.standard_errors_ = fitted.covariance(meat)
        self.log_likelihood_ = fitted.log_likelihood
        self.df_ = fitted.likelihood.design.n_parameters
        self.n_iter_ = fitted.n_iter
        self.n_obs_ = design.total
        self.n_clusters_ = None if groups is None else int(groups.max()) + 1
        self._precision = Precision(
            fitted.jacobian, inner, fitted.free, fitted.n_aliased, fitted.in_order
        )
        self._kept = design, fitted

    def _parameter_names(self) -> list[str]:
        classes = self.classes_.tolist()
        cuts = [f"{a}|{b}" for a, b in zip(classes[:-1], classes[1:], strict=True)]
        prop, nominal, scale = self._role_names()
        own = [f"{name}:{cut}" for name in nominal for cut in cuts]
        return prop + own + cuts + [f"scale: {name}" for name in scale]

    def _check_parameters(self) -> Link:
        check_choice(self.link, tuple(LINKS), "link")
        check_choice(self.rule, ("mode", "median"), "rule")
        check_choice(self.covariance, ("hessian", "robust"), "covariance")
        check_scalar(self.alpha, "alpha", low=0.0, high=_LARGEST_ALPHA)
        check_scalar(self.tol, "tol", low=0.0)
        check_scalar(self.max_iter, "max_iter", low=1, integer=True)
        check_verbose(self.verbose)
        return LINKS[self.link]

    def _design(
        self, X: Any, y: Any, sample_weight: Any, offset: Any, *, reset: bool
    ) -> tuple[Design, np.ndarray, np.ndarray]:
        """Checked and sorted data; the items of positive weight; the classes that they have."""
        if X is None:
            if y is None:
                raise ValueError("y must be given, got None")
            X = np.zeros((len(y), 0))
            if reset:
                self.n_features_in_ = 0
                self.__dict__.pop("feature_names_in_", None)
        else:
            X = check_items(
                self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
            )
        n = X.shape[0]
        before = self.__dict__.get("classes_")
        codes = self._encode_labels(y, n)
        found = self.classes_
        if before is not None:
            self.classes_ = before
        weights, offset = check_weights(sample_weight, n), check_offset(offset, n)
        require_normal(X, "X")
        if weights is not None:
            require_normal(weights, "sample_weight")
        kept = np.arange(n)
        if weights is not None and not np.all(weights > 0):
            kept = np.flatnonzero(weights)
            X, codes, weights = X[kept], codes[kept], weights[kept]
            offset = None if offset is None else offset[kept]
        occurring = np.bincount(codes, minlength=len(found)) > 0
        if np.count_nonzero(occurring) < 2:
            raise ValueError(f"y must hold at least 2 classes, got {found[occurring].tolist()}")
        if not occurring.all():
            codes = (np.cumsum(occurring) - 1)[codes]
        if reset:
            self._roles = self._find_roles()
            self.sample_id_ = _digest(codes.astype(np.min_scalar_type(len(found))), weights, offset)
        found = found[occurring]
        design = Design.build(X, codes, len(found), weights, self._roles, offset)
        return design, kept, found

    def _find_roles(self) -> Roles:
        nominal = self._places(self.nominal, "nominal")
        scale = self._places(self.scale, "scale")
        return Roles(np.setdiff1d(np.arange(self.n_features_in_), nominal), nominal, scale)


def _digest(*arrays: np.ndarray | None) -> str:
    """Short name of a sample."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
