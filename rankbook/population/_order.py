"""The best ordering of finitely many items from the penalties of their pairs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbook._linear_order import strong_components
from rankbook.graphs import optimal_order

# Two float penalties closer than this, relative to their sum, cannot be told apart.
_FLOAT_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class BayesOrdering:
    """A best ordering of the atoms of a population.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Levels 0, 1, ... of the atoms; higher is better.
    order : tuple of int
        The atoms, best first.
    risk : float
        The least risk any scores reach, with ties counting one half.
    bound : float
        The sum over pairs of atoms of the cheaper of their two orders. It equals `risk` exactly if
        the pairwise preferences have no cycle.
    cycle : tuple of int or None
        Atoms each strictly preferred to the next, and the last to the first, or None.
    """

    scores: np.ndarray
    order: tuple[int, ...]
    risk: float
    bound: float
    cycle: tuple[int, ...] | None

    def __post_init__(self) -> None:
        self.scores.flags.writeable = False

    @property
    def is_transitive(self) -> bool:
        """Whether one ordering respects every strict preference between two atoms."""
        return self.cycle is None


def strict_preference(weights: np.ndarray) -> np.ndarray:
    """Return the boolean matrix of "u belongs above v": it costs more to put v above u.

    Rational weights are compared exactly, floats up to rounding. A pair called a tie by mistake
    only removes an edge, so the tolerance can hide a cycle of its own size but never make one.
    """
    if weights.dtype == object:
        return (weights > weights.T).astype(bool)
    return weights - weights.T > _FLOAT_TIE * (weights + weights.T)


def _layers(above: np.ndarray) -> np.ndarray:
    """Return for each node of an acyclic relation the length of the longest chain below it."""
    pending = above.sum(axis=1)
    layer = np.full(above.shape[0], -1)
    level = 0
    while (layer < 0).any():
        sinks = np.flatnonzero((pending == 0) & (layer < 0))
        layer[sinks] = level
        pending = pending - above[:, sinks].sum(axis=1)
        level += 1
    return layer


def _cycle_through(above: np.ndarray, start: int) -> tuple[int, ...]:
    """Return a shortest cycle through a node of a strong component, each node above the next."""
    parent = {start: start}
    queue = deque([start])
    while True:  # every node of a strong component lies on a cycle
        node = queue.popleft()
        if node != start and above[node, start]:
            path = [node]
            while path[-1] != start:
                path.append(parent[path[-1]])
            return tuple(int(u) for u in reversed(path))
        for successor in np.flatnonzero(above[node]):
            if int(successor) not in parent:
                parent[int(successor)] = node
                queue.append(int(successor))


def _shortest_cycle(above: np.ndarray, members: np.ndarray) -> tuple[int, ...]:
    best = _cycle_through(above, int(members[0]))
    for node in members[1:]:
        if len(best) == 3:
            break
        best = min(best, _cycle_through(above, int(node)), key=len)
    return best


def best_order(weights: Any) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """Return the levels of an ordering of least total penalty, and a cycle if there is one.

    Parameters
    ----------
    weights : ndarray of shape (m, m)
        Entry [u, v] is what it costs to put v above u; floats, or rationals in an object array.

    Returns
    -------
    levels : ndarray of shape (m,)
        Higher is better; items share a level only where no preference or chain parts them.
    cycle : tuple of int or None
        Items each strictly preferred to the next, the last to the first, if the preferences run
        in a circle: then no ordering respects them all, and the best is a minimum feedback arc.
    """
    above = strict_preference(weights)
    cycle = None
    excess = np.where(above, weights - weights.T, 0)
    # Between components every preference can be kept, so only their insides need a search.
    for members in strong_components(excess):
        if members.size == 1:
            continue
        cycle = cycle or _shortest_cycle(above, members)
        block = excess[np.ix_(members, members)]
        best_first = members[np.asarray(optimal_order(block))]
        above[np.ix_(members, members)] = False
        for rank, node in enumerate(best_first):
            above[node, best_first[rank + 1 :]] = True
    return _layers(above), cycle
