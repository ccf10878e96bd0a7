"""What all rankers share."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    assert_all_finite,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from rankbook._arrays import as_array, as_float, require_vector
from rankbook._validation import FEW_CLASSES, check_labels, check_qid, check_same_length
from rankbook.metrics.pairs import pairwise_risk

__all__ = ["LinearRankerMixin", "RankerMixin", "check_items", "check_target", "label_values"]

# Squares of larger labels, and sums of those, are beyond the range of floats.
_LARGEST_LABEL = 1e150


def check_items(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data`, which drops masks and does not always name X."""
    if isinstance(X, (list, tuple, np.ma.MaskedArray)):
        as_array(X, "X")
    try:
        with np.errstate(invalid="ignore"):
            return _canonical(validate_data(estimator, X, **options))
    except (TypeError, ValueError) as error:
        if re.search(r"\bX\b|[Ff]eature names", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X: {error}") from error


def _canonical(items: Any) -> Any:
    """Sparse items in order and without repeats: what follows would make them so in place."""
    if sp.issparse(items) and not items.has_canonical_format:
        items = items.copy()
        items.sum_duplicates()
    return items


def check_target(y: Any, n: int) -> np.ndarray:
    """The numbers that n items have to predict."""
    target = as_float(_one_column(y), "y")
    require_vector(target, "y")
    with np.errstate(invalid="ignore"):  # the sum of large numbers of both signs
        assert_all_finite(target, input_name="y")
    check_same_length(target.size, n, "y", "X")
    return target


def label_values(classes: np.ndarray) -> np.ndarray:
    """What labels count as numbers: themselves if they are numbers that rise, else 0..K-1."""
    if not all(isinstance(label, (Real, Decimal)) for label in classes.tolist()):
        return np.arange(len(classes), dtype=float)
    values = classes.astype(float)
    if not (np.diff(values) > 0).all():  # the order was declared, and is another one
        return np.arange(len(classes), dtype=float)
    largest = np.abs(values).max()
    if largest > _LARGEST_LABEL:
        raise ValueError(
            f"y must hold labels of at most {_LARGEST_LABEL:.0e} in size, as they count as "
            f"numbers, got {largest:.1e}"
        )
    return values


class RankerMixin:
    """A ranker as scikit-learn sees it: supervised, neither classifier nor regressor.

    A subclass offers ``decision_function(X)``, the ranking scores. Put the mixin to the left of
    `BaseEstimator`. Since rankers are no classifiers, cross-validation is told to stratify:
    ``cross_val_score(ranker, X, y, cv=StratifiedKFold())``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> class FirstColumn(RankerMixin, BaseEstimator):
    ...     def fit(self, X, y):
    ...         return self
    ...     def decision_function(self, X):
    ...         return np.asarray(X)[:, 0]
    >>> FirstColumn().score([[0.0], [2.0], [1.0]], [0, 1, 2])
    0.6666666666666667
    """

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return one minus the pairwise risk at constant costs; for two classes, the AUC.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The items' features.
        y : array-like of shape (n,)
            Their labels, in the order that `fit` knows.
        qid : array-like of shape (n,), default=None
            Query of every item; the mean over the queries that have a pair is returned.
        group : array-like of shape (n_queries,), default=None
            In place of `qid`, the sizes of consecutive queries.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.

        Returns
        -------
        float
            1 for a perfect ranking, 0 for a reversed one, 1/2 for a constant.
        """
        scores = self.decision_function(X)  # type: ignore[attr-defined]
        query = check_qid(qid, len(scores), group=group)
        labels = getattr(self, "labels", None)
        return 1.0 - pairwise_risk(y, scores, sample_weight=sample_weight, qid=query, labels=labels)

    def _encode_labels(self, y: Any, n: int) -> np.ndarray:
        """Codes 0..K-1 of the labels of n items as given to `fit`; sets ``classes_``.

        The order is that of ``self.labels``, if there are any, else that of numbers or of an
        ordered Categorical; hence `y` comes as the user passed it. Classes that are named and do
        not occur stay in ``classes_``; at least two must occur.
        """
        codes, classes = check_labels(_one_column(y), labels=getattr(self, "labels", None))
        check_same_length(codes.size, n, "y", "X")
        if (codes == codes[0]).all():
            raise ValueError(
                f"y must hold at least 2 classes, got 1: {classes[codes[:1]].tolist()}{FEW_CLASSES}"
            )
        self.classes_ = classes
        return codes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _one_column(y: Any) -> Any:
    """A column as a vector, with scikit-learn's warning; a Categorical stays one."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    dimensions = as_array(y, "y").ndim if isinstance(y, (list, tuple)) else getattr(y, "ndim", 1)
    if dimensions != 2:
        return y
    vector = column_or_1d(y, warn=True)
    return y.iloc[:, 0] if hasattr(y, "iloc") else vector


class LinearRankerMixin(RankerMixin):
    """A ranker whose scores are linear, with ``coef_`` and, if it has one, ``intercept_``.

    It has no thresholds to make labels with, so that it predicts scores.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> class Total(LinearRankerMixin, BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.coef_ = np.ones(np.shape(X)[1])
    ...         return self
    >>> Total().fit([[1.0, 2.0]], [0]).predict([[3.0, 4.0]])
    array([7.])
    """

    coef_: np.ndarray

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the ranking scores x b, plus the intercept if there is one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            The scores, higher for items ranked higher.
        """
        check_is_fitted(self, "coef_")
        X = check_items(self, X, reset=False, accept_sparse=("csr", "csc"), dtype=np.float64)
        return np.asarray(X @ self.coef_).ravel() + getattr(self, "intercept_", 0.0)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the ranking scores, as `decision_function` does.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            The scores.
        """
        return self.decision_function(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
