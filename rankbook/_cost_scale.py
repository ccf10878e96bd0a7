r"""The condition that ties costs to a scale, and what follows from it.

See `rankbook.costs`, which offers these functions, for the notation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook._arrays import as_array
from rankbook._validation import check_costs, check_scalar
from rankbook.exceptions import CostConditionError

__all__ = [
    "moderate",
    "require_scale_condition",
    "satisfies_scale_condition",
    "scale_and_weights",
    "violation",
    "with_consistent_terms",
]


# Products of two costs between 4**-200 and 4**200 are ordinary numbers.
_MODERATE = 200


def _square(costs: Any) -> np.ndarray:
    array = as_array(costs, "costs")
    if array.ndim != 2 or array.shape[0] < 2:
        raise ValueError(f"costs must be a square matrix of K >= 2 rows, got shape {array.shape}")
    return check_costs(costs, array.shape[0])


def moderate(costs: np.ndarray) -> tuple[np.ndarray, int]:
    """Return costs times :math:`4^{-e}` and e; not zero only where products might overflow."""
    e = int(np.frexp(costs.max())[1]) // 2
    return (costs, 0) if abs(e) < _MODERATE else (np.ldexp(costs, -2 * e), e)


def _finite(costs: np.ndarray) -> np.ndarray:
    if not np.isfinite(costs).all():
        raise ValueError("costs must give weights within the range of floats")
    return costs


def _scale_residual(c: np.ndarray) -> np.ndarray:
    first, last = c[0], c[:, -1]
    implied = first[None, :] * last[:, None] - first[:, None] * last[None, :]
    return np.triu(c[0, -1] * c - implied, 1)


def satisfies_scale_condition(costs: Any, tol: float = 1e-10) -> bool:
    r"""Say whether costs come from a scale, the condition of Theorem 3 of Uematsu and Lee.

    For :math:`c_{1K} > 0` it holds exactly if the antisymmetrised matrix :math:`C - C^T` has
    rank 2. With :math:`c_{1K} = 0` the equations may hold emptily while the theorem fails, so the
    answer is then False.

    Parameters
    ----------
    costs : array-like of shape (K, K)
        The costs.
    tol : float, default=1e-10
        Largest residual that counts as zero, relative to the largest cost squared.

    Returns
    -------
    bool
        Whether the costs come from a scale.

    See Also
    --------
    scale_and_weights : the scale itself.

    Examples
    --------
    >>> from rankbook.costs import constant, linear, satisfies_scale_condition
    >>> satisfies_scale_condition(linear(5)), satisfies_scale_condition(constant(3))
    (True, True)
    >>> satisfies_scale_condition(constant(4))
    False
    """
    c = _square(costs)
    tol = check_scalar(tol, "tol", low=0.0)
    c, _ = moderate(c)
    tol = min(tol, 1.0)  # of which no residual can be more
    if c[0, -1] <= tol * c.max():
        return False
    return bool(np.abs(_scale_residual(c)).max() <= tol * c.max() ** 2)


def scale_and_weights(costs: Any) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the canonical scale, from 0 to 1, and the weights that costs come from.

    :math:`s_i = c_{1i} / (c_{1i} + c_{iK})` and
    :math:`w_i = (c_{1i} + c_{iK}) / \sqrt{c_{1K}}`; `from_scale` gives the costs back. A class
    that costs nothing has weight zero, and shares the position of the class below it.

    Parameters
    ----------
    costs : array-like of shape (K, K)
        Costs that satisfy the scale condition.

    Returns
    -------
    scale : ndarray of shape (K,)
        Positions, from 0 to 1.
    weights : ndarray of shape (K,)
        Weights.

    Raises
    ------
    CostConditionError
        If no scale gives these costs.

    Examples
    --------
    >>> from rankbook.costs import linear, scale_and_weights
    >>> scale, weights = scale_and_weights(linear(3))
    >>> scale.tolist(), weights.round(4).tolist()
    ([0.0, 0.5, 1.0], [1.4142, 1.4142, 1.4142])
    """
    c = _square(costs)
    require_scale_condition(c)
    c, e = moderate(c)
    total = c[0] + c[:, -1]
    with np.errstate(invalid="ignore"):
        scale = np.where(total > 0, c[0] / total, 0.0)
    return np.maximum.accumulate(scale), np.ldexp(total / np.sqrt(c[0, -1]), e)


def with_consistent_terms(costs: Any) -> np.ndarray:
    r"""Return the weights of class pairs under which a calibrated surrogate is consistent.

    Entry [j, i] is the weight of :math:`\ell(f(x) - f(x'))` for x of class i and x' of class j.
    Theorem 4 of Uematsu and Lee (2013) adds terms to the costs so that the weights become the
    product :math:`c_{1i} c_{jK} / c_{1K}` for *every* i and j, equal and reversed classes
    included; the problem is then bipartite, with positives weighted by :math:`c_{1i}` and
    negatives by :math:`c_{jK}`.

    Parameters
    ----------
    costs : array-like of shape (K, K)
        Costs that satisfy the scale condition.

    Returns
    -------
    ndarray of shape (K, K)
        The weights, a matrix of rank one; for K = 2 the costs themselves.

    Raises
    ------
    CostConditionError
        If the costs do not come from a scale.

    Examples
    --------
    >>> from rankbook.costs import linear, with_consistent_terms
    >>> with_consistent_terms(linear(3))
    array([[0. , 1. , 2. ],
           [0. , 0.5, 1. ],
           [0. , 0. , 0. ]])
    """
    c = _square(costs)
    require_scale_condition(c)
    c, e = moderate(c)
    with np.errstate(over="ignore"):
        return _finite(np.ldexp(np.outer(c[:, -1], c[0]) / c[0, -1], 2 * e))


def require_scale_condition(costs: Any, advice: str = "") -> None:
    """Raise `CostConditionError`, naming the classes at fault, unless costs come from a scale."""
    c = _square(costs)
    if satisfies_scale_condition(c):
        return
    K = c.shape[0]
    c, _ = moderate(c)
    if c[0, -1] <= 1e-10 * c.max() or c.max() == 0:
        reason = f"the cost of class 1 above class {K}, costs[0, {K - 1}], must be positive"
        reason += f", got {c[0, -1]:g}"
    else:
        j, i = np.unravel_index(np.argmax(np.abs(_scale_residual(c))), c.shape)
        left = c[0, -1] * c[j, i]
        right = c[0, i] * c[j, -1] - c[0, j] * c[i, -1]
        reason = violation(int(j) + 1, int(i) + 1, 1, K, K, left, right)
    raise CostConditionError(f"costs do not come from a scale; {reason}. {advice}".rstrip())


def violation(j: int, i: int, first: int, last: int, K: int, left: float, right: float) -> str:
    """Say which two classes, numbered from 1 as in the book, violate the scale condition."""
    return (
        f"classes {j} and {i} (of 1..{K}) violate it: c({first},{last}) c({j},{i}) = {left:g}, but "
        f"c({first},{i}) c({j},{last}) - c({first},{j}) c({i},{last}) = {right:g}"
    )
