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

from rankbook._cost_scale import (
    satisfies_scale_condition,
    scale_and_weights,
    with_consistent_terms,
)
from rankbook._validation import (
    check_choice,
    check_costs,
    check_scalar,
    check_thresholds,
    check_vector,
)

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


# The largest powers of two, and their squares, that are finite floats.
_MAX_DCG = 1023
_MAX_OERR = 512
# Matrices of more classes take more than a gigabyte.
_MAX_CLASSES = 10_000
# Beside the largest count, a smaller one would give costs that are no floats.
_SMALLEST_SHARE = 1e-150


def _n_classes(K: Any) -> int:
    return check_scalar(K, "K", low=2, high=_MAX_CLASSES, integer=True)


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
        Number of classes, from 2 to 1023.

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
    K = _n_classes(K)
    if K > _MAX_DCG:
        raise ValueError(f"K must be at most {_MAX_DCG} for gains to be finite floats, got {K}")
    return check_costs("dcg", K)


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
    w = np.ones(K) if weights is None else check_vector(weights, "weights")
    if w.size != K:
        raise ValueError(f"weights must have length {K}, as scale has, got {w.size}")
    if (w < 0).any():
        raise ValueError(f"weights must not be negative, got {w.min()}")
    with np.errstate(over="ignore", invalid="ignore"):
        costs = np.triu(np.outer(w, w) * (s[None, :] - s[:, None]), 1)
    if not np.isfinite(costs).all():
        raise ValueError("scale and weights must give costs within the range of floats")
    return costs


def _counts(counts: Any) -> np.ndarray:
    n = check_vector(counts, "counts")
    if n.size < 2 or (n <= 0).any():
        raise ValueError(f"counts must be at least two positive numbers, got {n.tolist()}")
    # Only ratios matter, and a power of two changes no digit.
    n = np.ldexp(n, -int(np.frexp(n.max())[1]))
    if n.min() < _SMALLEST_SHARE:
        raise ValueError(f"counts must not differ by more than {1 / _SMALLEST_SHARE:g} times")
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
        if K > _MAX_OERR:
            raise ValueError(f"K must be at most {_MAX_OERR} for costs to be finite, got {K}")
        labels = 2.0**labels
    difference = labels[:, None] - labels[None, :]
    return np.abs(difference) if kind == "absolute" else difference**2
