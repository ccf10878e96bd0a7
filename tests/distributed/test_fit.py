"""Fits over blocks against the same fits in memory."""

import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from rankbook import costs, distributed, losses
from rankbook.distributed._blocks import Blocks
from rankbook.distributed._moments import ExponentialPairSum
from rankbook.distributed._objectives import PairBlock, SquareBlock
from rankbook.distributed._sums import BlockSum
from rankbook.distributed._survey import Columns, Plan
from rankbook.exceptions import (
    CollinearityWarning,
    NotBlockwiseError,
    SeparationWarning,
    SplitQueryError,
)
from rankbook.models import (
    COCR,
    SVOR,
    CumulativeLink,
    PairwiseRanker,
    UnivariateRanker,
    ValueRegularizedRanker,
)

N, CHUNKS = 240, (70, 50, 80, 40)
BOUNDS = np.cumsum((0, *CHUNKS))


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)) * [1.0, 30.0, 0.02] + [0.0, 400.0, 0.5]
    latent = X @ [0.8, 0.03, -30.0] + rng.logistic(size=N)
    y = np.digitize(latent, np.quantile(latent, [0.3, 0.6, 0.85]))
    qid = np.arange(N) // 10 + 7
    weights = rng.integers(0, 4, N).astype(float)
    weights[BOUNDS[1] : BOUNDS[2]] = 0.0  # a block without any weight
    return X, y, qid, weights


def blocked(*arrays):
    return [
        None
        if a is None
        else da.from_array(a, chunks=(CHUNKS,) if a.ndim == 1 else (CHUNKS, a.shape[1]))
        for a in arrays
    ]


def both(estimator, X, y, qid=None, sample_weight=None):
    options = {} if qid is None else {"qid": qid}
    memory = estimator.fit(X, y, sample_weight=sample_weight, **options)
    X, y, qid, sample_weight = blocked(X, y, qid, sample_weight)
    return memory, distributed.fit(estimator, X, y, qid=qid, sample_weight=sample_weight)


def close(a, b, rtol=1e-8):
    a, b = np.asarray(a), np.asarray(b)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=0.0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_cumulative_link(sample, link, alpha, weighted):
    X, y, _, weights = sample
    memory, blocks = both(
        CumulativeLink(link, alpha=alpha), X, y, sample_weight=weights if weighted else None
    )
    for name in ("coef_", "thresholds_", "standard_errors_", "covariance_", "log_likelihood_"):
        close(getattr(blocks, name), getattr(memory, name))
    assert blocks.param_names_ == memory.param_names_
    assert (blocks.df_, blocks.n_obs_) == (memory.df_, memory.n_obs_)
    np.testing.assert_array_equal(blocks.predict(X), memory.predict(X))
    close(blocks.predict_proba(X), memory.predict_proba(X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge", "squared"])
def test_univariate(sample, loss, balanced, weighted):
    X, y, _, weights = sample
    estimator = UnivariateRanker(loss, alpha=1e-3, balanced=balanced)
    memory, blocks = both(estimator, X, y > 1, sample_weight=weights if weighted else None)
    for name in ("coef_", "intercept_", "objective_"):
        close(getattr(blocks, name), getattr(memory, name))
    np.testing.assert_array_equal(blocks.classes_, memory.classes_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge", "squared"])
def test_pairs_within_queries(sample, loss, consistent, weighted):
    X, y, qid, weights = sample
    estimator = PairwiseRanker(loss, "dcg", consistent, alpha=1e-3, tol=1e-18)
    memory, blocks = both(estimator, X, y, qid, weights if weighted else None)
    for name in ("coef_", "objective_", "pair_weights_"):
        close(getattr(blocks, name), getattr(memory, name))
    assert blocks.dual_gap_ < 1e-8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("loss", ["exponential", "squared"])
def test_pairs_of_all_items(sample, loss, consistent, weighted):
    X, y, _, weights = sample
    estimator = PairwiseRanker(loss, "linear", consistent, alpha=1e-3, tol=1e-18)
    memory, blocks = both(estimator, X, y, None, weights if weighted else None)
    for name in ("coef_", "objective_"):
        close(getattr(blocks, name), getattr(memory, name))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_value_regularized(sample, alpha, queries, weighted):
    X, y, qid, weights = sample
    estimator = ValueRegularizedRanker(theta=0.1, alpha=alpha)
    memory, blocks = both(estimator, X, y, qid if queries else None, weights if weighted else None)
    for name in ("coef_", "objective_", "n_pairs_"):
        close(getattr(blocks, name), getattr(memory, name))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("label_costs", ["absolute", "squared", "oerr"])
def test_cocr(sample, label_costs, weighted):
    X, y, _, weights = sample
    memory, blocks = both(COCR(label_costs=label_costs), X, y, None, weights if weighted else None)
    for one, other in zip(blocks.estimators_, memory.estimators_, strict=True):
        close(one.coef_, other.coef_)
        close(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(blocks.predict(X), memory.predict(X))


@pytest.mark.parametrize(
    "estimator", [ValueRegularizedRanker(), PairwiseRanker(alpha=1e-3, tol=1e-18)]
)
def test_blocks_may_weigh_differently(sample, estimator):
    X, y, qid, _ = sample
    weights = np.repeat([1.0, 20.0, 0.3, 4.0], CHUNKS) * (1 + np.arange(N) % 3)
    memory, blocks = both(estimator, X, y, qid, weights)
    close(blocks.coef_, memory.coef_)
    close(blocks.objective_, memory.objective_)


@pytest.mark.parametrize(
    "estimator", [CumulativeLink(), PairwiseRanker("exponential", tol=1e-18), COCR()]
)
def test_labels_are_in_declared_order(sample, estimator):
    X, y, _, _ = sample
    names = np.array(["zero", "bad", "fair", "good"])
    memory, blocks = both(estimator.set_params(labels=names.tolist()), X, names[y])
    assert blocks.classes_.tolist() == memory.classes_.tolist() == names.tolist()
    close(blocks.decision_function(X), memory.decision_function(X))
    with pytest.raises(ValueError, match="order is declared"):
        distributed.fit(estimator.set_params(labels=None), *blocked(X, names[y]))


def test_a_block_may_lack_classes(sample):
    X, y, _, _ = sample
    order = np.argsort(y, kind="stable")
    for estimator in (CumulativeLink(), PairwiseRanker("exponential", tol=1e-18), COCR()):
        memory, blocks = both(estimator, X[order], y[order])
        close(blocks.decision_function(X), memory.decision_function(X))


def test_many_columns_go_by_products(sample, monkeypatch):
    from rankbook.distributed import _sums

    X, y, qid, weights = sample
    estimator = PairwiseRanker(alpha=1e-2, tol=1e-18)
    memory = estimator.fit(X, y, qid=qid)
    monkeypatch.setattr(_sums, "_DENSE", 2)
    Xd, yd, qd = blocked(X, y, qid)
    close(distributed.fit(estimator, Xd, yd, qid=qd).coef_, memory.coef_)
    memory, blocks = both(UnivariateRanker(), X, y > 1)
    close(blocks.coef_, memory.coef_)
    # A block without weight adds nothing to a product; without a ridge none is factored.
    for alpha in (1e-2, 0.0):
        estimator = UnivariateRanker(alpha=alpha, tol=1e-16)
        memory, blocks = both(estimator, X, y > 1, sample_weight=weights)
        close(blocks.decision_function(X), memory.decision_function(X), 1e-6)


@pytest.mark.parametrize("estimator", [PairwiseRanker(alpha=0.1), UnivariateRanker(alpha=0.1)])
def test_small_units(sample, estimator):
    """Zero is nearly as good as the minimiser there, but ranks nothing."""
    X, y, qid, _ = sample
    X, y = 1e-30 * X, y if isinstance(estimator, PairwiseRanker) else y > 1
    queries = {"qid": qid} if isinstance(estimator, PairwiseRanker) else {}
    expected = clone(estimator).fit(X, y, **queries).coef_
    blocks = dict(zip(queries, blocked(*queries.values()), strict=True))
    model = distributed.fit(estimator, *blocked(X, y), **blocks)
    assert expected.all()
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-8)


def test_the_estimator_given_is_not_changed(sample):
    estimator = COCR()
    fitted = distributed.fit(estimator, *blocked(*sample[:2]))
    assert fitted is not estimator
    assert not hasattr(estimator, "estimators_")


def counted(X, y, counter):
    """Blocks that count how often they are read."""

    def read(block):
        counter.append(len(block))
        return block

    Xd, yd = blocked(X, y)
    return Xd.map_blocks(read, dtype=float, meta=np.empty((0, 0))), yd


@pytest.mark.parametrize(
    ("estimator", "least", "most"),
    [
        (COCR(), 2, 2),
        (ValueRegularizedRanker(), 3, 4),
        (PairwiseRanker("squared"), 2, 2),
        (CumulativeLink(), 4, 8),
        (PairwiseRanker("exponential"), 4, 10),
    ],
)
def test_passes(sample, estimator, least, most):
    counter = []
    model = distributed.fit(estimator, *counted(*sample[:2], counter))
    assert least <= model.n_passes_ <= most
    assert sum(counter) == model.n_passes_ * N


def test_progress_is_shown(sample, capsys):
    distributed.fit(CumulativeLink(), *blocked(*sample[:2]), verbose=1)
    assert "Newton over blocks" in capsys.readouterr().err


@pytest.mark.parametrize("estimator", [CumulativeLink(), UnivariateRanker(alpha=0.0)])
def test_collinear_columns(sample, estimator):
    X, y, _, _ = sample
    y = y > 1 if isinstance(estimator, UnivariateRanker) else y
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 2], np.full(N, 3.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearityWarning)
        memory = estimator.fit(X, y)
    with pytest.warns(CollinearityWarning, match="least norm"):
        blocks = distributed.fit(estimator, *blocked(X, y))
    close(blocks.coef_, memory.coef_, 1e-6)
    if isinstance(estimator, CumulativeLink):
        assert blocks.df_ == memory.df_
        np.testing.assert_array_equal(
            np.isnan(blocks.standard_errors_), np.isnan(memory.standard_errors_)
        )


@pytest.mark.parametrize("estimator", [CumulativeLink(), UnivariateRanker(alpha=0.0)])
def test_separated_classes(sample, estimator):
    X = sample[0]
    with pytest.warns(SeparationWarning, match="curvature"):
        model = distributed.fit(estimator, *blocked(X, X[:, 0] > 0))
    assert np.isfinite(model.coef_).all()
    assert model.score(X, X[:, 0] > 0) == 1.0


def test_what_is_no_sum_over_blocks_is_refused(sample):
    X, y, qid, _ = blocked(*sample)
    for estimator, words in [
        (PairwiseRanker("logistic"), "loss='logistic' over one list"),
        (PairwiseRanker("hinge"), "loss='hinge'"),
        (CumulativeLink(nominal=[0]), "nominal"),
        (CumulativeLink(covariance="robust"), "robust"),
        (COCR(Ridge()), "COCR with base Ridge.*joblib"),
        (COCR(weighting="resample"), "COCR with resampling.*joblib"),
        (SVOR(), "SVOR is no sum"),
    ]:
        with pytest.raises(NotBlockwiseError, match=words):
            distributed.fit(estimator, X, y)


def test_collinear_cocr_is_refused(sample):
    X, y, _, _ = sample
    with pytest.raises(NotBlockwiseError, match="collinear"):
        distributed.fit(COCR(), *blocked(np.column_stack([X, X[:, :1]]), y))


def test_one_block_takes_any_smooth_loss(sample):
    X, y, _, _ = sample
    estimator = PairwiseRanker(tol=1e-18)
    blocks = distributed.fit(estimator, da.from_array(X, chunks=-1), da.from_array(y, chunks=-1))
    close(blocks.coef_, estimator.fit(X, y).coef_)


def test_bad_arrays_are_named(sample):
    X, y, qid, weights = sample
    Xd, yd, qd, wd = blocked(*sample)
    fit = distributed.fit
    with pytest.raises(TypeError, match="y must be a Dask array, got ndarray"):
        fit(COCR(), Xd, y)
    with pytest.raises(TypeError, match="X must be a Dask array, got NoneType"):
        fit(COCR(), None, yd)
    with pytest.raises(ValueError, match=r"y must have the chunks of X.*y\.rechunk"):
        fit(COCR(), Xd, yd.rechunk(100))
    with pytest.raises(ValueError, match="same length, got 100 for y"):
        fit(COCR(), Xd, yd[:100])
    with pytest.raises(ValueError, match=r"X must have whole rows.*rechunk\({1: -1}\)"):
        fit(COCR(), Xd.rechunk((CHUNKS, 2)), yd)
    with pytest.raises(ValueError, match="y must have chunks of known sizes.*compute_chunk_sizes"):
        fit(COCR(), Xd, yd[yd > 0])
    with pytest.raises(ValueError, match="qid must be None for COCR"):
        fit(COCR(), Xd, yd, qid=qd)
    with pytest.raises(ValueError, match="sample_weight must have a positive sum"):
        fit(COCR(), Xd, yd, sample_weight=0 * wd)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        fit(COCR(), Xd, yd, sample_weight=wd - 1)
    with pytest.raises(ValueError, match="X must be finite"):
        fit(COCR(), da.where(Xd > 450, np.nan, Xd), yd)
    with pytest.raises(ValueError, match="at least 2 classes"):
        fit(COCR(), Xd, 0 * yd)


@pytest.mark.parametrize("empty", [0, 2])
@pytest.mark.parametrize(
    "estimator", [CumulativeLink(), PairwiseRanker("exponential", tol=1e-18), COCR()]
)
def test_a_class_without_weight(sample, estimator, empty):
    X, y, _, _ = sample
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory, blocks = both(estimator, X, y, None, np.where(y == empty, 0.0, 1.0))
    np.testing.assert_array_equal(blocks.classes_, memory.classes_)
    close(blocks.decision_function(X), memory.decision_function(X))


def test_empty_chunks_and_single_precision(sample):
    X, y, _, _ = sample
    chunks = (0, *CHUNKS, 0)
    Xd = da.from_array(X.astype(np.float32), chunks=(chunks, 3))
    model = distributed.fit(CumulativeLink(), Xd, da.from_array(y, chunks=(chunks,)))
    close(model.params_, CumulativeLink().fit(X.astype(np.float32), y).params_)


def promised(sizes, parts):
    """Dask arrays whose blocks are not what their chunks say."""
    shapes = [(size, *parts[0].shape[1:]) for size in sizes]
    make = dask.delayed(np.asarray)
    return da.concatenate(
        [
            da.from_delayed(make(part), shape, dtype=float)
            for part, shape in zip(parts, shapes, strict=True)
        ]
    )


def test_blocks_that_are_not_what_chunks_say(sample):
    X, y, _, _ = sample
    sizes = (120, 120)
    Xd, yd = da.from_array(X, chunks=(120, 3)), da.from_array(y, chunks=120)
    for arrays, words in [
        ((Xd, promised(sizes, [y[:120], y[120:230]])), "120 for X and 110 for y"),
        ((promised(sizes, [X[:120], X[120:230]]), yd), "110 for X and 120 for y"),
        ((promised(sizes, [X[:120], X[120:, :2]]), yd), "X must have 3 columns"),
    ]:
        with pytest.raises(ValueError, match=words) as raised:
            distributed.fit(CumulativeLink(), *arrays)
        assert "in block 1" in raised.value.__notes__[0]
    with pytest.raises(ValueError, match="110 for sample_weight and 120 for y"):
        zero = promised(sizes, [np.ones(120), np.zeros(110)])
        distributed.fit(CumulativeLink(), Xd, yd, sample_weight=zero)
    with pytest.raises(ValueError, match="X must have at least one column"):
        distributed.fit(CumulativeLink(), Xd[:, :0], yd)
    with pytest.raises(TypeError, match="dense blocks, got one of csr_matrix"):
        distributed.fit(CumulativeLink(), Xd.map_blocks(csr_matrix), yd)


def test_a_query_that_straddles_blocks(sample):
    X, y, qid, weights = sample
    Xd, yd, wd = blocked(X, y, weights)
    split = da.from_array(np.arange(N) // 12, chunks=(CHUNKS,))
    estimator = PairwiseRanker(tol=1e-18)
    with pytest.raises(SplitQueryError, match="query 5 in blocks.*rechunk_by_query"):
        distributed.fit(estimator, Xd, yd, qid=split)
    Xr, yr, qr, wr = distributed.rechunk_by_query(Xd, yd.rechunk(100), split, wd)
    assert Xr.chunks[0] == yr.chunks[0] == qr.chunks[0] == wr.chunks[0] == (72, 48, 84, 36)
    model = distributed.fit(estimator, Xr, yr, qid=qr, sample_weight=wr)
    memory = estimator.fit(X, y, qid=split.compute(), sample_weight=weights)
    close(model.coef_, memory.coef_)


def test_rechunk_by_query(sample):
    Xd, yd = blocked(*sample[:2])
    one = distributed.rechunk_by_query(Xd, yd, da.zeros(N, chunks=(CHUNKS,)))
    assert one[0].numblocks == (1, 1)
    with pytest.raises(SplitQueryError, match="query 0 again.*sort the rows"):
        distributed.rechunk_by_query(Xd, yd, da.from_array(np.arange(N) % 3, chunks=(CHUNKS,)))
    with pytest.raises(TypeError, match="qid must be a Dask array"):
        distributed.rechunk_by_query(Xd, yd, sample[2])


def test_dask_missing(sample, monkeypatch):
    import sys

    arrays = blocked(*sample[:2])
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"rankbook\[distributed\]"):
        distributed.fit(COCR(), *arrays)


def test_samples_without_a_fit_are_refused(sample):
    X, y, qid, _ = sample
    fit = distributed.fit
    Xd, yd, qd = blocked(X, y, qid)
    with pytest.raises(ValueError, match="y must hold two classes, got 4"):
        fit(UnivariateRanker(), Xd, yd)
    top = blocked((y == 3).astype(float))[0]
    with pytest.raises(ValueError, match="positive for items of both classes"):
        fit(UnivariateRanker(), Xd, yd > 2, sample_weight=top)
    with pytest.raises(ValueError, match="y must hold at least 2 classes"):
        fit(CumulativeLink(), Xd, yd, sample_weight=top)
    for estimator in (PairwiseRanker("squared"), ValueRegularizedRanker()):
        with pytest.raises(ValueError, match="two (items|different labels)"):
            fit(estimator, Xd, yd, sample_weight=top)
    # One query an item: labels differ, but not within a query.
    alone = blocked(np.arange(N))[0]
    with pytest.raises(ValueError, match="within a query with different labels"):
        fit(PairwiseRanker(), Xd, yd, qid=alone)
    with pytest.raises(ValueError, match="y must have 1 dimension"):
        fit(COCR(), Xd, Xd)
    with pytest.raises(ValueError, match="X must not be empty"):
        fit(COCR(), Xd[:0], yd[:0])
    with pytest.raises(ValueError, match="squares, summed, are within"):
        fit(UnivariateRanker(), 1e200 * Xd, yd > 2)


@pytest.mark.parametrize("estimator", [UnivariateRanker(max_iter=1), CumulativeLink(max_iter=1)])
def test_a_fit_that_stops_early_says_so(sample, estimator):
    X, y, _, _ = sample
    y = y > 1 if isinstance(estimator, UnivariateRanker) else y
    with pytest.warns(ConvergenceWarning, match="stopped early.*above the minimum"):
        distributed.fit(estimator, *blocked(X, y))


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_an_objective_is_the_same_with_and_without_derivatives(sample, loss):
    X, y, qid, _ = sample
    plan = Plan((0, 1, 2, 3), Columns(np.zeros(3), np.ones(3), np.zeros(3, dtype=bool)), 1.0)
    blocks = Blocks(dict(zip(("X", "y", "qid"), blocked(X / 30, y, qid), strict=True)))
    build = PairBlock(losses.get(loss), costs.linear(4), 100.0)
    risk = BlockSum(blocks, plan, build, np.full(3, 0.5))
    x = np.array([0.3, -0.1, 0.2])
    np.testing.assert_allclose(risk.value(x), risk.value_gradient_hessian(x)[0], rtol=1e-14)
    square = SquareBlock(1e-3, np.arange(4.0), float(N), 1.0, 100.0)
    risk = BlockSum(blocks, plan, square, np.full(3, 0.5))
    np.testing.assert_allclose(risk.value(x), risk.value_gradient_hessian(x)[0], rtol=1e-14)
    # Scores that overflow have no derivatives, whatever the block.
    blocks = Blocks(dict(zip(("X", "y", "qid"), blocked(1e200 * X, y, qid), strict=True)))
    risk = BlockSum(blocks, plan, build, np.zeros(3))
    assert risk.value(np.full(3, 1e120)) == np.inf
    assert risk.value_gradient_hessian(np.full(3, 1e120)) == (np.inf, None, None)


def test_exponential_pairs_that_overflow_have_no_derivatives(sample):
    X, y, _, _ = sample
    plan = Plan((0, 1, 2, 3), Columns(np.zeros(3), np.ones(3), np.zeros(3, dtype=bool)), 1.0)
    blocks = Blocks(dict(zip(("X", "y"), blocked(X, y), strict=True)))
    risk = ExponentialPairSum(blocks, plan, costs.linear(4), 100.0, np.zeros(3))
    with np.errstate(all="ignore"):
        assert risk.value_gradient_hessian(np.array([0.0, 1e6, 0.0])) == (np.inf, None, None)
