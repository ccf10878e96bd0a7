"""Predictions of cumulative link models: probabilities, rules, standard errors, residuals."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from rankbook._links import LINKS
from rankbook.models import CumulativeLink
from tests.models.clm_samples import (
    ALL_LINKS,
    DISTRIBUTIONS,
    simulate,
    standardised,
)


@ALL_LINKS
def test_probabilities_and_rules(link):
    X, y = simulate(link=link)
    model = CumulativeLink(link).fit(X, y)
    prob = model.predict_proba(X)
    np.testing.assert_allclose(prob.sum(axis=1), 1.0, rtol=1e-12)
    cumulative = DISTRIBUTIONS[link].cdf(model.thresholds_ - model.decision_function(X)[:, None])
    np.testing.assert_allclose(np.cumsum(prob, axis=1)[:, :-1], cumulative, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), prob.argmax(axis=1))
    median = clone(model).set_params(rule="median").fit(X, y)
    expected = (np.cumsum(prob, axis=1) < 0.5).sum(axis=1)
    np.testing.assert_array_equal(median.predict(X), expected)
    assert not np.array_equal(median.predict(X), model.predict(X))


@ALL_LINKS
def test_median_rule_is_the_threshold_rule(link):
    X, y = simulate(link=link)
    model = CumulativeLink(link, rule="median").fit(X, y)
    shift = {"cloglog": 1.0, "loglog": -1.0}.get(link, 0.0) * np.log(np.log(2))
    above = model.decision_function(X)[:, None] > model.thresholds_ - shift
    np.testing.assert_array_equal(model.predict(X), above.sum(axis=1))


def test_median_rule_at_a_threshold_and_with_skewed_errors():
    """A score that equals a cut belongs to the class below it, also where F's median is not 0."""
    y = np.repeat([0, 1, 2], [5, 3, 8])
    for link in LINKS:
        model = CumulativeLink(link, rule="median").fit(None, y)
        # P(Y <= 0) = 5/16, P(Y <= 1) = 1/2: the median is the middle class.
        cumulative = model.predict_cumulative(None)[0]
        np.testing.assert_allclose(cumulative, [5 / 16, 0.5], rtol=1e-12)
        model.thresholds_ = np.array([-1.0, LINKS[link].quantile(0.5)])
        np.testing.assert_array_equal(model.predict(None), [1])
        model.thresholds_ = np.array([-1.0, np.nextafter(LINKS[link].quantile(0.5), -9.0)])
        np.testing.assert_array_equal(model.predict(None), [2])


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_extreme_scores_stay_finite(link):
    X, y = simulate(link=link)
    model = CumulativeLink(link).fit(X, y)
    far = np.vstack(
        [X.mean(axis=0) + s * 500 * X.std(axis=0) * np.sign(model.coef_) for s in (-1, 1)]
    )
    log_prob = model.predict_log_proba(far)
    assert np.all(np.isfinite(log_prob))
    np.testing.assert_array_equal(model.predict(far), [0, 4])
    # In a tail, each class away costs more.
    assert np.all(np.diff(log_prob[0]) < 0)
    assert np.all(np.diff(log_prob[1]) > 0)


@ALL_LINKS
def test_standard_errors_of_probabilities_by_differences(link):
    X, y = standardised(n=200, link=link, seed=5)
    model = CumulativeLink(link, nominal=[0], scale=[1]).fit(X, y)
    for method in (model.predict_proba, model.predict_cumulative):
        estimate, errors = method(X[:5], return_std=True)
        np.testing.assert_array_equal(estimate, method(X[:5]))
        slopes = []
        for e in np.eye(len(model.params_)) * 1e-6:
            values = []
            for sign in (1, -1):
                moved = CumulativeLink(link, nominal=[0], scale=[1]).fit(X, y)
                params = model.params_ + sign * e
                moved.coef_[1:], moved.nominal_coef_ = params[:2], params[2:6][None]
                moved.thresholds_, moved.scale_coef_ = params[6:10], params[10:]
                values.append(getattr(moved, method.__name__)(X[:5]))
            slopes.append((values[0] - values[1]) / 2e-6)
        slopes = np.array(slopes)
        expected = np.sqrt(np.einsum("aik,ab,bik->ik", slopes, model.covariance_, slopes))
        np.testing.assert_allclose(errors, expected, rtol=1e-4, atol=1e-9)


@ALL_LINKS
def test_surrogate_residuals_are_the_latent_errors(link):
    """If the model holds they are a sample of F, centred, and know nothing of the items."""
    n = 4000
    X, y = standardised(n=n, link=link, seed=6)
    model = CumulativeLink(link).fit(X, y)
    residuals = model.surrogate_residuals(X, y, rng=0)
    np.testing.assert_array_equal(residuals, model.surrogate_residuals(X, y, rng=0))
    law = DISTRIBUTIONS[link]
    assert stats.kstest(residuals + LINKS[link].mean, law.cdf).pvalue > 1e-3
    for column in X.T:
        assert abs(stats.spearmanr(column, residuals).statistic) < 4 / np.sqrt(n)
    # Each lies in the interval of its label.
    ends = np.column_stack(
        [np.full(n, -np.inf), model.thresholds_ - (X @ model.coef_)[:, None], np.full(n, np.inf)]
    )
    latent = residuals + LINKS[link].mean
    assert np.all(ends[np.arange(n), y] <= latent) and np.all(latent <= ends[np.arange(n), y + 1])
    if link != "cauchit":
        assert law.mean() == pytest.approx(LINKS[link].mean)


def test_surrogate_residuals_show_a_missing_square():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    y = np.digitize(x**2 + rng.logistic(size=3000), [0.0, 2.0])
    model = CumulativeLink().fit(x[:, None], y)
    residuals = model.surrogate_residuals(x[:, None], y, rng=1)
    far = np.abs(x) > 1.5
    assert residuals[far].mean() > residuals[~far].mean() + 1
    with pytest.raises(ValueError, match="not among"):
        model.surrogate_residuals(x[:2, None], [0, 7])


def test_residuals_far_out_are_finite():
    X, y = standardised()
    for link in LINKS:
        model = CumulativeLink(link).fit(X, y)
        far = np.full((3, 3), 30.0) * np.sign(model.coef_)
        for label in (0, 4):
            residuals = model.surrogate_residuals(far, np.full(3, label), rng=0)
            assert np.isfinite(residuals).all()


@ALL_LINKS
def test_items_far_out_have_errors_too(link):
    """Where e to the score overflows the probabilities are certain, and so are their errors."""
    X, y = standardised(link=link)
    model, scaled = CumulativeLink(link).fit(X, y), CumulativeLink(link, scale=[1]).fit(X, y)
    for sign in (-1.0, 1.0):
        far = sign * 1e4 * np.ones((1, 3))
        for prob, errors in (
            model.predict_proba(far, return_std=True),
            model.predict_cumulative(far, return_std=True),
        ):
            assert np.isfinite(prob).all() and np.isfinite(errors).all()
        assert np.isfinite(scaled.decision_function(0.1 * far)).all()
