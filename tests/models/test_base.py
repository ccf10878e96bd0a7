"""What all rankers share: labels in their declared order, and a score with keywords alone."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rankbook import models
from rankbook.models._base import RankerMixin

SIZES = ["low", "mid", "high"]
WORDS = ["mid", "low", "high"]


class MeanDifference(RankerMixin, BaseEstimator):
    """The direction of covariance between columns and codes: a ranker in a few lines."""

    def __init__(self, labels=None):
        self.labels = labels

    def fit(self, X, y):
        X = validate_data(self, X, dtype=float, ensure_min_samples=2)
        codes = self._encode_labels(y, X.shape[0])
        self.coef_ = (codes - codes.mean()) @ X
        return self

    def decision_function(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=float, reset=False) @ self.coef_

    def predict(self, X):
        return self.decision_function(X)


def test_check_estimator():
    check_estimator(MeanDifference(), on_skip=None)


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (WORDS, SIZES),
        (pd.Series(WORDS, index=[5, 5, 1]), SIZES),
        (pd.Categorical(WORDS, categories=SIZES, ordered=True), None),
        (pd.Series(pd.Categorical(WORDS, categories=SIZES, ordered=True)), None),
        ([1, 0, 2], None),
        ([7, 9, 3], [9, 7, 3]),
    ],
)
def test_the_declared_order_is_fitted_and_scored(y, labels):
    X = [[1.0], [0.0], [2.0]]
    ranker = MeanDifference(labels=labels).fit(X, y)
    assert ranker.coef_[0] > 0
    assert ranker.score(X, y) == 1.0
    assert len(ranker.classes_) == 3


def test_classes_that_are_named_and_do_not_occur_stay():
    ranker = MeanDifference(labels=["none", *SIZES])
    assert_array_equal(ranker._encode_labels(["high", "low"], 2), [3, 1])
    assert ranker.classes_.tolist() == ["none", *SIZES]


def test_a_column_becomes_a_vector_with_a_warning():
    X, y = [[1.0], [0.0], [2.0]], [[1], [0], [2]]
    frame = pd.DataFrame({"y": pd.Categorical(WORDS, categories=SIZES, ordered=True)})
    for column in (y, np.array(y), frame):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            assert MeanDifference().fit(X, column).coef_[0] > 0


@pytest.mark.parametrize(
    ("y", "labels", "message"),
    [
        (None, None, "requires y to be passed, but the target y is None"),
        (WORDS, None, "y must hold labels whose order is declared"),
        (["mid", "low", "huge"], SIZES, r"y holds \['huge'\], not among labels"),
        ([0, 1], None, "y and X must have the same length, got 2 for y and 3 for X"),
        ([1, 1, 1], None, "y must hold at least 2 classes"),
        (["mid"] * 3, SIZES, r"y must hold at least 2 classes, got 1: \['mid'\]"),
        (np.zeros((3, 2)), None, "y should be a 1d array"),
    ],
)
def test_bad_targets(y, labels, message):
    with pytest.raises(ValueError, match=message):
        MeanDifference(labels=labels).fit([[1.0], [0.0], [2.0]], y)


def test_score_takes_queries_in_two_ways_and_by_keyword_alone():
    X, y = np.array([[0.0], [1.0], [3.0], [2.0]]), [0, 1, 1, 2]
    ranker = MeanDifference().fit(X, y)
    assert ranker.score(X, y) == pytest.approx(4 / 5)
    assert ranker.score(X, y, qid=["a", "a", "b", "b"]) == 0.5
    assert ranker.score(X, y, group=[2, 2]) == 0.5
    assert ranker.score(X, y, sample_weight=[1, 1, 0, 1]) == 1.0
    with pytest.raises(ValueError, match="qid and group"):
        ranker.score(X, y, qid=[0, 0, 1, 1], group=[2, 2])
    with pytest.raises(TypeError, match="positional"):
        ranker.score(X, y, [1, 1, 0, 1])


@pytest.mark.parametrize(
    "X",
    [
        [["a"], ["b"], ["c"]],
        np.ones((3, 1), complex),
        [0.0, 1.0, 2.0],
        np.ones((3, 1), [("a", float), ("b", float)]),
        pd.DataFrame({"a": ["u", "v", "w"]}),
        pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]).assign(b=pd.Timestamp("2020")),
        object(),
    ],
)
def test_errors_of_X_name_it(X):
    """Some of scikit-learn's and of numpy's do not."""
    with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
        models.PairwiseRanker().fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="^The feature names should match those that were passed"):
        frame = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
        models.PairwiseRanker().fit(frame, [0, 1, 2]).predict(frame.rename(columns={"a": "b"}))


@pytest.mark.parametrize(
    ("ranker", "parameters"),
    [
        (models.PairwiseBoost(n_iter=5), {"bandwidth": 5.0, "weak": "joint"}),
        (models.ORBoost(n_iter=5, weak="stump"), {"weak": "univariate"}),
        (models.CumulativeLink(alpha=0.1), {"link": "cloglog", "alpha": 1.0}),
        (models.SVOR(), {"kernel": "poly", "gamma": 3.0, "degree": 2}),
    ],
    ids=repr,
)
def test_a_fitted_model_stays_what_it_is_until_it_is_fitted_again(ranker, parameters):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    last = [name for name in ("predict_proba", "decision_function") if hasattr(ranker, name)]
    answers = [getattr(ranker.fit(X, y), name)(X) for name in last]
    ranker.set_params(**parameters)
    for name, answer in zip(last, answers, strict=True):
        assert_array_equal(getattr(ranker, name)(X), answer)
    assert not np.allclose(ranker.fit(X, y).decision_function(X), answers[-1])


@pytest.mark.parametrize(
    "name", ["COCR", "CumulativeLink", "PairwiseRanker", "RankBoundarySVM", "SVOR"]
)
def test_sparse_items_out_of_order_are_read_and_left_alone(name):
    """A memory map of them, as parallel jobs are given, cannot be written to."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 3
    twice = X[:, [1, 0, 1, 0]] * [0.25, 0.5, 0.75, 0.5]
    parts = twice.ravel(), np.tile([1, 0, 1, 0], 12), np.arange(0, 49, 4)
    given = sp.csr_array(parts, shape=X.shape)
    for part in (given.data, given.indices, given.indptr):
        part.flags.writeable = False
    got = getattr(models, name)().fit(given, y).decision_function(given)
    assert_array_equal(given.data, twice.ravel())
    assert_allclose(got, getattr(models, name)().fit(X, y).decision_function(X), rtol=1e-9)


ESTIMATORS = [name for name in models.__all__ if hasattr(getattr(models, name), "fit")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_not_X_and_y_goes_by_keyword(name):
    estimator = getattr(models, name)
    methods = [estimator.fit] + ([estimator.score] if issubclass(estimator, RankerMixin) else [])
    for method in methods:
        _, X, y, *others = inspect.signature(method).parameters.values()
        assert (X.name, y.name) == ("X", "y")
        assert {other.kind for other in others} == {inspect.Parameter.KEYWORD_ONLY}
