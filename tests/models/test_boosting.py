"""Boosted rankers: risks against brute force, minima against other solvers, and the interface."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from rankbook import costs, losses
from rankbook.exceptions import CostConditionError
from rankbook.models import (
    CumulativeLink,
    ORBoost,
    PairwiseBoost,
    ProportionalOddsBoost,
    RegressionBoost,
    UnivariateRanker,
)
from rankbook.models._boosting_risks import (
    ExponentialThresholdRisk,
    LikelihoodRisk,
    PairRisk,
    SquaredRisk,
    ThresholdRisk,
)
from rankbook.solvers import PairSums

MODELS = (PairwiseBoost, ORBoost, ProportionalOddsBoost, RegressionBoost)


def sample(n=60, n_classes=3, seed=0, p=2):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return rng.normal(size=(n, p)) + y[:, None], y, rng.uniform(0.5, 2.0, n)


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


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_search_on_pairs_survives_overflow(loss):
    """Where the risk overflows its slope is not finite or rises, and the search turns back."""
    y = np.array([0, 0, 1, 1])
    risk = PairRisk(PairSums(y, loss))
    f = np.array([0.0, 1.0, 0.5, 2.0])
    slope, _ = risk.along(f, np.array([1.0, 0.0, -1.0, 0.0]))(1e3)
    assert not slope <= 0


def test_the_likelihood_is_that_of_proportional_odds():
    _, y, w = sample(n_classes=4, seed=5)
    risk = LikelihoodRisk(y, 4, w)
    f = np.random.default_rng(6).normal(size=len(y))
    f = f + risk.refit(f)
    theta = np.r_[-np.inf, risk.thresholds, np.inf]
    share = expit(theta[y + 1] - f) - expit(theta[y] - f)
    assert risk.risk(f) == pytest.approx(-w @ np.log(share) / w.sum(), rel=1e-12)


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "hinge", "squared"])
def test_a_round_on_pairs_is_that_of_explicit_pairs(loss):
    X, y, _ = sample(n=25, n_classes=3, seed=7)
    query = np.arange(25) % 2
    model = PairwiseBoost(loss=loss, consistent=False, n_iter=1, weak="stump")
    model.fit(X, y, qid=query)
    upper, lower = np.nonzero((y[:, None] > y) & (query[:, None] == query))
    weight = (y[upper] - y[lower]) / len(upper)
    phi = losses.get(loss)
    gradient = np.zeros(25)
    np.add.at(gradient, upper, weight * phi.derivative(np.zeros(len(upper))))
    np.add.at(gradient, lower, -weight * phi.derivative(np.zeros(len(upper))))
    cuts = [(j, c) for j in range(2) for c in np.unique(X[:, j])[:-1]]
    values = np.array([np.where(X[:, j] > c, 1.0, -1.0) for j, c in cuts])
    h = values[np.abs(values @ gradient).argmax()]

    def risk(t):
        return weight @ phi(t * (h[upper] - h[lower]))

    best = min(risk(t) for t in np.linspace(-4, 4, 8001))
    assert model.train_risk_[0] <= best + 1e-9
    assert model.train_risk_[0] == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("consistent", [False, True])
def test_the_extra_term_is_a_loss_of_pairs_of_the_middle_class(consistent):
    """Every pair by hand: with the term, two items of class 2 are a pair both ways."""
    X, y, _ = sample(n=30, n_classes=3, seed=18, p=1)
    model = PairwiseBoost("constant", consistent, n_iter=6).fit(X, y)
    weight = (y[:, None] > y).astype(float)
    if consistent:
        weight += (y[:, None] == 1) & (y == 1)
    f = model.decision_function(X)
    by_hand = (weight * np.exp(f - f[:, None])).sum() / (y[:, None] > y).sum()
    assert model.train_risk_[-1] == pytest.approx(by_hand, rel=1e-10)


def test_validation_of_queries_forms_pairs_within_them():
    X, y, _ = sample(n=60, seed=19)
    other_X, other_y, _ = sample(n=40, seed=20)
    query, other = np.arange(60) % 4, np.arange(40) % 3
    fit = PairwiseBoost(consistent=False, n_iter=8)
    fit.fit(X, y, qid=query, validation=(other_X, other_y, other))
    f = fit.decision_function(other_X)
    pair = (other_y[:, None] > other_y) & (other[:, None] == other)
    weight = np.where(pair, other_y[:, None] - other_y, 0)
    by_hand = (weight * np.exp(f - f[:, None])).sum() / pair.sum()
    assert fit.validation_risk_[fit.n_iter_ - 1] == pytest.approx(by_hand, rel=1e-10)
    with pytest.raises(TypeError, match=r"validation must be a tuple \(X, y, qid\)"):
        fit.fit(X, y, qid=query, validation=(other_X, other_y))
    with pytest.raises(TypeError, match="got tuple of 3"):
        ORBoost(n_iter=2).fit(X, y, validation=(other_X, other_y, other))


def test_a_model_refitted_without_validation_forgets_it():
    X, y, _ = sample(n=60, seed=21)
    fit = ORBoost(n_iter=12, bandwidth=0.05).fit(X, y, validation=sample(n=30, seed=22)[:2])
    assert fit.n_iter_ < 12
    np.testing.assert_array_equal(fit.threshold_path_[fit.n_iter_], fit.thresholds_)
    short = ORBoost(n_iter=3, bandwidth=0.05).fit(X, y)
    np.testing.assert_allclose(fit.threshold_path_[3], short.thresholds_, rtol=1e-12)
    fit.fit(X, y)
    assert fit.n_iter_ == 12 and not hasattr(fit, "validation_risk_")
    assert fit.threshold_path_.shape == (13, 2)


def test_rankboost_reaches_the_exponential_minimum():
    """Two classes and stumps: without a penalty, single items have the same minimum."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 3, size=(400, 2)).astype(float)
    y = (rng.random(400) < expit(X[:, 0] - X[:, 1])).astype(int)
    boosted = PairwiseBoost(weak="stump", n_iter=2000).fit(X, y)
    steps = np.column_stack([X[:, j] > c for j in (0, 1) for c in (0, 1)]).astype(float)
    single = UnivariateRanker(loss="exponential", alpha=0.0).fit(steps, y)
    scores = single.decision_function(steps)
    minimum = np.mean(np.exp(-(scores[y == 1][:, None] - scores[y == 0])))
    assert boosted.train_risk_[-1] == pytest.approx(minimum, rel=1e-10)
    ours = boosted.decision_function(X)
    np.testing.assert_allclose(ours - ours.mean(), scores - scores.mean(), atol=1e-4)


def test_boosted_proportional_odds_reach_the_linear_fit_on_its_columns():
    rng = np.random.default_rng(9)
    X = rng.integers(0, 3, size=(600, 1)).astype(float)
    y = np.digitize(0.8 * X[:, 0] + rng.logistic(size=600), [0.0, 1.0, 2.0])
    boosted = ProportionalOddsBoost(weak="stump", n_iter=500).fit(X, y)
    linear = CumulativeLink().fit(np.column_stack([X > 0, X > 1]).astype(float), y)
    assert -600 * boosted.train_risk_[-1] == pytest.approx(linear.log_likelihood_, rel=1e-9)
    theta = np.asarray(linear.thresholds_)
    np.testing.assert_allclose(boosted.thresholds_, theta - theta[-1], atol=1e-4)


def test_the_two_objectives_of_proportional_odds_differ_in_their_thresholds():
    X, y, _ = sample(n=300, seed=10, p=1)
    fits = [ProportionalOddsBoost(objective=o).fit(X, y) for o in ("likelihood", "loss")]
    gaps = [fit.thresholds_[1] - fit.thresholds_[0] for fit in fits]
    assert gaps[0] > gaps[1] + 0.05


def test_boosted_regression_reaches_least_squares():
    X = np.array([[0.0], [0.7], [1.5], [2.0], [3.1]])
    y = np.array([1, 3, 2, 2, 5])
    model = RegressionBoost(n_iter=60_000, weak="joint", bandwidth=1.0).fit(X, y)
    basis = np.column_stack([np.ones(5), np.exp(-((X - X.T) ** 2) / 2)])
    fitted = basis @ np.linalg.lstsq(basis, y.astype(float), rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), fitted, atol=2e-3)
    named = RegressionBoost(n_iter=5, labels=["a", "b"]).fit(X, ["a", "b", "a", "b", "b"])
    assert 0 <= named.predict(X).min() and named.predict(X).max() < 2


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
    without = model(n_iter=250, weak=weak).fit(X, y)
    weight = np.r_[np.ones(30), 0.0]
    wrong = model(n_iter=250, weak=weak)
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


def test_the_validation_risk_is_the_risk_of_those_items():
    X, y, _ = sample(n=150, seed=13)
    other_X, other_y, _ = sample(n=80, seed=14)
    fit = ORBoost(n_iter=10).fit(X, y, validation=(other_X, other_y))
    theta = np.r_[-np.inf, fit.thresholds_, np.inf]
    f = fit.decision_function(other_X)
    by_hand = np.mean(np.exp(theta[other_y] - f) + np.exp(f - theta[other_y + 1]))
    assert fit.validation_risk_[fit.n_iter_ - 1] == pytest.approx(by_hand, rel=1e-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_validation_set_may_lack_classes(label):
    X, y, _ = sample(n=150, seed=13)
    other = sample(n=9, seed=14)[0]
    fit = ProportionalOddsBoost(n_iter=10).fit(X, y, validation=(other, np.full(9, label)))
    theta = np.r_[-np.inf, fit.thresholds_, np.inf]
    f = fit.decision_function(other)
    by_hand = -np.mean(np.log(expit(theta[label + 1] - f) - expit(theta[label] - f)))
    assert fit.validation_risk_[fit.n_iter_ - 1] == pytest.approx(by_hand, rel=1e-10)


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


def test_constant_columns_add_nothing():
    X, y, _ = sample(n=30, seed=17)
    with pytest.warns(ConvergenceWarning, match="added nothing"):
        fit = PairwiseBoost(weak="stump").fit(np.ones((30, 2)), y)
    assert (fit.decision_function(np.ones((3, 2))) == 0).all()
    padded = np.column_stack([np.full(30, 7.0), X])
    one, two = (PairwiseBoost(weak="stump", n_iter=20).fit(Z, y) for Z in (X, padded))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(padded))


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
