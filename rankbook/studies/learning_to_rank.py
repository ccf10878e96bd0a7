"""Regression, ordinal costs, pairs and lambdarank on four sets of queries.

The comparisons of Ruan, Lin and Tsai (2014), tables 1 (least squares), 5 (model trees) and 7
(boosting) and figure 2 (bags), in kind: their data, Yahoo's challenge and Microsoft's, are larger.
Every method is judged by ERR and by NDCG at 10, query by query, on queries that it has not seen:

- *simulated*: `make_letor`, 250 queries to train and 500 to test;
- *LightGBM sample*: the example of that package, 201 queries to train and 50 to test;
- *MSLR sample*: 86 queries of Microsoft's web data in two files that take turns;
- *OHSUMED*: the 106 queries of LETOR 3.0, in its own five parts.

Settings are chosen by ERR alone, on a fifth of the training queries: 10 to 320 rounds of boosting
at rate 0.1, where the paper takes 1,000 at three rates; the five sizes of leaf of the paper, and
64; six penalties of pairs. Bags have five trees with leaves of 64, and nothing is chosen for them;
*matched* bags have five for each boundary between grades. An earlier run had shorter grids, up to
80 rounds and two sizes of leaf. They were made longer since more than a third of its numbers of
rounds lay at an end; some choices, in ``settings``, still do.

A query without a relevant item has ERR and NDCG 0. The columns of the MSLR sample are collinear,
some exactly and some nearly: least squares there depends on where `LinearRegression` cuts small
singular values.

The files are looked for in ``$RANKBOOK_DATA``, in the folders ``lightgbm-lambdarank``,
``mslr-web-sample-5k`` and ``letor3-ohsumed``. LightGBM has to be installed. One core takes five
to ten minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from tqdm import tqdm

from rankbook import metrics
from rankbook.datasets import LetorData, load_letor, make_letor
from rankbook.exceptions import DatasetUnavailable
from rankbook.studies._letor_fits import (
    BASES,
    MATCHED,
    RANKERS,
    TARGETS,
    Fold,
    _base,
    fit_scores,
)

__all__ = ["compute", "folds", "leakage", "measure", "read", "values"]

SETS = ("simulated", "LightGBM sample", "MSLR sample", "OHSUMED")
MEASURES = ("ERR", "NDCG@10")
METHODS = (*(f"{base}; {target}" for base in BASES for target in TARGETS), MATCHED, *RANKERS)
QUICK_METHODS = ("least squares; label", "least squares; oerr", "GBRT; label", "lambdarank")
_FILES = {
    "LightGBM sample": ("lightgbm-lambdarank", ["rank.train", "rank.test"]),
    "MSLR sample": ("mslr-web-sample-5k", ["msn1.fold1.train.5k.txt", "msn1.fold1.test.5k.txt"]),
    "OHSUMED": ("letor3-ohsumed", [f"S{k}.txt" for k in range(1, 6)]),
}
_LEAK_ROUNDS = 80


def read(name: str) -> list[LetorData]:
    """Return the files of a set, no two of which share a query.

    Parameters
    ----------
    name : str
        One of `SETS`.

    Returns
    -------
    list of LetorData
        Simulated: queries to train, then queries to test. LightGBM sample: its two files. MSLR
        sample: likewise. OHSUMED: its five parts.

    Raises
    ------
    DatasetUnavailable
        If a file is not there.
    """
    if name == "simulated":
        return [make_letor(250, 20, 20, rng=1), make_letor(500, 20, 20, rng=2)]
    folder, stems = _FILES[name]
    root = Path(os.environ.get("RANKBOOK_DATA") or ".") / folder
    paths = [next(root.glob(f"{stem}.gz"), root / stem) for stem in stems]
    missing = [path.name for path in paths if not path.is_file()]
    if not os.environ.get("RANKBOOK_DATA") or missing:
        raise DatasetUnavailable(
            f"the {name} is needed: put {', '.join(stems)} into $RANKBOOK_DATA/{folder}"
        )
    width = {"LightGBM sample": 300, "MSLR sample": 136, "OHSUMED": 45}[name]
    parts = [load_letor(path, n_features=width) for path in paths]
    if name == "LightGBM sample":
        sizes = [np.loadtxt(root / f"{stem}.query", dtype=int) for stem in stems]
        parts = [
            LetorData(part.X, part.y, np.repeat(np.arange(size.size), size))
            for part, size in zip(parts, sizes, strict=True)
        ]
    return parts


def _joined(parts: list[LetorData]) -> LetorData:
    """All parts, with queries numbered anew in their order."""
    begin, names = 0, []
    for part in parts:
        assert part.qid is not None
        codes = np.cumsum(np.diff(part.qid, prepend=part.qid[0]) != 0)
        names.append(begin + codes)
        begin += int(codes[-1]) + 1
    return LetorData(
        np.vstack([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(names),
    )


def folds(name: str) -> Iterator[Fold]:
    """Yield the folds of a set; every test query is in one of them.

    Parameters
    ----------
    name : str
        One of `SETS`.

    Yields
    ------
    Fold
        Training and test queries.
    """
    parts = read(name)
    top = int(max(part.y.max() for part in parts))
    if name in ("simulated", "LightGBM sample"):
        yield Fold.of(parts[0], parts[1], top)
        return
    for k, test in enumerate(parts):
        yield Fold.of(_joined(parts[:k] + parts[k + 1 :]), _joined([test]), top)


def measure(name: str, methods: tuple[str, ...] = METHODS, progress: bool = False) -> dict:
    """Fit methods to every fold of a set, and judge them query by query.

    Parameters
    ----------
    name : str
        One of `SETS`.
    methods : tuple of str, default=METHODS
        Some of `METHODS`.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    dict
        ``rows``, ``features``, ``grades`` (counts) of all that is tested; ``query_features``, how
        many columns are equal within each training query of the first fold, but not throughout;
        ``folds``; ``settings`` by method, one for each fold; and ``values``, by measure and method:
        one number for each test query, to four digits, in one text.
    """
    found: dict[str, Any] = {m: {method: [] for method in methods} for m in MEASURES}
    settings: dict[str, list] = {method: [] for method in methods}
    grades, features, of_query, count = np.zeros(0, dtype=int), 0, 0, 0
    for fold in folds(name):
        of_query = _query_features(fold.train) if count == 0 else of_query
        count, features = count + 1, fold.test.X.shape[1]
        grades = np.concatenate([grades, fold.test.y])
        for method in tqdm(methods, desc=f"{name}, fold {count}", disable=not progress):
            scores, setting = fit_scores(method, fold)
            settings[method].append(setting)
            for kind, numbers in zip(MEASURES, _judged(fold, scores), strict=True):
                found[kind][method].append(numbers)
    return {
        "rows": int(grades.size),
        "features": features,
        "query_features": of_query,
        "grades": np.bincount(grades).tolist(),
        "folds": count,
        "settings": settings,
        "values": {
            kind: {method: _text(np.concatenate(part)) for method, part in table.items()}
            for kind, table in found.items()
        },
    }


def _query_features(data: LetorData) -> int:
    """How many columns are equal within every query, but not in all queries."""
    assert data.qid is not None
    begin = np.flatnonzero(np.diff(data.qid, prepend=data.qid[0] - 1))
    spread = np.maximum.reduceat(data.X, begin) - np.minimum.reduceat(data.X, begin)
    return int(((spread == 0).all(axis=0) & (np.ptp(data.X, axis=0) > 0)).sum())


def _judged(fold: Fold, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ERR and NDCG at 10 of every test query."""
    lists = metrics.rank_lists(fold.test.y, scores, qid=fold.test.qid)
    err = metrics.err(lists, max_grade=fold.max_grade, per_query=True)
    return np.asarray(err), np.asarray(metrics.ndcg(lists, k=10, per_query=True))


def _text(numbers: np.ndarray) -> str:
    return " ".join(f"{number:.4f}" for number in numbers)


def values(results: dict, name: str, kind: str) -> dict[str, np.ndarray]:
    """Return what a set's test queries are worth, by method.

    Parameters
    ----------
    results : dict
        What `compute` returned, or the stored results.
    name : str
        One of `SETS`.
    kind : {"ERR", "NDCG@10"}
        The measure.

    Returns
    -------
    dict of ndarray
        For each method one number for each query, in the same order.

    Examples
    --------
    >>> from rankbook import studies
    >>> stored = values(studies.load("learning_to_rank"), "simulated", "ERR")
    >>> len(stored["lambdarank"])
    500
    """
    table = results["sets"][name]["values"][kind]
    return {method: np.array(text.split(), dtype=float) for method, text in table.items()}


def leakage(name: str) -> dict[str, dict[str, float | str]]:
    """Judge boosted regression by two cross-validations: of queries, and of rows.

    Parameters
    ----------
    name : str
        One of `SETS`.

    Returns
    -------
    dict
        For ``queries`` and ``rows``: R^2 of the grades; its two losses, in the ``means`` of queries
        and ``within`` them, which add up to 1 - R^2; and ERR and NDCG at 10 query by query, as
        texts. All are by scores of models that were fitted without the fifth in which an item lies.
    """
    parts = read(name)
    whole = parts[1] if name == "simulated" else _joined(parts)
    top = int(whole.y.max())
    assert whole.qid is not None
    codes = np.unique(whole.qid, return_inverse=True)[1]
    shuffled = np.random.default_rng(0).permutation(whole.y.size)
    out: dict[str, dict[str, float | str]] = {}
    for kind, part in (("queries", codes % 5), ("rows", shuffled % 5)):
        scores = np.empty(whole.y.size)
        for k in range(5):
            model = _base("GBRT", _LEAK_ROUNDS).fit(whole.X[part != k], whole.y[part != k])
            scores[part == k] = model.predict(whole.X[part == k])
        judged = map(_text, _judged(Fold(whole, whole, top), scores))
        out[kind] = {
            "R2": round(float(r2_score(whole.y, scores)), 5),
            **_losses(whole.y - scores, whole.y, codes),
            **dict(zip(MEASURES, judged, strict=True)),
        }
    return out


def _losses(residuals: np.ndarray, y: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Squared residuals of the queries' means, and within queries, as shares of y's variation."""
    means = (np.bincount(codes, residuals) / np.bincount(codes))[codes]
    total = ((y - y.mean()) ** 2).sum()
    parts = {"means": means, "within": residuals - means}
    return {kind: round(float((part**2).sum() / total), 5) for kind, part in parts.items()}


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Compare all methods on all sets.

    Parameters
    ----------
    quick : bool, default=False
        Four methods on the simulated queries, which need no file.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    dict
        ``sets``, by name what `measure` returns, and ``leakage``, by name what `leakage` returns.

    Raises
    ------
    DatasetUnavailable
        If a file is not there, unless `quick`.
    """
    chosen, methods = (SETS[:1], QUICK_METHODS) if quick else (SETS, METHODS)
    for name in chosen:
        read(name)
    return {
        "sets": {name: measure(name, methods, progress) for name in chosen},
        "leakage": {name: leakage(name) for name in chosen},
    }
