"""Every check passes what is good, and names the argument in what is not."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankbook import _validation as v


def test_named_costs_and_none():
    assert_array_equal(v.check_costs(None, 3), v.check_costs("constant", 3))
    assert_array_equal(v.check_costs("linear", 3)[0], [0, 1, 2])


def test_generators():
    generator = np.random.default_rng(3)
    assert v.check_rng(generator) is generator
    assert v.check_rng(3).random() == np.random.default_rng(3).random()
    assert isinstance(v.check_rng(np.random.RandomState(0)), np.random.Generator)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: v.check_scores([]), ValueError, "scores must not be empty"),
        (lambda: v.check_scores([[1.0]]), ValueError, r"scores must be one-dim.*\(1, 1\)"),
        (lambda: v.check_scores([1.0, np.nan]), ValueError, "scores must be finite, got nan at i"),
        (lambda: v.check_scores([np.inf]), ValueError, "scores must be finite, got inf"),
        (lambda: v.check_scores(["a"]), TypeError, "scores must be real numbers"),
        (lambda: v.check_scores([1j]), TypeError, "scores must be real numbers"),
        (lambda: v.check_scores([object()]), TypeError, "scores must be real numbers"),
        (lambda: v.check_labels([1, 1]), ValueError, r"y must hold at least 2 classes, got 1: \[1"),
        (lambda: v.check_labels([1.0, np.nan]), ValueError, "y must be finite"),
        (lambda: v.check_labels([]), ValueError, "y must not be empty"),
        (lambda: v.check_labels([[0, 1]]), ValueError, "y must be one-dimensional"),
        (lambda: v.check_labels([0, 1], n=3), ValueError, "y and scores must have the same len"),
        (lambda: v.check_weights([1, -1], 2), ValueError, "sample_weight must not be negative"),
        (lambda: v.check_weights([0, 0], 2), ValueError, "sample_weight must have a positive sum"),
        (lambda: v.check_weights(np.array(["1"], object), 1), TypeError, "sample_weight must be r"),
        (lambda: v.check_weights(np.array([np.complex128(1j)], object), 1), TypeError, "real numb"),
        (lambda: v.check_weights([1], 2), ValueError, "sample_weight and y must have the same"),
        (lambda: v.check_qid([1], 2), ValueError, "qid and y must have the same length"),
        (lambda: v.check_costs(np.ones((2, 2)), 3), ValueError, r"costs must have shape \(3, 3\)"),
        (lambda: v.check_costs("cubic", 3), ValueError, "costs must be one of"),
        (lambda: v.check_costs(np.eye(2), 2), ValueError, "on and below the diagonal"),
        (
            lambda: v.check_costs([[0, np.inf], [0, 0]], 2),
            ValueError,
            r"costs must be finite.*0, 1",
        ),
        (lambda: v.check_probabilities([0.5, 0.6]), ValueError, "must sum to one, got.* 1.1"),
        (lambda: v.check_probabilities([1.5, -0.5]), ValueError, "must not be negative"),
        (lambda: v.check_probabilities([1.0], n=2), ValueError, "must have length 2"),
        (lambda: v.check_posterior([[1.0], [1.0]]), ValueError, "posterior must have shape"),
        (lambda: v.check_posterior([[0.5, 0.6]]), ValueError, "posterior must sum to one"),
        (lambda: v.check_thresholds([2, 1]), ValueError, "thresholds must be in increasing order"),
        (lambda: v.check_thresholds([1.0], n=2), ValueError, "thresholds must have length K - 1"),
        (lambda: v.check_ties(1.5), ValueError, "ties must be at least 0.0 and at most 1.0"),
        (lambda: v.check_ties("half"), TypeError, "ties must be a real number"),
        (lambda: v.check_rng("seed"), TypeError, "rng must be None, a non-negative integer"),
        (lambda: v.check_rng(-1), TypeError, "rng must be None, a non-negative integer"),
        (lambda: v.check_square([[1, 2]]), ValueError, "a must be a square matrix"),
        (lambda: v.check_square([[0, -1], [0, 0]]), ValueError, "a must not be negative"),
        (
            lambda: v.check_choice("x", ("a", "b"), "kind"),
            ValueError,
            "kind must be one of 'a', 'b",
        ),
        (lambda: v.check_scalar(10**400, "alpha"), ValueError, "alpha must be within the range"),
        (lambda: v.check_flag(1, "per_query"), TypeError, "per_query must be True or False, got 1"),
        (lambda: v.check_costs("dcg", 1024), ValueError, "costs 'dcg' overflow"),
        (lambda: v.check_scalar(True, "alpha"), TypeError, "alpha must be a real number"),
        (lambda: v.check_scalar(0, "alpha", low=0, strict_low=True), ValueError, "greater than 0"),
        (lambda: v.check_scalar(np.nan, "alpha"), ValueError, "alpha must be finite"),
        (lambda: v.check_scalar(2.0, "k", integer=True), TypeError, "k must be an integer"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
