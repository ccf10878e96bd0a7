"""Cumulative link models: fits, invariances, closed forms."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from rankbook._links import LINKS
from rankbook.models import CumulativeLink
from rankbook.models._cumulative_design import Design
from rankbook.models._cumulative_likelihood import Likelihood
from tests.models.clm_samples import (
    ALL_LINKS,
    direct_nll,
    simulate,
    standardised,
)


@ALL_LINKS
def test_no_predictors_in_closed_form(link):
    y = np.repeat([1, 2, 3, 4], [10, 25, 40, 25])
    model = CumulativeLink(link).fit(None, y)
    shares = np.array([0.10, 0.25, 0.40, 0.25])
    np.testing.assert_allclose(model.thresholds_, LINKS[link].quantile(np.cumsum(shares)[:-1]))
    assert model.log_likelihood_ == pytest.approx(100 * shares @ np.log(shares))
    assert model.coef_.shape == (0,)
    np.testing.assert_allclose(model.predict_proba(np.empty((2, 0))), [shares, shares])
    np.testing.assert_array_equal(model.predict(None), [3])
    if link == "logit":
        # Delta method for a binomial share: var(logit) = 1 / (n P (1 - P)).
        P = np.cumsum(shares)[:-1]
        np.testing.assert_allclose(model.standard_errors_, 1 / np.sqrt(100 * P * (1 - P)))
    assert "1|2" in str(model.summary())


def test_two_classes_are_logistic_regression():
    X, y = simulate(cuts=(0.0,))
    model = CumulativeLink().fit(X, y)
    peer = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10000, solver="newton-cholesky")
    peer.fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, -peer.intercept_, rtol=1e-5)
    ridge = CumulativeLink(alpha=0.01).fit(X, y)
    peer = LogisticRegression(
        C=1 / (0.01 * len(y)), tol=1e-12, max_iter=10000, solver="newton-cholesky"
    )
    np.testing.assert_allclose(ridge.coef_, peer.fit(X, y).coef_[0], rtol=1e-5)


@ALL_LINKS
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_agrees_with_a_direct_minimisation(link, alpha):
    X, y = simulate(link=link, seed=3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.random.default_rng(0).uniform(0.2, 3, size=len(y))
    model = CumulativeLink(link, alpha=alpha).fit(Z, y, sample_weight=weights)
    found = np.concatenate([model.coef_, model.thresholds_])
    peer = scipy_minimize(
        direct_nll, found + 0.05, args=(Z, y, link, weights, alpha), method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 20000, "maxfev": 20000, "adaptive": True},
    )  # fmt: skip
    ours = direct_nll(found, Z, y, link, weights, alpha)
    assert ours <= peer.fun + 1e-9
    np.testing.assert_allclose(found, peer.x, atol=1e-4)
    penalty = weights.sum() * alpha / 2 * model.coef_ @ model.coef_
    assert model.log_likelihood_ == pytest.approx(-(ours - penalty), rel=1e-11)


@ALL_LINKS
def test_weights_are_frequencies(link):
    X, y = simulate(n=200, link=link, seed=6)
    counts = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = CumulativeLink(link).fit(X, y, sample_weight=counts)
    repeated = CumulativeLink(link).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    for name in ("coef_", "thresholds_", "standard_errors_", "log_likelihood_", "n_obs_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_reversing_the_labels_reverses_the_model(link):
    X, y = simulate(link=link)
    model, mirror = CumulativeLink(link).fit(X, y), CumulativeLink(link).fit(X, 4 - y)
    np.testing.assert_allclose(mirror.coef_, -model.coef_, rtol=1e-8)
    np.testing.assert_allclose(mirror.thresholds_, -model.thresholds_[::-1], rtol=1e-8)


def test_cloglog_is_not_symmetric():
    X, y = simulate(link="cloglog", n=2000)
    forward, backward = (CumulativeLink("cloglog").fit(X, c).log_likelihood_ for c in (y, 4 - y))
    assert forward > backward + 1


@ALL_LINKS
def test_linear_change_of_columns(link):
    X, y = simulate(link=link)
    change = np.array([[2.0, 1.0, 0.0], [0.0, 1e-3, 1.0], [0.0, 0.0, 1e3]])
    shift = np.array([1e4, -3.0, 5.0])
    model, moved = CumulativeLink(link).fit(X, y), CumulativeLink(link).fit(X @ change + shift, y)
    np.testing.assert_allclose(change @ moved.coef_, model.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        moved.thresholds_ - shift @ moved.coef_, model.thresholds_, rtol=1e-5
    )
    assert moved.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)


@ALL_LINKS
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_sparse_is_dense(link, alpha):
    X, y = simulate(link=link)
    X = np.where(np.abs(X - X.mean(axis=0)) < X.std(axis=0), 0.0, X)
    dense = CumulativeLink(link, alpha=alpha).fit(X, y)
    for kind in (sp.csr_matrix, sp.csc_array):
        sparse = CumulativeLink(link, alpha=alpha).fit(kind(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
        np.testing.assert_allclose(sparse.standard_errors_, dense.standard_errors_, rtol=1e-6)
        np.testing.assert_allclose(sparse.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-8)


def test_the_start_on_a_thinned_sample_changes_nothing():
    X, y = simulate(n=30_000, seed=8)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = CumulativeLink().fit(Z, y)
    likelihood = Likelihood(Design.build(Z, y, 5), LINKS["logit"])
    scaled = np.concatenate([model.coef_, model.thresholds_])
    _, gradient, hessian = likelihood.value_gradient_hessian(scaled)
    assert gradient @ np.linalg.solve(hessian, gradient) < 1e-12
    assert model.n_iter_ <= 4


def test_ridge_shrinks():
    X, y = simulate()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    norms = [
        np.linalg.norm(CumulativeLink(alpha=a).fit(Z, y).coef_) for a in (0, 1e-2, 0.1, 10, 1e6)
    ]
    assert np.all(np.diff(norms) < 0)
    null = CumulativeLink().fit(None, y)
    heavy = CumulativeLink(alpha=1e8).fit(Z, y)
    np.testing.assert_allclose(heavy.thresholds_, null.thresholds_, atol=1e-6)


def test_doubling_the_sample_changes_nothing_but_precision():
    X, y = simulate()
    for alpha in (0.0, 0.1):
        one = CumulativeLink(alpha=alpha).fit(X, y)
        two = CumulativeLink(alpha=alpha).fit(np.tile(X, (2, 1)), np.tile(y, 2))
        np.testing.assert_allclose(two.params_, one.params_, rtol=1e-9)
        np.testing.assert_allclose(
            two.standard_errors_, one.standard_errors_ / np.sqrt(2), rtol=1e-7
        )


@ALL_LINKS
@pytest.mark.parametrize("max_iter", [2, 100])
def test_the_log_likelihood_is_that_of_the_estimate(link, max_iter):
    """Also where Newton was stopped far from the maximum: it is computed, not extrapolated."""
    X, y = standardised(n=80, link=link, seed=3)
    with pytest.warns(ConvergenceWarning) if max_iter == 2 else nullcontext():
        model = CumulativeLink(link, tol=1e-30 if max_iter == 2 else 1e-4, max_iter=max_iter).fit(
            X, y
        )
    prob = model.predict_proba(X)[np.arange(80), y]
    assert model.log_likelihood_ == pytest.approx(np.log(prob).sum(), rel=1e-12)


def test_a_loose_tolerance_ends_with_one_more_step():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X @ [1, -0.5, 0.2] + rng.logistic(size=300), [-1, 0, 1.5])
    exact = CumulativeLink(tol=1e-12).fit(X, y).params_
    # Newton's error is squared at each step: 0.15, 0.009, 0.00005.
    for tol, error in ((1e-2, 0.02), (1e-3, 2e-4), (1e-6, 1e-8)):
        assert np.abs(CumulativeLink(tol=tol).fit(X, y).params_ - exact).max() < error


def test_weights_may_not_leave_one_class():
    X, y = np.arange(6.0)[:, None], np.repeat([0, 1, 2], 2)
    with pytest.raises(ValueError, match=r"at least 2 classes, got \[1\]"):
        CumulativeLink().fit(X, y, sample_weight=(y == 1).astype(float))
