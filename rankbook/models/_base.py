"""What all rankers share."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankbook.metrics.pairs import pairwise_risk

__all__ = ["RankerMixin"]


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
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> float:
        """Return one minus the pairwise risk at constant costs; for two classes, the AUC.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The items' features.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; a pair weighs the product of its items'.
        qid : array-like of shape (n,), default=None
            Query of every item; the mean over the queries that have a pair is returned.

        Returns
        -------
        float
            1 for a perfect ranking, 0 for a reversed one, 1/2 for a constant.
        """
        scores = self.decision_function(X)
        return 1.0 - pairwise_risk(y, scores, sample_weight=sample_weight, qid=qid)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
