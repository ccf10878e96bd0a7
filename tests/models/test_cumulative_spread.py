"""Scale effects whose likelihood has its supremum at infinity, and the fits near it."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from rankbook._links import LINKS
from rankbook.exceptions import CollinearityWarning, SeparationWarning
from rankbook.models import CumulativeLink
from rankbook.models._cumulative_design import Design, Roles
from rankbook.models._cumulative_likelihood import Likelihood
from rankbook.models._cumulative_limit import Limit
from tests.models.clm_samples import ALL_LINKS, general_nll

SYMMETRIC = pytest.mark.parametrize("link", ["logit", "probit"])


def two_groups(seed=0):
    """A group with a noisy response of three classes, and room for another of 24 items."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=124)
    y = np.digitize(x + rng.logistic(size=124), [-0.5, 0.8])
    group = np.repeat([0.0, 1.0], [100, 24])
    return x, y, group


@SYMMETRIC
def test_a_group_that_is_separated_becomes_certain(link):
    """Its spread tends to zero, and the others alone give the likelihood and the rest."""
    x, y, group = two_groups()
    x[100:] = np.concatenate([np.linspace(-3, -1.5, 12), np.linspace(1.5, 3, 12)])
    y[100:] = np.repeat([0, 2], 12)
    X = np.column_stack([x, group])
    with pytest.warns(SeparationWarning, match="scale coefficients of x1 go to infinity"):
        model = CumulativeLink(link, scale=[1]).fit(X, y)
    rest = CumulativeLink(link).fit(x[:100, None], y[:100])
    assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_, abs=1e-9)
    known = [0, 2, 3]
    np.testing.assert_allclose(model.params_[known], rest.params_, rtol=1e-5)
    np.testing.assert_allclose(model.standard_errors_[known], rest.standard_errors_, rtol=1e-4)
    assert np.isnan(model.standard_errors_[[1, 4]]).all()
    assert np.isnan(model.confint(method="profile")).all()
    shown = model.predict_log_proba(X)[np.arange(124), y].sum()
    assert shown == pytest.approx(model.log_likelihood_, abs=1e-8)


@SYMMETRIC
def test_a_group_that_goes_the_other_way_tosses_a_coin(link):
    """Of the extreme classes alone: in its best limit x says nothing about this group."""
    x, y, group = two_groups()
    x[100:] = np.linspace(-3, 3, 24)
    y[100:] = np.repeat([2, 0], [8, 16])
    X = np.column_stack([x, group])
    with pytest.warns(SeparationWarning, match="scale coefficients of x1 go to infinity"):
        model = CumulativeLink(link, scale=[1]).fit(X, y)
    rest = CumulativeLink(link).fit(x[:100, None], y[:100])
    coin = 8 * np.log(1 / 3) + 16 * np.log(2 / 3)
    assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_ + coin, abs=1e-5)
    assert model.scale_coef_[0] > 10 and np.isnan(model.standard_errors_[-1])


def test_a_scale_effect_that_two_probabilities_do_not_determine():
    """Two groups, two classes: location and spread of the second group are one parameter."""
    group, y = np.repeat([0.0, 1.0], 20), np.tile([0, 1, 1, 1, 0], 8)
    y[:6] = 0
    with pytest.warns(CollinearityWarning, match="the same for all scale coefficients of x0"):
        model = CumulativeLink(scale=[0]).fit(group[:, None], y)
    plain = CumulativeLink().fit(group[:, None], y)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-10)
    np.testing.assert_allclose(model.params_, [*plain.params_, 0.0], atol=1e-8)
    np.testing.assert_array_equal(np.isnan(model.standard_errors_), [True, False, True])
    assert model.standard_errors_[1] == pytest.approx(plain.standard_errors_[1], rel=1e-6)


def small(seed):
    """A few items, a column of which acts on the spread too."""
    rng = np.random.default_rng(seed)
    K, n, p = rng.integers(2, 5), rng.integers(8, 30), rng.integers(1, 4)
    while True:
        X = rng.normal(size=(n, p)).round(1)
        kind = rng.integers(3)
        if kind == 0:
            X[:, -1] = rng.random(n) < 0.4
        if kind == 1:
            X[:, -1] = rng.integers(0, 3, n)
        b = rng.normal(size=p) * 2
        spread = np.exp(X[:, -1] * rng.normal() * 1.5)
        noise = spread * rng.logistic(size=n) * rng.choice([0.1, 0.5, 1])
        y = np.digitize(X @ b + noise, np.sort(rng.normal(size=K - 1) * 1.5))
        if np.linalg.matrix_rank(np.column_stack([np.ones(n), X])) <= p:
            continue
        y = np.unique(y, return_inverse=True)[1]
        if y.max() >= 1:
            return X, y


def searched(X, y, link):
    """The largest log-likelihood that quasi-Newton finds from many starts, spreads fixed first."""
    p, m, last = X.shape[1], int(y.max()), X.shape[1] - 1
    cuts = np.linspace(-1.0, 1.0, m) if m > 1 else np.zeros(1)
    best = -np.inf

    def loss(params):
        with np.errstate(all="ignore"):
            value = general_nll(params, X, y, link, scale=(last,))
        return value if np.isfinite(value) else 1e10

    for zeta in np.linspace(-6, 6, 5):
        for size in (1.0, np.exp(zeta)):
            start = np.concatenate([np.zeros(p), size * cuts, [zeta]])
            found = minimize(loss, start, method="BFGS", options={"maxiter": 300})
            best = max(best, -found.fun)
    return best


@pytest.mark.filterwarnings("ignore::rankbook.exceptions.CollinearityWarning")
@pytest.mark.parametrize("seed", [0, 1, 7, 11, 20, 34])
def test_no_search_finds_more(seed):
    X, y = small(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)
        model = CumulativeLink(scale=[X.shape[1] - 1]).fit(X, y)
    assert model.log_likelihood_ > searched(X, y, "logit") - 1e-6
    shown = model.predict_log_proba(X)[np.arange(len(y)), y].sum()
    assert shown == pytest.approx(model.log_likelihood_, abs=1e-3)


@ALL_LINKS
@pytest.mark.parametrize("with_offset", [False, True])
def test_derivatives_of_the_limit(link, with_offset):
    """With no end left out it is the likelihood; its derivatives are differences of it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = np.digitize(X[:, 0] + rng.logistic(size=40), [-1, 1])
    offset = rng.normal(size=40) if with_offset else None
    roles = Roles(np.array([0]), np.array([1]), np.array([0, 1]))
    weights = rng.random(40) + 0.5
    design = Design.build(X, y, 3, weights, roles, offset).with_raw_scale()
    likelihood = Likelihood(design, LINKS[link])
    limit = Limit(likelihood, np.zeros((design.n_parameters - 2, 0)))
    params = likelihood.start()
    params[0], params[-2:] = 0.3, [0.2, -0.3]
    centred = params.copy()
    centred[:-2] *= np.exp(-limit.center @ params[-2:])
    value, gradient, hessian = limit.value_gradient_hessian(centred)
    assert value == pytest.approx(likelihood.value(params), rel=1e-12)
    eye = 1e-5 * np.eye(len(params))
    slopes = [(limit.value(centred + e) - limit.value(centred - e)) / 2e-5 for e in eye]
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)
    ups, downs = ([limit.value_gradient_hessian(centred + s * e)[1] for e in eye] for s in (1, -1))
    np.testing.assert_allclose(hessian, (np.array(ups) - downs) / 2e-5, atol=1e-5)


def test_a_first_fit_with_spreads_beyond_floats():
    """Centred scale columns hold what raw ones do not: the second fit then starts anew."""
    X, y = small(76)
    with pytest.warns(SeparationWarning):
        model = CumulativeLink("cauchit", scale=[1]).fit(X, y)
    assert np.isfinite(model.params_).all() and np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_spread_that_stays_beside_one_that_runs_off(seed):
    """A third group is certain as its spread tends to zero; the others are fitted as without it."""
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1, 2], 60)
    x = rng.normal(size=180)
    y = np.digitize(x + np.where(group == 1, 2.0, 1.0) * rng.logistic(size=180), [-1, 1])
    sure = group == 2
    x[sure] = rng.choice([-3, 0, 3], 60)
    y[sure] = np.digitize(x[sure], [-1, 1])
    X = np.column_stack([x, group == 1, sure]).astype(float)
    with pytest.warns(SeparationWarning):
        model = CumulativeLink(scale=[1, 2]).fit(X, y)
    without = CumulativeLink(scale=[1]).fit(X[~sure][:, :2], y[~sure])
    assert model.coef_[0] == pytest.approx(without.coef_[0], rel=1e-4)
    assert model.standard_errors_[0] == pytest.approx(without.standard_errors_[0], rel=1e-3)
