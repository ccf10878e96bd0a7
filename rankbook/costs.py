r"""What a misranked pair costs: K x K matrices and the condition that ties them to a scale.

``costs[j, i]`` with ``j < i`` is the cost of ranking an item of class ``j`` above one of the
higher class ``i``; entries on and below the diagonal are zero. Classes are 0..K-1 in code and
1..K in formulas.

Costs **come from a scale** if there are positions :math:`s_1 \le \dots \le s_K` and weights
:math:`w_i \ge 0` with

.. math:: c_{ji} = w_i w_j (s_i - s_j), \qquad j < i.

For :math:`c_{1K} > 0` this is the same as the condition of Theorem 3 of Uematsu and Lee (2013),

.. math:: c_{1K} c_{ji} = c_{1i} c_{jK} - c_{1j} c_{iK}, \qquad j < i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook._validation import (
    check_choice,
    check_costs,
    check_scalar,
    check_scores,
    check_thresholds,
)
from rankbook.exceptions import CostConditionError

__all__ = [
    "consecutive",
    "constant",
    "dcg",
    "from_orboost_thresholds",
    "from_scale",
    "linear",
    "ordinal",
    "ovo",
    "satisfies_scale_condition",
    "scale_and_weights",
    "with_consistent_terms",
]


def _n_classes(K: Any) -> int:
    return check_scalar(K, "K", low=2, integer=True)


def constant(K: int) -> np.ndarray:
    """Return costs of one for every misranked pair.

    They come from a scale for K = 2 and 3 only.

    Parameters
    ----------
    K : int
        Number of classes, at least 2.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> constant(3)
    array([[0., 1., 1.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    return check_costs("constant", _n_classes(K))


def linear(K: int) -> np.ndarray:
    """Return costs equal to the difference of the labels, i - j.

    The best ranking under them is by the expected label (Uematsu and Lee, 2013, Corollary 1).

    Parameters
    ----------
    K : int
        Number of classes, at least 2.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> linear(3)
    array([[0., 1., 2.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    return check_costs("linear", _n_classes(K))


def dcg(K: int) -> np.ndarray:
    r"""Return costs equal to the difference of the gains of DCG, :math:`2^i - 2^j`, labels 1..K.

    Parameters
    ----------
    K : int
        Number of classes, at least 2.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> dcg(3)
    array([[0., 2., 6.],
           [0., 0., 4.],
           [0., 0., 0.]])
    """
    return check_costs("dcg", _n_classes(K))


def from_scale(scale: Any, weights: Any = None) -> np.ndarray:
    r"""Return the costs :math:`c_{ji} = w_i w_j (s_i - s_j)` of a scale and weights.

    Parameters
    ----------
    scale : array-like of shape (K,)
        Positions of the classes, in increasing order.
    weights : array-like of shape (K,), optional
        Non-negative weights of the classes; ones by default.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> from_scale([0.0, 1.0, 3.0])
    array([[0., 1., 3.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    s = check_thresholds(scale, name="scale")
    K = s.size
    if K < 2:
        raise ValueError(f"scale must have at least two entries, got {K}")
    w = np.ones(K) if weights is None else check_scores(weights, "weights")
    if w.size != K:
        raise ValueError(f"weights must have length {K}, as scale has, got {w.size}")
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, got {w.min()}")
    return np.triu(np.outer(w, w) * (s[None, :] - s[:, None]), 1)


def _counts(counts: Any) -> np.ndarray:
    n = check_scores(counts, "counts")
    if n.size < 2 or (n <= 0).any():
        raise ValueError(f"counts must be at least two positive numbers, got {n.tolist()}")
    return n


def _n_pairs(n: np.ndarray) -> float:
    return float((n.sum() ** 2 - (n**2).sum()) / 2)


def ovo(counts: Any) -> np.ndarray:
    r"""Return the costs under which the pairwise risk is one minus the mean of one-vs-one AUCs.

    With N pairs of different labels, :math:`c_{ji} = \frac{2}{K(K-1)} \frac{N}{n_i n_j}`
    (Uematsu and Lee, 2013, section 3).

    Parameters
    ----------
    counts : array-like of shape (K,)
        Number (or total weight) of items of each class, all positive.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> ovo([1, 1, 2])
    array([[0.        , 1.66666667, 0.83333333],
           [0.        , 0.        , 0.83333333],
           [0.        , 0.        , 0.        ]])
    """
    n = _counts(counts)
    K = n.size
    return np.triu(2.0 / (K * (K - 1)) * _n_pairs(n) / np.outer(n, n), 1)


def consecutive(counts: Any) -> np.ndarray:
    r"""Return the costs under which the risk is one minus the mean AUC of the K - 1 splits.

    With :math:`N_l = \sum_{k \le l} n_k \sum_{k > l} n_k` and N pairs of different labels,
    :math:`c_{ji} = \frac{N}{K-1} \sum_{l=j}^{i-1} 1 / N_l`. They come from the scale
    :math:`s_i = \sum_{l < i} 1/N_l`, for any counts.

    Parameters
    ----------
    counts : array-like of shape (K,)
        Number (or total weight) of items of each class, all positive.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> consecutive([1, 1, 2]).round(4)
    array([[0.    , 0.8333, 1.4583],
           [0.    , 0.    , 0.625 ],
           [0.    , 0.    , 0.    ]])
    >>> satisfies_scale_condition(consecutive([3, 1, 4, 1, 5]))
    True
    """
    n = _counts(counts)
    below = np.cumsum(n)[:-1]
    split_pairs = below * (n.sum() - below)
    scale = np.concatenate(([0.0], np.cumsum(1.0 / split_pairs)))
    return _n_pairs(n) / (n.size - 1) * from_scale(scale)


def from_orboost_thresholds(thresholds: Any) -> np.ndarray:
    r"""Return the costs that ORBoost with two-neighbour exponential loss stands for.

    :math:`c_{ji} = e^{\theta_{i-1} - \theta_j} - e^{\theta_{j-1} - \theta_i}` with
    :math:`\theta_0 = -\infty, \theta_K = \infty` (Uematsu and Lee, 2013, section 4.1).

    Parameters
    ----------
    thresholds : array-like of shape (K - 1,)
        Thresholds in increasing order.

    Returns
    -------
    ndarray of shape (K, K)
        The costs.

    Examples
    --------
    >>> from_orboost_thresholds([0.0, 0.0])
    array([[0., 1., 1.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    theta = check_thresholds(thresholds)
    lower = np.concatenate(([-np.inf], theta))
    upper = np.concatenate((theta, [np.inf]))
    exponents = lower[None, :] - upper[:, None]
    with np.errstate(over="ignore"):
        costs = np.triu(np.exp(exponents) - np.exp(exponents.T), 1)
    if not np.isfinite(costs).all():
        raise ValueError("thresholds are so far apart that their costs overflow")
    return costs


def ordinal(K: int, kind: str) -> np.ndarray:
    """Return costs of a single wrong label: entry [y, k] for predicting k where y is true.

    Parameters
    ----------
    K : int
        Number of classes, at least 2; labels are 0..K-1.
    kind : {"absolute", "squared", "oerr"}
        :math:`|y - k|`, :math:`(y - k)^2`, or the optimistic ERR cost of Ruan, Lin and Tsai
        (2014), :math:`(2^y - 2^k)^2`.

    Returns
    -------
    ndarray of shape (K, K)
        The costs, zero on the diagonal.

    Examples
    --------
    >>> ordinal(5, "oerr")[3]
    array([49., 36., 16.,  0., 64.])
    """
    labels = np.arange(_n_classes(K), dtype=float)
    kind = check_choice(kind, ("absolute", "squared", "oerr"), "kind")
    if kind == "oerr":
        labels = 2.0**labels
    difference = labels[:, None] - labels[None, :]
    return np.abs(difference) if kind == "absolute" else difference**2


def _square(costs: Any) -> np.ndarray:
    array = np.asarray(costs)
    if array.ndim != 2 or array.shape[0] < 2:
        raise ValueError(f"costs must be a square matrix of K >= 2 rows, got shape {array.shape}")
    return check_costs(costs, array.shape[0])


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
    >>> satisfies_scale_condition(linear(5)), satisfies_scale_condition(constant(3))
    (True, True)
    >>> satisfies_scale_condition(constant(4))
    False
    """
    c = _square(costs)
    tol = check_scalar(tol, "tol", low=0.0)
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
    >>> scale, weights = scale_and_weights(linear(3))
    >>> scale.tolist(), weights.round(4).tolist()
    ([0.0, 0.5, 1.0], [1.4142, 1.4142, 1.4142])
    """
    c = _square(costs)
    require_scale_condition(c)
    total = c[0] + c[:, -1]
    with np.errstate(invalid="ignore"):
        scale = np.where(total > 0, c[0] / total, 0.0)
    return np.maximum.accumulate(scale), total / np.sqrt(c[0, -1])


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
    >>> with_consistent_terms(linear(3))
    array([[0. , 1. , 2. ],
           [0. , 0.5, 1. ],
           [0. , 0. , 0. ]])
    """
    c = _square(costs)
    require_scale_condition(c)
    return np.outer(c[:, -1], c[0]) / c[0, -1]


def require_scale_condition(costs: Any, advice: str = "") -> None:
    """Raise `CostConditionError`, naming the classes at fault, unless costs come from a scale."""
    c = _square(costs)
    if satisfies_scale_condition(c):
        return
    K = c.shape[0]
    if c[0, -1] <= 1e-10 * c.max() or c.max() == 0:
        reason = f"costs[0, {K - 1}] must be positive, got {c[0, -1]:g}"
    else:
        j, i = np.unravel_index(np.argmax(np.abs(_scale_residual(c))), c.shape)
        left = c[0, -1] * c[j, i]
        right = c[0, i] * c[j, -1] - c[0, j] * c[i, -1]
        reason = (
            f"classes {j} and {i} violate it: c[0,{K - 1}] c[{j},{i}] = {left:g}, but "
            f"c[0,{i}] c[{j},{K - 1}] - c[0,{j}] c[{i},{K - 1}] = {right:g}"
        )
    raise CostConditionError(f"costs do not come from a scale; {reason}. {advice}".rstrip())
