"""The score test of proportional odds."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.optimize import minimize as scipy_minimize

from rankbook.exceptions import CollinearityWarning
from rankbook.models import CumulativeLink
from tests.models.clm_samples import (
    CONCAVE_LINKS,
    DISTRIBUTIONS,
    simulate,
)


def brute_force_score_test(model, X, y, weights, link, tied):
    """U' I^-1 U with numerical derivatives and an explicit sum over outcomes.

    `tied` are the columns with one coefficient; the others have one at each threshold.
    """
    cdf, sf, pdf = (getattr(DISTRIBUTIONS[link], name) for name in ("cdf", "sf", "pdf"))
    m, (n, p) = len(model.thresholds_), X.shape
    free = [j for j in range(p) if j not in tied]
    size = m + len(tied) + m * len(free)
    score, information = np.zeros(size), np.zeros((size, size))
    for i in range(n):
        rows = np.zeros((m, size))
        for k in range(m):
            rows[k, k] = 1.0
            rows[k, m : m + len(tied)] = -X[i, tied]
            start = m + len(tied) + k * len(free)
            rows[k, start : start + len(free)] = -X[i, free]
        z = model.thresholds_ - X[i] @ model.coef_
        lower, upper = np.append(-np.inf, z), np.append(z, np.inf)
        prob = np.where(lower > 0, sf(lower) - sf(upper), cdf(upper) - cdf(lower))
        slopes = np.vstack([np.zeros(size), pdf(z)[:, None] * rows, np.zeros(size)])
        d_prob = np.diff(slopes, axis=0)
        score += weights[i] * d_prob[y[i]] / prob[y[i]]
        information += weights[i] * (d_prob.T / np.maximum(prob, 1e-300)) @ d_prob
    return score @ np.linalg.solve(information, score)


@CONCAVE_LINKS
def test_score_test_against_brute_force(link):
    X, y = simulate(n=150, link=link, seed=9)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=150)
    model = CumulativeLink(link).fit(Z, y, sample_weight=weights)
    test = model.score_test_proportionality(Z, y, sample_weight=weights)
    expected = brute_force_score_test(model, Z, y, weights, link, tied=[])
    assert test.statistic == pytest.approx(expected, rel=1e-6)
    for j in range(3):
        tied = [i for i in range(3) if i != j]
        expected = brute_force_score_test(model, Z, y, weights, link, tied)
        assert test.column_statistics[j] == pytest.approx(expected, rel=1e-6)
    assert (test.df, test.column_df) == (9, 3)
    assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 9))
    np.testing.assert_allclose(test.column_p_values, stats.chi2.sf(test.column_statistics, 3))
    sparse = model.score_test_proportionality(sp.csr_array(Z), y, sample_weight=weights)
    assert sparse.statistic == pytest.approx(test.statistic, rel=1e-6)
    shown = str(test)
    assert "all columns" in shown
    assert len(shown.splitlines()) == 9
    assert list(test.to_frame().index) == ["x0", "x1", "x2", "all columns"]
    kept = model.score_test_proportionality()
    assert kept.statistic == pytest.approx(test.statistic, rel=1e-12)


def non_proportional_nll(params, X, y):
    """Own coefficients at each threshold, as the formula reads."""
    n, p = X.shape
    free = params.reshape(-1, p + 1)
    cdf = stats.logistic.cdf(free[:, 0] - X @ free[:, 1:].T)
    cdf = np.hstack([np.zeros((n, 1)), cdf, np.ones((n, 1))])
    prob = np.diff(cdf, axis=1)[np.arange(n), y]
    return np.inf if np.any(prob <= 0) else -np.log(prob).sum()


def test_score_test_is_close_to_the_likelihood_ratio():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(4000, 2))
    y = np.digitize(X @ [0.7, -0.4] + rng.logistic(size=4000), [-1.0, 1.0])
    y = np.where((X[:, 0] > 1) & (y == 2) & (rng.random(4000) < 0.3), 1, y)
    model = CumulativeLink().fit(X, y)
    start = np.column_stack([model.thresholds_, np.tile(model.coef_, (2, 1))]).ravel()
    full = scipy_minimize(
        non_proportional_nll, start, args=(X, y), method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-7, "maxiter": 10000, "maxfev": 10000, "adaptive": True},
    )  # fmt: skip
    ratio = 2 * (-model.log_likelihood_ - full.fun)
    test = model.score_test_proportionality(X, y)
    assert test.df == 2
    assert ratio > 5
    assert test.statistic == pytest.approx(ratio, rel=0.08)


def test_score_test_has_its_level_and_finds_what_is_wrong():
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 2))
        y = np.digitize(X @ [1.0, 0.0] + rng.logistic(size=300), [-1.0, 0.5])
        p_values.append(CumulativeLink().fit(X, y).score_test_proportionality(X, y).p_value)
    rejected = np.mean(np.array(p_values) < 0.05)
    assert abs(rejected - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 150)
    # Errors whose scale depends on x break proportionality.
    y = np.digitize(X[:, 0] + np.exp(X[:, 1]) * rng.logistic(size=300), [-1.0, 0.5])
    test = CumulativeLink().fit(X, y).score_test_proportionality(X, y)
    assert test.p_value < 1e-4
    assert test.column_p_values[1] < 1e-4


def test_score_test_refuses_what_it_cannot_test():
    X, y = simulate()
    model = CumulativeLink().fit(X, y)
    with pytest.raises(ValueError, match="data that the model was fitted on"):
        model.score_test_proportionality(X[:300], y[:300])
    with pytest.raises(ValueError, match="classes"):
        model.score_test_proportionality(X, np.minimum(y, 3))
    with pytest.raises(ValueError, match="alpha=0"):
        CumulativeLink(alpha=0.1).fit(X, y).score_test_proportionality(X, y)
    with pytest.raises(ValueError, match="nominal and scale"):
        CumulativeLink(nominal=[0]).fit(X, y).score_test_proportionality()
    with pytest.raises(ValueError, match="three classes"):
        CumulativeLink().fit(X, y > 2).score_test_proportionality(X, y > 2)
    doubled = np.column_stack([X, X[:, 0]])
    with pytest.warns(CollinearityWarning):
        model = CumulativeLink().fit(doubled, y)
    with pytest.raises(ValueError, match="every parameter is identified"):
        model.score_test_proportionality()


def test_tables_are_html_in_a_notebook():
    X, y = simulate()
    model = CumulativeLink().fit(X, y)
    text = model.score_test_proportionality()._repr_html_()
    assert "<caption>Score tests of proportionality</caption>" in text
    assert text.count("<tr>") == 1 + X.shape[1] + 1
