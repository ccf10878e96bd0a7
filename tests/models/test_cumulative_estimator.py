"""Cumulative link models as scikit-learn estimators: parameters, data, labels, pickles."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from rankbook.models import CumulativeLink
from tests.models.clm_samples import (
    simulate,
)


def test_pipeline_grid_search_pickle():
    X, y = simulate()
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), CumulativeLink()),
        {"cumulativelink__alpha": [0.0, 0.01, 1.0]},
        cv=StratifiedKFold(3),
    )
    grid.fit(X, y)
    assert grid.best_score_ > 0.6
    model = grid.best_estimator_
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_progress_bar(capsys):
    X, y = simulate()
    CumulativeLink(verbose=1).fit(X, y)
    assert "Newton" in capsys.readouterr().err
    CumulativeLink().fit(X, y)
    assert capsys.readouterr().err == ""


def test_too_few_steps_warn():
    X, y = simulate()
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        CumulativeLink(max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    "parameters,message",
    [
        ({"link": "identity"}, "link"),
        ({"covariance": "bootstrap"}, "covariance"),
        ({"nominal": ["age"]}, "nominal must name columns"),
        ({"scale": 3}, "scale must name columns"),
        ({"nominal": [1, 1]}, "each column once"),
        ({"nominal": [False, True, False]}, "nominal must name columns of X, got False"),
        ({"scale": True}, "scale must name columns"),
        ({"rule": "mean"}, "rule"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": "none"}, "alpha"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1e-3}, "tol"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = simulate()
    with pytest.raises((ValueError, TypeError), match=message):
        CumulativeLink(**parameters).fit(X, y)


def test_bad_data_is_named():
    X, y = simulate()
    model = CumulativeLink()
    with pytest.raises(ValueError, match="y"):
        model.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 0, X, np.nan), y)
    with pytest.raises(ValueError, match="same length"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(X[:, :0], y)
    with pytest.raises(ValueError, match="y must be given"):
        model.fit(None, None)
    model.fit(X, y)
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="level"):
            model.confint(level)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])


def test_declared_orders():
    X, y = simulate()
    names = np.array(["poor", "fair", "good", "great", "best"])
    plain = CumulativeLink().fit(X, y)
    listed = CumulativeLink(labels=names).fit(X, names[y])
    ordered = pd.Series(pd.Categorical(names[y], categories=names, ordered=True))
    for model in (listed, CumulativeLink().fit(X, ordered)):
        np.testing.assert_array_equal(model.params_, plain.params_)
        np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
        assert model.param_names_[3] == "poor|fair"
    with pytest.raises(ValueError, match="labels"):
        CumulativeLink().fit(X, names[y])
    more = CumulativeLink(labels=[*names[:2], "absent", *names[2:]]).fit(X, names[y])
    np.testing.assert_array_equal(more.classes_, names)
    np.testing.assert_array_equal(more.params_, plain.params_)


# The checks fit separable and collinear samples, and are told so.
@pytest.mark.filterwarnings("ignore::rankbook.exceptions.SeparationWarning")
@pytest.mark.filterwarnings("ignore::rankbook.exceptions.CollinearityWarning")
@pytest.mark.parametrize(
    "parameters", [{}, {"alpha": 0.1}, {"covariance": "robust"}, {"link": "cauchit"}]
)
def test_check_estimator(parameters):
    check_estimator(CumulativeLink(**parameters), on_skip=None)


def test_a_link_set_later_waits_for_the_next_fit():
    X, y = simulate()
    model, other = CumulativeLink().fit(X, y), CumulativeLink().fit(X, y)
    other.set_params(link="identity")
    for method in ("predict_proba", "predict", "predict_cumulative"):
        np.testing.assert_array_equal(getattr(other, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(other.confint(method="profile"), model.confint(method="profile"))
    assert str(other.summary()) == str(model.summary())
    with pytest.raises(ValueError, match="link must be one of"):
        other.fit(X, y)


def test_a_model_without_columns_refuses_them():
    model = CumulativeLink().fit(None, [0, 1, 1, 2])
    for X in (np.zeros((4, 1)), np.zeros(3), [[1.0, 2.0]]):
        for method in (model.predict, model.predict_proba, model.decision_function):
            with pytest.raises(ValueError, match="fitted without any"):
                method(X)
    assert model.predict_proba(np.empty((3, 0))).shape == (3, 3)


def test_keywords_only():
    X, y = simulate()
    with pytest.raises(TypeError):
        CumulativeLink().fit(X, y, np.ones(len(y)))
    with pytest.raises(ValueError, match="offset"):
        CumulativeLink().fit(X, y, offset=np.ones(3))
    with pytest.raises(ValueError, match='cluster needs covariance="robust"'):
        CumulativeLink().fit(X, y, cluster=np.ones(len(y)))


def test_pickles_are_small_and_say_what_they_lack():
    X, y = simulate(n=2000)
    model = CumulativeLink().fit(X, y)
    data = pickle.dumps(model)
    assert len(data) < 20_000
    copy = pickle.loads(data)
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert model.drop1().values.shape == (4, 6)
    with pytest.raises(ValueError, match="fit it again"):
        copy.drop1()
