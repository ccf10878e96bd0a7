"""Boosted proportional odds: the likelihood by hand, and the linear model on stumps' columns."""

import numpy as np
import pytest
from scipy.special import expit

from rankbook.models import CumulativeLink, ProportionalOddsBoost
from rankbook.models._boosting_risks import LikelihoodRisk
from tests.models.boosting_samples import sample


def test_the_likelihood_is_that_of_proportional_odds():
    _, y, w = sample(n_classes=4, seed=5)
    risk = LikelihoodRisk(y, 4, w)
    f = np.random.default_rng(6).normal(size=len(y))
    f = f + risk.refit(f)
    theta = np.r_[-np.inf, risk.thresholds, np.inf]
    share = expit(theta[y + 1] - f) - expit(theta[y] - f)
    assert risk.risk(f) == pytest.approx(-w @ np.log(share) / w.sum(), rel=1e-12)


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
