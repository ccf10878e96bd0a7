"""The interior point: a program by hand, cvxpy's dual, certificates that bound, coarse factors."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankbook.solvers import _kernel_systems, interior_point
from rankbook.solvers.interior_point import solve
from tests.solvers.machine_samples import problem


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


def test_a_kernel_of_full_rank_is_dense(monkeypatch):
    program, matrix, K = problem(n=60)
    monkeypatch.setattr(_kernel_systems, "_SMALL", 10)
    monkeypatch.setattr(_kernel_systems, "_WORTHWHILE_RANK", 0.1)
    system, low = _kernel_systems.kernel_system(matrix, 1e-6, None, 2e9)
    assert isinstance(system, _kernel_systems.Dense) and low is None
    vector = np.arange(60.0)
    assert_allclose(system.product(vector), K @ vector, rtol=1e-12)
    assert solve(program, matrix).converged
