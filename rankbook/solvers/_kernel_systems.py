"""Newton's equations of kernel machines, with a dense kernel or a factor of low rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, cho_solve, lapack

from rankbook.solvers.kernels import KernelMatrix, require_memory
from rankbook.solvers.low_rank import LowRank, pivoted_cholesky

__all__ = ["Dense", "Factor", "System", "kernel_system"]

# Kernels of so few items are taken as they are; of more, a factor of low rank is looked for.
_SMALL = 400
# Beyond this share of the items a factor's system is more work than the dense one.
_WORTHWHILE_RANK = 0.5
# A factor is copied once while it grows.
_COPIES = 2
_ROWS = 4096


class System(Protocol):
    """A kernel that multiplies vectors and solves (I + TK) v = q."""

    rank: int

    def product(self, beta: np.ndarray) -> np.ndarray: ...

    def factorise(self, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]: ...


class Dense:
    """The kernel as a matrix."""

    def __init__(self, K: np.ndarray) -> None:
        self.K, self.rank = K, len(K)

    def product(self, beta: np.ndarray) -> np.ndarray:
        return self.K @ beta

    def factorise(self, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function from q to K v, where (I + TK) v = q."""
        root = np.sqrt(weights)
        scaled = np.multiply(self.K, root, order="F")
        scaled *= root[:, None]
        scaled[np.diag_indices_from(scaled)] += 1.0
        factor, info = lapack.dpotrf(scaled, lower=1, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite")

        def apply(q: np.ndarray) -> np.ndarray:
            inner = cho_solve((factor, True), (q.T / root).T, check_finite=False)
            return self.K @ (inner.T * root).T

        return apply


class Factor:
    """A kernel of low rank, K = LL'."""

    def __init__(self, factor: np.ndarray) -> None:
        self.L, self.rank = factor, factor.shape[1]

    def product(self, beta: np.ndarray) -> np.ndarray:
        return self.L @ (self.L.T @ beta)

    def factorise(self, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function from q to K v, where (I + TK) v = q."""
        inner = np.eye(self.rank, order="F")
        root = np.sqrt(weights)
        for first in range(0, len(root), _ROWS):
            part = slice(first, first + _ROWS)
            rows = np.asfortranarray((self.L[part] * root[part, None]).T)
            inner = blas.dsyrk(1.0, rows, beta=1.0, c=inner, lower=1, overwrite_c=1)
        factor, info = lapack.dpotrf(inner, lower=1, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite")
        return lambda q: self.L @ cho_solve((factor, True), self.L.T @ q, check_finite=False)


def kernel_system(
    matrix: KernelMatrix, tol: float, start: LowRank | None, max_memory: float
) -> tuple[Any, LowRank | None]:
    """The kernel by a factor with that tolerance, or dense if that is less work."""
    n = matrix.n
    if n <= _SMALL:
        return Dense(matrix.dense(max_memory)), None
    if matrix.kernel.name == "linear" and matrix.items.shape[1] <= _WORTHWHILE_RANK * n:
        items = matrix.items
        return Factor(items.toarray() if sp.issparse(items) else items), None
    room = int(max_memory // (8 * n * _COPIES))
    max_rank = min(int(_WORTHWHILE_RANK * n), room)
    low = pivoted_cholesky(matrix, tol, max_rank, start)
    if low.complete:
        return Factor(low.factor), low
    require_memory(n, max_memory)
    return Dense(matrix.dense(max_memory)), None
