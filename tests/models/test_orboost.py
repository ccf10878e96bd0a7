"""ORBoost: thresholds along the rounds, and the risk of held-out items by hand."""

import numpy as np
import pytest

from rankbook.models import ORBoost
from tests.models.boosting_samples import sample


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


def test_the_validation_risk_is_the_risk_of_those_items():
    X, y, _ = sample(n=150, seed=13)
    other_X, other_y, _ = sample(n=80, seed=14)
    fit = ORBoost(n_iter=10).fit(X, y, validation=(other_X, other_y))
    theta = np.r_[-np.inf, fit.thresholds_, np.inf]
    f = fit.decision_function(other_X)
    by_hand = np.mean(np.exp(theta[other_y] - f) + np.exp(f - theta[other_y + 1]))
    assert fit.validation_risk_[fit.n_iter_ - 1] == pytest.approx(by_hand, rel=1e-10)
