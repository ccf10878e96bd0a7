"""The cost of a fit to all pairs against the number of items.

For each loss and each size the study records the objective that was reached and the CPU seconds
(of one thread, if ``OMP_NUM_THREADS=1`` is set); for comparison a linear support vector machine
is fitted to the explicit pairs of a few items.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from tqdm import tqdm

from rankbook.models import PairwiseRanker

__all__ = ["compute", "exponent", "explicit_seconds", "sample"]

LOSSES = ("exponential", "logistic", "squared_hinge", "hinge")
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
EXPLICIT = (250, 500, 1000)
ALPHA = 1e-3
N_FEATURES = 50
SEED = 0


def sample(n: int, p: int = N_FEATURES, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Return two classes of items from a noisy linear score.

    Parameters
    ----------
    n : int
        The number of items.
    p : int, default=50
        The number of features.
    seed : int, default=0
        The seed.

    Returns
    -------
    X : ndarray of shape (n, p)
        Standard normal features.
    y : ndarray of int, shape (n,)
        Labels 0 and 1.

    Examples
    --------
    >>> X, y = sample(6, p=2)
    >>> X.shape, sorted(set(y.tolist()))
    ((6, 2), [0, 1])
    """
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=p) / np.sqrt(p)
    X = rng.normal(size=(n, p))
    return X, (X @ coef + rng.normal(size=n) > 0).astype(int)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds on log n.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of items.
    seconds : sequence of float
        Seconds for each.

    Returns
    -------
    float
        The least-squares slope.

    Examples
    --------
    >>> round(exponent([10, 100, 1000], [0.1, 10.0, 1000.0]), 12)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _fastest(task: Callable[[], object], repeat: int) -> float:
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        task()
        best = min(best, time.process_time() - start)
    return best


def explicit_seconds(n: int) -> float:
    """Return the CPU seconds to form all pairs of n items and hand them to `LinearSVC`.

    Parameters
    ----------
    n : int
        The number of items.

    Returns
    -------
    float
        CPU seconds.
    """
    X, y = sample(n)

    def run() -> None:
        differences = (X[y == 1][:, None, :] - X[y == 0][None, :, :]).reshape(-1, X.shape[1])
        sign = np.where(np.arange(len(differences)) % 2, 1, -1)
        svc = LinearSVC(C=1.0 / (ALPHA * len(sign)), fit_intercept=False, max_iter=100)
        svc.fit(differences * sign[:, None], sign)

    return _fastest(run, 1)


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Fit every loss at every size.

    Parameters
    ----------
    quick : bool, default=False
        The smallest sizes alone.
    progress : bool, default=True
        Show a progress bar.

    Returns
    -------
    dict
        The settings ``alpha``, ``p`` and ``seed``; the sizes ``n`` and the numbers of ``pairs``;
        for each loss the ``objective`` and the ``seconds`` at each size; and ``explicit``, the
        sizes, pairs and seconds of explicit pairs.
    """
    sizes, explicit = (SIZES[:1], EXPLICIT[:1]) if quick else (SIZES, EXPLICIT)
    out: dict[str, Any] = {"alpha": ALPHA, "p": N_FEATURES, "seed": SEED, "n": list(sizes)}
    out |= {"pairs": [], "objective": {}, "seconds": {}}
    for n in tqdm(sizes, desc="sizes", disable=not progress):
        X, y = sample(n)
        out["pairs"].append(int(y.sum()) * int((1 - y).sum()))
        for loss in LOSSES:
            model = PairwiseRanker(loss, alpha=ALPHA)
            seconds = _fastest(partial(model.fit, X, y), 3 if n <= 100_000 else 2)
            out["objective"].setdefault(loss, []).append(float(model.objective_))
            out["seconds"].setdefault(loss, []).append(round(seconds, 4))
    labels = [sample(n)[1] for n in explicit]
    out["explicit"] = {
        "n": list(explicit),
        "pairs": [int(y.sum()) * int((1 - y).sum()) for y in labels],
        "seconds": [round(explicit_seconds(n), 4) for n in explicit],
    }
    return out
