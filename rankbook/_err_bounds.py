"""What regressions of class boundaries say about the expected label and about the ERR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankbook._arrays import as_float, require_finite
from rankbook._validation import check_choice, check_same_length, check_scalar, check_vector

__all__ = ["err_regret_bound", "expected_rank_error_bound"]


def expected_rank_error_bound(boundary_errors: ArrayLike) -> float | np.ndarray:
    r"""Bound the error of a sum of boundary regressions as an estimate of the expected label.

    With :math:`e_k = h_k(x) - P(Y \ge k \mid x)`, k = 1..K-1, labels 0..K-1,

    .. math:: \Bigl| \sum_k h_k(x) - E[Y \mid x] \Bigr| \le \sqrt{(K - 1) \sum_k e_k^2},

    Theorem 1 of Ruan, Lin and Tsai (2014); equality holds where all errors are equal.

    Parameters
    ----------
    boundary_errors : array-like of shape (..., K-1)
        The errors :math:`e_k`, or anything at least as large in size.

    Returns
    -------
    float or ndarray of shape (...)
        The bound.

    Examples
    --------
    >>> from rankbook.bounds import expected_rank_error_bound
    >>> round(expected_rank_error_bound([0.1, -0.2, 0.0]), 4)
    0.3873
    """
    errors = as_float(boundary_errors, "boundary_errors")
    if errors.ndim == 0 or errors.shape[-1] == 0:
        raise ValueError(
            f"boundary_errors must have an entry for each boundary, got shape {errors.shape}"
        )
    require_finite(errors, "boundary_errors")
    largest = np.abs(errors).max(initial=0.0) or 1.0  # so that no square overflows
    value = largest * (np.sqrt(errors.shape[-1]) * np.linalg.norm(errors / largest, axis=-1))
    return float(value) if value.ndim == 0 else value


def err_regret_bound(
    y: ArrayLike,
    predicted: ArrayLike,
    *,
    max_grade: float | None = None,
    version: str = "grades",
) -> float:
    r"""Bound how far the ERR of a list falls below the best, by errors of predicted grades.

    Let :math:`R_i = (2^{y_i} - 1) / 2^{g}`, g the largest grade, be the chance that a reader who
    looks at item i stops there, and :math:`\hat R_i` the same of the predicted grade. Let
    :math:`\rho` order the items by their grades, :math:`\pi` by the predicted ones (ties as
    given), and :math:`b_\pi(i)` be one over the position of item i. Then, always,

    .. math:: 0 \le \mathrm{ERR}(\rho) - \mathrm{ERR}(\pi)
       \le \sqrt{\sum_i \bigl(b_\rho(i) - b_\pi(i)\bigr)^2 \; \sum_i \bigl(R_i - \hat R_i\bigr)^2},

    and the same with the chances of stopping at item i, :math:`F_i(\rho, R)` and
    :math:`F_i(\pi, \hat R)`, in place of :math:`R_i` and :math:`\hat R_i`: Theorem 2 of Ruan, Lin
    and Tsai (2014) in the reading that is true.

    Parameters
    ----------
    y : array-like of shape (n,)
        Grades of the items of one list, at least 0.
    predicted : array-like of shape (n,)
        Predicted grades, from 0 to `max_grade`; not only whole numbers.
    max_grade : float, default=None
        The largest grade g; by default the largest of `y` and `predicted`.
    version : {"grades", "stopping"}, default="grades"
        The bound by :math:`R`, which is a sum over single items, or by :math:`F`, which is not.

    Returns
    -------
    float
        The bound on the regret, not squared.

    Notes
    -----
    Exchanging neighbours at positions k and k+1 changes the ERR by the chance P to come so far
    times :math:`(R_j - R_i)(1/k - 1/(k+1))`, and :math:`\sum_i b(i) R_i` by the same without P.
    Sorting :math:`\pi` into :math:`\rho` by exchanges that each put the better item first thus
    gains at most :math:`\sum_i (b_\rho(i) - b_\pi(i)) R_i`. As :math:`\pi` sorts
    :math:`\hat R`, :math:`\sum_i (b_\rho(i) - b_\pi(i)) \hat R_i \le 0`; subtract it and use
    Cauchy and Schwarz.

    Examples
    --------
    >>> from rankbook.bounds import err_regret_bound
    >>> from rankbook.metrics import err
    >>> y, predicted = [0, 3, 1], [2, 1, 0]
    >>> regret = err(y, y) - err(y, predicted)
    >>> round(regret, 4), round(err_regret_bound(y, predicted), 4)
    (0.4401, 0.7205)
    """
    check_choice(version, ("grades", "stopping"), "version")
    true, guess = check_vector(y, "y"), check_vector(predicted, "predicted")
    check_same_length(guess.size, true.size, "predicted", "y")
    top = max(true.max(), guess.max()) if max_grade is None else max_grade
    top = check_scalar(top, "max_grade", low=0.0)
    for grades, name in ((true, "y"), (guess, "predicted")):
        if grades.min() < 0 or grades.max() > top:
            raise ValueError(f"{name} must lie between 0 and max_grade={top:g}, got {grades}")
    stop, guessed = (2.0 ** (grades - top) - 2.0**-top for grades in (true, guess))
    best, order = np.argsort(-true, kind="stable"), np.argsort(-guess, kind="stable")
    moved = _reciprocal_positions(best) - _reciprocal_positions(order)
    if version == "stopping":
        stop, guessed = _stopping(best, stop), _stopping(order, guessed)
    return float(np.linalg.norm(moved) * np.linalg.norm(stop - guessed))


def _reciprocal_positions(order: np.ndarray) -> np.ndarray:
    values = np.empty(order.size)
    values[order] = 1.0 / np.arange(1, order.size + 1)
    return values


def _stopping(order: np.ndarray, stop: np.ndarray) -> Any:
    """The chance to stop at each item of a list read in that order."""
    chance = np.empty(order.size)
    passed = np.cumprod(np.append(1.0, 1.0 - stop[order][:-1]))
    chance[order] = stop[order] * passed
    return chance
