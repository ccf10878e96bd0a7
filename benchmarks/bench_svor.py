"""SVOR and RankBoundarySVM against skordinal's SVOR and REDSVM: time, objective, memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness import limited, measure, peak_memory, peer, table
from rankbook.exceptions import KernelMemoryError
from rankbook.models import SVOR, RankBoundarySVM

# What skordinal's solver adds to the diagonal of the kernel.
_RIDGE = 1e-3
# Wall seconds after which a peer is stopped; its time is then a lower bound.
_LIMIT = 75.0
_SIZES = (500, 1000, 2000, 4000, 8000)


def _sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, [1 / 3, 2 / 3]), score)


def _peers(C: float) -> list[tuple[str, Any]]:
    skordinal = peer("skordinal")
    if skordinal is None:
        return []
    from skordinal import classifiers

    return [
        ("skordinal REDSVM", classifiers.REDSVM(C=C, kernel="rbf", gamma=1.0)),
        ("skordinal SVOR", classifiers.SVOR(C=C, kernel="rbf", gamma=1.0)),
    ]


def _objective(
    K: np.ndarray, y: np.ndarray, beta: np.ndarray, thresholds: np.ndarray, C: float
) -> float:
    """The implicit machine's objective."""
    f = K @ beta
    sign = np.where(y[:, None] > np.arange(len(thresholds)), 1.0, -1.0)
    hinges = np.maximum(1.0 - sign * (f[:, None] - thresholds), 0.0).sum()
    return float(0.5 * beta @ f + C * hinges)


def _peer_fit(
    model: Any, X: np.ndarray, y: np.ndarray, C: float
) -> tuple[float, tuple[float, float] | None]:
    """CPU seconds, and for its SVOR the objectives with the kernel, and with the ridge added."""
    seconds = measure(lambda: model.fit(X, y), 1)
    if "alpha" not in model.model_:
        return seconds, None
    K, beta = rbf_kernel(X, gamma=1.0), np.asarray(model.model_["alpha"])
    ridge = K + _RIDGE * np.eye(len(K))
    return seconds, (
        _objective(K, y, beta, model.thresholds_, C),
        _objective(ridge, y, beta, model.thresholds_, C),
    )


def _against_peers(n: int, C: float) -> None:
    X, y = _sample(n)
    model = SVOR(gamma=1.0, C=C)
    rows, notes = [("rankbook SVOR", measure(lambda: model.fit(X, y), 1))], []
    for name, other in _peers(C):
        found, spent = limited(lambda m=other: _peer_fit(m, X, y, C), _LIMIT)
        if found is None:
            rows.append((f"{name} (stopped: at least)", spent))
            continue
        seconds, objectives = found
        rows.append((name, seconds))
        if objectives is not None:
            notes.append(
                f"  {name}: objective {objectives[0]:.8g}, "
                f"{objectives[0] / model.objective_ - 1:+.2%}; with its ridge {objectives[1]:.8g}"
            )
    table(f"SVOR, implicit, n = {n}, C = {C:g}, K = 3, rbf", rows)
    print(f"  objective {model.objective_:.8g}, relative gap {model.dual_gap_:.1e}")
    print(*notes, sep="\n")


def _with_ridge(n: int = 300) -> None:
    """Both programs on the kernel plus the ridge, where both solve the same problem."""
    X, y = _sample(n)
    K = rbf_kernel(X, gamma=1.0)
    for C in (10.0, 500.0):
        ridge = SVOR(kernel="precomputed", C=C).fit(K + _RIDGE * np.eye(n), y)
        print(f"\nKernel plus {_RIDGE}, n = {n}, C = {C:g}: objective {ridge.objective_:.8g}")
        for name, other in _peers(C)[1:]:
            _, objectives = _peer_fit(other, X, y, C)
            assert objectives is not None
            print(f"  {name}: {objectives[1]:.8g}, {objectives[1] / ridge.objective_ - 1:+.2e}")


def _large(n: int = 50_000) -> None:
    """Fit n items with a kernel of low rank, and print what it took."""
    X, y = _sample(n)
    model = SVOR(gamma=0.1, C=0.1)
    seconds = measure(lambda: model.fit(X, y), 1)
    print(f"\nSVOR, n = {n:,}, rbf gamma 0.1, in a process of its own: {seconds:.1f} CPU s")
    print(f"  rank {model.rank_}, relative gap {model.dual_gap_:.1e}, {peak_memory():.2f} GB")


def _cost_against_n() -> None:
    rows = []
    for n in _SIZES:
        X, y = _sample(n)
        rows.append((f"n = {n}", measure(lambda X=X, y=y: SVOR(gamma=1.0).fit(X, y), 1)))
    table("SVOR, implicit, C = 1: cost against n", rows)
    slope = np.polyfit(np.log(_SIZES), np.log([seconds for _, seconds in rows]), 1)[0]
    print(f"  slope on a log-log scale: {slope:.2f}")


def _pairs() -> None:
    X, y = _sample(1000)
    pairs = RankBoundarySVM(gamma=1.0, C=0.1)
    seconds = measure(lambda: pairs.fit(X, y), 1)
    table("RankBoundarySVM, n = 1000, all pairs", [("rankbook", seconds)])
    print(f"  relative gap {pairs.dual_gap_:.1e}")


def _too_large() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 5))
    try:
        SVOR(gamma=50.0).fit(X, np.arange(len(X)) % 3)
    except KernelMemoryError as error:
        print(f"\nNo low rank, n = 50,000: {error}")


_PARTS = {
    "c10": lambda: _against_peers(3000, 10.0),
    "c500": lambda: _against_peers(3000, 500.0),
    "ridge": _with_ridge,
    "cost": _cost_against_n,
    "pairs": _pairs,
    "large": _large,
    "error": _too_large,
}


def run() -> None:
    """Print times against skordinal, cost against n, pairs, and the memory of 50,000 items."""
    for name, part in _PARTS.items():
        if name == "large":
            # The most memory that a process ever held is its own alone if it does nothing else.
            subprocess.run([sys.executable, "-m", "benchmarks.bench_svor", name], check=True)
        else:
            part()


if __name__ == "__main__":
    for _name in sys.argv[1:]:
        _PARTS[_name]()
