"""Separated and collinear data: finite fits, warnings, NaN for what is not identified."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from rankbook.exceptions import CollinearityWarning, SeparationWarning
from rankbook.models import CumulativeLink
from tests.models.clm_samples import ALL_LINKS, CONCAVE_LINKS, simulate, standardised


@ALL_LINKS
def test_complete_separation(link):
    X = np.column_stack([np.arange(12.0), np.random.default_rng(0).normal(size=12)])
    y = np.repeat([0, 1, 2], 4)
    with pytest.warns(SeparationWarning, match=r"separated completely by.*x0.*alpha > 0"):
        model = CumulativeLink(link, tol=1e-10).fit(X, y)
    # The supremum of the log-likelihood is 0.
    assert -12 * 1e-9 < model.log_likelihood_ <= 0
    assert np.isfinite(model.params_).all()
    assert np.isnan(model.standard_errors_).all()
    assert np.isnan(model.covariance_).all()
    np.testing.assert_array_equal(model.predict(X), y)
    ridge = CumulativeLink(link, alpha=0.1).fit(X, y)
    assert np.all(np.isfinite(ridge.standard_errors_))


@CONCAVE_LINKS
@pytest.mark.parametrize("n", [200, 9_000])
def test_quasi_separation(link, n):
    X, y = simulate(n=n, link=link, seed=12)
    flag = np.zeros(n)
    best = np.flatnonzero(y == 4)[:5]
    flag[best] = 1.0
    frame = pd.DataFrame(np.column_stack([X, flag]), columns=["a", "b", "c", "only the best"])
    with pytest.warns(
        SeparationWarning, match=r"in part by a linear combination of only the best,"
    ):
        model = CumulativeLink(link, tol=1e-12).fit(frame, y)
    # In the limit the flagged items have probability 1; all else is as without them.
    rest = CumulativeLink(link).fit(np.delete(X, best, axis=0), np.delete(y, best))
    assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_, abs=1e-11 * n)
    np.testing.assert_allclose(np.delete(model.params_, 3), rest.params_, rtol=1e-4, atol=1e-5)
    errors = np.delete(model.standard_errors_, 3)
    np.testing.assert_allclose(errors, rest.standard_errors_, rtol=1e-4)
    assert np.isnan(model.standard_errors_[3])
    low, high = model.confint(method="profile")[3] if n == 200 else (0.0, np.inf)
    assert np.isfinite(low) and low < model.coef_[3] and high == np.inf
    # One exception is enough for a maximum.
    flag[np.flatnonzero(y == 0)[:2]] = 1.0
    CumulativeLink(link).fit(frame.assign(**{"only the best": flag}), y)


# The direction that separates makes other thresholds cross at the items that it cuts off.
@pytest.mark.filterwarnings("ignore::rankbook.exceptions.CrossingWarning")
def test_separation_in_sparse_and_in_nominal_columns():
    X, y = simulate(n=300)
    flag = (y == 0) & (np.arange(300) % 2 == 0)
    both = np.column_stack([X, flag])
    for options in ({}, {"nominal": [3]}):
        for kind in (np.asarray, sp.csr_array):
            with pytest.warns(SeparationWarning, match="x3"):
                model = CumulativeLink(**options).fit(kind(both), y)
            prob = model.predict_proba(both)[np.arange(300), y]
            assert model.log_likelihood_ == pytest.approx(np.log(prob).sum(), rel=1e-10)
            assert prob[flag].min() > 1 - 1e-9


def test_profile_interval_of_a_separated_column():
    """No value is too large; the least one by profiling the threshold by hand."""
    x = np.sort(np.random.default_rng(1).normal(size=100))
    y = (x > 0).astype(int)
    with pytest.warns(SeparationWarning):
        model = CumulativeLink().fit(x[:, None], y)
    (low, high), (below, above) = model.confint(method="profile")
    assert high == above == np.inf
    assert below == -np.inf
    sign = np.where(y == 1, 1.0, -1.0)
    thetas = np.linspace(low * x[y == 0].max() - 3, low * x[y == 1].min() + 3, 5001)
    losses = [np.logaddexp(0.0, sign * (theta - low * x)).sum() for theta in thetas]
    assert 2 * min(losses) == pytest.approx(1.959964**2, rel=1e-4)


def test_separated_thresholds_are_not_identified_but_others_are():
    """One column that only tells class 0 from the rest: theta_1 goes with it, theta_2 stays."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.where(rng.random(200) < 0.3, 0, np.digitize(x + rng.logistic(size=200), [0.5]) + 1)
    column = np.where(y == 0, -1.0, 1.0)
    with pytest.warns(SeparationWarning, match="x1"):
        model = CumulativeLink().fit(np.column_stack([x, column]), y)
    rest = CumulativeLink().fit(x[y > 0, None], y[y > 0])
    assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_, abs=1e-8)
    assert model.standard_errors_[0] == pytest.approx(rest.standard_errors_[0], rel=1e-5)
    np.testing.assert_array_equal(np.isnan(model.standard_errors_), [False, True, True, True])
    _, errors = model.predict_proba(np.column_stack([x, column])[y > 0], return_std=True)
    assert np.isnan(errors[:, 0]).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_collinear_columns_have_the_least_norm(sparse):
    X, y = standardised()
    kind = sp.csr_array if sparse else np.asarray
    combined = 2 * X[:, 0] - X[:, 2] + 7
    both = np.column_stack([X, combined])
    with pytest.warns(CollinearityWarning, match=r"x3 is a combination of x0, x2\."):
        model = CumulativeLink().fit(kind(both), y)
    plain = CumulativeLink().fit(X, y)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-10)
    centred = both - both.mean(axis=0)
    least = np.linalg.pinv(centred) @ ((X - X.mean(axis=0)) @ plain.coef_)
    np.testing.assert_allclose(model.coef_, least, atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(both), plain.predict_proba(X), atol=1e-7)
    # Only the column beside the combination keeps its standard error.
    known = ~np.isnan(model.standard_errors_)
    np.testing.assert_array_equal(known, [False, True, False, False] + [False] * 4)
    assert model.standard_errors_[1] == pytest.approx(plain.standard_errors_[1], rel=1e-6)
    assert model.df_ == plain.df_
    # What is identified has its error, also of other columns' combinations.
    errors = [m.predict_proba(x, return_std=True)[1] for m, x in ((model, both), (plain, X))]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-5)
    off = both[:5] + [0.0, 0.0, 0.0, 1.0]
    assert np.isnan(model.predict_proba(off, return_std=True)[1]).all()
    profile = model.confint(method="profile")
    assert np.isnan(profile[[0, 2, 3]]).all()
    np.testing.assert_allclose(profile[1], plain.confint(method="profile")[1], rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ridge = CumulativeLink(alpha=1e-9).fit(kind(both), y)
    np.testing.assert_allclose(ridge.coef_, model.coef_, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_collinear_columns_in_far_apart_units_have_no_errors(sparse):
    """What is not identified is so in any unit, however small its share of the least norm."""
    X, y = standardised()
    kind = sp.csr_array if sparse else np.asarray
    for unit in (1e9, 1.0, 1e-9):
        both = np.column_stack([1e9 * X[:, 0], X[:, 1], unit * (X[:, 0] + X[:, 2]), 1e-3 * X[:, 2]])
        with pytest.warns(CollinearityWarning, match="x3 is a combination of x0, x2"):
            model = CumulativeLink().fit(kind(both), y)
        known = ~np.isnan(model.standard_errors_)
        np.testing.assert_array_equal(known, [False, True, False, False] + [True] * 4)
        with pytest.warns(CollinearityWarning, match="x3 is constant"):
            model = CumulativeLink().fit(kind(np.column_stack([X, np.full(len(y), unit)])), y)
        np.testing.assert_array_equal(np.isnan(model.standard_errors_), [False] * 3 + [True] * 5)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_constant_column_has_no_effect(sparse):
    X, y = standardised()
    kind = sp.csr_array if sparse else np.asarray
    constant = np.column_stack([X[:, :1], np.full(len(y), 0.1), X[:, 1:]])
    with pytest.warns(CollinearityWarning, match="x1 is constant"):
        model = CumulativeLink().fit(kind(constant), y)
    plain = CumulativeLink().fit(X, y)
    assert model.coef_[1] == 0
    np.testing.assert_allclose(model.coef_[[0, 2, 3]], plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, plain.thresholds_, rtol=1e-6)
    known = ~np.isnan(model.standard_errors_)
    np.testing.assert_array_equal(known, [True, False, True, True] + [False] * 4)
    np.testing.assert_array_equal(np.isnan(model.covariance_), ~np.outer(known, known))


def test_collinear_nominal_and_scale_columns():
    X, y = standardised()
    both = np.column_stack([X, X[:, 0] + X[:, 1]])
    plain = CumulativeLink(nominal=[0]).fit(X, y)
    with pytest.warns(CollinearityWarning, match="x3 is a combination of x0, x1"):
        model = CumulativeLink(nominal=[0]).fit(both, y)
    np.testing.assert_allclose(model.predict_proba(both), plain.predict_proba(X), atol=1e-8)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-10)
    # Two equal nominal columns share their coefficients.
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(CollinearityWarning, match="x3 is a combination of x0"):
        model = CumulativeLink(nominal=[0, 3]).fit(twice, y)
    np.testing.assert_allclose(model.nominal_coef_[0], plain.nominal_coef_[0] / 2, rtol=1e-6)
    np.testing.assert_allclose(model.nominal_coef_[1], model.nominal_coef_[0], rtol=1e-9)
    with pytest.warns(CollinearityWarning, match="x3 is a combination of x0 in the scale"):
        model = CumulativeLink(scale=[0, 3]).fit(twice, y)
    one = CumulativeLink(scale=[0]).fit(X, y)
    assert model.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(model.scale_coef_, [one.scale_coef_[0], 0.0], atol=1e-7)


def test_collinearity_uses_column_names():
    X, y = simulate()
    frame = pd.DataFrame(X, columns=["age", "income", "rooms"])
    with pytest.warns(CollinearityWarning, match="years is a combination of age"):
        CumulativeLink().fit(frame.assign(years=frame["age"] * 12), y)


def test_nearly_collinear_is_fitted_without_a_word():
    X, y = simulate(n=500)
    near = X[:, 0] + 1e-4 * np.random.default_rng(0).normal(size=500)
    model = CumulativeLink().fit(np.column_stack([X, near]), y)
    assert model.standard_errors_[3] > 100 * model.standard_errors_[1]


def test_more_columns_than_items():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 30)), np.arange(10) % 3
    with pytest.warns(CollinearityWarning), pytest.warns(SeparationWarning):
        model = CumulativeLink(tol=1e-10).fit(X, y)
    assert -1e-8 < model.log_likelihood_ <= 0
    np.testing.assert_array_equal(model.predict(X), y)
    # Least norm: nothing outside the span of the centred items.
    centred = X - X.mean(axis=0)
    span = np.linalg.pinv(centred) @ centred
    np.testing.assert_allclose(span @ model.coef_, model.coef_, rtol=1e-6)


def test_one_rare_class_is_no_separation():
    X, y = simulate(n=5000, seed=13)
    y = np.where(y == 4, 3, y)
    y[np.flatnonzero(y == 3)[0]] = 4
    # One item can always be cut off unless others score higher.
    model = CumulativeLink().fit(X[:, :1], y)
    assert np.all(np.diff(model.thresholds_) > 0)
    assert np.isfinite(model.standard_errors_).all()


def test_probabilities_that_the_separated_column_does_not_touch_have_errors():
    """The top class stands apart: among the others the errors are those of a fit without it."""
    X, y = simulate(p=2)
    rest = y < 4
    with pytest.warns(SeparationWarning):
        model = CumulativeLink().fit(np.column_stack([X, y == 4]), y)
    new = np.column_stack([X[:20], np.zeros(20)])
    _, errors = model.predict_proba(new, return_std=True)
    _, expected = CumulativeLink().fit(X[rest], y[rest]).predict_proba(X[:20], return_std=True)
    np.testing.assert_allclose(errors[:, :3], expected[:, :3], rtol=1e-6)
    assert np.isnan(errors[:, 4]).all()
    _, errors = model.predict_cumulative(new, return_std=True)
    assert np.isfinite(errors[:, :3]).all() and np.isnan(errors[:, 3]).all()


@ALL_LINKS
def test_a_step_that_sends_a_threshold_far_away_ends_well(link):
    """One item in the lowest class and a strong effect: Newton's first step overshoots by far."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(60, 1))
    y = np.digitize(4 * x[:, 0] + rng.logistic(size=60), [-8, 6])
    assert np.bincount(y).tolist() == [1, 54, 5]
    with pytest.warns(SeparationWarning, match="completely"):
        model = CumulativeLink(link).fit(x, y)
    # Without an error the classes are certain, and the likelihood is one.
    assert -1e-9 < model.log_likelihood_ <= 0.0
    assert np.array_equal(model.predict(x), y) and np.isnan(model.standard_errors_).all()


@ALL_LINKS
@pytest.mark.parametrize("seed", [8, 26, 41])
def test_completely_separated_classes_leave_no_scale_effect(link, seed):
    """The likelihood tends to one whatever the spreads are."""
    x = np.random.default_rng(seed).normal(size=(12, 1)).round(1)
    y = np.digitize(3 * x[:, 0], [-2, 2])
    with pytest.warns(SeparationWarning, match="separated completely"):
        model = CumulativeLink(link, scale=[0], tol=1e-10).fit(x, y)
    assert -12 * 1e-9 < model.log_likelihood_ <= 0 and model.scale_coef_[0] == 0.0
    assert np.isfinite(model.params_).all() and np.isnan(model.standard_errors_).all()


@ALL_LINKS
def test_spreads_far_out_leave_the_limits_of_the_probabilities(link):
    X, y = simulate(link=link, seed=3)
    model = CumulativeLink(link, scale=[0]).fit(X, y)
    sign = np.sign(model.scale_coef_[0])
    far = np.array([[1e6 * sign, 0.0, 0.0], [-1e6 * sign, 0.0, 0.0], [1e300 * sign, 0.0, 0.0]])
    probabilities = model.predict_proba(far)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    # Either noise alone, or none.
    share = model._fitted_link().cdf(np.zeros(1))[0]
    noise = [share, *np.zeros(probabilities.shape[1] - 2), 1.0 - share]
    np.testing.assert_allclose(probabilities[0], noise, atol=1e-9)
    assert sorted(probabilities[1])[-1] == 1.0


def separated_in_part(seed):
    """Small samples whose last column tells the highest class from the others."""
    rng = np.random.default_rng(seed)
    n = rng.integers(8, 40)
    x = rng.normal(size=(n, 2)).round(1)
    y = np.digitize(2 * x[:, 0] + rng.logistic(size=n) * (seed % 4) * 0.3, [-1, 1])
    x[:, 1] = y == 2
    return x, y


@ALL_LINKS
@pytest.mark.parametrize("seed", [114, 147, 198, 201, 219])
def test_spreads_that_run_off_beside_separated_classes(link, seed):
    x, y = separated_in_part(seed)
    with pytest.warns(SeparationWarning):
        model = CumulativeLink(link, scale=[seed % 2]).fit(x, y)
    assert np.isfinite(model.params_).all() and np.isfinite(model.log_likelihood_)
    assert np.isnan(model.standard_errors_).any()
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("covariance", ["hessian", "robust"])
def test_a_scale_effect_of_the_column_that_separates(link, covariance):
    """Without the class that it cuts off the column is constant, and so says nothing of spreads."""
    x, y = separated_in_part(147)
    with pytest.warns(SeparationWarning):
        model = CumulativeLink(link, scale=[1], covariance=covariance).fit(x, y)
    rest = CumulativeLink(link, covariance=covariance).fit(x[y < 2, :1], y[y < 2])
    assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_, abs=1e-10)
    np.testing.assert_allclose(model.params_[[0, 2]], rest.params_, atol=1e-6)
    known = model.standard_errors_[[0, 2]]
    np.testing.assert_allclose(known, rest.standard_errors_, rtol=1e-5)
    assert np.isnan(model.standard_errors_[[1, 3, 4]]).all()
    if covariance == "robust":
        assert np.isfinite(model.drop1().values[0, 0])
        statistic, df = model._precision.wald(model.params_, np.arange(3))
        assert np.isnan(statistic) and df == 3
