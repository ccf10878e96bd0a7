r"""Kernels of items, and their matrices in blocks.

A `KernelMatrix` is the n x n matrix :math:`K_{ab} = k(x_a, x_b)` that need not be formed: products
are computed from blocks of columns.

The linear and the rbf kernel see dense columns less their means: a shift changes no distance,
and moves all linear scores alike where coefficients sum to zero. Time stamps of :math:`10^9` then
keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from scipy.spatial.distance import cdist

from rankbook._validation import check_choice, check_scalar
from rankbook.exceptions import KernelMemoryError

__all__ = ["Kernel", "KernelMatrix", "require_memory"]

_NAMES = ("linear", "rbf", "poly", "precomputed")
# Entries of a block of columns.
_BLOCK = 2**22
# Squared distances from inner products are wrong by rounding; beyond this, differences are taken.
_ROUNDING = 1e-12
# A symmetric matrix with an eigenvalue below minus this share of its norm is no kernel.
_INDEFINITE = 1e-6
# Outside of this and its inverse the squares of the entries of X, or gamma itself, lose digits.
_LEAST_GAMMA = 1e-300


@dataclass(frozen=True)
class Kernel:
    r"""A function of two sets of items, with its parameters as numbers.

    Parameters
    ----------
    name : {"linear", "rbf", "poly", "precomputed", "callable"}
        :math:`x^\top z`, :math:`\exp(-\gamma \|x - z\|^2)`, :math:`(\gamma x^\top z + c)^d`,
        rows of a matrix that is given, or a function.
    gamma, degree, coef0 : float, int, float
        The parameters :math:`\gamma`, d and c.
    function : callable, default=None
        For "callable": takes two arrays of items, returns the matrix of their kernels.
    shift : ndarray of shape (p,), default=None
        Taken from the columns of dense items.

    Examples
    --------
    >>> kernel = Kernel.build("rbf", [[0.0], [1.0]], gamma=2.0)
    >>> kernel(kernel.prepare([[0.0]]), kernel.prepare([[0.0], [1.0]])).round(3)
    array([[1.   , 0.135]])
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Callable | None = None
    shift: np.ndarray | None = None

    @classmethod
    def build(
        cls,
        kernel: Any,
        X: Any,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        weight: np.ndarray | None = None,
    ) -> Kernel:
        """Check the parameters, and resolve those that depend on the items.

        Parameters
        ----------
        kernel : str or callable
            A name, or a function of two arrays.
        X : array-like or sparse matrix of shape (n, p)
            Items.
        gamma : "scale" or float, default="scale"
            Positive; "scale" is 1 / (p times the variance of all entries), 1 if that is zero.
        degree : int, default=3
            At least 1.
        coef0 : float, default=0.0
            At least 0, else the polynomial is no kernel.
        weight : ndarray of shape (n,), default=None
            Weights of the items in the variance.

        Returns
        -------
        Kernel
            The kernel.
        """
        name = "callable" if callable(kernel) else check_choice(kernel, _NAMES, "kernel")
        X = X if sp.issparse(X) else np.asarray(X, dtype=float)
        if sp.issparse(X) and name not in ("linear", "rbf"):
            raise TypeError(f"sparse X is for the linear and the rbf kernel, got kernel={kernel!r}")
        if not isinstance(gamma, str):
            gamma = check_scalar(gamma, "gamma", low=0.0, strict_low=True)
        else:
            check_choice(gamma, ("scale",), "gamma")
            gamma = _scale(X, weight) if name in ("rbf", "poly") else 1.0
        degree = check_scalar(degree, "degree", low=1, integer=True)
        coef0 = check_scalar(coef0, "coef0", low=0.0)
        shift = None
        if name in ("linear", "rbf") and not sp.issparse(X):
            # In units of the largest entry, so that sums of large numbers stay finite.
            unit = max(float(np.abs(X).max()), np.finfo(float).tiny)
            shift = (X / unit).mean(axis=0) * unit
        return cls(name, gamma, degree, coef0, kernel if name == "callable" else None, shift)

    def prepare(self, X: Any) -> Any:
        """Return items as the kernel takes them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Items.

        Returns
        -------
        ndarray or csr_array
            Less the shift, if there is one; sparse items stay sparse.
        """
        if sp.issparse(X):
            X = sp.csr_array(X)
            return X if self.shift is None else self.prepare(X.toarray())
        X = np.asarray(X, dtype=float)
        return X if self.shift is None else X - self.shift

    def __call__(self, A: Any, B: Any) -> np.ndarray:
        """Return the kernels of prepared items with prepared items."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._values(A, B)
        if not np.isfinite(values).all():
            raise ValueError(
                f"X must give finite kernels, got {values[~np.isfinite(values)][0]} from the "
                f"{self.name} kernel: scale the columns of X"
            )
        return values

    def _values(self, A: Any, B: Any) -> np.ndarray:
        if self.function is not None:
            values = np.asarray(self.function(A, B), dtype=float)
            if values.shape != (A.shape[0], B.shape[0]):
                raise ValueError(
                    f"kernel must return an array of shape {(A.shape[0], B.shape[0])}, got "
                    f"{values.shape}"
                )
            return values
        if self.name == "rbf":
            values = _squared_distances(A, B, self.gamma)
            values *= -self.gamma
            return np.exp(values, out=values)
        values = _inner(A, B)
        if self.name == "poly":
            values *= self.gamma
            values += self.coef0
            values **= self.degree
        return values

    def diagonal(self, A: Any) -> np.ndarray:
        """Return the kernel of each prepared item with itself."""
        if self.name == "rbf":
            return np.ones(A.shape[0])
        if self.function is not None:
            blocks = np.array_split(np.arange(A.shape[0]), 1 + A.shape[0] // 64)
            return np.concatenate([np.diagonal(self(A[rows], A[rows])) for rows in blocks])
        with np.errstate(over="ignore"):
            values = _square_norms(A)
            if self.name == "poly":
                values = (self.gamma * values + self.coef0) ** self.degree
        if not np.isfinite(values).all():
            raise ValueError(f"X must give finite kernels, got inf from the {self.name} kernel")
        return values


def _scale(X: Any, weight: np.ndarray | None) -> float:
    """One over the columns times the variance of the entries; one where that is zero."""
    size = float(abs(X).max())
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
    variance = 0.0
    if size > 0:
        # A sparse X holds its zeros only in the count of its columns.
        relative = X / size
        mean = float((share @ relative).sum()) / X.shape[1]
        if sp.issparse(X):
            variance = float(share @ _square_norms(relative)) / X.shape[1] - mean**2
        else:
            variance = float(share @ ((relative - mean) ** 2).sum(axis=1)) / X.shape[1]
    if not variance > 0:
        return 1.0
    with np.errstate(over="ignore"):
        gamma = float(1.0 / size / size / (X.shape[1] * variance))
    if not _LEAST_GAMMA < gamma < 1 / _LEAST_GAMMA:
        raise ValueError(f"gamma='scale' is {gamma} for entries of X as large as {size}: scale X")
    return gamma


def _inner(A: Any, B: Any) -> np.ndarray:
    product = A @ B.T
    return product.toarray() if sp.issparse(product) else np.array(product)


def _square_norms(A: Any) -> np.ndarray:
    if sp.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", A, A)


def _squared_distances(A: Any, B: Any, gamma: float) -> np.ndarray:
    a, b = _square_norms(A), _square_norms(B)
    error = 4.0 * np.finfo(float).eps * (a.max(initial=0.0) + b.max(initial=0.0)) * gamma
    if not error <= _ROUNDING:
        if not sp.issparse(A):
            return cdist(A, B, "sqeuclidean")
        if not error <= _INDEFINITE:
            raise ValueError(
                f"gamma times the squared distances of sparse X is wrong by up to {error:.1e} in "
                "floats: scale the columns, or give a dense X"
            )
    values = _inner(A, B)
    values *= -2.0
    values += a[:, None]
    values += b[None, :]
    return np.maximum(values, 0.0, out=values)


class KernelMatrix:
    """The kernels of all pairs of n items, formed only where asked for.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array-like or sparse matrix of shape (n, p)
        Items; for "precomputed", the symmetric n x n matrix itself.

    Attributes
    ----------
    n : int
        Number of items.
    items : ndarray or csr_array
        The items as the kernel takes them.

    Examples
    --------
    >>> matrix = KernelMatrix(Kernel.build("linear", [[-1.0], [1.0]]), [[-1.0], [1.0]])
    >>> matrix.dense().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    >>> matrix.product([1.0, 0.0]).tolist()
    [1.0, -1.0]
    """

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.kernel, self.items = kernel, kernel.prepare(X)
        self.n = self.items.shape[0]
        self._dense: np.ndarray | None = None
        if kernel.name == "precomputed":
            _check_precomputed(self.items)
            self._dense = self.items
            _check_definite(self.items)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal."""
        if self._dense is not None:
            return np.diagonal(self._dense).copy()
        return self.kernel.diagonal(self.items)

    def columns(self, chosen: np.ndarray) -> np.ndarray:
        """Return some columns.

        Parameters
        ----------
        chosen : ndarray of int
            Which.

        Returns
        -------
        ndarray of shape (n, len(chosen))
            The columns.
        """
        if self._dense is not None:
            return self._dense[:, chosen]
        return self.kernel(self.items, self.items[chosen])

    def dense(self, max_memory: float = np.inf) -> np.ndarray:
        """Return the whole matrix, and keep it.

        Parameters
        ----------
        max_memory : float, default=inf
            Bytes that the matrix and one copy may take.

        Returns
        -------
        ndarray of shape (n, n)
            The matrix.
        """
        if self._dense is None:
            require_memory(self.n, max_memory)
            self._dense = self.kernel(self.items, self.items)
            if self.kernel.function is not None:
                _check_precomputed(self._dense)
                _check_definite(self._dense)
        return self._dense

    def product(self, coefficients: Any) -> np.ndarray:
        """Return the matrix times a vector, from the columns where that is not zero.

        Parameters
        ----------
        coefficients : array-like of shape (n,)
            The vector.

        Returns
        -------
        ndarray of shape (n,)
            The product.
        """
        coefficients = np.asarray(coefficients, dtype=float)
        if self._dense is not None:
            return self._dense @ coefficients
        if self.kernel.name == "linear":
            return np.asarray(self.items @ (self.items.T @ coefficients)).ravel()
        chosen = np.flatnonzero(coefficients)
        width = max(1, _BLOCK // self.n)
        total = np.zeros(self.n)
        for first in range(0, len(chosen), width):
            block = chosen[first : first + width]
            total += self.columns(block) @ coefficients[block]
        return total


def require_memory(n: int, max_memory: float) -> None:
    """Raise if a dense n x n kernel and its Cholesky factor take more bytes than allowed."""
    needed = 16.0 * n * n
    if needed > max_memory:
        raise KernelMemoryError(
            f"a dense kernel of n = {n} items and its Cholesky factor take 2 x 8 n^2 bytes = "
            f"{needed / 1e9:.3g} GB, more than max_memory = {max_memory / 1e9:.3g} GB. Take fewer "
            "items, a smoother kernel (smaller gamma), which has a factor of lower rank, or raise "
            "max_memory"
        )


def _check_precomputed(K: np.ndarray) -> None:
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"a precomputed kernel X must be square, got shape {K.shape}")
    size = np.abs(K).max()
    worst = max(
        float(np.abs(K[rows] - K[:, rows].T).max())
        for rows in np.array_split(np.arange(len(K)), 1 + K.size // _BLOCK)
    )
    if worst > _INDEFINITE * size:
        raise ValueError(
            f"the kernel of X must be symmetric, got entries that differ by {worst:.3g} from "
            "their mirror images"
        )


def _check_definite(K: np.ndarray) -> None:
    """Raise for an eigenvalue that is negative beyond rounding, found by a Cholesky factor."""
    size = float(np.abs(K).max())
    if size == 0:
        return
    shifted = K / size
    shifted[np.diag_indices_from(shifted)] += _INDEFINITE * np.linalg.norm(shifted)
    if lapack.dpotrf(shifted, lower=1, overwrite_a=1)[1]:
        raise ValueError(
            "the kernel of X must be positive semidefinite, got an eigenvalue below "
            f"-{_INDEFINITE:.0e} times its norm"
        )
