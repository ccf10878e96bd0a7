"""Exercises of Part III, consistency."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook import graphs
from rankbook.exercises._make import function, value

GRAPHS, EDGES = "consistency/preference_graphs", "consistency/edge_consistency"
COUNTER, REGIONS = "consistency/counterexamples", "consistency/inconsistency_regions"
METHODS = "consistency/consistent_methods"


def _tournaments(rng: np.random.Generator) -> list[tuple]:
    found = []
    for n in (6, 7):
        upper = np.triu(rng.binomial(9, 0.5, (n, n)), 1)
        found.append((upper + np.tril(9 - upper.T, -1),))
    cycle = np.array([[0, 5, 1], [1, 0, 5], [5, 1, 0]])
    return [*found, (np.array([[0, 3], [1, 0]]),), (cycle,)]


def _excess(weights: np.ndarray) -> float:
    net = (weights - weights.T).sum(axis=1)
    return float(graphs.edge_loss(net, weights) / graphs.minimum_edge_loss(weights) - 1)


def _inverts(answer: Any, _: Any) -> str:
    from rankbook.surrogates import minimize_edgewise

    a = np.asarray(answer, dtype=float)
    if a.shape != (3, 3) or np.any(a < 0) or np.any(a != np.round(a)) or np.any(np.diag(a)):
        return "the weights should be a 3 by 3 matrix of whole numbers, zero on the diagonal"
    if a.sum() >= 13:
        return "the sum of the weights should be below 13"
    if not graphs.is_low_noise(a):
        return "the weights are not low-noise"
    result = minimize_edgewise(a, "logistic")
    if not result.attained or graphs.is_optimal(result.scores, a):
        return "the minimiser of the logistic loss has every edge of the difference graph right"
    return ""


def _not_consistent(answer: Any, _: Any) -> str:
    d = np.asarray(answer, dtype=float)
    if d.shape != (3,) or np.any(d < 1) or np.any(d != np.round(d)):
        return "the answer should be three whole numbers, each at least 1: d_12, d_13, d_23"
    first, second, third = d[0] + d[1], d[2] - d[0], -d[1] - d[2]
    if first > second > third:
        return "the balances have the order of the graph, so the linear loss is consistent here"
    return "" if d.sum() == 5 else "there are weights with a smaller sum"


QUESTIONS = [
    value(
        GRAPHS,
        1,
        "Edges and loss of five grades",
        "two numbers: how many edges the graph has, and the loss of the order",
        (9, 2),
        value="Results of equal grade have no edge.",
    ),
    function(
        GRAPHS,
        5,
        "What the net weights cost",
        "excess(weights)",
        _tournaments,
        _excess,
        returns="the loss of the order by net weight divided by the least loss, minus 1 (ties of "
        "net weights broken by the index, as `graphs.edge_loss` does)",
        hints={"value": "The best list is that of `graphs.optimal_order`."},
    ),
    value(
        EDGES,
        2,
        "The ramp loss on two results",
        "the number H_2(0.6)",
        0.6,
        tolerance=1e-3,
        value="Compare the least risks on the two sides of zero.",
    ),
    value(
        EDGES,
        6,
        "Where the linear loss has no gap",
        "the share q up to which, from above zero, the gap is zero",
        2 / 7,
        tolerance=1e-6,
        value="At which share does an edge of the difference graph vanish?",
    ),
    value(
        COUNTER,
        2,
        "Small weights that the logistic loss inverts",
        "a 3 by 3 array of whole numbers, the weights",
        None,
        accepts=_inverts,
        value="Start from the weights of the chapter, and make them smaller.",
    ),
    value(
        REGIONS,
        1,
        "The quantities of a pair",
        "four numbers: A, B, d, C",
        (4, 15, 1, 20),
        value="Here i = 2, j = 3 and k = 1.",
    ),
    value(
        METHODS,
        2,
        "The smallest failure of the linear loss",
        "three whole numbers: d_12, d_13, d_23",
        None,
        accepts=_not_consistent,
        value="The linear loss orders by the balances, and a tie is a failure.",
    ),
]
