"""The cost of fits over blocks of rows: passes, seconds and memory against the number of rows.

A cumulative link model is fitted in memory, out of core (one block at a time) and on a cluster of
two worker processes; blocks are made anew at each pass, as a file would be read anew. Passes,
log-likelihoods and differences do not depend on the machine (up to rounding); CPU seconds, of all
processes that compute, and megabytes belong to the one that made the committed file (one BLAS
thread).
"""

from __future__ import annotations

import logging
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from rankbook import distributed
from rankbook.models import COCR, CumulativeLink, PairwiseRanker

__all__ = ["blocks", "compute", "make_block"]

SIZES = (20_000, 40_000, 80_000, 160_000)
BLOCK = 10_000
N_FEATURES = 30
WIDE = 136  # columns of MSLR-WEB30K
QUERY = 125  # items a query, about as many as there
CUTS = (0.0, 0.8, 2.0, 3.0)


def make_block(number: int, rows: int = BLOCK, p: int = N_FEATURES) -> np.ndarray:
    """Return rows of features, the label in the last column.

    Parameters
    ----------
    number : int
        Which block; it is the seed.
    rows, p : int
        Rows, and columns of features.

    Returns
    -------
    ndarray of shape (rows, p + 1)
        Standard normal features, and a label from 0 to 4.

    Examples
    --------
    >>> make_block(0, rows=3, p=2).shape
    (3, 3)
    """
    rng = np.random.default_rng([7, number])
    out = np.empty((rows, p + 1))
    out[:, :p] = rng.normal(size=(rows, p))
    coef = np.cos(np.arange(p)) * np.sqrt(2.0 / p)
    out[:, p] = np.digitize(out[:, :p] @ coef + rng.logistic(size=rows), CUTS)
    return out


def blocks(n: int, p: int = N_FEATURES, rows: int = BLOCK) -> tuple[Any, Any]:
    """Return Dask arrays X and y of n rows, made block by block whenever they are read.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    rows : int, default=10000
        Rows of a block.

    Returns
    -------
    X, y : dask.array.Array
        Features and labels.

    Examples
    --------
    >>> X, y = blocks(60, p=2, rows=20)
    >>> X.chunks, y.shape
    (((20, 20, 20), (2,)), (60,))
    """
    import dask.array as da
    from dask import delayed

    make = delayed(make_block, pure=True)
    parts = [
        da.from_delayed(make(i, rows, p), (rows, p + 1), dtype=float) for i in range(n // rows)
    ]
    every = da.concatenate(parts)
    return every[:, :p], every[:, p]


def _measured(task: Callable[..., Any], *args: Any) -> tuple[Any, float, float]:
    """What a task returns, its CPU seconds, and the peak of what it allocates in MB."""
    tracemalloc.start()
    begin = time.process_time()
    result = task(*args)
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return result, round(seconds, 3), round(peak, 2)


def _in_memory(n: int) -> CumulativeLink:
    every = np.concatenate([make_block(i) for i in range(n // BLOCK)])
    return CumulativeLink().fit(every[:, :-1], every[:, -1])


def _out_of_core(n: int) -> CumulativeLink:
    return distributed.fit(CumulativeLink(), *blocks(n))


def _sizes(sizes: tuple[int, ...], progress: bool) -> dict[str, list]:
    import dask
    from distributed import Client, LocalCluster

    table: dict[str, list] = {
        "passes": [], "log_likelihood": [], "difference": [],
        "memory_seconds": [], "memory_mb": [], "core_seconds": [], "core_mb": [],
        "cluster_seconds": [], "cluster_difference": [],
    }  # fmt: skip
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        # Workers import what they need at their first task.
        distributed.fit(CumulativeLink(), *blocks(2 * BLOCK), client=client)
        for n in tqdm(sizes, disable=not progress, desc="sizes"):
            memory, seconds, peak = _measured(_in_memory, n)
            with dask.config.set(scheduler="synchronous"):
                core, core_seconds, core_peak = _measured(_out_of_core, n)
            begin = _worker_seconds(client)
            far = distributed.fit(CumulativeLink(), *blocks(n), client=client)
            row = {
                "passes": core.n_passes_,
                "log_likelihood": core.log_likelihood_,
                "difference": _difference(core, memory),
                "memory_seconds": seconds,
                "memory_mb": peak,
                "core_seconds": core_seconds,
                "core_mb": core_peak,
                "cluster_seconds": round(_worker_seconds(client) - begin, 3),
                "cluster_difference": _difference(far, memory),
            }
            for name, value in row.items():
                table[name].append(value)
    return table


def _worker_seconds(client: Any) -> float:
    return sum(client.run(time.process_time).values())


def _difference(one: CumulativeLink, other: CumulativeLink) -> float:
    return float(np.abs(one.params_ - other.params_).max() / np.abs(other.params_).max())


def _rates(n: int) -> dict[str, dict]:
    """Passes, and CPU seconds a pass of a million rows of 136 columns, blocks already in memory."""
    import dask
    import dask.array as da

    out = {}
    every = make_block(0, n, WIDE)
    X = da.from_array(every[:, :-1], chunks=(n // 4, WIDE))
    y = da.from_array(every[:, -1], chunks=n // 4)
    qid = da.from_array(np.arange(n) // QUERY, chunks=n // 4)
    for name, estimator, query in (
        ("CumulativeLink", CumulativeLink(), None),
        ("PairwiseRanker", PairwiseRanker(), qid),
        ("COCR", COCR(), None),
    ):
        with dask.config.set(scheduler="synchronous"):
            begin = time.process_time()
            model = distributed.fit(estimator, X, y, qid=query)
            seconds = time.process_time() - begin
        rate = seconds / model.n_passes_ / n * 1e6
        out[name] = {"passes": model.n_passes_, "seconds": round(rate, 3)}
    return out


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Fit at every size in three ways, and time a pass of three estimators.

    Parameters
    ----------
    quick : bool, default=False
        The smallest size alone.
    progress : bool, default=True
        Show a progress bar.

    Returns
    -------
    dict
        Settings, a list for each measured quantity with an entry for each size, and rates.
    """
    sizes = SIZES[:1] if quick else SIZES
    return {
        "block": BLOCK, "p": N_FEATURES, "wide": WIDE, "query": QUERY, "n": list(sizes),
        **_sizes(sizes, progress), "rates": _rates(20_000),
    }  # fmt: skip
