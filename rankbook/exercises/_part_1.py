"""Exercises of Part I, two labels."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from rankbook.exercises._make import function, value

AUC, SURROGATES = "bipartite/auc", "bipartite/surrogate_losses"
REDUCTION, PAY = "bipartite/reduction", "bipartite/does_pairwise_pay"


def _auc_variance(mean: float, sd: float, n_positive: int, n_negative: int) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(400)
    z, weights = 10 * nodes, 10 * weights * np.exp(-50 * nodes**2) / np.sqrt(2 * np.pi)
    area = ndtr(mean / np.hypot(1, sd))
    two_positives = weights @ ndtr((mean - z) / sd) ** 2
    two_negatives = weights @ ndtr(mean + sd * z) ** 2
    rest = (n_positive - 1) * (two_positives - area**2)
    rest += (n_negative - 1) * (two_negatives - area**2)
    return float((area * (1 - area) + rest) / (n_positive * n_negative))


def _normal_models(rng: np.random.Generator) -> list[tuple]:
    random = [
        (rng.uniform(0, 2), rng.uniform(0.7, 2), *map(int, rng.integers(5, 200, 2)))
        for _ in range(2)
    ]
    return [*random, (1.0, 2.0, 50, 50), (0.0, 1.0, 1, 1), (1.0, 1.0, 1, 30)]


def _noise(prior: float, risk: float) -> tuple[float, float]:
    v = prior * (1 - prior)
    b = 1 - 2 * v * (1 - 2 * risk)
    kappa = (b - np.sqrt(b**2 - 8 * v * risk)) / 2
    return kappa, (prior - kappa) / (1 - 2 * kappa)


def _false_negatives(prior: float, risk: float) -> float:
    kappa, q = _noise(prior, risk)
    return kappa * q / (1 - prior)


def _priors_and_risks(rng: np.random.Generator) -> list[tuple]:
    random = [(rng.uniform(0.1, 0.9), rng.uniform(0.05, 0.4)) for _ in range(2)]
    return [*random, (0.9, 0.3), (0.5, 0.1), (0.7, 0.0)]


def _changed_negatives(prior: float, risk: float) -> tuple[float, float]:
    q = prior * (1 - 2 * risk)
    return q, (prior - q) / (1 - q)


QUESTIONS = [
    value(
        AUC,
        1,
        "AUC of four items with a tie",
        "the number",
        7 / 8,
        value="How much does a tied pair count?",
    ),
    function(
        AUC,
        3,
        "Variance of the empirical AUC",
        "variance(mean, sd, n_positive, n_negative)",
        _normal_models,
        _auc_variance,
        returns="the variance of the AUC of so many positives from N(mean, sd²) and so many "
        "negatives from N(0, 1)",
        tolerance=1e-6,
        hints={"value": "Which of the two integrals goes with the number of positives?"},
    ),
    value(
        SURROGATES,
        2,
        "Hinge minimiser of two kinds of item",
        "the least distance of the two scores at a minimum, a number",
        1.0,
        value="Where does the slope of the risk, as a function of the distance, change its sign?",
    ),
    value(
        REDUCTION,
        2,
        "How large a rank regret can be",
        "two numbers, by the sharp and by the printed constant",
        (np.sqrt(8 / 3) * 0.1, 0.2),
        tolerance=1e-4,
        value="The regret enters under a square root.",
    ),
    function(
        PAY,
        1,
        "Share of false negative labels",
        "false_negatives(prior, risk)",
        _priors_and_risks,
        _false_negatives,
        returns="the share of the negative labels that is false",
        hints={"value": "A false negative label is a clean positive that was changed."},
    ),
    function(
        PAY,
        4,
        "Noise among the clean negatives alone",
        "noise(prior, risk)",
        _priors_and_risks,
        _changed_negatives,
        returns="the clean share q and the probability that a clean negative is changed",
        hints={"value": "No negative label is on the upper level now."},
    ),
]
