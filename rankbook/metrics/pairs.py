"""What a ranking is worth, judged by pairs of items with different labels.

Labels are ordered and higher scores are meant for higher labels. Unless `ties` says otherwise a
pair with equal scores counts one half, so that a constant scorer has risk 1/2. Every function
takes

- `sample_weight`: a pair weighs the product of the weights of its items;
- `qid`: only items of the same query are compared, and the result is the mean over the queries
  that have a pair to compare;
- `labels`: all classes, lowest first, where `y` lacks some class, or holds neither numbers nor
  categories in a declared order: an ordered pandas Categorical, a polars Enum, an ordered Arrow
  dictionary.

All cost one sort, O(n log n), and memory linear in the number of items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankbook._validation import check_choice, check_costs, check_ties, cost_scale
from rankbook.metrics._bitwise import constant_errors, equal_class_errors, scale_errors
from rankbook.metrics._counting import Sample, distinct_score_mass, error_rows, prepare, rate_rows
from rankbook.metrics.surface import volume_under_surface

__all__ = [
    "auc",
    "kendall_tau",
    "pair_error_rates",
    "pairwise_risk",
    "u_cons",
    "u_ovo",
    "u_pairs",
    "volume_under_surface",
]


def _mean_over_queries(value: np.ndarray, has_pair: np.ndarray, sample: Sample) -> float:
    """Average over the queries that have something to compare."""
    if not has_pair.any():
        where = "" if sample.query is None else " within any query"
        weighted = "" if sample.weights is None else " and positive sample_weight"
        raise ValueError(f"y must hold two items with different labels{weighted}{where}, got none")
    return float(value[has_pair].mean())


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)


def pairwise_risk(
    y: ArrayLike,
    scores: ArrayLike,
    costs: Any = None,
    ties: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Mean cost of a pair of items with different labels.

    .. math:: \hat R(f; c) = \frac{1}{\sum_{j < i} n_j n_i} \sum_{j < i} c_{ji}
       \sum_{y_a = j} \sum_{y_b = i}
       \left[ 1\{f_a > f_b\} + \text{ties} \cdot 1\{f_a = f_b\} \right]

    The divisor is the number of pairs with different labels, whatever the costs ([1]_, section 3).

    Parameters
    ----------
    y : array-like of shape (n,)
        Ordered labels: numbers, an ordered pandas Categorical, or anything with `labels`.
    scores : array-like of shape (n,)
        Higher is ranked higher.
    costs : None, {"constant", "linear", "dcg"} or array-like of shape (K, K), default=None
        ``costs[j, i]``, j < i, is the cost of ranking an item of class j above one of class i.
        None means constant costs of one.
    ties : float, default=0.5
        What a tied pair counts, from 0 (free) to 1 (an error).
    sample_weight : array-like of shape (n,), default=None
        Non-negative weights; a pair weighs the product of its items'.
    qid : array-like of shape (n,), default=None
        Query of every item. Pairs are taken within queries, and the mean over the queries that
        have a pair is returned.
    labels : array-like of shape (K,), default=None
        All classes, lowest first; needed where the order of `y` is not plain from numbers or an
        ordered Categorical. A class without items has no pairs and changes nothing but the shape
        of `costs`.

    Returns
    -------
    float
        With constant costs 0 for a perfect ranking, 1 for a reversed one, 1/2 for a constant.

    See Also
    --------
    auc : One minus this, for two classes.
    pair_error_rates : The same errors, one class pair at a time.

    References
    ----------
    .. [1] Uematsu and Lee (2013), Statistical optimality in multipartite ranking and ordinal
       regression.

    Examples
    --------
    >>> from rankbook.metrics import pairwise_risk
    >>> pairwise_risk([0, 0, 1, 2], [0.1, 0.6, 0.4, 0.9])
    0.2
    >>> pairwise_risk([0, 0, 1, 2], [0.1, 0.6, 0.6, 0.6], costs="linear")
    0.4
    """
    ties = check_ties(ties)
    sample = prepare(y, scores, sample_weight, qid, labels)
    total = sample.cells.pair_weight()
    return _mean_over_queries(_divide(_errors(sample, costs, ties), total), total > 0, sample)


def _errors(sample: Sample, costs: Any, ties: float) -> np.ndarray:
    """The cost of the misranked pairs of each query; named costs need no matrix."""
    cells = sample.cells
    if costs is None or isinstance(costs, str):
        kind = check_choice(costs or "constant", ("constant", "linear", "dcg"), "costs")
        if kind == "constant":
            return constant_errors(sample, ties)
        return scale_errors(sample, ties, cost_scale(kind, sample.n_classes)[cells.label])
    costs = check_costs(costs, sample.n_classes)
    errors = np.zeros(sample.n_queries)
    for j, row in error_rows(sample, ties):
        errors += cells.row_sums(row * costs[j, cells.label])
    return errors


def pair_error_rates(
    y: ArrayLike,
    scores: ArrayLike,
    ties: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> np.ndarray:
    r"""Share of misranked pairs for every pair of classes.

    Entry [j, i], j < i, is :math:`1 - \hat A_{ji}`, with the one-versus-one AUC of equation (3)
    of Uematsu and Lee (2013):

    .. math:: \frac{1}{n_j n_i} \sum_{y_a = j} \sum_{y_b = i}
       \left[ 1\{f_a > f_b\} + \text{ties} \cdot 1\{f_a = f_b\} \right]

    Parameters
    ----------
    y, scores, ties, sample_weight, qid, labels
        As in `pairwise_risk`.

    Returns
    -------
    ndarray of shape (K, K)
        NaN on and below the diagonal, and where one of the two classes has no items. With `qid`,
        each entry is the mean over the queries that have both classes.

    Examples
    --------
    >>> from rankbook.metrics import pair_error_rates
    >>> pair_error_rates([0, 0, 1, 2], [0.1, 0.6, 0.4, 0.9])
    array([[nan, 0.5, 0. ],
           [nan, nan, 0. ],
           [nan, nan, nan]])
    """
    ties = check_ties(ties)
    sample = prepare(y, scores, sample_weight, qid, labels)
    cells, n_classes = sample.cells, sample.n_classes
    has_pair = np.bincount(cells.query, minlength=sample.n_queries) > 1
    _mean_over_queries(np.ones(sample.n_queries), has_pair, sample)
    rates = np.full((n_classes, n_classes), np.nan)
    for j, row in rate_rows(sample, ties):
        has_j = np.zeros(sample.n_queries, dtype=bool)
        has_j[cells.query[cells.label == j]] = True
        both = np.flatnonzero(has_j[cells.query] & (cells.label > j))
        count = np.bincount(cells.label[both], minlength=n_classes)
        total = np.bincount(cells.label[both], weights=row[both], minlength=n_classes)
        np.divide(total, count, out=rates[j], where=count > 0)
    return rates


def auc(
    y: ArrayLike,
    scores: ArrayLike,
    ties: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Area under the ROC curve: the chance that a positive scores above a negative.

    .. math:: \mathrm{AUC}(f) = \frac{1}{n_+ n_-} \sum_{y_a = 1} \sum_{y_b = 0}
       \left[ 1\{f_a > f_b\} + (1 - \text{ties})\, 1\{f_a = f_b\} \right]

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes; the higher is the positive one.
    scores, ties, sample_weight, qid, labels
        As in `pairwise_risk`, of which this is the complement to one.

    Returns
    -------
    float
        1 for a perfect ranking, 0 for a reversed one, 1/2 for a constant.

    Examples
    --------
    >>> from rankbook.metrics import auc
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> auc(["bad", "bad", "good"], [1, 2, 2], labels=["bad", "good"])
    0.75
    """
    ties = check_ties(ties)
    sample = prepare(y, scores, sample_weight, qid, labels)
    n_present = np.count_nonzero(np.bincount(sample.cells.label))
    if n_present > 2:
        raise ValueError(
            f"y must hold two classes for the AUC, got {n_present}: "
            "u_pairs, u_ovo and u_cons extend it to more"
        )
    total = sample.cells.pair_weight()
    risk = _divide(constant_errors(sample, ties), total)
    return 1.0 - _mean_over_queries(risk, total > 0, sample)


def u_pairs(
    y: ArrayLike,
    scores: ArrayLike,
    ties: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Share of correctly ordered pairs among all pairs with different labels.

    Equation (2) of Uematsu and Lee (2013),
    :math:`\hat U_{\text{pairs}} = 1 - \hat R(f; c)` with constant costs.

    Parameters
    ----------
    y, scores, ties, sample_weight, qid, labels
        As in `pairwise_risk`. ``ties=1`` gives the strict inequality of the paper.

    Returns
    -------
    float
        1 for a perfect ranking, 0 for a reversed one, 1/2 for a constant.

    Examples
    --------
    >>> from rankbook.metrics import u_pairs
    >>> u_pairs([0, 0, 1, 2], [0.1, 0.6, 0.4, 0.9])
    0.8
    """
    return 1.0 - pairwise_risk(
        y, scores, None, ties, sample_weight=sample_weight, qid=qid, labels=labels
    )


def u_ovo(
    y: ArrayLike,
    scores: ArrayLike,
    ties: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Mean one-versus-one AUC: every pair of classes counts the same.

    Equation (3) of Uematsu and Lee (2013),
    :math:`\hat U_{\text{ovo}} = \frac{2}{K (K - 1)} \sum_{j < i} \hat A_{ji}`.

    Parameters
    ----------
    y, scores, ties, sample_weight, qid, labels
        As in `pairwise_risk`. The mean is over the classes that the sample (the query) has.

    Returns
    -------
    float
        1 for a perfect ranking, 0 for a reversed one, 1/2 for a constant.

    Examples
    --------
    >>> from rankbook.metrics import u_ovo
    >>> round(u_ovo([0, 0, 1, 2], [0.1, 0.6, 0.4, 0.9]), 6)
    0.833333
    """
    ties = check_ties(ties)
    sample = prepare(y, scores, sample_weight, qid, labels)
    present = np.bincount(sample.cells.query, minlength=sample.n_queries)
    n_pairs = present * (present - 1) / 2
    rate = _divide(equal_class_errors(sample, ties), n_pairs)
    return 1.0 - _mean_over_queries(rate, n_pairs > 0, sample)


def u_cons(
    y: ArrayLike,
    scores: ArrayLike,
    ties: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Mean AUC of the K - 1 ways to cut the ordered classes in two.

    Equation (4) of Uematsu and Lee (2013),
    :math:`\hat U_{\text{cons}} = \frac{1}{K - 1} \sum_l \hat B_l`, where
    :math:`\hat B_l` is the AUC with classes 1..l as negative and l+1..K as positive.

    Parameters
    ----------
    y, scores, ties, sample_weight, qid, labels
        As in `pairwise_risk`. The mean is over the classes that the sample (the query) has, so
        that an absent class adds no cut.

    Returns
    -------
    float
        1 for a perfect ranking, 0 for a reversed one, 1/2 for a constant.

    Examples
    --------
    >>> from rankbook.metrics import u_cons
    >>> round(u_cons([0, 0, 1, 2], [0.1, 0.6, 0.4, 0.9]), 6)
    0.875
    """
    ties = check_ties(ties)
    sample = prepare(y, scores, sample_weight, qid, labels)
    cells = sample.cells
    lower = cells.running(cells.mass)
    upper = cells.above()
    # A pair (j, i) is compared at the cuts j, ..., i - 1, each with its own number of pairs.
    price = _divide(np.ones(lower.size), lower * upper)
    place = cells.before(price)
    n_cuts = cells.row_sums(upper > 0)
    rate = _divide(scale_errors(sample, ties, place), n_cuts)
    return 1.0 - _mean_over_queries(rate, n_cuts > 0, sample)


def kendall_tau(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Kendall's tau-b between labels and scores.

    .. math:: \tau_b = \frac{C - D}{\sqrt{T_y\, T_f}}
       = (1 - 2 \hat R) \sqrt{T_y / T_f}

    with C concordant and D discordant pairs, :math:`T_y` pairs with different labels, :math:`T_f`
    pairs with different scores, and :math:`\hat R` the risk at constant costs, ties one half.

    Parameters
    ----------
    y, scores, sample_weight, qid, labels
        As in `pairwise_risk`.

    Returns
    -------
    float
        From -1 to 1. A constant scorer has 0, where other packages return NaN. Unless scores tie
        exactly where labels do, the ends are not reached.

    Examples
    --------
    >>> from rankbook.metrics import kendall_tau
    >>> kendall_tau([1, 2, 3], [10, 20, 30])
    1.0
    >>> round(kendall_tau([0, 0, 1, 1], [1, 2, 3, 4]), 6)
    0.816497
    """
    sample = prepare(y, scores, sample_weight, qid, labels)
    total = sample.cells.pair_weight()
    ratio = np.sqrt(_divide(total, distinct_score_mass(sample)))
    tau = (1.0 - 2.0 * _divide(constant_errors(sample, 0.5), total)) * ratio
    return _mean_over_queries(tau, total > 0, sample)
