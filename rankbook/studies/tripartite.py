r"""Three normal classes, four methods: the simulation of Uematsu and Lee (2013), section 6.1.

A sample has 500 items of each class, :math:`N(-2, 1)`, :math:`N(0, 1)` and :math:`N(2, 1)`. The
boosted methods add up to 300 Gaussian bumps, as many as suit a validation sample of the same size;
a third sample tests. Every fit is also judged without sampling error: by its exact risk, and by its
distance from the score that the population would give. One core takes about four minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from tqdm import tqdm

from rankbook import metrics, optimal
from rankbook.datasets import make_tripartite_normal
from rankbook.models import SVOR, ORBoost, PairwiseBoost, ProportionalOddsBoost
from rankbook.population import NormalMixture

__all__ = ["compute", "draw", "fit", "population_gap", "population_risk", "target"]

MIXTURE = NormalMixture([-2.0, 0.0, 2.0])
A_CLASS = 500
SEEDS = 40
ROUNDS = 300
GRID = np.linspace(-3.0, 3.0, 25)
FINE = np.linspace(-3.0, 3.0, 601)
# Beyond this the density is below 1e-20.
_REACH = 12.0

_BOOST: dict[str, Any] = {"n_iter": ROUNDS, "weak": "joint", "bandwidth": 0.5}
METHODS: dict[str, Callable[[], Any]] = {
    "pairwise": lambda: PairwiseBoost("constant", consistent=True, **_BOOST),
    "pairwise, plain": lambda: PairwiseBoost("constant", consistent=False, **_BOOST),
    "ORBoost": lambda: ORBoost(**_BOOST),
    "proportional odds": lambda: ProportionalOddsBoost("likelihood", **_BOOST),
    "proportional odds, loss alone": lambda: ProportionalOddsBoost("loss", **_BOOST),
    # At the default tolerance scores are determined to 1e-4 only, and differ between processors.
    "SVOR, implicit": lambda: SVOR("implicit", kernel="rbf", C=10.0, gamma=1.0, tol=1e-10),
}
THRESHOLD_METHODS = tuple(METHODS)[2:]


def draw(seed: int, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a balanced sample.

    Parameters
    ----------
    seed : int
        Number of the run.
    part : {"train", "validation", "test"}
        What the sample is for; the three are independent.

    Returns
    -------
    X : ndarray of shape (1500, 1)
        Items.
    y : ndarray of shape (1500,)
        Labels 0, 1, 2.

    Examples
    --------
    >>> X, y = draw(0, "train")
    >>> np.bincount(y).tolist()
    [500, 500, 500]
    """
    rng = np.random.default_rng([seed, ("train", "validation", "test").index(part)])
    return make_tripartite_normal([A_CLASS] * 3, means=MIXTURE.means, rng=rng)


def fit(method: str, seed: int) -> Any:
    """Fit a method as the paper did.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    seed : int
        Number of the run.

    Returns
    -------
    estimator
        The fitted model; a boosted one has as many rounds as suit the validation sample.
    """
    model = METHODS[method]()
    if method.startswith("SVOR"):
        return model.fit(*draw(seed, "train"))
    return model.fit(*draw(seed, "train"), validation=draw(seed, "validation"))


def population_risk(method: str, gap: float) -> float:
    r"""Return the least mean loss of any score, for thresholds a distance apart.

    The score is the best at every point, so that the risk is one integral,
    :math:`\int \min_t r_{p(x)}(t; -g, 0)\, g(x) \dd x`.

    Parameters
    ----------
    method : str
        One of `THRESHOLD_METHODS`.
    gap : float
        :math:`\theta_2 - \theta_1`; positive.

    Returns
    -------
    float
        The risk, by the trapezoidal rule, whose error is below 1e-7.

    Examples
    --------
    >>> population_risk("ORBoost", 2.0) < population_risk("ORBoost", 3.0)
    True
    """
    x = np.linspace(-_REACH, _REACH, 24_001)
    risk = _conditional_risk(method, MIXTURE.posterior(x), np.array([-gap, 0.0]))
    value = float(MIXTURE.density(x) @ risk * (x[1] - x[0]))
    return value - np.log(-np.expm1(-gap)) / 3 if method == "proportional odds" else value


def _conditional_risk(method: str, p: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The least mean threshold losses of items with these posteriors."""
    if method == "ORBoost":
        return 2 * np.sqrt((p[:, :-1] @ np.exp(-theta)) * (p[:, 1:] @ np.exp(theta)))
    if method == "SVOR, implicit":
        t = np.clip(optimal.svor_interval(p, theta)[0], theta[0] - 1, theta[1] + 1)[:, None] - theta
        below = np.cumsum(p, axis=1)[:, :-1]
        each = below * np.maximum(1 + t, 0) + (1 - below) * np.maximum(1 - t, 0)
        return each.sum(axis=1)
    # Where an end class is certain to rounding the score is infinite and the loss is zero.
    t = np.clip(optimal.proportional_odds_score(p, theta), -60.0, 60.0)[:, None] - theta
    return (p[:, :-1] * np.logaddexp(0, t) + p[:, 1:] * np.logaddexp(0, -t)).sum(axis=1)


def population_gap(method: str) -> float:
    r"""Return :math:`\theta_2 - \theta_1` at the least population risk.

    Parameters
    ----------
    method : str
        One of `THRESHOLD_METHODS`.

    Returns
    -------
    float
        The distance of the thresholds.
    """
    found = minimize_scalar(
        lambda gap: population_risk(method, gap),
        bounds=(0.1, 8.0),
        method="bounded",
        options={"xatol": 1e-7},
    )
    return float(found.x)


def plain_target(x: np.ndarray) -> np.ndarray:
    """Return the population's score of the plain exponential pairwise risk, zero at 0.

    The stationarity condition, iterated: half the log of the ratio of two sums of posteriors whose
    weights are exponential sums of the score itself.
    """
    nodes = np.linspace(-_REACH, _REACH, 4801)
    p, mass = MIXTURE.posterior(nodes), MIXTURE.density(nodes)
    mass = mass / mass.sum()
    costs = np.triu(np.ones((3, 3)), 1)
    score = np.zeros(len(nodes))
    for _ in range(200):
        falling, rising = (mass * np.exp(-score)) @ p, (mass * np.exp(score)) @ p
        up, down = costs.T @ rising, costs @ falling
        score = 0.5 * np.log((p @ up) / (p @ down))
        score = score - score[len(score) // 2]
    posterior = MIXTURE.posterior(x)
    at_x = 0.5 * np.log((posterior @ up) / (posterior @ down))
    middle = MIXTURE.posterior([0.0])[0]
    return at_x - 0.5 * np.log((middle @ up) / (middle @ down))


def target(method: str, x: np.ndarray, thresholds: np.ndarray | None = None) -> np.ndarray:
    r"""Return the score that a boosted method aims at.

    Parameters
    ----------
    method : str
        A key of `METHODS`, but SVOR.
    x : ndarray of shape (n,)
        Points.
    thresholds : ndarray of shape (2,), optional
        Where they are, for a method that has thresholds.

    Returns
    -------
    ndarray of shape (n,)
        The minimiser of the conditional risk; for pairs, zero at :math:`x = 0`.

    Examples
    --------
    >>> target("pairwise", np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.3375,  0.    ,  0.3375])
    """
    if method == "pairwise":
        return 0.5 * np.log(optimal.bayes_score(MIXTURE.posterior(x)))
    if method == "pairwise, plain":
        return plain_target(x)
    score = optimal.orboost_score if method == "ORBoost" else optimal.proportional_odds_score
    return score(MIXTURE.posterior(x), thresholds)


def _apart(curve: np.ndarray, aim: np.ndarray) -> list[float]:
    """Greatest distance up to a constant, on [-2, 2] and [-3, 3]."""
    off = curve - aim
    return [float(np.ptp(off[np.abs(FINE) <= end + 1e-9]) / 2) for end in (2.0, 3.0)]


def measure(method: str, seed: int) -> dict[str, Any]:
    """Return all that is recorded of a fit.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    seed : int
        Number of the run.

    Returns
    -------
    dict
        ``risk`` (exact) and ``test_risk``; ``curve``, the scores on `GRID`; and where they exist
        ``thresholds``, ``rounds``, ``thresholds_300`` (without validation) and ``apart``, the
        greatest distance up to a constant from the method's own target on [-2, 2] and [-3, 3]
        (``apart_consistent``: for the plain pairs, from the target with the term).
    """
    model = fit(method, seed)
    X, y = draw(seed, "test")
    curve = model.decision_function(FINE[:, None])
    found: dict[str, Any] = {
        "risk": MIXTURE.risk(model.decision_function),
        "test_risk": metrics.pairwise_risk(y, model.decision_function(X)),
        "curve": np.interp(GRID, FINE, curve).round(5).tolist(),
    }
    if method in THRESHOLD_METHODS:
        found["thresholds"] = model.thresholds_.tolist()
    if method.startswith("SVOR"):
        return found
    found["rounds"] = model.n_iter_
    if method in THRESHOLD_METHODS:
        found["thresholds_300"] = model.threshold_path_[-1].tolist()
    thresholds = found.get("thresholds")
    found["apart"] = _apart(curve, target(method, FINE, thresholds))
    if method == "pairwise, plain":
        found["apart_consistent"] = _apart(curve, target("pairwise", FINE))
    return found


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Run every method on every seed, and find the population's values.

    Parameters
    ----------
    quick : bool, default=False
        The first seed alone.
    progress : bool, default=True
        Show a progress bar over the seeds.

    Returns
    -------
    dict
        ``bayes_risk``; ``population``, the distance of the thresholds by method; and ``runs``,
        one for each seed: what `measure` returns, by method.
    """
    seeds = range(1 if quick else SEEDS)
    runs = [
        {"seed": seed, **{method: measure(method, seed) for method in METHODS}}
        for seed in tqdm(seeds, desc="samples", disable=not progress)
    ]
    return {
        "grid": GRID.tolist(),
        "bayes_risk": MIXTURE.bayes_risk(),
        "population": {method: population_gap(method) for method in THRESHOLD_METHODS},
        "runs": runs,
    }
