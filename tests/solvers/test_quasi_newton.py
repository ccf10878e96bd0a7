"""BFGS from a given matrix: where it ends, what it counts, and when it gives up."""

import numpy as np
import pytest
from scipy.linalg import cho_factor

from rankbook.solvers.newton import minimize
from rankbook.solvers.quasi_newton import _inverse_product, bfgs_update, minimize_from


class Logistic:
    """Mean logistic loss with a ridge."""

    def __init__(self, seed=0, n=200, p=6):
        rng = np.random.default_rng(seed)
        self.X, self.calls = rng.normal(size=(n, p)), 0

    def value_gradient(self, b):
        self.calls += 1
        s = self.X @ b - 0.3
        value = np.logaddexp(0, s).mean() + 0.05 * b @ b
        return value, self.X.T @ (1 / (1 + np.exp(-s))) / len(s) + 0.1 * b

    def hessian(self, b):
        q = 1 / (1 + np.exp(-(self.X @ b - 0.3)))
        return (self.X.T * (q * (1 - q))) @ self.X / len(q) + 0.1 * np.eye(len(b))

    def value(self, b):
        return self.value_gradient(b)[0]

    def value_gradient_hessian(self, b):
        return *self.value_gradient(b), self.hessian(b)


def test_ends_where_newton_does():
    f = Logistic()
    exact = minimize(f, np.zeros(6), tol=1e-15)
    for factor in (0.5, 1.0, 2.0):
        start = factor * f.hessian(np.ones(6))
        found = minimize_from(f, np.zeros(6), start, tol=1e-15, max_iter=50)
        assert found.converged and found.reason == "decrement"
        np.testing.assert_allclose(found.x, exact.x, atol=1e-6)
        assert found.decrement <= 1e-15
        value, gradient = f.value_gradient(found.x)
        assert found.value == value
        np.testing.assert_array_equal(found.gradient, gradient)


def test_steps_correct_the_matrix():
    """On a quadratic the corrected matrix is exact after p steps; a fixed one is far from it."""
    H = np.diag([1.0, 3.0, 9.0])

    class Quadratic:
        def value_gradient(self, x):
            return 0.5 * x @ H @ x, H @ x

    found = minimize_from(Quadratic(), np.ones(3), 10.0 * np.eye(3), tol=1e-12, max_iter=25)
    assert found.converged
    fixed = np.ones(3)
    for _ in range(found.n_iter):
        fixed = fixed - H @ fixed / 10.0
    assert found.value < 1e-3 * (0.5 * fixed @ H @ fixed)


def test_counts_and_stops():
    f, steps = Logistic(), []
    found = minimize_from(
        f,
        np.zeros(6),
        f.hessian(np.zeros(6)),
        tol=1e-30,
        max_iter=3,
        callback=lambda n, x, value, decrement: steps.append((n, value, decrement)) or False,
    )
    assert (found.reason, found.n_iter, found.converged) == ("max_iter", 3, False)
    assert found.n_evaluations == f.calls
    assert [n for n, *_ in steps] == [0, 1, 2, 3]
    assert steps[-1][1:] == (found.value, found.decrement)
    stopped = minimize_from(
        f, np.zeros(6), np.eye(6), tol=0.0, max_iter=9, callback=lambda *_: True
    )
    assert (stopped.reason, stopped.n_iter) == ("callback", 0)


def test_gives_up_where_no_step_descends():
    class Wall:
        def value_gradient(self, x):
            return (0.0, np.array([1.0])) if x[0] == 0 else (np.inf, None)

    found = minimize_from(Wall(), np.zeros(1), np.eye(1), tol=1e-9, max_iter=5)
    assert (found.reason, found.converged, found.x[0]) == ("line_search", False, 0.0)
    with pytest.raises(np.linalg.LinAlgError):
        minimize_from(Wall(), np.zeros(1), -np.eye(1), tol=1e-9, max_iter=5)


def test_the_matrix_sends_the_last_step_to_its_difference():
    rng = np.random.default_rng(4)
    H = np.diag([1.0, 3.0, 9.0, 2.0])
    moves = rng.normal(size=(3, 4))
    pairs = [(s, H @ s, float(s @ H @ s)) for s in moves]
    factor = cho_factor(5.0 * np.eye(4))
    np.testing.assert_allclose(_inverse_product(factor, pairs, H @ moves[-1]), moves[-1])
    found = np.stack([_inverse_product(factor, pairs, e) for e in np.eye(4)])
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert np.linalg.eigvalsh(found)[0] > 0


def test_the_matrix_arrived_at_is_the_one_that_its_steps_use():
    """Its inverse is that of the two loops, and it has the curvature along the last step."""
    f, seen = Logistic(), []
    found = minimize_from(
        f,
        np.zeros(6),
        3.0 * np.eye(6),
        tol=0.0,
        max_iter=5,
        callback=lambda n, x, *_: seen.append(x.copy()),
    )
    matrix = found.hessian
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    assert np.linalg.eigvalsh(matrix)[0] > 0
    moved = seen[-1] - seen[-2]
    change = f.value_gradient(seen[-1])[1] - f.value_gradient(seen[-2])[1]
    np.testing.assert_allclose(matrix @ moved, change, rtol=1e-10)
    decrement = 0.5 * found.gradient @ np.linalg.solve(matrix, found.gradient)
    assert found.decrement == pytest.approx(decrement, rel=1e-10)


def test_the_updated_matrix_takes_the_step_to_the_change():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 4))
    matrix, moved = half @ half.T, rng.normal(size=4)
    change = (matrix + np.diag([1.0, 2.0, 3.0, 4.0])) @ moved
    updated = bfgs_update(matrix, moved, change)
    np.testing.assert_allclose(updated @ moved, change, rtol=1e-12)
    np.testing.assert_allclose(updated, updated.T, rtol=1e-12)
    assert np.linalg.eigvalsh(updated)[0] > 0.0
    assert np.array_equal(bfgs_update(matrix, moved, -change), matrix)
