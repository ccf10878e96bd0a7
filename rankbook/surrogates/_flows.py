r"""Duality in exact arithmetic: circulations bound W from below.

Write a loss as :math:`\ell(z) = \max_g (c(g) - g z)`, where c(g) is minus its conjugate at -g. For
a **circulation** f (a flow that every node passes on whole), the scores drop out of
:math:`\sum f_e (s_{u_e} - s_{v_e})`, so that at any scores

.. math:: W(s) \ge \sum_e f_e m_e + w_e c(f_e / w_e),

with equality at the minimiser for :math:`f_e = -w_e \ell'(z_e)`.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction

import numpy as np

from rankbook.exceptions import CertificateError
from rankbook.surrogates._problem import EdgeProblem, Value

__all__ = ["dual_bound", "hinge_flow", "is_circulation", "repaired_circulation"]


def is_circulation(problem: EdgeProblem, flow: list[Fraction]) -> bool:
    """Say whether the flow leaves every node as it enters it, and is nowhere negative.

    Only a loss that also rises may have a negative flow, and the edge of a kept order never.
    """
    one_way = problem.loss.is_non_increasing
    if any(f < 0 for f in (flow if one_way else flow[len(problem.weight) :])):
        return False
    balance = [Fraction(0)] * problem.n
    for (u, v), f in zip(problem.arcs, flow, strict=True):
        balance[u] += f
        balance[v] -= f
    return not any(balance)


def _path(out: list[list[tuple[int, int]]], start: int, goals: set[int]) -> list[int]:
    """Return edges of a shortest directed path from a node to any goal; empty if none."""
    before: dict[int, tuple[int, int] | None] = {start: None}
    queue = deque([start])
    while queue:
        u = queue.popleft()
        if u in goals:
            edges = []
            while (step := before[u]) is not None:
                u, e = step
                edges.append(e)
            return edges[::-1]
        for v, e in out[u]:
            if v not in before:
                before[v] = (u, e)
                queue.append(v)
    return []


def repaired_circulation(problem: EdgeProblem, flow: np.ndarray) -> list[Fraction]:
    """Return an exact circulation next to a flow that is one up to rounding.

    What a node receives too much is sent on along directed paths, which exist inside a strong
    component; only increases occur, so that the flow stays non-negative. Where a flow may be
    negative, it is sent along edges in either direction.
    """
    exact = [Fraction(float(f)) for f in flow]
    excess = [Fraction(0)] * problem.n
    out: list[list[tuple[int, int]]] = [[] for _ in range(problem.n)]
    for e, (u, v) in enumerate(problem.arcs):
        excess[u] -= exact[e]
        excess[v] += exact[e]
        out[u].append((v, e))
        if e < len(problem.weight) and not problem.loss.is_non_increasing:
            out[v].append((u, ~e))
    while any(x > 0 for x in excess):
        start = next(v for v, x in enumerate(excess) if x > 0)
        path = _path(out, start, {v for v, x in enumerate(excess) if x < 0})
        if not path:
            raise CertificateError("the edge weights do not balance: a component is not strong")
        end = problem.arcs[path[-1]][1] if path[-1] >= 0 else problem.arcs[~path[-1]][0]
        amount = min(excess[start], -excess[end])
        for k in path:
            exact[max(k, ~k)] += amount if k >= 0 else -amount
        excess[start] -= amount
        excess[end] += amount
    return exact


def dual_bound(problem: EdgeProblem, flow: list[Fraction]) -> Value:
    """Return the lower bound of W by a circulation: exact for the hinge loss, else a float."""
    edges = flow[: len(problem.weight)]
    if problem.loss.is_piecewise_linear:
        if any(f > w for f, w in zip(edges, problem.weight, strict=True)):
            return -np.inf
        return sum((f * (1 + m) for f, m in zip(edges, problem.margin, strict=True)), Fraction(0))
    f = np.array([float(x) for x in edges])
    return float(f @ problem.m - problem.w @ problem.loss.conjugate(-f / problem.w))


def _augment(
    flow: list[Fraction],
    room: dict[int, Fraction],
    residual: list[list[tuple[int, int]]],
    excess: list[Fraction],
    ends: list[tuple[int, int]],
) -> None:
    """Send excess along residual paths, shortest first, until it is gone or stuck."""
    while any(x > 0 for x in excess):
        goals = {v for v, x in enumerate(excess) if x < 0}
        usable = [[(v, k) for v, k in edges if room[k] > 0] for edges in residual]
        starts = (v for v, x in enumerate(excess) if x > 0)
        start, path = next(((v, p) for v in starts if (p := _path(usable, v, goals))), (-1, []))
        if not path:
            return
        end = ends[path[-1]][1] if path[-1] >= 0 else ends[~path[-1]][0]
        amount = min([excess[start], -excess[end], *(room[k] for k in path)])
        for k in path:
            room[k] -= amount
            room[~k] += amount
            flow[max(k, ~k)] += amount if k >= 0 else -amount
        excess[start] -= amount
        excess[end] += amount


def hinge_flow(
    problem: EdgeProblem, scores: tuple[Fraction, ...], slack: Fraction = Fraction(0)
) -> list[Fraction]:
    """Return a circulation that proves the scores optimal for the hinge loss.

    Complementary slackness: an edge with z < 1 is full, one with z > 1 empty, one with z = 1 free.
    The free edges must carry what the full ones leave unbalanced: a maximum flow, found here by
    augmenting paths over Fractions. The edge of a kept order is free at a tie, else empty. If the
    flow falls short by more than `slack`, the scores are not optimal; a shortfall within it
    (rounded weights) goes over the other edges, at a tiny gap.
    """
    # Edge e forwards has the key e, backwards ~e; the room is what it can still carry.
    flow: list[Fraction] = []
    room: dict[int, Fraction] = {}
    free: list[list[tuple[int, int]]] = [[] for _ in range(problem.n)]
    every: list[list[tuple[int, int]]] = [[] for _ in range(problem.n)]
    excess = [Fraction(0)] * problem.n
    capacity = [*problem.weight, sum(problem.weight, Fraction(0))]
    for e, (u, v) in enumerate(problem.arcs):
        beyond = scores[u] - scores[v]
        if e < len(problem.weight):
            beyond -= 1 + problem.margin[e]
        elif beyond < 0:
            raise CertificateError(f"the scores put node {v} above node {u}, which is kept above")
        flow.append(capacity[e] if beyond < 0 else Fraction(0))
        room[e], room[~e] = capacity[e] - flow[e], flow[e]
        excess[u] -= flow[e]
        excess[v] += flow[e]
        for residual in (every, free) if beyond == 0 else (every,):
            residual[u].append((v, e))
            residual[v].append((u, ~e))
    _augment(flow, room, free, excess, problem.arcs)
    if sum(x for x in excess if x > 0) > slack:
        raise CertificateError(
            "no dual solution matches the scores: they do not minimise the hinge risk"
        )
    _augment(flow, room, every, excess, problem.arcs)
    return flow
