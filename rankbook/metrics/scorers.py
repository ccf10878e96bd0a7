"""Metrics as scikit-learn's scorers, and query identifiers from group sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankbook._validation import check_choice, check_group
from rankbook.metrics import lists, pairs

__all__ = ["qid_from_group", "scorer"]

_PAIRS: dict[str, Callable] = {
    name: getattr(pairs, name) for name in pairs.__all__ if name != "pair_error_rates"
}
_LISTS: dict[str, Callable] = {
    name: getattr(lists, name) for name in lists.__all__ if name != "rank_lists"
}
_LOSSES = ("pairwise_risk", "p_norm_push")
_DATA = ("y", "scores", "qid", "sample_weight", "per_query")


def qid_from_group(group: ArrayLike) -> np.ndarray:
    """Query identifiers 0, ..., Q-1 from the sizes of consecutive queries.

    Parameters
    ----------
    group : array-like of shape (n_queries,)
        How many items each query has, as LightGBM and XGBoost take them; at least 1 each.

    Returns
    -------
    ndarray of shape (n,)
        The query of every item.

    Examples
    --------
    >>> from rankbook.metrics import qid_from_group
    >>> qid_from_group([2, 1, 3])
    array([0, 0, 1, 2, 2, 2])
    """
    return check_group(group)


class _RankingScorer:
    """What `scorer` returns: called as scorer(estimator, X, y, qid=None, ...)."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        from sklearn.utils.metadata_routing import MetadataRequest

        self.name, self.options = name, options
        self._metadata_request = MetadataRequest(owner=self)
        for key in ("qid", "sample_weight") if name in _PAIRS else ("qid",):
            self._metadata_request.score.add_request(param=key, alias=key == "qid")

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
    ) -> float:
        rank = _scores_of(estimator)
        options = dict(self.options)
        if self.name in _PAIRS:
            options["sample_weight"] = sample_weight
            options.setdefault("labels", _labels_of(estimator))
        elif sample_weight is not None:
            raise TypeError(f"sample_weight must be left out: {self.name} takes none")
        metric = _PAIRS.get(self.name) or _LISTS[self.name]
        value = metric(y, rank(X), qid=qid, **options)
        return -value if self.name in _LOSSES else value

    def set_score_request(self, **requests: bool | str | None) -> _RankingScorer:
        """Say which metadata is wanted: ``qid=False``, ``sample_weight=True``, or another name."""
        known = list(self._metadata_request.score.requests)
        for key, alias in requests.items():
            if key not in known:
                raise TypeError(f"requests of {self.name!r} must be among {known}, got {key!r}")
            self._metadata_request.score.add_request(param=key, alias=alias)
        return self

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing asks for."""
        return self._metadata_request

    def __repr__(self) -> str:
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"scorer({self.name!r}{options})"


def _scores_of(estimator: Any) -> Callable:
    """The method that gives scores."""
    from sklearn.base import is_classifier

    if hasattr(estimator, "decision_function"):
        return estimator.decision_function
    predicts_labels = hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator)
    if predicts_labels or not hasattr(estimator, "predict"):
        raise TypeError(
            "estimator must have a decision_function to rank by, or predict scores and not "
            f"labels, got {estimator!r}"
        )
    return estimator.predict


def _labels_of(estimator: Any) -> Any:
    """The order of labels that an estimator was given, in a pipeline or found by a search too."""
    if getattr(estimator, "steps", None):
        return _labels_of(estimator.steps[-1][1])
    if hasattr(estimator, "best_estimator_"):
        return _labels_of(estimator.best_estimator_)
    return getattr(estimator, "labels", None)


def scorer(name: str, **options: Any) -> Callable[..., float]:
    """Make a scorer for `GridSearchCV`, `cross_validate` and the like out of a metric.

    It ranks by ``estimator.decision_function(X)``, or, where there is none, by the predictions of
    what is no classifier (a regressor, ``LGBMRanker``), and asks for `qid` by itself. Greater is
    better: of the losses ("pairwise_risk", "p_norm_push") it returns the negative.

    Parameters
    ----------
    name : str
        A metric of `rankbook.metrics` that returns one number, say "ndcg", "err" or "u_pairs".
    **options
        Its options, say ``k=10``, ``ties="order"`` or ``costs="linear"``. Where a metric of pairs
        is not told `labels`, it takes those of the estimator.

    Returns
    -------
    callable
        Called as ``scorer(estimator, X, y, *, qid=None, sample_weight=None)``; metrics of lists
        take no weights.

    Notes
    -----
    The queries of the test fold reach a scorer by scikit-learn's metadata routing alone: after
    ``sklearn.set_config(enable_metadata_routing=True)``, ``cross_validate(ranker, X, y,
    scoring=scorer("ndcg"), params={"qid": qid})`` and ``GridSearchCV(...).fit(X, y, qid=qid)``
    hand it on. An estimator that takes `qid` in `fit` says so by
    ``ranker.set_fit_request(qid=True)`` (or ``False``), and a splitter that keeps queries together
    by ``GroupKFold().set_split_request(groups="qid")``. Weights are asked for by
    ``scorer(...).set_score_request(sample_weight=True)``. Without routing scikit-learn passes a
    scorer X and y only, so that the whole fold is one list: right where there are no queries.

    Sorted labels bite `cross_val_score`: its default for what is no classifier, `KFold` without
    shuffling, cuts them so that a fold holds few classes. Where it holds one class it has no pair
    to compare; the score is then NaN with a warning. Use ``cv=StratifiedKFold()``, or `GroupKFold`
    with queries.

    Examples
    --------
    >>> from sklearn.model_selection import StratifiedKFold, cross_val_score
    >>> from rankbook.metrics import scorer
    >>> from rankbook.models import UnivariateRanker
    >>> X, y = [[0.0], [1.0], [2.0], [1.5], [2.5], [3.5]], [0, 0, 0, 1, 1, 1]
    >>> cross_val_score(
    ...     UnivariateRanker(), X, y, scoring=scorer("auc"), cv=StratifiedKFold(3)
    ... )
    array([1., 1., 1.])

    With queries:

    >>> import sklearn
    >>> from rankbook.models import PairwiseRanker
    >>> from sklearn.model_selection import GroupKFold, cross_validate
    >>> qid = ["a", "b", "c", "a", "b", "c"]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     ranker = PairwiseRanker().set_fit_request(qid=True)
    ...     folds = GroupKFold(3).set_split_request(groups="qid")
    ...     result = cross_validate(
    ...         ranker, X, y, scoring=scorer("ndcg", k=10), cv=folds, params={"qid": qid}
    ...     )
    >>> result["test_score"]
    array([1., 1., 1.])
    """
    check_choice(name, [*_PAIRS, *_LISTS], "name")
    metric = _PAIRS.get(name) or _LISTS[name]
    known = [key for key in inspect.signature(metric).parameters if key not in _DATA]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"options of {name!r} must be among {known}, got {unknown}")
    return _RankingScorer(name, options)
