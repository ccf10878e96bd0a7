"""Three exact methods for the best order of a random graph: enumeration, subsets, MILP.

The graphs are tournaments of nine votes a pair, by fair coins or with a planted order. For each
method and size the study records the least losses and the CPU seconds (of one thread, if
``OMP_NUM_THREADS=1`` is set).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from tqdm import tqdm

from rankbook import graphs

__all__ = ["compute", "enumerate_orders", "tournament"]

SEEDS = range(5)
SIZES: dict[str, Sequence[int]] = {
    "enumeration": range(3, 10),
    "subsets": range(3, 19, 3),
    "milp": (6, 10, 14, 18, 20, 22, 24, 26, 28),
    "milp, planted order": (6, 10, 14, 18, 22, 26, 30, 40, 50),
}
QUICK = {"enumeration": 7, "subsets": 12, "milp": 14, "milp, planted order": 30}


def tournament(m: int, seed: int, planted: bool) -> np.ndarray:
    """Return nine votes a pair: by fair coins, or for a planted order with probability 3/4.

    Parameters
    ----------
    m : int
        The number of results.
    seed : int
        The seed.
    planted : bool
        Whether there is an order behind the votes.

    Returns
    -------
    ndarray of int, shape (m, m)
        Entry [i, j] counts the votes for i over j.

    Examples
    --------
    >>> votes = tournament(4, 0, planted=True)
    >>> (votes + votes.T).tolist()[0]
    [0, 9, 9, 9]
    """
    rng = np.random.default_rng([seed, m])
    a = np.zeros((m, m), dtype=int)
    rows, columns = np.triu_indices(m, 1)
    votes = rng.binomial(9, 0.75 if planted else 0.5, len(rows))
    a[rows, columns], a[columns, rows] = votes, 9 - votes
    shuffle = rng.permutation(m)
    return a[np.ix_(shuffle, shuffle)]


def enumerate_orders(a: np.ndarray) -> int:
    """Return the least penalty over all orders, one after the other.

    Parameters
    ----------
    a : ndarray of int, shape (m, m)
        Expected penalties.

    Returns
    -------
    int
        The least loss of an order without ties.

    Examples
    --------
    >>> enumerate_orders(np.array([[0, 2, 1], [1, 0, 2], [2, 1, 0]]))
    4
    """
    table = a.tolist()
    return min(
        sum(table[i][j] for place, j in enumerate(order) for i in order[place + 1 :])
        for order in permutations(range(len(a)))
    )


def _solver(method: str) -> Callable[[np.ndarray], int]:
    if method == "enumeration":
        return enumerate_orders
    name = method.split(",")[0]
    return lambda a: int(graphs.minimum_edge_loss(a, name))


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Find the least losses, and time each method.

    Parameters
    ----------
    quick : bool, default=False
        The smaller sizes alone.
    progress : bool, default=True
        Show a progress bar.

    Returns
    -------
    dict
        ``seeds``, and the tables ``loss`` and ``seconds``: by method and by size, one number a
        seed.
    """
    graphs.minimum_edge_loss(tournament(5, 0, False), "milp")  # imports are not part of it
    tasks = [(name, m) for name, sizes in SIZES.items() for m in sizes]
    if quick:
        tasks = [(name, m) for name, m in tasks if m <= QUICK[name]]
    loss: dict[str, dict[str, list[int]]] = {name: {} for name in SIZES}
    seconds: dict[str, dict[str, list[float]]] = {name: {} for name in SIZES}
    for name, m in tqdm(tasks, desc="methods and sizes", disable=not progress):
        solve, key = _solver(name), str(m)
        loss[name][key], seconds[name][key] = [], []
        for seed in SEEDS:
            a = tournament(m, seed, "planted" in name)
            start = time.process_time()
            loss[name][key].append(solve(a))
            seconds[name][key].append(round(time.process_time() - start, 6))
    return {"seeds": list(SEEDS), "loss": loss, "seconds": seconds}
