r"""Does a surrogate find the optimal orders of a graph? Gaps, and a search for failures.

A surrogate is edge-consistent at a distribution if its risk is strictly larger outside the optimal
set A(p) than at its best (Duchi, Mackey and Jordan, 2010, Definition 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from rankbook._arrays import as_array
from rankbook._edge_weights import check_edge_weights
from rankbook._validation import check_flag, check_scalar
from rankbook.graphs import difference_graph, is_dag, is_low_noise
from rankbook.losses import Loss
from rankbook.surrogates._problem import EdgeProblem
from rankbook.surrogates._solve import polish
from rankbook.surrogates.minimize import edge_problem, solve
from rankbook.surrogates.result import SurrogateResult

__all__ = [
    "constrained_minimum",
    "consistency_gap",
    "find_counterexample",
    "is_edge_consistent",
    "off_optimal_value",
]

# Scores of smooth losses this close (relative to their range) count as tied.
_TIE = 1e-9
# The search for counterexamples is exhaustive: with more nodes it would not end.
_MOST_NODES = 10
_MAX_ENUMERATED = 8
_EPS = float(np.finfo(float).eps)

_Off = tuple[SurrogateResult, tuple[int, int]] | None


class OffOptimal(NamedTuple):
    """The best value outside the optimal set, and the pair (i above j) that is lost there."""

    value: float
    pair: tuple[int, int] | None


def _forced_pairs(a: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs (i, j) that every optimal order puts i above j.

    Outside A(p) at least one of them is lost: the complement is a union of half-spaces. If the
    difference graph has cycles this may fail, and is then an error.
    """
    if is_dag(difference_graph(a)):
        return [(int(i), int(j)) for i, j in np.argwhere(a > a.T)]
    m = len(a)
    if m > _MAX_ENUMERATED:
        raise ValueError(
            f"a must have an acyclic difference graph beyond {_MAX_ENUMERATED} nodes, got {m}"
        )
    orders = np.array(list(permutations(range(m))))
    place = np.argsort(orders, axis=1)
    above = place[:, :, None] < place[:, None, :]
    penalties = (above.transpose(0, 2, 1) * a).sum(axis=(1, 2))
    scale = float(np.max(a))
    best = np.array([float(p) for p in penalties - penalties.min()]) <= 1e-12 * scale
    forced = above[best].all(axis=0)
    if int((above | ~forced).all(axis=(1, 2)).sum()) != int(best.sum()):
        raise ValueError(
            "the optimal orders of a are not those of a partial order, so that the complement of "
            "A(p) is no union of half-spaces; got a difference graph with cycles"
        )
    return [(int(i), int(j)) for i, j in np.argwhere(forced)]


def _surrogate_problem(
    a: Any, loss: str | Loss, margin: Any, surrogate_weights: Any
) -> tuple[np.ndarray, EdgeProblem]:
    a = check_edge_weights(a)
    if surrogate_weights is None:
        return a, edge_problem(a, loss, margin)
    h = check_edge_weights(surrogate_weights, "surrogate_weights")
    if h.shape != a.shape:
        raise ValueError(f"surrogate_weights must have shape {a.shape}, got {h.shape}")
    return a, edge_problem(h, loss, margin, "surrogate_weights")


def constrained_minimum(
    a: Any, loss: str | Loss, pair: tuple[int, int], margin: Any = None
) -> SurrogateResult:
    r"""Minimise an edgewise surrogate over the scores that do not put i above j.

    .. math:: \min \{W(s) : s_i \le s_j\}

    The constraint is part of the program that is solved and of the proof: in the dual it is one
    more edge :math:`j \to i`, which may carry any flow at no cost.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Weights of the surrogate, as in `minimize_edgewise`.
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "squared"} or Loss
        The surrogate.
    pair : tuple of two int
        The nodes (i, j).
    margin : float or array-like of shape (m, m), optional
        Margins, as in `minimize_edgewise`.

    Returns
    -------
    SurrogateResult
        The minimiser, with its certificate, which `verify` checks.

    See Also
    --------
    off_optimal_value : the least of these values over the pairs that an optimal order keeps.

    Examples
    --------
    The free minimiser has node 0 above node 1; without that, a tie is best.

    >>> constrained_minimum([[0, 3], [1, 0]], "hinge", (0, 1)).value
    4.0
    >>> constrained_minimum([[0, 3], [1, 0]], "hinge", (1, 0)).value
    2.0
    """
    problem = edge_problem(a, loss, margin)
    nodes = as_array(pair, "pair")
    if nodes.shape != (2,) or nodes.dtype.kind not in "iu":
        raise TypeError(f"pair must be two nodes, got {pair!r}")
    i, j = (check_scalar(int(v), "pair", low=0, high=problem.n - 1, integer=True) for v in nodes)
    if i == j:
        raise ValueError(f"pair must be two different nodes, got {(i, j)}")
    return solve(replace(problem, kept=(j, i)))


def _off_optimal(a: np.ndarray, problem: EdgeProblem, name: str) -> _Off:
    """Return the least result over the half-spaces that make up the complement of A(p)."""
    best = None
    for i, j in _forced_pairs(a):
        result = solve(replace(problem, kept=(j, i)), name)
        if best is None or result.value < best[0].value:
            best = (result, (i, j))
    return best


def off_optimal_value(
    a: Any, loss: str | Loss, margin: Any = None, surrogate_weights: Any = None
) -> OffOptimal:
    r"""Return the infimum of the surrogate risk outside A(p), and the pair that is lost there.

    The complement of A(p) is the union of the half-spaces :math:`s_i \le s_j` (or <, with the same
    infimum) over the pairs that every optimal order puts i above j. The constrained problem is
    solved in each of them, as `constrained_minimum` does, whether or not the minimiser over all
    scores lies there.

    Parameters
    ----------
    a, loss, margin, surrogate_weights
        As in `consistency_gap`.

    Returns
    -------
    OffOptimal
        A named tuple ``(value, pair)``; ``(inf, None)`` if every order is optimal.

    Examples
    --------
    >>> value, pair = off_optimal_value([[0, 3], [1, 0]], "hinge")
    >>> value, pair
    (4.0, (0, 1))
    """
    a, problem = _surrogate_problem(a, loss, margin, surrogate_weights)
    off = _off_optimal(a, problem, "a" if surrogate_weights is None else "surrogate_weights")
    return OffOptimal(math.inf, None) if off is None else OffOptimal(off[0].value, off[1])


def consistency_gap(
    a: Any, loss: str | Loss, margin: Any = None, surrogate_weights: Any = None
) -> float:
    r"""Return how much the surrogate risk must grow to leave the optimal set.

    .. math:: \inf_{s \notin A(p)} W(s) - \inf_s W(s)

    Zero means that the surrogate is not edge-consistent (Definition 2): scores outside A(p) come as
    close to its infimum as any. The two infima are solved for, and proved, apart; a difference
    that their certificates leave open (none for the hinge loss, rounding for smooth ones) is zero.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Expected penalties, which define A(p).
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "squared"} or Loss
        The surrogate.
    margin : float or array-like of shape (m, m), optional
        Margins, as in `minimize_edgewise`.
    surrogate_weights : array-like of shape (m, m), optional
        The surrogate's weights h(a), where they are not the penalties themselves.

    Returns
    -------
    float
        The gap, never negative; infinite if every order is optimal.

    Raises
    ------
    ValueError
        If A(p) is not given by a partial order (only if the difference graph has cycles).

    Examples
    --------
    Two items are never a problem; three can be, even with little noise:

    >>> round(consistency_gap([[0, 3], [1, 0]], "exponential"), 4)
    0.5359
    >>> consistency_gap([[0, 1, 5], [0, 0, 2], [2, 0, 0]], "exponential")
    0.0
    """
    a, problem = _surrogate_problem(a, loss, margin, surrogate_weights)
    name = "a" if surrogate_weights is None else "surrogate_weights"
    off = _off_optimal(a, problem, name)
    if off is None:
        return math.inf
    high, low = off[0].certificate, solve(problem, name).certificate
    gap = high.upper - low.upper
    rounding = 0 if low.exact else 8 * _EPS * abs(low.upper)
    return float(gap) if gap > max(abs(high.gap), abs(low.gap)) + rounding else 0.0


def is_edge_consistent(
    a: Any,
    loss: str | Loss,
    margin: Any = None,
    surrogate_weights: Any = None,
    tol: float = 1e-7,
) -> bool:
    """Say whether the consistency gap is positive: larger than `tol` times the total weight.

    Parameters
    ----------
    a, loss, margin, surrogate_weights
        As in `consistency_gap`.
    tol : float, default 1e-7
        Tolerance, relative to the sum of the surrogate's weights.

    Returns
    -------
    bool
        False if scores outside the optimal set minimise the surrogate.

    Examples
    --------
    >>> is_edge_consistent([[0, 1, 3], [0, 0, 1], [1, 0, 0]], "hinge")
    False
    >>> is_edge_consistent([[0, 1, 3], [0, 0, 1], [1, 0, 0]], "logistic")
    True
    """
    tol = check_scalar(tol, "tol", low=0.0)
    gap = consistency_gap(a, loss, margin, surrogate_weights)
    weights = check_edge_weights(a if surrogate_weights is None else surrogate_weights)
    return bool(gap > tol * float(weights.sum()))


def _matrices(nodes: int, total: int) -> Iterator[np.ndarray]:
    """Yield integer weights of a given sum with a[i, j] >= a[j, i] for i < j, in row order."""
    where = [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    a = np.zeros((nodes, nodes), dtype=int)

    def fill(position: int, left: int) -> Iterator[np.ndarray]:
        if position == len(where):
            if left == 0:
                yield a
            return
        i, j = where[position]
        most = left if i < j else min(left, a[j, i])
        for weight in range(most + 1):
            a[i, j] = weight
            yield from fill(position + 1, left - weight)
        a[i, j] = 0

    yield from fill(0, total)


def _integer_scores(n: int) -> np.ndarray:
    """Return all integer scores with node 0 at zero and a range below n, one a row."""
    free = np.array(list(product(range(1 - n, n), repeat=n - 1)))
    grid = np.column_stack([np.zeros(len(free), dtype=int), free])
    return grid[np.ptp(grid, axis=1) < n]


def _suspect(a: np.ndarray, problem: EdgeProblem, strict: bool) -> bool:
    """Say, fast and without proof, whether the surrogate may fail: worth solving properly.

    An edge between strong components is always satisfied, so only their insides matter. There the
    minimisers of the hinge loss are the convex hull of some integer scores: neighbours in a
    spanning tree of edges at the kink differ by one.
    """
    for nodes in problem.components:
        part, _ = problem.restrict(nodes)
        inner = a[np.ix_(nodes, nodes)]
        wanted = np.argwhere(inner > inner.T)
        if not len(wanted):
            continue
        if problem.loss.is_piecewise_linear:
            grid = _integer_scores(part.n)
            z = grid[:, part.tail] - grid[:, part.head]
            risk = np.maximum(1 - z, 0) @ part.w.astype(int)
            best = grid[risk == risk.min()]
        else:
            best = polish(part, np.zeros(part.n))[None, :]
        for i, j in wanted:
            difference = best[:, i] - best[:, j]
            if difference.max() < 1e-6 if strict else difference.min() < 1e-6:
                return True
    return False


def find_counterexample(
    loss: str | Loss,
    nodes: int = 3,
    low_noise: bool = True,
    strict: bool = False,
    max_total: int = 16,
) -> np.ndarray | None:
    """Return the smallest integer weights on which a loss is not edge-consistent.

    Smallest means: least sum of weights; among those, the first in row order (``a[0, 1]``, then
    ``a[0, 2]``, ...). Nodes are numbered so that 0, 1, 2, ... is an optimal order, ``a[i, j]``
    being at least ``a[j, i]`` for i < j, as they can be wherever the difference graph is acyclic.

    Parameters
    ----------
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "squared"} or Loss
        The surrogate.
    nodes : int, default 3
        The number of nodes, at most 10.
    low_noise : bool, default True
        Whether the weights must be low-noise (Definition 8).
    strict : bool, default False
        Whether every minimiser must put some pair in the wrong strict order; otherwise a tie, or
        one minimiser among many, is failure enough.
    max_total : int, default 16
        Where to stop.

    Returns
    -------
    ndarray of int, shape (nodes, nodes), or None
        The weights, their failure proved by certificates; None if there are none up to
        `max_total`.

    Examples
    --------
    >>> find_counterexample("hinge").tolist()
    [[0, 1, 3], [0, 0, 1], [1, 0, 0]]
    """
    nodes = check_scalar(nodes, "nodes", low=2, high=_MOST_NODES, integer=True)
    low_noise, strict = check_flag(low_noise, "low_noise"), check_flag(strict, "strict")
    max_total = check_scalar(max_total, "max_total", low=1, integer=True)
    for total in range(1, max_total + 1):
        for a in _matrices(nodes, total):
            if not (a > a.T).any() or (low_noise and not is_low_noise(a)):
                continue
            problem = edge_problem(a, loss)
            if _suspect(a, problem, strict) and _fails(a, solve(problem), strict):
                return a.copy()
    return None


def _fails(a: np.ndarray, result: SurrogateResult, strict: bool) -> bool:
    tie = 0 if result.certificate.exact else _TIE * (1 + np.ptp(result.scores))
    for i, j in np.argwhere(a > a.T):
        low, high = result.difference_range(i, j)
        if high < -tie if strict else low <= tie:
            return True
    return False
