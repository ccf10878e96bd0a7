"""Surrogate losses: closed forms, finite differences, cvxpy, convexity, duality."""

from decimal import Decimal
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.differentiate import derivative
from scipy.optimize import minimize, minimize_scalar

from rankbook import losses

NAMED = [
    losses.get(name) for name in ("exponential", "logistic", "hinge", "squared_hinge", "squared")
]
ALL = [*NAMED, losses.SmoothedHinge(0.35)]
AWAY_FROM_KINK = np.array([-7.3, -1.0, -0.2, 0.0, 0.4, 0.8, 1.1, 5.0])


@pytest.mark.parametrize(
    ("name", "at_zero", "at_two"),
    [
        ("exponential", 1.0, np.exp(-2.0)),
        ("logistic", np.log(2.0), np.log(1.0 + np.exp(-2.0))),
        ("hinge", 1.0, 0.0),
        ("squared_hinge", 1.0, 0.0),
        ("squared", 1.0, 1.0),
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
def test_terms_are_value_and_derivatives(loss):
    s = np.append(AWAY_FROM_KINK, [-745.0, 1.0, 745.0])
    with np.errstate(over="ignore"):
        value, slope, curvature = loss.terms(s)
        assert_allclose(value, loss(s), rtol=1e-14, atol=1e-300)
        assert_allclose(slope, loss.derivative(s), rtol=1e-14, atol=1e-300)
        assert_allclose(curvature, loss.second_derivative(s), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_expression_equals_value(loss):
    z = cp.Parameter(AWAY_FROM_KINK.size, value=AWAY_FROM_KINK)
    expression = loss.expression(z)
    assert expression.is_convex()
    assert_allclose(expression.value, loss(AWAY_FROM_KINK), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_convex_non_negative_and_monotone_where_said(loss):
    s = np.linspace(-5, 5, 201)
    values = loss(s)
    assert (values >= 0).all()
    assert (np.diff(values) <= 0).all() == loss.is_non_increasing
    assert (np.diff(values, 2) >= -1e-12).all()
    assert loss.derivative(0.0) < 0
    assert (values.min() == 0) == loss.reaches_zero


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_smooth_is_a_continuous_derivative(loss):
    s = np.linspace(-3, 3, 60_001)
    jump = np.abs(np.diff(loss.derivative(s))).max()
    assert loss.is_smooth == (jump < 0.01)
    assert loss.is_piecewise_linear == (len(np.unique(loss.derivative(s))) == 2)


@pytest.mark.parametrize("loss", ALL, ids=repr)
@pytest.mark.parametrize("u", [-2.5, -1.0, -0.7, -0.1, 0.0, 0.4])
def test_conjugate_is_the_supremum(loss, u):
    s = np.linspace(-60, 60, 240_001)
    with np.errstate(over="ignore"):
        grid = u * s - loss(s)
    # A supremum at the end of a long grid is an infinite one; at u = 0 it may be approached.
    infinite = grid.argmax() in (0, s.size - 1) and grid.max() > 5
    conjugate = float(loss.conjugate(u))
    if infinite:
        assert conjugate == np.inf
    else:
        assert_allclose(conjugate, grid.max(), atol=1e-6)


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.is_smooth], ids=repr)
def test_fenchel_equality_at_the_slope(loss):
    # l*(l'(s)) = s l'(s) - l(s), which is how the models read a dual value off their sums.
    s = np.array([-3.0, -0.5, 0.0, 0.7, 0.9, 2.0])
    slope = loss.derivative(s)
    assert_allclose(loss.conjugate(slope), s * slope - loss(s), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", NAMED, ids=repr)
def test_rational_values(loss):
    s = Fraction(1, 3)
    exact = {"hinge": Fraction(2, 3), "squared_hinge": Fraction(4, 9), "squared": Fraction(4, 9)}
    value = loss.rational(s)
    assert isinstance(value, Fraction)
    assert value == exact.get(loss.name, value)
    assert_allclose(float(value), loss(1 / 3), rtol=1e-15)
    assert loss.rational(Fraction(2)) == {"squared": 1}.get(loss.name, Fraction(float(loss(2.0))))


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.hinge_parts], ids=repr)
def test_hinge_parts_add_up(loss):
    s = np.append(AWAY_FROM_KINK, 1.0)
    total = sum(c * np.maximum(m - s, 0.0) ** q for c, m, q in loss.hinge_parts)
    assert_allclose(total, loss(s), atol=1e-13)


def test_facts_of_single_losses():
    exponential, logistic, squared = losses.Exponential(), losses.Logistic(), losses.Squared()
    s, t = AWAY_FROM_KINK, AWAY_FROM_KINK[::-1]
    for loss in NAMED:
        product = np.allclose(loss(s + t), loss(s) * loss(t))
        assert loss.is_multiplicative == product == (loss == exponential)
        third = np.diff(loss(np.linspace(-4, 4, 50)), 3)
        assert loss.is_quadratic == (np.abs(third).max() < 1e-9) == (loss == squared)
    far = np.array([-60.0, -48.5, 48.5, 60.0])
    assert_allclose(logistic(far), np.maximum(-far, 0.0), atol=1e-20)
    assert logistic.tail == 48.0
    assert all(loss.tail == np.inf for loss in NAMED if loss != logistic)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_link_minimises_the_conditional_risk(loss):
    shares = [0.1, 0.35, 0.8]
    links = []
    for p in shares:
        risk = lambda s: p * float(loss(s)) + (1 - p) * float(loss(-s))  # noqa: B023, E731
        found = minimize_scalar(risk, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
        assert risk(loss.link(p)) <= found.fun + 1e-12
        links.append(loss.link(p))
        if loss.is_smooth:
            slope = p * loss.derivative(links[-1]) - (1 - p) * loss.derivative(-links[-1])
            assert abs(slope) < 1e-12
    # Between 0.1 and 0.35 the hinge's minimiser stays: it tells the likelier label, no more.
    assert (links[1] > links[0] + 1e-9) == loss.is_proper


def test_link_without_a_formula():
    p = 0.83
    assert_allclose(losses.Loss.link(losses.Logistic(), p), np.log(p / (1 - p)), rtol=1e-12)


@pytest.mark.parametrize("loss", NAMED, ids=repr)
def test_calibration_on_an_atomic_population(loss):
    # Three atoms whose likelihood ratios increase; ties or reversals refute calibration.
    positive, negative = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.4, 0.3])
    weight = np.outer(positive, negative)

    def risk(f):
        return float((weight * loss(f[:, None] - f[None, :])).sum())

    best = min(
        (
            minimize(risk, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14})
            for start in ([0.0, 0.0, 0.0], [0.0, 0.5, 1.0])
        ),
        key=lambda found: found.fun,
    )
    if loss.is_ranking_calibrated:
        assert (np.diff(best.x) > 1e-4).all()
    else:
        # Scores (0, 0, 1) do as well as any: the hinge ties the first two.
        assert risk(np.array([0.0, 0.0, 1.0])) <= best.fun + 1e-9


def test_squared_minimiser_is_affine_in_the_probability():
    positive, negative = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.4, 0.3])
    loss = losses.Squared()
    weight = np.outer(positive, negative)
    found = minimize(
        lambda f: float((weight * loss(f[:, None] - f[None, :])).sum()),
        np.zeros(3),
        method="BFGS",
        options={"gtol": 1e-10},
    )
    eta = positive / (positive + negative)
    slope = 2.0 - (positive - negative) @ found.x
    assert_allclose(np.diff(found.x), slope * np.diff(eta), rtol=1e-5)


def test_smoothed_hinge():
    loss = losses.Hinge().smoothed(0.25)
    assert loss == losses.SmoothedHinge(0.25) != losses.SmoothedHinge(0.5)
    assert repr(loss) == "SmoothedHinge(0.25)"
    assert hash(loss) == hash(losses.SmoothedHinge(0.25))
    s = np.linspace(-2, 3, 1001)
    below = losses.Hinge()(s) - loss(s)
    assert below.min() == 0
    assert_allclose(below.max(), 0.125)
    assert losses.Logistic().smoothed(0.1) == losses.Logistic()
    with pytest.raises(ValueError, match="width must be"):
        losses.SmoothedHinge(0.0)


def test_a_loss_with_a_kink_of_its_own_cannot_be_smoothed():
    class Absolute(losses.Hinge):
        def smoothed(self, width):
            return losses.Loss.smoothed(self, width)

    with pytest.raises(ValueError, match="has no smooth version"):
        Absolute().smoothed(0.1)


def test_extreme_scores_stay_finite():
    logistic = losses.Logistic()
    assert_allclose(logistic([-1e4, 1e4]), [1e4, 0.0])
    assert_allclose(logistic.derivative([-1e4, 1e4]), [-1.0, 0.0])


@pytest.mark.parametrize("loss", ALL, ids=repr)
@pytest.mark.parametrize("bad", [None, [1.0, None], 1j, [0.5 + 2j], "1.0", ["a"], object()])
def test_scores_must_be_real(loss, bad):
    for method in (loss, loss.derivative, loss.second_derivative, loss.terms):
        with pytest.raises(TypeError, match="s must hold real numbers, got "):
            method(bad)
    with pytest.raises(TypeError, match="u must hold real numbers, got "):
        loss.conjugate(bad)


def test_numbers_of_other_kinds_are_real():
    loss = losses.Squared()
    assert loss([Fraction(1, 2), Decimal("0.5"), True, 2]).tolist() == [0.25, 0.25, 0.0, 1.0]
    assert loss([]).shape == (0,)


def test_get_and_equality():
    assert losses.get("hinge") == losses.Hinge()
    hinge = losses.Hinge()
    assert losses.get(hinge) is hinge
    assert len({losses.Hinge(), losses.Hinge(), losses.Logistic()}) == 2
    with pytest.raises(ValueError, match="loss must be one of 'exponential'"):
        losses.get("hinges")
    with pytest.raises(ValueError, match="loss must be one of"):
        losses.get(3)
