"""Metrics as scikit-learn's scorers: the right numbers, with and without metadata routing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import validate_data

from rankbook import metrics
from rankbook.metrics import qid_from_group, scorer
from rankbook.models._base import RankerMixin

NAMES = [*metrics.pairs.__all__, *metrics.lists.__all__]
NUMBERS = [n for n in NAMES if n not in ("pair_error_rates", "rank_lists")]
OPTIONS = {
    "linear_rank_statistic": {"gain": np.sqrt, "discount": lambda i, n: 1.0 / i},
    "ndcg": {"k": 3},
    "err": {"max_grade": 4},
    "pairwise_risk": {"costs": "linear"},
}


class Column(RankerMixin, BaseEstimator):
    """Ranks by one column; `fit` takes queries and does not need them."""

    def __init__(self, column=0, labels=None):
        self.column = column
        self.labels = labels

    def fit(self, X, y, *, qid=None):
        validate_data(self, X)
        self.had_queries_ = qid is not None
        return self

    def decision_function(self, X):
        return validate_data(self, X, reset=False)[:, self.column]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(12), 6)
    y = np.tile([0, 1, 2, 0, 1, 2], 12)
    X = y[:, None] * [1.0, 0.2] + rng.normal(size=(72, 2)) + qid[:, None]
    return X, y, qid


@pytest.mark.parametrize("name", NUMBERS)
def test_every_metric_scores(name, data):
    X, y, qid = data
    y = (y > 0).astype(int) if name == "auc" else y
    options = OPTIONS.get(name, {})
    expected = getattr(metrics, name)(y, X[:, 0], qid=qid, **options)
    sign = -1 if name in ("pairwise_risk", "p_norm_push") else 1
    made = scorer(name, **options)
    assert made(Column().fit(X, y), X, y, qid=qid) == pytest.approx(sign * expected)
    assert repr(name) in repr(made)


def test_queries_are_routed(data, routing):
    X, y, qid = data
    ranker = Column().set_fit_request(qid=True)
    cv = GroupKFold(3).set_split_request(groups="qid")
    got = cross_validate(
        ranker,
        X,
        y,
        scoring={"ndcg": scorer("ndcg", k=2)},
        cv=cv,
        params={"qid": qid},
        return_estimator=True,
    )
    folds = GroupKFold(3).split(X, y, groups=qid)
    expected = [metrics.ndcg(y[test], X[test, 0], k=2, qid=qid[test]) for _, test in folds]
    assert_allclose(got["test_ndcg"], expected)
    assert all(fitted.had_queries_ for fitted in got["estimator"])
    search = GridSearchCV(ranker, {"column": [0, 1]}, scoring=scorer("u_pairs"), cv=cv)
    search.fit(X, y, qid=qid)
    assert search.best_params_ == {"column": 0}
    by_hand = [metrics.u_pairs(y[t], X[t, 0], qid=qid[t]) for _, t in cv.split(X, y, groups=qid)]
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_weights_are_routed_on_request(data, routing):
    X, y, qid = data
    weights = np.linspace(0.1, 3, y.size)
    made = scorer("u_pairs").set_score_request(sample_weight=True)
    ranker = Column().set_fit_request(qid=False)
    params = {"qid": qid, "sample_weight": weights}
    got = cross_validate(
        ranker, X, y, scoring=made, cv=GroupKFold(2).set_split_request(groups="qid"), params=params
    )["test_score"]
    folds = list(GroupKFold(2).split(X, y, groups=qid))
    expected = [
        metrics.u_pairs(y[t], X[t, 0], qid=qid[t], sample_weight=weights[t]) for _, t in folds
    ]
    assert_allclose(got, expected)


def test_without_routing_a_fold_is_one_list(data):
    X, y, _ = data
    got = cross_val_score(Column(), X, y, scoring=scorer("u_pairs"), cv=KFold(3))
    folds = KFold(3).split(X)
    assert_allclose(got, [metrics.u_pairs(y[test], X[test, 0]) for _, test in folds])
    assert clone(Column(column=1)).fit(X, y).score(X, y) == metrics.u_pairs(y, X[:, 1])


def test_labels_of_the_estimator_are_the_scorers():
    X, y = [[1.0], [0.0], [2.0]], ["mid", "low", "high"]
    ranker = Column(labels=["low", "mid", "high"])
    assert scorer("u_pairs")(ranker.fit(X, y), X, y) == 1.0
    pipeline = make_pipeline(StandardScaler(), ranker).fit(X, y)
    assert scorer("u_pairs")(pipeline, X, y) == 1.0
    assert scorer("u_pairs", labels=["high", "mid", "low"])(ranker, X, y) == 0.0
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    search = GridSearchCV(pipeline, {"column__column": [0]}, cv=StratifiedKFold(2)).fit(X, y)
    assert scorer("u_pairs")(search, X, y) == 1.0
    inner = cross_val_score(search, X, y, scoring=scorer("u_pairs"), cv=StratifiedKFold(2))
    assert_array_equal(inner, 1.0)


def test_frames_keep_their_names_and_series_their_values(data):
    X, y, qid = data
    frame = pd.DataFrame(X, columns=["size", "age"], index=range(100, 172))
    target = pd.Series(y, index=range(172, 100, -1))
    ranker = Column().fit(frame, target)
    assert ranker.feature_names_in_.tolist() == ["size", "age"]
    plain = Column().fit(X, y).score(X, y, qid=qid)
    assert ranker.score(frame, target, qid=pd.Series(qid)) == plain
    series = cross_val_score(ranker, frame, target, scoring=scorer("u_ovo"), cv=StratifiedKFold(3))
    arrays = cross_val_score(Column(), X, y, scoring=scorer("u_ovo"), cv=StratifiedKFold(3))
    assert_array_equal(series, arrays)


def test_sorted_labels_bite_folds_without_shuffling():
    X, y = np.arange(12.0)[:, None], np.repeat([0, 1, 2], 4)
    with pytest.warns(UserWarning, match=r"y must hold[^\n]*use cv=StratifiedKFold\(\)"):
        assert np.isnan(cross_val_score(Column(), X, y, scoring=scorer("u_pairs"), cv=3)).all()
    cv = StratifiedKFold(4)
    assert_array_equal(cross_val_score(Column(), X, y, scoring=scorer("u_pairs"), cv=cv), 1.0)


def test_predictions_rank_where_they_are_no_labels(data):
    X, y, qid = data
    model = LinearRegression().fit(X, y)
    expected = metrics.ndcg(y, model.predict(X), qid=qid)
    assert scorer("ndcg")(model, X, y, qid=qid) == expected
    assert scorer("ndcg")(SimpleNamespace(predict=model.predict), X, y, qid=qid) == expected
    with pytest.raises(TypeError, match="estimator must have a decision_function to rank by"):
        scorer("ndcg")(DecisionTreeClassifier().fit(X, y), X, y)


def test_group_sizes():
    assert_array_equal(qid_from_group([2, 1]), [0, 0, 1])
    with pytest.raises(ValueError, match="group must hold sizes"):
        qid_from_group([0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: scorer("accuracy"), ValueError, "name must be one of 'auc'"),
        (lambda: scorer("pair_error_rates"), ValueError, "name must be one of"),
        (lambda: scorer("ndcg", depth=3), TypeError, r"options of 'ndcg' must be among \['k'"),
        (lambda: scorer("ndcg", qid=[1]), TypeError, "options of 'ndcg'"),
        (lambda: scorer("ndcg")(StandardScaler(), [[1]], [1]), TypeError, "decision_function"),
        (
            lambda: scorer("ndcg").set_score_request(sample_weight=True),
            TypeError,
            r"requests of 'ndcg' must be among \['qid'\], got 'sample_weight'",
        ),
        (lambda: scorer("auc").set_score_request(weight=True), TypeError, "requests of 'auc'"),
        (
            lambda: scorer("ndcg")(Column().fit([[1]], [1]), [[1]], [1], sample_weight=[1]),
            TypeError,
            "sample_weight must be left out",
        ),
    ],
)
def test_bad_scorers(call, error, message):
    with pytest.raises(error, match=message):
        call()
