r"""Weighted ridge equations whose columns may have any units.

The system :math:`(X^\top W X + \alpha I) b = X^\top u` is scaled so that its diagonal is about one,
factorised, and its solution refined against products with X: a column of :math:`10^{10}` beside
ordinary ones costs them no digits, as it would in the unscaled normal equations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse.linalg import LinearOperator, cg

from rankbook.solvers.design import least_norm_shift, power_of_two, weighted_gram

__all__ = ["ridge_solve"]

# Up to this many rows of the normal equations they are formed and factorised; beyond it a dense
# matrix of that order would cost more memory than sparse data themselves, and conjugate gradients
# need products with X alone.
_DIRECT_LIMIT = 6000
# Columns whose sizes differ less may share a kernel matrix without losing digits.
_COMPARABLE = 2.0**10
_REFINEMENTS = 3


def ridge_solve(X: Any, u: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """Solve (X' diag(weights) X + alpha I) b = X' u; of least norm if that is singular.

    `u` must be zero where the weight is, unless all weights are zero.
    """
    n, p = X.shape
    X = sp.csr_array(X) if sp.issparse(X) else X
    size = _sizes(X, weights)
    scale = power_of_two(np.hypot(size, alpha**0.5))
    scaled = sp.csr_array(X * (1.0 / scale)) if sp.issparse(X) else X / scale
    ridge = (alpha**0.5 / scale) ** 2
    if not weights.any():
        return np.asarray(scaled.T @ u).ravel() / ridge / scale
    comparable = size.max() <= _COMPARABLE * size[size > 0].min(initial=np.inf)
    if p > n and n <= _DIRECT_LIMIT and (comparable or alpha == 0):
        return _kernel_solve(X, u, weights, alpha)
    if p > _DIRECT_LIMIT:
        return _conjugate_gradients(scaled, u, weights, ridge) / scale
    return _refined(scaled, u, weights, ridge, scale) / scale


def _sizes(X: Any, weights: np.ndarray) -> np.ndarray:
    """Root of the weighted sum of squares of each column, without overflow or underflow."""
    largest = abs(X).max(axis=0)
    largest = np.asarray(largest.toarray() if sp.issparse(X) else largest).ravel()
    unit = np.where(largest > 0, largest, 1.0)
    Z = X * (1.0 / unit) if sp.issparse(X) else X / unit
    square = Z.multiply(Z) if sp.issparse(X) else Z * Z
    return unit * np.sqrt(np.asarray(square.T @ weights).ravel())


def _refined(
    X: Any, u: np.ndarray, weights: np.ndarray, ridge: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Factorise the scaled equations, then correct by their residual."""
    matrix = weighted_gram(X, weights) + np.diag(ridge)
    rounding = len(ridge) * np.finfo(float).eps * np.trace(matrix)
    inverse, flat = _inverse(matrix, rounding)
    coef = np.zeros(len(ridge))
    for _ in range(_REFINEMENTS):
        fitted = weights * np.asarray(X @ coef).ravel()
        coef = coef + inverse(np.asarray(X.T @ (u - fitted)).ravel() - ridge * coef)
    if flat.shape[1]:
        # Directions that X and a ridge lost to rounding leave open: none of them is wanted.
        directions = flat / scale[:, None]
        coef = coef + flat @ least_norm_shift(coef / scale, directions)
    return coef


def _inverse(matrix: np.ndarray, rounding: float) -> tuple[Any, np.ndarray]:
    """A function that solves, and a basis of what it leaves out."""
    values = eigh(matrix, eigvals_only=True, subset_by_index=[0, 0])
    if values[0] > rounding:
        factor = cho_factor(matrix, lower=True)
        return lambda rhs: cho_solve(factor, rhs), np.zeros((len(matrix), 0))
    values, vectors = eigh(matrix)
    keep = values > rounding
    kept = vectors[:, keep]
    return lambda rhs: kept @ ((kept.T @ rhs) / values[keep]), vectors[:, ~keep]


def _kernel_solve(X: Any, u: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """The same by X' V (V XX' V + alpha I)^-1 V^-1 u, V the roots of the weights; n equations."""
    root = np.sqrt(weights)
    rows = root > 0
    Z = X[rows] * root[rows][:, None]
    gram = Z @ Z.T
    gram = gram.toarray() if sp.issparse(gram) else np.asarray(gram)
    matrix = gram + alpha * np.eye(len(gram))
    inverse, _ = _inverse(matrix, len(gram) * np.finfo(float).eps * np.trace(gram))
    return np.asarray(Z.T @ inverse(u[rows] / root[rows])).ravel()


def _conjugate_gradients(
    X: Any, u: np.ndarray, weights: np.ndarray, ridge: np.ndarray
) -> np.ndarray:
    p = X.shape[1]
    operator = LinearOperator(
        (p, p), matvec=lambda b: X.T @ (weights * (X @ b)) + ridge * b, dtype=np.float64
    )
    solution, info = cg(operator, X.T @ u, rtol=1e-12, atol=0.0, maxiter=20 * p)
    if info:
        raise RuntimeError(f"conjugate gradients did not converge in {info} steps; raise alpha")
    return solution
