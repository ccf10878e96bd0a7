"""The interior point: a program by hand, cvxpy's dual, certificates that bound, coarse factors."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from rankbook.models.svor import svor_program
from rankbook.solvers import _kernel_systems, interior_point
from rankbook.solvers.box_program import certify
from rankbook.solvers.interior_point import solve
from rankbook.solvers.kernels import Kernel, KernelMatrix


def problem(n=30, n_classes=4, constraints="implicit", C=2.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    program = svor_program(codes, n_classes, np.full(n, C), constraints)
    matrix = KernelMatrix(Kernel.build("rbf", X, gamma=0.5), X)
    return program, matrix, rbf_kernel(X, gamma=0.5)


@pytest.mark.parametrize("constraints", ["implicit", "explicit", "free"])
def test_dual_is_cvxpys(constraints):
    for seed in range(4):
        program, matrix, K = problem(constraints=constraints, seed=seed)
        found = solve(program, matrix)
        x = cp.Variable(len(program.upper), nonneg=True)
        root = np.linalg.cholesky(K + 1e-12 * np.eye(30))
        value = program.linear @ x - 0.5 * cp.sum_squares(root.T @ (program.link @ x))
        bounded = np.isfinite(program.upper)
        limits = [x[bounded] <= program.upper[bounded], program.equality @ x == 0]
        best = cp.Problem(cp.Maximize(value), limits).solve(solver="CLARABEL")
        assert found.dual == pytest.approx(best, rel=1e-6)
        assert found.converged and found.gap <= 1e-6
        assert found.dual <= found.primal * (1 + 1e-12)
        assert_allclose(program.equality @ found.x, 0.0, atol=1e-10)
        assert (found.x >= 0).all() and (found.x <= program.upper).all()
        assert_allclose(found.f, K @ found.beta, atol=1e-10)


@pytest.mark.parametrize("constraints", ["implicit", "explicit", "free"])
def test_a_certificate_bounds_the_minimum_from_any_point(constraints):
    program, matrix, _ = problem(constraints=constraints)
    best = solve(program, matrix)
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = np.where(np.isfinite(program.upper), rng.uniform(size=len(program.upper)), 0.0)
        found = certify(program, matrix, x)
        assert found.dual <= best.primal and found.primal >= best.dual
        assert_allclose(program.equality @ found.x, 0.0, atol=1e-12)


def test_a_coarse_factor_is_refined(monkeypatch):
    program, matrix, K = problem(n=60)
    monkeypatch.setattr(_kernel_systems, "_SMALL", 10)
    monkeypatch.setattr(_kernel_systems, "_WORTHWHILE_RANK", 1.0)
    monkeypatch.setattr(interior_point, "_FACTOR_TOL", 0.1)
    calls = []
    original = interior_point.kernel_system

    def spy(*arguments):
        system, low = original(*arguments)
        calls.append(system.rank)
        return system, low

    monkeypatch.setattr(interior_point, "kernel_system", spy)
    found = solve(program, matrix)
    assert len(calls) > 1 and (np.diff(calls) > 0).all()
    assert found.converged
    assert found.primal == pytest.approx(
        0.5 * found.beta @ K @ found.beta + _hinges(program, found)
    )


def _hinges(program, found):
    slack = program.linear - program.link.T @ found.f + program.equality.T @ found.theta
    return float(program.upper @ np.maximum(slack, 0))


def test_it_says_when_steps_run_out():
    program, matrix, _ = problem()
    found = solve(program, matrix, max_iter=2)
    assert not found.converged and found.gap > 1e-6
    assert found.primal >= solve(program, matrix).dual


def test_balancing_keeps_the_box():
    program = svor_program(np.array([0, 1, 2, 1]), 3, np.ones(4), "explicit")
    x = np.array([1.0, 0.2, 0.5, 0.9, 0.3, 0.4, 0.1])
    found = program.balanced(x)
    assert_allclose(program.equality @ found, 0.0, atol=1e-15)
    assert (found <= x).all() and found[-1] == x[-1]
    assert program.balanced(np.array([0.0, 0, 0, 0, 0, 0, 1.0])) is None
    assert isinstance(program.link, sp.csr_array)
