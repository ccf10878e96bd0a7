r"""Learning curves of four machines: the experiments of Herbrich, Graepel and Obermayer, section 6.

Items of the unit square have the utility :math:`U(x) = 10 (x_1 - \tfrac12)(x_2 - \tfrac12)`, and a
rank of five by :math:`U(x) + \epsilon` and four thresholds, the paper's (80). A machine that knows
ranks is compared with one for classes and with regression, all with the kernel
:math:`(x^\top z + 1)^2` and :math:`C = 10^6`. The second experiment ranks the documents of the
first query of OHSUMED; it needs the files of LETOR 3.0, which may not be redistributed, in
``$RANKBOOK_DATA/letor3-ohsumed``. One core takes about five minutes.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh
from tqdm import tqdm

from rankbook import metrics
from rankbook.exceptions import DatasetUnavailable
from rankbook.studies._hinge_sum import minimize_hinges

__all__ = ["compute", "curve", "draw", "fit", "query_file", "sample", "utility"]

THRESHOLDS = np.array([-1.0, -0.1, 0.25, 1.0])
# N(0, 0.125) may name a standard deviation or a variance.
SPREADS = {"standard deviation": 0.125, "variance": 0.125**0.5}
SIZES = (5, 10, 15, 20, 25, 30, 35, 40, 45)
QUERY_SIZES = (6, 9, 12, 15, 18, 21, 24)
DRAWS = 100
POOL = 1000
WEIGHT = 1e6
TUBE = 0.5
# Margins this close to one are one; pairs this close to the closest are as close.
ROUNDING = 1e-3
METHODS = ("rank boundaries", "multiclass", "regression, i", "regression, exp(i)", "SVOR, implicit")
MEASURES = ("pairs", "pairs, half", "pairs, scores", "labels")

Machine = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


def utility(X: np.ndarray) -> np.ndarray:
    """Return the utility of items of the unit square.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        Items.

    Returns
    -------
    ndarray of shape (n,)
        Ten times the product of the distances from the middle.

    Examples
    --------
    >>> utility(np.array([[0.5, 0.9], [1.0, 1.0]])).tolist()
    [0.0, 2.5]
    """
    return 10.0 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5)


def sample(
    n: int, spread: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return items, their ranks, and the ranks that they have without noise.

    Parameters
    ----------
    n : int
        The number of items.
    spread : float
        Standard deviation of the noise.
    rng : Generator
        The source of randomness.

    Returns
    -------
    X : ndarray of shape (n, 2)
        Uniform on the unit square.
    y, clean : ndarrays of int, shape (n,)
        Ranks 0 to 4, with and without noise.

    Examples
    --------
    >>> X, y, clean = sample(1000, 0.0, np.random.default_rng(0))
    >>> X.shape, (y == clean).all(), sorted(set(y.tolist()))
    ((1000, 2), np.True_, [0, 1, 2, 3, 4])
    """
    X = rng.random((n, 2))
    value = utility(X)
    noisy = value + spread * rng.standard_normal(n)
    return X, np.digitize(noisy, THRESHOLDS), np.digitize(value, THRESHOLDS)


def draw(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random subset that holds every rank.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Ranks.
    size : int
        Items to draw.
    rng : Generator
        The source of randomness.

    Returns
    -------
    ndarray of bool, shape (n,)
        Which items are drawn.

    Examples
    --------
    >>> chosen = draw(np.repeat([0, 1, 2], 10), 4, np.random.default_rng(0))
    >>> int(chosen.sum())
    4
    """
    classes = len(np.unique(y))
    while True:
        chosen = rng.choice(len(y), size, replace=False)
        if len(np.unique(y[chosen])) == classes:
            return np.isin(np.arange(len(y)), chosen)


def _kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return (A @ B.T + 1.0) ** 2


class _Coordinates:
    """Coordinates in which the kernel of the training items is the inner product."""

    def __init__(self, X: np.ndarray) -> None:
        values, vectors = eigh(_kernel(X, X))
        kept = values > 1e-12 * values[-1]
        self.items, self.map = X, vectors[:, kept] / np.sqrt(values[kept])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return _kernel(X, self.items) @ self.map


def _between_closest(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Thresholds as `RankBoundarySVM` sets them, from all pairs of neighbouring ranks.

    The mean of the middles of the closest pairs that have their margin; of the two mean scores if
    no pair has it.
    """
    thresholds = []
    for k in range(int(y.max())):
        lower, upper = scores[y == k], scores[y == k + 1][:, None]
        apart = upper - lower
        ranked = apart[apart >= 1.0 - ROUNDING]
        if ranked.size:
            near = (apart >= 1.0 - ROUNDING) & (apart <= ranked.min() + ROUNDING)
            thresholds.append((0.5 * (upper + lower))[near].mean())
        else:
            thresholds.append(0.5 * (upper.mean() + lower.mean()))
    return np.array(thresholds)


def _boundaries(phi: np.ndarray, y: np.ndarray, weight: float) -> Machine:
    upper, lower = np.nonzero(y[:, None] > y)
    w, _ = minimize_hinges(phi[upper] - phi[lower], np.ones(len(upper)), weight, phi.shape[1])
    thresholds = np.maximum.accumulate(_between_closest(phi @ w, y))
    return lambda new: (np.searchsorted(thresholds, new @ w), new @ w)


def _implicit(phi: np.ndarray, y: np.ndarray, weight: float) -> Machine:
    count = int(y.max())
    item, threshold = np.divmod(np.arange(len(y) * count), count)
    sign = np.where(y[item] > threshold, 1.0, -1.0)
    G = sign[:, None] * np.hstack([phi[item], -np.eye(count)[threshold]])
    u, _ = minimize_hinges(G, np.ones(len(G)), weight, phi.shape[1])
    w, thresholds = u[: phi.shape[1]], u[phi.shape[1] :]
    return lambda new: (np.searchsorted(thresholds, new @ w), new @ w)


def _multiclass(phi: np.ndarray, y: np.ndarray, weight: float) -> Machine:
    """One machine for each pair of classes, and a vote; of equal votes the lower class wins."""
    planes = {}
    for low, high in combinations(range(int(y.max()) + 1), 2):
        rows = (y == low) | (y == high)
        sign = np.where(y[rows] == high, 1.0, -1.0)[:, None]
        G = sign * np.hstack([phi[rows], np.ones((int(rows.sum()), 1))])
        planes[low, high] = minimize_hinges(G, np.ones(len(G)), weight, phi.shape[1])[0]

    def predict(new: np.ndarray) -> tuple[np.ndarray, None]:
        votes = np.zeros((len(new), int(y.max()) + 1))
        for pair, u in planes.items():
            winner = np.where(new @ u[:-1] + u[-1] > 0, pair[1], pair[0])
            votes[np.arange(len(new)), winner] += 1
        return votes.argmax(axis=1), None

    return predict


def _regression(phi: np.ndarray, y: np.ndarray, weight: float, codes: np.ndarray) -> Machine:
    """Support vector regression of codes; the label is the one between whose middles it falls."""
    G = np.hstack([phi, np.ones((len(y), 1))])
    target = codes[y]
    c = np.concatenate([target - TUBE, -target - TUBE])
    u, _ = minimize_hinges(np.vstack([G, -G]), c, weight, phi.shape[1])
    middles = 0.5 * (codes[1:] + codes[:-1])

    def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = new @ u[:-1] + u[-1]
        return np.searchsorted(middles, scores), scores

    return predict


def fit(method: str, X: np.ndarray, y: np.ndarray, weight: float = WEIGHT) -> Machine:
    """Fit one of the machines, with the paper's kernel.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    X : ndarray of shape (n, p)
        Items.
    y : ndarray of int, shape (n,)
        Ranks 0 to K - 1, all of them present.
    weight : float, default=1e6
        C.

    Returns
    -------
    callable
        From items to their predicted ranks and scores; None for the scores of "multiclass".

    Examples
    --------
    >>> X, y, _ = sample(40, 0.1, np.random.default_rng(0))
    >>> ranks, scores = fit("rank boundaries", X, y)(X)
    >>> ranks.shape, scores.shape
    ((40,), (40,))
    """
    place = _Coordinates(X)
    ranks = np.arange(1.0, y.max() + 2)
    phi = place(X)
    if method.startswith("regression"):
        codes = ranks if method.endswith(" i") else np.exp(ranks)
        machine = _regression(phi, y, weight, codes)
    else:
        kinds = (_boundaries, _multiclass, None, None, _implicit)
        build: Any = kinds[METHODS.index(method)]
        machine = build(phi, y, weight)
    return lambda new: machine(place(new))


def _measures(machine: Machine, X: np.ndarray, y: np.ndarray) -> list[float]:
    ranks, scores = machine(X)
    return [
        metrics.pairwise_risk(y, ranks, ties=1.0),
        metrics.pairwise_risk(y, ranks),
        np.nan if scores is None else metrics.pairwise_risk(y, scores),
        float(np.mean(ranks != y)),
    ]


def curve(
    data: Callable[[int], tuple[np.ndarray, np.ndarray]],
    sizes: tuple[int, ...],
    n_draws: int = DRAWS,
    progress: bool = False,
) -> dict[str, Any]:
    """Return the curves of all machines: means over the draws, and their standard errors.

    Parameters
    ----------
    data : callable
        From the number of a draw to items and ranks, of which `draw` takes the training items.
    sizes : tuple of int
        Numbers of training items.
    n_draws : int, default=100
        Draws for each size.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    dict
        For each method and each of `MEASURES`, ``mean`` and ``error`` for each size, and for all
        but the first method ``more``: by how much its measure exceeds that of the first on the same
        draws, and the standard error of that. None where there is no score.
    """
    values = np.empty((len(METHODS), len(sizes), n_draws, len(MEASURES)))
    for s, d in tqdm(list(np.ndindex(len(sizes), n_draws)), disable=not progress):
        X, y = data(d)
        chosen = draw(y, sizes[s], np.random.default_rng([d, sizes[s]]))
        for m, method in enumerate(METHODS):
            machine = fit(method, X[chosen], y[chosen])
            values[m, s, d] = _measures(machine, X[~chosen], y[~chosen])
    out: dict[str, Any] = {}
    for m, method in enumerate(METHODS):
        out[method] = {}
        for k, measure in enumerate(MEASURES):
            table = {"mean": values[m, :, :, k], "more": values[m, :, :, k] - values[0, :, :, k]}
            out[method][measure] = {
                name: _rounded(function(part))
                for key, part in table.items()
                for name, function in ((key, _mean), (f"{key} error", _error))
                if key == "mean" or m
            }
    return out


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=1)


def _error(values: np.ndarray) -> np.ndarray:
    return values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])


def _rounded(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 6) for v in values]


def query_file() -> Path | None:
    """Return the file of LETOR 3.0 that holds the first query of OHSUMED, or None.

    Returns
    -------
    Path or None
        S1.txt or S1.txt.gz in ``$RANKBOOK_DATA/letor3-ohsumed``.
    """
    root = os.environ.get("RANKBOOK_DATA")
    folder = Path(root or ".") / "letor3-ohsumed"
    found = [folder / name for name in ("S1.txt", "S1.txt.gz") if (folder / name).is_file()]
    return found[0] if root and found else None


def read_query(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors of features, and ranks 0 to 2, of the first query's documents."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [line.split("#")[0].split() for line in text.decode("ascii").splitlines()]
    rows = [line for line in lines if len(line) > 1 and line[1] == "qid:1"]
    X = np.array([[float(entry.split(":")[1]) for entry in row[2:]] for row in rows])
    # A document that matches no word of the query has no features, and stays where it is.
    length = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    return X / length, np.array([int(row[0]) for row in rows])


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Compute all curves.

    Parameters
    ----------
    quick : bool, default=False
        The smallest size of each curve alone.
    progress : bool, default=True
        Show a progress bar.

    Returns
    -------
    dict
        ``sizes``; for each reading of the noise the curves; ``query``, with its sizes, the counts
        of the ranks and the curves.

    Raises
    ------
    DatasetUnavailable
        If the documents are not there.
    """
    path = query_file()
    if path is None:
        raise DatasetUnavailable(
            "the first query of OHSUMED is needed: put S1.txt of LETOR 3.0 (OHSUMED, "
            "QueryLevelNorm) into $RANKBOOK_DATA/letor3-ohsumed"
        )
    sizes, query_sizes = (SIZES[:1], QUERY_SIZES[:1]) if quick else (SIZES, QUERY_SIZES)
    out: dict[str, Any] = {"sizes": list(sizes), "draws": DRAWS}
    for reading, spread in SPREADS.items():

        def pool(number: int, spread: float = spread) -> tuple[np.ndarray, np.ndarray]:
            return sample(POOL, spread, np.random.default_rng(number))[:2]

        out[reading] = curve(pool, sizes, progress=progress)
    X, y = read_query(path)
    curves = curve(lambda _: (X, y), query_sizes, progress=progress)
    out["query"] = {"sizes": list(query_sizes), "counts": np.bincount(y).tolist(), "curves": curves}
    return out
