"""PairwiseRanker against dlib's svm_rank_trainer and explicit pairs, and its cost against n.

``python -m benchmarks pairwise`` prints the tables. The cost against n is the study that the book's
chapter on linear-time pairs reads (``python -m rankbook.studies pair_scaling`` renews its file).

Measured last, dlib's time over ours at 100,000 items: at a tolerance of 1e-6 for both 2.1 at alpha
1, 3.3 at 0.1, 16 at 1e-2 and 127 at 1e-3; at 1e-3 for both 0.8 to 1.1, 1.2 to 1.4, 7 and 77, where
dlib's objective is 5e-4 to 8e-4 of itself higher at alpha 1 and 1e-3.
"""

from __future__ import annotations

from benchmarks import dlib_ranking  # first: fixes the threads
from benchmarks.harness import measure, peak_memory, peer, table

# isort: split
import numpy as np

from rankbook import studies
from rankbook.models import PairwiseRanker
from rankbook.solvers.pair_sums import PairSums
from rankbook.studies.pair_scaling import (
    ALPHA,
    LOSSES,
    N_FEATURES,
    explicit_seconds,
    exponent,
    sample,
)


def fit_seconds(loss: str, X: np.ndarray, y: np.ndarray, repeat: int = 2, **settings) -> float:
    """CPU seconds of one fit."""
    settings = {"alpha": ALPHA} | settings
    return measure(lambda: PairwiseRanker(loss, **settings).fit(X, y), repeat=repeat)


def against_dlib(n: int = 100_000, alphas: tuple[float, ...] = (1.0, 1e-1, 1e-2, ALPHA)) -> float:
    """The hinge at several ridges, both objectives shown; return dlib's seconds at the last one.

    Both are run to a relative 1e-6, PairwiseRanker's default, and to 1e-3, dlib's; a ratio compares
    like with like.
    """
    dlib = peer("dlib")
    if dlib is None:
        return float("nan")
    X, y = sample(n)
    data, sums = dlib_ranking.ranking_pairs(dlib, X, y), PairSums(y, "hinge")
    print(f"\nPair hinge, n = {n}, p = {N_FEATURES}: CPU s and objective")
    print("      alpha      ours (tol 1e-6)      dlib (eps 1e-6)      ours (tol 1e-3)", end="")
    print("      dlib (eps 1e-3)    ratios")
    theirs = float("nan")
    for alpha in alphas:
        cells, ratios = [], []
        for tol in (1e-6, 1e-3):
            seconds = fit_seconds("hinge", X, y, alpha=alpha, tol=tol)
            value = PairwiseRanker("hinge", alpha=alpha, tol=tol).fit(X, y).objective_
            cells.append(f"{seconds:8.3f} {value:11.7f}")
            theirs, w = dlib_ranking.fit(dlib, data, alpha, tol)
            value = sums.at(X @ w).value / sums.total + alpha / 2 * w @ w
            cells.append(f"{theirs:8.3f} {value:11.7f}")
            ratios.append(f"{theirs / seconds:6.1f}")
        print(f"  {alpha:9.0e} " + " ".join(cells) + "  " + " ".join(ratios))
    return theirs


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


def run() -> None:
    """Print the tables."""
    against_peers(against_dlib())
    found = studies.run("pair_scaling")
    print(f"\nCost of a fit against n (CPU s), p = {N_FEATURES}; last: exponent of n")
    print("  " + " ".join(f"{n:>10}" for n in found["n"]))
    for loss, seconds in found["seconds"].items():
        row = " ".join(f"{s:10.3f}" for s in seconds)
        print(f"  {row} {exponent(found['n'], seconds):6.2f}  {loss}")
    explicit = found["explicit"]
    slope = exponent(explicit["n"], explicit["seconds"])
    print(f"  explicit pairs, n = {explicit['n']}: exponent {slope:.2f}")


if __name__ == "__main__":
    run()
