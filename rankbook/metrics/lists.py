r"""What a ranking is worth at the top: measures of graded lists.

Every measure takes grades `y` (finite, not negative, used as they are) and `scores`, or in place
of both what `rank_lists` returns, which sorts once for several measures. It gives the mean over
the queries, or with `per_query=True` an array with a value for each query, in the order of the
sorted `qid`. A query in which nothing is relevant counts 0.

Equal scores leave the order open. With ``ties="average"`` a measure is its exact mean over all
orders of the tied items, with ``ties="order"`` tied items stay in the order in which they are
given. The averages have closed forms. Let a group of :math:`m` tied items, :math:`r` of them
relevant, stand below :math:`a` items, :math:`c` of them relevant, and let :math:`t` run over the
places in the group.

- Linear measures: each item has the group's mean gain.
- Average precision: place :math:`t` holds a relevant item with probability :math:`r/m`, and then
  :math:`(t-1)(r-1)/(m-1)` of the items before it in the group are relevant in the mean, so that
  it adds :math:`\frac{r}{m}\,\frac{c + 1 + (t-1)(r-1)/(m-1)}{a+t}`.
- Reciprocal rank: if none of the first :math:`t-1` is relevant, the next one is with probability
  :math:`r/(m-t+1)`.
- Expected reciprocal rank: with :math:`q_i` the probability that item :math:`i` does not end the
  search, the first :math:`t` items of the group are all passed with mean probability
  :math:`E_t = e_t(q)/\binom{m}{t}`, :math:`e_t` the elementary symmetric polynomial, and place
  :math:`t` adds :math:`(E_{t-1} - E_t)/(a+t)`. Groups are passed independently of each other's
  order, so their factors multiply.
- p-norm push: the number of a group's positives below one of its negatives is uniform on
  :math:`0, \dots, r`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankbook._validation import check_choice, check_scalar, check_vector
from rankbook.metrics._blocks import Block
from rankbook.metrics._ranked import (
    RankedLists,
    check_cut,
    check_threshold,
    lists_of,
    rank_lists,
    summary,
)
from rankbook.metrics._sequential import average_precision, err, p_norm_push, reciprocal_rank

__all__ = [
    "average_precision",
    "dcg",
    "err",
    "linear_rank_statistic",
    "ndcg",
    "p_norm_push",
    "precision_at",
    "rank_lists",
    "reciprocal_rank",
]

# Beyond this the sums of exponential gains come near the largest float.
_HIGH_GRADE = 900.0

Gain = str | Callable[[np.ndarray], np.ndarray]


def _gain_function(gain: Gain) -> Callable[[Block], Callable]:
    """For each block the function that takes its grades to gains."""
    if callable(gain):
        return lambda block: lambda grades: _checked(gain(block.held(grades)), grades.shape)
    if check_choice(gain, ("exponential", "linear"), "gain") == "linear":
        return lambda block: lambda grades: grades
    return lambda block: lambda grades: np.exp2(grades) - 1


def _checked(gains: Any, shape: tuple[int, ...]) -> np.ndarray:
    return check_vector(np.ravel(gains), "gain(y)").reshape(shape)


def _row_gain(block: Block) -> Callable[[np.ndarray], np.ndarray]:
    """Exponential gains over 2^g, g the highest grade of each row: they overflow for no grade."""
    top = block.grades.max(axis=1, keepdims=True)
    return lambda grades: np.exp2(grades - top) - np.exp2(-top)


def _require_no_overflow(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise ValueError("y holds grades whose gains, or their sums, exceed the range of floats")
    return values


def _weighted_sum(block: Block, gain: Callable, discounts: np.ndarray) -> np.ndarray:
    """sum_i G_i D_i by row, with D a vector not longer than the rows."""
    if block.starts is None:
        return block.apply(gain, discounts.size) @ discounts
    return block.weighted_groups(block.top_group_sums(gain, discounts.size), discounts)


def linear_rank_statistic(
    y: Any,
    scores: Any = None,
    gain: Callable | None = None,
    discount: Callable | None = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
) -> float | np.ndarray:
    r"""A gain for each item, discounted by its rank.

    .. math:: \sum_{i=1}^n G(y_{\pi(i)})\, D(i)

    where :math:`\pi(i)` is the item at rank i; (9) of Uematsu and Lee (2013).

    Parameters
    ----------
    y, scores
        As in `dcg`.
    gain : callable
        Takes an array of grades, returns their gains.
    discount : callable
        Called with the ranks 1, ..., n of a list and with n (arrays that broadcast), returns the
        discounts.
    k, qid, per_query, ties
        As in `dcg`.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        The mean over queries, or with `per_query` the value of each.

    Examples
    --------
    The positives at ranks 1 and 3 have 3 and 1 items below them:

    >>> y, scores = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]
    >>> linear_rank_statistic(y, scores, lambda g: g, lambda i, n: n - i)
    4.0
    """
    if not callable(gain) or not callable(discount):
        raise TypeError("gain and discount must be callable")
    lists, k, gain_of = lists_of(y, scores, qid, ties), check_cut(k), _gain_function(gain)

    def statistic(block: Block) -> np.ndarray:
        ranks = np.arange(1, block.width + 1)
        gains = block.averaged(block.apply(gain_of(block)))
        # Beyond a list's end the gains are 0; its last discount stands in for what is undefined.
        inside = np.minimum(ranks, block.lengths[:, None])
        discounts = np.asarray(discount(inside, block.lengths[:, None]), dtype=float)
        discounts = np.broadcast_to(discounts, gains.shape)
        if not np.isfinite(discounts).all():
            raise ValueError("discount must return finite numbers")
        with np.errstate(over="ignore", invalid="ignore"):
            return (gains * discounts)[:, :k].sum(axis=1)

    return summary(_require_no_overflow(lists.measure(statistic)), per_query)


def _log_discounts(k: int | None, width: int, log_base: float) -> np.ndarray:
    size = width if k is None else min(k, width)
    return np.log(log_base) / np.log(np.arange(2, size + 2))


def _dcg_values(
    lists: RankedLists, k: int | None, gain_of: Callable[[Block], Callable], log_base: float
) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        values = lists.measure(
            lambda block: _weighted_sum(
                block, gain_of(block), _log_discounts(k, block.width, log_base)
            )
        )
    return _require_no_overflow(values)


def dcg(
    y: Any,
    scores: Any = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    gain: Gain = "exponential",
    log_base: float = 2.0,
) -> float | np.ndarray:
    r"""Discounted cumulative gain.

    .. math:: \mathrm{DCG} = \sum_{i=1}^{k} \frac{2^{y_{\pi(i)}} - 1}{\log_2(1 + i)}

    Parameters
    ----------
    y : array-like of shape (n,) or RankedLists
        Grades, not negative; or what `rank_lists` returned, in place of `y`, `scores`, `qid`
        and `ties`.
    scores : array-like of shape (n,), optional
        Higher is ranked higher.
    k : int, optional
        Only the first k ranks count.
    qid : array-like of shape (n,), optional
        The query of each item.
    per_query : bool
        Return a value for each query, in the order of the sorted qids, instead of their mean.
    ties : {"average", "order"}
        The mean over the orders of tied items, or the order given.
    gain : {"exponential", "linear"} or callable
        :math:`2^y - 1`, :math:`y`, or any function of the grades.
    log_base : float
        The base of the logarithm; 2 gives the first rank the discount 1.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        The mean over queries, or with `per_query` the value of each.

    Examples
    --------
    >>> dcg([3, 0, 1], [0.2, 0.9, 0.5])
    4.130929753571458
    """
    lists, k, gain_of = lists_of(y, scores, qid, ties), check_cut(k), _gain_function(gain)
    log_base = check_scalar(log_base, "log_base", low=1.0, strict_low=True)
    return summary(_dcg_values(lists, k, gain_of, log_base), per_query)


def _grade_counts(block: Block, n_grades: int) -> np.ndarray:
    """How many items of each small grade (columns) each query has."""
    if block.tally is not None:
        return block.tally.of_rows().T.astype(np.intp)
    cells = block.grades + np.arange(block.n_rows)[:, None] * n_grades
    counts = np.bincount(cells.ravel(), minlength=block.n_rows * n_grades)
    counts = counts.reshape(block.n_rows, n_grades)
    counts[:, 0] -= block.width - block.lengths
    return counts


def _ideal_dcg(block: Block, k: int | None, gain: Callable) -> np.ndarray:
    """DCG of the best order; small integer grades are counted, others sorted."""
    discounts = _log_discounts(k, block.width, 2.0)
    n_grades = int(block.grades.max(initial=0)) + 1
    if block.grades.dtype != np.uint8 or n_grades > 32:
        gains = -np.sort(-block.apply(gain), axis=1)
        return gains[:, : discounts.size] @ discounts
    counts = _grade_counts(block, n_grades)
    gains = gain(np.arange(float(n_grades)))
    best = np.argsort(-gains)
    last = np.minimum(np.cumsum(counts[:, best], axis=1), discounts.size)
    total = np.concatenate([[0.0], np.cumsum(discounts)])
    return np.diff(total[last], axis=1, prepend=0.0) @ gains[best]


def ndcg(
    y: Any,
    scores: Any = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    gain: Gain = "exponential",
) -> float | np.ndarray:
    r"""DCG divided, list by list, by the DCG of the list's best order.

    1 means that the grades decrease along the list; 0 that nothing is relevant, or nothing
    among the first k.

    Parameters
    ----------
    y, scores, k, qid, per_query, ties
        As in `dcg`.
    gain : {"exponential", "linear"} or callable
        :math:`2^y - 1`, :math:`y`, or any function of the grades that is not negative.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        The mean over queries, or with `per_query` the value of each.

    Examples
    --------
    >>> round(ndcg([3, 0, 1], [0.2, 0.9, 0.5]), 6)
    0.54134
    >>> ndcg([3, 0, 1], [3.0, 1.0, 2.0]), ndcg([0, 0], [1.0, 2.0])
    (1.0, 0.0)
    """
    lists, k, gain_of = lists_of(y, scores, qid, ties), check_cut(k), _gain_function(gain)
    if callable(gain):
        least = lists.measure(lambda block: block.apply(gain_of(block)).min(axis=1)).min()
        if least < 0:
            raise ValueError(f"gain must not be negative for ndcg, got {least}")
    # The ratio does not depend on a row's unit, which keeps high grades from overflowing.
    if gain == "exponential" and lists.max_grade > _HIGH_GRADE:
        gain_of = _row_gain
    values = _dcg_values(lists, k, gain_of, 2.0)
    with np.errstate(over="ignore", invalid="ignore"):
        ideal = lists.measure(lambda block: _ideal_dcg(block, k, gain_of(block)))
    _require_no_overflow(ideal)
    # The best order's is no less, though rounding may say so.
    ideal = np.maximum(ideal, values)
    values = np.divide(values, ideal, out=np.zeros_like(values), where=ideal > 0)
    return summary(values, per_query)


def precision_at(
    y: Any,
    scores: Any = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    threshold: float = 0.0,
) -> float | np.ndarray:
    r"""The share of relevant items among the first k.

    An item is relevant if its grade exceeds `threshold`. A list shorter than k is counted as if
    irrelevant items followed it, as in TREC's evaluation; without k the whole list counts.

    Parameters
    ----------
    y, scores, k, qid, per_query, ties
        As in `dcg`.
    threshold : float
        Items with a grade above it are relevant.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        The mean over queries, or with `per_query` the value of each.

    Examples
    --------
    >>> precision_at([1, 0, 2, 0], [0.9, 0.8, 0.7, 0.1], k=3)
    0.6666666666666666
    """
    lists, k, threshold = lists_of(y, scores, qid, ties), check_cut(k), check_threshold(threshold)

    def precision(block: Block) -> np.ndarray:
        if block.starts is None:
            found = block.hits(threshold)[:, :k].sum(axis=1)
        else:
            ones = np.ones(block.width if k is None else min(k, block.width))
            hits, _ = block.group_hits(threshold)
            found = block.weighted_groups(hits[block.top(ones.size)], ones)
        return found / (block.lengths if k is None else k)

    return summary(lists.measure(precision), per_query)
