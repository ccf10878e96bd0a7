"""Factors of kernel matrices to a tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankbook.solvers.kernels import Kernel, KernelMatrix
from rankbook.solvers.low_rank import pivoted_cholesky


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_pivoted_cholesky(tol):
    many = np.random.default_rng(0).normal(size=(200, 2))
    matrix = KernelMatrix(Kernel.build("rbf", many, gamma=0.1), many)
    K = matrix.dense()
    low = pivoted_cholesky(matrix, tol, 200)
    rest = K - low.factor @ low.factor.T
    assert low.complete and low.factor.shape[1] < 100
    assert low.residual == pytest.approx(np.trace(rest) / 200, abs=1e-14)
    assert np.trace(rest) <= 200 * tol * (1 + 1e-6)
    assert np.linalg.eigvalsh(rest).min() > -1e-12
    finer = pivoted_cholesky(matrix, max(tol**2, 1e-13), 200, low)
    assert_allclose(finer.factor[:, : low.factor.shape[1]], low.factor)
    assert finer.residual <= max(tol**2, 1e-13) < low.residual
    assert not pivoted_cholesky(matrix, 1e-12, 5).complete


def test_a_zero_kernel_has_an_empty_factor():
    matrix = KernelMatrix(Kernel("precomputed"), np.zeros((4, 4)))
    low = pivoted_cholesky(matrix, 1e-8, 4)
    assert low.complete and low.factor.shape == (4, 0) and low.residual == 0.0


def test_a_matrix_of_rank_one_has_a_factor_of_one_column():
    X = np.array([[1.0], [2.0], [-1.0]])
    matrix = KernelMatrix(Kernel.build("linear", X), X)
    low = pivoted_cholesky(matrix, 0.0, 3)
    assert_allclose(low.factor @ low.factor.T, matrix.dense(), atol=1e-14)
    assert low.complete and low.factor.shape == (3, 1)
