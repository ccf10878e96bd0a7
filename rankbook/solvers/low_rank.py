"""Factors of kernel matrices, of a rank chosen to a tolerance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from rankbook.solvers.kernels import KernelMatrix

__all__ = ["LowRank", "pivoted_cholesky"]

# Columns that a factor grows by at once.
_PIVOTS = 32
# A pivot of a block is taken if it is at least this share of the largest.
_WORTHWHILE = 0.1


@dataclass(frozen=True)
class LowRank:
    """A factor of a kernel matrix.

    Attributes
    ----------
    factor : ndarray of shape (n, r)
        L.
    residual : float
        Trace of the matrix less LL', over its own.
    complete : bool
        Whether the residual is as small as was wanted.
    """

    factor: np.ndarray
    residual: float
    complete: bool


def pivoted_cholesky(
    matrix: KernelMatrix, tol: float, max_rank: int, start: LowRank | None = None
) -> LowRank:
    r"""Return L with :math:`K - LL^\top` positive semidefinite of trace at most `tol` times K's.

    Parameters
    ----------
    matrix : KernelMatrix
        K.
    tol : float
        Share of the trace that may be left.
    max_rank : int
        Most columns that L may have.
    start : LowRank, default=None
        A coarser factor of the same matrix, to go on from.

    Returns
    -------
    LowRank
        The factor; it is not complete if the rank did not suffice.

    Notes
    -----
    Pivots come in blocks: the columns of the largest remaining diagonal entries are computed
    together, and of those the ones that remain large after each other are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from rankbook.solvers.kernels import Kernel
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> matrix = KernelMatrix(Kernel.build("rbf", X, gamma=1.0), X)
    >>> low = pivoted_cholesky(matrix, 1e-10, 50)
    >>> low.factor.shape[1] < 12, bool(abs(low.factor @ low.factor.T - matrix.dense()).max() < 1e-8)
    (True, True)
    """
    left = matrix.diagonal()
    trace = float(left.sum())
    rows = np.empty((0, matrix.n)) if start is None else start.factor.T
    left = left - (rows**2).sum(axis=0)
    np.maximum(left, 0.0, out=left)
    while left.sum() > tol * trace and len(rows) < max_rank:
        count = min(_PIVOTS, max_rank - len(rows))
        new = _more_rows(matrix, rows, left, count)
        if not len(new):
            break
        rows = np.concatenate([rows, new])
        left -= (new**2).sum(axis=0)
        np.maximum(left, 0.0, out=left)
    share = float(left.sum()) / trace if trace > 0 else 0.0
    return LowRank(rows.T, share, share <= tol)


def _more_rows(matrix: KernelMatrix, rows: np.ndarray, left: np.ndarray, count: int) -> np.ndarray:
    """Some more rows of L', from the items with the largest remaining diagonal entries."""
    candidates = np.argpartition(left, -count)[-count:]
    largest = float(left[candidates].max())
    columns = matrix.columns(candidates).T - rows[:, candidates].T @ rows
    square = columns[:, candidates]
    factor, order, rank, _ = lapack.dpstrf(
        0.5 * (square + square.T), lower=1, tol=_WORTHWHILE * largest
    )
    if largest <= 0 or rank == 0:
        return np.empty((0, matrix.n))
    chosen = order[:rank] - 1
    return solve_triangular(factor[:rank, :rank], columns[chosen], lower=True)
