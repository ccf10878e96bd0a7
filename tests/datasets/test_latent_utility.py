"""Latent utilities: SciPy's distributions, closed forms, fits, invariances, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from rankbook import _room
from rankbook.datasets import LatentUtilityModel, make_latent_utility
from rankbook.metrics import pairwise_risk
from rankbook.models import CumulativeLink
from rankbook.optimal import bayes_score

NOISE = {
    "logit": stats.logistic,
    "probit": stats.norm,
    "cloglog": stats.gumbel_l,
    "loglog": stats.gumbel_r,
    "cauchit": stats.cauchy,
}
COEF, SCALE = [1.0, -0.5, 0.0], [0.0, 0.4, 0.3]


def z_scores(y, posterior):
    """Numbers of each label less their expectations, in standard errors."""
    counts = np.bincount(y, minlength=posterior.shape[1])
    return (counts - posterior.sum(axis=0)) / np.sqrt((posterior * (1 - posterior)).sum(axis=0))


@pytest.mark.parametrize("link", NOISE)
def test_posterior_against_scipy(link):
    """Differences of the distribution function, and integrals of the density."""
    data = make_latent_utility(
        60, coef=COEF, scale_coef=SCALE, thresholds=[-1, 0.5, 2], link=link, n_queries=6, rng=0
    )
    location = data.X @ COEF + data.offset
    spread = np.exp(data.X @ SCALE)
    ends = np.array([-np.inf, -1, 0.5, 2, np.inf])
    law = NOISE[link](location[:, None], spread[:, None])
    np.testing.assert_allclose(data.posterior, np.diff(law.cdf(ends), axis=1), atol=1e-12)
    for i, k in ((3, 1), (17, 2)):
        density = NOISE[link](location[i], spread[i]).pdf
        assert data.posterior[i, k] == pytest.approx(quad(density, ends[k], ends[k + 1])[0])


@pytest.mark.parametrize("link", NOISE)
def test_labels_follow_the_posterior(link):
    data = make_latent_utility(
        40_000, coef=COEF, scale_coef=SCALE, link=link, n_queries=40, query_sd=0.7, rng=1
    )
    posterior = data.posterior
    assert (np.abs(z_scores(data.y, posterior)) < 4).all()
    score = bayes_score(posterior)
    for part in np.array_split(np.argsort(score), 8):
        assert (np.abs(z_scores(data.y[part], posterior[part])) < 4).all()


@pytest.mark.parametrize("link", NOISE)
def test_the_noise_has_its_distribution(link):
    data = make_latent_utility(20_000, coef=COEF, scale_coef=SCALE, link=link, n_queries=10, rng=2)
    noise = (data.utility - data.X @ COEF - data.offset) / np.exp(data.X @ SCALE)
    assert stats.kstest(noise, NOISE[link].cdf).pvalue > 1e-4
    assert all(stats.kstest(column, "norm").pvalue > 1e-4 for column in data.X.T)


def test_shares_of_normal_utilities_in_closed_form():
    """A sum of normal variables is normal: its variance is b'b + sigma^2 + 1."""
    n, sigma = 40_000, 1.5
    data = make_latent_utility(
        n, coef=[1.0, 2.0], thresholds=[-2, 1], link="probit", n_queries=n, query_sd=sigma, rng=3
    )
    upto = stats.norm.cdf(np.array([-np.inf, -2, 1, np.inf]) / np.sqrt(5 + sigma**2 + 1))
    shares = np.diff(upto)
    assert (np.abs(np.bincount(data.y) / n - shares) < 4 * np.sqrt(shares / n)).all()
    assert abs(data.offset.std() / sigma - 1) < 4 / np.sqrt(2 * n)


def test_the_auc_of_two_logistic_classes():
    """With one threshold the best score is x'b; its risk is an integral over the line."""
    data = make_latent_utility(30_000, coef=[2.0], thresholds=[0.5], rng=4)
    x = np.linspace(-9, 9, 4001)
    eta = stats.logistic.cdf(2 * x - 0.5)
    up, down = eta * stats.norm.pdf(x), (1 - eta) * stats.norm.pdf(x)
    below = np.cumsum(up) - up / 2
    expected = (below @ down) / (up.sum() * down.sum())
    risk = pairwise_risk(data.y, data.X[:, 0])
    assert abs(risk - expected) < 4 * np.sqrt(expected / np.bincount(data.y).min())
    assert pairwise_risk(data.y, bayes_score(data.posterior)) == pytest.approx(risk, rel=1e-12)


@pytest.mark.parametrize("link", NOISE)
def test_a_cumulative_link_model_recovers_all_coefficients(link):
    thresholds = [-1.0, 0.5, 2.0]
    data = make_latent_utility(
        6000, coef=COEF, scale_coef=SCALE, thresholds=thresholds, link=link, n_queries=50, rng=5
    )
    model = CumulativeLink(link=link, scale=[1, 2]).fit(data.X, data.y, offset=data.offset)
    truth = np.r_[COEF, thresholds, SCALE[1:]]
    assert (np.abs(model.params_ - truth) < 4 * model.standard_errors_).all()
    # At the fitted parameters the posterior is what the fit predicts.
    fitted = LatentUtilityModel(
        model.coef_, model.thresholds_, link, np.r_[0, model.scale_coef_], query_sd=0.0
    )
    predicted = model.predict_proba(data.X, offset=data.offset)
    np.testing.assert_allclose(fitted.posterior(data.X, data.offset), predicted, atol=1e-12)


def test_without_scale_effects_and_queries():
    data = make_latent_utility(4000, coef=COEF, rng=6)
    assert data.qid is None and not data.offset.any()
    assert not data.model.scale_coef.any()
    model = CumulativeLink().fit(data.X, data.y)
    truth = np.r_[COEF, -1.0, 1.0]
    assert (np.abs(model.params_ - truth) < 4 * model.standard_errors_).all()


def test_by_hand():
    rng = np.random.default_rng(7)
    X, effects, noise = rng.normal(size=(5, 2)), rng.normal(size=2), rng.logistic(size=5)
    data = make_latent_utility(
        5, coef=[1, 2], scale_coef=[0.5, 0], n_queries=2, query_sd=3.0, thresholds=[0.0], rng=7
    )
    np.testing.assert_array_equal(data.X, X)
    assert data.qid.tolist() == [1, 1, 1, 2, 2]
    np.testing.assert_allclose(data.offset, 3 * effects[data.qid - 1], rtol=1e-15)
    expected = X @ [1, 2] + data.offset + np.exp(0.5 * X[:, 0]) * noise
    np.testing.assert_allclose(data.utility, expected, rtol=1e-13)
    assert data.y.tolist() == (expected > 0).astype(int).tolist()


def test_drawn_coefficients_are_normal_and_given_ones_are_kept():
    drawn = np.concatenate([make_latent_utility(1, 500, rng=k).model.coef for k in range(4)])
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert make_latent_utility(3, rng=0).X.shape == (3, 5)
    assert make_latent_utility(3, scale_coef=[0, 1], rng=0).X.shape == (3, 2)
    data = make_latent_utility(3, 2, coef=[1, 2], rng=0)
    assert data.model.coef.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("n_queries", [1, 3, 7, 20])
def test_queries_are_equally_large_and_follow_each_other(n_queries):
    qid = make_latent_utility(20, n_queries=n_queries, rng=0).qid
    sizes = np.bincount(qid)[1:]
    assert sizes.size == n_queries and np.ptp(sizes) <= 1
    assert (np.diff(qid) >= 0).all()


def test_an_effect_is_that_of_a_query_and_spoils_only_pairs_across():
    data = make_latent_utility(8000, coef=[2.0], n_queries=400, query_sd=4.0, rng=8)
    first = np.unique(data.qid, return_index=True)[1]
    np.testing.assert_array_equal(data.offset, data.offset[first][data.qid - 1])
    assert np.unique(data.offset).size == 400
    within = pairwise_risk(data.y, data.X[:, 0], qid=data.qid)
    across = pairwise_risk(data.y, data.X[:, 0])
    assert across - within > 0.1
    known = pairwise_risk(data.y, bayes_score(data.posterior))
    assert known < within
    plain = make_latent_utility(8000, coef=[2.0], n_queries=400, query_sd=0.0, rng=8)
    assert not plain.offset.any()


@pytest.mark.parametrize("change", [np.exp, np.arctan, lambda u: u**3, lambda u: 2 * u - 5])
def test_increasing_transforms_change_no_label(change):
    data = make_latent_utility(3000, thresholds=[-2.0, 0.0, 1.0], n_queries=10, rng=9)
    moved = np.searchsorted(change(data.model.thresholds), change(data.utility))
    np.testing.assert_array_equal(moved, data.y)


def test_a_change_of_origin_or_unit_changes_neither_label_nor_posterior():
    data = make_latent_utility(500, coef=COEF, thresholds=[-1, 1], n_queries=5, rng=10)
    posterior = data.model.posterior(data.X, data.offset + 3)
    moved = make_latent_utility(500, coef=COEF, thresholds=[2, 4], n_queries=5, rng=10)
    np.testing.assert_allclose(moved.model.posterior(data.X, data.offset + 3), data.posterior)
    assert np.abs(posterior - data.posterior).max() > 0.1
    # Noise of twice the spread, and all else doubled.
    X = np.c_[data.X, np.ones(500)]
    wide = make_latent_utility(
        2, coef=[*(2 * np.array(COEF)), 0], thresholds=[-2, 2], scale_coef=[0, 0, 0, np.log(2)]
    )
    np.testing.assert_allclose(wide.model.posterior(X, 2 * data.offset), data.posterior)


def test_mirrored_noise_reverses_the_labels():
    """The two Gumbel distributions are mirror images."""
    X = np.random.default_rng(11).normal(size=(50, 3))
    low = make_latent_utility(2, coef=COEF, thresholds=[-1, 2], link="cloglog").model.posterior(X)
    high = make_latent_utility(2, coef=COEF, thresholds=[-2, 1], link="loglog").model.posterior(-X)
    np.testing.assert_allclose(low, high[:, ::-1], rtol=1e-12)


def test_seeds():
    options = {"n_queries": 4, "scale_coef": SCALE}
    first = make_latent_utility(50, rng=3, **options)
    for rng in (np.int64(3), np.random.default_rng(3)):
        again = make_latent_utility(50, rng=rng, **options)
        for name in ("X", "y", "qid", "utility", "offset", "posterior"):
            np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
        np.testing.assert_array_equal(again.model.coef, first.model.coef)
    others = make_latent_utility(50, rng=4, **options), first.model.sample(50, rng=3, n_queries=4)
    for other in others:
        assert not np.array_equal(other.utility, first.utility)
    assert not np.array_equal(make_latent_utility(50).X, make_latent_utility(50).X)


def test_further_samples_have_the_same_truth():
    train = make_latent_utility(5000, 3, thresholds=[-1, 0, 1], n_queries=20, rng=12)
    test = train.model.sample(5000, rng=13)
    assert test.model is train.model and test.qid is None
    assert (np.abs(z_scores(test.y, test.posterior)) < 4).all()
    given = make_latent_utility(5000, coef=train.model.coef, thresholds=[-1, 0, 1], rng=13)
    np.testing.assert_array_equal(given.y, test.y)


@pytest.mark.parametrize("link", NOISE)
@pytest.mark.parametrize("size", [1e3, 1e20, 1e160, 1e300])
def test_far_items_have_a_posterior(link, size):
    model = make_latent_utility(2, coef=[1.0], thresholds=[-1, 0, 1e10], link=link).model
    posterior = model.posterior([[size], [-size], [0.0]])
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
    farther = model.posterior([[1.7e308], [-1.7e308]], [1.7e308, -1.7e308])
    np.testing.assert_allclose(farther, [[0, 0, 0, 1], [1, 0, 0, 0]], atol=1e-12)
    if size > 1e10:
        assert posterior[0, 3] == pytest.approx(1) and posterior[1, 0] == pytest.approx(1)


@pytest.mark.parametrize("link", NOISE)
def test_equal_thresholds_leave_a_label_out(link):
    data = make_latent_utility(3000, coef=[1.0], thresholds=[0.0, 0.0, 1.0], link=link, rng=14)
    assert not (data.y == 1).any()
    assert (data.posterior[:, 1] == 0).all()
    np.testing.assert_allclose(data.posterior.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be at least 1, got 0"),
        ({"n_samples": 2.0}, TypeError, "n_samples must be an integer"),
        ({"n_samples": 10**15}, ValueError, r"n_samples \* n_features must fit in memory"),
        ({"n_features": 0}, ValueError, "n_features must be at least 1"),
        ({"n_features": 10**15}, ValueError, r"n_samples \* n_features must fit in memory"),
        ({"coef": [1.0, np.nan]}, ValueError, "coef must be finite"),
        ({"coef": []}, ValueError, "coef must not be empty"),
        ({"coef": [1, 2], "n_features": 3}, ValueError, "coef must have .* n_features=3 .* got 2"),
        ({"coef": [1, 2], "scale_coef": [1]}, ValueError, "scale_coef must have .* got 1"),
        ({"coef": [1e308] * 9}, ValueError, "coef and scale_coef must give utilities"),
        ({"scale_coef": [1e5]}, ValueError, "coef and scale_coef must give utilities"),
        ({"scale_coef": ["a"]}, TypeError, "scale_coef must be real numbers"),
        ({"thresholds": [1, 0]}, ValueError, "thresholds must be in increasing order"),
        ({"thresholds": []}, ValueError, "thresholds must not be empty"),
        ({"link": "gumbel"}, ValueError, "link must be one of 'logit', 'probit'"),
        ({"n_queries": 0}, ValueError, "n_queries must be at least 1 and at most 10, got 0"),
        ({"n_queries": 11}, ValueError, "n_queries must be at least 1 and at most 10, got 11"),
        ({"n_queries": 9, "query_sd": 1.7e308}, ValueError, "query_sd must give utilities .* got"),
        ({"query_sd": -1.0}, ValueError, "query_sd must be at least 0"),
        ({"query_sd": None}, TypeError, "query_sd must be a real number"),
        ({"rng": "seed"}, TypeError, "rng must be"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        make_latent_utility(**({"n_samples": 10, "rng": 0} | options))


def test_bad_items():
    model = make_latent_utility(5, 3, rng=0).model
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\), got shape \(2, 2\)"):
        model.posterior(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="X must be finite"):
        model.posterior([[0, np.inf, 0]])
    with pytest.raises(ValueError, match="offset and X must have the same length, got 3 for"):
        model.posterior(np.zeros((2, 3)), [1, 2, 3])
    with pytest.raises(ValueError, match="n must be at least 1"):
        model.sample(0)
    steep = make_latent_utility(5, scale_coef=[1.0], rng=0).model
    with pytest.raises(ValueError, match="X must give utilities and spreads within the range"):
        steep.posterior([[-1e4]])


def test_what_does_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_room, "memory", lambda: 8.0 * 100 * 10)
    assert make_latent_utility(100, 2, rng=0).X.shape == (100, 2)
    with pytest.raises(ValueError, match=r"got 100 \* 3, which takes 8.8e-06 GB of 8e-06"):
        make_latent_utility(100, 3, rng=0)
