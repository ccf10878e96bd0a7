"""PairwiseRanker against dlib's svm_rank_trainer and explicit pairs, and its cost against n.

``python -m benchmarks pairwise`` prints the tables. ``python -m benchmarks.bench_pairwise --write``
also renews the small results file that the book's chapter on linear-time pairs reads.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.harness import measure, peak_memory, peer, table  # first: fixes the threads

# isort: split
import numpy as np
from sklearn.svm import LinearSVC

from rankbook.models import PairwiseRanker
from rankbook.solvers.pair_sums import PairSums

RESULTS = Path(__file__).parents[1] / "book" / "algorithms" / "linear_time_pairs_scaling.json"
LOSSES = ("exponential", "logistic", "squared_hinge", "hinge")
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
ALPHA = 1e-3
N_FEATURES = 50
SEED = 0


def sample(n: int, p: int = N_FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of n items from a noisy linear score."""
    rng = np.random.default_rng(SEED)
    coef = rng.normal(size=p) / np.sqrt(p)
    X = rng.normal(size=(n, p))
    return X, (X @ coef + rng.normal(size=n) > 0).astype(int)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log seconds on log n."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def fit_seconds(loss: str, X: np.ndarray, y: np.ndarray, repeat: int = 2, **settings) -> float:
    """CPU seconds of one fit."""
    settings = {"alpha": ALPHA} | settings
    return measure(lambda: PairwiseRanker(loss, **settings).fit(X, y), repeat=repeat)


def dlib_data(dlib, X: np.ndarray, y: np.ndarray):
    """The sample as dlib wants it; not timed."""
    data = dlib.ranking_pair()
    for row in X[y == 1]:
        data.relevant.append(dlib.vector(row))
    for row in X[y == 0]:
        data.nonrelevant.append(dlib.vector(row))
    return data


def against_dlib(n: int = 100_000, alphas: tuple[float, ...] = (1.0, 1e-1, 1e-2, ALPHA)) -> float:
    """The hinge at several ridges, both objectives shown; return dlib's seconds at the last one.

    dlib minimises w'w / 2 + c times the mean pair hinge, so c = 1 / alpha, to a relative 1e-3;
    PairwiseRanker to 1e-6 unless told otherwise.
    """
    dlib = peer("dlib")
    if dlib is None:
        return float("nan")
    X, y = sample(n)
    data, sums = dlib_data(dlib, X, y), PairSums(y, "hinge")
    print(f"\nPair hinge, n = {n}, p = {N_FEATURES}: CPU s and objective")
    print("      alpha      ours (tol 1e-6)      ours (tol 1e-3)                 dlib    ratios")
    for alpha in alphas:
        trainer, models, cells, seconds = dlib.svm_rank_trainer(), [], [], []
        trainer.c = 1.0 / alpha
        for tol in (1e-6, 1e-3):
            seconds.append(fit_seconds("hinge", X, y, alpha=alpha, tol=tol))
            value = PairwiseRanker("hinge", alpha=alpha, tol=tol).fit(X, y).objective_
            cells.append(f"{seconds[-1]:8.3f} {value:11.7f}")
        theirs = measure(lambda t=trainer, m=models: m.append(t.train(data)), repeat=1)
        w = np.array(models[0].weights)
        value = sums.at(X @ w).value / sums.total + alpha / 2 * w @ w
        cells.append(f"{theirs:8.3f} {value:11.7f}")
        ratios = " ".join(f"{theirs / s:6.1f}" for s in seconds)
        print(f"  {alpha:9.0e} " + " ".join(cells) + f"  {ratios}")
    return theirs


def explicit_seconds(n: int) -> float:
    """CPU seconds to form all pairs and hand them to LinearSVC: what this package replaces."""
    X, y = sample(n)

    def run() -> None:
        differences = (X[y == 1][:, None, :] - X[y == 0][None, :, :]).reshape(-1, X.shape[1])
        sign = np.where(np.arange(len(differences)) % 2, 1, -1)
        svc = LinearSVC(C=1.0 / (ALPHA * len(sign)), fit_intercept=False, max_iter=100)
        svc.fit(differences * sign[:, None], sign)

    return measure(run, repeat=1)


def against_peers(dlib_seconds: float, n: int = 1_000_000, n_peer: int = 100_000) -> None:
    """The large fit, and peers scaled to its size: dlib linearly, which favours it, as it sorts."""
    X, y = sample(n)
    rows = [(f"PairwiseRanker {loss}", fit_seconds(loss, X, y)) for loss in LOSSES]
    del X, y
    if np.isfinite(dlib_seconds):
        scale = n // n_peer
        rows.append((f"dlib svm_rank_trainer, {scale} x n = {n_peer:.0e}", scale * dlib_seconds))
    small = 1000
    scale = (n / small) ** 2
    seconds = scale * explicit_seconds(small)
    rows.append((f"LinearSVC on explicit pairs, {scale:.0e} x n = {small}", seconds))
    table(f"Pairwise ranking, n = {n}, p = {N_FEATURES}, alpha = {ALPHA:g}", rows)
    seconds = dict(rows)
    ratio = seconds["PairwiseRanker logistic"] / seconds["PairwiseRanker exponential"]
    print(f"  logistic, {n * n / 4:.1e} pairs, takes {ratio:.2f} times as long as exponential")
    print(f"  peak memory {peak_memory():.1f} GB, of which X is {n * N_FEATURES * 8 / 1e9:.1f} GB")


def scaling(sizes: tuple[int, ...] = SIZES) -> dict:
    """CPU seconds of a fit against n, with the slope on log-log axes."""
    out: dict = {"alpha": ALPHA, "p": N_FEATURES, "seed": SEED, "n": list(sizes), "seconds": {}}
    for n in sizes:
        X, y = sample(n)
        for loss in LOSSES:
            seconds = fit_seconds(loss, X, y, repeat=3 if n <= 100_000 else 2)
            out["seconds"].setdefault(loss, []).append(round(seconds, 4))
    out["exponent"] = {
        loss: round(exponent(out["n"], seconds), 3) for loss, seconds in out["seconds"].items()
    }
    small = [250, 500, 1000]
    explicit = [explicit_seconds(n) for n in small]
    out["explicit"] = {
        "n": small,
        "seconds": [round(s, 4) for s in explicit],
        "exponent": round(exponent(small, explicit), 3),
    }
    return out


def run() -> None:
    """Print the tables."""
    against_peers(against_dlib())
    found = scaling()
    print(f"\nCost of a fit against n (CPU s), p = {N_FEATURES}; last: exponent of n")
    print("  " + " ".join(f"{n:>10}" for n in found["n"]))
    for loss, seconds in found["seconds"].items():
        print(
            "  " + " ".join(f"{s:10.3f}" for s in seconds),
            f"{found['exponent'][loss]:6.2f}  {loss}",
        )
    explicit = found["explicit"]
    print(f"  explicit pairs, n = {explicit['n']}: exponent {explicit['exponent']:.2f}")
    if "--write" in sys.argv:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        print(f"wrote {RESULTS}")


if __name__ == "__main__":
    run()
