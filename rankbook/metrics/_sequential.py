"""List measures in which an item's worth depends on the items above it.

Public through `metrics.lists`, whose docstring has the conventions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook._validation import check_flag, check_scalar
from rankbook.metrics._blocks import Block
from rankbook.metrics._cascade import mean_cascade
from rankbook.metrics._ranked import check_cut, check_threshold, lists_of, summary
from rankbook.metrics._tie_averages import mean_average_precision, mean_first_relevant, mean_push

__all__ = ["average_precision", "err", "p_norm_push", "reciprocal_rank"]


def average_precision(
    y: Any,
    scores: Any = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    threshold: float = 0.0,
) -> float | np.ndarray:
    r"""The mean, over the relevant items, of the precision at their ranks.

    .. math:: \mathrm{AP} = \frac{1}{n_+} \sum_{i=1}^{k} b_i\, \frac{b_1 + \dots + b_i}{i}

    with :math:`b_i = 1` if the item at rank i is relevant (its grade exceeds `threshold`), else 0,
    and :math:`n_+` the number of all relevant items of the list, also beyond k. scikit-learn's
    `average_precision_score` takes tied items as one block at its last rank; here they are
    averaged or ordered.

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
    >>> average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.8333333333333333
    >>> average_precision([1, 0], [0.5, 0.5])
    0.75
    """
    lists, k, threshold = lists_of(y, scores, qid, ties), check_cut(k), check_threshold(threshold)

    def precision(block: Block) -> np.ndarray:
        if block.starts is not None:
            return mean_average_precision(block, threshold, k)
        hits = block.hits(threshold)
        found = np.cumsum(hits, axis=1, dtype=np.int32)
        total = found[:, -1].astype(float)
        found *= hits
        sums = found[:, :k] @ (1 / np.arange(1.0, block.width + 1))[:k]
        return np.divide(sums, total, out=np.zeros(total.size), where=total > 0)

    return summary(lists.measure(precision), per_query)


def reciprocal_rank(
    y: Any,
    scores: Any = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    threshold: float = 0.0,
) -> float | np.ndarray:
    r"""One over the rank of the first relevant item; its mean over queries is called MRR.

    An item is relevant if its grade exceeds `threshold`; 0 if none is, or none among the first k.

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
    >>> reciprocal_rank([0, 1, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.5
    """
    lists, k, threshold = lists_of(y, scores, qid, ties), check_cut(k), check_threshold(threshold)

    def first(block: Block) -> np.ndarray:
        if block.starts is not None:
            return mean_first_relevant(block, threshold, k)
        hits = block.hits(threshold)
        rank = hits[:, :k].argmax(axis=1)
        found = hits[np.arange(block.n_rows), rank]
        return found / (rank + 1.0)

    return summary(lists.measure(first), per_query)


def err(
    y: Any,
    scores: Any = None,
    *,
    k: int | None = None,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    max_grade: float | None = None,
) -> float | np.ndarray:
    r"""Expected reciprocal rank, the mean of 1/rank at which a reader stops.

    .. math:: \mathrm{ERR} = \sum_{i=1}^{k} \frac{R_i}{i} \prod_{j<i} (1 - R_j), \qquad
              R_i = \frac{2^{y_{\pi(i)}} - 1}{2^{g}}

    A reader goes down the list and stops at the item of rank i with probability :math:`R_i`.

    Parameters
    ----------
    y, scores, k, qid, per_query, ties
        As in `dcg`.
    max_grade : float, optional
        The highest grade g of the scale. Without it, the highest in `y`, over all queries.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        The mean over queries, or with `per_query` the value of each.

    Examples
    --------
    >>> err([2, 0, 1], [0.9, 0.8, 0.7])
    0.7708333333333334
    """
    lists, k = lists_of(y, scores, qid, ties), check_cut(k)
    top = lists.max_grade if max_grade is None else check_scalar(max_grade, "max_grade", low=0.0)
    if top < lists.max_grade:
        raise ValueError(f"max_grade must be at least the largest grade, {lists.max_grade:g}")

    def stop(grades: np.ndarray) -> np.ndarray:
        return np.exp2(grades - top) - np.exp2(-top)

    def cascade(block: Block) -> np.ndarray:
        stops = block.apply(stop, k)
        still = np.cumprod(1 - stops, axis=1)
        stops[:, 1:] *= still[:, :-1]
        return stops @ (1 / np.arange(1.0, stops.shape[1] + 1))

    values = lists.measure(cascade, lambda blocks: mean_cascade(blocks, stop, k))
    return summary(values, per_query)


def p_norm_push(
    y: Any,
    scores: Any = None,
    p: float = 2.0,
    *,
    qid: Any = None,
    per_query: bool = False,
    ties: str = "average",
    threshold: float = 0.0,
) -> float | np.ndarray:
    r"""Rudin's p-norm push, a loss: how far negatives climb over positives.

    .. math:: \frac{1}{n_-} \sum_{y_j = 0}
              \Bigl(\frac{\#\{i : y_i = 1,\ i \text{ below } j\}}{n_+}\Bigr)^p

    For p = 1 this is 1 - AUC, and as p grows only the negatives at the top count. Positive items
    are those with a grade above `threshold`. All ranks count, so there is no cut-off. Queries
    without a positive or without a negative have no value (NaN with `per_query`) and are left
    out of the mean.

    Parameters
    ----------
    y, scores
        As in `dcg`.
    p : float
        The power, positive.
    qid, per_query, ties
        As in `dcg`.
    threshold : float
        Items with a grade above it are relevant.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        The mean over queries, or with `per_query` the value of each.

    Examples
    --------
    >>> p_norm_push([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], p=1), p_norm_push([1, 0], [0.2, 0.7], p=4)
    (0.25, 1.0)
    """
    lists, threshold = lists_of(y, scores, qid, ties), check_threshold(threshold)
    p = check_scalar(p, "p", low=0.0, strict_low=True)

    def push(block: Block) -> np.ndarray:
        hits = block.hits(threshold)
        total = hits.sum(axis=1)[:, None]
        misses = block.lengths - total[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            if block.starts is not None:
                return mean_push(block, threshold, total[:, 0], p) / misses
            below = (total - np.cumsum(hits, axis=1)) / total
            # Padding follows every positive, so nothing is below it and it adds nothing.
            return np.where(hits, 0.0, below**p).sum(axis=1) / misses

    values = lists.measure(push)
    if check_flag(per_query, "per_query"):
        return values
    if np.isnan(values).all():
        raise ValueError("y must hold a positive and a negative item in at least one query")
    return float(np.nanmean(values))
