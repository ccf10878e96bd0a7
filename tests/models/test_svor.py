"""SVOR: cvxpy, scikit-learn's SVC, closed forms, invariances, degenerate and bad input."""

from __future__ import annotations

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from rankbook.exceptions import KernelMemoryError, ThresholdOrderWarning
from rankbook.models import SVOR, RankBoundarySVM

CONSTRAINTS = ["implicit", "explicit", "free"]
pytestmark = pytest.mark.filterwarnings("ignore::rankbook.exceptions.ThresholdOrderWarning")


def make_data(n=40, n_classes=3, seed=0, p=2, noise=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = np.sin(2 * X[:, 0]) + X[:, -1] + noise * rng.normal(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    return X, y


def reference(K, y, C, constraints, weight=None):
    """The machine as a convex program in the span of the kernel's eigenvectors."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    v, theta = cp.Variable(len(K)), cp.Variable(y.max())
    f, total = root @ v, 0
    weight = np.ones(len(y)) if weight is None else weight
    for j in range(y.max()):
        near = np.ones(len(y), bool) if constraints == "implicit" else (y == j) | (y == j + 1)
        sign = np.where(y > j, 1.0, -1.0)[near]
        hinges = cp.pos(1 - cp.multiply(sign, f[near] - theta[j]))
        total += cp.sum(cp.multiply(weight[near], hinges))
    order = [theta[:-1] <= theta[1:]] if constraints == "explicit" and y.max() > 1 else []
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + C * total), order)
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return problem.value, f.value


def objective(machine, K, y, C):
    """The objective at a fitted machine, from its public attributes alone."""
    beta = np.zeros(len(y))
    beta[machine.support_] = machine.dual_coef_
    f, total = K @ beta, 0.0
    for j, theta in enumerate(machine.thresholds_):
        near = np.ones(len(y), bool)
        if machine.constraints != "implicit":
            near = (y == j) | (y == j + 1)
        sign = np.where(y > j, 1.0, -1.0)
        total += np.maximum(0, 1 - sign * (f - theta))[near].sum()
    return 0.5 * beta @ f + C * total


def kernel_of(name, X, gamma=0.7):
    if name == "linear":
        # A shift of the columns moves scores and thresholds alike, and so nothing else.
        return linear_kernel(X - X.mean(axis=0))
    if name == "poly":
        return polynomial_kernel(X, gamma=gamma, degree=2, coef0=1.0)
    return rbf_kernel(X, gamma=gamma)


def machine_of(name, X, **options):
    if name == "precomputed":
        return SVOR(kernel="precomputed", **options), rbf_kernel(X, gamma=0.7)
    if name == "callable":
        return SVOR(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.7), **options), X
    return SVOR(kernel=name, gamma=0.7, degree=2, coef0=1.0, **options), X


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "precomputed", "callable"])
def test_objective_is_cvxpys(name, constraints):
    for seed in range(12):
        C = [0.05, 1.0, 30.0][seed % 3]
        X, y = make_data(18 + seed, 2 + seed % 5, seed)
        machine, items = machine_of(name, X, constraints=constraints, C=C)
        machine.fit(items, y)
        K = kernel_of(name, X)
        best, f = reference(K, y, C, constraints)
        assert machine.objective_ == pytest.approx(best, rel=1e-6), (seed, C)
        assert machine.dual_gap_ <= 1e-6
        if name != "linear":
            assert objective(machine, K, y, C) == pytest.approx(machine.objective_, rel=1e-9)
            assert_allclose(machine.decision_function(items), f, atol=2e-3)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_weights_scale_the_bounds(constraints):
    X, y = make_data(30, 4, 3)
    weight = np.random.default_rng(0).integers(0, 4, 30).astype(float)
    weight[[np.flatnonzero(y == k)[0] for k in range(4)]] = 1.0
    machine = SVOR(constraints, gamma=0.7, C=2.0).fit(X, y, sample_weight=weight)
    best, _ = reference(rbf_kernel(X, gamma=0.7), y, 2.0, constraints, weight)
    assert machine.objective_ == pytest.approx(best, rel=1e-6)
    assert (weight[machine.support_] > 0).all()
    assert (np.abs(machine.dual_coef_) <= 3 * 2.0 * weight[machine.support_] * (1 + 1e-9)).all()


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_two_classes_are_the_support_vector_machine(constraints, kernel):
    X, y = make_data(80, 2, 5)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 80)
    options = {"kernel": kernel, "C": 3.0, "gamma": 0.5, "degree": 2, "coef0": 1.0}
    theirs = SVC(**options, tol=1e-10).fit(X, y, sample_weight=weight)
    ours = SVOR(constraints, **options).fit(X, y, sample_weight=weight)
    found = ours.decision_function(X) - ours.thresholds_[0]
    assert_allclose(found, theirs.decision_function(X), atol=1e-5)
    assert_array_equal(ours.support_, np.sort(theirs.support_))
    assert_array_equal(ours.n_support_, theirs.n_support_)
    assert_array_equal(ours.predict(X), theirs.predict(X))


def test_scale_is_scikit_learns():
    X, y = make_data(60, 2, 6)
    theirs = SVC(C=2.0, tol=1e-10).fit(X, y)
    for items in (X, sp.csr_array(X)):
        ours = SVOR(C=2.0).fit(items, y)
        found = ours.decision_function(X) - ours.thresholds_[0]
        assert_allclose(found, theirs.decision_function(X), atol=1e-5)


def test_low_rank_and_dense_agree(monkeypatch):
    X, y = make_data(700, 4, 7)
    fits = []
    for small in (10, 1000):
        monkeypatch.setattr("rankbook.solvers._kernel_systems._SMALL", small)
        fits.append(SVOR(gamma=0.3, C=20.0).fit(X, y))
    low, dense = fits
    assert low.rank_ < 200 and dense.rank_ == 700
    assert max(low.dual_gap_, dense.dual_gap_) <= 1e-6
    assert low.objective_ == pytest.approx(dense.objective_, rel=2e-6)
    K = rbf_kernel(X, gamma=0.3)
    assert objective(low, K, y, 20.0) == pytest.approx(low.objective_, rel=1e-9)


def test_linear_kernel_of_many_items():
    X, y = make_data(600, 3, 8, p=4)
    machine = SVOR(kernel="linear", C=0.5).fit(X, y)
    assert machine.rank_ == 4
    v, theta = cp.Variable(4), cp.Variable(2)
    hinges = [
        cp.sum(cp.pos(1 - cp.multiply(np.where(y > j, 1.0, -1.0), X @ v - theta[j])))
        for j in range(2)
    ]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + 0.5 * sum(hinges)))
    assert machine.objective_ == pytest.approx(problem.solve(solver="CLARABEL"), rel=1e-6)
    assert_allclose(machine.coef_, v.value, atol=1e-3)
    assert_allclose(machine.decision_function(X), X @ machine.coef_, atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n", [60, 450])
def test_sparse_is_dense(kernel, n):
    X, y = make_data(n, 3, 9)
    X[np.abs(X) < 0.5] = 0.0
    dense = SVOR(kernel=kernel, gamma=0.5).fit(X, y)
    sparse = SVOR(kernel=kernel, gamma=0.5).fit(sp.csr_array(X), y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-6)
    for items in (X, sp.csr_array(X)):
        margins = sparse.decision_function(items) - sparse.thresholds_[0]
        expected = dense.decision_function(items) - dense.thresholds_[0]
        assert_allclose(margins, expected, atol=5e-3)


def test_implicit_thresholds_are_in_order():
    for seed in range(8):
        X, y = make_data(40, 5, seed, noise=2.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (np.diff(SVOR(C=0.3).fit(X, y).thresholds_) >= 0).all()


# One item of the middle class, which no direction tells from the others: it is given up on both
# sides, the first threshold one above the common score, the second one below.
CROSSED_X = np.array([[0.0], [2.0], [0.0], [2.0], [1.0], [0.0], [2.0], [0.0], [2.0]])
CROSSED_Y = np.array([0, 0, 0, 0, 1, 2, 2, 2, 2])


def test_free_thresholds_may_cross_and_are_returned_as_they_are():
    with pytest.warns(ThresholdOrderWarning, match="out of order"):
        free = SVOR("free", kernel="linear", C=1.0).fit(CROSSED_X, CROSSED_Y)
    assert_allclose(free.thresholds_, [1.0, -1.0], atol=1e-6)
    # Two hinges of 2 for the middle item, none for the others.
    assert free.objective_ == pytest.approx(4.0)
    explicit = SVOR("explicit", kernel="linear", C=1.0).fit(CROSSED_X, CROSSED_Y)
    assert explicit.thresholds_[0] <= explicit.thresholds_[1]
    assert free.objective_ < explicit.objective_
    # The label is that of the first threshold that the score does not exceed.
    scores = free.decision_function(CROSSED_X)
    first = [next((j for j in (0, 1) if s <= free.thresholds_[j]), 2) for s in scores]
    assert_array_equal(free.predict(CROSSED_X), first)


def test_thresholds_are_midway():
    machine = SVOR(kernel="linear", C=100.0).fit([[0.0], [1.0], [5.0]], [0, 1, 2])
    assert_allclose(machine.coef_, [2.0], atol=1e-6)
    # The first is pinned between 0 and 1; the second may lie anywhere from 3 to 9.
    assert_allclose(machine.thresholds_, [1.0, 6.0], atol=1e-6)


def test_labels_shift_scale_and_order():
    X, y = make_data(50, 3, 10)
    machine = SVOR(gamma=0.5, C=2.0).fit(X, y)
    named = SVOR(gamma=0.5, C=2.0, labels=["a", "z", "m"]).fit(X, np.array(["a", "z", "m"])[y])
    assert_array_equal(named.predict(X), np.array(["a", "z", "m"])[machine.predict(X)])
    moved = SVOR(gamma=0.5, C=2.0).fit(X + 1e6, y)
    assert_allclose(moved.decision_function(X + 1e6), machine.decision_function(X), atol=1e-5)
    scaled = SVOR(gamma=0.5 / 9, C=2.0).fit(3 * X, y)
    assert_allclose(scaled.thresholds_, machine.thresholds_, atol=1e-6)
    reversed_ = SVOR(gamma=0.5, C=2.0).fit(X, 2 - y)
    assert_allclose(reversed_.decision_function(X), -machine.decision_function(X), atol=1e-6)
    order = np.random.default_rng(0).permutation(50)
    shuffled = SVOR(gamma=0.5, C=2.0).fit(X[order], y[order])
    assert_allclose(shuffled.decision_function(X), machine.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("size", [1.0, 1e9])
def test_large_features(kernel, size):
    X, y = make_data(40, 3, 11)
    plain = SVOR(kernel=kernel, C=1e3).fit(X, y)
    # Linear scores of features a thousand million times as large want a C so much smaller.
    C = 1e3 / size**2 if kernel == "linear" else 1e3
    large = SVOR(kernel=kernel, C=C).fit(size * X + 1e9, y)
    margins = large.decision_function(size * X + 1e9) - large.thresholds_[0]
    assert_allclose(margins, plain.decision_function(X) - plain.thresholds_[0], atol=1e-4)


def test_features_of_1e9_with_a_fixed_kernel():
    X, y = make_data(40, 3, 12)
    with pytest.warns(ConvergenceWarning, match="Scale the columns of X"):
        machine = SVOR(kernel="linear").fit(1e9 * X, y)
    assert np.isfinite(machine.decision_function(1e9 * X)).all()
    # Two clusters far apart: inner products alone would lose all distances within them.
    far = X + 1e9 * (np.arange(40) % 2)[:, None]
    K = rbf_kernel(X, gamma=0.5) * (np.arange(40)[:, None] % 2 == np.arange(40) % 2)
    assert SVOR(gamma=0.5).fit(far, y).objective_ == pytest.approx(
        SVOR(kernel="precomputed").fit(K, y).objective_, rel=1e-6
    )
    with pytest.raises(ValueError, match="sparse X"):
        SVOR(gamma=0.5).fit(sp.csr_array(far), y)


def test_duplicates_and_constant_columns():
    X, y = make_data(30, 3, 13)
    doubled = SVOR(gamma=0.5).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    heavier = SVOR(gamma=0.5, C=2.0).fit(X, y)
    assert doubled.objective_ == pytest.approx(heavier.objective_, rel=1e-6)
    padded = SVOR(gamma=0.5).fit(np.column_stack([X, np.full(30, 7.0)]), y)
    assert padded.objective_ == pytest.approx(SVOR(gamma=0.5).fit(X, y).objective_, rel=1e-6)
    for kernel in ("rbf", "linear"):
        constant = SVOR(kernel=kernel, C=1.0).fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 2])
        assert np.ptp(constant.decision_function(np.ones((3, 2)))) == 0
        # Hinges of one score: thresholds at 1 and at 1 above it cost 2 * 3 and 2 * 1.
        assert constant.objective_ == pytest.approx(8.0)


def test_support_vectors_alone_decide():
    X, y = make_data(60, 3, 14)
    machine = SVOR(gamma=0.5, C=10.0).fit(X, y)
    assert len(machine.support_) < 60
    K = rbf_kernel(X, X[machine.support_], gamma=0.5)
    assert_allclose(K @ machine.dual_coef_, machine.decision_function(X), rtol=1e-10)
    again = SVOR(gamma=0.5, C=10.0).fit(X[machine.support_], y[machine.support_])
    assert_allclose(again.decision_function(X), machine.decision_function(X), atol=1e-6)


def test_a_tolerance_beyond_rounding_is_not_claimed():
    X, y = make_data(450, 3, 15)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        machine = SVOR(C=100.0, gamma=0.5, tol=1e-16).fit(X, y)
    assert 1e-16 < machine.dual_gap_ < 1e-6


def test_memory_is_refused_with_the_arithmetic():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 50)), np.arange(600) % 3
    with pytest.raises(KernelMemoryError, match=r"n = 600 .* 0\.00576 GB, more than .* 0\.005 GB"):
        SVOR(gamma=1.0, max_memory=0.005).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be greater than 0"),
        ({"C": -1.0}, "C must be greater than 0"),
        ({"gamma": 0.0}, "gamma must be greater than 0"),
        ({"gamma": "auto"}, "gamma must be one of 'scale'"),
        ({"tol": 0.0}, "tol must be greater than 0"),
        ({"kernel": "sigmoid"}, "kernel must be one of"),
        ({"constraints": "none"}, "constraints must be one of"),
        ({"kernel": "poly", "degree": 0}, "degree must be at least 1"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0 must be at least 0"),
        ({"max_memory": 0}, "max_memory must be greater than 0"),
        ({"kernel": lambda A, B: np.ones(3)}, "kernel must return an array of shape"),
        ({"kernel": lambda A, B: -A @ B.T}, "positive semidefinite"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_parameters(options, message):
    X, y = make_data(20)
    with pytest.raises(ValueError, match=message):
        SVOR(**options).fit(X, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [SVOR, RankBoundarySVM])
@pytest.mark.parametrize(
    ("kernel", "unit", "message"),
    [
        ("linear", 1e160, "X must give finite kernels, got inf from the linear kernel"),
        ("rbf", 1e160, "gamma='scale' is .* scale X"),
        ("rbf", 1e-160, "gamma='scale' is inf .* scale X"),
    ],
)
def test_items_whose_kernels_overflow_are_refused(model, kernel, unit, message):
    X, y = make_data(40)
    with pytest.raises(ValueError, match=message):
        model(kernel=kernel).fit(X * unit, y)


def test_bad_data():
    X, y = make_data(20)
    K = rbf_kernel(X)
    for bad, message in (
        (K + np.triu(np.ones((20, 20)), 1), "symmetric"),
        (K - 2 * np.eye(20), "positive semidefinite"),
    ):
        with pytest.raises(ValueError, match=message):
            SVOR(kernel="precomputed").fit(bad, y)
    with pytest.raises(ValueError, match="2 classes"):
        SVOR().fit(X, np.zeros(20))
    with pytest.raises(ValueError, match=r"every class, got none of \[3, 4"):
        SVOR(labels=list(range(30))).fit(X, y)
    with pytest.raises(ValueError, match="finite kernels"):
        SVOR(kernel="poly", gamma=1.0).fit(1e200 * X, y)
    with pytest.raises(TypeError, match="sparse X"):
        SVOR(kernel="poly").fit(sp.csr_array(X), y)
    with pytest.raises(ValueError, match="sample_weight"):
        SVOR().fit(X, y, sample_weight=-np.ones(20))


def test_a_nearly_definite_kernel_is_taken():
    X, y = make_data(20)
    K = rbf_kernel(X).astype(np.float32).astype(float)
    machine = SVOR(kernel="precomputed").fit(K, y)
    assert machine.objective_ == pytest.approx(SVOR(gamma=0.5).fit(X, y).objective_, rel=1e-4)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_check_estimator(constraints):
    check_estimator(SVOR(constraints), on_skip=None)


def test_pipeline_grid_search_pickle(capsys):
    X, y = make_data(60, 3, 16)
    pipeline = make_pipeline(StandardScaler(), SVOR())
    search = GridSearchCV(pipeline, {"svor__C": [0.1, 1.0]}, cv=StratifiedKFold(3)).fit(X, y)
    assert search.best_score_ > 0.6
    machine = clone(SVOR(C=2.0, verbose=1)).fit(X, y)
    assert "Interior point" in capsys.readouterr().err
    copy = pickle.loads(pickle.dumps(machine))
    assert_array_equal(copy.predict(X), machine.predict(X))
    kernels = rbf_kernel(X)
    found = GridSearchCV(SVOR(kernel="precomputed"), {"C": [1.0]}, cv=StratifiedKFold(3))
    assert found.fit(kernels, y).best_score_ > 0.6


def test_refitting_with_another_kernel_forgets_the_first():
    X, y = make_data(20)
    machine = SVOR(kernel="linear").fit(X, y)
    machine.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(machine, "coef_")
