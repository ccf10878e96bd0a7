r"""Exact linear orderings: the order of least total penalty, by two independent methods.

Both take a matrix in which ``a[i, j]`` is the penalty of putting j above i and return the nodes,
best first. `by_subsets` is dynamic programming over subsets; `by_milp` is an integer program.
"""

from __future__ import annotations

import heapq
import warnings

import numpy as np

from rankbook._certified_order import integer_weights, proved_order, triangle_variables
from rankbook._edge_weights import is_exact
from rankbook.exceptions import UncertifiedOrderWarning

__all__ = [
    "by_milp",
    "by_subsets",
    "find_cycle",
    "order_penalty",
    "ordered_components",
    "strong_components",
    "topological_order",
]

# A triangle inequality counts as violated beyond HiGHS's own feasibility tolerance.
_VIOLATION = 1e-6
# With net weights up to here, one unit is far above that tolerance.
_SOLVER_UNITS = 10**4
# Dynamic programming keeps m 2^m numbers: 20 million at this size.
_SUBSET_LIMIT = 20


def order_penalty(order: np.ndarray, a: np.ndarray):
    """Return the sum of a[i, j] over pairs with j above i (exact for exact weights)."""
    sorted_weights = a[np.ix_(order, order)]
    below, above = np.tril_indices(len(order), -1)
    return sorted_weights[below, above].sum()


def topological_order(edges: np.ndarray) -> list[int]:
    """Return nodes so that edges point forward, the smallest free node first; short if cyclic."""
    waiting = edges.sum(axis=0)
    free = [int(v) for v in np.flatnonzero(waiting == 0)]
    order = []
    while free:
        v = heapq.heappop(free)
        order.append(v)
        for w in np.flatnonzero(edges[v]):
            waiting[w] -= 1
            if waiting[w] == 0:
                heapq.heappush(free, int(w))
    return order


def find_cycle(a: np.ndarray) -> list[int]:
    """Return the nodes of a directed cycle of a graph that has one."""
    edges = (a > 0).astype(int)
    rest = sorted(set(range(len(a))) - set(topological_order(edges)))
    # Every node that Kahn's algorithm leaves has a predecessor that is left too: walk back.
    path = [rest[0]]
    while True:
        before = next(u for u in rest if edges[u, path[-1]])
        if before in path:
            return path[path.index(before) :][::-1]
        path.append(before)


def ordered_components(edges: np.ndarray) -> list[np.ndarray]:
    """Return the strong components of a boolean graph, each before those that it points to."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(edges, connection="strong")
    first = np.array([np.flatnonzero(label == c)[0] for c in range(count)])
    rename = np.argsort(np.argsort(first))
    label = rename[label]
    between = np.zeros((count, count), dtype=int)
    i, j = np.nonzero(edges)
    between[label[i], label[j]] = 1
    np.fill_diagonal(between, 0)
    return [np.flatnonzero(label == c) for c in topological_order(between)]


def strong_components(a: np.ndarray) -> list[np.ndarray]:
    """Return the strong components of the difference graph, best first."""
    return ordered_components((a > a.T).astype(bool))


def _whole(a: np.ndarray) -> np.ndarray:
    """Return Fractions as integers in their ratios, machine integers if all sums fit."""
    whole = integer_weights(a)
    return whole.astype(np.int64) if whole.sum() < 2**62 else whole


def by_subsets(a: np.ndarray) -> np.ndarray:
    r"""Return the lexicographically smallest best order by dynamic programming.

    The cheapest completion of an order whose top nodes are the set S is
    :math:`g(S) = \min_{v \notin S} \sum_{u \in S} a_{vu} + g(S \cup \{v\})`, so that
    :math:`m 2^m` steps replace :math:`m!` orders. Exact for integers and Fractions.
    """
    m = len(a)
    if a.dtype == object:
        a = _whole(a)
    if m > _SUBSET_LIMIT:
        raise ValueError(
            f"method 'subsets' takes components of at most {_SUBSET_LIMIT} nodes, got {m}; "
            "use 'milp'"
        )
    masks = np.arange(1 << m)
    cost = np.zeros((m, 1 << m), dtype=a.dtype)
    for u in range(m):
        cost[:, 1 << u : 2 << u] = cost[:, : 1 << u] + a[:, u, None]
    size = np.zeros(1 << m, dtype=int)
    for u in range(m):
        size += (masks >> u) & 1
    best = np.zeros(1 << m, dtype=a.dtype)
    choice = np.zeros(1 << m, dtype=int)
    for k in range(m - 1, -1, -1):
        layer = masks[size == k]
        done = np.zeros(len(layer), dtype=bool)
        for v in range(m):
            free = ((layer >> v) & 1) == 0
            sets = layer[free]
            total = cost[v, sets] + best[sets | (1 << v)]
            better = ~done[free] | (total < best[sets])
            best[sets[better]] = total[better]
            choice[sets[better]] = v
            done[free] = True
    order, chosen = [], 0
    for _ in range(m):
        order.append(choice[chosen])
        chosen |= 1 << choice[chosen]
    return np.array(order, dtype=int)


def _solve(
    cost: np.ndarray, triangles: np.ndarray, integral: bool, time_limit: float | None
) -> np.ndarray:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    n_rows, n_columns = len(triangles), len(cost)
    constraints = []
    if n_rows:
        signs = np.tile([1.0, 1.0, -1.0], n_rows)
        # SciPy 1.13 takes indices of 32 bits alone.
        starts = np.arange(0, 3 * n_rows + 1, 3, dtype=np.int32)
        indices = triangles.astype(np.int32).ravel()
        matrix = csr_array((signs, indices, starts), shape=(n_rows, n_columns))
        constraints.append(LinearConstraint(matrix, 0.0, 1.0))
    options: dict[str, float] = {"mip_rel_gap": 0.0}
    if time_limit is not None:
        options["time_limit"] = time_limit
    result = milp(
        cost,
        integrality=np.full(n_columns, int(integral)),
        bounds=Bounds(0.0, 1.0),
        constraints=constraints,
        options=options,
    )
    if not result.success:
        raise RuntimeError(f"HiGHS did not solve the linear ordering problem: {result.message}")
    return result.x


def _by_highs(a: np.ndarray, time_limit: float | None) -> np.ndarray:
    r"""Return an order that is best to HiGHS's tolerance, with triangle cuts added when needed.

    A variable :math:`x_{ij} \in \{0, 1\}`, i < j, says that i is above j. An assignment is an order
    iff it has no cycle of three nodes, :math:`0 \le x_{ij} + x_{jk} - x_{ik} \le 1`. Linear
    relaxations find the few triangles that matter before any branching.
    """
    m = len(a)
    rows, columns = np.triu_indices(m, 1)
    weights = np.asarray(a, dtype=float)
    cost = (weights.T - weights)[rows, columns]
    scale = np.abs(cost).max(initial=0.0)
    if scale > 0:
        cost = cost / scale
    triangles = triangle_variables(m)
    active = np.zeros(len(triangles), dtype=bool)
    integral = False
    while True:
        x = _solve(cost, triangles[active], integral, time_limit)
        sums = x[triangles[:, 0]] + x[triangles[:, 1]] - x[triangles[:, 2]]
        violated = (np.maximum(sums - 1.0, -sums) > _VIOLATION) & ~active
        if violated.any():
            active |= violated
        elif not integral and np.abs(x - np.rint(x)).max(initial=0.0) > _VIOLATION:
            integral = True
        else:
            break
    wins = np.zeros((m, m))
    wins[rows, columns] = np.rint(x)
    wins[columns, rows] = 1.0 - np.rint(x)
    return np.argsort(-wins.sum(axis=1), kind="stable")


def by_milp(a: np.ndarray, time_limit: float | None = None) -> np.ndarray:
    """Return a best order by integer programming, for exact weights proved in integers.

    HiGHS tells penalties apart that differ by some 1e-7 of the largest weight. That will do for
    floats; integers and Fractions are then proved by `proved_order`. Where its search grows too
    long HiGHS's own proof stands if one unit is far above its tolerance; else dynamic programming
    decides, and where that is too large an `UncertifiedOrderWarning` is given.
    """
    order = _by_highs(a, time_limit)
    if not is_exact(a):
        return order
    whole = integer_weights(a)
    order, proved = proved_order(whole, order)
    if proved or int(np.abs(whole - whole.T).max()) <= _SOLVER_UNITS:
        return order
    if len(a) <= _SUBSET_LIMIT:
        return by_subsets(a)
    warnings.warn(
        f"the best order of a component of {len(a)} nodes was found, but not proved: some other "
        f"may be better by less than 1e-7 of the largest weight",
        UncertifiedOrderWarning,
        stacklevel=4,
    )
    return order
