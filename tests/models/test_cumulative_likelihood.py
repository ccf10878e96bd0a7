"""Links and likelihood of cumulative link models against scipy, quadrature and differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from rankbook._link import within_reach
from rankbook._links import LINKS
from rankbook._softplus import log_total
from rankbook.models import CumulativeLink
from rankbook.models._cumulative_design import Design, Roles
from rankbook.models._cumulative_fit import _flat_directions
from rankbook.models._cumulative_likelihood import Likelihood, _corrected, fit
from rankbook.solvers.newton import minimize
from tests.models.clm_samples import (
    ALL_LINKS,
    CONCAVE_LINKS,
    DISTRIBUTIONS,
    direct_nll,
    general_nll,
    simulate,
    standardised,
)


@ALL_LINKS
def test_links_are_the_distributions_they_say(link):
    z = np.linspace(-5, 3, 41)
    ours, peer = LINKS[link], DISTRIBUTIONS[link]
    np.testing.assert_allclose(ours.cdf(z), peer.cdf(z), rtol=1e-12)
    np.testing.assert_allclose(ours.quantile(peer.cdf(z)), z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.log_cdf(z), peer.logcdf(z), rtol=1e-10)
    np.testing.assert_allclose(ours.log_sf(z), peer.logsf(z), rtol=1e-10)
    np.testing.assert_allclose(ours.log_pdf(z), peer.logpdf(z), rtol=1e-10)
    step = 1e-6
    slope = (peer.logpdf(z + step) - peer.logpdf(z - step)) / (2 * step)
    np.testing.assert_allclose(ours.slope(z), slope, atol=1e-7, rtol=1e-6)


def interval_by_quadrature(link, lower, gap):
    """The logarithm of the integral of the density, scaled by its largest value on the interval."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0.0, gap, 101)
    z = lower + edges[:-1, None] + gap / 100 * (nodes + 1) / 2
    log_f = DISTRIBUTIONS[link].logpdf(z)
    return log_f.max() + np.log((weights * np.exp(log_f - log_f.max())).sum() * gap / 200)


@ALL_LINKS
@pytest.mark.parametrize(
    "lower,gap",
    [(-30.0, 1.0), (-6.0, 1e-5), (0.0, 1.0), (-0.5, 1.0), (3.0, 0.5), (9.0, 1.0), (-2.0, 5.0)],
)
def test_log_interval_does_not_cancel(link, lower, gap):
    if link in ("cloglog", "loglog"):  # beyond, the density falls by e^1000 over the interval
        lower = float(np.clip(lower, -4.0 - gap if link == "loglog" else -30.0, 4.0))
    got = LINKS[link].log_interval(np.array([lower + gap]), np.array([lower]), gap)
    assert got[0] == pytest.approx(interval_by_quadrature(link, lower, gap), rel=1e-9)


@ALL_LINKS
@pytest.mark.parametrize("far", [1e17, 1e150])
def test_an_interval_that_is_nearly_a_half_line(link, far):
    """Its gap has lost the digits of the near end."""
    near = np.linspace(-2.0, 2.0, 5)
    out, gap = np.full(5, far), near + far
    with np.errstate(over="ignore", divide="ignore"):
        below = LINKS[link].log_interval(near, -out, gap)
        above = LINKS[link].log_interval(out, -near, gap)
        tail = LINKS[link].cdf(np.array([-far]))[0]
    np.testing.assert_allclose(np.exp(below), DISTRIBUTIONS[link].cdf(near) - tail, rtol=1e-12)
    np.testing.assert_allclose(np.exp(above), DISTRIBUTIONS[link].sf(-near) - tail, rtol=1e-12)


def test_ends_within_reach():
    ends = np.array([[-np.inf, 0.0, 1e200], [1.0, 2.0, 3.0], [-1e151, 1e151, np.inf]])
    gaps = np.array([[7.0, 7.0], [1.5, 1.5], [7.0, 7.0]])
    near, between = within_reach(ends, gaps)
    np.testing.assert_array_equal(near, np.clip(ends, -1e150, 1e150))
    np.testing.assert_array_equal(between, [[1e150, 1e150], [1.5, 1.5], [2e150, 0.0]])
    np.testing.assert_array_equal(within_reach(ends[1:2], gaps[1:2])[0], ends[1:2])


@ALL_LINKS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_objective_gradient_and_hessian(link, weighted, sparse):
    X, y = simulate(n=60, link=link, seed=2)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, size=60) if weighted else None
    design = Design.build(sp.csr_array(X) if sparse else X, y, 5, weights)
    likelihood = Likelihood(design, LINKS[link], alpha=0.3)
    params = np.concatenate([rng.normal(size=3) * 0.3, [-1.0, 0.2, 0.6, 1.4]])
    if sparse:
        params[3:] += (X.mean(axis=0) / design.location.scale) @ params[:3]
    value, gradient, hessian = likelihood.value_gradient_hessian(params)
    assert value == pytest.approx(likelihood.value(params), rel=1e-12)
    original = design.jacobian() @ params
    assert value == pytest.approx(direct_nll(original, X, y, link, weights, 0.3), rel=1e-9)
    step = 1e-5
    for j, e in enumerate(np.eye(7) * step):
        up, down = (likelihood.value_gradient_hessian(params + s * e) for s in (1, -1))
        assert gradient[j] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(
            hessian[j], (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-5 * np.abs(hessian).max()
        )


@CONCAVE_LINKS
def test_the_hessian_is_positive_definite_everywhere(link):
    X, y = simulate(n=100, link=link)
    likelihood = Likelihood(Design.build(X, y, 5), LINKS[link])
    rng = np.random.default_rng(0)
    for _ in range(30):
        params = np.concatenate([rng.normal(size=3), np.sort(rng.normal(size=4))])
        assert np.linalg.eigvalsh(likelihood.value_gradient_hessian(params)[2])[0] > 0


def test_disordered_thresholds_have_infinite_objective():
    X, y = simulate()
    likelihood = Likelihood(Design.build(X, y, 5), LINKS["logit"])
    for theta in ([0, 1, 1, 2], [0, 2, 1, 3]):
        params = np.array([0, 0, 0, *theta], dtype=float)
        assert likelihood.value(params) == np.inf
        assert likelihood.value_gradient_hessian(params)[0] == np.inf


@ALL_LINKS
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("nominal,scale", [((0, 2), ()), ((), (0,)), ((1,), (0, 1))])
def test_objective_with_nominal_and_scale_effects(link, nominal, scale, sparse):
    X, y = standardised(n=60, link=link, seed=2)
    rng = np.random.default_rng(1)
    offset = rng.normal(size=60) * 0.3
    plain = np.setdiff1d(np.arange(3), nominal)
    roles = Roles(plain, np.array(nominal, dtype=int), np.array(scale, dtype=int))
    kind = sp.csr_array if sparse else np.asarray
    design = Design.build(kind(X), y, 5, None, roles, offset).with_raw_scale()
    likelihood = Likelihood(design, LINKS[link])
    size = design.n_parameters
    p, q, m, r = design.sizes
    params = rng.normal(size=size) * 0.05
    params[p + q : p + m * (q + 1) : q + 1] += [-1.5, -0.5, 0.5, 1.5]
    value, gradient, hessian = likelihood.value_gradient_hessian(params)
    assert value == pytest.approx(likelihood.value(params), rel=1e-12)
    reported = design.jacobian() @ params
    direct = general_nll(reported, X, y, link, nominal=nominal, scale=scale, offset=offset)
    assert value == pytest.approx(direct, rel=1e-9)
    np.testing.assert_allclose(likelihood.scores(params).sum(axis=0), gradient, atol=1e-9)
    step = 1e-5
    for j, e in enumerate(np.eye(size) * step):
        up, down = (likelihood.value_gradient_hessian(params + s * e) for s in (1, -1))
        assert gradient[j] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(
            hessian[j], (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-5 * np.abs(hessian).max()
        )


@pytest.mark.parametrize("far", [39.0, 41.0, 60.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_large_factors_do_not_overflow(far, weighted):
    """Thousands of items at one far score: products of factors 1 + e^z must not overflow."""
    n = 4000
    weights = np.full(n, 2.0) if weighted else None
    z = np.full(n, far)
    value, terms = LINKS["logit"].value_terms(None, z, None, weights)
    unit = 2.0 if weighted else 1.0
    assert value == pytest.approx(unit * n * np.logaddexp(0.0, far), rel=1e-12)
    np.testing.assert_allclose(-terms.l, unit / (1.0 + np.exp(-far)), rtol=1e-12)


@pytest.mark.parametrize("size", [1e-160, 1e-300, 1e150])
def test_tiny_and_huge_columns_are_fitted(size):
    X, y = standardised(n=200)
    plain, scaled = CumulativeLink().fit(X, y), CumulativeLink().fit(X * size, y)
    np.testing.assert_allclose(scaled.coef_ * size, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(scaled.thresholds_, plain.thresholds_, rtol=1e-9)
    np.testing.assert_allclose(
        scaled.standard_errors_[:3] * size, plain.standard_errors_[:3], rtol=1e-9
    )
    errors = [m.predict_proba(x, return_std=True)[1] for m, x in ((plain, X), (scaled, X * size))]
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-8)


def test_a_column_that_hardly_varies_is_no_constant():
    """Timestamps: a deviation of 1e-9 of the mean is still information; 1e-13 is rounding."""
    X, y = standardised(n=300)
    moved = X + np.array([1e9, 0.0, 0.0])
    plain, shifted = CumulativeLink().fit(X, y), CumulativeLink().fit(moved, y)
    np.testing.assert_allclose(shifted.coef_, plain.coef_, rtol=1e-5)
    design = Design.build(np.column_stack([X[:, 0] * 1e-13 + 1.0, X[:, 1]]), y, 5)
    np.testing.assert_array_equal(design.location.constant, [True, False])


@ALL_LINKS
@pytest.mark.parametrize("nominal", [[], [1]])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_alone_are_those_with_the_hessian(link, nominal, weighted):
    X, y = simulate(400, 3)
    rng = np.random.default_rng(5)
    weights = rng.integers(1, 4, size=400).astype(float) if weighted else None
    own = np.array(nominal, dtype=int)
    roles = Roles(np.setdiff1d(np.arange(3), own), own, np.zeros(0, dtype=int))
    design = Design.build(X, y, int(y.max()) + 1, weights, roles)
    likelihood = Likelihood(design, LINKS[link], 0.1)
    params = likelihood.start() + 0.02 * rng.normal(size=design.n_parameters)
    value, gradient, _ = likelihood.value_gradient_hessian(params)
    assert likelihood.value(params) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(likelihood.gradient(params), gradient, rtol=1e-10, atol=1e-9)


@ALL_LINKS
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_are_those_with_the_second_derivatives(link, weighted):
    """Near the middle and far out, where the logit's exponentials would overflow."""
    weights = np.array([1.0, 3.0, 0.5]) if weighted else None
    for z in (np.array([-1.0, 0.2, 1.5]), np.array([-3.0, 30.0, 41.0])):
        for upper, lower, gap in ((z, None, None), (None, z, None), (z, z - 0.3, 0.3)):
            if link != "logit" and np.abs(z).max() > 5.0:
                continue
            _, terms = LINKS[link].value_terms(upper, lower, gap, weights)
            for ours, theirs in zip(
                LINKS[link].slopes(upper, lower, gap, weights),
                (terms.eta, terms.u, terms.l),
                strict=True,
            ):
                assert_allclose(ours, theirs, rtol=1e-13, atol=1e-15)


@ALL_LINKS
def test_derivatives_are_finite_wherever_the_value_is(link):
    """An end far out has no density, though its logarithm's slope may overflow there."""

    def at(function, upper, lower):
        return function(np.array([upper]), np.array([lower]), upper - lower, None)

    for upper, lower in ((800.0, -1.0), (1e5, 0.5), (1.0, -800.0), (-0.5, -1e5), (1e5, -1e5)):
        with np.errstate(over="ignore"):
            value, terms = at(LINKS[link].value_terms, upper, lower)
            low, high = (at(LINKS[link].value, upper + h, lower + h) for h in (-1e-3, 1e-3))
        for name in ("eta", "eta_eta", "eta_u", "eta_l", "u", "l", "uu", "ll", "ul"):
            assert np.isfinite(getattr(terms, name)).all(), name
        assert terms.eta[0] == pytest.approx((low - high) / 2e-3, rel=1e-4, abs=1e-7)
        assert terms.eta_eta[0] == pytest.approx((low - 2 * value + high) / 1e-6, abs=1e-3)


@pytest.mark.parametrize("nominal", [[], [0, 1]])
def test_a_large_sample_ends_where_a_start_without_help_does(nominal):
    X, y = simulate(60_000, 3)
    own = np.array(nominal, dtype=int)
    roles = Roles(np.setdiff1d(np.arange(3), own), own, np.zeros(0, dtype=int))
    design = Design.build(X, y, int(y.max()) + 1, None, roles)
    likelihood = Likelihood(design, LINKS["logit"])
    helped = fit(likelihood, 1e-14, 100)
    alone = minimize(likelihood, likelihood.start(), tol=1e-14 * design.total)
    # Gradients bring it to the end: its Hessian is formed once.
    assert helped.n_evaluations == 1 and helped.converged
    np.testing.assert_allclose(helped.x, alone.x, rtol=0, atol=1e-6)


def test_a_start_far_from_the_part_s_is_left_alone():
    """Where a part does not stand for all, its Hessian is not followed."""
    X, y = simulate(4000, 3)
    likelihood = Likelihood(Design.build(X, y, int(y.max()) + 1), LINKS["logit"])
    start = likelihood.start()
    hessian = likelihood.value_gradient_hessian(start)[2]
    assert np.array_equal(_corrected(likelihood, start, hessian, 1e-9), start)
    best = fit(likelihood, 1e-14, 100).x
    near = best + 1e-3
    # A matrix ten times too flat leaves a gain that grows: one step, and no other.
    once = _corrected(likelihood, near, 0.1 * hessian, 1e-9)
    step = np.linalg.solve(0.1 * hessian, likelihood.gradient(near))
    assert_allclose(once, near - step, rtol=1e-9)


def test_logarithms_of_tiny_factors_do_not_underflow():
    factors = np.array([1e-19, 1e-300, 2.0])
    weights = np.array([1.0, 2.0, 3.0])
    assert_allclose(log_total(factors, None, 3), np.log(factors).sum(), rtol=1e-14)
    assert_allclose(log_total(factors, weights, 3), weights @ np.log(factors), rtol=1e-14)
    many = np.full(40, 1e-19)
    assert_allclose(log_total(many, None, 40), -19 * 40 * np.log(10), rtol=1e-13)
    assert_allclose(log_total(1e-3, None, 5), 5 * np.log(1e-3), rtol=1e-14)


def test_flat_directions_are_those_without_curvature():
    assert _flat_directions(np.diag([2.0, 1.0])).shape == (2, 0)
    found = _flat_directions(np.array([[1.0, 1.0], [1.0, 1.0]]))
    assert_allclose(np.abs(found), np.full((2, 1), 0.5**0.5), rtol=1e-12)
    assert_allclose(found.sum(), 0.0, atol=1e-12)
