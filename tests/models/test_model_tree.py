"""ModelTree against Weka's M5P, brute force, exact regressions, Cubist and its invariances."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from rankbook.models import COCR, ModelTree
from rankbook.models._node_models import _Elimination
from rankbook.models._tree_pruning import compensation
from tests.models.make_weka_m5p import data_sets, split

WEKA = json.loads(Path(__file__).with_name("weka_m5p.json").read_text())
DATA = data_sets()
SETTINGS = {
    "default": {},
    "unpruned": {"pruning": False},
    "unsmoothed": {"smoothing": False},
    "plain": {"pruning": False, "smoothing": False},
    "large": {"min_samples_leaf": 20},
}


def sample(n=300, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p))
    y = np.where(X[:, 0] > 0, 2 * X[:, 1], -X[:, 2]) + 0.1 * rng.normal(size=n)
    return X, y


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", DATA)
def test_is_the_original_program(name, setting):
    train, y, test = split(*DATA[name])
    theirs = WEKA[name][setting]
    model = ModelTree(**SETTINGS[setting]).fit(train, y)
    assert model.get_n_leaves() == theirs["leaves"]
    # Targets have a deviation of 1e6, and Weka prints three decimals.
    np.testing.assert_allclose(model.predict(test), theirs["predictions"], rtol=1e-8, atol=2e-3)


def test_check_estimator():
    check_estimator(ModelTree(), on_skip=None)


@pytest.mark.parametrize("power", [0.4, 1.0])
def test_first_split_is_the_best_of_all(power):
    X, y = sample(60)
    best = (np.inf, None, None)
    for j in range(X.shape[1]):
        values = np.sort(X[:, j])
        for cut in (values[1:] + values[:-1]) / 2:
            left, right = y[X[:, j] <= cut], y[X[:, j] > cut]
            if min(left.size, right.size) <= 60 // 5:
                continue
            spread = left.size * left.std() ** power + right.size * right.std() ** power
            best = min(best, (spread, j, cut))
    model = ModelTree(pruning=False, split_power=power).fit(X, y)
    assert model.tree_.feature[0] == best[1]
    assert model.tree_.threshold[0] == pytest.approx(best[2], rel=1e-12)
    at = model.tree_.leaf >= 0
    assert model.tree_.count[at].sum() == 60


def test_a_single_model_is_least_squares_without_what_does_not_pay():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 5))
    y = X[:, :2] @ [1.0, -2.0] + 0.5 * rng.normal(size=200)
    model = ModelTree().fit(X, y)
    assert model.get_n_leaves() == 1
    constants, coefficients = model.leaf_models()
    kept = np.flatnonzero(coefficients[0])
    assert {0, 1} <= set(kept)
    fit = LinearRegression().fit(X[:, kept], y)
    np.testing.assert_allclose(coefficients[0, kept], fit.coef_, rtol=1e-10)
    np.testing.assert_allclose(constants[0], fit.intercept_, atol=1e-12)
    # Backward elimination by Akaike's criterion, written out.
    chosen, full = [0, 1, 2, 3, 4], None
    while True:
        fit = LinearRegression().fit(X[:, chosen], y)
        squares = ((y - fit.predict(X[:, chosen])) ** 2).sum()
        full = squares if full is None else full
        smallest = int(np.argmin(np.abs(fit.coef_) * X[:, chosen].std(axis=0)))
        fewer = chosen[:smallest] + chosen[smallest + 1 :]
        without = LinearRegression().fit(X[:, fewer], y)
        rest = ((y - without.predict(X[:, fewer])) ** 2).sum()
        if rest / full * (200 - 6) - 2 >= squares / full * (200 - 6):
            break
        chosen = fewer
    assert list(kept) == chosen


def test_smoothing_is_the_walk_from_the_leaf_to_the_root():
    X, _ = sample()
    noise = 0.1 * np.random.default_rng(9).normal(size=len(X))
    y = np.where(X[:, 0] > 0, 9 + 2 * X[:, 1], -X[:, 2]) + noise
    plain = ModelTree(smoothing=False).fit(X, y)
    assert plain.get_depth() == 1  # so that the mixture is of two models
    smooth = ModelTree().fit(X, y)
    leaf = plain.apply(X)
    n = np.bincount(leaf)[leaf]
    above = ((n + 15) * smooth.predict(X) - n * plain.predict(X)) / 15
    fit = LinearRegression().fit(X, above)
    np.testing.assert_allclose(fit.predict(X), above, atol=1e-9)  # one linear model, the root's
    root = LinearRegression().fit(X[:, np.abs(fit.coef_) > 1e-9], y)
    np.testing.assert_allclose(root.predict(X[:, np.abs(fit.coef_) > 1e-9]), above, atol=1e-9)


def test_compensation():
    np.testing.assert_allclose(compensation([10, 20], [2, 5]), [14 / 8, 30 / 15])
    np.testing.assert_array_equal(compensation([3, 3], [3, 4]), [10.0, 10.0])


def test_integer_weights_are_copies_and_zero_weights_are_absent():
    X, y = sample(120)
    repeats = np.arange(120) % 4
    weighted = ModelTree().fit(X, y, sample_weight=repeats)
    copied = ModelTree().fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert weighted.get_n_leaves() == copied.get_n_leaves() > 1
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-9, atol=1e-9)


def test_importance_counts_rows():
    X, y = sample(120)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    one = ModelTree(weighting="importance").fit(X, y, sample_weight=w)
    large = ModelTree(weighting="importance").fit(X, y, sample_weight=1000 * w)
    np.testing.assert_allclose(one.predict(X), large.predict(X), rtol=1e-9)
    assert one.tree_.count.max() == 120
    assert np.abs(one.predict(X) - ModelTree().fit(X, y).predict(X)).max() > 1e-3
    plain = ModelTree(weighting="importance").fit(X, y).predict(X)
    np.testing.assert_allclose(plain, ModelTree().fit(X, y).predict(X), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e150])
def test_units_do_not_matter(unit):
    X, y = sample()
    model = ModelTree().fit(X, y)
    np.testing.assert_allclose(
        ModelTree().fit(unit * X, unit * y).predict(unit * X) / unit, model.predict(X), rtol=1e-8
    )
    # A value near 1.7e9 is rounded to 2e-7, which is what may be lost.
    far = ModelTree().fit(X + 1.7e9, y).predict(X + 1.7e9)
    np.testing.assert_allclose(far, model.predict(X), atol=1e-5)


def test_order_of_rows_does_not_matter():
    X, y = sample()
    shuffled = np.random.default_rng(5).permutation(len(y))
    one, two = ModelTree().fit(X, y), ModelTree().fit(X[shuffled], y[shuffled])
    np.testing.assert_array_equal(one.tree_.threshold, two.tree_.threshold)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9, atol=1e-9)


def test_tied_splits_go_to_the_first_column():
    X, y = sample()
    model = ModelTree(pruning=False).fit(X[:, [0, 0, 1, 1, 2, 2]], y)
    assert set(model.tree_.feature) == {-1, 0, 2, 4}
    np.testing.assert_allclose(
        model.predict(X[:, [0, 0, 1, 1, 2, 2]]),
        ModelTree(pruning=False).fit(X[:, :3], y).predict(X[:, :3]),
        rtol=1e-9,
    )


def test_tied_splits_go_to_the_lowest_threshold():
    x = np.arange(1.0, 7.0)[:, None]
    model = ModelTree(pruning=False).fit(x, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    assert model.tree_.threshold[0] == 2.5  # 4.5 is as good


def test_degenerate_data():
    X, y = sample(40)
    constant = ModelTree().fit(X, np.full(40, 3.25))
    assert constant.get_n_leaves() == 1
    np.testing.assert_array_equal(constant.predict(X), 3.25)
    few = ModelTree().fit(X[:3], y[:3])
    assert few.get_n_leaves() == 1
    np.testing.assert_allclose(few.predict(X), y[:3].mean())
    useless = np.column_stack([np.full(40, 1e9), X, np.zeros(40)])
    np.testing.assert_allclose(
        ModelTree().fit(useless, y).predict(useless), ModelTree().fit(X, y).predict(X), rtol=1e-9
    )
    flat = ModelTree().fit(np.ones((40, 2)), y)
    np.testing.assert_allclose(flat.predict(np.ones((2, 2))), y.mean())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_samples_leaf": 1}, "min_samples_leaf must be at least 2"),
        ({"pruning": 1}, "pruning must be True or False"),
        ({"smoothing": None}, "smoothing must be True or False"),
        ({"split_power": 0.0}, "split_power must be greater than 0"),
        ({"weighting": "none"}, "weighting must be one of"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X, y = sample(20)
    with pytest.raises((ValueError, TypeError), match=message):
        ModelTree(**options).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (["low", "high"] * 10, "y must be real numbers"),
        (np.array(["1", "2"] * 10, object), "y must be real numbers"),
        (np.arange(20).astype("M8[D]"), "y must be real numbers"),
        (np.ones(20, complex), "y must be real numbers"),
        (np.array([None, True] * 10), "Input y contains NaN"),
        (np.array([None, 1.0] * 10), "Input y contains NaN"),
        (np.ma.array(np.ones(20), mask=np.eye(20)[0]), "y must not hold masked"),
        (np.ones((20, 2)), "y should be a 1d array"),
        (np.ones(19), "y and X must have the same length, got 19 for y and 20 for X"),
    ],
)
def test_bad_targets_are_named(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ModelTree().fit(sample(20)[0], y)


def test_bad_data_are_named():
    X, y = sample(20)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        ModelTree().fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        ModelTree().fit(sample(20)[0], y, sample_weight=-np.ones(20))
    model = ModelTree().fit(sample(20)[0], y)
    with pytest.raises(ValueError, match="feature_names must hold 4 names, got 2"):
        model.to_text(feature_names=["a", "b"])


def test_text_says_what_is_predicted():
    X, y = sample()
    model = ModelTree().fit(X, y)
    text = model.to_text(feature_names=["a", "b", "c", "d"], decimals=12).splitlines()
    tests, models = text[: text.index("")], text[text.index("") + 1 :]
    assert len(models) == model.get_n_leaves()
    assert sum("LM" in line for line in tests) == model.get_n_leaves()
    row = dict(zip("abcd", X[7], strict=True))
    words = models[model.apply(X[7:8])[0]].split()
    value = float(words[1])
    for sign, number, name in zip(words[2::3], words[3::3], words[4::3], strict=True):
        value += (1 if sign == "+" else -1) * float(number) * row[name]
    assert value == pytest.approx(model.predict(X[7:8])[0], abs=1e-9)


def test_copies_and_pickles():
    X, y = sample(60)
    model = ModelTree().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))


def test_bagging_lowers_the_error():
    X, y = make_friedman1(800, noise=1.0, random_state=1)
    train, test = slice(None, 300), slice(300, None)
    one = ModelTree().fit(X[train], y[train])
    bag = BaggingRegressor(ModelTree(), n_estimators=10, random_state=0).fit(X[train], y[train])
    squares = [((m.predict(X[test]) - y[test]) ** 2) for m in (bag, one)]
    change = squares[0] - squares[1]
    assert change.mean() < -4 * change.std(ddof=1) / np.sqrt(change.size)


def test_cocr_takes_it_as_a_base():
    X, y = sample()
    grades = np.searchsorted(np.quantile(y, [0.3, 0.7]), y)
    model = COCR(ModelTree(weighting="importance"), "oerr").fit(X, grades)
    assert model.score(X, grades) > 0.9


def test_cubist_is_a_second_opinion():
    """Quinlan's own successor of M5 is better on some data, on the mean by less than a quarter."""
    cubist, pd = pytest.importorskip("cubist"), pytest.importorskip("pandas")
    ratios = []
    for name in sorted(set(DATA) - {"linnerud"}):  # that has 20 rows
        X, y = DATA[name]
        train, target, test = split(X, y)
        train, test = (pd.DataFrame(part).add_prefix("x") for part in (train, test))
        truth = y[np.arange(len(y)) % 3 == 2]
        models = (ModelTree(), cubist.Cubist(), DecisionTreeRegressor(random_state=0))
        ours, theirs, constants = (
            np.sqrt(np.mean((m.fit(train, target).predict(test) - truth) ** 2)) for m in models
        )
        assert ours < constants, name
        ratios.append(ours / theirs)
    assert max(ratios) < 2
    assert np.exp(np.mean(np.log(ratios))) < 1.25


def test_columns_that_cancel_each_other_are_not_both_kept():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    b = a + 0.1 * rng.normal(size=200)
    fit = _Elimination(
        np.corrcoef([a, b, b - a])[None], np.ones((1, 2), dtype=bool), np.array([200.0])
    )
    assert np.abs(fit.coefficients).min() > 1.5
    fit.run()
    assert fit.active.sum() < 2


def test_columns_without_names_are_numbered():
    X, y = sample()
    model = ModelTree().fit(X, y)
    assert "x0" in model.to_text() and "first" in model.to_text(
        feature_names=["first", "b", "c", "d"]
    )
