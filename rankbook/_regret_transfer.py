r"""From the excess surrogate risk of a multipartite problem to its excess pairwise risk.

See `rankbook.bounds`, which offers `multipartite_regret_bound`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankbook import losses
from rankbook._arrays import as_array
from rankbook._cost_scale import with_consistent_terms
from rankbook._validation import check_choice, check_costs, check_probabilities

__all__ = ["check_values", "multipartite_regret_bound"]


def check_values(values: ArrayLike, name: str, high: float | None = None) -> np.ndarray:
    """Return numbers, one or many, from 0 to `high`."""
    array = as_array(values, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got {values!r}")
    array = array.astype(float)
    bad = ~np.isfinite(array) | (array < 0)
    if high is not None:
        # Room for the rounding of sums that reach the end exactly.
        bad |= array > high + 1e-12
    if bad.any():
        top = "finite" if high is None else f"at most {high:g}"
        raise ValueError(f"{name} must be at least 0 and {top}, got {array[bad][0]}")
    return array


def _surrogate_scale(priors: Any, costs: Any) -> float:
    """Return kappa: the surrogate's weights, in the mean over pairs with different labels."""
    pi = check_probabilities(priors, name="priors")
    if pi.size < 2:
        raise ValueError(f"priors must have at least two entries, got {pi.size}")
    weights = with_consistent_terms(check_costs(costs, pi.size))
    pairs = float(pi[1:] @ np.cumsum(pi)[:-1])
    if pairs <= 0:
        raise ValueError("priors must give at least two classes a positive probability")
    return float(pi @ weights @ pi) / pairs


def _inverse_exponential(t: np.ndarray) -> np.ndarray:
    """Invert 1 - sqrt(1 - d^2), which is below t at d = 1 from t = 1 on."""
    t = np.minimum(t, 1.0)
    return np.sqrt(t * (2.0 - t))


def _inverse_logistic(t: np.ndarray) -> np.ndarray:
    """Invert d atanh d + log(1 - d^2) / 2 by bisection; the upper end, so as to bound."""
    t = np.minimum(t, np.log(2.0))
    # The function lies between d^2 / 2 and d^2 log 2.
    low, high = np.sqrt(t / np.log(2.0)), np.minimum(np.sqrt(2.0 * t), 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            value = middle * np.arctanh(middle) + np.log1p(-(middle**2)) / 2
        below = value < t
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


# Losses for which the best score of a pair is a difference of scores: half or whole log odds.
_INVERSES = {losses.Exponential(): _inverse_exponential, losses.Logistic(): _inverse_logistic}


def multipartite_regret_bound(
    loss: Any, regret: ArrayLike, priors: Any, costs: Any = None, form: str = "exact"
) -> float | np.ndarray:
    r"""Bound the excess pairwise risk by the excess risk of the consistent surrogate.

    For costs from a scale, and the exponential or logistic loss with Theorem 4's terms,

    .. math:: R(f) - R^* \le \kappa\, \psi^{-1}\!\left(\frac{R_\ell(f) - R_\ell^*}{\kappa}\right)
       \le \sqrt{2 \kappa\, (R_\ell(f) - R_\ell^*)}, \qquad
       \kappa = \frac{\sum_i c_{1i} \pi_i \sum_j c_{jK} \pi_j}{c_{1K}\, P(Y > Y')},

    where :math:`\pi` are the class probabilities,
    :math:`\psi(d) = 1 - \sqrt{1 - d^2}` for the exponential loss and
    :math:`\psi(d) = \frac12 [(1 + d) \log(1 + d) + (1 - d) \log(1 - d)]` for the logistic one.

    Parameters
    ----------
    loss : {"exponential", "logistic"} or Loss
        The surrogate.
    regret : float or array-like
        Its regret: ``surrogate_risk(scores, loss, costs, consistent=True)`` minus the least such
        risk of any scores.
    priors : array-like of shape (K,)
        Class probabilities.
    costs : None, str or array-like of shape (K, K)
        The costs, which must come from a scale.
    form : {"exact", "root"}, default="exact"
        The first bound above, or the second, which is larger and simpler.

    Returns
    -------
    float or ndarray
        The bound. The pairwise regret itself never exceeds :math:`\kappa`.

    Raises
    ------
    CostConditionError
        If the costs do not come from a scale.

    Notes
    -----
    Let :math:`u(x) = \sum_i c_{1i}\, p_i(x)` and :math:`l(x) = \sum_j c_{jK}\, p_j(x)`. By the
    scale condition the cost of the wrong order of x and x' exceeds that of the right one by
    :math:`|u(x) l(x') - u(x') l(x)| / c_{1K}`, and ordering by u/l puts every pair right. The
    surrogate's weights are :math:`u(x) l(x') / c_{1K}`. So both risks are those of a *bipartite*
    problem in which positives have the density :math:`g_+ \propto u` and negatives
    :math:`g_- \propto l` with respect to the distribution of X: its rank risk and its surrogate
    risk, times :math:`\kappa`, up to a constant in the first.

    1. For two independent draws put :math:`a = g_+(x) g_-(x')`, :math:`b = g_+(x') g_-(x)` and
       :math:`d = (a - b) / (a + b)`. The pairs have the probability
       :math:`\mu = (a + b) / 2`: both a and b integrate to one. Counting a wrong order as
       m = 1 and a tie as m = 1/2, the rank regret is :math:`\int m |d| \, d\mu`.
    2. The surrogate risk is
       :math:`\int [\frac{1 + d}{2} \ell(t) + \frac{1 - d}{2} \ell(-t)]\, d\mu` with
       :math:`t = f(x) - f(x')`. At each pair the best t is
       :math:`\frac12 \log (a / b)`, or :math:`\log (a / b)` for the logistic loss: a difference of
       scores. So one f is best at all pairs, and the regret is the mean of the pairs' regrets. (The
       best t of the squared hinge, d, is no such difference: this step fails.)
    3. If t does not have the sign of d, convexity makes the regret of the pair at least that of
       t = 0, which is :math:`\psi(|d|)`. Hence it is at least
       :math:`m\, \psi(|d|) \ge \psi(m |d|)` at every pair, as :math:`\psi` is convex with
       :math:`\psi(0) = 0`; Jensen's inequality, and then :math:`\psi(d) \ge d^2 / 2`, give the
       bounds.

    The exact form is attained, in the limit, where all pairs that are not tied for good have one
    :math:`|d|`, as for two atoms of which each is certain. The root cannot have a smaller constant
    than :math:`\sqrt{4/3}` in place of :math:`\sqrt2`: for scores near zero in the wrong order, as
    :math:`g_+ / g_- \to 1` with :math:`g_+ / (g_+ + g_-)` uniform, :math:`\int |d|\, d\mu` becomes
    :math:`\sqrt{2/3}` times the root of :math:`\int d^2 d\mu`. For the logistic loss the two
    certain atoms, whose pairs have the regret :math:`\log 2`, exclude constants below
    :math:`1 / \sqrt{\log 2}`.

    Examples
    --------
    Two items that hardly differ in score, in the wrong order:

    >>> import numpy as np
    >>> from rankbook.bounds import multipartite_regret_bound
    >>> from rankbook.optimal import bayes_score
    >>> from rankbook.population import FinitePopulation
    >>> population = FinitePopulation([[0.6, 0.3, 0.1], [0.1, 0.4, 0.5]])
    >>> scores, best = [1e-9, 0.0], np.log(bayes_score(population.posterior, "linear")) / 2
    >>> excess = population.risk(scores, "linear") - population.bayes_risk("linear")
    >>> surrogate = [population.surrogate_risk(s, "exponential", "linear", True)
    ...              for s in (scores, best)]
    >>> bound = multipartite_regret_bound(
    ...     "exponential", surrogate[0] - surrogate[1], population.priors, "linear")
    >>> round(excess, 4), round(bound, 4)
    (0.6767, 0.9072)
    """
    loss = losses.get(loss)
    if loss not in _INVERSES:
        raise ValueError(f"loss must be 'exponential' or 'logistic', got {loss!r}")
    check_choice(form, ("exact", "root"), "form")
    values = check_values(regret, "regret")
    scale = _surrogate_scale(priors, costs)
    if form == "root":
        bound = np.sqrt(2.0 * scale) * np.sqrt(values)
    elif scale == 0.0:
        bound = np.zeros_like(values)
    else:
        bound = scale * _INVERSES[loss](values / scale)
    return float(bound) if np.ndim(bound) == 0 else bound
