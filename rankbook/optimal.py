r"""What each method aims at: population minimisers from the posterior, in closed form or solved.

All functions take `posterior`, an array (..., K) of :math:`p_k = P(Y = k \mid x)`, and return
scores of shape (...). Two scores that order all x alike are equally good; `bayes_score`,
`expected_scale` and `expected_gain` are given up to such a transformation, while `orboost_score`,
`proportional_odds_score` and `svor_interval` are the minimisers of a conditional risk

.. math:: \sum_k p_k\, \ell(k, t) \to \min_t

themselves, which may lie at infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook._cost_scale import moderate, violation
from rankbook._validation import (
    check_choice,
    check_costs,
    check_posterior,
    check_thresholds,
    check_vector,
)
from rankbook.exceptions import CostConditionError

__all__ = [
    "bayes_score",
    "expected_gain",
    "expected_scale",
    "orboost_score",
    "proportional_odds_score",
    "svor_interval",
]

_LARGEST = np.finfo(float).max
# Slopes this close to zero are zero: posteriors sum to one, and their sums are rounded.
_FLAT = 1e-12
_CONDITION_TOLERANCE = 1e-10


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """A quotient as a finite score: x/0 is the largest float; 0/0, which may lie anywhere, 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = np.where(numerator == 0, 0.0, numerator / denominator)
    return np.clip(quotient, -_LARGEST, _LARGEST)


def _per_class(values: Any, n_classes: int, name: str) -> np.ndarray:
    array = check_vector(values, name)
    if array.size != n_classes:
        raise ValueError(
            f"{name} must have one entry for each of the {n_classes} classes, got {array.size}"
        )
    return array


def bayes_score(posterior: Any, costs: Any = None) -> np.ndarray:
    r"""The score that minimises the cost-weighted pairwise risk.

    .. math:: f_0^*(x) = \frac{\sum_{i=2}^K c_{1i}\, p_i(x)}{\sum_{j=1}^{K-1} c_{jK}\, p_j(x)}

    (Uematsu and Lee, 2013, Theorem 3), for K > 3 under the scale condition
    :math:`c_{1K} c_{ji} = c_{1i} c_{jK} - c_{1j} c_{iK}`. If :math:`c_{1K} = 0` the two sums no
    longer determine the order. With m the first class for which :math:`c_{1m} > 0`, the best
    score is then, under the condition with m in place of K,

    .. math:: \frac{\sum_{k > m} c_{mk}\, p_k - \sum_{k < m} c_{km}\, p_k}{\sum_{i} c_{1i}\, p_i},

    for K = 3 simply :math:`(c_{23} p_3 - c_{12} p_1) / (c_{12} p_2)`. Classes at either end
    that cost nothing against any other are left out first.

    Parameters
    ----------
    posterior : array-like of shape (..., K)
        P(Y = k | x).
    costs : array-like of shape (K, K), str or None
        Costs of misranked pairs; None means constant.

    Returns
    -------
    ndarray of shape (...)
        Scores. Where only the denominator vanishes, the largest float of the right sign, so that
        scores stay finite; where both sums do, any place is as good, and the score is 0.

    Raises
    ------
    CostConditionError
        If K > 3 and the costs do not meet the condition: no formula of this kind is best then.
        `FinitePopulation.bayes_scores` finds the best order of finitely many items for any costs.

    Examples
    --------
    >>> bayes_score([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]])
    array([1.14285714, 1.5       ])
    >>> bayes_score([[0.2, 0.5, 0.3]], costs=[[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([0.2])
    """
    p = check_posterior(posterior)
    c, _ = moderate(check_costs(costs, p.shape[-1]))
    n_classes, classes = len(c), _classes_that_cost(c)
    if classes is None:
        return np.zeros(p.shape[:-1])
    p, c, offset = p[..., classes], c[classes, classes], classes.start
    # The class against which the others are measured: the last, unless the first is equal to it.
    m = c.shape[0] - 1 if c[0, -1] > 0 else int(np.argmax(c[0] > 0))
    _require_plane(c, m, offset, n_classes)
    against = c[:, m] - c[m]
    upper = p @ c[0]
    if m == c.shape[0] - 1:
        return _ratio(upper, p @ against)
    return _ratio(-(p @ against), upper)


def _classes_that_cost(c: np.ndarray) -> slice | None:
    """The classes from the first that costs something against others to the last that does."""
    involved = np.flatnonzero((c + c.T).any(axis=1))
    return slice(int(involved[0]), int(involved[-1]) + 1) if involved.size else None


def _require_plane(c: np.ndarray, m: int, offset: int, n_classes: int) -> None:
    """Raise unless c_1m c_ji = c_1i c_jm - c_1j c_im for all classes, c antisymmetrised."""
    a = c - c.T
    implied = np.outer(a[:, m], a[0])
    residual = np.abs(a[0, m] * a - (implied - implied.T))
    if c.shape[0] <= 3 or residual.max() <= _CONDITION_TOLERANCE * c.max() ** 2:
        return
    j, i = np.unravel_index(np.argmax(np.triu(residual)), residual.shape)
    at_fault = violation(
        int(j) + offset + 1,
        int(i) + offset + 1,
        offset + 1,
        m + offset + 1,
        n_classes,
        a[0, m] * a[j, i],
        (implied - implied.T)[j, i],
    )
    raise CostConditionError(
        f"costs do not meet the scale condition of Theorem 3: {at_fault}; "
        "no closed form is best for such costs, use FinitePopulation.bayes_scores"
    )


def expected_scale(posterior: Any, scale: Any, weights: Any = None) -> np.ndarray:
    r"""The weighted mean position of the label, best for costs that come from a scale.

    .. math:: \frac{\sum_i s_i w_i\, p_i(x)}{\sum_j w_j\, p_j(x)}

    minimises the pairwise risk with :math:`c_{ji} = w_i w_j (s_i - s_j)` (Uematsu and Lee, 2013,
    Corollary 1). The scale 1, ..., K with equal weights gives :math:`E[Y \mid x]`.

    Parameters
    ----------
    posterior : array-like of shape (..., K)
        P(Y = k | x).
    scale : array-like of shape (K,)
        Positions of the classes, in increasing order.
    weights : array-like of shape (K,), optional
        Non-negative weights of the classes, equal by default.

    Returns
    -------
    ndarray of shape (...)
        Scores; 0 where all weight is on classes of weight 0, since any place is then as good.

    Examples
    --------
    >>> expected_scale([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], [1, 2, 3])
    array([2.1 , 2.25])
    """
    p = check_posterior(posterior)
    s = _per_class(check_thresholds(scale, name="scale"), p.shape[-1], "scale")
    w = np.ones(s.size) if weights is None else _per_class(weights, s.size, "weights")
    if (w < 0).any() or not w.any():
        raise ValueError(f"weights must be non-negative and not all zero, got {w.tolist()}")
    return _ratio(p @ (s * w), p @ w)


def expected_gain(posterior: Any, gain: Any) -> np.ndarray:
    r"""The expected gain :math:`\sum_j G(j)\, p_j(x)`.

    It maximises the expectation of every linear rank statistic
    :math:`\sum_i G(y_{\pi(i)}) D(i)` with a decreasing discount, DCG among them, over lists whose
    labels are independent given the items (Uematsu and Lee, 2013, section 5.2).

    Parameters
    ----------
    posterior : array-like of shape (..., K)
        P(Y = k | x).
    gain : array-like of shape (K,)
        The gain of each class.

    Returns
    -------
    ndarray of shape (...)
        Scores.

    Examples
    --------
    >>> expected_gain([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], [0, 1, 3])
    array([1.4 , 1.75])
    """
    p = check_posterior(posterior)
    return p @ _per_class(gain, p.shape[-1], "gain")


def _posterior_and_thresholds(
    posterior: Any, thresholds: Any, ordered: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    p = check_posterior(posterior)
    theta = check_thresholds(thresholds, ordered=ordered, n=p.shape[-1] - 1)
    with np.errstate(over="ignore"):
        span = np.ptp(theta)
    if not np.isfinite(span):
        raise ValueError(f"thresholds must have finite distances, got {theta.tolist()}")
    return p, theta


def orboost_score(posterior: Any, thresholds: Any) -> np.ndarray:
    r"""The minimiser of ORBoost's conditional risk.

    .. math:: f^*(x) = \frac12 \log
       \frac{\sum_{i=2}^K e^{\theta_{i-1}} p_i(x)}{\sum_{j=1}^{K-1} e^{-\theta_j} p_j(x)}

    minimises :math:`\sum_{j=1}^{K-1} (p_j e^{t - \theta_j} + p_{j+1} e^{\theta_j - t})`;
    (7) of Uematsu and Lee (2013). It orders as `bayes_score` does with the costs of
    `costs.from_orboost_thresholds`.

    Parameters
    ----------
    posterior : array-like of shape (..., K)
        P(Y = k | x).
    thresholds : array-like of shape (K - 1,)
        Thresholds in increasing order.

    Returns
    -------
    ndarray of shape (...)
        Scores, infinite where one of the outer classes is certain.

    Examples
    --------
    >>> orboost_score([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]], [-1.0, 1.0])
    array([0.15871666,        inf])
    """
    p, theta = _posterior_and_thresholds(posterior, thresholds)
    # The largest exponential of each sum is taken out, so that none overflows.
    with np.errstate(divide="ignore"):
        up = np.log(p[..., 1:] @ np.exp(theta - theta[-1]))
        down = np.log(p[..., :-1] @ np.exp(theta[0] - theta))
    return (theta[0] + theta[-1]) / 2 + (up - down) / 2


def proportional_odds_score(posterior: Any, thresholds: Any) -> np.ndarray:
    r"""The minimiser of the conditional risk of the proportional odds model.

    It minimises :math:`\sum_{j=1}^{K-1} p_j \log(1 + e^{t - \theta_j})
    + p_{j+1} \log(1 + e^{\theta_j - t})`, that is, solves

    .. math:: \sum_{j=1}^{K-1} \frac{p_j(x) + p_{j+1}(x)}{1 + e^{\theta_j - t}} = 1 - p_1(x)

    (Uematsu and Lee, 2013, section 4.2). For K = 3 this is their closed form (8), a function of
    :math:`q = (p_2 + p_3)/(p_1 + p_2)`; for larger K the equation is solved by Newton's method,
    kept between bounds that always hold the root.

    Parameters
    ----------
    posterior : array-like of shape (..., K)
        P(Y = k | x).
    thresholds : array-like of shape (K - 1,)
        Thresholds in increasing order.

    Returns
    -------
    ndarray of shape (...)
        Scores, infinite where one of the outer classes is certain.

    Examples
    --------
    >>> proportional_odds_score([[0.2, 0.6, 0.2], [0.1, 0.5, 0.4]], [-1.0, 1.0]).round(6)
    array([0.      , 0.732473])
    """
    p, theta = _posterior_and_thresholds(posterior, thresholds)
    # Sums rather than 1 - p: they keep their digits where an outer class is nearly certain.
    not_first, not_last = p[..., 1:].sum(axis=-1), p[..., :-1].sum(axis=-1)
    with np.errstate(divide="ignore"):
        odds = np.log(not_first) - np.log(not_last)
    if theta[0] == theta[-1]:
        return theta[0] + odds
    if p.shape[-1] == 3:
        return _proportional_odds_three(p, theta, not_first, not_last)
    score = np.array(odds)
    inner = np.isfinite(odds)
    if inner.any():
        weights = p[inner][:, :-1] + p[inner][:, 1:]
        score[inner] = _logistic_root(weights, theta, not_first[inner], odds[inner])
    return score


def _proportional_odds_three(
    p: np.ndarray, theta: np.ndarray, not_first: np.ndarray, not_last: np.ndarray
) -> np.ndarray:
    """The positive root w of (1 - p3) g w^2 - (p3 - p1) w - (1 - p1) g = 0, as a score.

    Here w = exp(t - (theta_1 + theta_2)/2) and g = exp(-(theta_2 - theta_1)/2); of the two
    forms of the root the one without cancellation is taken.
    """
    b = p[..., 2] - p[..., 0]
    half_gap = (theta[1] - theta[0]) / 2
    g = max(np.exp(-half_gap), np.finfo(float).tiny ** 0.5)
    root = np.sqrt(b**2 + 4 * g**2 * not_first * not_last)
    with np.errstate(divide="ignore"):
        size = np.log((np.abs(b) + root) / 2) - np.log(g)
        score = np.where(b >= 0, size - np.log(not_last), np.log(not_first) - size)
    return (theta[0] + theta[1]) / 2 + np.where(b == 0, 0.0, score)


def _logistic_root(
    weights: np.ndarray, theta: np.ndarray, target: np.ndarray, odds: np.ndarray
) -> np.ndarray:
    """Solve sum_j weights_j sigma(t - theta_j) = target, row by row, for t."""
    # With all thresholds at the lowest, or at the highest, the root is known: it lies between.
    low, high = theta[0] + odds, theta[-1] + odds
    t = (low + high) / 2
    for _ in range(200):
        sigma = 0.5 + 0.5 * np.tanh((t[:, None] - theta) / 2)
        value = (weights * sigma).sum(axis=1) - target
        slope = (weights * sigma * (1 - sigma)).sum(axis=1)
        low, high = np.where(value <= 0, t, low), np.where(value >= 0, t, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = t - value / slope
        inside = (newton > low) & (newton < high)
        new = np.where(inside, newton, (low + high) / 2)
        done = np.abs(new - t) <= 4e-16 * np.maximum(np.abs(new), 1.0)
        t = np.where(value == 0, t, new)
        if (done | (value == 0)).all():
            break
    return t


def svor_interval(
    posterior: Any, thresholds: Any, constraints: str = "implicit"
) -> tuple[np.ndarray, np.ndarray]:
    r"""The minimisers of the conditional risk of support vector ordinal regression.

    With the hinge :math:`(1 - s)_+`, implicit constraints (Chu and Keerthi) put label k against
    every threshold, explicit ones (Shashua and Levin) against its two neighbours. Either way the
    risk is

    .. math:: \sum_{j=1}^{K-1} u_j (1 + t - \theta_j)_+ + d_j (1 - t + \theta_j)_+,

    with :math:`u_j = P(Y \le j)`, :math:`d_j = P(Y > j)` (implicit) or :math:`u_j = p_j`,
    :math:`d_j = p_{j+1}` (explicit): its slope grows by :math:`u_j` at :math:`\theta_j - 1` and by
    :math:`d_j` at :math:`\theta_j + 1`, and the minimisers are the interval where it changes sign
    (the tables of Uematsu and Lee, 2013, section 4.3, for K = 3).

    Parameters
    ----------
    posterior : array-like of shape (..., K)
        P(Y = k | x).
    thresholds : array-like of shape (K - 1,)
        Thresholds, in any order.
    constraints : {"implicit", "explicit"}
        Which loss.

    Returns
    -------
    lower, upper : ndarray of shape (...)
        The ends of the set of minimisers, equal where there is one alone, infinite where the risk
        does not grow on that side.

    Examples
    --------
    >>> lower, upper = svor_interval([[0.6, 0.3, 0.1], [0.4, 0.2, 0.4]], [0.0, 3.0])
    >>> lower, upper
    (array([-1.,  1.]), array([-1.,  2.]))
    """
    check_choice(constraints, ("implicit", "explicit"), "constraints")
    p, theta = _posterior_and_thresholds(posterior, thresholds, ordered=False)
    if constraints == "implicit":
        up = np.cumsum(p, axis=-1)[..., :-1]
        down = np.cumsum(p[..., ::-1], axis=-1)[..., -2::-1]
    else:
        up, down = p[..., :-1], p[..., 1:]
    kinks = np.concatenate([theta - 1, theta + 1])
    order = np.argsort(kinks, kind="stable")
    growth = np.concatenate([up, down], axis=-1)[..., order]
    slope = np.cumsum(growth, axis=-1) - down.sum(axis=-1, keepdims=True)
    slope = np.concatenate([-down.sum(axis=-1, keepdims=True), slope], axis=-1)
    ends = np.concatenate([[-np.inf], kinks[order], [np.inf]])
    # Slope number m holds between the ends m and m + 1.
    lower = ends[(slope < -_FLAT).sum(axis=-1)]
    upper = ends[(slope <= _FLAT).sum(axis=-1)]
    return lower, upper
