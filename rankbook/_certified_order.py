r"""A best linear order, proved in integer arithmetic.

Floating-point programs tell two orders apart only if their penalties differ by more than about
1e-7 of the largest weight. Here they propose, and integers decide. Let :math:`x_{ij} = 1`, i < j,
say that i is above j, so that an order costs :math:`c \cdot x` beyond a constant, with integers c,
and every triangle i < j < k has an activity :math:`x_{ij} + x_{jk} - x_{ik}` of 0 or 1. For *any*
integers :math:`\lambda`, with A the matrix of the triangles and :math:`d = c - A^T \lambda`,

.. math:: c \cdot x = d \cdot x + \lambda \cdot A x
          \ge \sum_j \min(d_j l_j, d_j h_j) + \sum_t \min(\lambda_t l_t, \lambda_t h_t)

over the bounds l, h of variables and activities. A linear program suggests :math:`\lambda`. What
would raise the bound to the best penalty known is fixed; the program of the rest has smaller costs,
so that solving it again adds digits. Where that ends without a proof, the search branches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np

__all__ = ["integer_weights", "proved_order", "triangle_variables"]

# A triangle counts as violated beyond the solver's own feasibility tolerance.
_VIOLATION = 1e-6
_SIGNS = (1, 1, -1)
# Boxes to search before the proof is given up.
_LIMIT = 200


def integer_weights(a: np.ndarray) -> np.ndarray:
    """Return integers in the ratios of the weights; a float stands for the rational that it is."""
    exact = [Fraction(w) for w in a.ravel().tolist()]
    unit = lcm(*(w.denominator for w in exact))
    whole = np.empty(a.size, dtype=object)
    whole[:] = [int(w * unit) for w in exact]
    return whole.reshape(a.shape)


def triangle_variables(m: int) -> np.ndarray:
    """Return, for i < j < k, the positions of the variables x_ij, x_jk, x_ik."""
    position = np.zeros((m, m), dtype=int)
    rows, columns = np.triu_indices(m, 1)
    position[rows, columns] = np.arange(len(rows))
    i, j, k = np.array(list(combinations(range(m), 3)), dtype=int).reshape(-1, 3).T
    return np.stack([position[i, j], position[j, k], position[i, k]], axis=1)


@dataclass(frozen=True)
class _Box:
    """Bounds of the variables and of the activities of the triangles."""

    low: np.ndarray
    high: np.ndarray
    row_low: np.ndarray
    row_high: np.ndarray

    def fixed(self, j: int, value: int) -> _Box:
        low, high = self.low.copy(), self.high.copy()
        low[j] = high[j] = value
        return replace(self, low=low, high=high)


class _Search:
    """Branch and bound from a known order, with bounds in integers."""

    def __init__(self, a: np.ndarray, order: np.ndarray) -> None:
        self.m = len(a)
        self.where = np.triu_indices(self.m, 1)
        self.excess = a - a.T
        self.cost = -self.excess[self.where]
        self.triangles = triangle_variables(self.m)
        self.active = np.zeros(len(self.triangles), dtype=bool)
        self.order, self.best = order, self.value(order)

    def value(self, order: np.ndarray) -> int:
        place = np.argsort(order)
        return int(self.cost[place[self.where[0]] < place[self.where[1]]].sum())

    def improved(self, order: np.ndarray) -> np.ndarray:
        """Return the order after moving single nodes to their best places, until none gains."""
        nodes = order.tolist()
        gained = True
        while gained:
            gained = False
            for v in order.tolist():
                rest = [u for u in nodes if u != v]
                # Putting v below one more node costs what u above v costs beyond v above u.
                change = np.cumsum([0, *self.excess[v, rest]])
                now, best = nodes.index(v), int(np.argmin(change))
                if change[best] < change[now]:
                    nodes = [*rest[:best], v, *rest[best:]]
                    gained = True
        return np.array(nodes)

    def try_order(self, x: np.ndarray) -> None:
        wins = np.zeros((self.m, self.m))
        wins[self.where] = x
        wins.T[self.where] = 1.0 - x
        order = self.improved(np.argsort(-wins.sum(axis=1), kind="stable"))
        if (value := self.value(order)) < self.best:
            self.order, self.best = order, value

    def reduced(self, multipliers: np.ndarray) -> np.ndarray:
        """Return c - A'lambda."""
        d = self.cost.copy()
        for sign, column in zip(_SIGNS, self.triangles.T, strict=True):
            np.subtract.at(d, column, sign * multipliers)
        return d

    def solve(self, cost: np.ndarray, box: _Box) -> tuple[np.ndarray, np.ndarray] | None:
        """Return a float solution and multipliers of the program, cuts added as they are needed."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, vstack

        while True:
            rows = self.triangles[self.active]
            indices = rows.astype(np.int32).ravel()
            starts = np.arange(0, 3 * len(rows) + 1, 3, dtype=np.int32)
            data = np.tile(np.array(_SIGNS, dtype=float), len(rows))
            matrix = csr_array((data, indices, starts), shape=(len(rows), len(cost)))
            low, high = box.row_low[self.active], box.row_high[self.active]
            result = linprog(
                cost,
                A_ub=vstack([matrix, -matrix], format="csr") if len(rows) else None,
                b_ub=np.concatenate([high, -low]) if len(rows) else None,
                bounds=np.column_stack([box.low, box.high]),
                method="highs",
            )
            if result.x is None:
                return None
            sums = result.x[self.triangles] @ _SIGNS
            violated = (np.maximum(sums - box.row_high, box.row_low - sums) > _VIOLATION) & (
                ~self.active
            )
            if not violated.any():
                multipliers = np.zeros(len(self.triangles))
                if len(rows):
                    upper, lower = np.split(result.ineqlin.marginals, 2)
                    multipliers[self.active] = upper - lower
                return result.x, multipliers
            self.active |= violated

    def bound(self, box: _Box) -> tuple[_Box, np.ndarray] | None:
        """Return a box without what cannot be better, and a solution; None if nothing can be."""
        multipliers = np.zeros(len(self.triangles), dtype=object)
        x, size = np.full(len(self.cost), 0.5), None
        while True:
            # What is fixed is a constant: the rest has smaller costs, and so more digits.
            free_rows = box.row_low < box.row_high
            kept = np.where(free_rows, 0, multipliers)
            cost = np.where(box.low < box.high, self.reduced(kept), 0)
            scale = max(int(np.abs(cost).max(initial=0)), 1)
            if size is not None and 2 * scale > size:
                return box, x
            size = scale
            solved = self.solve(np.array([c / scale for c in cost], dtype=float), box)
            if solved is None:
                return box, np.full(len(cost), 0.5)
            x, floats = solved
            self.try_order(np.rint(x))
            multipliers = kept + np.array(
                [round(Fraction(f) * scale) for f in floats], dtype=object
            )
            d = self.reduced(multipliers)
            low = np.where(d > 0, d * box.low, d * box.high).sum()
            low += np.where(
                multipliers > 0, multipliers * box.row_low, multipliers * box.row_high
            ).sum()
            room = self.best - low
            if room <= 0:
                return None
            box = _Box(
                np.where(d <= -room, box.high, box.low),
                np.where(d >= room, box.low, box.high),
                np.where(multipliers <= -room, box.row_high, box.row_low),
                np.where(multipliers >= room, box.row_low, box.row_high),
            )

    def run(self, limit: int) -> bool:
        """Search, and say whether the order is proved best."""
        n, t = len(self.cost), len(self.triangles)
        boxes = [_Box(np.zeros(n, int), np.ones(n, int), np.zeros(t, int), np.ones(t, int))]
        for _ in range(limit):
            if not boxes:
                return True
            found = self.bound(boxes.pop())
            if found is None:
                continue
            box, x = found
            free = np.flatnonzero(box.low < box.high)
            if not free.size:
                self.try_order(box.low)
                continue
            j = int(free[np.argmin(np.abs(x[free] - 0.5))])
            near = int(x[j] >= 0.5)
            boxes += [box.fixed(j, 1 - near), box.fixed(j, near)]
        return not boxes


def proved_order(a: np.ndarray, order: np.ndarray, limit: int = _LIMIT) -> tuple[np.ndarray, bool]:
    """Return the order, or a better one, and whether it is proved that none is better.

    Parameters
    ----------
    a : ndarray of shape (m, m), integers in an object array
        Penalties.
    order : ndarray of int, shape (m,)
        A good order to begin with.
    limit : int
        How many boxes to search.
    """
    search = _Search(a, order)
    proved = search.run(limit)
    return search.order, proved
