"""SVOR and RankBoundarySVM against skordinal's SVOR and REDSVM: time, objective, memory."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness import measure, peak_memory, peer, table
from rankbook.models import SVOR, RankBoundarySVM


def _sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, [1 / 3, 2 / 3]), score)


def _peers(C: float) -> list[tuple[str, object]]:
    skordinal = peer("skordinal")
    if skordinal is None:
        return []
    from skordinal import classifiers

    return [
        ("skordinal SVOR", classifiers.SVOR(C=C, kernel="rbf", gamma=1.0)),
        ("skordinal REDSVM", classifiers.REDSVM(C=C, kernel="rbf", gamma=1.0)),
    ]


def _against_peers(n: int, C: float) -> None:
    X, y = _sample(n)
    model = SVOR(gamma=1.0, C=C)
    rows = [("rankbook SVOR", measure(lambda: model.fit(X, y), 1))]
    rows += [(name, measure(lambda m=other: m.fit(X, y), 1)) for name, other in _peers(C)]
    table(f"SVOR, implicit, n = {n}, C = {C:g}, K = 3, rbf", rows)
    print(f"  objective {model.objective_:.8g}, relative gap {model.dual_gap_:.1e}")


def _with_ridge(n: int = 200, C: float = 10.0) -> None:
    """The kernel plus the 0.001 that skordinal's solver adds to its diagonal."""
    X, y = _sample(n)
    K = rbf_kernel(X, gamma=1.0)
    plain = SVOR(kernel="precomputed", C=C).fit(K, y)
    ridge = SVOR(kernel="precomputed", C=C).fit(K + 1e-3 * np.eye(n), y)
    print(f"\nObjective without and with the ridge: {plain.objective_:.8g}, {ridge.objective_:.8g}")
    for name, other in _peers(C)[:1]:
        labels = np.asarray(other.fit(X, y).predict(X))
        print(f"  {name}: {np.mean(labels == ridge.predict(K)):.1%} of labels as with the ridge")


def run() -> None:
    """Print times against skordinal, cost against n, pairs, and the memory of 50,000 items."""
    for n, C in ((3000, 10.0), (3000, 500.0)):
        _against_peers(n, C)
    _with_ridge()
    sizes = (500, 1000, 2000, 4000, 8000)
    rows = []
    for n in sizes:
        X, y = _sample(n)
        rows.append((f"n = {n}", measure(lambda X=X, y=y: SVOR(gamma=1.0).fit(X, y), 1)))
    table("SVOR, implicit, C = 1: cost against n", rows)
    slope = np.polyfit(np.log(sizes), np.log([seconds for _, seconds in rows]), 1)[0]
    print(f"  slope on a log-log scale: {slope:.2f}")
    X, y = _sample(1000)
    pairs = RankBoundarySVM(gamma=1.0, C=0.1)
    table(
        "RankBoundarySVM, n = 1000, all pairs", [("rankbook", measure(lambda: pairs.fit(X, y), 1))]
    )
    print(f"  relative gap {pairs.dual_gap_:.1e}")
    X, y = _sample(50_000)
    large = SVOR(gamma=0.1, C=0.1)
    table("SVOR, n = 50,000, rbf gamma 0.1", [("rankbook", measure(lambda: large.fit(X, y), 1))])
    print(f"  rank {large.rank_}, relative gap {large.dual_gap_:.1e}, {peak_memory():.2f} GB")
