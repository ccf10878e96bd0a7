r"""The columns of X as the solvers see them: shifted and scaled, sparse ones kept sparse.

A column of time stamps (:math:`10^9` and more) loses its digits in sums of squares, and one of
:math:`10^{-160}` loses itself. A `Design` holds :math:`\tilde X = (X - 1 c^\top) S^{-1}`, with
powers of two in :math:`S` so that scaling rounds nothing; coefficients of :math:`\tilde X` are
:math:`S b`, and a ridge :math:`(\alpha/2) b^\top b` becomes a diagonal one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "Design",
    "laplacian",
    "least_norm_shift",
    "null_space",
    "power_of_two",
    "thinned_size",
    "weighted_gram",
]

# Shifts are decided on at most this many rows.
_SAMPLE = 10_000
# Rows of differences that are formed at a time.
_ROWS = 256
# A column is shifted if its mean exceeds its standard deviation so many times.
_OFFSET = 1e3
# Powers of two beyond this are divided out before anything is squared.
_EXTREME = 300
# Sums of squares of numbers between this and its inverse stay within the floats' range.
_SQUARES = 1e100
# Fewer items than this are fitted as fast as thinned ones.
_FEWEST = 2000
# Share of a column's variance, given the others, below which they are called collinear.
_COLLINEAR = 1e-12


def weighted_gram(X: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """Return X' diag(weights) X as a dense array; None stands for weights of one."""
    if sp.issparse(X):
        return (X.T @ (X if weights is None else X * weights[:, None])).toarray()
    if weights is None:
        return X.T @ X
    if len(weights) and weights[0] == weights.min() == weights.max():
        return weights[0] * (X.T @ X)
    if (weights < 0).any():
        return X.T @ (X * weights[:, None])
    # A matrix times its own transpose takes half the work of other products.
    Z = X * np.sqrt(weights)[:, None]
    return Z.T @ Z


def thinned_size(n: int, parameters: int, each: int, share: int) -> int:
    """About how many of n items give a start: `each` a parameter, and one in `share` at least."""
    return max(_FEWEST, each * parameters, n // share)


class Design:
    """A matrix with its columns shifted and scaled.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        The matrix, less its shift and divided by its unit.
    shift, scale : ndarrays of shape (p,)
        What was taken from the columns, and what they are divided by in each product.
    unit : ndarray of shape (p,), optional
        What they have been divided by: not one only where squares would leave the floats' range.

    Examples
    --------
    >>> import numpy as np
    >>> design = Design.build(np.array([[1e9, 0.5], [1e9 + 4.0, -0.5]]))
    >>> design.scale.tolist(), design.shift.tolist()
    ([2.0, 0.5], [1000000002.0, 0.0])
    >>> design.scores(np.array([1.0, 1.0])).tolist()
    [0.0, 0.0]
    """

    def __init__(
        self, X: Any, shift: np.ndarray, scale: np.ndarray, unit: np.ndarray | None = None
    ) -> None:
        self.X, self.shift, self.scale = X, shift, scale
        self.unit = np.ones(len(scale)) if unit is None else unit

    @classmethod
    def build(cls, X: Any, ridge: float = 0.0) -> Design:
        """Choose shift and scale.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, p)
            Items.
        ridge : float, default=0.0
            Curvature that a ridge adds: a column far smaller than its root is not blown up.

        Returns
        -------
        Design
            The scaled matrix. A dense X is copied only if a column is shifted; of a sparse one
            only columns without zeros are, so that it stays sparse.
        """
        X = sp.csr_array(X) if sp.issparse(X) else X
        step = max(1, X.shape[0] // _SAMPLE)
        rows = X[::step].toarray() if sp.issparse(X) and X.shape[1] <= 2000 else X[::step]
        if sp.issparse(rows):
            shift, spread = np.zeros(X.shape[1]), abs(rows).max(axis=0).toarray().ravel()
        else:
            shift, spread = _location(rows)
        if sp.issparse(X) and shift.any():
            stored = np.bincount(X.indices, X.data != 0, X.shape[1])
            shift = np.where(stored == X.shape[0], shift, 0.0)
        if shift.any():
            X = _shifted(X, shift)
            spread = _location(rows - shift)[1]
        scale = power_of_two(np.hypot(spread, ridge**0.5))
        extreme = np.abs(np.log2(scale)) > _EXTREME
        if not extreme.any():
            return cls(X, shift, scale)
        unit = np.where(extreme, scale, 1.0)
        X = sp.csr_array(X * (1.0 / unit)) if sp.issparse(X) else X / unit
        return cls(X, shift, scale / unit, unit)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of items and of columns."""
        return self.X.shape

    def subset(self, rows: Any) -> Design:
        """Return the design of some items."""
        return Design(self.X[rows], self.shift, self.scale, self.unit)

    def coef(self, v: np.ndarray) -> np.ndarray:
        """Return coefficients of X as it was given, from scaled ones (or columns of such)."""
        return (v.T / self.scale / self.unit).T

    def scores(self, v: np.ndarray) -> np.ndarray:
        """Return the product with a vector of scaled coefficients."""
        return np.asarray(self.X @ (v / self.scale)).ravel()

    def adjoint(self, u: np.ndarray) -> np.ndarray:
        """Return the transpose's product with a vector of items."""
        return np.asarray(self.X.T @ u).ravel() / self.scale

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted Gram matrix of the scaled columns."""
        return weighted_gram(self.X, weights) / np.outer(self.scale, self.scale)

    def gram_of(self, product: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return X' H X of the scaled columns, H symmetric and known by its products."""
        columns = (self.X[:, [j]] for j in range(self.X.shape[1]))
        if sp.issparse(self.X):
            columns = (column.toarray() for column in columns)
        gram = np.asarray(self.X.T @ np.column_stack([product(c.ravel()) for c in columns]))
        return 0.5 * (gram + gram.T) / np.outer(self.scale, self.scale)

    def differences(self, upper: np.ndarray, lower: np.ndarray) -> Any:
        """Return a row for each pair of items: its difference in the columns before scaling."""
        rows = self.X[upper]
        if sp.issparse(rows):
            return rows - self.X[lower]
        # Some at a time: a second array as large would cost more than the differences.
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            rows[part] -= self.X[lower[part]]
        return rows

    def pair_gram(self, upper: np.ndarray, lower: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return X' L X of the scaled columns, L the Laplacian of a graph of pairs of items.

        Through L, or through the differences where the pairs are fewer than the items.
        """
        inner: Any
        n = self.X.shape[0]
        if len(weights) < n:
            inner = weighted_gram(self.differences(upper, lower), weights)
        else:
            inner = self.X.T @ (laplacian(upper, lower, weights, n) @ self.X)
        inner = inner.toarray() if sp.issparse(inner) else np.asarray(inner)
        return inner / np.outer(self.scale, self.scale)


def laplacian(upper: np.ndarray, lower: np.ndarray, weights: np.ndarray, n: int) -> sp.csr_array:
    """Return the n x n Laplacian of a weighted graph: degrees less the symmetric adjacency."""
    edges = sp.csr_array((weights, (upper, lower)), shape=(n, n))
    degree = np.bincount(upper, weights, n) + np.bincount(lower, weights, n)
    return sp.csr_array(sp.diags_array(degree, dtype=float) - edges - edges.T)


def _location(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift (zero where the mean is of the size of the spread) and standard deviation."""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    unit = np.ones(len(largest))
    if largest.max(initial=0.0) > _SQUARES or largest.min(initial=1.0) < 1.0 / _SQUARES:
        unit = np.where(largest > 0, largest, 1.0)
        rows = rows / unit
    mean = rows.mean(axis=0)
    centred = rows - mean
    spread = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(rows))
    shift = np.where(np.abs(mean) > _OFFSET * spread, mean * unit, 0.0)
    return shift, spread * unit


def _shifted(X: Any, shift: np.ndarray) -> Any:
    if not sp.issparse(X):
        return X - shift
    return sp.csr_array((X.data - shift[X.indices], X.indices, X.indptr), shape=X.shape)


def power_of_two(sizes: np.ndarray) -> np.ndarray:
    """The power of two next to each size, 1 for zero."""
    return np.exp2(np.round(np.log2(np.where(sizes > 0, sizes, 1.0))))


def null_space(gram: np.ndarray) -> np.ndarray:
    """Return a basis of the directions that a Gram matrix sends to zero, up to rounding.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Positive semidefinite.

    Returns
    -------
    ndarray of shape (p, d)
        In the units of the matrix; d is 0 where the columns are independent.
    """
    size = np.sqrt(np.diagonal(gram))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    return vectors[:, values <= _COLLINEAR * max(values[-1], 1.0)] / size[:, None]


def least_norm_shift(coef: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the combination of directions to add for the least norm.

    Parameters
    ----------
    coef : ndarray of shape (p,)
        Coefficients.
    directions : ndarray of shape (p, d)
        Directions that change no score.

    Returns
    -------
    ndarray of shape (d,)
        Multiples of the directions.
    """
    return -np.linalg.lstsq(directions, coef, rcond=None)[0]
