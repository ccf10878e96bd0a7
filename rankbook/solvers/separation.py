r"""Whether a loss that only falls can fall for ever: separation, by a linear program.

A sample enters a likelihood, or a decreasing loss, through margins :math:`r_k^\top v` that are
linear in the parameters :math:`v`. Its infimum is not attained exactly if some direction has
:math:`r_k^\top v \ge 0` for every row and :math:`> 0` for one: along it no term rises and one falls
(Albert and Anderson, 1984, for logistic regression).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankbook._arrays import as_float, require_finite

__all__ = ["Separation", "separation"]

# HiGHS is feasible to 1e-7 in rows of unit scale.
_FEASIBLE = 1e-6
_STRICT = 1e-4


@dataclass(frozen=True)
class Separation:
    """A direction along which no margin falls and some grow.

    Attributes
    ----------
    direction : ndarray of shape (d,)
        In the units of the rows' columns; its largest entry, times its column's, is at most one.
    complete : bool
        Whether some direction makes all margins grow.
    columns : ndarray of int
        Where the direction is not zero.
    """

    direction: np.ndarray
    complete: bool
    columns: np.ndarray


def separation(rows: Any) -> Separation | None:
    """Return a direction that separates, or None where there is none.

    Parameters
    ----------
    rows : array-like or sparse matrix of shape (m, d)
        What the parameters are multiplied with to give the margins: for two classes
        ``y_i * [x_i, 1]``, for a pair ``x_a - x_b``, for a threshold model
        ``[-x_i, e_k]`` and ``[x_i, -e_(k-1)]``. Columns may have any units.

    Returns
    -------
    Separation or None
        The direction with the largest sum of margins in a box, and whether all grow along some.

    Examples
    --------
    Items 1 and 2 are low, 3 is high, so that a rising score separates them:

    >>> found = separation([[-1.0, -1.0], [-2.0, -1.0], [3.0, 1.0]])
    >>> found.complete
    True
    >>> separation([[-1.0, -1.0], [-3.0, -1.0], [2.0, 1.0]]) is None
    True
    """
    if not sp.issparse(rows):
        rows = as_float(rows, "rows")
        if rows.ndim != 2:
            raise ValueError(f"rows must have shape (m, d), got {rows.shape}")
        require_finite(rows, "rows")
    matrix = sp.csr_array(rows, dtype=float)
    if not matrix.nnz:
        return None
    column = _largest(matrix, 0)
    matrix = sp.csr_array(matrix * (1.0 / column))
    matrix = sp.csr_array(matrix * (1.0 / _largest(matrix, 1))[:, None])
    gain = np.asarray(matrix.sum(axis=0)).ravel() / matrix.shape[0]
    direction = _best_direction(matrix, gain)
    slack = matrix @ direction
    if slack.max() < _STRICT or slack.min() < -_FEASIBLE:
        return None
    # With a margin as one more variable: can all rows be strictly positive?
    wide = sp.csr_array(sp.hstack([matrix, -np.ones((matrix.shape[0], 1))]))
    margin = _best_direction(wide, np.append(np.zeros(matrix.shape[1]), 1.0))[-1]
    columns = np.flatnonzero(np.abs(direction) > _FEASIBLE)
    return Separation(direction / column, bool(margin > _FEASIBLE), columns)


def _largest(matrix: sp.csr_array, axis: int) -> np.ndarray:
    """The largest size in each column or row, 1 where all are zero."""
    largest = abs(matrix).max(axis=axis).toarray().ravel()
    return np.where(largest > 0, largest, 1.0)


def _best_direction(rows: sp.csr_array, gain: np.ndarray) -> np.ndarray:
    """Maximise a gain over the directions in the unit cube whose margins are all non-negative."""
    # Only a fit in trouble comes here, so the solver is not loaded with the package.
    from scipy.optimize import linprog

    b = np.zeros(rows.shape[0])
    result = linprog(-gain, A_ub=-rows, b_ub=b, bounds=(-1, 1), method="highs")
    return np.zeros(len(gain)) if result.x is None else result.x
