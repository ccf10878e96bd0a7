"""Boosted pairs: one round, the extra term and the minimum against explicit pairs."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from rankbook import losses
from rankbook.models import ORBoost, PairwiseBoost, UnivariateRanker
from rankbook.models._boosting_risks import PairRisk
from rankbook.solvers import PairSums
from tests.models.boosting_samples import sample


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_search_on_pairs_survives_overflow(loss):
    """Where the risk overflows its slope is not finite or rises, and the search turns back."""
    y = np.array([0, 0, 1, 1])
    risk = PairRisk(PairSums(y, loss))
    f = np.array([0.0, 1.0, 0.5, 2.0])
    slope, _ = risk.along(f, np.array([1.0, 0.0, -1.0, 0.0]))(1e3)
    assert not slope <= 0


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


def test_constant_columns_add_nothing():
    X, y, _ = sample(n=30, seed=17)
    with pytest.warns(ConvergenceWarning, match="added nothing"):
        fit = PairwiseBoost(weak="stump").fit(np.ones((30, 2)), y)
    assert (fit.decision_function(np.ones((3, 2))) == 0).all()
    padded = np.column_stack([np.full(30, 7.0), X])
    one, two = (PairwiseBoost(weak="stump", n_iter=20).fit(Z, y) for Z in (X, padded))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(padded))
