"""Pair sums against explicit pairs, finite differences, closed forms and invariances."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rankbook import costs as cost_schemes
from rankbook import losses
from rankbook.solvers import _cell_kernels
from rankbook.solvers._pair_data import rank_one_terms
from rankbook.solvers.pair_sums import PairSums

LOSSES = ["exponential", "logistic", "hinge", "squared_hinge", "squared"]
SMOOTH = ["exponential", "logistic", "squared_hinge", "squared"]
LOGISTIC = losses.Logistic()
METHODS = ["auto", "explicit", "implicit"]


def brute(scores, y, loss, matrix, weight=None, qid=None, v=None):
    """All n^2 pairs: value, gradient, Hessian product, and the pair weights of each item."""
    n = len(y)
    weight = np.ones(n) if weight is None else weight
    qid = np.zeros(n) if qid is None else qid
    pair = matrix[y[None, :], y[:, None]] * weight[:, None] * weight[None, :]
    pair = pair * (qid[:, None] == qid[None, :])
    s = scores[:, None] - scores[None, :]
    if isinstance(loss, str):
        loss = losses.get(loss)
    slope, curve = pair * loss.derivative(s), pair * loss.second_derivative(s)
    curve = curve + curve.T
    product = None if v is None else curve.sum(1) * v - curve @ v
    mass = pair.sum(1) + pair.sum(0)
    return (pair * loss(s)).sum(), slope.sum(1) - slope.sum(0), product, mass


def assert_point(point, expected, v, rtol=1e-10):
    value, gradient, product, mass = expected
    assert point.value == pytest.approx(value, rel=rtol)
    floor = rtol * mass.max()
    np.testing.assert_allclose(
        point.gradient(),
        gradient,
        rtol=rtol,
        atol=min(floor, rtol * np.abs(gradient).max() + 1e-300),
    )
    np.testing.assert_allclose(
        point.hessian_product(v),
        product,
        rtol=rtol,
        atol=max(floor * 1e-2, rtol * np.abs(product).max()),
    )


def matrices(K, rng):
    yield cost_schemes.linear(K)
    yield cost_schemes.constant(K)
    yield cost_schemes.with_consistent_terms(cost_schemes.linear(K))
    yield rng.random((K, K)) * (rng.random((K, K)) < 0.7) + 0.1 * np.eye(K, k=1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("n_queries", [1, 4, 60])
@pytest.mark.parametrize("method", METHODS)
def test_agrees_with_all_pairs(loss, K, n_queries, method):
    rng = np.random.default_rng([K, n_queries])
    n = 300
    y = np.r_[np.arange(K), rng.integers(0, K, n - K)]
    scores, v = rng.normal(scale=2.0, size=n), rng.normal(size=n)
    weight = rng.random(n) * (rng.random(n) < 0.9)
    qid = rng.integers(0, n_queries, n)
    for matrix in matrices(K, rng):
        sums = PairSums(y, loss, matrix, sample_weight=weight, qid=qid, method=method)
        point = sums.at(scores)
        assert_point(point, brute(scores, y, loss, matrix, weight, qid, v), v)


def spreads(n, rng):
    sides = np.arange(n) % 2
    return {
        "all equal": np.zeros(n),
        "two values": 3.0 * sides,
        "two clusters 1e6 apart": 1e6 * sides + rng.normal(size=n),
        "two clusters, reversed": -1e6 * sides + rng.normal(size=n),
        "three clusters, two near": 40.0 * (np.arange(n) % 3) + rng.normal(size=n),
        "Cauchy": rng.standard_cauchy(n),
        "very heavy tails": rng.normal(size=n) / rng.random(n) ** 4,
        "uniform on 1e9": rng.uniform(0, 1e9, n),
        "uniform on 500": rng.uniform(0, 500, n),
        "far from zero": 1e7 + rng.normal(size=n),
        "on cell edges": rng.integers(-40, 40, n) / 4.0,
        "nearly perfect": 8.0 * sides + rng.normal(size=n),
        "perfect by 15": 18.0 * sides + rng.uniform(-1, 1, size=n),
    }


@pytest.mark.parametrize("name", list(spreads(4, np.random.default_rng(0))))
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "squared"])
@pytest.mark.parametrize("n", [40, 900])
@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_adversarial_spreads(name, loss, n, method):
    rng = np.random.default_rng(1)
    scores = spreads(n, rng)[name]
    y = np.arange(n) % 2
    v = rng.normal(size=n)
    matrix = cost_schemes.constant(2)
    point = PairSums(y, loss, matrix, method=method).at(scores)
    assert_point(point, brute(scores, y, loss, matrix, v=v), v)


@pytest.mark.parametrize("offset", [30.0, 45.0])
def test_logistic_sum_of_pairs_that_are_all_right(offset):
    """Values of exp(-30) and exp(-45) per pair, far below the FFT's rounding."""
    rng = np.random.default_rng(2)
    y = np.arange(600) % 2
    scores = offset * y + 0.5 * rng.random(600)
    point = PairSums(y, "logistic", method="implicit").at(scores)
    value, gradient, _, _ = brute(scores, y, "logistic", cost_schemes.constant(2))
    assert point.value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(point.gradient(), gradient, rtol=1e-10)


def test_grid_and_direct_sums_are_both_used():
    rng = np.random.default_rng(3)
    scores = np.r_[rng.normal(size=2000), 1e4 * np.arange(1, 11)]
    y = np.arange(2010) % 2
    point = PairSums(y, "logistic", method="implicit").at(scores)
    assert point._grid is not None
    assert len(point._direct.items) == 10
    small = PairSums(y[:12], "logistic", method="implicit").at(scores[:12])
    assert small._grid is None


@pytest.mark.parametrize("kernel", ["loss", "slope", "slope_reversed", "curvature"])
def test_interpolation_error_bound(kernel):
    """Each near pair's kernel is off by at most 1e-12 of itself, at every distance in reach."""
    rng = np.random.default_rng(4)
    t, u = rng.uniform(-1, 1, 300), rng.uniform(-1, 1, 300)
    left, right = _cell_kernels.chebyshev_basis(t), _cell_kernels.chebyshev_basis(u)
    matrix = _cell_kernels.cell_matrices((LOGISTIC, kernel))
    for d in range(-_cell_kernels.REACH, _cell_kernels.REACH + 1, 3):
        s = _cell_kernels.WIDTH * (d + 0.5 * (t - u))
        exact = _cell_kernels._KERNELS[kernel](LOGISTIC, s)
        found = np.einsum("nk,kl,nl->n", left, matrix[d + _cell_kernels.REACH], right)
        np.testing.assert_allclose(found, exact, rtol=1e-11 if kernel == "curvature" else 1e-12)


@pytest.mark.parametrize("length", [1, 2, 22, 23, 86, 87, 193, 640, 641, 1500])
def test_fft_and_cellwise_convolution_agree(length):
    moments = np.random.default_rng(5).random((length, _cell_kernels.DEGREE, 2))
    for kernel in ("loss", "slope", "curvature"):
        fast = _cell_kernels.convolve(moments, (LOGISTIC, kernel))
        slow = _cell_kernels.convolve(moments, (LOGISTIC, kernel), exact=True)
        np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12 * np.abs(slow).max())


@pytest.mark.parametrize("loss", SMOOTH)
def test_derivatives_by_finite_differences(loss):
    rng = np.random.default_rng(6)
    n = 60
    y, scores, v = rng.integers(0, 3, n), rng.normal(size=n), rng.normal(size=n)
    sums = PairSums(y, loss, "linear", qid=np.arange(n) % 2)
    step = 1e-5
    up, down = sums.at(scores + step * v), sums.at(scores - step * v)
    point = sums.at(scores)
    assert point.gradient() @ v == pytest.approx((up.value - down.value) / (2 * step), rel=1e-7)
    if loss != "squared_hinge":
        difference = (up.gradient() - down.gradient()) / (2 * step)
        np.testing.assert_allclose(point.hessian_product(v), difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_queries", [1, 5])
@pytest.mark.parametrize("method", METHODS)
def test_smoothed_hinge(n_queries, method):
    rng = np.random.default_rng(7)
    mu, n = 0.3, 200

    class Smoothed:
        def __call__(self, s):
            return np.where(s > 1 - mu, np.maximum(1 - s, 0) ** 2 / (2 * mu), 1 - s - mu / 2)

        def derivative(self, s):
            return -np.clip((1 - s) / mu, 0, 1)

        def second_derivative(self, s):
            return ((s < 1) & (s > 1 - mu)) / mu

    y, scores, v = rng.integers(0, 3, n), rng.normal(size=n), rng.normal(size=n)
    qid = rng.integers(0, n_queries, n)
    matrix = cost_schemes.with_consistent_terms(cost_schemes.linear(3))
    point = PairSums(y, "hinge", matrix, qid=qid, smoothing=mu, method=method).at(scores)
    assert_point(point, brute(scores, y, Smoothed(), matrix, None, qid, v), v)
    plain = PairSums(y, "hinge", matrix, qid=qid).at(scores)
    assert point.value_of(losses.Hinge()) == pytest.approx(plain.value, rel=1e-12)
    assert 0 < plain.value - point.value < mu / 2 * PairSums(y, "hinge", matrix, qid=qid).total
    _, slope, _, _ = brute(scores, y, Smoothed(), matrix, None, qid)
    pair = matrix[y[None, :], y[:, None]] * (qid[:, None] == qid[None, :])
    dual = (pair * -Smoothed().derivative(scores[:, None] - scores[None, :])).sum()
    assert point.dual_sum == pytest.approx(dual, rel=1e-10)


def test_exponential_at_scores_of_a_thousand():
    rng = np.random.default_rng(8)
    y = np.arange(200) % 2
    base = rng.normal(size=200)
    # Both factors overflow or underflow; their product does not.
    for shift in (1e3, -1e3):
        point = PairSums(y, "exponential").at(base + shift)
        value, gradient, _, _ = brute(base, y, "exponential", cost_schemes.constant(2))
        assert point.value == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(point.gradient(), gradient, rtol=1e-10)
    spread = PairSums(y, "exponential").at(base - 1e3 * y)
    assert spread.value == np.inf
    expected = 1e3 + np.log(np.exp(-base[y == 1]).sum()) + np.log(np.exp(base[y == 0]).sum())
    assert spread.log_value == pytest.approx(expected, rel=1e-12)
    mixed = PairSums(np.arange(300) % 3, "exponential").at(
        np.r_[base, base[:100]] + 1e3 * (np.arange(300) % 3)
    )
    assert np.isfinite(mixed.value)
    assert np.isfinite(mixed.gradient()).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_closed_form_of_one_pair(loss):
    for s in (-3.0, 0.0, 0.5, 4.0):
        point = PairSums([0, 1], loss).at([1.0, 1.0 + s])
        assert point.value == pytest.approx(float(losses.get(loss)(s)), rel=1e-12)
        slope = float(losses.get(loss).derivative(s))
        np.testing.assert_allclose(point.gradient(), [-slope, slope], rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_invariances(loss):
    rng = np.random.default_rng(9)
    n = 400
    y, scores, v = rng.integers(0, 3, n), rng.normal(size=n), rng.normal(size=n)
    qid, weight = rng.integers(0, 3, n), rng.integers(1, 4, n)
    point = PairSums(y, loss, qid=qid, sample_weight=weight).at(scores)
    # Order of the items.
    p = rng.permutation(n)
    moved = PairSums(y[p], loss, qid=qid[p], sample_weight=weight[p]).at(scores[p])
    assert moved.value == pytest.approx(point.value, rel=1e-12)
    np.testing.assert_allclose(moved.gradient(), point.gradient()[p], rtol=1e-9, atol=1e-9)
    # A constant added to every score of a query.
    shifted = PairSums(y, loss, qid=qid, sample_weight=weight).at(
        scores + np.array([0, 5.0, -30.0])[qid]
    )
    assert shifted.value == pytest.approx(point.value, rel=1e-11)
    assert abs(point.gradient().sum()) < 1e-9 * np.abs(point.gradient()).sum()
    # Integer weights repeat items.
    r = np.repeat(np.arange(n), weight)
    repeated = PairSums(y[r], loss, qid=qid[r]).at(scores[r])
    assert repeated.value == pytest.approx(point.value, rel=1e-11)
    # The Hessian is symmetric and positive semidefinite, and kills constants.
    u = rng.normal(size=n)
    assert u @ point.hessian_product(v) == pytest.approx(
        v @ point.hessian_product(u), rel=1e-9, abs=1e-9
    )
    assert v @ point.hessian_product(v) >= 0
    assert np.abs(point.hessian_product(np.ones(n))).max() < 1e-8 * max(point.value, 1)


def test_rank_one_terms():
    rng = np.random.default_rng(10)
    for K in (2, 3, 6):
        for matrix in matrices(K, rng):
            upper, lower = rank_one_terms(matrix)
            assert (upper >= 0).all() and (lower >= 0).all()
            np.testing.assert_allclose(lower.T @ upper, matrix, rtol=1e-14)
        consistent = cost_schemes.with_consistent_terms(cost_schemes.dcg(K))
        assert len(rank_one_terms(consistent)[0]) == 1
        assert len(rank_one_terms(cost_schemes.constant(K))[0]) == K - 1
    # Columns that are proportional where rows are not.
    assert len(rank_one_terms(np.outer([1.0, 2.0, 3.0], [0.0, 0.0, 1.0]))[0]) == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_total_and_class_that_is_absent(loss):
    y = np.array([0, 2, 2, 0])
    sums = PairSums(y, loss, "linear", labels=[0, 1, 2], sample_weight=[1, 2, 3, 4])
    assert sums.total == 2 * 5 * 5
    scores = np.array([0.0, 0.5, -1.0, 2.0])
    expected, gradient, _, _ = brute(
        scores, y, loss, cost_schemes.linear(3), np.array([1.0, 2, 3, 4])
    )
    point = sums.at(scores)
    assert point.value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(point.gradient(), gradient, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_queries_without_pairs(loss):
    """Queries of one item, or of one class, add nothing."""
    y = np.array([0, 1, 1, 0, 1, 1])
    qid = np.array([3, 3, 1, 2, 5, 5])
    scores = np.array([0.3, 0.1, 5.0, -5.0, 1.0, 2.0])
    point = PairSums(y, loss, qid=qid).at(scores)
    assert point.value == pytest.approx(float(losses.get(loss)(-0.2)), rel=1e-12)
    assert np.flatnonzero(point.gradient()).tolist() == [0, 1]


@pytest.mark.parametrize("loss", LOSSES)
def test_memory_is_linear(loss):
    n = 100_000
    rng = np.random.default_rng(11)
    y, scores = rng.integers(0, 2, n), rng.normal(size=n)
    sums = PairSums(y, loss)
    tracemalloc.start()
    point = sums.at(scores)
    point.gradient()
    point.hessian_product(scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600 * n


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (dict(y=[0, 0]), "y must hold at least 2 classes"),
        (dict(y=[0, 1], loss="absolute"), "loss must be one of"),
        (dict(y=[0, 1], method="both"), "method must be one of"),
        (dict(y=[0, 1], costs=[[0, 1, 1]] * 3), "costs must have shape"),
        (dict(y=[0, 1], costs=[[0, -1], [0, 0]]), "costs must not be negative"),
        (dict(y=[0, 1], costs=np.zeros((2, 2))), "costs must weight at least one pair"),
        (dict(y=[0, 1], costs="square"), "costs must be one of"),
        (dict(y=[0, 1], sample_weight=[1.0]), "sample_weight and y must have the same length"),
        (dict(y=[0, 1], sample_weight=[-1.0, 2.0]), "sample_weight must not be negative"),
        (dict(y=[0, 1], qid=[1]), "qid and y must have the same length"),
        (dict(y=[0, 1], smoothing=0.1), "smoothing is for a loss with a kink, got logistic"),
        (dict(y=[0, 1], loss="hinge", smoothing=-0.1), "smoothing must be at least"),
    ],
)
def test_bad_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        PairSums(**arguments)


def test_bad_scores():
    sums = PairSums([0, 1])
    with pytest.raises(ValueError, match="scores and y must have the same length"):
        sums.at([1.0])
    with pytest.raises(ValueError, match="scores must be finite"):
        sums.at([1.0, np.nan])
    with pytest.raises(TypeError, match="scores must be real numbers"):
        sums.at(["a", "b"])
    with pytest.raises(ValueError, match="v and y must have the same length"):
        sums.at([1.0, 2.0]).hessian_product([1.0])


def test_weights_whose_products_overflow_are_refused():
    with pytest.raises(ValueError, match="pairs a finite total weight"):
        PairSums([0, 1], sample_weight=[1e200, 1e200])
