"""Kernels: scikit-learn's, blocks, factors, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from rankbook.exceptions import KernelMemoryError
from rankbook.solvers import kernels
from rankbook.solvers.kernels import Kernel, KernelMatrix

X = np.random.default_rng(0).normal(size=(50, 3))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_matrix_is_scikit_learns(name, sparse, monkeypatch):
    items = sp.csr_array(X) if sparse else X
    matrix = KernelMatrix(Kernel.build(name, items, gamma=0.3), items)
    centred = X if sparse else X - X.mean(axis=0)
    expected = linear_kernel(centred) if name == "linear" else rbf_kernel(X, gamma=0.3)
    monkeypatch.setattr(kernels, "_BLOCK", 120)
    vector = np.where(np.arange(50) % 3, 0.0, np.arange(50.0))
    assert_allclose(matrix.product(vector), expected @ vector, atol=1e-10)
    assert_allclose(matrix.diagonal(), np.diagonal(expected), atol=1e-12)
    assert_allclose(matrix.columns(np.array([3, 1])), expected[:, [3, 1]], atol=1e-12)
    assert_allclose(matrix.dense(), expected, atol=1e-12)


def test_polynomial_and_callable():
    expected = polynomial_kernel(X, gamma=0.2, degree=2, coef0=0.5)
    poly = KernelMatrix(Kernel.build("poly", X, 0.2, 2, 0.5), X)
    own = KernelMatrix(Kernel.build(lambda A, B: (0.2 * A @ B.T + 0.5) ** 2, X), X)
    for matrix in (poly, own):
        assert_allclose(matrix.diagonal(), np.diagonal(expected))
        assert_allclose(matrix.dense(), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_scale(weighted):
    weight = np.random.default_rng(1).integers(1, 4, 50) if weighted else None
    rows = np.repeat(X, weight, axis=0) if weighted else X
    for items in (X, sp.csr_array(X)):
        found = Kernel.build("rbf", items, weight=weight).gamma
        assert found == pytest.approx(1 / (3 * rows.var()))
    assert Kernel.build("rbf", np.ones((4, 2))).gamma == 1.0


def test_far_clusters_keep_their_distances():
    far = X + 1e9 * (np.arange(50) % 2)[:, None]
    near = np.arange(50)[:, None] % 2 == np.arange(50) % 2
    found = KernelMatrix(Kernel.build("rbf", far, gamma=0.5), far).dense()
    assert_allclose(found, rbf_kernel(X, gamma=0.5) * near, atol=1e-6)


def test_memory():
    matrix = KernelMatrix(Kernel.build("rbf", X), X)
    assert matrix.dense(16 * 2500).shape == (50, 50)
    with pytest.raises(KernelMemoryError, match="2 x 8 n"):
        KernelMatrix(Kernel.build("rbf", X), X).dense(16 * 2500 - 1)


def test_kernels_that_leave_the_floats_are_refused():
    with pytest.raises(ValueError, match="X must give finite kernels, got inf from the poly"):
        KernelMatrix(Kernel.build("poly", 1e200 * X, gamma=1.0, degree=3), 1e200 * X).dense()
    with pytest.raises(ValueError, match="gamma='scale' is .* scale X"):
        Kernel.build("rbf", 1e-170 * X, gamma="scale")
    with pytest.raises(ValueError, match="precomputed kernel X must be square"):
        KernelMatrix(Kernel.build("precomputed", X), X)
