"""Surrogate losses: closed forms, finite differences, cvxpy, convexity."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.differentiate import derivative

from rankbook import losses

ALL = [losses.get(name) for name in ("exponential", "logistic", "hinge", "squared_hinge")]
AWAY_FROM_KINK = np.array([-7.3, -1.0, -0.2, 0.0, 0.4, 0.9, 1.1, 5.0])


@pytest.mark.parametrize(
    ("name", "at_zero", "at_two"),
    [
        ("exponential", 1.0, np.exp(-2.0)),
        ("logistic", np.log(2.0), np.log(1.0 + np.exp(-2.0))),
        ("hinge", 1.0, 0.0),
        ("squared_hinge", 1.0, 0.0),
    ],
)
def test_closed_form(name, at_zero, at_two):
    assert_allclose(losses.get(name)([0.0, 2.0]), [at_zero, at_two], rtol=1e-14)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_derivative_is_the_slope(loss):
    slope = derivative(loss, AWAY_FROM_KINK, initial_step=0.02).df
    assert_allclose(loss.derivative(AWAY_FROM_KINK), slope, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_second_derivative_is_the_slope_of_the_derivative(loss):
    slope = derivative(loss.derivative, AWAY_FROM_KINK, initial_step=0.02).df
    assert_allclose(loss.second_derivative(AWAY_FROM_KINK), slope, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_expression_equals_value(loss):
    z = cp.Parameter(AWAY_FROM_KINK.size, value=AWAY_FROM_KINK)
    expression = loss.expression(z)
    assert expression.is_convex()
    assert_allclose(expression.value, loss(AWAY_FROM_KINK), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_convex_non_increasing_non_negative(loss):
    s = np.linspace(-5, 5, 201)
    values = loss(s)
    assert (values >= 0).all()
    assert (np.diff(values) <= 0).all()
    assert (np.diff(values, 2) >= -1e-12).all()


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_calibration_is_differentiability_here(loss):
    # All four are convex and non-increasing with a negative slope at 0; a kink decides.
    h = 1e-6
    jump = np.abs(loss.derivative(1.0 + h) - loss.derivative(1.0 - h))
    assert loss.is_ranking_calibrated == (jump < 1e-3)
    assert loss.derivative(0.0) < 0


def test_extreme_scores_stay_finite():
    logistic = losses.Logistic()
    assert_allclose(logistic([-1e4, 1e4]), [1e4, 0.0])
    assert_allclose(logistic.derivative([-1e4, 1e4]), [-1.0, 0.0])


def test_get_and_equality():
    assert losses.get("hinge") == losses.Hinge()
    hinge = losses.Hinge()
    assert losses.get(hinge) is hinge
    assert len({losses.Hinge(), losses.Hinge(), losses.Logistic()}) == 2
    with pytest.raises(ValueError, match="loss must be one of 'exponential'"):
        losses.get("hinges")
    with pytest.raises(ValueError, match="loss must be one of"):
        losses.get(3)
