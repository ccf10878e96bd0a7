"""Boosted rankers: risks against brute force, minima against other solvers, and the interface."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from rankbook import costs, losses
from rankbook.exceptions import CostConditionError
from rankbook.models import (
    ORBoost,
    PairwiseBoost,
    ProportionalOddsBoost,
    RegressionBoost,
)
from rankbook.models._boosting_risks import (
    ExponentialThresholdRisk,
    LikelihoodRisk,
    PairRisk,
    SquaredRisk,
    ThresholdRisk,
)
from rankbook.solvers import PairSums
from tests.models.boosting_samples import sample

MODELS = (PairwiseBoost, ORBoost, ProportionalOddsBoost, RegressionBoost)


def risks(y, w, n_classes):
    return {
        "pairs": PairRisk(PairSums(y, "exponential", costs.linear(n_classes), sample_weight=w)),
        "exponential": ExponentialThresholdRisk(y, n_classes, w),
        "logistic": ThresholdRisk(y, n_classes, w, losses.Logistic()),
        "likelihood": LikelihoodRisk(y, n_classes, w),
        "squared": SquaredRisk(y.astype(float), w),
    }


@pytest.mark.parametrize("name", ["pairs", "exponential", "logistic", "likelihood", "squared"])
def test_derivatives_are_those_of_the_risk(name):
    _, y, w = sample(n_classes=4)
    risk = risks(y, w, 4)[name]
    rng = np.random.default_rng(1)
    f, h = rng.normal(size=(2, len(y)))
    f = f + risk.refit(f)
    step = 1e-5
    numeric = (risk.risk(f + step * h) - risk.risk(f - step * h)) / (2 * step)
    assert risk.gradient(f) @ h == pytest.approx(numeric, rel=1e-7)
    slopes = [risk.along(f, h)(t)[0] for t in (-step, 0.3, step)]
    assert risk.along(f, h)(0.0)[1] == pytest.approx((slopes[2] - slopes[0]) / (2 * step), rel=1e-6)
    assert slopes[1] == pytest.approx(risk.gradient(f + 0.3 * h) @ h, rel=1e-10)


@pytest.mark.parametrize("name", ["exponential", "logistic", "likelihood"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_thresholds_are_the_best_in_order(name, shuffled):
    """Scores against the labels' order make the free solutions disordered: they are pooled."""
    _, y, w = sample(n_classes=5, seed=3)
    rng = np.random.default_rng(4)
    f = (-2.0 if shuffled else 1.0) * y + rng.normal(size=len(y))
    risk = risks(y, w, 5)[name]
    shift = risk.refit(f)
    assert risk.thresholds[-1] == 0.0
    assert (np.diff(risk.thresholds) >= 0).all()
    found = risk.risk(f + shift)

    def value(x):
        # Any increasing thresholds: a first one, then gaps that are squares.
        risk.thresholds = x[0] + np.concatenate([[0.0], np.cumsum(x[1:] ** 2)])
        return risk.risk(f)

    starts = (np.r_[-1.0, np.full(3, s)] for s in (0.3, 1.0))
    best = min(minimize(value, x, tol=1e-12, method="BFGS").fun for x in starts)
    assert found <= best + 1e-9
    assert found == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("weak", ["univariate", "joint", "stump"])
def test_weights_are_repetitions(model, weak):
    X, y, _ = sample(n=40, seed=11)
    times = np.random.default_rng(12).integers(0, 3, 40)
    times[:6] = 1
    kept = np.repeat(np.arange(40), times)
    one = model(n_iter=15, weak=weak).fit(X, y, sample_weight=times.astype(float))
    two = model(n_iter=15, weak=weak).fit(X[kept], y[kept])
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("weak", ["univariate", "joint", "stump"])
def test_an_item_without_weight_has_no_say_even_where_its_loss_overflows(model, weak):
    X = np.linspace(0.0, 1.0, 30)[:, None] + np.repeat([0.0, 4.0, 8.0], 10)[:, None]
    y = np.repeat([0, 1, 2], 10)
    # Smooth learners of pairs are slow, and keep scores so small that nothing overflows.
    n_iter = 40 if model is PairwiseBoost and weak != "stump" else 250
    without = model(n_iter=n_iter, weak=weak).fit(X, y)
    weight = np.r_[np.ones(30), 0.0]
    wrong = model(n_iter=n_iter, weak=weak)
    wrong.fit(np.r_[X, X[-1:]], np.r_[y, 0], sample_weight=weight)
    np.testing.assert_array_equal(wrong.train_risk_, without.train_risk_)
    np.testing.assert_array_equal(wrong.decision_function(X), without.decision_function(X))


@pytest.mark.parametrize("model", MODELS)
def test_stages_paths_and_validation(model):
    X, y, _ = sample(n=150, seed=13)
    other = sample(n=80, seed=14)[:2]
    fit = model(n_iter=40, weak="joint", bandwidth=0.1).fit(X, y, validation=other)
    assert fit.n_iter_ == np.argmin(fit.validation_risk_) + 1 < 40
    assert len(fit.train_risk_) == len(fit.validation_risk_) == 40
    assert (np.diff(fit.train_risk_) <= 1e-12).all()
    stages = list(fit.staged_decision_function(X))
    assert len(stages) == fit.n_iter_
    np.testing.assert_allclose(stages[-1], fit.decision_function(X), atol=1e-10)
    short = clone(fit).set_params(n_iter=fit.n_iter_).fit(X, y)
    np.testing.assert_allclose(short.decision_function(X), fit.decision_function(X), atol=1e-10)
    assert not hasattr(short, "validation_risk_")


def test_a_held_out_part_is_of_every_class_or_of_queries():
    X, y, _ = sample(n=120, seed=15)
    fit = ORBoost(n_iter=5, validation_fraction=0.25, random_state=1).fit(X, y)
    again = ORBoost(n_iter=5, validation_fraction=0.25, random_state=1).fit(X, y)
    np.testing.assert_array_equal(fit.validation_risk_, again.validation_risk_)
    other = ORBoost(n_iter=5, validation_fraction=0.25, random_state=2).fit(X, y)
    assert not np.array_equal(fit.validation_risk_, other.validation_risk_)
    pairs = PairwiseBoost(n_iter=5, validation_fraction=0.3, random_state=0)
    assert pairs.fit(X, y, group=[30] * 4).validation_risk_.shape == (5,)
    with pytest.raises(ValueError, match="validation_fraction must leave"):
        pairs.fit(X, y, group=[120])


def test_labels_thresholds_and_predictions():
    X, y, _ = sample(n=200, n_classes=4, seed=16, p=1)
    names = np.array(["poor", "fair", "good", "best"])
    for model in (ORBoost, ProportionalOddsBoost):
        fit = model(labels=list(names), n_iter=50).fit(X, names[y])
        assert fit.classes_.tolist() == list(names)
        assert fit.thresholds_[-1] == 0.0
        f = fit.decision_function(X)
        count = (f[:, None] > fit.thresholds_).sum(axis=1)
        assert (fit.predict(X) == names[count]).all()
        assert fit.score(X, names[y]) > 0.8


def test_a_perfect_learner_has_a_finite_step():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])
    for model in (PairwiseBoost, ORBoost, ProportionalOddsBoost):
        fit = model(weak="stump", n_iter=50).fit(X, y)
        assert np.isfinite(fit.decision_function(X)).all()
        assert fit.score(X, y) == 1.0
    huge = ORBoost(n_iter=20).fit(X * 1e9, y)
    assert np.isfinite(huge.decision_function(X * 1e9)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS)
def test_scikit_learns_checks(model):
    check_estimator(model(n_iter=10), on_skip=None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_iter": 0}, "n_iter must be at least 1"),
        ({"bandwidth": 0.0}, "bandwidth must be greater than 0"),
        ({"weak": "tree"}, "weak must be one of"),
        ({"selection": "best"}, "selection must be one of"),
        ({"validation_fraction": 1.0}, "validation_fraction must be less than 1"),
        ({"max_centres": 0}, "max_centres must be at least 1"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y, _ = sample()
    with pytest.raises(ValueError, match=message):
        ORBoost(**parameters).fit(X, y)


def test_bad_data():
    X, y, _ = sample()
    with pytest.raises(ValueError, match=r"validation\[1\] holds \[7\]"):
        ORBoost(n_iter=2).fit(X, y, validation=(X[:2], [0, 7]))
    with pytest.raises(TypeError, match="validation must be a tuple"):
        ORBoost(n_iter=2).fit(X, y, validation=X)
    with pytest.raises(ValueError, match=r"every class, got none of \[3\]"):
        ORBoost(labels=[0, 1, 2, 3]).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        RegressionBoost().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="different labels"):
        PairwiseBoost().fit(X[:4], [0, 0, 1, 1], qid=[0, 0, 1, 1])
    with pytest.raises(CostConditionError):
        PairwiseBoost(costs=None).fit(*sample(n_classes=4)[:2])
    with pytest.raises(ValueError, match="objective must be one of"):
        ProportionalOddsBoost(objective="hinge").fit(X, y)
    with pytest.raises(TypeError, match="consistent must be"):
        PairwiseBoost(consistent="yes").fit(X, y)
