"""PairwiseRanker against explicit pairs, other people's solvers, duality and invariances."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankbook import costs as cost_schemes
from rankbook import losses
from rankbook.exceptions import CollinearityWarning, CostConditionError, SeparationWarning
from rankbook.models import PairwiseRanker, UnivariateRanker
from rankbook.models._pair_fit import solve
from rankbook.models._pair_objective import PairRisk
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design

LOSSES = ["exponential", "logistic", "squared_hinge", "hinge", "squared"]


def sample(n=80, p=4, K=3, seed=0, shift=0.7):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    X = rng.normal(size=(n, p)) + shift * np.outer(y, rng.normal(size=p))
    return X, y, rng


def explicit(X, y, matrix, weight=None, qid=None):
    """Differences and weights of all ordered pairs, and the weight of pairs that differ."""
    n = len(y)
    weight = np.ones(n) if weight is None else weight
    qid = np.zeros(n) if qid is None else qid
    a, b = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    a, b = a.ravel(), b.ravel()
    together = weight[a] * weight[b] * (qid[a] == qid[b])
    pair = matrix[y[b], y[a]] * together
    kept = pair > 0
    return X[a[kept]] - X[b[kept]], pair[kept], (together * (y[a] > y[b])).sum()


def objective(coef, loss, alpha, differences, weights, total):
    return weights @ losses.get(loss)(differences @ coef) / total + alpha / 2 * coef @ coef


@parametrize_with_checks([PairwiseRanker(), PairwiseRanker("hinge", alpha=0.1)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("K", [2, 3, 4])
def test_smooth_losses_against_scipy_on_explicit_pairs(loss, consistent, K):
    X, y, rng = sample(K=K)
    weight, qid = rng.random(len(y)) + 0.1, rng.integers(0, 3, len(y))
    alpha = 0.05
    ranker = PairwiseRanker(loss, "linear", consistent, alpha, tol=1e-13)
    ranker.fit(X, y, qid=qid, sample_weight=weight)
    matrix = cost_schemes.linear(K)
    if consistent:
        matrix = cost_schemes.with_consistent_terms(matrix)
    pairs = explicit(X, y, matrix, weight, qid)
    D, w, total = pairs

    def gradient(b):
        return D.T @ (w * losses.get(loss).derivative(D @ b)) / total + alpha * b

    found = minimize(
        objective, np.zeros(4), (loss, alpha, *pairs), jac=lambda b, *_: gradient(b), tol=1e-12
    )
    assert ranker.objective_ == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(ranker.coef_, found.x, rtol=1e-4, atol=1e-6)
    assert ranker.objective_ == pytest.approx(
        objective(ranker.coef_, loss, alpha, *pairs), rel=1e-10
    )
    assert np.abs(gradient(ranker.coef_)).max() < 1e-6
    np.testing.assert_allclose(ranker.pair_weights_, matrix)


@pytest.mark.parametrize(
    ("loss", "svc_loss"), [("hinge", "hinge"), ("squared_hinge", "squared_hinge")]
)
def test_ranksvm_is_linear_svc_on_explicit_pairs(loss, svc_loss):
    X, y, _ = sample(n=60, K=2, shift=0.5)
    alpha = 0.02
    D, _, total = explicit(X, y, cost_schemes.constant(2))
    # Half of the pairs turned round, so that both signs occur.
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    svc = LinearSVC(
        loss=svc_loss,
        C=1.0 / (alpha * total),
        fit_intercept=False,
        dual=True,
        tol=1e-8,
        max_iter=1_000_000,
    ).fit(D * sign[:, None], sign)
    ranker = PairwiseRanker(loss, alpha=alpha, tol=1e-8).fit(X, y)
    peer = objective(svc.coef_[0], loss, alpha, D, np.ones(len(D)), total)
    assert ranker.objective_ <= peer * (1 + 1e-7)
    assert ranker.objective_ == pytest.approx(peer, rel=1e-5)
    np.testing.assert_allclose(ranker.coef_, svc.coef_[0], rtol=2e-3, atol=2e-3)


def test_ranknet_is_logistic_regression_on_explicit_pairs():
    X, y, _ = sample(n=60, K=2, shift=0.5)
    alpha = 0.02
    D, _, total = explicit(X, y, cost_schemes.constant(2))
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    peer = LogisticRegression(
        C=1.0 / (alpha * total), fit_intercept=False, tol=1e-10, max_iter=1000
    ).fit(D * sign[:, None], sign)
    ranker = PairwiseRanker("logistic", alpha=alpha).fit(X, y)
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], rtol=1e-5, atol=1e-6)


def test_rankboost_objective_without_ridge_is_univariate_exponential():
    """Kotlowski et al.: with alpha = 0 the profiled univariate loss is the root of the pair sum."""
    X, y, _ = sample(n=100, K=2, shift=0.3)
    pairwise = PairwiseRanker("exponential", alpha=0.0, tol=1e-14).fit(X, y)
    single = UnivariateRanker("exponential", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(pairwise.coef_, single.coef_, rtol=1e-5, atol=1e-7)
    share = y.mean()
    assert single.objective_ == pytest.approx(
        2 * np.sqrt(share * (1 - share) * pairwise.objective_), rel=1e-9
    )


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("consistent", [True, False])
def test_hinge_gap_is_a_certificate(n, alpha, consistent):
    X, y, rng = sample(n=n, K=3, seed=n)
    qid = rng.integers(0, 2, n)
    ranker = PairwiseRanker("hinge", "linear", consistent, alpha).fit(X, y, qid=qid)
    assert ranker.dual_gap_ <= 1e-6
    assert "gap" in ranker.stopped_
    pairs = explicit(X, y, ranker.pair_weights_, qid=qid)
    value = objective(ranker.coef_, "hinge", alpha, *pairs)
    assert ranker.objective_ == pytest.approx(value, rel=1e-9)
    # Nothing nearby, and not the smooth losses' answer either, is below the bound.
    bound = ranker.objective_ * (1 - ranker.dual_gap_)
    for scale in (1e-4, 1e-2, 1.0):
        other = ranker.coef_ + scale * rng.normal(size=(50, 4))
        assert min(objective(b, "hinge", alpha, *pairs) for b in other) >= bound


def test_hinge_against_cvxpy():
    cp = pytest.importorskip("cvxpy")
    X, y, _ = sample(n=40, K=3)
    alpha = 0.01
    ranker = PairwiseRanker("hinge", "linear", True, alpha, tol=1e-8).fit(X, y)
    D, w, total = explicit(X, y, ranker.pair_weights_)
    b = cp.Variable(4)
    problem = cp.Problem(cp.Minimize(w @ cp.pos(1 - D @ b) / total + alpha / 2 * cp.sum_squares(b)))
    problem.solve(solver="CLARABEL")
    assert ranker.objective_ == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(ranker.coef_, b.value, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_large_sample_starts_from_a_part_and_ends_at_the_minimum(loss):
    """With many items the fit goes through a tenth of them; the optimum is not that part's."""
    X, y, rng = sample(n=30_000, p=5, K=3, shift=0.3)
    qid = rng.integers(0, 200, len(y))
    for query in (None, qid):
        ranker = PairwiseRanker(loss, alpha=1e-3).fit(X, y, qid=query)
        assert ranker.dual_gap_ <= 1e-6
        assert ranker.n_iter_ <= 8
        if loss != "hinge":
            closer = PairwiseRanker(loss, alpha=1e-3, tol=1e-15).fit(X, y, qid=query)
            np.testing.assert_allclose(ranker.coef_, closer.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_invariances(loss):
    X, y, rng = sample(n=70, K=3)
    tol = 1e-8 if loss == "hinge" else 1e-13
    settings = dict(loss=loss, alpha=0.1, tol=tol)
    close = dict(rtol=1e-3, atol=2e-4) if loss == "hinge" else dict(rtol=1e-5, atol=1e-7)
    coef = PairwiseRanker(**settings).fit(X, y).coef_
    # A constant added to every item, even one that dwarfs the features.
    for shift in (1.0, 1e6):
        moved = PairwiseRanker(**settings).fit(X + shift, y).coef_
        np.testing.assert_allclose(moved, coef, **close)
    # Reversed labels turn the coefficients round (linear costs are symmetric).
    np.testing.assert_allclose(PairwiseRanker(**settings).fit(X, -y).coef_, -coef, **close)
    # Order of the items, and names of the labels.
    p = rng.permutation(len(y))
    names = np.array(["c", "a", "b"])[y]
    named = PairwiseRanker(**settings, labels=["c", "a", "b"]).fit(X[p], names[p])
    np.testing.assert_allclose(named.coef_, coef, **close)
    assert named.score(X, names) == PairwiseRanker(**settings).fit(X[p], y[p]).score(X, y)
    # Whole weights repeat items.
    weight = rng.integers(0, 3, len(y))
    r = np.repeat(np.arange(len(y)), weight)
    np.testing.assert_allclose(
        PairwiseRanker(**settings).fit(X, y, sample_weight=weight).coef_,
        PairwiseRanker(**settings).fit(X[r], y[r]).coef_,
        **close,
    )
    # Sparse input.
    sparse = PairwiseRanker(**settings).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.coef_, coef, **close)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_matrix(X)), X @ sparse.coef_, rtol=1e-12
    )


def test_pairs_of_all_queries_are_pooled():
    """Three identical copies of a query give what one gives; a query of one class adds nothing."""
    X, y, _ = sample(n=40, K=2)
    once = PairwiseRanker(alpha=0.1).fit(X, y)
    thrice = PairwiseRanker(alpha=0.1).fit(
        np.r_[X, X + 5, X - 3, X[:4]],
        np.r_[y, y, y, [1, 1, 1, 1]],
        qid=np.repeat([7, 3, 9, 1], [40, 40, 40, 4]),
    )
    np.testing.assert_allclose(thrice.coef_, once.coef_, rtol=1e-6)
    assert thrice.objective_ == pytest.approx(once.objective_, rel=1e-8)


def test_two_classes_need_no_extra_terms():
    X, y, _ = sample(K=2)
    with_terms = PairwiseRanker(consistent=True).fit(X, y)
    without = PairwiseRanker(consistent=False).fit(X, y)
    np.testing.assert_array_equal(with_terms.coef_, without.coef_)


def test_consistent_needs_a_scale():
    X, y, _ = sample(K=4)
    with pytest.raises(CostConditionError, match="consistent=False"):
        PairwiseRanker(costs="constant").fit(X, y)
    PairwiseRanker(costs="constant", consistent=False).fit(X, y)
    X, y, _ = sample(K=3)
    no_far_cost = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(CostConditionError, match="costs"):
        PairwiseRanker(costs=no_far_cost).fit(X, y)


def test_extreme_scorers():
    x = np.linspace(-1, 1, 40)[:, None]
    for loss in LOSSES:
        perfect = PairwiseRanker(loss, alpha=0.1).fit(x, (x.ravel() > 0).astype(int))
        assert perfect.score(x, x.ravel() > 0) == 1.0
        reversed_ = PairwiseRanker(loss, alpha=0.1).fit(x, (x.ravel() < 0).astype(int))
        assert reversed_.coef_[0] == pytest.approx(-perfect.coef_[0], rel=1e-3)
        constant = PairwiseRanker(loss).fit(np.ones((4, 2)), [0, 1, 0, 1])
        np.testing.assert_allclose(constant.coef_, 0.0, atol=1e-12)
        assert constant.score(np.ones((4, 2)), [0, 1, 0, 1]) == 0.5
        assert constant.objective_ == pytest.approx(float(losses.get(loss)(0.0)))


def test_scores_of_a_thousand_do_not_overflow():
    X, y, _ = sample(K=2)
    ranker = PairwiseRanker("exponential", alpha=1e-6).fit(1e4 * X, y)
    assert np.isfinite(ranker.coef_).all()
    assert ranker.objective_ < 1.0


def test_tools_of_scikit_learn():
    X, y, _ = sample(n=120, K=3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), PairwiseRanker()),
        {"pairwiseranker__alpha": [0.01, 1.0], "pairwiseranker__loss": ["hinge", "logistic"]},
        cv=StratifiedKFold(3),
    ).fit(X, y)
    assert 0.5 < search.best_score_ <= 1.0
    ranker = PairwiseRanker("squared_hinge").fit(X, y)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.predict(X), ranker.decision_function(X))
    assert clone(ranker).get_params() == ranker.get_params()


def test_more_columns_than_the_basis_takes():
    rng = np.random.default_rng(3)
    X = sp.random(400, 700, density=0.05, format="csr", random_state=4)
    y = (X @ rng.normal(size=700) > 0).astype(int)
    for loss in LOSSES:
        ranker = PairwiseRanker(loss, alpha=1e-1).fit(X, y)
        assert ranker.dual_gap_ < 1e-5


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-9])
def test_the_tolerance_is_relative_to_the_objective_reached(loss, alpha):
    """Of separable classes it is far below that at zero."""
    X = np.random.default_rng(0).normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int)
    least = PairwiseRanker(loss, alpha=alpha, tol=1e-15, max_iter=1000).fit(X, y)
    assert least.dual_gap_ < 1e-12 and least.objective_ < 0.05
    for tol in (1e-2, 1e-4, 1e-10):
        found = PairwiseRanker(loss, alpha=alpha, tol=tol).fit(X, y)
        assert 0 <= found.objective_ / least.objective_ - 1 + 1e-14 < tol + 2e-14


def test_says_when_it_stops_early():
    X, y, _ = sample()
    for loss in ("logistic", "hinge"):
        with pytest.warns(ConvergenceWarning, match="max_iter (Newton )?steps"):
            ranker = PairwiseRanker(loss, alpha=1e-4, max_iter=1).fit(X, y)
        assert "max_iter" in ranker.stopped_


def test_verbose_shows_a_bar(capsys):
    X, y, _ = sample()
    for loss in ("logistic", "hinge"):
        PairwiseRanker(loss, verbose=1).fit(X, y)
        assert "Newton" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        (dict(loss="absolute"), ValueError, "loss must be one of"),
        (dict(alpha=-1.0), ValueError, "alpha must be at least 0"),
        (dict(loss="hinge", alpha=0.0), ValueError, "alpha must be greater than 0"),
        (dict(alpha="1"), TypeError, "alpha must be a real number"),
        (dict(costs="cubic"), ValueError, "costs must be one of"),
        (dict(costs=np.ones((3, 3))), ValueError, "below the diagonal must be zero"),
        (dict(costs=np.triu(np.ones((2, 2)), 1)), ValueError, "costs must have shape"),
        (dict(consistent=1), TypeError, "consistent must be True or False"),
        (dict(tol=0.0), ValueError, "tol must be greater than 0"),
        (dict(max_iter=0), ValueError, "max_iter must be at least 1"),
    ],
)
def test_bad_parameters(parameters, error, match):
    X, y, _ = sample()
    with pytest.raises(error, match=match):
        PairwiseRanker(**parameters).fit(X, y)


def test_bad_data():
    X, y, _ = sample()
    ranker = PairwiseRanker()
    with pytest.raises(ValueError, match="y must hold at least 2 classes"):
        ranker.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="within a query with different labels"):
        ranker.fit(X, y, qid=np.arange(len(y)))
    with pytest.raises(ValueError, match="of positive weight"):
        ranker.fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="qid and y must have the same length"):
        ranker.fit(X, y, qid=[1, 2])
    with pytest.raises(ValueError, match="NaN"):
        ranker.fit(np.where(X > 0, X, np.nan), y)
    with pytest.raises(NotFittedError):
        PairwiseRanker().decision_function(X)
    with pytest.raises(ValueError, match="features"):
        PairwiseRanker().fit(X, y).predict(X[:, :2])


def test_group_sizes_are_queries():
    X, y, _ = sample(n=60)
    sizes = [10, 30, 20]
    by_qid = PairwiseRanker().fit(X, y, qid=np.repeat([5, 2, 9], sizes))
    by_group = PairwiseRanker().fit(X, y, group=sizes)
    np.testing.assert_array_equal(by_group.coef_, by_qid.coef_)
    assert by_group.score(X, y, group=sizes) == by_qid.score(X, y, qid=np.repeat([0, 1, 2], sizes))
    with pytest.raises(TypeError):
        PairwiseRanker().fit(X, y, np.ones(60))


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("queries", [False, True])
def test_separable_data_without_a_ridge(loss, queries):
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 1, 1, 2])
    qid = np.array([0, 0, 1, 1]) if queries else None
    model = PairwiseRanker(loss, "constant", False, alpha=0.0)
    with pytest.warns(SeparationWarning, match="separates the classes of y so that"):
        model.fit(x, y, qid=qid)
    assert 0 < model.objective_ < 4e-10
    assert np.isfinite(model.coef_).all()
    # In part: the second column orders one query and says nothing in the other.
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.0, 0.0], [1.0, 0.0]])
    with pytest.warns(SeparationWarning, match="in part"):
        model.fit(X, [0, 1, 0, 1, 1, 0], qid=[0, 0, 1, 1, 2, 2])
    at_zero = float(losses.get(loss)(0.0))
    assert model.objective_ == pytest.approx(2 / 3 * at_zero, rel=1e-8)
    # Terms that pull both ways leave nothing to separate.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PairwiseRanker(loss, "linear", True, alpha=0.0).fit(x, [0, 1, 1, 2])


def test_least_squares_and_squared_hinge_need_no_ridge():
    x, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0, 0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        squared = PairwiseRanker("squared", alpha=0.0).fit(x, y)
        hinge = PairwiseRanker("squared_hinge", alpha=0.0).fit(x, y)
    differences = np.array([2.0, 1.0, 4.0, 3.0])
    slope = differences.sum() / (differences @ differences)
    assert squared.coef_[0] == pytest.approx(slope, rel=1e-12)
    assert hinge.objective_ == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "squared"])
def test_collinear_columns_give_least_norm(loss):
    X, y, rng = sample(n=200, shift=0.2)
    qid = rng.integers(0, 4, 200)
    plain = PairwiseRanker(loss, alpha=0.0).fit(X, y, qid=qid)
    # Twice a column, and one that is constant within queries, so that it orders no pair.
    wide = np.column_stack([X, 2.0 * X[:, 0], 100.0 * qid])
    with pytest.warns(CollinearityWarning, match="least norm"):
        ranker = PairwiseRanker(loss, alpha=0.0).fit(wide, y, qid=qid)
    expected = np.append(plain.coef_, [2.0 * plain.coef_[0] / 5.0, 0.0])
    expected[0] /= 5.0
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_units_that_leave_the_range_of_squares(loss):
    X, y, _ = sample(n=60)
    at_zero = PairwiseRanker(loss, alpha=1e6).fit(X * 1e-300, y)
    assert np.abs(at_zero.coef_).max() < 1e-290
    constant = at_zero.objective_
    for unit in (1e-300, 1e-160, 1e9, 1e160):
        ranker = PairwiseRanker(loss, alpha=1e-3).fit(X * unit, y)
        assert np.isfinite(ranker.coef_).all()
        assert ranker.objective_ <= constant * (1 + 1e-12)
    cheap = PairwiseRanker(loss, 1e-300 * np.triu(np.ones((3, 3)), 1), False).fit(X, y)
    assert np.isfinite(cheap.coef_).all()
    assert 0 < cheap.objective_ < 1e-299
    light = PairwiseRanker(loss).fit(X, y, sample_weight=np.full(60, 1e-200))
    np.testing.assert_allclose(light.coef_, PairwiseRanker(loss).fit(X, y).coef_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("unit", [1.0, 1e9, 1e12])
@pytest.mark.parametrize("alpha", [1e-3, 1e-20, 1e-30])
def test_hinge_is_never_worse_than_no_model(unit, alpha):
    X, y, _ = sample(n=100)
    ranker = PairwiseRanker("hinge", alpha=alpha).fit(X * unit, y)
    pairs = explicit(X * unit, y, ranker.pair_weights_)
    value = objective(ranker.coef_, "hinge", alpha, *pairs)
    assert ranker.objective_ == pytest.approx(value, rel=1e-9)
    assert value <= objective(np.zeros(4), "hinge", alpha, *pairs)
    # What a ridge of no weight leaves is a linear program: nothing is below its value.
    best = PairwiseRanker("hinge", alpha=1e-9).fit(X, y).objective_
    assert value >= best * (1 - 1e-5)
    if alpha < 1e-19 or unit > 1:
        assert value <= best * (1 + 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_time_stamps_are_columns_like_others(loss):
    X, y, _ = sample(n=120)
    X = np.round(X * 1024) / 1024
    plain = PairwiseRanker(loss, tol=1e-9).fit(X, y)
    for moved in (X + 1.7e9, sp.csr_array(X + 1.7e9)):
        ranker = PairwiseRanker(loss, tol=1e-9).fit(moved, y)
        np.testing.assert_allclose(ranker.coef_, plain.coef_, rtol=2e-3, atol=1e-5)
        assert ranker.objective_ == pytest.approx(plain.objective_, rel=1e-8)


def test_a_loss_of_ones_own():
    class Cubic(losses.SquaredHinge):
        """(1 - s)_+^3, with facts of its own: nothing else knows it."""

        name = "cubic"
        hinge_parts = ()

        def __call__(self, s):
            return np.maximum(1.0 - np.asarray(s, float), 0.0) ** 3

        def derivative(self, s):
            return -3.0 * np.maximum(1.0 - np.asarray(s, float), 0.0) ** 2

        def second_derivative(self, s):
            return 6.0 * np.maximum(1.0 - np.asarray(s, float), 0.0)

    X, y, _ = sample(n=50)
    ranker = PairwiseRanker(Cubic(), alpha=0.01).fit(X, y)
    D, w, total = explicit(X, y, ranker.pair_weights_)
    found = minimize(
        lambda b: w @ Cubic()(D @ b) / total + 0.005 * b @ b, np.zeros(4), options={"gtol": 1e-9}
    )
    assert ranker.objective_ == pytest.approx(found.fun, rel=1e-9)


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge", "squared"])
def test_smooth_gap_is_the_ridges_bound(loss):
    """After one step, far from the end: |gradient|^2 / (2 alpha), relative, above the truth."""
    X, y, _ = sample(n=90)
    alpha = 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = PairwiseRanker(loss, alpha=alpha, max_iter=1, tol=1e-14).fit(X, y)
    late = PairwiseRanker(loss, alpha=alpha).fit(X, y)
    D, w, total = explicit(X, y, early.pair_weights_)
    slope = losses.get(loss).derivative(D @ early.coef_)
    gradient = D.T @ (w * slope) / total + alpha * early.coef_
    bound = gradient @ gradient / (2 * alpha) / early.objective_
    assert early.dual_gap_ == pytest.approx(bound, rel=1e-5, abs=1e-15)
    assert early.objective_ * (1 - early.dual_gap_) <= late.objective_ * (1 + 1e-9)


def pair_risk(X, y, loss="exponential", alpha=0.1):
    p = X.shape[1]
    sums = PairSums(y, loss)
    return PairRisk(Design(X, np.zeros(p), np.ones(p)), sums, np.full(p, alpha))


def test_points_that_overflow_are_infinitely_bad():
    X, y, _ = sample()
    risk = pair_risk(1e200 * X, y)
    far = np.full(4, 1e120)
    with np.errstate(over="ignore", invalid="ignore"):
        assert risk.point(far) is None and risk.value(far) == np.inf
        assert risk.value_gradient_hessian(far) == (np.inf, None, None)


def test_parts_that_are_too_small_are_none():
    X, y, _ = sample(n=500)
    risk = pair_risk(X, y)
    assert risk.thinned(0.1) is None
    rows, part = risk.sums.thinned(0.5)
    assert risk.thinned(0.5).design.shape[0] == part.n == len(rows) > 100
    # Queries of one class have no pairs.
    alone = PairRisk(risk.design, PairSums(y, qid=y), risk.ridge)
    assert alone.sums.thinned(0.9)[1].n > 100 and alone.thinned(0.9) is None


def test_a_part_unlike_the_whole_costs_steps_and_nothing_else():
    X, y, rng = sample(n=400, p=3)
    risk = pair_risk(X, y, "logistic", 1e-3)
    unlike = pair_risk(1e-3 * rng.normal(size=(400, 3)), rng.permutation(y), "logistic", 1e-3)
    exact = solve(risk, np.zeros(3), 100, tol=1e-12)
    helped = solve(risk.in_basis(None, unlike), np.zeros(3), 200, tol=1e-12)
    assert helped.converged and helped.n_iter > exact.n_iter
    np.testing.assert_allclose(helped.x, exact.x, rtol=1e-5)
    np.testing.assert_allclose(helped.value, exact.value, rtol=1e-10)


def test_a_start_that_loses_much_on_the_rest_is_not_taken():
    X, y, rng = sample(n=21_000, p=2, K=2)
    left_out = np.setdiff1d(np.arange(len(y)), PairSums(y).thinned(0.25)[0])[0]
    apart = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    X[left_out] = (-1 if y[left_out] else 1) * 60.0 * apart / np.linalg.norm(apart)
    found = PairwiseRanker("exponential", alpha=1e-3).fit(X, y)
    scores = X @ found.coef_
    top, low = scores[y == 1], scores[y == 0]
    value = np.exp(-top).mean() * np.exp(low).mean() + 0.5e-3 * found.coef_ @ found.coef_
    np.testing.assert_allclose(found.objective_, value, rtol=1e-9)
    assert found.objective_ < 1.0 and found.dual_gap_ < 1e-6


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize(("p", "n_queries"), [(60, 60), (5, 3000)])
def test_kept_pairs_end_where_newton_does(monkeypatch, loss, alpha, p, n_queries):
    """BFGS from a multiple of the identity (wide) or a part's Hessian (long), and its fallback."""
    rng = np.random.default_rng(7)
    qid = np.repeat(np.arange(n_queries), 8)
    X = rng.normal(size=(qid.size, p)) * np.exp(rng.normal(size=p))
    y = np.digitize(X[:, 0] + rng.logistic(size=qid.size), [0.0, 2.0])
    fit = PairwiseRanker(loss, alpha=alpha).fit(X, y, qid=qid)
    monkeypatch.setattr("rankbook.models._pair_objective.PairRisk.with_guess", lambda risk, _: risk)
    newton = PairwiseRanker(loss, alpha=alpha, tol=1e-14).fit(X, y, qid=qid)
    assert fit.stopped_ == "half the squared Newton decrement is at most tol"
    assert fit.objective_ == pytest.approx(newton.objective_, rel=3e-10)
    # Where BFGS is of no use from the start, Newton takes over.
    monkeypatch.undo()
    monkeypatch.setattr("rankbook.models._pair_fit._PROXY_STEPS", 1)
    monkeypatch.setattr("rankbook.models._pair_fit._PATIENCE", 0)
    after = PairwiseRanker(loss, alpha=alpha).fit(X, y, qid=qid)
    assert after.objective_ == pytest.approx(newton.objective_, rel=3e-10)
    assert after.dual_gap_ >= (after.objective_ / newton.objective_ - 1) * (1 - 1e-6) - 1e-14


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_a_pair_far_apart_has_the_minimum_of_one_variable(loss):
    """In its unit the ridge is so small that no other curvature may stand in for it."""
    X, alpha = np.array([[0.0, 0.0], [3e3, 5e3]]), 2e-7
    square = float(X[1] @ X[1])
    term = losses.get(loss)

    def slope(margin):
        return float(term.derivative(margin)) + alpha * margin / square

    margin = brentq(slope, 1.0, 100.0, xtol=1e-13)
    least = float(term(np.array(margin))) + alpha / 2 * margin**2 / square
    ranker = PairwiseRanker(loss=loss, alpha=alpha).fit(X, [0, 1])
    assert ranker.objective_ == pytest.approx(least, rel=1e-9)
    assert_allclose(ranker.coef_, margin * X[1] / square, rtol=1e-6)
