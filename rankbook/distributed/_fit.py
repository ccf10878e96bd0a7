"""One door to all fits over blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from rankbook._progress import progress
from rankbook.distributed._blocks import Blocks, check_arrays, require_dask
from rankbook.exceptions import NotBlockwiseError

__all__ = ["fit"]

_FITS = {
    "COCR": "fit_cocr",
    "CumulativeLink": "fit_cumulative",
    "PairwiseRanker": "fit_pairwise",
    "UnivariateRanker": "fit_univariate",
    "ValueRegularizedRanker": "fit_value",
}


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    client: Any = None,
    callback: Callable[..., Any] | None = None,
    verbose: int | None = None,
) -> Any:
    r"""Fit an estimator to Dask arrays, a block of rows in memory at a time.

    The objective is a sum over blocks of rows,

    .. math:: F(b) = \sum_B F_B(b) + \frac{\alpha}{2} b^\top b,

    and so are its gradient and its Hessian: every Newton step is one pass over the blocks, whose
    parts Dask adds. Pairs of one query must be in one block. Exponential and squared losses of all
    pairs, without queries, are functions of sums over blocks by class.

    Parameters
    ----------
    estimator : estimator
        `CumulativeLink` (proportional odds), `UnivariateRanker`, `PairwiseRanker` (smooth losses),
        `ValueRegularizedRanker`, or `COCR` with least squares. It is not changed.
    X : dask.array.Array of shape (n, p)
        Items, in chunks of whole rows.
    y : dask.array.Array of shape (n,)
        Labels, in the chunks of X.
    qid : dask.array.Array of shape (n,), default=None
        Query of every item, for `PairwiseRanker` and `ValueRegularizedRanker`.
    sample_weight : dask.array.Array of shape (n,), default=None
        Non-negative weights.
    client : distributed.Client, default=None
        The cluster; without one Dask's default scheduler, which is threads on this machine.
    callback : callable, default=None
        Called as ``callback(n_iter, x, value, decrement)`` at each Newton step; a true value
        ends the fit.
    verbose : int, default=None
        1 shows a progress bar; by default the estimator's own `verbose`.

    Returns
    -------
    estimator
        A fitted copy, with the attributes that it has in memory, and `n_passes_`, how often the
        data were read.

    Raises
    ------
    NotBlockwiseError
        If the objective is no sum over blocks.
    SplitQueryError
        If a query has items in two blocks; `rechunk_by_query` mends it.

    Notes
    -----
    *Passes.* One to check the rows and to scale the columns, then one for each point at which
    Newton's method asks for the objective: five to ten in all for a likelihood or a loss, two or
    three for `ValueRegularizedRanker` and squared losses, two for `COCR`. Beyond 1500 columns the
    Hessian is not formed, and each of its products is a pass. Arrays that fit in the cluster's
    memory are read once if they are persisted, ``X = X.persist()``.

    *Memory.* A running task holds its block of X about three times (as read, scaled, weighted),
    with pairs within queries about seven times: 100,000 rows of 136 columns take 109 MB, so that
    a worker thread needs about 330 MB, or 760 MB. Beside it
    stand Hessians of :math:`8 p^2` bytes, 2K of them for exponential pairs, and at the caller 8
    bytes for each query. Blocks of 50 to 200 MB keep Dask's overhead, about a millisecond a task,
    small.

    *Failures.* Tasks have no state. If a worker dies, Dask runs its tasks elsewhere, and the
    result is the same up to the rounding of sums.

    *Degenerate data.* Collinear columns give coefficients of least norm with a
    `CollinearityWarning`, as in memory (`COCR` refuses them). Separation, in memory decided by
    a linear program on all rows, is told from the loss of curvature.

    *Not over blocks:* the hinge, `nominal` and `scale` effects, robust covariances. A
    `CumulativeLink` keeps no sample, as after unpickling, and its `sample_id_` depends on the
    blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from rankbook import distributed
    >>> from rankbook.models import CumulativeLink
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.digitize(X @ [1.0, -2.0] + rng.logistic(size=600), [-1.0, 2.0])
    >>> blocks = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    >>> model = distributed.fit(CumulativeLink(), *blocks)
    >>> bool(np.allclose(model.coef_, CumulativeLink().fit(X, y).coef_, rtol=1e-8))
    True
    """
    require_dask()
    name = type(estimator).__name__
    if name not in _FITS or not type(estimator).__module__.startswith("rankbook.models"):
        raise NotBlockwiseError(
            f"{name} is no sum over blocks that is known here; known are {', '.join(_FITS)}"
        )
    if qid is not None and name not in ("PairwiseRanker", "ValueRegularizedRanker"):
        raise ValueError(f"qid must be None for {name}, which has no pairs")
    from rankbook.distributed import _models
    from rankbook.distributed._survey import survey

    arrays = check_arrays(X=X, y=y, qid=qid, sample_weight=sample_weight)
    if not X.shape[1]:
        raise ValueError(f"X must have at least one column, got shape {X.shape}")
    fitted = clone(estimator)
    verbose = getattr(estimator, "verbose", 0) if verbose is None else verbose
    blocks = Blocks(arrays, client)
    with progress(verbose, getattr(estimator, "max_iter", 4), "Newton over blocks") as report:
        found = survey(blocks, getattr(fitted, "labels", None), X.shape[1])
        fitted._encode_labels(found.named, len(found.named))
        fitted.n_features_in_ = X.shape[1]
        task = _models.Task(blocks, found, qid is not None, _told(callback, report))
        getattr(_models, _FITS[name])(fitted, task)
    fitted.n_passes_ = blocks.passes
    return fitted


def _told(callback: Callable[..., Any] | None, report: Any) -> Callable[..., Any]:
    def tell(n_iter: int, x: Any, value: float, to_go: float) -> Any:
        if report is not None:
            report(n_iter, value, to_go)
        return None if callback is None else callback(n_iter, x, value, to_go)

    return tell
