"""Right answers, as the chapters give them, and three or more typical wrong ones, by exercise."""

import ast
import json
from math import comb
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from rankbook import bounds, costs, graphs, metrics

ROOT = Path(__file__).resolve().parents[2]


def from_chapter(chapter, *names):
    """The functions of these names that the chapter's code defines."""
    notebook = json.loads((ROOT / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    space = {"np": np}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            for node in ast.parse("".join(cell["source"])).body:
                if isinstance(node, ast.FunctionDef) and node.name in names:
                    exec(ast.unparse(node), space)  # noqa: S102 - our own chapters
    return [space[name] for name in names]


(by_counting,) = from_chapter("multipartite/risks", "by_counting")
(noise,) = from_chapter("bipartite/does_pairwise_pay", "noise")
hinge_sorted, _ = from_chapter("algorithms/linear_time_pairs", "hinge_sorted", "suffix_sums")


def auc_variance(mean, sd, m, n):
    """The solution of 1.3, with the trapezoidal rule of the chapter."""
    grid = np.linspace(-30, 30, 40001)
    q1 = np.trapezoid((1 - ndtr((grid - mean) / sd)) ** 2 * norm.pdf(grid), grid)
    q2 = np.trapezoid(ndtr(grid) ** 2 * norm.pdf(grid, mean, sd), grid)
    a = ndtr(mean / np.sqrt(1 + sd**2))
    return (a * (1 - a) + (m - 1) * (q1 - a**2) + (n - 1) * (q2 - a**2)) / (m * n)


def false_negatives(prior, risk):
    kappa, q = noise(prior, risk)
    return kappa * q / (1 - prior)


def false_positives(prior, risk):
    kappa, q = noise(prior, risk)
    return kappa * (1 - q) / prior


def changed_negatives(prior, risk):
    q = prior * (1 - 2 * risk)
    return q, (prior - q) / (1 - q)


def rank(K, j, i):
    changed = costs.dcg(K)
    changed[j - 1, i - 1] += 1
    return np.linalg.matrix_rank(changed.T - changed)


def kappa(shares, c):
    z = (1 - (shares**2).sum()) / 2
    return c[0] @ shares * (c[:, -1] @ shares) / c[0, -1] / z


def orboost_costs(thresholds):
    return costs.from_orboost_thresholds(thresholds)


def excess(w):
    net = (w - w.T).sum(axis=1)
    return graphs.edge_loss(net, w) / graphs.minimum_edge_loss(w) - 1


def probit_thresholds(counts):
    return ndtri(np.cumsum(counts / counts.sum())[:-1])


def cuts(scores, y):
    """Fewest wrong labels, by trying every tuple of observed scores."""
    K = y.max() + 1
    places = np.r_[-np.inf, np.unique(scores)]
    best = None
    for tuple_ in np.ndindex(*(len(places),) * (K - 1)):
        if all(a <= b for a, b in zip(tuple_, tuple_[1:], strict=False)):
            t = places[list(tuple_)]
            wrong = (np.searchsorted(t, scores) != y).sum()
            if best is None or wrong < best[0]:
                best = wrong, t
    return best[1]


def midpoints(scores, y):
    """The cuts of someone who takes the means of neighbouring classes."""
    means = [scores[y == k].mean() for k in range(y.max() + 1)]
    return np.sort(np.convolve(means, [0.5, 0.5], "valid"))


GAMBLE, SURE = [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]
TRIO = np.array([GAMBLE, [0.25, 0.5, 0.25], SURE])
A152 = np.array([[0, 1, 6], [0, 0, 2], [3, 0, 0]])

RIGHT = {
    "1.1": metrics.auc([1, 0, 1, 0], [3, 2, 2, 1]),
    "1.3": auc_variance,
    "2.2": 1,
    "3.2": [
        bounds.rank_regret_bound("logistic", 0.01),
        bounds.rank_regret_bound("logistic", 0.01, constant="printed"),
    ],
    "4.1": false_negatives,
    "4.4": changed_negatives,
    "5.1": [
        metrics.pair_error_rates([1, 2, 3], [2, 1, 2], ties=t)[np.triu_indices(3, 1)]
        for t in (0.0, 0.5, 1.0)
    ],
    "5.5": by_counting,
    "6.1": 7 / 6,
    "7.2": 0,
    "7.5": rank,
    "8.2": 0.25,
    "9.1": kappa,
    "10.1": (5 / 6, 1, 7 / 12),
    "10.5": TRIO,
    "11.1": orboost_costs,
    "12.1": (2, 2),
    "12.3": [0.4, 0.2, 0.4],
    "13.1": (9, 2),
    "13.5": excess,
    "14.2": 0.6,
    "14.6": 2 / 7,
    "15.2": A152,
    "16.1": (4, 15, 1, 20),
    "17.2": (3, 1, 1),
    "18.1": probit_thresholds,
    "20.2": hinge_sorted,
    "21.6": cuts,
    "22.2": lambda K, n: (1 - 1 / K) * (1 / K) * 2 / (n * (n - 1)),
    "22.5": ([0, 0, 1], [1, 0, 0], [0.01, 0.98, 0.01]),
    "25.2": [metrics.err(g, [3, 2, 1], max_grade=2) for g in ([2, 0, 1], [0, 2, 1])],
}

WRONG = {
    "1.1": [0.75, 1.0, True, "7/8", [7 / 8], np.nan],
    "1.3": [
        lambda mean, sd, m, n: auc_variance(mean, sd, n, m),  # sizes exchanged
        lambda mean, sd, m, n: np.sqrt(auc_variance(mean, sd, m, n)),
        lambda mean, sd, m, n: auc_variance(mean, 1.0, m, n),
        lambda mean, sd, m, n: ndtr(mean / np.hypot(1, sd)) * ndtr(-mean / np.hypot(1, sd)) / m / n,
    ],
    "2.2": [0, 2, 0.5],
    "3.2": [(0.2, np.sqrt(8 / 3) * 0.1), (0.0163, 0.02), 0.1633],
    "4.1": [false_positives, lambda p, r: noise(p, r)[0], lambda p, r: noise(p, r)[0] * p],
    "4.4": [
        lambda p, r: changed_negatives(p, r)[::-1],
        lambda p, r: noise(p, r)[::-1],
        lambda p, r: (p * (1 - 2 * r), 2 * r * p),
    ],
    "5.1": [np.zeros((3, 3)), [[0, 0.5, 1]] * 3, [1, 0.5, 0]],
    "5.5": [
        lambda y, s: 1 - by_counting(y, s),
        lambda y, s: by_counting(y, np.arange(len(y))),  # not sorted
        lambda y, s: by_counting(y, s) * np.prod(np.bincount(y)[1:]),  # not divided
        lambda y, s: metrics.u_cons(y, s),
    ],
    "6.1": [6 / 7, 1.0, 2.0, "7/6"],
    "7.2": [1, 2, None],
    "7.5": [lambda K, j, i: 2, lambda K, j, i: K, lambda K, j, i: 2 if j == 1 else 4],
    "8.2": [1 / 3, 2 / 3, 0.5],
    "9.1": [
        lambda p, c: kappa(p, c) / 2,
        lambda p, c: kappa(p[::-1], c),
        lambda p, c: kappa(p, c) * c[0, -1],
        lambda p, c: 4 / 3,
    ],
    "10.1": [(2 / 3, 1, 7 / 12), (5 / 6, 0.5, 7 / 12), (5 / 6, 1, 2 / 3), 5 / 6],
    "10.5": [TRIO[[0, 2]], np.array([GAMBLE, GAMBLE, SURE]), np.eye(3), TRIO * 2, "none", np.pi],
    "11.1": [
        lambda t: costs.linear(len(t) + 1),
        lambda t: costs.from_orboost_thresholds(t).T,
        lambda t: costs.from_orboost_thresholds(t)[:-1, :-1],
        lambda t: np.exp(costs.from_orboost_thresholds(t)),
    ],
    "12.1": [(2, 0), (0, 2), (1, 1)],
    "12.3": [[0.3, 0.4, 0.3], [0.1, 0.2, 0.7], [0.4, 0.2], [0.5, 0.2, 0.4], None],
    "13.1": [(10, 2), (9, 1), (2, 9)],
    "13.5": [
        lambda w: excess(w.T),
        lambda w: excess(w) + 1,
        lambda w: graphs.edge_loss(w.sum(axis=1) - w.sum(axis=0), w),
        lambda w: 0.0,
    ],
    "14.2": [0.2, 0.8, 0.0],
    "14.6": [0.25, 0.3, 5 / 7],
    "15.2": [
        2 * A152,
        A152.T * 0 + 1 - np.eye(3, dtype=int),
        A152 + 0.5,
        A152[:2],
        [[0, 5, 1]] * 3,
    ],
    "16.1": [(15, 4, 1, 20), (4, 15, -1, 20), (4, 15, 1, 50)],
    "17.2": [(1, 1, 1), (1, 1, 4), (0, 1, 2), (1, 1)],
    "18.1": [
        lambda c: ndtri(np.cumsum(c / c.sum())),  # one too many
        lambda c: ndtri(c / c.sum())[:-1],
        lambda c: np.log(np.cumsum(c)[:-1] / np.cumsum(c[::-1])[-2::-1]),  # logit
        lambda c: -probit_thresholds(c),
    ],
    "20.2": [
        lambda p, n: hinge_sorted(n, p),
        lambda p, n: hinge_sorted(p, n) / (len(p) * len(n)),
        lambda p, n: np.maximum(n[:, None] - p, 0).sum(),
        lambda p, n: np.maximum(1 - np.subtract.outer(p, n), 0).sum(axis=1),
    ],
    "21.6": [
        midpoints,
        lambda s, y: cuts(s, y)[::-1],
        lambda s, y: cuts(s, y)[:-1],
        lambda s, y: y,
    ],
    "22.2": [
        lambda K, n: 0.0,
        lambda K, n: (1 - 1 / K) / K / n,
        lambda K, n: (1 - 1 / K) / K * comb(n, 2),
        lambda K, n: (1 - 1 / K) / comb(n, 2),
    ],
    "22.5": [
        ([0, 1, 2], [0, 0, 1], [0.3, 0.3, 0.4]),
        ([0, 0, 1], [1, 1, 1], [0.01, 0.98, 0.01]),
        ([0, 0, 1], [1, 0, 0], [0.5, 0.25, 0.25]),
        ([0, 0, 1], [1, 0, 0], [0.1, 0.98, 0.01]),
        None,
    ],
    "25.2": [(0.3958, 0.7708), (0.75, 0.375), 0.7708],
}
