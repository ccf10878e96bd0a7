"""Boosted rankers against explicit pairs, skordinal's ORBoost and scikit-learn's boosted trees."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.harness import measure, peer, table
from rankbook.datasets import make_tripartite_normal
from rankbook.metrics import pairwise_risk
from rankbook.models import ORBoost, PairwiseBoost, ProportionalOddsBoost, RegressionBoost


def _additive(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Five classes cut from a sum of curves, with logistic noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    utility = np.sin(2 * X[:, :10]).sum(axis=1) + X[:, 10:20].sum(axis=1) / 2
    return X, np.digitize(utility + rng.logistic(size=n), [-4.0, -1.5, 1.5, 4.0])


def _explicit_rounds(
    y: np.ndarray,
    bumps: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    rounds: int,
    every_learner: bool,
) -> None:
    """Rounds of the same method (exponential loss, constant costs) with one weight a pair.

    RankBoost as it is printed sums these weights anew for every learner; a better program gathers
    them at the items first, which leaves O(n) a learner, and still forms all pairs.
    """
    upper, lower = pairs
    scores = np.zeros(len(y))
    for _ in range(rounds):
        loss = np.exp(scores[lower] - scores[upper])
        if every_learner:
            products = np.array([loss @ (h[lower] - h[upper]) for h in bumps.T])
        else:
            gathered = np.bincount(lower, loss, len(y)) - np.bincount(upper, loss, len(y))
            products = gathered @ bumps
        h = bumps[:, np.abs(products).argmax()]
        difference = h[upper] - h[lower]
        t = 0.0
        for _ in range(4):
            now = loss * np.exp(-t * difference)
            t += (now @ difference) / (now @ difference**2)
        scores += t * h


def _against_pairs() -> None:
    """300 rounds with 1500 learners, without pairs and with them."""
    x, y = make_tripartite_normal([500] * 3, rng=0)
    model = PairwiseBoost(costs="constant", consistent=False, weak="joint")
    rows = [("rankbook, no pairs, 300 rounds", measure(lambda: model.fit(x, y)))]
    prepared = y, np.exp(-((x - x.T) ** 2)), np.nonzero(y[:, None] > y)
    peers = (
        (False, "pairs formed, weights gathered at the items, per 300", 10),
        (True, "RankBoost as printed, all pairs for each learner, per 300", 1),
    )
    for every, name, rounds in peers:
        seconds = measure(lambda e=every, r=rounds: _explicit_rounds(*prepared, r, e), 1)
        rows.append((name, seconds * 300 / rounds))
    table("PairwiseBoost, exponential loss, n = 1500, 1500 joint bumps", rows)


def run() -> None:
    """Print times, how they grow, and the risk of each method on a test set."""
    _against_pairs()

    X, y = _additive(10_000, 20, 1)
    rows = [
        (
            "rankbook, 100 rounds of stumps",
            measure(lambda: ORBoost(weak="stump", n_iter=100).fit(X, y), 1),
        )
    ]
    if peer("skordinal") is not None:
        from skordinal.classifiers import ORBoost as Peer

        rows.append(("skordinal, 100 rounds", measure(lambda: Peer(n_estimators=100).fit(X, y), 1)))
    table("ORBoost, n = 1e4, p = 20, K = 5", rows)

    rows, sizes = [], (25_000, 50_000, 100_000)
    for n in sizes:
        X, y = _additive(n, 40, 2)
        rows.append(
            (f"n = {n:6d}", measure(lambda X=X, y=y: PairwiseBoost(n_iter=300).fit(X, y), 1))
        )
    table("PairwiseBoost, 300 rounds, 40 features, univariate bumps", rows)
    slope = np.polyfit(np.log(sizes), np.log([seconds for _, seconds in rows]), 1)[0]
    print(f"  time grows as n to the power {slope:.2f}")

    X, y = _additive(20_000, 40, 3)
    Z, z = _additive(20_000, 40, 4)
    print("\nTest risk (constant costs), n = 2e4, p = 40, 300 rounds")
    methods = (PairwiseBoost, ORBoost, ProportionalOddsBoost, RegressionBoost)
    for method in methods:
        risk = pairwise_risk(z, method(n_iter=300).fit(X, y).decision_function(Z))
        print(f"  {method.__name__:32}  {risk:.4f}")
    trees = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    print(f"  {'HistGradientBoostingRegressor':32}  {pairwise_risk(z, trees.predict(Z)):.4f}")
