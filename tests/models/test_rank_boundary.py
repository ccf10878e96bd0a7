"""RankBoundarySVM: cvxpy on explicit pairs, PairwiseRanker, thresholds by hand, bad input."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

from rankbook.exceptions import KernelMemoryError, ThresholdOrderWarning
from rankbook.models import PairwiseRanker, RankBoundarySVM
from rankbook.models._pair_interior import ItemPairs
from rankbook.models.rank_boundary import _between_neighbours, _Listing

pytestmark = pytest.mark.filterwarnings("ignore::rankbook.exceptions.ThresholdOrderWarning")


def make_data(n=30, n_classes=4, seed=0, p=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = np.sin(2 * X[:, 0]) + X[:, -1] + 0.6 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def pairs_of(y, reach):
    difference = y[:, None] - y
    return np.nonzero((difference > 0) & (difference <= reach))


def reference(K, y, C, reach, weight=None):
    """The minimum over all pairs, each written out."""
    values, vectors = np.linalg.eigh(K)
    v = cp.Variable(len(K))
    f = (vectors * np.sqrt(np.maximum(values, 0))) @ v
    upper, lower = pairs_of(y, reach)
    weight = np.ones(len(y)) if weight is None else weight
    hinges = cp.multiply(weight[upper] * weight[lower], cp.pos(1 - (f[upper] - f[lower])))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + C * cp.sum(hinges)))
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "precomputed", "callable"])
def test_objective_is_cvxpys(name):
    for seed in range(12):
        n_classes, C = 2 + seed % 5, [0.01, 0.2, 3.0][seed % 3]
        X, y = make_data(14 + seed, n_classes, seed)
        reach = [None, 1, 2][seed % 3 - 1]
        K = rbf_kernel(X, gamma=0.7)
        kernel, items = name, X
        if name == "linear":
            K = linear_kernel(X)
        elif name == "poly":
            K = polynomial_kernel(X, gamma=0.7, degree=2, coef0=1.0)
        elif name == "precomputed":
            items = K
        elif name == "callable":
            kernel = lambda A, B: rbf_kernel(A, B, gamma=0.7)  # noqa: E731
        options = {"gamma": 0.7, "degree": 2, "coef0": 1.0, "max_rank_difference": reach}
        machine = RankBoundarySVM(kernel, C, **options).fit(items, y)
        best = reference(K, y, C, reach or n_classes)
        assert machine.objective_ == pytest.approx(best, rel=2e-6), (seed, C)
        assert machine.dual_gap_ <= 1e-6
        scores = machine.decision_function(items)
        upper, lower = pairs_of(y, reach or n_classes)
        hinges = np.maximum(0, 1 - (scores[upper] - scores[lower])).sum()
        beta = np.zeros(len(y))
        beta[machine.support_] = machine.dual_coef_
        assert 0.5 * beta @ K @ beta + C * hinges == pytest.approx(machine.objective_, rel=1e-8)


def test_the_gap_of_a_loose_fit_is_a_bound(monkeypatch):
    X, y = make_data(60, 4, 1)
    best = RankBoundarySVM("rbf", 3.0, gamma=0.7).fit(X, y)
    monkeypatch.setattr("rankbook.models.rank_boundary._PAIRS", 0)  # listed pairs end exact
    loose = RankBoundarySVM("rbf", 3.0, gamma=0.7, tol=0.3).fit(X, y)
    excess = 1 - best.objective_ / loose.objective_
    assert 1e-6 < excess <= loose.dual_gap_ <= 0.3


@pytest.mark.parametrize("reach", [None, 1])
def test_linear_is_the_pairwise_ranker(reach):
    X, y = make_data(80, 4, 3)
    total = len(pairs_of(y, 4)[0])
    costs = np.triu(np.ones((4, 4)), 1)
    costs -= np.triu(costs, 2) if reach else 0.0
    ranker = PairwiseRanker("hinge", costs, consistent=False, alpha=1 / (0.3 * total)).fit(X, y)
    machine = RankBoundarySVM("linear", 0.3, reach).fit(X, y)
    assert machine.objective_ == pytest.approx(0.3 * total * ranker.objective_, rel=2e-6)
    assert_allclose(machine.coef_, ranker.coef_, atol=5e-3)


def test_weights_multiply_in_pairs():
    X, y = make_data(24, 3, 4)
    weight = np.random.default_rng(0).integers(0, 3, 24).astype(float)
    weight[[np.flatnonzero(y == k)[0] for k in range(3)]] = 1.0
    machine = RankBoundarySVM(gamma=0.7, C=0.5).fit(X, y, sample_weight=weight)
    best = reference(rbf_kernel(X, gamma=0.7), y, 0.5, 3, weight)
    assert machine.objective_ == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_weight_is_as_many_copies(kernel):
    X, y = make_data(40, 4, 6)
    weight = np.random.default_rng(1).integers(0, 4, 40)
    weight[[np.flatnonzero(y == k)[0] for k in range(4)]] = 2
    for C, reach in ((0.05, None), (1.0, 1)):
        weighted = RankBoundarySVM(kernel, C, reach).fit(X, y, sample_weight=weight)
        copies = RankBoundarySVM(kernel, C, reach).fit(X.repeat(weight, 0), y.repeat(weight))
        assert_allclose(weighted.decision_function(X), copies.decision_function(X), atol=1e-7)
        assert_allclose(weighted.thresholds_, copies.thresholds_, atol=1e-7)
        assert weighted.objective_ == pytest.approx(copies.objective_, rel=1e-10)


def test_with_and_without_a_list_of_pairs(monkeypatch):
    X, y = make_data(60, 4, 8)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 60)
    for C, reach in ((0.02, 2), (0.5, None)):
        listed = RankBoundarySVM("rbf", C, reach, gamma=0.5).fit(X, y, sample_weight=weight)
        assert listed.dual_gap_ < 1e-9
        with monkeypatch.context() as patch:
            patch.setattr("rankbook.models.rank_boundary._PAIRS", 0)
            sorted_ = RankBoundarySVM("rbf", C, reach, gamma=0.5).fit(X, y, sample_weight=weight)
        assert sorted_.objective_ == pytest.approx(listed.objective_, rel=2e-6)
        assert 1e-12 < sorted_.dual_gap_ <= 1e-6


def test_the_listed_pairs_are_all_pairs():
    y = make_data(23, 5, 9)[1]
    weight = np.random.default_rng(3).uniform(size=23)
    for reach in (1, 2, 4, 9):
        pairs = ItemPairs.build(y, weight, reach)
        found = sorted(zip(pairs.upper.tolist(), pairs.lower.tolist(), strict=True))
        assert found == sorted(zip(*(rows.tolist() for rows in pairs_of(y, reach)), strict=True))
        assert_allclose(pairs.weight, weight[pairs.upper] * weight[pairs.lower])
        assert _Listing(y, weight, reach).count == len(found)
        L, values = np.random.default_rng(4).normal(size=(23, 3)), np.arange(len(found)) + 1.0
        D = L[pairs.upper] - L[pairs.lower]
        assert_allclose(pairs.curvature(L, values), D.T @ (values[:, None] * D), rtol=1e-10)


def between(f, codes, n_classes):
    return _between_neighbours(f, codes, np.ones(len(f)), n_classes)


def test_thresholds_lie_midway_between_the_closest():
    # Distances of neighbours: 1.5 (0.5, 2) and 4 (2, 6); the farthest would give 3 and 4.
    f = np.array([0.0, 0.5, 2.0, 6.0, 7.0])
    codes = np.array([0, 0, 1, 2, 2])
    assert_allclose(between(f, codes, 3), [1.25, 4.0])
    # A pair in the right order without its margin does not count: 0.5 and 0.9 here.
    f = np.array([0.0, 0.5, 0.9, 2.0])
    assert_allclose(between(f, np.array([0, 0, 1, 1]), 2), [1.25])
    # The closest pair, whatever the weights; of equally close ones the weighted mean.
    f, codes_, weight = np.array([0.0, 3.0, 4.0]), np.array([0, 0, 1]), np.array([1.0, 2.0, 1.0])
    assert_allclose(_between_neighbours(f, codes_, weight, 2), [3.5])
    f, codes_ = np.array([0.0, 4.0, 1.0, 5.0]), np.array([0, 0, 1, 1])
    assert_allclose(_between_neighbours(f, codes_, np.array([1.0, 3.0, 1.0, 1.0]), 2), [3.5])
    # Equally close pairs: the mean of their middles; none: midway between the means.
    assert_allclose(between(np.array([0.0, 1.0, 1.0, 2.0]), codes[[0, 1, 2, 2]], 2), [1])
    assert_allclose(between(np.array([5.0, 1.0]), np.array([0, 1]), 2), [3.0])


def test_thresholds_out_of_order_are_told():
    # All six pairs are within their margins, so that w = C times the sum of differences, 4.
    with pytest.warns(ThresholdOrderWarning, match="out of order"):
        machine = RankBoundarySVM("linear", 0.01).fit([[0.0], [3.0], [-5.0], [4.0]], [0, 1, 2, 3])
    assert_allclose(machine.coef_, [0.04], rtol=1e-4)
    assert_allclose(machine.thresholds_, [0.06, -0.04, -0.02], rtol=1e-4)


def test_sparse_and_shift():
    X, y = make_data(40, 3, 5)
    X[np.abs(X) < 0.4] = 0.0
    for kernel in ("linear", "rbf"):
        dense = RankBoundarySVM(kernel, 0.1, gamma=0.5).fit(X, y)
        sparse = RankBoundarySVM(kernel, 0.1, gamma=0.5).fit(sp.csr_array(X), y)
        assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-6)
        moved = RankBoundarySVM(kernel, 0.1, gamma=0.5).fit(X + 1e6, y)
        margins = moved.decision_function(X + 1e6) - moved.thresholds_[0]
        assert_allclose(margins, dense.decision_function(X) - dense.thresholds_[0], atol=1e-2)
        assert_array_equal(
            np.searchsorted(dense.thresholds_, dense.decision_function(X)), dense.predict(X)
        )


def test_memory_and_bad_parameters():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 50)), np.arange(600) % 3
    with pytest.raises(KernelMemoryError, match="n = 600"):
        RankBoundarySVM(gamma=1.0, max_memory=0.004).fit(X, y)
    for options, message in (
        ({"C": 0.0}, "C must be greater than 0"),
        ({"max_rank_difference": 0}, "max_rank_difference must be at least 1"),
        ({"gamma": -1.0}, "gamma must be greater than 0"),
    ):
        with pytest.raises(ValueError, match=message):
            RankBoundarySVM(**options).fit(X[:20], y[:20])


def test_check_estimator():
    check_estimator(RankBoundarySVM(), on_skip=None)


@pytest.mark.filterwarnings("ignore::rankbook.exceptions.ThresholdOrderWarning")
def test_the_reach_of_pairs_counts_where_they_are_not_listed(monkeypatch):
    monkeypatch.setattr("rankbook.models.rank_boundary._PAIRS", 0)
    X, y = make_data(17, 4, 3)
    for reach in (1, 2):
        machine = RankBoundarySVM("linear", 0.1, max_rank_difference=reach).fit(X, y)
        best = reference(linear_kernel(X), y, 0.1, reach)
        assert machine.objective_ == pytest.approx(best, rel=2e-6)
