"""Costs: printed values, the scale condition against matrix rank, round trips, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rankbook import costs
from rankbook.exceptions import CostConditionError

counts_of = st.lists(st.integers(1, 50), min_size=2, max_size=7)


def antisymmetric_rank(c):
    return np.linalg.matrix_rank(c - c.T, tol=1e-9 * c.max())


def test_named_costs():
    assert_array_equal(costs.linear(4)[0], [0, 1, 2, 3])
    assert_array_equal(costs.dcg(4)[0], [0, 2, 6, 14])
    assert costs.constant(5).sum() == 10


@pytest.mark.parametrize("K", range(2, 8))
def test_constant_costs_come_from_a_scale_up_to_three_classes(K):
    assert costs.satisfies_scale_condition(costs.constant(K)) == (K <= 3)


@given(counts_of)
def test_condition_is_rank_two(counts):
    for c in (costs.ovo(counts), costs.consecutive(counts), costs.constant(len(counts))):
        assert costs.satisfies_scale_condition(c) == (antisymmetric_rank(c) == 2)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_from_scale_and_back(K, seed):
    rng = np.random.default_rng(seed)
    c = costs.from_scale(np.cumsum(rng.uniform(0.1, 1, K)), rng.uniform(0.1, 3, K))
    assert costs.satisfies_scale_condition(c)
    scale, weights = costs.scale_and_weights(c)
    assert scale[0] == 0 and scale[-1] == 1 and (np.diff(scale) > 0).all()
    assert_allclose(costs.from_scale(scale, weights), c, rtol=1e-12, atol=1e-12)


def test_round_trip_with_a_class_of_no_weight():
    c = costs.from_scale([0, 1, 2, 5], [1, 0, 2, 1])
    scale, weights = costs.scale_and_weights(c)
    assert weights[1] == 0
    assert_allclose(costs.from_scale(scale, weights), c)


def test_orboost_thresholds_follow_the_scale_and_weights_of_the_paper():
    theta = np.array([-1.2, 0.1, 0.9])
    below, above = np.append(-np.inf, theta), np.append(theta, np.inf)
    ratio = np.exp(-above - below)  # inf for the lowest class: its position is zero
    position = 1 / (1 + ratio)
    with np.errstate(invalid="ignore"):
        weight = np.exp(below) * (1 + ratio)
    weight[0] = np.exp(-above[0])  # limit of e^t (1 + e^{-t - theta_1}) as t falls
    assert_allclose(costs.from_orboost_thresholds(theta), costs.from_scale(position, weight))


def test_orboost_costs_at_equal_thresholds_are_one_for_neighbours():
    c = costs.from_orboost_thresholds([0.3, 0.3, 0.3])
    assert_array_equal(c[0], [0, 1, 1, 1])
    assert_allclose(c[1, 2], 0)


def test_ordinal():
    assert_array_equal(costs.ordinal(5, "oerr")[3], [49, 36, 16, 0, 64])
    assert_array_equal(costs.ordinal(4, "absolute")[1], [1, 0, 1, 2])
    assert_array_equal(costs.ordinal(4, "squared")[1], [1, 0, 1, 4])


@given(counts_of)
def test_ovo_and_consecutive_are_averages(counts):
    # At a constant scorer every AUC is one half, so both risks must be one half too.
    n = np.array(counts, float)
    share = np.triu(np.outer(n, n), 1) / np.triu(np.outer(n, n), 1).sum()
    for c in (costs.ovo(n), costs.consecutive(n)):
        assert_allclose((share * c).sum(), 1.0)


def test_scale_condition_is_invariant_to_the_unit():
    c = costs.from_scale([0, 1, 3, 4], [1, 2, 1, 2])
    for unit in (1e-8, 1.0, 1e8):
        assert costs.satisfies_scale_condition(unit * c)
    assert not costs.satisfies_scale_condition(1e-8 * costs.constant(4))


@pytest.mark.parametrize("c", [costs.constant(3), costs.linear(5), costs.dcg(4)], ids=len)
def test_consistent_terms_are_those_of_theorem_4(c):
    K = len(c)
    weights = c.copy()
    for j in range(K):
        for i in range(j + 1, K):
            extra = c[0, j] * c[i, -1] / c[0, -1]
            weights[j, i] += extra
            weights[i, j] += extra
        weights[j, j] += c[0, j] * c[j, -1] / c[0, -1]
    assert_allclose(costs.with_consistent_terms(c), weights)
    assert np.linalg.matrix_rank(weights) == 1


def test_consistent_terms_change_nothing_for_two_classes():
    assert_array_equal(costs.with_consistent_terms([[0, 3], [0, 0]]), [[0, 3], [0, 0]])


def test_no_cost_between_extremes_is_not_a_scale():
    c = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0.0]])
    assert not costs.satisfies_scale_condition(c)
    with pytest.raises(CostConditionError, match=r"costs\[0, 2\], must be positive"):
        costs.scale_and_weights(c)


def test_error_names_the_classes():
    with pytest.raises(CostConditionError, match="classes 2 and 3 "):
        costs.scale_and_weights(costs.constant(4))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: costs.constant(1), ValueError, "K must be at least 2"),
        (lambda: costs.linear(2.5), TypeError, "K must be an integer"),
        (lambda: costs.dcg("3"), TypeError, "K must be an integer"),
        (lambda: costs.from_scale([2, 1]), ValueError, "scale must be in increasing order"),
        (lambda: costs.from_scale([1]), ValueError, "scale must have at least two"),
        (lambda: costs.from_scale([1, 2], [1]), ValueError, "weights must have length 2"),
        (lambda: costs.from_scale([1, 2], [1, -1]), ValueError, "weights must not be negative"),
        (lambda: costs.from_scale([1, np.nan]), ValueError, "scale must be finite, got nan"),
        (lambda: costs.ovo([3, 0]), ValueError, "counts must be at least two positive"),
        (lambda: costs.consecutive([3]), ValueError, "counts must be at least two positive"),
        (lambda: costs.from_orboost_thresholds([1, 0]), ValueError, "thresholds must be in"),
        (lambda: costs.from_orboost_thresholds([0, 900]), ValueError, "thresholds are so far"),
        (lambda: costs.ordinal(3, "cubic"), ValueError, "kind must be one of"),
        (lambda: costs.satisfies_scale_condition([1, 2]), ValueError, "costs must be a square"),
        (lambda: costs.satisfies_scale_condition(-costs.linear(3)), ValueError, "not be negative"),
        (lambda: costs.satisfies_scale_condition(np.eye(3)), ValueError, "below the diagonal"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "make", [costs.constant, costs.linear, costs.dcg, lambda K: costs.ordinal(K, "absolute")]
)
def test_more_classes_than_a_matrix_can_hold_are_refused(make):
    with pytest.raises(ValueError, match="K must be at least 2 and at most 10000, got 1000000"):
        make(10**6)


@pytest.mark.parametrize(
    ("make", "K"), [(costs.dcg, 1023), (lambda K: costs.ordinal(K, "oerr"), 512)]
)
def test_powers_of_two_are_finite_or_refused(make, K):
    assert np.isfinite(make(K)).all()
    with pytest.raises(ValueError, match=f"K must be at most {K}"):
        make(K + 1)


def test_a_class_of_weight_zero_shares_the_position_below_it():
    c = costs.from_scale([0.0, 0.3, 0.6, 1.0], [1.0, 1.0, 0.0, 2.0])
    scale, weights = costs.scale_and_weights(c)
    np.testing.assert_allclose(scale, [0.0, 0.3 / 1.7, 0.3 / 1.7, 1.0], atol=1e-12)
    assert weights[2] == 0.0
    np.testing.assert_allclose(costs.from_scale(scale, weights), c, atol=1e-12)


def test_the_classes_at_fault_are_numbered_as_in_the_book():
    c = costs.linear(4)
    c[1, 2] = 5.0
    with pytest.raises(
        CostConditionError, match=r"classes 2 and 3 \(of 1\.\.4\) violate it: c\(1,4\)"
    ):
        costs.scale_and_weights(c)
    c[0, 3] = 0.0
    with pytest.raises(CostConditionError, match=r"class 1 above class 4, costs\[0, 3\], must be"):
        costs.scale_and_weights(c)


@pytest.mark.parametrize("factor", [2.0**990, 2.0**-990])
def test_huge_and_tiny_costs_lose_nothing(factor):
    base = costs.linear(4)
    scale, weights = costs.scale_and_weights(base * factor)
    assert costs.satisfies_scale_condition(base * factor)
    np.testing.assert_allclose(scale, costs.scale_and_weights(base)[0], rtol=1e-14)
    np.testing.assert_allclose(weights / np.sqrt(factor), costs.scale_and_weights(base)[1])
    terms = costs.with_consistent_terms(base * factor)
    np.testing.assert_allclose(terms / factor, costs.with_consistent_terms(base))
    assert not costs.satisfies_scale_condition(costs.constant(4) * factor)


@pytest.mark.parametrize("function", [costs.ovo, costs.consecutive])
@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_only_ratios_of_counts_matter(function, factor):
    counts = np.array([3.0, 2.0, 4.0])
    np.testing.assert_allclose(function(counts * factor), function(counts), rtol=1e-13)


def test_costs_beyond_the_floats_are_refused():
    with pytest.raises(ValueError, match="scale and weights must give costs within the range"):
        costs.from_scale([0.0, 1e200], [1e100, 1e100])
    with pytest.raises(ValueError, match="counts must not differ by more than"):
        costs.ovo([1.0, 1e300])
    heavy = 1e304 * costs.from_scale([0.0, 0.5, 1.0], [1.0, 1e3, 1.0])
    with pytest.raises(ValueError, match="costs must give weights within the range of floats"):
        costs.with_consistent_terms(heavy)
