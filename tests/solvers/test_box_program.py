"""Feasible points of the program, and the gap that they certify."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from rankbook.models.svor import svor_program
from rankbook.solvers.box_program import certify
from rankbook.solvers.interior_point import solve
from tests.solvers.machine_samples import problem


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


def test_balancing_keeps_the_box():
    program = svor_program(np.array([0, 1, 2, 1]), 3, np.ones(4), "explicit")
    x = np.array([1.0, 0.2, 0.5, 0.9, 0.3, 0.4, 0.1])
    found = program.balanced(x)
    assert_allclose(program.equality @ found, 0.0, atol=1e-15)
    assert (found <= x).all() and found[-1] == x[-1]
    assert program.balanced(np.array([0.0, 0, 0, 0, 0, 0, 1.0])) is None
    assert isinstance(program.link, sp.csr_array)
