"""COCR against regressions written out, its fast path against exact and generic solutions."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from rankbook import costs
from rankbook.exceptions import LabelCostWarning
from rankbook.models import COCR


class PlainLeastSquares(LinearRegression):
    """Least squares that the fast path does not know."""


def sample(n=300, p=4, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    latent = X @ np.linspace(1.0, -0.5, p) + rng.normal(size=n)
    y = np.searchsorted(np.quantile(latent, np.arange(1, K) / K), latent)
    return X, y, rng.uniform(0.1, 2.0, n)


def rational_regression(X, target, weights):
    """Weighted least squares with an intercept, in exact arithmetic."""
    rows = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in X]
    size = len(rows[0])
    system = [[Fraction(0)] * (size + 1) for _ in range(size)]
    for row, t, w in zip(rows, target, weights, strict=True):
        for i in range(size):
            for j in range(size):
                system[i][j] += Fraction(float(w)) * row[i] * row[j]
            system[i][size] += Fraction(float(w)) * row[i] * Fraction(int(t))
    for i in range(size):
        pivot = next(r for r in range(i, size) if system[r][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [v / system[i][i] for v in system[i]]
        for r in range(size):
            if r != i and system[r][i] != 0:
                system[r] = [
                    a - system[r][i] * b for a, b in zip(system[r], system[i], strict=True)
                ]
    return np.array([float(row[size]) for row in system])


@pytest.mark.parametrize("base", [LinearRegression(), Ridge()])
def test_check_estimator(base):
    check_estimator(COCR(base), on_skip=None)


@pytest.mark.parametrize("kind", ["absolute", "squared", "oerr"])
def test_is_the_reduction_written_out(kind):
    X, y, w = sample()
    model = COCR(DecisionTreeRegressor(max_depth=3, random_state=0), kind)
    model.fit(X, y, sample_weight=w)
    c = costs.ordinal(4, kind)
    columns = []
    for k in (1, 2, 3):
        step = np.array([abs(c[label, k] - c[label, k - 1]) for label in y])
        tree = DecisionTreeRegressor(max_depth=3, random_state=0)
        tree.fit(X, (y >= k).astype(float), sample_weight=w * step)
        columns.append(tree.predict(X))
    np.testing.assert_allclose(model.boundary_scores(X), np.transpose(columns), atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), np.sum(columns, axis=0), atol=1e-12)
    hard = [sum(h[i] >= 0.5 for h in columns) for i in range(len(X))]
    np.testing.assert_array_equal(model.predict(X), hard)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["absolute", "squared", "oerr"])
def test_fast_path_is_least_squares(kind, intercept):
    X, y, w = sample()
    X = X + 3.0
    fast = COCR(LinearRegression(fit_intercept=intercept), kind).fit(X, y, sample_weight=w)
    slow = COCR(PlainLeastSquares(fit_intercept=intercept), kind).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(fast.boundary_scores(X), slow.boundary_scores(X), atol=1e-11)


def test_fast_path_in_any_units_is_the_exact_solution():
    X, y, w = sample(n=40, p=3, K=3)
    X = X * [1.0, 1e6, 1e-4] + [0.0, 1.7e9, 5.0]
    model = COCR(label_costs="squared").fit(X, y, sample_weight=w)
    c = costs.ordinal(3, "squared")
    for k, fitted in enumerate(model.estimators_, start=1):
        step = np.abs(c[y, k] - c[y, k - 1])
        exact = rational_regression(X, y >= k, w * step)
        np.testing.assert_allclose(fitted.coef_, exact[:-1], rtol=1e-7)
        np.testing.assert_allclose(fitted.intercept_, exact[-1], rtol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("light", [0.0, 1e-16])
def test_fast_path_where_rows_of_little_weight_lie_far_away(light, intercept):
    """They move the shift, and what is left after centring is below its rounding."""
    X, y, w = sample()
    far = np.arange(len(y)) % 3 == 0
    X[far] += 1e7
    w[far] = light
    fast = COCR(LinearRegression(fit_intercept=intercept), "squared").fit(X, y, sample_weight=w)
    slow = COCR(PlainLeastSquares(fit_intercept=intercept), "squared").fit(X, y, sample_weight=w)
    near = X[~far]
    np.testing.assert_allclose(fast.boundary_scores(near), slow.boundary_scores(near), atol=1e-9)


@pytest.mark.parametrize("base", [LinearRegression(), PlainLeastSquares(), Ridge(alpha=0.7)])
def test_absolute_costs_with_linear_smoothers_are_direct_regression(base):
    X, y, w = sample()
    direct = base.fit(X, y, sample_weight=w).predict(X)
    score = COCR(base).fit(X, y, sample_weight=w).decision_function(X)
    np.testing.assert_allclose(score, direct, atol=1e-10)


def test_other_costs_are_not():
    X, y, _ = sample()
    direct = LinearRegression().fit(X, y).predict(X)
    assert np.abs(COCR(label_costs="oerr").fit(X, y).decision_function(X) - direct).max() > 0.01


@pytest.mark.parametrize("kind", ["absolute", "squared", "oerr"])
def test_counting_rule_costs_at_most_the_weighted_errors(kind):
    """The reduction's guarantee where the rows of the costs are convex, item by item."""
    X, y, _ = sample(K=5)
    model = COCR(label_costs=kind).fit(X, y)
    c = model.label_costs_
    wrong = (model.boundary_scores(X) >= 0.5) != (y[:, None] >= np.arange(1, 5))
    bound = (wrong * np.abs(np.diff(c, axis=1))[y]).sum(axis=1)
    convex = [np.all(np.diff(row, 2) >= 0) for row in c]
    held = c[y, model.predict(X)] <= bound + 1e-12
    assert held[np.array(convex)[y]].all()
    if kind != "oerr":
        assert all(convex)


@pytest.mark.parametrize(
    ("entry", "value", "rows"), [((0, 3), 0.5, [0]), ((3, 0), 1.5, [3]), ((2, 0), 0.0, [2])]
)
def test_costs_that_are_not_v_shaped_are_fitted_with_a_word(entry, value, rows):
    X, y, _ = sample()
    c = costs.ordinal(4, "absolute").astype(float)
    c[entry] = value
    with pytest.warns(LabelCostWarning, match=rf"not V-shaped in rows \{rows}:") as caught:
        model = COCR(PlainLeastSquares(), c).fit(X, y)
    assert caught[0].filename == __file__
    for k, step in enumerate(np.abs(np.diff(c, axis=1)).T):
        slow = LinearRegression().fit(X, y > k, sample_weight=step[y])
        np.testing.assert_allclose(model.boundary_scores(X)[:, k], slow.predict(X), atol=1e-10)


def test_level_steps_and_costs_of_right_labels_are_v_shaped():
    X, y, _ = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for c in (np.minimum(costs.ordinal(4, "squared"), 2), 1 + costs.ordinal(4, "oerr")):
            COCR(label_costs=c).fit(X, y)


def test_weights_are_copies_and_zero_weights_are_absent():
    X, y, _ = sample(n=60)
    repeats = np.arange(60) % 3
    weighted = COCR(label_costs="oerr").fit(X, y, sample_weight=repeats)
    rows = np.repeat(np.arange(60), repeats)
    copied = COCR(label_costs="oerr").fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.boundary_scores(X), copied.boundary_scores(X), atol=1e-11)


def test_collinear_columns_go_to_least_norm():
    X, y, w = sample()
    doubled = np.column_stack([X, X[:, 0]])
    model = COCR(label_costs="squared").fit(doubled, y, sample_weight=w)
    plain = COCR(label_costs="squared").fit(X, y, sample_weight=w)
    np.testing.assert_allclose(
        model.decision_function(doubled), plain.decision_function(X), atol=1e-9
    )
    for fitted in model.estimators_:
        np.testing.assert_allclose(fitted.coef_[0], fitted.coef_[-1], atol=1e-9)


def test_constant_column_changes_nothing():
    X, y, _ = sample()
    score = COCR().fit(np.column_stack([X, np.full(len(X), 7.0)]), y)
    np.testing.assert_allclose(
        score.decision_function(np.column_stack([X, np.full(len(X), 7.0)])),
        COCR().fit(X, y).decision_function(X),
        atol=1e-9,
    )


def test_sparse_input_gives_the_same():
    X, y, w = sample()
    X[X < 0.5] = 0.0
    dense = COCR(label_costs="squared").fit(X, y, sample_weight=w)
    sparse = COCR(label_costs="squared").fit(sp.csr_array(X), y, sample_weight=w)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-4
    )


def test_parallel_fit_is_the_same():
    X, y, _ = sample()
    base = DecisionTreeRegressor(max_depth=3, random_state=0)
    one = COCR(base, "oerr").fit(X, y).decision_function(X)
    with parallel_config("threading"):  # processes take seconds to start
        two = COCR(base, "oerr", n_jobs=2).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(one, two)


def test_base_without_weights_is_refused_or_resampled():
    X, y, _ = sample(n=2000, K=3)
    with pytest.raises(ValueError, match=r"base must take sample_weight.*resample"):
        COCR(KNeighborsRegressor()).fit(X, y)
    resampled = COCR(LinearRegression(), "oerr", weighting="resample", random_state=1)
    np.testing.assert_allclose(
        resampled.fit(X, y).boundary_scores(X),
        COCR(label_costs="oerr").fit(X, y).boundary_scores(X),
        atol=0.15,
    )
    again = COCR(LinearRegression(), "oerr", weighting="resample", random_state=1).fit(X, y)
    np.testing.assert_array_equal(again.boundary_scores(X), resampled.boundary_scores(X))
    assert COCR(KNeighborsRegressor(), weighting="resample").fit(X, y).score(X, y) > 0.7


def test_declared_labels_and_classes_that_do_not_occur():
    X, y, _ = sample(K=3)
    names = np.array(["low", "mid", "high"])[y]
    model = COCR(labels=["low", "mid", "high", "top"]).fit(X, names)
    assert model.classes_.tolist() == ["low", "mid", "high", "top"]
    np.testing.assert_allclose(model.boundary_scores(X)[:, 2], 0.0, atol=1e-12)
    assert set(model.predict(X)) <= {"low", "mid", "high"}


def test_in_a_grid_search():
    X, y, _ = sample()
    search = GridSearchCV(COCR(), {"label_costs": ["absolute", "oerr"]}, cv=StratifiedKFold(3))
    assert search.fit(X, y).best_score_ > 0.7


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"label_costs": np.ones((3, 3))}, ValueError, r"label_costs must have shape \(4, 4\)"),
        ({"label_costs": -costs.ordinal(4, "squared")}, ValueError, "label_costs must not be neg"),
        ({"label_costs": np.full((4, 4), np.nan)}, ValueError, "label_costs"),
        ({"label_costs": "cubic"}, ValueError, "label_costs"),
        ({"label_costs": np.zeros((4, 4))}, ValueError, "label_costs must tell labels"),
        ({"base": "linear"}, TypeError, "base must be an instance of a scikit-learn regressor"),
        ({"base": Ridge}, TypeError, "base must be an instance of a scikit-learn regressor"),
        ({"weighting": "none"}, ValueError, "weighting"),
    ],
)
def test_bad_parameters_are_named(options, error, match):
    X, y, _ = sample()
    with pytest.raises(error, match=match):
        COCR(**options).fit(X, y)
