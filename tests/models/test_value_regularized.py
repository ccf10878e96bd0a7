"""ValueRegularizedRanker: closed forms, independent minimisers, invariances, bad input."""

import pickle
import tracemalloc
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankbook.models import ValueRegularizedRanker, _normal_equations


def all_pairs(y, qid=None):
    """Every (preferred, other) pair of a query with its label difference, by brute force."""
    qid = np.zeros(len(y)) if qid is None else np.asarray(qid)
    pairs = [(i, j) for i, j in permutations(range(len(y)), 2) if qid[i] == qid[j] and y[i] > y[j]]
    return np.array(pairs), np.array([y[i] - y[j] for i, j in pairs], dtype=float)


def objective(b, X, pairs, weights, theta, alpha):
    scores = X @ b
    linear = np.mean(weights * (scores[pairs[:, 1]] - scores[pairs[:, 0]]))
    return linear + theta * np.mean(scores**2) + alpha / 2 * b @ b


@pytest.fixture
def data(rng=0):
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(40, 4)) + 0.3
    y = rng.integers(1, 6, size=40)
    return X, y, rng.permutation(np.repeat([7, 3, 5, 9], [15, 12, 12, 1]))


@parametrize_with_checks([ValueRegularizedRanker(), ValueRegularizedRanker(theta=0.5, alpha=0.0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("theta, alpha", [(1e-4, 1.0), (2.0, 0.1), (0.0, 0.3), (0.7, 0.0)])
@pytest.mark.parametrize("queries", [False, True])
def test_equals_explicit_pairs_and_scipy(data, theta, alpha, queries):
    X, y, qid = data
    qid = qid if queries else None
    pairs, weights = all_pairs(y, qid)
    model = ValueRegularizedRanker(theta, alpha).fit(X, y, qid=qid)
    explicit = ValueRegularizedRanker(theta, alpha).fit_pairs(X, pairs, weights)
    np.testing.assert_allclose(model.coef_, explicit.coef_, rtol=1e-11)
    assert model.n_pairs_ == explicit.n_pairs_ == len(pairs)
    args = (X, pairs, weights, theta, alpha)
    found = minimize(objective, np.zeros(4), args=args, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(model.coef_, found.x, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.objective_, objective(model.coef_, *args), rtol=1e-10)
    assert model.objective_ <= found.fun + 1e-10


def test_equals_cvxpy(data):
    cp = pytest.importorskip("cvxpy")
    X, y, qid = data
    pairs, weights = all_pairs(y, qid)
    b = cp.Variable(4)
    differences = X[pairs[:, 1]] - X[pairs[:, 0]]
    loss = (
        weights @ (differences @ b) / len(pairs)
        + 0.2 * cp.sum_squares(X @ b) / len(X)
        + 0.15 * cp.sum_squares(b)
    )
    value = cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    model = ValueRegularizedRanker(theta=0.2, alpha=0.3).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_, b.value, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-6)


def test_closed_form_without_mean_squared_score(data):
    X, y, _ = data
    model = ValueRegularizedRanker(theta=0.0, alpha=2.0).fit(X, y)
    pairs, _ = all_pairs(y)
    covariance = len(y) ** 2 * np.mean((X - X.mean(0)) * (y - y.mean())[:, None], axis=0)
    np.testing.assert_allclose(model.coef_, covariance / (2.0 * len(pairs)), rtol=1e-12)


def test_is_least_squares_on_the_centred_labels(data):
    """Completing the square: half the theta-term's fit to the balances is a regression."""
    X, y, qid = data
    X = X - X.mean(0)
    model = ValueRegularizedRanker(theta=1.0, alpha=0.0).fit(X, y)
    regression = LinearRegression().fit(X, y)
    np.testing.assert_allclose(
        model.coef_ / np.linalg.norm(model.coef_),
        regression.coef_ / np.linalg.norm(regression.coef_),
        rtol=1e-10,
    )
    sizes = {q: np.sum(qid == q) for q in qid}
    balance = np.array([sizes[q] * (v - y[qid == q].mean()) for q, v in zip(qid, y, strict=True)])
    model = ValueRegularizedRanker(theta=0.4, alpha=0.9).fit(X, y, qid=qid)
    n, target = len(y), balance * len(y) / (2 * 0.4 * model.n_pairs_)
    ridge = Ridge(alpha=0.9 * n / (2 * 0.4), fit_intercept=False).fit(X, target)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-9)


def test_orders_nodes_as_theorem_13_says():
    """One item a node, indicator features: the scores are the balances of the weights."""
    pairs = [[0, 1], [0, 2], [1, 2], [2, 0], [3, 1]]
    weights = [2.0, 5.0, 1.0, 1.5, 0.5]
    a = np.zeros((4, 4))
    for (i, j), w in zip(pairs, weights, strict=True):
        a[i, j] += w
    model = ValueRegularizedRanker(theta=0.6, alpha=0.0).fit_pairs(np.eye(4), pairs, weights)
    expected = (a.sum(1) - a.sum(0)) / (2 * 0.6 / 4) / len(pairs)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_recovers_low_noise_order_from_sampled_preferences(seed):
    """Pairs sampled from difference weights that add along paths: the order comes back."""
    rng = np.random.default_rng(seed)
    quality = rng.permutation(np.linspace(0, 1, 6))
    ordered = rng.integers(0, 6, size=(60_000, 2))
    ordered = ordered[ordered[:, 0] != ordered[:, 1]]
    gap = quality[ordered[:, 0]] - quality[ordered[:, 1]]
    flip = rng.random(len(ordered)) > (1 + gap) / 2
    ordered[flip] = ordered[flip][:, ::-1]
    model = ValueRegularizedRanker(theta=1e-4, alpha=1.0).fit_pairs(np.eye(6), ordered)
    assert np.array_equal(np.argsort(model.coef_), np.argsort(quality))


def test_no_noise_gives_perfect_ranking():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X @ [1.0, -2.0, 0.5], [-1, 0, 1])
    assert ValueRegularizedRanker(theta=1.0, alpha=1e-6).fit(X, y).score(X, y) > 0.99
    assert ValueRegularizedRanker(theta=1.0, alpha=1e-6).fit(X, -y).score(X, y) < 0.01


def test_perfect_reversed_constant_tied():
    y = np.array([0, 0, 1, 2])
    for feature, score in [([1, 2, 3, 4], 1.0), ([4, 3, 2, 1], 1.0), ([1, 1, 1, 1], 0.5)]:
        X = np.array(feature, dtype=float)[:, None]
        assert ValueRegularizedRanker(theta=1.0).fit(X, y).score(X, y) == score
    tied = np.array([[0.0], [1.0], [1.0], [2.0]])
    assert ValueRegularizedRanker(theta=1.0).fit(tied, y).score(tied, y) == 0.9


def test_invariances(data):
    X, y, qid = data
    base = ValueRegularizedRanker(theta=0.3, alpha=0.2).fit(X, y, qid=qid)
    fit = ValueRegularizedRanker(theta=0.3, alpha=0.2).fit
    order = np.random.default_rng(2).permutation(len(y))
    np.testing.assert_allclose(fit(X[order], y[order], qid=qid[order]).coef_, base.coef_)
    names = np.array([f"q{q}" for q in qid])
    np.testing.assert_allclose(fit(X, y, qid=names).coef_, base.coef_)
    np.testing.assert_allclose(fit(X, y + 100, qid=qid).coef_, base.coef_, rtol=1e-9)
    shift = y + 10 * (qid == 3)
    np.testing.assert_allclose(fit(X, shift, qid=qid).coef_, base.coef_, rtol=1e-9)
    np.testing.assert_allclose(fit(X, 3 * y, qid=qid).coef_, 3 * base.coef_)
    np.testing.assert_allclose(fit(X, -y, qid=qid).coef_, -base.coef_)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    np.testing.assert_allclose(fit(X @ rotation, y, qid=qid).coef_, base.coef_ @ rotation)


def test_pair_order_and_copies_do_not_matter(data):
    X, y, _ = data
    pairs, weights = all_pairs(y)
    fit = ValueRegularizedRanker(theta=0.3).fit_pairs
    base = fit(X, pairs, weights).coef_
    np.testing.assert_allclose(fit(X, pairs[::-1], weights[::-1]).coef_, base)
    np.testing.assert_allclose(fit(X, np.r_[pairs, pairs], np.r_[weights, weights]).coef_, base)
    np.testing.assert_allclose(fit(X, pairs[:, ::-1], weights).coef_, -base)
    np.testing.assert_allclose(fit(X, pairs).coef_, fit(X, pairs, np.ones(len(pairs))).coef_)


def test_labels_that_are_not_numbers_are_encoded(data):
    X, y, qid = data
    classes = ["b", "a", "e", "c", "d"]
    names = np.array(classes)[y - 1]
    by_name = ValueRegularizedRanker(labels=classes).fit(X, names, qid=qid)
    np.testing.assert_allclose(by_name.coef_, ValueRegularizedRanker().fit(X, y, qid=qid).coef_)
    assert by_name.classes_.tolist() == classes
    flags = y > 2
    np.testing.assert_allclose(
        ValueRegularizedRanker().fit(X, flags).coef_,
        ValueRegularizedRanker().fit(X, flags.astype(int)).coef_,
    )


def test_gaps_between_numeric_labels_count(data):
    X, y, _ = data
    wide = np.array([0, 1, 3, 7, 15])[y - 1]
    pairs, weights = all_pairs(wide)
    np.testing.assert_allclose(
        ValueRegularizedRanker().fit(X, wide).coef_,
        ValueRegularizedRanker().fit_pairs(X, pairs, weights).coef_,
    )


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_matrix])
@pytest.mark.parametrize("shape", [(60, 8), (12, 30)])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_sparse_equals_dense(form, shape, alpha):
    X = sp.random(*shape, density=0.3, random_state=4).toarray()
    y = np.random.default_rng(4).integers(0, 4, size=shape[0])
    dense = ValueRegularizedRanker(theta=1.0, alpha=alpha).fit(X, y)
    sparse = ValueRegularizedRanker(theta=1.0, alpha=alpha).fit(form(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(sparse.predict(form(X)), dense.predict(X), rtol=1e-8, atol=1e-9)
    pairs, weights = all_pairs(y)
    sparse.fit_pairs(form(X), pairs, weights)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-8, atol=1e-9)


def test_more_features_than_items_and_conjugate_gradients(monkeypatch):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(20, 50)), rng.integers(0, 3, size=20)
    fit = ValueRegularizedRanker(theta=0.8, alpha=0.1).fit
    wide = fit(X, y)
    normal = 2 * 0.8 / 20 * X.T @ X + 0.1 * np.eye(50)
    gradient = X.T @ (20 * (y - y.mean())) / wide.n_pairs_
    np.testing.assert_allclose(wide.coef_, np.linalg.solve(normal, gradient), rtol=1e-9)
    monkeypatch.setattr(_normal_equations, "_DIRECT_LIMIT", 3)
    np.testing.assert_allclose(fit(X, y).coef_, wide.coef_, rtol=1e-9)
    np.testing.assert_allclose(fit(sp.csr_matrix(X), y).coef_, wide.coef_, rtol=1e-9)


@pytest.mark.parametrize("shape", [(30, 5), (5, 30)])
def test_singular_system_gives_least_norm(shape):
    rng = np.random.default_rng(6)
    X = rng.normal(size=shape)
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.zeros(len(X))])
    y = rng.integers(0, 3, size=len(X))
    y[:3] = 0, 1, 2
    model = ValueRegularizedRanker(theta=1.0, alpha=0.0).fit(X, y)
    normal = 2.0 / len(X) * X.T @ X
    gradient = X.T @ (len(y) * (y - y.mean())) / model.n_pairs_
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(normal, rcond=1e-12) @ gradient)
    tiny = ValueRegularizedRanker(theta=1.0, alpha=1e-25).fit(X, y)
    np.testing.assert_allclose(tiny.coef_, model.coef_, rtol=1e-6, atol=1e-8)


def test_scale_of_linear_sums_is_exact_at_large_offsets():
    """Centring within queries first keeps labels of 1e8 + small from losing their differences."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 4, size=500)
    qid = rng.integers(0, 20, size=500)
    small = ValueRegularizedRanker().fit(X, y, qid=qid)
    large = ValueRegularizedRanker().fit(X, y + 1e8, qid=qid)
    np.testing.assert_allclose(large.coef_, small.coef_, rtol=1e-6)


def test_memory_is_linear_in_items():
    """3.75e9 pairs in one query, and no array of more than a few floats an item."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(100_000, 2)), rng.integers(0, 4, size=100_000)
    tracemalloc.start()
    model = ValueRegularizedRanker().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    counts = np.bincount(y)
    assert model.n_pairs_ == (100_000**2 - counts @ counts) // 2 > 3.7e9
    assert peak < 20 * 8 * 100_000


def test_pipeline_search_clone_pickle(data):
    X, y, _ = data
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ValueRegularizedRanker()),
        {"valueregularizedranker__alpha": [0.1, 1.0]},
        cv=KFold(3),
        error_score="raise",
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    assert clone(ValueRegularizedRanker(0.3, 0.4)).get_params() == {
        "theta": 0.3,
        "alpha": 0.4,
        "labels": None,
    }


def test_refit_on_pairs_forgets_labels(data):
    X, y, _ = data
    model = ValueRegularizedRanker().fit(X, y)
    pairs, weights = all_pairs(y)
    model.fit_pairs(X, pairs, weights)
    assert not hasattr(model, "classes_")
    assert 0.0 <= model.score(X, y) <= 1.0


def test_bad_labels_and_queries(data):
    X, y, qid = data
    fit = ValueRegularizedRanker().fit
    with pytest.raises(ValueError, match="y must hold at least 2 classes"):
        fit(X, np.ones(40))
    with pytest.raises(ValueError, match="qid must leave a query"):
        fit(X, y, qid=np.arange(40))
    with pytest.raises(ValueError, match="y and X must have the same length, got 39"):
        fit(X, y[:-1])
    with pytest.raises(ValueError, match="qid and y must have the same length, got 3"):
        fit(X, y, qid=[1, 2, 3])
    with pytest.raises(ValueError, match="requires y to be passed"):
        fit(X, None)
    with pytest.raises(ValueError, match="y must be finite|y contains NaN"):
        fit(X, np.where(y > 3, np.nan, y))
    with pytest.raises(ValueError, match="NaN"):
        fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="2D array"):
        fit(X[:, 0], y)


def test_bad_pairs(data):
    X, _, _ = data
    fit = ValueRegularizedRanker().fit_pairs
    with pytest.raises(ValueError, match=r"pairs must have shape \(m, 2\).*got \(3,\)"):
        fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match=r"pairs must have shape \(m, 2\).*got \(1, 3\)"):
        fit(X, [[0, 1, 2]])
    with pytest.raises(ValueError, match="pairs must not be empty"):
        fit(X, np.empty((0, 2), dtype=int))
    with pytest.raises(TypeError, match="pairs must hold integers.*float64"):
        fit(X, [[0.0, 1.0]])
    with pytest.raises(ValueError, match="pairs must hold rows of X, 0 to 39, got 40"):
        fit(X, [[0, 40]])
    with pytest.raises(ValueError, match="pairs must hold rows of X, 0 to 39, got -1"):
        fit(X, [[0, -1]])
    with pytest.raises(ValueError, match=r"two different items, got \[2, 2\] at row 1"):
        fit(X, [[0, 1], [2, 2]])
    with pytest.raises(ValueError, match="weights must not be negative"):
        fit(X, [[0, 1], [1, 2]], [1.0, -1.0])
    with pytest.raises(ValueError, match="weights and pairs must have the same length, got 3"):
        fit(X, [[0, 1], [1, 2]], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="weights must have a positive sum"):
        fit(X, [[0, 1]], [0.0])
    with pytest.raises(ValueError, match="weights must be finite"):
        fit(X, [[0, 1]], [np.inf])


@pytest.mark.parametrize("name", ["theta", "alpha"])
def test_bad_parameters(data, name):
    X, y, _ = data
    with pytest.raises(ValueError, match=f"{name} must be at least 0"):
        ValueRegularizedRanker(**{name: -1.0}).fit(X, y)
    with pytest.raises(ValueError, match=f"{name} must be"):
        ValueRegularizedRanker(**{name: np.nan}).fit(X, y)
    with pytest.raises(TypeError, match=f"{name} must be a real number"):
        ValueRegularizedRanker(**{name: "small"}).fit(X, y)
    with pytest.raises(ValueError, match="theta and alpha must not both be 0"):
        ValueRegularizedRanker(theta=0, alpha=0).fit(X, y)


def test_features_must_match(data):
    X, y, _ = data
    model = ValueRegularizedRanker().fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :3])


def rational_solution(X, y, theta, alpha, weights=None):
    """The minimiser in exact arithmetic, by elimination over Fractions; one query."""
    n, p = X.shape
    rows = [[Fraction(float(x)) for x in row] for row in X]
    w = [Fraction(1)] * n if weights is None else [Fraction(float(v)) for v in weights]
    pairs = [(i, j) for i, j in permutations(range(n), 2) if y[i] > y[j]]
    total = sum(w[i] * w[j] for i, j in pairs)
    scale = 2 * Fraction(float(theta)) / sum(w)
    matrix = [
        [scale * sum(w[i] * rows[i][a] * rows[i][b] for i in range(n)) for b in range(p)]
        for a in range(p)
    ]
    for a in range(p):
        matrix[a][a] += Fraction(float(alpha))
        matrix[a].append(
            sum(w[i] * w[j] * int(y[i] - y[j]) * (rows[i][a] - rows[j][a]) for i, j in pairs)
            / total
        )
    for a in range(p):
        pivot = next(r for r in range(a, p) if matrix[r][a])
        matrix[a], matrix[pivot] = matrix[pivot], matrix[a]
        matrix[a] = [x / matrix[a][a] for x in matrix[a]]
        for r in range(p):
            if r != a and matrix[r][a]:
                factor = matrix[r][a]
                matrix[r] = [x - factor * z for x, z in zip(matrix[r], matrix[a], strict=True)]
    return np.array([float(row[-1]) for row in matrix])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("n", "column"), [(12, 1e10), (12, 1e-8), (12, 1.7e9), (4, 1e10), (12, 1e150), (12, 1e-300)]
)
@pytest.mark.parametrize("alpha", [1.0, 1e-6])
def test_agrees_with_a_rational_solve(n, column, alpha, sparse):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 5))
    X[:, 2] = X[:, 2] + column if column == 1.7e9 else X[:, 2] * column
    y = rng.integers(0, 3, n)
    y[:3] = 0, 1, 2
    model = ValueRegularizedRanker(theta=0.5, alpha=alpha)
    model.fit(sp.csr_array(X) if sparse else X, y)
    exact = rational_solution(X, y, 0.5, alpha)
    np.testing.assert_allclose(model.coef_, exact, rtol=1e-6 if n == 4 else 1e-9)


@pytest.mark.parametrize("n", [9, 4])
def test_weights_are_the_pairs_products(n):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(n, 5)), np.arange(n) % 3
    weights = rng.random(n)
    model = ValueRegularizedRanker(theta=0.5, alpha=0.1).fit(X, y, sample_weight=weights)
    exact = rational_solution(X, y, 0.5, 0.1, weights)
    np.testing.assert_allclose(model.coef_, exact, rtol=1e-9)
    # Whole weights repeat items, none leaves them out, in every query.
    whole, qid = np.arange(n) % 4, np.arange(n) // (n // 2)
    rows = np.repeat(np.arange(n), whole)
    by_weight = ValueRegularizedRanker().fit(X, y, sample_weight=whole, qid=qid)
    by_rows = ValueRegularizedRanker().fit(X[rows], y[rows], qid=qid[rows])
    np.testing.assert_allclose(by_weight.coef_, by_rows.coef_, rtol=1e-10)
    assert by_weight.n_pairs_ == by_rows.n_pairs_
    assert by_weight.objective_ == pytest.approx(by_rows.objective_, rel=1e-10)
    with pytest.raises(ValueError, match="of positive weight"):
        ValueRegularizedRanker().fit(X, y, sample_weight=(y == 1).astype(float))


def test_group_sizes_are_queries(data):
    X, y, _ = data
    by_group = ValueRegularizedRanker().fit(X, y, group=[15, 25])
    by_qid = ValueRegularizedRanker().fit(X, y, qid=np.repeat([1, 0], [15, 25]))
    np.testing.assert_array_equal(by_group.coef_, by_qid.coef_)
    with pytest.raises(TypeError):
        ValueRegularizedRanker().fit(X, y, np.ones(40))


def test_gradients_that_do_not_converge_are_told(monkeypatch):
    monkeypatch.setattr(_normal_equations, "cg", lambda *_, **__: (np.zeros(2), 40))
    with pytest.raises(RuntimeError, match="did not converge in 40 steps; raise alpha"):
        _normal_equations._conjugate_gradients(np.eye(2), np.ones(2), np.ones(2), np.ones(2))
