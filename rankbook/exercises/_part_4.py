"""Exercises of Part IV, algorithms."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from scipy.special import ndtri

from rankbook import metrics
from rankbook.exercises._make import function, value

CLM, PAIRS = "algorithms/cumulative_link", "algorithms/linear_time_pairs"
BOUNDARIES, MANY = "algorithms/rank_boundaries", "algorithms/how_many_pairs"
COSTS = "algorithms/ordinal_costs"


def _counts(rng: np.random.Generator) -> list[tuple]:
    random = [(rng.integers(1, 40, k),) for k in (4, 6)]
    return [*random, (np.array([1, 1]),), (np.array([1, 98, 1]),)]


def _probit_thresholds(counts: np.ndarray) -> np.ndarray:
    return ndtri(np.cumsum(counts)[:-1] / np.sum(counts))


def _two_samples(rng: np.random.Generator) -> list[tuple]:
    random = [(rng.normal(1, 1, m), rng.normal(0, 1, n)) for m, n in ((7, 9), (20, 4))]
    ties = (rng.integers(0, 4, 10).astype(float), rng.integers(0, 4, 6).astype(float))
    return [*random, ties, (np.array([2.0]), np.array([0.0])), (np.zeros(3), np.zeros(2))]


def _hinge(positive: np.ndarray, negative: np.ndarray) -> float:
    return float(np.maximum(1 - (positive[:, None] - negative), 0).sum())


def _labelled_scores(rng: np.random.Generator) -> list[tuple]:
    found: list[tuple] = []
    for K, n in ((3, 20), (4, 12)):
        y = rng.permutation(np.append(np.arange(K), rng.integers(0, K, n)))
        found.append((y + 1.2 * rng.normal(size=len(y)), y))
    ties = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 2.0]), np.array([0, 1, 0, 1, 2, 2])
    reversed_ = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0, 1, 2, 2])
    return [*found, ties, reversed_]


def _least_errors(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The scores, the labels, and the least number of wrong labels, by dynamic programming."""
    K = int(y.max()) + 1
    levels, group = np.unique(scores, return_inverse=True)
    wrong = np.zeros((len(levels), K), dtype=int)
    for label in range(K):
        wrong[:, label] = np.bincount(group[y != label], minlength=len(levels))
    best = np.zeros(K, dtype=int)
    for row in wrong:  # best[k]: least errors so far if the last level has label k or lower
        best = np.minimum.accumulate(best) + row
    return scores, y, int(best.min())


def _good_cuts(answer: Any, expected: Any) -> str:
    scores, y, least = expected
    cuts = np.asarray(answer, dtype=float)
    if cuts.shape != (int(y.max()),):
        return f"{int(y.max())} thresholds are wanted here, the result has shape {cuts.shape}"
    if np.any(np.isnan(cuts)) or np.any(cuts[1:] < cuts[:-1]):
        return "the thresholds should be in increasing order"
    wrong = int(np.sum(np.searchsorted(cuts, scores, side="left") != y))
    return "" if wrong == least else f"{wrong} labels are wrong; other thresholds have fewer"


def _labels_and_items(rng: np.random.Generator) -> list[tuple]:
    random = [(int(rng.integers(3, 9)), int(rng.integers(5, 60))) for _ in range(2)]
    return [*random, (2, 2), (2, 10)]


def _share_variance(K: int, n: int) -> float:
    return (1 - 1 / K) / K / comb(n, 2)


def _few_pairs(answer: Any, _: Any) -> str:
    scores, y, mass = (np.asarray(part, dtype=float) for part in answer)
    if not scores.shape == y.shape == mass.shape == (3,) or len(np.unique(y)) != 2:
        return "three scores, three labels (two of them different) and three masses are wanted"
    if np.any(mass <= 0) or abs(mass.sum() - 1) > 1e-9:
        return "the masses should be positive and sum to 1"
    order = np.sign(scores[:, None] - scores) * np.sign(y[:, None] - y)
    kappa = (y[:, None] != y) & (order <= 0)
    mean = kappa @ mass
    risk = mean @ mass
    if risk * (1 - risk) < 1e-12:
        return "the loss of a pair is constant, so that nothing varies"
    ratio = (mass @ (mean - risk) ** 2) / (risk * (1 - risk))
    worth = comb(100, 2) / (1 + 2 * 98 * ratio)
    return "" if worth < 60 else f"a hundred items are worth {worth:.1f} pairs here"


_ERR = tuple(metrics.err(grades, [3, 2, 1], max_grade=2) for grades in ([2, 0, 1], [0, 2, 1]))

QUESTIONS = [
    function(
        CLM,
        1,
        "Thresholds of the probit link without inputs",
        "thresholds(counts)",
        _counts,
        _probit_thresholds,
        returns="the fitted thresholds, from the number of items of each label",
        hints={"shape": "K labels have K - 1 thresholds."},
    ),
    function(
        PAIRS,
        2,
        "The hinge over all pairs with one sort",
        "hinge_sorted(positive, negative)",
        _two_samples,
        _hinge,
        returns="the sum of the hinges over all pairs of a positive and a negative score",
        hints={"value": "What happens where no negative, or every one, is within the margin?"},
    ),
    function(
        BOUNDARIES,
        6,
        "Thresholds with the fewest wrong labels",
        "cuts(scores, y)",
        _labelled_scores,
        _least_errors,
        returns="the K - 1 thresholds, in increasing order, for labels 0 to K - 1 (label k if "
        "cut k - 1 < score <= cut k)",
        accepts=_good_cuts,
        hints={"value": "Tied scores get one label, and a label may stay unused."},
    ),
    function(
        MANY,
        2,
        "Variance of the share of pairs",
        "share_variance(K, n)",
        _labels_and_items,
        _share_variance,
        returns="the variance of the share of pairs with different labels among n items with K "
        "equally frequent labels",
        hints={"value": "One label says nothing about the pairs that it will be in."},
    ),
    value(
        MANY,
        5,
        "A hundred items worth few pairs",
        "three lists of three: scores, labels and masses of the atoms",
        None,
        accepts=_few_pairs,
        value="When does the loss of a pair hang on one of its items?",
    ),
    value(
        COSTS,
        2,
        "ERR of two lists",
        "two numbers",
        _ERR,
        tolerance=1e-4,
        value="Grade g of 0 to 2 stops a reader with probability (2^g - 1) / 4.",
    ),
]
