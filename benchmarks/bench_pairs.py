"""Pair metrics against one argsort of the same scores and against peers."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import measure, peak_memory, peer, table
from rankbook import metrics


def _bipartite(n: int) -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    scores = y + rng.normal(size=n)
    tied = np.round(scores, 2)
    before = peak_memory()
    rows = [
        ("numpy argsort", measure(lambda: np.argsort(scores))),
        ("rankbook auc", measure(lambda: metrics.auc(y, scores))),
        ("rankbook auc, scores rounded", measure(lambda: metrics.auc(y, tied))),
        (
            "rankbook auc, weighted",
            measure(lambda: metrics.auc(y, scores, sample_weight=scores**2), 1),
        ),
    ]
    extra = peak_memory() - before
    rows.append(("scikit-learn roc_auc_score", measure(lambda: roc_auc_score(y, scores), 1)))
    table(f"AUC of {n:.0e} scores", rows)
    ours, theirs = dict(rows)["rankbook auc"], dict(rows)["scikit-learn roc_auc_score"]
    print(f"  {theirs / ours:.1f} times faster than scikit-learn")
    print(f"  memory beyond the data: {extra * 1e9 / n:.0f} bytes an item")
    gap = abs(metrics.auc(y, scores) - roc_auc_score(y, scores))
    print(f"  difference from scikit-learn: {gap:.1e}")


def _multipartite(n: int, n_classes: int) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, n)
    scores = y + 2 * rng.normal(size=n)
    rows = [
        ("numpy argsort", measure(lambda: np.argsort(scores))),
        ("pair_error_rates", measure(lambda: metrics.pair_error_rates(y, scores))),
        (
            "pairwise_risk, linear costs",
            measure(lambda: metrics.pairwise_risk(y, scores, "linear")),
        ),
    ]
    rows.append(("both together", rows[1][1] + rows[2][1]))
    rows.append(("kendall_tau", measure(lambda: metrics.kendall_tau(y, scores))))
    rows.append(("volume_under_surface", measure(lambda: metrics.volume_under_surface(y, scores))))
    lifelines = peer("lifelines")
    if lifelines is not None:
        from lifelines.utils import concordance_index

        rows.append(
            ("lifelines concordance_index", measure(lambda: concordance_index(y, scores), 1))
        )
    table(f"{n_classes} classes, {n:.0e} items", rows)
    if lifelines is not None:
        seconds = dict(rows)
        ratio = seconds["lifelines concordance_index"] / seconds["both together"]
        print(f"  both together {ratio:.0f} times faster than lifelines")


def run() -> None:
    """Print the times of the AUC at 1e7 scores and of the multipartite table at 1e6."""
    _bipartite(10**7)
    _multipartite(10**6, 5)
