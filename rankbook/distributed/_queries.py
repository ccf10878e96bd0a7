"""Blocks that end where queries end."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from rankbook.distributed._blocks import Blocks, check_arrays, require_dask
from rankbook.exceptions import SplitQueryError

__all__ = ["rechunk_by_query"]


def rechunk_by_query(X: Any, y: Any, qid: Any, *others: Any, client: Any = None) -> tuple:
    """Move the ends of chunks to the ends of queries, in all arrays alike.

    Parameters
    ----------
    X, y, qid : dask.array.Array
        Items, labels and queries; the items of a query must follow each other. The chunks of X
        are changed as little as that takes, the others follow.
    *others : dask.array.Array
        More arrays with a row for each item, such as weights.
    client : distributed.Client, default=None
        The cluster; without one Dask's default scheduler.

    Returns
    -------
    tuple of dask.array.Array
        X, y, qid and the others, in equal chunks of whole queries. `qid` is read once, X is not.

    Raises
    ------
    SplitQueryError
        If a query comes back after another one: sort the rows by query first.

    Examples
    --------
    >>> import dask.array as da
    >>> from rankbook import distributed
    >>> qid = da.from_array([1, 1, 1, 2, 2, 3, 3, 3], chunks=4)
    >>> X, y = da.zeros((8, 2), chunks=(4, 2)), da.zeros(8, chunks=4)
    >>> X, y, qid = distributed.rechunk_by_query(X, y, qid)
    >>> qid.chunks
    ((5, 3),)
    """
    require_dask()
    rows = X.chunks[0] if hasattr(X, "chunks") else None
    arrays = [y, qid, *others]
    if rows is not None and not np.isnan(rows).any():
        arrays = [a.rechunk((rows,)) if hasattr(a, "rechunk") else a for a in arrays]
    names = ["y", "qid", *(f"others[{i}]" for i in range(len(others)))]
    check_arrays(X=X, **dict(zip(names, arrays, strict=True)))
    blocks = Blocks({"qid": arrays[1]}, client)
    runs = blocks.reduce(_runs, lambda parts: sum(parts, []))
    ends = _query_ends(runs)
    sizes = tuple(np.diff([0, *ends]).tolist())
    return (X.rechunk((sizes, X.chunks[1])), *(a.rechunk((sizes,)) for a in arrays))


def _runs(qid: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The queries of a block, as they follow each other, and their lengths."""
    qid = np.asarray(qid)
    first = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    return [(qid[first], np.diff(np.append(first, len(qid))))]


def _query_ends(runs: list[tuple[np.ndarray, np.ndarray]]) -> list[int]:
    """Rows at which the chunks may end: each old end, moved on to the end of its query."""
    values = np.concatenate([queries for queries, _ in runs])
    lengths = np.concatenate([sizes for _, sizes in runs])
    is_last = np.append(values[1:] != values[:-1], True)
    again, counts = np.unique(values[is_last], return_counts=True)
    if (counts > 1).any():
        raise SplitQueryError(
            f"qid must list the items of a query one after the other, got query "
            f"{again[counts > 1][0].item()!r} again after another one; sort the rows by qid"
        )
    stops = np.cumsum(lengths)[is_last]
    old = list(accumulate(int(sizes.sum()) for _, sizes in runs))
    return sorted({int(stops[np.searchsorted(stops, end)]) for end in old})
