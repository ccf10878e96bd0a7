"""What a fitted cumulative link model keeps of its covariance: errors of functions, Wald tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

__all__ = ["Precision"]

# Eigenvalues of a covariance below this share of the largest are rounding.
_SINGULAR = 1e-12


@dataclass(frozen=True)
class Precision:
    """Covariance of the reported parameters as a product, and what is not identified.

    Of the `free` directions the first `n_aliased` come from collinear columns.
    """

    jacobian: np.ndarray
    inner: np.ndarray
    free: np.ndarray
    n_aliased: int
    in_order: bool

    def errors(self, slopes: np.ndarray) -> np.ndarray:
        """Standard errors of functions of the parameters with these derivatives, a row each."""
        rows = slopes @ self.jacobian
        errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, self.inner, rows), 0.0))
        size = np.abs(slopes) @ np.abs(self.free)
        unknown = np.any(np.abs(slopes @ self.free) > 1e-7 * size, axis=1)
        return np.where(unknown | self.in_order, np.nan, errors)

    def wald(self, params: np.ndarray, rows: np.ndarray) -> tuple[float, int]:
        """Statistic and degrees of freedom of the test that some parameters are zero.

        Of collinear columns those combinations are tested that the data identify; NaN where
        others are not, or where there are fewer clusters than parameters.
        """
        factor = self.jacobian[rows]
        covariance = factor @ self.inner @ factor.T
        if np.isnan(covariance).any():
            return np.nan, len(rows)
        unit = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        unit = np.where(unit > 0.0, unit, 1.0)
        free = self.free[rows] / unit[:, None]
        aliased, gone = free[:, : self.n_aliased], free[:, self.n_aliased :]
        basis = null_space(aliased.T) if aliased.any() else np.eye(len(rows))
        df = basis.shape[1]
        if not df:
            return 0.0, 0
        values, vectors = np.linalg.eigh(basis.T @ (covariance / unit / unit[:, None]) @ basis)
        separated = np.any(np.abs(basis.T @ gone) > 1e-7 * np.abs(gone).max(initial=0.0))
        if self.in_order or separated or not values[0] > _SINGULAR * values[-1]:
            return np.nan, df
        return float(np.sum((vectors.T @ (basis.T @ (params[rows] / unit))) ** 2 / values)), df
