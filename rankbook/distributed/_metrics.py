"""Measures by query, averaged over blocks of whole queries."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rankbook import metrics
from rankbook._pair_counts import pair_weight
from rankbook._validation import check_labels, check_qid
from rankbook.distributed._blocks import Blocks, check_arrays, require_dask
from rankbook.distributed._survey import require_whole_queries
from rankbook.exceptions import NotBlockwiseError

__all__ = ["mean_by_query"]

_PAIR_MEASURES = ("auc", "pairwise_risk")


def mean_by_query(
    measure: str,
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    labels: Any = None,
    client: Any = None,
    **options: Any,
) -> float:
    r"""Mean over queries of a measure, for Dask arrays.

    .. math:: \frac{1}{Q} \sum_{B} \sum_{q \in B} m(y_q, f_q)

    Parameters
    ----------
    measure : str
        A measure of lists by name, such as "ndcg" or "err", or "auc" or "pairwise_risk".
        Queries without a value (without a pair, for the last two) do not count.
    y, scores : dask.array.Array of shape (n,)
        Labels and scores, such as ``X.map_blocks(model.decision_function, drop_axis=1,
        meta=np.empty(0))``.
    qid : dask.array.Array of shape (n,)
        Query of every item. Without queries a measure compares items of all blocks, and is
        refused.
    labels : array-like, default=None
        For "auc" and "pairwise_risk", all classes, lowest first; found by a pass if not given.
    client : distributed.Client, default=None
        The cluster; without one Dask's default scheduler.
    **options
        Passed on, such as ``k=10``.

    Returns
    -------
    float
        The mean over all queries.

    Raises
    ------
    NotBlockwiseError
        If there are no queries, or the measure has no value for each.
    SplitQueryError
        If a query has items in two blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> from rankbook import distributed
    >>> y, scores = da.from_array([1, 0, 0, 2], chunks=2), da.from_array([2, 1, 4, 3], chunks=2)
    >>> distributed.mean_by_query("auc", y > 0, scores, qid=da.from_array([1, 1, 2, 2], chunks=2))
    0.5
    """
    require_dask()
    function = getattr(metrics, measure, None) if isinstance(measure, str) else None
    parameters = inspect.signature(function).parameters if function is not None else {}
    is_list = "per_query" in parameters
    if not (is_list or measure in _PAIR_MEASURES):
        raise NotBlockwiseError(
            f"measure must be one of lists, or one of {_PAIR_MEASURES}, got {measure!r}, whose "
            "mean over queries is not had block by block"
        )
    if qid is None:
        raise NotBlockwiseError(
            f"{measure} without qid compares items of different blocks, and is no sum over blocks"
        )
    blocks = Blocks(check_arrays(y=y, scores=scores, qid=qid), client)
    if is_list:
        task: Callable[..., Any] = _list_sums
        # The largest grade of all, not of a block.
        if "max_grade" in parameters and "max_grade" not in options:
            options = {**options, "max_grade": blocks.reduce(_largest, max)}
    else:
        task = _pair_sums
        if labels is None:
            labels = blocks.reduce(_classes, _distinct).tolist()
    total, count, queries = blocks.reduce(task, _add, measure, labels, options)
    require_whole_queries(queries)
    if not count:
        raise ValueError(
            "y must hold two items with different labels within some query, got none"
            if not is_list
            else f"{measure} has no value for any query"
        )
    return total / count


def _largest(y: Any, **_: Any) -> float:
    return float(np.max(y))


def _classes(y: Any, **_: Any) -> np.ndarray:
    return check_labels(y, min_classes=1)[1]


def _distinct(parts: list[np.ndarray]) -> np.ndarray:
    return check_labels(np.concatenate(parts), min_classes=1)[1]


def _list_sums(
    measure: str, labels: Any, options: dict, y: Any, scores: Any, qid: Any
) -> tuple[float, int, list]:
    values = getattr(metrics, measure)(y, scores, qid=qid, per_query=True, **options)
    known = ~np.isnan(values)  # a measure may have no value for a query, which does not count
    return float(values[known].sum()), int(known.sum()), [np.unique(qid)]


def _pair_sums(
    measure: str, labels: Any, options: dict, y: Any, scores: Any, qid: Any
) -> tuple[float, int, list]:
    codes = check_labels(y, labels=labels)[0]
    count = int(np.count_nonzero(pair_weight(codes, None, check_qid(qid, len(codes)))))
    total = 0.0
    if count:
        function = getattr(metrics, measure)
        total = count * function(y, scores, qid=qid, labels=labels, **options)
    return total, count, [np.unique(qid)]


def _add(parts: list[tuple[float, int, list]]) -> tuple[float, int, list]:
    totals, counts, queries = zip(*parts, strict=True)
    return sum(totals), sum(counts), [query for part in queries for query in part]
