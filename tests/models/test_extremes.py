"""Weights, costs and labels far from one: the same fit in another unit, or an error with a name."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression

from rankbook import models
from rankbook._arrays import require_normal
from rankbook._validation import check_weights
from rankbook.models._base import label_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(45, 3))
Y = np.argsort(np.argsort(X @ [1.0, 0.5, 0.0] + 0.5 * RNG.normal(size=45))) // 15


@pytest.mark.parametrize("factor", [5e-324, 1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("name", ["PairwiseBoost", "ORBoost", "ValueRegularizedRanker"])
def test_only_ratios_of_weights_count(name, factor):
    model = getattr(models, name)()
    if hasattr(model, "n_iter"):
        model.set_params(n_iter=10)
    expected = model.fit(X, Y).decision_function(X)
    got = model.fit(X, Y, sample_weight=np.full(45, factor)).decision_function(X)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-160, 1e160, 1e300])
def test_a_ridge_beside_weights_of_any_size(factor):
    model = models.CumulativeLink(link="cauchit", alpha=0.1)
    expected = model.fit(X, Y).coef_
    got = model.fit(X, Y, sample_weight=np.full(45, factor)).coef_
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_ratios_of_weights_are_kept():
    weights = np.array([1.0, 3.0, 0.0])
    assert check_weights(weights, 3, relative=True) is weights
    for factor in (2.0**-900, 2.0**900):
        scaled = check_weights(factor * weights, 3, relative=True)
        assert scaled.tolist() == [0.25, 0.75, 0.0]
        assert check_weights(factor * weights, 3).tolist() == (factor * weights).tolist()


@pytest.mark.parametrize("name", ["RegressionBoost", "ValueRegularizedRanker"])
@pytest.mark.parametrize(
    ("labels", "y"),
    [
        (None, pd.Categorical(np.array([9, 3, 1])[Y], categories=[9, 3, 1], ordered=True)),
        ([9, 3, 1], np.array([9, 3, 1])[Y]),
    ],
)
def test_numbers_in_another_order_count_by_their_places(name, labels, y):
    model = getattr(models, name)()
    expected = model.fit(X, Y)
    expected_scores, expected_value = expected.decision_function(X), expected.score(X, Y)
    model.set_params(labels=labels).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected_scores, rtol=1e-12)
    assert model.score(X, y) == expected_value > 0.9


@pytest.mark.parametrize("name", ["RegressionBoost", "ValueRegularizedRanker"])
def test_labels_that_count_as_numbers(name):
    model = getattr(models, name)()
    expected = model.fit(X, Y**2 / 4).decision_function(X)
    fractions = [Fraction(int(k) ** 2, 4) for k in Y]
    np.testing.assert_allclose(model.fit(X, fractions).decision_function(X), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="y must hold labels of at most 1e\\+150 in size"):
        model.fit(X, Y * 1e300)


@pytest.mark.parametrize(
    ("classes", "values"),
    [
        ([1, 2, 5], [1, 2, 5]),
        ([False, True], [0, 1]),
        ([5, 2, 1], [0, 1, 2]),
        ([2**60, 2**60 + 1], [0, 1]),
        (["1", "7"], [0, 1]),
        ([1, "7"], [0, 1]),
    ],
)
def test_label_values(classes, values):
    dtype = object if len({type(c) for c in classes}) > 1 else None
    assert label_values(np.array(classes, dtype)).tolist() == values


@pytest.mark.parametrize("name", ["SVOR", "RankBoundarySVM"])
def test_hinges_of_a_weight_out_of_range_are_refused(name):
    machine = getattr(models, name)
    for C, weight in ((1e-320, 1.0), (1e308, 1.0), (1.0, 1e160), (1.0, 5e-324), (1e-60, 1e-60)):
        with pytest.raises(ValueError, match="C times sample_weight must be between"):
            machine(C=C).fit(X, Y, sample_weight=np.full(45, weight))
    # A pair's weight is the product of its items': C = 1e-40 alone is within the range.
    power = 2 if name == "RankBoundarySVM" else 1
    fit = machine(C=1e-40).fit(X, Y, sample_weight=np.full(45, 1e20))
    same = machine(C=10.0 ** (20 * power - 40)).fit(X, Y)
    np.testing.assert_allclose(fit.decision_function(X), same.decision_function(X), rtol=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numbers_of_any_kind():
    """Python's integers have no end; None is no number, whatever an array makes of it."""
    for machine in (models.SVOR, models.RankBoundarySVM):
        fit = machine(C=2**70).fit(X[:8], Y[:8])
        assert np.isfinite(fit.objective_)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        models.ModelTree().fit(X[:8], np.array([None] * 8))
    large = np.repeat([1e308, -1e308], 4)
    assert np.isfinite(models.ModelTree().fit(X[:8], large).predict(X)).all()
    assert np.isfinite(models.UnivariateRanker().fit(large[:, None], large > 0).coef_).all()


def test_a_pair_weighs_the_product_of_its_items():
    weight = np.full(45, 1e-60)
    models.SVOR().fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="got about 1e-120"):
        models.RankBoundarySVM().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("model", [models.CumulativeLink(), models.COCR(LinearRegression())])
def test_columns_that_no_coefficient_can_reach_are_refused(model):
    """A coefficient of 1e324 is no float: NaN would be the answer."""
    small = X * [1.0, 1.0, 5e-324]
    small[:, 2] = 5e-324 * np.sign(X[:, 2])
    with pytest.raises(ValueError, match="X must not have largest entries below 1e-305"):
        model.fit(small, Y)
    with pytest.raises(ValueError, match="X must not have largest entries below 1e-305"):
        model.fit(sp.csr_array(small), Y)
    assert np.isfinite(model.fit(X * [1.0, 1.0, 1e-300], Y).decision_function(X)).all()


def test_columns_of_zeros_and_none_have_a_normal_size():
    require_normal(np.array([[0.0, 1.0], [0.0, -2.0]]), "X")
    require_normal(np.zeros((3, 0)), "X")
    require_normal(sp.csr_array(np.zeros((2, 2))), "X")
    # Zeros come first in a column that is large enough, and in one that is not.
    late = np.zeros((300, 2))
    late[299] = 1.0
    for kind in (np.array, sp.csr_array):
        require_normal(kind(late), "X")
        with pytest.raises(ValueError, match="X must not have largest entries below 1e-305"):
            require_normal(kind(late * [1.0, 1e-310]), "X")
    with pytest.raises(ValueError, match="sample_weight must not have largest entries below"):
        models.CumulativeLink().fit(X, Y, sample_weight=np.full(45, 5e-324))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("model", "factor"),
    [
        (models.ModelTree(split_power=1e-320), 1.0),
        (models.PairwiseBoost(weak="joint", bandwidth=1e-320, n_iter=3), 1.0),
        (models.CumulativeLink(link="cauchit", alpha=0.1), 1e-300),
        (models.RankBoundarySVM(kernel="linear"), np.array([1e-150, 1.0, 1e150])),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_extremes_are_finite_and_silent(model, factor):
    model.fit(X * factor, Y)
    score = getattr(model, "decision_function", model.predict)
    assert np.isfinite(score(X * factor)).all()


SLOPES_AT_ZERO = {
    "logistic": -0.5,
    "hinge": -1.0,
    "exponential": -1.0,
    "squared_hinge": -2.0,
    "squared": -2.0,
}


@pytest.mark.parametrize("unit", [1e-7, 1e-30, 1e-140])
@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("loss", SLOPES_AT_ZERO)
def test_pairs_in_small_units_rank_as_the_loss_falls_at_zero(loss, queries, unit):
    """The minimiser tends to minus the gradient at zero over alpha; at zero nothing is ranked."""
    qid = np.arange(45) % 5 if queries else np.zeros(45, dtype=int)
    model = models.PairwiseRanker(loss, "constant", consistent=False, alpha=0.1)
    model.fit(unit * X, Y, qid=qid if queries else None)
    above, below = np.nonzero((Y[:, None] > Y) & (qid[:, None] == qid))
    expected = -SLOPES_AT_ZERO[loss] * (X[above] - X[below]).mean(axis=0) / 0.1
    np.testing.assert_allclose(model.coef_ / unit, expected, rtol=1e-6)
    np.testing.assert_allclose(model.decision_function(unit * X), unit * X @ model.coef_)
    assert 0 <= model.dual_gap_ <= 1e-6


@pytest.mark.parametrize("unit", [1e-12, 1e-30, 1e-140])
def test_items_in_small_units_have_the_slopes_of_the_loss_at_zero(unit):
    y = (Y > 0).astype(int)
    model = models.UnivariateRanker(alpha=0.1).fit(unit * X, y)
    share = y.mean()
    expected = ((y - share)[:, None] * X).mean(axis=0) / 0.1
    np.testing.assert_allclose(model.coef_ / unit, expected, rtol=1e-6)
    assert model.intercept_ == pytest.approx(np.log(share / (1 - share)))


def test_constant_columns_leave_zero():
    model = models.PairwiseRanker().fit(np.ones((45, 2)), Y)
    assert model.coef_.tolist() == [0.0, 0.0] and model.n_iter_ == 1
