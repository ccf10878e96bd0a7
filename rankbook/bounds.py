r"""How much a classifier's loss says about its ranking: the bounds of Kotlowski et al. (2011).

A classifier c, a real function of an item, ranks by its values. Its **rank risk** is the
probability that a positive is scored below a negative, ties counting one half. The bounds here
give the largest rank risk (or regret: risk minus the smallest possible) that a risk (or regret)
measured on single items leaves room for. They hold for every distribution, hence also for the
empirical one.

The **balanced** version of a loss weighs items of class y by 1 / (2 P(y)), so that both classes
count one half. A bound can exceed one; it then says nothing.

`multipartite_regret_bound` does the same for K ordered labels and the consistent surrogates of
Uematsu and Lee (2013); `expected_rank_error_bound` and `err_regret_bound` for the regressions of
Ruan, Lin and Tsai (2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankbook import losses
from rankbook._err_bounds import err_regret_bound, expected_rank_error_bound
from rankbook._regret_transfer import check_values, multipartite_regret_bound
from rankbook._validation import check_choice, check_flag, check_scalar

__all__ = [
    "class_weight_error_bound",
    "err_regret_bound",
    "expected_rank_error_bound",
    "margin_loss_rank_risk_bound",
    "multipartite_regret_bound",
    "rank_regret_bound",
    "rank_regret_constant",
    "rank_risk_bound_balanced",
    "rank_risk_bound_from_errors",
    "rank_risk_bound_zero_one",
]

_PRINTED_CONSTANTS = {losses.Exponential(): float(3 * np.sqrt(2) / 2), losses.Logistic(): 2.0}
# The power of 4 p (1 - p) that unbalanced classes cost.
_PRIOR_POWERS = {losses.Exponential(): 0.25, losses.Logistic(): 1.0}
_SHARP_CONSTANT = float(np.sqrt(8 / 3))


def _check_prior(p: Any) -> float:
    p = check_scalar(p, "p", low=0.0, strict_low=True, high=1.0)
    if p == 1.0:
        raise ValueError("p must be less than 1, got 1.0")
    return p


def _plain(value: np.ndarray) -> float | np.ndarray:
    return float(value) if np.ndim(value) == 0 else value


def rank_risk_bound_from_errors(
    false_negative: ArrayLike, false_positive: ArrayLike, p: float
) -> float | np.ndarray:
    r"""Bound the rank risk by the two kinds of classification errors (Lemma 3.1).

    .. math:: L_{\text{rank}}(c) \le \frac{\alpha}{p} + \frac{\beta}{1 - p}
       - \frac{\alpha \beta}{p (1 - p)}

    Parameters
    ----------
    false_negative : float or array-like
        :math:`\alpha = P(c(x) \le 0, y = 1)`, at most p.
    false_positive : float or array-like
        :math:`\beta = P(c(x) \ge 0, y = -1)`, at most 1 - p.
    p : float
        Probability of the positive class, between 0 and 1.

    Returns
    -------
    float or ndarray
        The bound, from 0 to 1.

    Notes
    -----
    A positive and a negative that are both classified correctly are in the right order. The two
    classifications are independent, so both are correct with probability
    :math:`(1 - \alpha/p)(1 - \beta/(1-p))`; the bound is one minus that. It is attained when every
    misclassified item of one class is beyond all items of the other.

    Examples
    --------
    >>> from rankbook.bounds import rank_risk_bound_from_errors
    >>> rank_risk_bound_from_errors(0.1, 0.05, p=0.5)
    0.28
    """
    p = _check_prior(p)
    alpha = check_values(false_negative, "false_negative", high=p)
    beta = check_values(false_positive, "false_positive", high=1 - p)
    return _plain(alpha / p + beta / (1 - p) - alpha * beta / (p * (1 - p)))


def rank_risk_bound_zero_one(risk: ArrayLike, p: float) -> float | np.ndarray:
    r"""Bound the rank risk by the error rate (Theorem 3.1).

    .. math:: L_{\text{rank}}(c) \le \frac{L_{0/1}(c)}{\min(p, 1 - p)},
       \qquad L_{0/1}(c) = P(y\, c(x) \le 0)

    Parameters
    ----------
    risk : float or array-like
        The error rate, from 0 to 1.
    p : float
        Probability of the positive class, between 0 and 1.

    Returns
    -------
    float or ndarray
        The bound.

    Notes
    -----
    No bound on the rank *regret* by the 0/1 regret exists: the sign of a classifier can be
    optimal while its values tie items of different probability.

    Examples
    --------
    >>> from rankbook.bounds import rank_risk_bound_zero_one
    >>> rank_risk_bound_zero_one(0.1, p=0.5)
    0.2
    >>> rank_risk_bound_zero_one(0.1, p=0.9)  # the majority classifier: nothing is known
    1.0000000000000002
    """
    p = _check_prior(p)
    with np.errstate(over="ignore"):
        return _plain(check_values(risk, "risk", high=1.0) / min(p, 1 - p))


def rank_risk_bound_balanced(risk: ArrayLike) -> float | np.ndarray:
    r"""Bound the rank risk by the balanced error rate (equation 10).

    .. math:: L_{\text{rank}}(c) \le 2 L_b(c), \qquad
       L_b(c) = \frac{1}{2} P(c \le 0 \mid y = 1) + \frac{1}{2} P(c \ge 0 \mid y = -1)

    Parameters
    ----------
    risk : float or array-like
        The balanced error rate, from 0 to 1.

    Returns
    -------
    float or ndarray
        The bound, whatever the class prior. The factor 2 cannot be lowered.

    Examples
    --------
    >>> from rankbook.bounds import rank_risk_bound_balanced
    >>> rank_risk_bound_balanced(0.1)
    0.2
    """
    return _plain(2.0 * check_values(risk, "risk", high=1.0))


def margin_loss_rank_risk_bound(
    loss: Any,
    risk: ArrayLike,
    p: float | None = None,
    constant: str = "sharp",
    balanced: bool = True,
) -> float | np.ndarray:
    r"""Bound the rank risk by the risk of a margin loss (equation 11).

    Parameters
    ----------
    loss : str or Loss
        A loss of `rankbook.losses`, or its name.
    risk : float or array-like
        The mean of :math:`w(y)\, \ell(y\, c(x))`, at least 0.
    p : float, optional
        Probability of the positive class; needed if `balanced` is False.
    constant : {"sharp", "printed"}, default="sharp"
        "printed" is the paper's :math:`L_{\text{rank}} \le 2 L_\ell / \ell(0)`, written there for
        losses with :math:`\ell(0) = 1`. "sharp" is half of it, and cannot be lowered.
    balanced : bool, default=True
        Whether `risk` is that of the balanced loss (or p = 1/2). If not, it is first multiplied by
        :math:`1 / (2 \min(p, 1 - p))`, the largest balancing weight.

    Returns
    -------
    float or ndarray
        The bound.

    Notes
    -----
    For a positive with score c and a negative with score c',

    .. math:: 1\{c < c'\} + \tfrac12 1\{c = c'\} \le \frac{\ell((c - c')/2)}{\ell(0)}
       \le \frac{\ell(c) + \ell(-c')}{2\, \ell(0)},

    first because :math:`\ell` does not increase, then because it is convex. The mean of the right
    side over both classes is :math:`L_\ell / \ell(0)` for the balanced loss. Scores that
    reverse the classes and are close to 0 show that no smaller constant will do.

    Examples
    --------
    >>> from rankbook.bounds import margin_loss_rank_risk_bound
    >>> margin_loss_rank_risk_bound("exponential", 0.25)
    0.25
    >>> margin_loss_rank_risk_bound("exponential", 0.25, constant="printed")
    0.5
    """
    loss = losses.get(loss)
    check_choice(constant, ("sharp", "printed"), "constant")
    value = check_values(risk, "risk") / float(loss(0.0))
    if not check_flag(balanced, "balanced"):
        p = _required_prior(p)
        value = value / (2 * min(p, 1 - p))
    elif p is not None:
        _check_prior(p)
    return _plain(value * (2.0 if constant == "printed" else 1.0))


def _required_prior(p: float | None) -> float:
    if p is None:
        raise ValueError("p must be given with balanced=False, got None")
    return _check_prior(p)


def rank_regret_constant(loss: Any, constant: str = "sharp") -> float:
    r"""Return the constant C of :math:`\mathrm{Reg}_{\text{rank}} \le C \sqrt{\mathrm{Reg}_\ell}`.

    Parameters
    ----------
    loss : {"exponential", "logistic"} or Loss
        The balanced margin loss.
    constant : {"sharp", "printed"}, default="sharp"
        "printed" is that of Theorem 4.1, :math:`3\sqrt2/2` or 2; "sharp" is
        :math:`\sqrt{8/3}` for both losses, the smallest for which the bound always holds.

    Returns
    -------
    float
        The constant.

    Examples
    --------
    >>> from rankbook.bounds import rank_regret_constant
    >>> [round(rank_regret_constant("exponential", c), 3) for c in ("printed", "sharp")]
    [2.121, 1.633]
    """
    known = losses.get(loss)
    if known not in _PRINTED_CONSTANTS:
        raise ValueError(f"loss must be 'exponential' or 'logistic', got {loss!r}")
    check_choice(constant, ("sharp", "printed"), "constant")
    return _PRINTED_CONSTANTS[known] if constant == "printed" else _SHARP_CONSTANT


def rank_regret_bound(
    loss: Any,
    regret: ArrayLike,
    p: float | None = None,
    constant: str = "sharp",
    balanced: bool = True,
) -> float | np.ndarray:
    r"""Bound the rank regret by the regret of the exponential or logistic loss (Theorem 4.1).

    .. math:: \mathrm{Reg}_{\text{rank}}(c) \le C \sqrt{\mathrm{Reg}_\ell(c)}

    Parameters
    ----------
    loss : {"exponential", "logistic"} or Loss
        The margin loss.
    regret : float or array-like
        Its regret: risk minus the smallest risk of any function.
    p : float, optional
        Probability of the positive class; needed if `balanced` is False.
    constant : {"sharp", "printed"}, default="sharp"
        See `rank_regret_constant`.
    balanced : bool, default=True
        Whether `regret` is that of the balanced loss (or p = 1/2), as in the theorem. If not, C is
        multiplied by :math:`(4 p (1 - p))^{-1/4}` for exponential loss, which is still sharp, and
        by :math:`(4 p (1 - p))^{-1}` for logistic loss, which need not be.

    Returns
    -------
    float or ndarray
        The bound.

    Notes
    -----
    Let both classes have probability 1/2 and :math:`\delta = 2 \eta(x) - 1`. For two
    independent items, putting them in the wrong order rather than the right one costs
    :math:`2 |\delta - \delta'|`, so that

    .. math:: \mathrm{Reg}_{\text{rank}} = E\, |\delta - \delta'|
       \left(1\{\text{misordered}\} + \tfrac12 1\{\text{tied}\}\right).

    1. Put :math:`t = \tanh c` (exponential) or :math:`\tanh(c/2)` (logistic). At every item the
       regret of the loss is at least :math:`(\delta - t)^2 / 2`: for the exponential loss it is
       :math:`[1 - \delta t - \sqrt{(1 - \delta^2)(1 - t^2)}] / \sqrt{1 - t^2}`, in which
       :math:`\delta = \sin a`, :math:`t = \sin b` make the bracket :math:`1 - \cos(a - b) \ge
       (\sin a - \sin b)^2 / 2`; for the logistic loss this is Pinsker's inequality.
    2. Let :math:`e = \delta - t`. If :math:`\delta - \delta'` and :math:`t - t'` do not have the
       same sign, :math:`|\delta - \delta'| \le |e - e'|`. So the rank regret is at most
       :math:`E |e - e'|`, Gini's mean difference of e.
    3. Gini's mean difference is at most :math:`2 / \sqrt 3` standard deviations, with equality for
       the uniform distribution. Hence :math:`\mathrm{Reg}_{\text{rank}} \le (2/\sqrt3)
       \sqrt{E e^2} \le (2/\sqrt3) \sqrt{2\, \mathrm{Reg}_\ell}`.

    All steps become equalities in the limit :math:`h \to 0` for :math:`\delta` uniform on
    [-h, h] and scores that reverse the order but are as good as zero. For other priors the rank
    regret carries the factor :math:`1 / (4 p (1 - p))`, and the unbalanced exponential
    regret of c is :math:`2 \sqrt{p (1 - p)}` times the balanced one of c minus a constant.

    Examples
    --------
    >>> from rankbook.bounds import rank_regret_bound
    >>> round(rank_regret_bound("logistic", 0.06), 6)
    0.4
    >>> round(rank_regret_bound("logistic", 0.06, constant="printed"), 6)
    0.489898
    """
    value = rank_regret_constant(loss, constant) * np.sqrt(check_values(regret, "regret"))
    if check_flag(balanced, "balanced"):
        if p is not None:
            _check_prior(p)
        return _plain(value)
    p = _required_prior(p)
    if constant == "printed":
        raise ValueError("constant='printed' is for balanced=True: Theorem 4.1 has balanced losses")
    return _plain(value / (4 * p * (1 - p)) ** _PRIOR_POWERS[losses.get(loss)])


def class_weight_error_bound(
    p: float, n: int, epsilon: ArrayLike, version: str = "corrected"
) -> float | np.ndarray:
    r"""Bound the chance that an estimated class weight is far off (end of section 3.2).

    With the share :math:`\hat p` of a class among n items, the weight :math:`\hat w = 1/(2 \hat p)`
    estimates :math:`w = 1/(2p)`. Then

    .. math:: P\left(\frac{|\hat w - w|}{w} \ge \epsilon\right)
       \le 2 \exp\left(-\frac{2 n p^2 \epsilon^2}{(1 + \epsilon)^2}\right).

    Parameters
    ----------
    p : float
        Probability of the class.
    n : int
        Number of items.
    epsilon : float or array-like
        Relative error, between 0 and 1.
    version : {"corrected", "printed"}, default="corrected"
        "printed" is the paper's :math:`2 \exp(-2 p n \epsilon / (1 - \epsilon))`, which is false.

    Returns
    -------
    float or ndarray
        The bound.

    Notes
    -----
    The relative error is :math:`|\hat p - p| / \hat p`. It is at least :math:`\epsilon` only if
    :math:`\hat p \ge p / (1 - \epsilon)` or :math:`\hat p \le p / (1 + \epsilon)`; the
    nearer of the two is at the distance :math:`p \epsilon / (1 + \epsilon)` from p. Hoeffding's
    inequality at this distance is the bound.

    Examples
    --------
    >>> from rankbook.bounds import class_weight_error_bound
    >>> round(class_weight_error_bound(0.5, 1000, 0.1), 4)
    0.0321
    """
    p = _check_prior(p)
    n = check_scalar(n, "n", low=1, integer=True)
    epsilon = check_values(epsilon, "epsilon", high=1.0)
    if (epsilon >= 1).any() or (epsilon == 0).any():
        raise ValueError("epsilon must be between 0 and 1, got one of the ends")
    if check_choice(version, ("corrected", "printed"), "version") == "printed":
        return _plain(2 * np.exp(-2 * p * n * epsilon / (1 - epsilon)))
    return _plain(2 * np.exp(-2 * n * (p * epsilon / (1 + epsilon)) ** 2))
