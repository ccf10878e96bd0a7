"""Three normal classes: the population they come from, counts, the study's sample, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rankbook import _room
from rankbook.datasets import make_tripartite_normal
from rankbook.metrics import pair_error_rates, pairwise_risk
from rankbook.optimal import bayes_score
from rankbook.population import NormalMixture

CASES = [
    {},
    {"means": (0.0, 0.5, 3.0), "sds": 2.0},
    {"means": (1.0, -1.0, 0.0), "sds": (0.5, 1.0, 2.0), "priors": (0.5, 0.2, 0.3)},
    {"priors": (0.4, 0.0, 0.6)},
]


def settings(case):
    means, priors = case.get("means", (-2, 0, 2)), case.get("priors", (1 / 3, 1 / 3, 1 / 3))
    return np.array(means), np.broadcast_to(case.get("sds", 1.0), 3), np.array(priors)


@pytest.mark.parametrize("case", CASES)
def test_shares_means_and_distributions(case):
    n = 60_000
    X, y = make_tripartite_normal(n, rng=1, **case)
    means, sds, priors = settings(case)
    assert X.shape == (n, 1) and y.shape == (n,)
    assert y.dtype.kind == "i"
    shares = np.bincount(y, minlength=3) / n
    assert (np.abs(shares - priors) <= 4 * np.sqrt(priors * (1 - priors) / n)).all()
    for k in np.flatnonzero(priors):
        x = X[y == k, 0]
        assert abs(x.mean() - means[k]) < 4 * sds[k] / np.sqrt(x.size)
        assert stats.kstest(x, "norm", args=(means[k], sds[k])).pvalue > 1e-4


@pytest.mark.parametrize("case", CASES[:3])
def test_labels_follow_the_posterior(case):
    """In bins of x, the shares of the labels are the mean posterior."""
    X, y = make_tripartite_normal(60_000, rng=2, **case)
    means, sds, priors = settings(case)
    joint = priors * stats.norm.pdf(X, means, sds)
    posterior = joint / joint.sum(axis=1, keepdims=True)
    bins = np.searchsorted(np.quantile(X, np.linspace(0, 1, 13)[1:-1]), X[:, 0])
    for k in range(3):
        off = np.bincount(bins, (y == k) - posterior[:, k])
        error = np.sqrt(np.bincount(bins, posterior[:, k] * (1 - posterior[:, k])))
        assert (np.abs(off) <= 4 * error + 1e-9).all()


def test_the_risks_have_their_closed_forms():
    """Uematsu and Lee's population: a pair is misranked if a normal variable is negative."""
    X, y = make_tripartite_normal([20_000] * 3, rng=3)
    rates = pair_error_rates(y, X[:, 0])
    for (j, i), gap in {(0, 1): 2.0, (1, 2): 2.0, (0, 2): 4.0}.items():
        expected = stats.norm.cdf(-gap / np.sqrt(2))
        # The variance is at most that of 20,000 pairs without an item in common.
        assert abs(rates[j, i] - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)
    mixture = NormalMixture([-2, 0, 2])
    risks = [pairwise_risk(y, s) for s in (X[:, 0], bayes_score(mixture.posterior(X)))]
    assert risks[0] == pytest.approx(risks[1], rel=1e-12)
    assert abs(risks[0] - mixture.bayes_risk()) < 4 * 0.5 / np.sqrt(60_000)


def test_the_paper_s_ratio():
    x = np.linspace(-3, 3, 13)
    ratio = bayes_score(NormalMixture([-2, 0, 2]).posterior(x))
    expected = (np.exp(2 * x) + np.e**2) / (np.exp(-2 * x) + np.e**2)
    np.testing.assert_allclose(ratio, expected, rtol=1e-12)


def test_numbers_of_each_class_are_kept_and_come_in_order():
    for counts in ([3, 0, 4], (1, 1, 1), np.array([2, 5, 3]), [np.int64(2), 2, 2]):
        X, y = make_tripartite_normal(counts, rng=0)
        assert np.bincount(y, minlength=3).tolist() == list(counts)
        assert (np.diff(y) >= 0).all() and X.shape == (sum(counts), 1)


def test_by_hand():
    noise = np.random.default_rng(5).standard_normal(6)
    X, y = make_tripartite_normal([1, 2, 3], means=(5, 0, -5), sds=(1, 2, 3), rng=5)
    assert y.tolist() == [0, 1, 1, 2, 2, 2]
    expected = np.array([5, 0, 0, -5, -5, -5]) + np.array([1, 2, 2, 3, 3, 3]) * noise
    np.testing.assert_array_equal(X[:, 0], expected)
    again = NormalMixture([-2, 0, 2]).sample(50, 6)
    for ours, theirs in zip(make_tripartite_normal(50, rng=6), again, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n", [40, [10, 20, 10]])
def test_seeds(n):
    first = make_tripartite_normal(n, rng=3)
    for rng in (np.int64(3), np.random.default_rng(3)):
        again = make_tripartite_normal(n, rng=rng)
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    generator = np.random.default_rng(3)
    one, two = (make_tripartite_normal(n, rng=generator)[0] for _ in range(2))
    assert not np.array_equal(one, two)
    assert not np.array_equal(first[0], make_tripartite_normal(n, rng=4)[0])
    assert not np.array_equal(make_tripartite_normal(n)[0], make_tripartite_normal(n)[0])


@pytest.mark.parametrize("n", [200, [50, 100, 50]])
def test_a_change_of_units_moves_items_and_no_label(n):
    X, y = make_tripartite_normal(n, rng=0)
    X2, y2 = make_tripartite_normal(n, means=(3 - 4.0, 3.0, 3 + 4.0), sds=2.0, rng=0)
    np.testing.assert_array_equal(y, y2)
    np.testing.assert_allclose(X2, 3 + 2 * X, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be at least 1, got 0"),
        ({"n_samples": 2.5}, TypeError, "n_samples must be an integer, got 2.5"),
        ({"n_samples": True}, TypeError, "n_samples must be an integer"),
        ({"n_samples": None}, TypeError, "n_samples must be an integer"),
        ({"n_samples": [5, 5]}, ValueError, r"n_samples must .* shape \(3,\).*got shape \(2,\)"),
        ({"n_samples": [[5, 5, 5]]}, ValueError, r"got shape \(1, 3\)"),
        ({"n_samples": [5, -1, 5]}, ValueError, "n_samples must be at least 0, got -1"),
        ({"n_samples": [5, 1.5, 5]}, TypeError, "n_samples must be an integer"),
        ({"n_samples": [0, 0, 0]}, ValueError, "n_samples must have a positive sum"),
        ({"n_samples": 10**15}, ValueError, "n_samples must fit in memory"),
        ({"n_samples": [10**15, 1, 1]}, ValueError, "n_samples.* must fit in memory"),
        ({"n_samples": [1, 1, 1], "priors": [0.2, 0.3, 0.5]}, ValueError, "priors must be None"),
        ({"means": [0, 1]}, ValueError, "means must have three entries, one a class, got 2"),
        ({"means": [0, 1, 2, 3]}, ValueError, "means must have three entries, .* got 4"),
        ({"means": [0, np.nan, 2]}, ValueError, "means must be finite"),
        ({"sds": 1e308}, ValueError, "means and sds must give features within the range"),
        ({"sds": 1e308, "n_samples": [99, 99, 99]}, ValueError, "means and sds must give features"),
        ({"sds": 0.0}, ValueError, "sds must be positive"),
        ({"sds": [1, 2]}, ValueError, "sds and means must have the same length"),
        ({"priors": [0.5, 0.5, 0.5]}, ValueError, "priors must sum to one"),
        ({"priors": [1.0, 0.0, 0.0]}, ValueError, "priors must give at least two classes"),
        ({"rng": "seed"}, TypeError, "rng must be"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        make_tripartite_normal(**({"rng": 0} | options))


def test_what_does_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_room, "memory", lambda: 8.0 * 5 * 100)
    assert make_tripartite_normal(100, rng=0)[1].size == 100
    with pytest.raises(ValueError, match=r"n_samples must fit .* got 101, which takes 4.04e-06 GB"):
        make_tripartite_normal(101, rng=0)
