"""Which pairs are kept, and the sums over them: small, so that each method is told apart."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from rankbook import losses
from rankbook.solvers import PairSums
from rankbook.solvers._engines import SplitPairs, choose
from rankbook.solvers._pair_data import PairData, rank_one_terms

MATRIX = np.array([[0.5, 1.0, 2.0], [0.25, 0.0, 1.5], [0.0, 0.0, 0.0]])


def sample(sizes, seed=0):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.integers(0, 3, n), qid, rng.normal(size=n), rng.random(n) + 0.1


def brute(y, qid, scores, weight, loss, v):
    pair = MATRIX[y[None, :], y[:, None]] * np.outer(weight, weight)
    pair = pair * (qid[:, None] == qid[None, :])
    value, slope, curve = (pair * term for term in loss.terms(scores[:, None] - scores[None, :]))
    curve = curve + curve.T
    product = curve.sum(1) * v - curve @ v
    return value.sum(), slope.sum(1) - slope.sum(0), product, -slope.sum()


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "squared", "exponential"])
@pytest.mark.parametrize("method", ["auto", "explicit", "implicit"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_methods_against_all_pairs(name, method, weighted):
    y, qid, scores, weight = sample([1, 9, 30, 4])
    weight = weight if weighted else np.ones(len(y))
    sums = PairSums(y, name, MATRIX, qid=qid, sample_weight=weight, method=method)
    v = np.cos(np.arange(len(y)))
    value, gradient, product, slope = brute(y, qid, scores, weight, losses.get(name), v)
    point = sums.at(scores)
    assert point.value == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(point.gradient(), gradient, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(point.hessian_product(v), product, rtol=1e-9, atol=1e-10)
    if name == "squared_hinge":
        assert point.dual_sum == pytest.approx(slope, rel=1e-11)
        hinge = brute(y, qid, scores, weight, losses.Hinge(), v)[0]
        assert point.value_of(losses.Hinge()) == pytest.approx(hinge, rel=1e-11)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothedHinge(0.3)], ids=repr)
def test_queries_are_split_by_their_pairs(loss):
    sizes = [6, 1500, 7, 5]
    y, qid, scores, weight = sample(sizes)
    data = PairData.build(y, MATRIX, weight, qid)
    engine = choose(data, loss)
    assert isinstance(engine, SplitPairs)
    assert [np.unique(qid[rows]).tolist() for rows in engine.rows] == [[0, 2, 3], [1]]
    assert PairSums(y, loss, MATRIX, qid=qid).n_kept is None
    v = np.sin(np.arange(len(y)))
    value, gradient, product, slope = brute(y, qid, scores, weight, loss, v)
    point = engine.at(scores)
    assert point.value == pytest.approx(value, rel=1e-10)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(point.gradient(), gradient, rtol=1e-9, atol=1e-10 * scale)
    np.testing.assert_allclose(
        point.hessian_product(v), product, rtol=1e-9, atol=1e-10 * np.abs(product).max()
    )
    if loss.hinge_parts:
        assert point.dual_sum == pytest.approx(slope, rel=1e-10)
        plain = engine.with_loss(losses.Hinge()).at(scores)
        assert point.value_of(losses.Hinge()) == pytest.approx(plain.value, rel=1e-12)
    alone = [choose(data.subset(np.flatnonzero(qid == q)), loss) for q in (0, 1)]
    assert [type(engine).__name__ for engine in alone][0] == "ExplicitPairs"
    assert type(alone[1]) is type(engine.engines[1])


def test_kept_pairs_are_counted():
    y, qid, scores, _ = sample([5, 8])
    sums = PairSums(y, "logistic", qid=qid)
    differ = (y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :])
    assert sums.n_kept == differ.sum() == sums.different == sums.total
    assert PairSums(y, "exponential", qid=qid).n_kept is None
    assert PairSums(y, "logistic", qid=qid, method="implicit").n_kept is None
    # Pairs of classes at no cost are none, and the counts before and after the listing agree.
    sums = PairSums(y, "logistic", MATRIX, qid=qid)
    weighted = MATRIX[y[None, :], y[:, None]] * (qid[:, None] == qid[None, :])
    before = sums.n_kept
    assert before == len(sums.pairs[2]) == sums.n_kept == np.count_nonzero(weighted)
    assert sorted(sums.pairs[2]) == sorted(weighted[weighted > 0])
    laplacian = sums.at(scores).laplacian.toarray()
    np.testing.assert_allclose(laplacian.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(laplacian, laplacian.T)


def test_subset_and_thinned():
    y, qid, scores, weight = sample([6, 9, 12, 4, 8, 7])
    sums = PairSums(y, "logistic", MATRIX, qid=qid, sample_weight=weight)
    rows, part = sums.thinned(0.5)
    assert np.array_equal(rows, sums.thinned(0.5)[0])
    assert 0 < len(rows) < len(y)
    assert set(qid[rows]).isdisjoint(np.delete(qid, rows))
    expected = brute(
        y[rows], qid[rows], scores[rows], weight[rows], losses.Logistic(), scores[rows]
    )
    assert part.at(scores[rows]).value == pytest.approx(expected[0], rel=1e-11)
    assert part.n == len(rows) and part.n_queries == len(set(qid[rows]))
    assert sums.subset(rows).at(scores[rows]).value == part.at(scores[rows]).value
    np.testing.assert_array_equal(sums.pair_weights, MATRIX)
    # However small the share, it is at least one query.
    assert len(set(qid[sums.thinned(1e-9)[0]])) == 1


def test_a_thinned_list_takes_rare_classes_first_and_weights_make_up_for_it():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], [30_000, 9000, 1000])
    f, w = rng.normal(size=y.size) + 0.5 * y, rng.exponential(size=y.size)
    sums = PairSums(y, "hinge", MATRIX, sample_weight=w)
    rows, part = sums.thinned(0.3)
    counts = np.bincount(y[rows])
    assert counts[2] == 1000 and counts[1] == pytest.approx(counts[0], rel=0.1)
    assert len(rows) == pytest.approx(0.3 * y.size, rel=0.05)
    # A tenth of the items, with every rare one, tells the mean to about a hundredth.
    whole, some = sums.at(f).value / sums.different, part.at(f[rows]).value / part.different
    assert some == pytest.approx(whole, rel=0.02)
    bare = PairSums(y[rows], "hinge", MATRIX, sample_weight=w[rows])
    assert abs(bare.at(f[rows]).value / bare.different / whole - 1) > 0.05


def test_equal_items_count_as_one_with_their_weight():
    rng = np.random.default_rng(6)
    X, qid = rng.integers(0, 2, (300, 2)).astype(float), rng.integers(0, 3, 300)
    y, w = rng.integers(0, 3, 300), rng.exponential(size=300)
    for loss in ("hinge", "logistic", "exponential", "squared"):
        sums = PairSums(y, loss, MATRIX, qid=qid, sample_weight=w)
        rows, part = sums.merged(X)
        assert len(rows) == 4 * 3 * 3
        scores = X @ [0.7, -0.4]
        assert part.at(scores[rows]).value == pytest.approx(sums.at(scores).value, rel=1e-10)
        assert part.total == pytest.approx(sums.total, rel=1e-12)
        assert part.different == pytest.approx(sums.different, rel=1e-12)
    assert sums.merged(rng.normal(size=(300, 2))) is None


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("costs", [None, "linear", MATRIX])
def test_the_scatter_is_that_of_all_differences(make, costs):
    y, qid, _, weight = sample([1, 9, 30, 4])
    X = np.random.default_rng(1).normal(size=(len(y), 4)) + 2.0
    sums = PairSums(y, "hinge", costs, qid=qid, sample_weight=weight)
    pair = sums.pair_weights[y[None, :], y[:, None]] * np.outer(weight, weight)
    pair = pair * (qid[:, None] == qid[None, :])
    differences = X[:, None, :] - X[None, :, :]
    expected = np.einsum("ab,abp,abr->pr", pair, differences, differences)
    np.testing.assert_allclose(sums.scatter(make(X)), expected, rtol=1e-11)


def test_the_scatter_of_many_labels_takes_no_table_of_columns():
    """A dense table of 2000 queries, 100 labels and 30 columns would take 48 MB."""
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 100, 8000), np.repeat(np.arange(2000), 4)
    X = rng.normal(size=(8000, 30))
    tracemalloc.start()
    PairSums(y, "hinge", "linear", qid=qid, labels=np.arange(100)).scatter(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e7


@pytest.mark.parametrize("name", ["exponential", "squared"])
def test_many_labels_in_small_queries_take_no_table_of_labels(name):
    """A dense table of 200 queries and 300 x 300 labels would take 144 MB."""
    rng = np.random.default_rng(0)
    y, qid, scores = rng.integers(0, 300, 800), np.repeat(np.arange(200), 4), rng.normal(size=800)
    v, costs = np.cos(np.arange(800)), rng.random((300, 300)).round(1)
    every = {"labels": np.arange(300), "qid": qid}
    tracemalloc.start()
    point = PairSums(y, name, costs, **every).at(scores)
    value, gradient, product = point.value, point.gradient(), point.hessian_product(v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e7
    kept = PairSums(y, name, costs, method="explicit", **every).at(scores)
    assert value == pytest.approx(kept.value, rel=1e-12)
    np.testing.assert_allclose(gradient, kept.gradient(), atol=1e-10)
    np.testing.assert_allclose(product, kept.hessian_product(v), atol=1e-10)


def test_margins_of_rows_bound_pairs():
    """A direction has non-negative margins exactly if no pair's difference is negative."""
    x = np.array([[0.0], [1.0], [2.0], [5.0], [4.0]])
    y, qid = np.array([0, 0, 1, 0, 0]), np.array([3, 3, 3, 1, 1])
    rows = PairSums(y, "logistic", qid=qid).margin_rows(x).toarray()
    # The second query has no pair: three rows, the upper item's and those of the lower two.
    assert rows.tolist() == [[2.0, -1.0], [-0.0, 1.0], [-1.0, 1.0]]


def test_terms_by_columns_where_these_are_fewer():
    matrix = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0], [3.0, 6.0, 5.0]])
    upper, lower = rank_one_terms(matrix)
    # No two rows are proportional, but the first two columns are.
    assert upper.shape == (2, 3)
    np.testing.assert_allclose(lower.T @ upper, matrix, rtol=1e-15)
    # Rows that agree to a rounding are one direction, others are not.
    close = np.outer([1.3, 1.1], [0.7, 0.9])
    assert close[0, 0] / close[0, 1] != close[1, 0] / close[1, 1]
    assert len(rank_one_terms(close)[0]) == 1
    assert len(rank_one_terms(close + [[0.0, 1e-9], [0.0, 0.0]])[0]) == 2


@pytest.mark.parametrize("loss", ["logistic"])
def test_far_pairs_within_queries(loss):
    """Scores 100 apart in queries of their own: the far field must not cross a query's border."""
    y = np.array([1, 0, 1, 0, 0, 1, 1, 0])
    qid = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    scores = np.array([0.0, 100.0, 250.0, 400.0, 30.0, -120.0, 300.0, 150.0])
    weight = np.array([1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0])
    point = PairSums(y, loss, qid=qid, sample_weight=weight, method="implicit").at(scores)
    pair = (y[:, None] > y[None, :]) * np.outer(weight, weight) * (qid[:, None] == qid[None, :])
    s = scores[:, None] - scores[None, :]
    slope = pair * losses.get(loss).derivative(s)
    assert point.value == pytest.approx((pair * losses.get(loss)(s)).sum(), rel=1e-12)
    np.testing.assert_allclose(
        point.gradient(), slope.sum(1) - slope.sum(0), rtol=1e-12, atol=1e-50
    )


def test_a_loss_with_a_kink_keeps_more_pairs():
    """Fifty pairs an item: kept for the hinge, whose minimum they give, and sorted otherwise."""
    y, qid, scores, _ = sample([200])
    sums = PairSums(np.minimum(y, 1), "hinge", qid=qid)
    assert 20 * 200 < sums.different < 100 * 200 and sums.n_kept == sums.different
    for other in (
        PairSums(np.minimum(y, 1), "squared_hinge", qid=qid),
        PairSums(np.minimum(y, 1), "hinge", qid=qid, smoothing=0.1),
    ):
        assert other.n_kept is None
    assert sums.at(scores).value == pytest.approx(
        PairSums(np.minimum(y, 1), "hinge", qid=qid, method="implicit").at(scores).value
    )


@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_weights_of_many_terms_keep_more_pairs(name, monkeypatch):
    """A term is a pass of its own where pairs are not kept; with Theorem 4's weights it is one."""
    n, K = 300, 60
    y = np.random.default_rng(0).permutation(np.arange(n) % K)
    pairs = (n * n - K * (n // K) ** 2) / 2
    many = np.triu(np.random.default_rng(1).random((K, K)), 1)
    assert PairSums(y, name, many).n_kept == pairs
    assert PairSums(y, name, np.ones((K, K))).n_kept is None
    monkeypatch.setattr("rankbook.solvers._engines._MOST_PAIRS", pairs - 1)
    assert PairSums(y, name, many).n_kept is None
