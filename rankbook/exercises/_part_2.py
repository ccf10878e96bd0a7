"""Exercises of Part II, many labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook import costs, metrics, optimal
from rankbook.exercises._make import function, value

RISKS, BEST, CYCLES = "multipartite/risks", "multipartite/best_ranking", "multipartite/cycles"
CONVEX, REGRET = "multipartite/convex_surrogates", "multipartite/regret_transfer"
TOP, ORDINAL = "multipartite/top_of_the_list", "multipartite/ordinal_regression"
SVOR = "multipartite/support_vector_ordinal"


def _samples_without_ties(rng: np.random.Generator) -> list[tuple]:
    found: list[tuple] = []
    for K, n in ((3, 20), (4, 30), (2, 10)):
        y = rng.permutation(np.append(np.arange(1, K + 1), rng.integers(1, K + 1, n)))
        found.append((y, y + 2 * rng.normal(size=len(y))))
    y = np.array([1, 2, 3])
    return [*found, (y, np.array([1.0, 2.0, 3.0])), (y, np.array([3.0, 2.0, 1.0]))]


def _volume(y: np.ndarray, scores: np.ndarray) -> float:
    return metrics.volume_under_surface(y, scores)


def _changed_entries(rng: np.random.Generator) -> list[tuple]:
    found = [(5, 2, 4), (5, 1, 2), (3, 1, 3), (4, 1, 4)]
    for _ in range(2):
        j, i = sorted(map(int, rng.choice(np.arange(1, 7), 2, replace=False)))
        found.append((6, j, i))
    return found


def _rank(K: int, j: int, i: int) -> int:
    changed = costs.dcg(K)
    changed[j - 1, i - 1] += 1
    return int(np.linalg.matrix_rank(changed.T - changed))


def _shares_and_costs(rng: np.random.Generator) -> list[tuple]:
    found: list[tuple] = [
        (np.array([0.5, 0.25, 0.25]), costs.constant(3)),
        (np.array([0.5, 0.25, 0.25]), costs.linear(3)),
        (np.array([0.3, 0.7]), costs.constant(2)),
    ]
    for K in (4, 5):
        found.append((rng.dirichlet(np.ones(K)), costs.from_scale(np.sort(rng.random(K)))))
    return found


def _kappa(shares: np.ndarray, matrix: np.ndarray) -> float:
    different = (1 - shares @ shares) / 2
    return float((matrix[0] @ shares) * (matrix[:, -1] @ shares) / (matrix[0, -1] * different))


def _posteriors_form(answer: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, str]:
    p = np.asarray(answer, dtype=float)
    if p.shape != shape:
        return p, f"the array should have shape {shape}, not {p.shape}"
    if not np.all(p >= 0) or not np.allclose(p.sum(axis=-1), 1):
        return p, "every posterior should be non-negative and sum to 1"
    return p, ""


def _opposite_orders(answer: Any, _: Any) -> str:
    p, error = _posteriors_form(answer, (3, 3))
    if error:
        return error
    lists = np.array(list(np.ndindex(3, 3, 3)))
    best = np.array([metrics.dcg(g, g) for g in lists])
    share = (2.0**lists - 1) / np.where(best > 0, best, 1)[:, None]
    gain = optimal.expected_gain(p, [0, 1, 3])
    normalised = np.prod(p[np.arange(3), lists], axis=1) @ share
    gaps, others = (x[:, None] - x for x in (gain, normalised))
    if np.any(np.abs(gaps + 2 * np.eye(3)) < 1e-9) or np.any(np.abs(others + 2 * np.eye(3)) < 1e-9):
        return "two of the items are tied, for DCG or for NDCG"
    if np.any(gaps * others > 0):
        return "DCG and NDCG agree on some pair of the items"
    return ""


def _crossing(answer: Any, _: Any) -> str:
    p, error = _posteriors_form(answer, (3,))
    if error:
        return error
    if p[1] >= min(p[0], p[2]) - 1e-12:
        return "a gap of zero between the thresholds is as good as a negative one here"
    return ""


def _thresholds(rng: np.random.Generator) -> list[tuple]:
    random = [(np.sort(rng.normal(size=k)),) for k in (3, 4)]
    return [(np.array([-1.0, 0.0, 2.0]),), *random, (np.array([0.3]),), (np.array([0.0, 0.0]),)]


QUESTIONS = [
    value(
        RISKS,
        1,
        "A pair table under three conventions for ties",
        "an array with a row for each convention (a tie is free, half an error, an error) and a "
        "column for each pair of classes (1 and 2, 1 and 3, 2 and 3)",
        np.array([[1, 0, 0], [1, 0.5, 0], [1, 1, 0]]),
        value="A pair of classes has one rate here, since each class has one item.",
    ),
    function(
        RISKS,
        5,
        "Volume under the surface in one pass",
        "volume(y, scores)",
        _samples_without_ties,
        _volume,
        returns="the volume under the surface",
        hints={"value": "Sort by score, and divide by the product of the class sizes."},
    ),
    value(
        BEST,
        1,
        "The cost at which two films tie",
        "the number t",
        7 / 6,
        value="Set the preference of the divisive film over the safe one to zero.",
    ),
    value(
        CYCLES,
        2,
        "Cycles of three classes",
        "the number of cycles",
        0,
        value="Which rank can an antisymmetric 3 by 3 matrix have?",
    ),
    function(
        CYCLES,
        5,
        "Rank after a change of one cost",
        "rank(K, j, i)",
        _changed_entries,
        _rank,
        returns="the rank of A if the DCG cost of classes j and i of K (labels 1 to K) is raised "
        "by one",
        hints={"value": "A is the transpose of the costs minus the costs."},
    ),
    value(
        CONVEX,
        2,
        "When the logistic loss inverts two films",
        "the share tau above which it does",
        0.25,
        value="Let r be the weight of pairs with the third film relative to that of the first two.",
    ),
    function(
        REGRET,
        1,
        "The constant of the regret bound",
        "kappa(shares, costs)",
        _shares_and_costs,
        _kappa,
        returns="the constant",
        hints={"value": "Z is the probability that the first of two labels is the higher one."},
    ),
    value(
        TOP,
        1,
        "AP, RR and ERR of three grades",
        "three numbers, in this order",
        (5 / 6, 1.0, 7 / 12),
        value="For ERR, a reader stops at a relevant item with probability one half.",
    ),
    value(
        TOP,
        5,
        "NDCG and DCG in opposite orders",
        "an array with a row for each of three items, the probabilities of the grades 0, 1, 2",
        None,
        accepts=_opposite_orders,
        value="The chapter's formula for the normalised gain lets you search.",
    ),
    function(
        ORDINAL,
        1,
        "Costs that ORBoost stands for",
        "orboost_costs(thresholds)",
        _thresholds,
        costs.from_orboost_thresholds,
        returns="the matrix of costs, zero on and below the diagonal",
        hints={"shape": "K - 1 thresholds belong to K classes."},
    ),
    value(
        SVOR,
        1,
        "Best scores of one item",
        "two numbers: with explicit and with implicit constraints",
        (2.0, 2.0),
        value="Where does the slope change its sign?",
    ),
    value(
        SVOR,
        3,
        "A population whose thresholds cross",
        "the posterior of its one kind of item, three numbers",
        None,
        accepts=_crossing,
        value="Compare the risks at the gaps -2 and 0.",
    ),
]
