"""Newton's method against closed forms, scipy.optimize, and changes of variables."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.sparse.linalg import aslinearoperator

from rankbook.solvers.newton import minimize


class Quadratic:
    def __init__(self, a, b, operator=None):
        self.a, self.b = a, b
        self.operator = operator or (lambda h: h)

    def value(self, x):
        return 0.5 * x @ self.a @ x - self.b @ x

    def value_gradient_hessian(self, x):
        return self.value(x), self.a @ x - self.b, self.operator(self.a)


class Logistic:
    """Mean logistic loss of a linear model plus a ridge."""

    def __init__(self, x, y, alpha, operator=None):
        self.x, self.y, self.alpha = x, y, alpha
        self.operator = operator or (lambda h: h)

    def value(self, b):
        return np.logaddexp(0, -self.y * (self.x @ b)).mean() + 0.5 * self.alpha * b @ b

    def value_gradient_hessian(self, b):
        p = 1 / (1 + np.exp(self.y * (self.x @ b)))
        gradient = -self.x.T @ (self.y * p) / len(p) + self.alpha * b
        hessian = (self.x.T * (p * (1 - p))) @ self.x / len(p) + self.alpha * np.eye(len(b))
        return self.value(b), gradient, self.operator(hessian)


class SquaredHinge(Logistic):
    def value(self, b):
        return (np.maximum(0, 1 - self.y * (self.x @ b)) ** 2).mean() + 0.5 * self.alpha * b @ b

    def value_gradient_hessian(self, b):
        slack = np.maximum(0, 1 - self.y * (self.x @ b))
        gradient = -2 * self.x.T @ (self.y * slack) / len(slack) + self.alpha * b
        active = self.x[slack > 0]
        hessian = 2 * active.T @ active / len(slack) + self.alpha * np.eye(len(b))
        return self.value(b), gradient, self.operator(hessian)


class MinusLog:
    """c x - log x, finite on x > 0 alone; NaN or infinite beyond."""

    def __init__(self, c, outside):
        self.c, self.outside = c, outside

    def value(self, x):
        return self.c * x[0] - np.log(x[0]) if x[0] > 0 else self.outside

    def value_gradient_hessian(self, x):
        if x[0] <= 0:
            return self.outside, None, None
        return self.value(x), self.c - 1 / x, np.diag(x**-2)


OPERATORS = {
    "dense": None,
    "callable": lambda h: lambda v: h @ v,
    "LinearOperator": aslinearoperator,
}


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6)) * np.array([1, 10, 0.1, 1, 3, 1])
    y = np.where(x @ rng.normal(size=6) + rng.logistic(size=300) > 0, 1.0, -1.0)
    return x, y


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS.keys())
def test_quadratic_is_solved(operator):
    rng = np.random.default_rng(1)
    root = rng.normal(size=(8, 8))
    a, b = root @ root.T + np.eye(8), rng.normal(size=8)
    result = minimize(Quadratic(a, b, operator), np.zeros(8), tol=1e-20)
    np.testing.assert_allclose(result.x, np.linalg.solve(a, b), rtol=1e-7)
    assert result.converged
    if operator is None:
        assert result.n_iter <= 2


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS.keys())
@pytest.mark.parametrize("problem", [Logistic, SquaredHinge])
def test_agrees_with_scipy(problem, operator, sample):
    objective = problem(*sample, alpha=0.01, operator=operator)
    result = minimize(objective, np.zeros(6), tol=1e-14)
    peer = scipy_minimize(
        objective.value,
        np.zeros(6),
        jac=lambda b: objective.value_gradient_hessian(b)[1],
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert result.converged
    assert result.value <= peer.fun + 1e-12
    np.testing.assert_allclose(result.x, peer.x, atol=1e-6)


def test_decrement_is_half_the_newton_decrement_squared(sample):
    objective = Logistic(*sample, alpha=0.01)
    seen = []
    minimize(objective, np.zeros(6), callback=lambda k, x, v, d: seen.append((k, x, v, d)) or False)
    for k, (n_iter, x, value, decrement) in enumerate(seen):
        expected_value, gradient, hessian = objective.value_gradient_hessian(x)
        assert n_iter == k
        assert value == expected_value
        assert decrement == pytest.approx(0.5 * gradient @ np.linalg.solve(hessian, gradient))
    best = minimize(objective, np.zeros(6), tol=1e-20).value
    # Near the minimum the decrement estimates what is left to gain.
    assert seen[-2][3] == pytest.approx(seen[-2][2] - best, rel=0.1)


def test_iterates_follow_a_linear_change_of_variables(sample):
    x, y = sample
    scale = np.diag([1e-3, 5.0, 1e3, 1.0, 0.2, 7.0])
    plain = minimize(Logistic(x, y, alpha=0.0), np.zeros(6))
    scaled = minimize(Logistic(x @ scale, y, alpha=0.0), np.zeros(6))
    assert plain.n_iter == scaled.n_iter
    np.testing.assert_allclose(scale @ scaled.x, plain.x, rtol=1e-7)


@pytest.mark.parametrize("outside", [np.inf, np.nan])
def test_trials_outside_the_domain_are_backtracked(outside):
    # From x = 3 the full step leads to x (2 - 4 x) < 0.
    result = minimize(MinusLog(4.0, outside), [3.0], tol=1e-16)
    assert result.converged
    assert result.x[0] == pytest.approx(0.25, rel=1e-8)
    assert result.n_evaluations > result.n_iter + 1


def test_values_never_rise(sample):
    values = []
    objective = Logistic(*sample, alpha=1e-6)
    minimize(objective, np.full(6, 5.0), callback=lambda k, x, v, d: values.append(v) and False)
    assert len(values) > 3
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS.keys())
def test_singular_hessian(operator):
    a = np.diag([1.0, 0.0])
    result = minimize(Quadratic(a, np.array([2.0, 0.0]), operator), np.array([0.0, 5.0]))
    assert result.converged
    np.testing.assert_allclose(result.x, [2.0, 5.0], atol=1e-5)


def test_unbounded_below_is_not_called_converged():
    for operator in OPERATORS.values():
        objective = Quadratic(np.zeros((1, 1)), np.ones(1), operator)
        assert not minimize(objective, [0.0], max_iter=5).converged


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9])
def test_the_first_decrement_within_the_tolerance_ends_it(tol, sample):
    seen = []
    problem = Logistic(*sample, 0.01)
    steep = Quadratic(np.eye(1), np.array([np.sqrt(3.0 * tol)]))  # its decrement is 1.5 tol
    for objective, size in ((problem, sample[0].shape[1]), (steep, 1)):
        seen.clear()
        start = np.full(size, 3.0) if objective is problem else np.zeros(1)
        result = minimize(
            objective, start, tol=tol, callback=lambda n, x, value, to_go: seen.append(to_go)
        )
        assert result.reason in ("decrement", "zero_gradient")
        assert result.decrement == seen[-1] <= tol < min(seen[:-1])


def test_reasons():
    quadratic = Quadratic(np.eye(2), np.ones(2))
    assert minimize(quadratic, np.ones(2)).reason == "zero_gradient"
    assert minimize(MinusLog(1.0, np.inf), [0.5]).reason == "decrement"
    stopped = minimize(MinusLog(1.0, np.inf), [1e-3], max_iter=2)
    assert (stopped.reason, stopped.n_iter, stopped.converged) == ("max_iter", 2, False)
    assert "max_iter" in stopped.message
    asked = minimize(MinusLog(1.0, np.inf), [0.5], callback=lambda k, x, v, d: k == 1)
    assert (asked.reason, asked.n_iter) == ("callback", 1)


def test_rounding_counts_as_convergence():
    class Offset(Quadratic):
        """A value so large that the last decrements are lost in it."""

        def value(self, x):
            return 1e12 + super().value(x)

    result = minimize(Offset(np.eye(1), np.array([1e-3])), [0.0], tol=0.0)
    assert result.converged
    assert result.reason in ("rounding", "zero_gradient")


class Coarse(Logistic):
    """Values that are noise from the tenth digit on, derivatives that are not."""

    def value(self, b):
        return super().value(b) + 1e-10 * np.sin(1e12 * b.sum())


def test_steps_in_the_noise_of_values_go_by_slopes(sample):
    x, y = sample
    plain, noisy = (
        minimize(problem(x, y, 0.1), np.zeros(x.shape[1]), tol=1e-22)
        for problem in (Logistic, Coarse)
    )
    assert noisy.reason == plain.reason == "decrement"
    assert noisy.n_evaluations <= noisy.n_iter + 2
    np.testing.assert_allclose(noisy.x, plain.x, rtol=1e-10)


class Faint:
    """A small multiple of sqrt(1 + x^2), on which full steps go astray beyond one."""

    def value(self, x):
        return 1e-11 * float(np.hypot(1.0, x[0]))

    def value_gradient_hessian(self, x):
        root = np.hypot(1.0, x)
        return self.value(x), 1e-11 * x / root, np.diag(1e-11 / root**3)


def test_steps_in_the_noise_of_values_do_not_go_too_far():
    seen = []
    minimize(Faint(), np.array([3.0]), tol=1e-30, callback=lambda *at: seen.append(abs(at[1][0])))
    assert seen == sorted(seen, reverse=True) and seen[-1] < 1e-6


def test_a_wrong_gradient_is_reported():
    class Wrong(Quadratic):
        def value_gradient_hessian(self, x):
            value, gradient, hessian = super().value_gradient_hessian(x)
            return value, -gradient, hessian

    result = minimize(Wrong(np.eye(2), np.ones(2)), np.array([3.0, -1.0]))
    assert (result.reason, result.converged) == ("line_search", False)


def test_result_is_frozen_and_consistent(sample):
    objective = Logistic(*sample, alpha=0.1)
    start = np.ones(6)
    result = minimize(objective, start)
    value, gradient, hessian = objective.value_gradient_hessian(result.x)
    assert result.value == value
    np.testing.assert_array_equal(result.gradient, gradient)
    np.testing.assert_array_equal(result.hessian, hessian)
    assert result.gradient_norm == np.abs(gradient).max()
    np.testing.assert_array_equal(start, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.value = 0.0


def test_a_point_without_derivatives_is_no_iterate():
    """Beyond 2 the value is finite and the derivatives are not: shorter steps stop before."""

    class Edge(Quadratic):
        def value_gradient_hessian(self, x):
            value, gradient, hessian = super().value_gradient_hessian(x)
            return value, gradient * np.where(x > 2, np.nan, 1.0), hessian

    # The whole step goes to the minimum at 3, the half one from 0 to 1.5.
    result = minimize(Edge(np.eye(1), np.full(1, 3.0)), [0.0], max_iter=1)
    np.testing.assert_allclose(result.x, 1.5)
    # Steps of half the way that is left end below the edge.
    result = minimize(Edge(np.eye(1), np.full(1, 3.0)), [0.0])
    assert 1.5 <= result.x[0] <= 2 and not result.converged

    class Steep(Quadratic):
        def value_gradient_hessian(self, x):
            value, gradient, hessian = super().value_gradient_hessian(x)
            return value, gradient, hessian * np.where(x > 2, np.inf, 1.0)

    np.testing.assert_allclose(
        minimize(Steep(np.eye(1), np.full(1, 3.0)), [0.0], max_iter=1).x, 1.5
    )


def test_bad_starts_and_bad_objectives():
    with pytest.raises(ValueError, match="finite at x0"):
        minimize(MinusLog(1.0, np.inf), [-1.0])

    class NanGradient(Quadratic):
        def value_gradient_hessian(self, x):
            return self.value(x), x * np.nan, self.a

    with pytest.raises(ValueError, match="gradient is not finite"):
        minimize(NanGradient(np.eye(1), np.ones(1)), [0.0])
    with pytest.raises(ValueError, match="Hessian is not finite"):
        minimize(Quadratic(np.eye(1), np.ones(1), lambda h: h * np.inf), [0.0])
    with pytest.raises(ValueError, match="Hessian-vector product is not finite"):
        minimize(Quadratic(np.eye(1), np.ones(1), lambda h: lambda v: v * np.nan), [0.0])


def test_no_parameters():
    result = minimize(Quadratic(np.zeros((0, 0)), np.zeros(0)), np.zeros(0))
    assert result.converged
    assert result.x.shape == (0,)


def test_a_hessian_of_subnormal_numbers_ends_too():
    """A share of its largest entry rounds to zero, and would be added for ever."""

    class Flat:
        def value(self, x):
            return float(1e-300 * x.sum())

        def value_gradient_hessian(self, x):
            return self.value(x), np.full(2, 1e-300), np.full((2, 2), 1e-320)

    result = minimize(Flat(), np.zeros(2), tol=0.0, max_iter=1)
    assert np.isfinite(result.x).all() and result.n_iter == 1
