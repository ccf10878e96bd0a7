"""Noisy threshold models: closed forms, simulation, invariance, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook.datasets import make_linear_model, make_rule_model, noise_for_bayes_risk
from rankbook.datasets.noisy_threshold import RuleFunction, _nearest_cut, _weighted_uniform_quantile
from rankbook.metrics import auc

MAKERS = [make_linear_model, make_rule_model]


def two_level_risk(share, noise):
    """Rank risk of a scorer with two levels, from the four joint probabilities."""
    high, low = share * (1 - noise), (1 - share) * noise  # positives
    high_, low_ = share * noise, (1 - share) * (1 - noise)  # negatives
    wrong = low * high_ + 0.5 * (high * high_ + low * low_)
    return wrong / ((high + low) * (high_ + low_))


@given(st.floats(0.01, 0.99), st.floats(0.0, 0.49))
def test_noise_solves_both_equations(prior, risk):
    noise, share = noise_for_bayes_risk(prior, risk)
    assert 0 <= noise <= 0.5
    assert -1e-12 <= share <= 1 + 1e-12
    assert share * (1 - noise) + (1 - share) * noise == pytest.approx(prior, abs=1e-9)
    assert two_level_risk(share, noise) == pytest.approx(risk, abs=1e-9)


def test_equal_priors_need_noise_equal_to_the_risk():
    for risk in (0.0, 0.1, 0.3):
        assert noise_for_bayes_risk(0.5, risk) == pytest.approx((risk, 0.5))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("prior", [0.5, 0.9, 0.2])
def test_prior_and_risk_by_simulation(make, prior):
    model = make(prior, rng=3)
    n = 60_000
    X, y = model.sample(n, rng=4)
    assert X.shape == (n, 50)
    assert 0 <= X.min() <= X.max() <= 1
    # Four standard errors, and the calibration's own error for the rules.
    extra = 0.004 if make is make_rule_model else 0.0
    assert abs(y.mean() - prior) < 4 * np.sqrt(prior * (1 - prior) / n) + extra
    risk = 1 - auc(y, model.bayes_scores(X))
    few = min(y.sum(), n - y.sum())
    assert abs(risk - 0.1) < 4 * 0.5 / np.sqrt(few) + extra
    assert model.bayes_risk == pytest.approx(0.1, abs=1e-12 if extra == 0 else 5e-3)
    posterior = model.posterior(X)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    top = posterior[:, 1] > 0.5
    rate = y[top].mean()
    assert abs(rate - (1 - model.noise)) < 4 * np.sqrt(model.noise / top.sum())


def test_linear_offset_is_exact():
    """The quantile of a weighted sum of uniforms: closed forms, and simulation."""
    assert _weighted_uniform_quantile(np.array([2.0]), 0.3) == pytest.approx(0.6, abs=1e-3)
    # Irwin-Hall with two terms: F(z) = z^2 / 2 below 1.
    quantile = _weighted_uniform_quantile(np.array([1.0, 1.0]), 0.08)
    assert quantile == pytest.approx(0.4, abs=1e-5)
    weights = np.random.default_rng(0).normal(size=50)
    assert _weighted_uniform_quantile(weights, 0.5) == pytest.approx(weights.sum() / 2, abs=1e-9)
    sums = np.random.default_rng(1).random((200_000, 50)) @ weights
    for probability in (0.1, 0.9):
        share = (sums <= _weighted_uniform_quantile(weights, probability)).mean()
        assert abs(share - probability) < 4 * np.sqrt(0.09 / 200_000)


def test_rules_by_hand():
    function = RuleFunction(
        weights=np.array([2.0, -1.0]),
        offset=0.5,
        rule=np.array([0, 0, 1]),
        feature=np.array([0, 1, 1]),
        threshold=np.array([0.3, 0.6, 0.5]),
        is_upper=np.array([False, True, True]),
        n_features=2,
    )
    X = np.array([[0.4, 0.55], [0.4, 0.4], [0.1, 0.4], [0.1, 0.9]])
    assert function(X).tolist() == [2.5, 1.5, -0.5, 0.5]


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make):
    first, second, other = make(rng=5), make(rng=5), make(rng=6)
    X, y = first.sample(50, rng=1)
    X2, y2 = second.sample(50, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(X, X2)
    np.testing.assert_array_equal(y, y2)
    np.testing.assert_array_equal(first.function(X), second.function(X))
    assert not np.array_equal(first.function(X), other.function(X))


def test_no_noise_is_perfectly_rankable():
    model = make_linear_model(0.3, bayes_risk=0.0, n_features=5, rng=0)
    X, y = model.sample(500, rng=0)
    assert model.noise == 0
    assert auc(y, model.function(X)) == 1.0


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"prior": 0.0}, ValueError, "prior must be"),
        ({"prior": 1.0}, ValueError, "prior must be less than 1"),
        ({"prior": np.nan}, ValueError, "prior must be"),
        ({"prior": "half"}, TypeError, "prior must be a real number"),
        ({"bayes_risk": 0.5}, ValueError, "bayes_risk must be less than 0.5"),
        ({"bayes_risk": -0.1}, ValueError, "bayes_risk must be at least 0"),
        ({"n_features": 0}, ValueError, "n_features must be at least 1"),
        ({"n_features": 2.5}, TypeError, "n_features must be an integer"),
        ({"rng": "seed"}, TypeError, "rng must be"),
    ],
)
def test_bad_input(make, keywords, error, message):
    with pytest.raises(error, match=message):
        make(**keywords)


def test_bad_items():
    model = make_linear_model(n_features=4, rng=0)
    with pytest.raises(ValueError, match=r"X must have shape \(n, 4\), got shape \(3, 2\)"):
        model.posterior(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="n must be at least 1"):
        model.sample(0)
    with pytest.raises(ValueError, match="n_rules must be"):
        make_rule_model(n_rules=0)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[np.nan, 0.5]], ValueError, r"X must be finite, got nan at index \(0, 0\)"),
        ([[np.inf, 0.5]], ValueError, "X must be finite"),
        ([["a", "b"]], TypeError, "X must be real numbers"),
        ([[1j, 0.5]], TypeError, "X must be real numbers"),
        (np.ma.array([[0.5, 0.5]], mask=[[1, 0]]), ValueError, "X must not hold masked"),
        ([[0.5, 0.5], [0.5]], ValueError, "X must be an array or a list of equally long"),
    ],
)
def test_bad_items_have_no_posterior(X, error, message):
    model = make_linear_model(n_features=2, rng=0)
    for method in (model.posterior, model.bayes_scores):
        with pytest.raises(error, match=message):
            method(X)


def test_rules_of_a_single_value_cannot_be_cut():
    assert _nearest_cut(np.array([0.0, 0.0, 1.0, 1.0]), 0.4) == (0.5, 0.5)
    with pytest.raises(ValueError, match="the rules take a single value"):
        _nearest_cut(np.zeros(5), 0.5)
