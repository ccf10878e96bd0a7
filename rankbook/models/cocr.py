"""Cost-sensitive ordinal classification via regression: a regression for every class boundary."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from rankbook import costs
from rankbook._arrays import as_float, require_finite, require_normal
from rankbook._validation import check_choice, check_rng, check_weights
from rankbook.exceptions import LabelCostWarning
from rankbook.models._base import RankerMixin, check_items
from rankbook.models._class_moments import ClassMoments

__all__ = ["COCR"]


class COCR(RankerMixin, BaseEstimator):
    r"""Cost-sensitive ordinal classification via regression.

    Let :math:`c_y[k]` be the cost of giving an item of class y the label k, classes 0 to K-1. For
    each of the K-1 boundaries k the base regression estimates whether an item lies above it,

    .. math:: h_k \approx \arg\min_h \sum_i w_i \, \bigl|c_{y_i}[k] - c_{y_i}[k-1]\bigr| \,
       \bigl(h(x_i) - 1\{y_i \ge k\}\bigr)^2 \Big/ \sum_i w_i,

    for a base that minimises squares. The ranking score is :math:`\sum_k h_k(x)`, an estimate of
    the expected label where each :math:`h_k(x)` is one of :math:`P(Y \ge k \mid x)`; the label
    predicted counts the boundaries with :math:`h_k(x) \ge 1/2`.

    Parameters
    ----------
    base : estimator, default=None
        A scikit-learn regressor; ``None`` is `LinearRegression`. It is cloned for each boundary.
    label_costs : {"absolute", "squared", "oerr"} or array of shape (K, K), default="absolute"
        Costs of a single wrong label, entry [y, k], as `rankbook.costs.ordinal` gives them. The
        reduction's guarantee needs V-shaped rows, which fall up to the diagonal and rise from
        there, and convex ones where boundaries contradict each other. Other rows are fitted all
        the same; if they are not V-shaped, a warning says so.
    weighting : {"sample_weight", "resample"}, default="sample_weight"
        How the base learns of the weights: by its ``sample_weight``, or, for a base that takes
        none, by a sample of n items drawn with probabilities proportional to them.
    n_jobs : int, default=None
        Boundaries fitted at the same time, as joblib takes it.
    random_state : int, Generator or None, default=None
        Seed of the resampling.
    labels : array-like, default=None
        All classes, lowest first; needed where the labels are neither numbers nor an ordered
        Categorical.

    Attributes
    ----------
    estimators_ : list of K-1 estimators
        The fitted regressions, lowest boundary first.
    classes_ : ndarray of shape (K,)
        The labels, lowest first.
    label_costs_ : ndarray of shape (K, K)
        The costs that were used.
    n_features_in_ : int
        Columns of X.

    Warns
    -----
    LabelCostWarning
        If rows of `label_costs` are not V-shaped.

    Notes
    -----
    With absolute costs all weights are one. The label is the sum of its K-1 indicators and least
    squares is linear in what it fits, so that the score is then exactly the direct regression on
    the label. With other costs :math:`h_k` estimates a weighted probability, not
    :math:`P(Y \ge k \mid x)`.

    With ``base=LinearRegression()`` and dense X the moments of each class are gathered in one pass
    over X, about as much work as one :math:`X^\top X`, and the K-1 regressions follow from them,
    in whatever units the columns are; beside X that takes K matrices of order p. Data whose
    columns are collinear, or nearly so, go to `LinearRegression` itself, boundary by boundary.

    Boundaries are fits of their own, and joblib may send them to a cluster: with a Dask client,
    ``with joblib.parallel_config("dask"): COCR(base, n_jobs=-1).fit(X, y)``, where X fits in the
    memory of a worker. `rankbook.distributed.fit` has least squares for larger X.

    References
    ----------
    Y.-X. Ruan, H.-T. Lin and M.-F. Tsai, "Improving ranking performance with cost-sensitive
    ordinal classification via regression", Information Retrieval 17, 2014.

    Examples
    --------
    >>> from rankbook.models import COCR
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> ranker = COCR(label_costs="oerr").fit(X, [0, 1, 1, 2])
    >>> ranker.decision_function(X).round(3)
    array([0.224, 0.726, 1.228, 1.729])
    >>> ranker.predict(X)
    array([0, 1, 1, 2])
    """

    def __init__(
        self,
        base: Any = None,
        label_costs: Any = "absolute",
        weighting: str = "sample_weight",
        n_jobs: int | None = None,
        random_state: Any = None,
        labels: Any = None,
    ) -> None:
        self.base = base
        self.label_costs = label_costs
        self.weighting = weighting
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.labels = labels

    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> COCR:
        """Fit a regression for every boundary between classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights.

        Returns
        -------
        COCR
            The fitted estimator.
        """
        base = self._check_parameters()
        items: Any = check_items(
            self, X, accept_sparse=("csr", "csc"), dtype=np.float64, ensure_min_samples=2
        )
        codes = self._encode_labels(y, items.shape[0])
        self.label_costs_ = check_label_costs(self.label_costs, self.classes_.size)
        weights = check_weights(sample_weight, codes.size)
        weights = np.ones(codes.size) if weights is None else weights
        steps = np.abs(np.diff(self.label_costs_, axis=1))
        self._check_steps(steps, np.bincount(codes, weights > 0, minlength=self.classes_.size))
        self.estimators_ = self._fit_boundaries(base, items, codes, weights, steps)
        return self

    def _fit_boundaries(
        self, base: Any, X: Any, codes: np.ndarray, weights: np.ndarray, steps: np.ndarray
    ) -> list:
        if is_least_squares(base):
            require_normal(X, "X")
        if is_least_squares(base) and not sp.issparse(X) and self.weighting == "sample_weight":
            moments = ClassMoments.of(X, codes, weights / weights.max(), len(steps))
            solutions = moments.boundary_regressions(steps, intercept=base.fit_intercept)
            if solutions is not None:
                return [fitted_least_squares(base, *solution, X.shape[1]) for solution in solutions]
        draws: list[np.ndarray | None] = [None] * steps.shape[1]
        if self.weighting == "resample":
            rng = check_rng(self.random_state, "random_state")
            draws = [
                rng.choice(codes.size, codes.size, p=_shares(weights * step[codes]))
                for step in steps.T
            ]
        return Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_boundary)(clone(base), X, codes > k, weights * step[codes], draw)
            for k, (step, draw) in enumerate(zip(steps.T, draws, strict=True))
        )

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the ranking scores, the sum of the regressions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            With absolute costs, estimates of the expected label's number, 0 to K-1.
        """
        return self.boundary_scores(X).sum(axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return labels: as many boundaries are passed as regressions reach one half.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            Labels, of ``classes_``.
        """
        passed = (self.boundary_scores(X) >= 0.5).sum(axis=1)
        return self.classes_[passed]

    def boundary_scores(self, X: ArrayLike) -> np.ndarray:
        r"""Return the regressions' values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n, K-1)
            Column k-1 is :math:`h_k`, with absolute costs an estimate of
            :math:`P(Y \ge k \mid x)`; a regression may leave [0, 1].
        """
        check_is_fitted(self, "estimators_")
        items: Any = check_items(
            self, X, reset=False, accept_sparse=("csr", "csc"), dtype=np.float64
        )
        columns = [np.asarray(h.predict(items), dtype=np.float64) for h in self.estimators_]
        return np.column_stack([column.reshape(items.shape[0]) for column in columns])

    def _check_parameters(self) -> Any:
        check_choice(self.weighting, ("sample_weight", "resample"), "weighting")
        base = LinearRegression() if self.base is None else self.base
        if isinstance(base, type) or not (hasattr(base, "fit") and hasattr(base, "predict")):
            raise TypeError(f"base must be an instance of a scikit-learn regressor, got {base!r}")
        if self.weighting == "sample_weight" and not has_fit_parameter(base, "sample_weight"):
            raise ValueError(
                f"base must take sample_weight in fit, and {type(base).__name__} does not; "
                'pass weighting="resample" to draw its samples by weight instead'
            )
        return base

    def _check_steps(self, steps: np.ndarray, mass: np.ndarray) -> None:
        total = mass @ steps
        if not (total > 0).all():
            k = int(np.flatnonzero(total == 0)[0])
            raise ValueError(
                f"label_costs must tell labels {self.classes_[k]!r} and {self.classes_[k + 1]!r} "
                "apart for some item of positive weight, got the same costs for both"
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_label_costs(label_costs: Any, n_classes: int) -> np.ndarray:
    """The costs [y, k] as a finite, non-negative matrix."""
    if isinstance(label_costs, str):
        check_choice(label_costs, ("absolute", "squared", "oerr"), "label_costs")
        return costs.ordinal(n_classes, label_costs)
    array = as_float(label_costs, "label_costs")
    if array.shape != (n_classes, n_classes):
        raise ValueError(
            f"label_costs must have shape ({n_classes}, {n_classes}), a row and a column for each "
            f"class, got {array.shape}"
        )
    require_finite(array, "label_costs")
    if (array < 0).any():
        raise ValueError(f"label_costs must not be negative, got {array.min()}")
    _warn_of_other_shapes(array)
    return array


def _warn_of_other_shapes(label_costs: np.ndarray) -> None:
    """Say which rows rise before the diagonal or fall behind it."""
    steps = np.diff(label_costs, axis=1)
    before = np.arange(steps.shape[1]) < np.arange(len(steps))[:, None]
    rows = np.flatnonzero((np.where(before, -steps, steps) < 0).any(axis=1))
    if rows.size:
        warnings.warn(
            f"label_costs are not V-shaped in rows {rows.tolist()}: they rise before the diagonal "
            "or fall behind it. The label predicted need not be one of least expected cost then, "
            "even with unlimited data",
            LabelCostWarning,
            stacklevel=4,
        )


def is_least_squares(base: Any) -> bool:
    return type(base) is LinearRegression and not base.positive


def fitted_least_squares(base: Any, coef: np.ndarray, intercept: float, p: int) -> LinearRegression:
    """A clone of the base, as if fitted."""
    fitted = clone(base)
    fitted.coef_, fitted.intercept_, fitted.n_features_in_ = coef, intercept, p
    return fitted


def _shares(weights: np.ndarray) -> np.ndarray:
    weights = weights / weights.max()
    return weights / weights.sum()


def _fit_boundary(
    base: Any, X: Any, above: np.ndarray, weights: np.ndarray, draw: np.ndarray | None
) -> Any:
    """The base's regression of an indicator, on a drawn sample or with weights."""
    if draw is not None:
        return base.fit(X[draw], above[draw].astype(float))
    return base.fit(X, above.astype(float), sample_weight=weights)
