"""Nominal effects, scale effects and offsets of cumulative link models."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

from rankbook.exceptions import CrossingWarning
from rankbook.models import CumulativeLink
from tests.models.clm_samples import (
    ALL_LINKS,
    general_nll,
    simulate,
    standardised,
)


@ALL_LINKS
@pytest.mark.parametrize("nominal,scale", [((0,), ()), ((), (1,)), ((0,), (1,))])
def test_general_models_agree_with_a_direct_minimisation(link, nominal, scale):
    X, y = standardised(n=500, link=link, seed=3, cuts=(-1.0, 1.0))
    offset = np.random.default_rng(0).normal(size=500)
    model = CumulativeLink(link, nominal=list(nominal), scale=list(scale))
    model.fit(X, y, offset=offset)
    keywords = {"nominal": nominal, "scale": scale, "offset": offset}
    peer = scipy_minimize(
        lambda v: general_nll(v, X, y, link, **keywords), model.params_ + 0.02,
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-9, "maxiter": 20000, "maxfev": 20000, "adaptive": True},
    )  # fmt: skip
    ours = general_nll(model.params_, X, y, link, **keywords)
    assert model.log_likelihood_ == pytest.approx(-ours, rel=1e-11)
    assert ours <= peer.fun + 1e-9
    np.testing.assert_allclose(model.params_, peer.x, atol=2e-4)
    prob = model.predict_proba(X, offset=offset)
    assert np.log(prob[np.arange(500), y]).sum() == pytest.approx(-ours, rel=1e-11)
    np.testing.assert_allclose(prob.sum(axis=1), 1.0, rtol=1e-12)
    cumulative = model.predict_cumulative(X, offset=offset)
    np.testing.assert_allclose(cumulative, np.cumsum(prob, axis=1)[:, :-1], atol=1e-12)
    scores = model.decision_function(X, offset=offset)
    np.testing.assert_allclose(scores, prob @ np.arange(3), atol=1e-12)


def test_sparse_and_named_columns_may_be_nominal_or_scale():
    X, y = simulate()
    frame = pd.DataFrame(X, columns=["age", "income", "rooms"])
    named = CumulativeLink(nominal="rooms", scale=["age"]).fit(frame, y)
    sparse = CumulativeLink(nominal=[2], scale=[0]).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.params_, named.params_, rtol=1e-5)
    np.testing.assert_allclose(sparse.predict_proba(X), named.predict_proba(frame), atol=1e-7)
    assert named.param_names_ == [
        "age", "income", "rooms:0|1", "rooms:1|2", "rooms:2|3", "rooms:3|4",
        "0|1", "1|2", "2|3", "3|4", "scale: age",
    ]  # fmt: skip


def crossing_sample():
    """A middle class that occurs on the left alone, so that the best lines cross on the right."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 4, size=200)
    y = np.where((x < 0) & (rng.random(200) < 0.8), 1, 2 * rng.integers(0, 2, size=200))
    return x[:, None], y


def test_thresholds_stay_in_order_where_the_data_are():
    X, y = crossing_sample()
    with pytest.warns(CrossingWarning, match="cross at"):
        model = CumulativeLink(nominal=[0]).fit(X, y)
    ends = model.thresholds_ - X @ model.nominal_coef_
    assert np.all(np.diff(ends, axis=1) > 0)
    assert np.isnan(model.standard_errors_).all()
    assert np.isnan(model.confint(method="profile")).all()

    def constrained(params):
        own, theta = params[:2], params[2:]
        if np.any(np.diff(theta - X * own, axis=1) < 0):
            return np.inf
        return general_nll(params, X, y, "logit", nominal=(0,))

    best = -model.log_likelihood_
    assert best == pytest.approx(general_nll(model.params_, X, y, "logit", nominal=(0,)), rel=1e-11)
    peer = scipy_minimize(
        constrained, model.params_ + [0.0, 0.0, -0.05, 0.05], method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-10, "maxiter": 9000, "maxfev": 9000},
    )  # fmt: skip
    assert best <= peer.fun + 1e-6
    # Farther out than the data the thresholds cross, and are sorted.
    far = np.array([[60.0], [-60.0]])
    with pytest.warns(CrossingWarning, match="sorted"):
        prob, errors = model.predict_proba(far, return_std=True)
    np.testing.assert_allclose(prob.sum(axis=1), 1.0)
    assert np.all(prob >= 0)
    assert np.isnan(errors).all()


def test_offsets_are_known_scores():
    X, y = standardised()
    model = CumulativeLink().fit(X, y)
    rest = CumulativeLink().fit(X[:, 1:], y, offset=model.coef_[0] * X[:, 0])
    np.testing.assert_allclose(rest.params_, model.params_[1:], atol=1e-6)
    offset = model.coef_[0] * X[:, 0]
    np.testing.assert_allclose(
        rest.decision_function(X[:, 1:], offset=offset), model.decision_function(X), atol=1e-5
    )
    np.testing.assert_array_equal(
        rest.predict(X[:50, 1:], offset=offset[:50]), model.predict(X[:50])
    )
