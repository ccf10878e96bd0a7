"""How each method of the learning-to-rank study is fitted, and its settings chosen.

Settings are chosen by the mean ERR of validation queries, which are training queries set aside;
the chosen setting is then fitted to all training queries. Boosting is fitted once for all numbers
of rounds, and asked for its stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from rankbook import metrics
from rankbook.datasets import LetorData
from rankbook.models import COCR, ModelTree, PairwiseRanker

__all__ = ["BASES", "MATCHED", "RANKERS", "TARGETS", "Fold", "fit_scores", "tune"]

BASES = ("least squares", "M5'", "bagged M5'", "GBRT", "LightGBM")
# Direct regression with as many bags as ordinal costs grow trees.
MATCHED = "bagged M5', matched; label"
TARGETS = ("label", "gain", "absolute", "squared", "oerr")
RANKERS = ("pairwise, logistic", "pairwise, hinge", "lambdarank")
ROUNDS = (10, 20, 40, 80, 160, 320)
# The five of the paper, and 64.
MIN_INSTANCES = (4, 64, 256, 512, 1024, 2048)
BAGGED_INSTANCES = 64
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
BAGS = 5
RATE = 0.1
LEAVES = 15
BINS = 255


@dataclass(frozen=True)
class Fold:
    """Training queries and test queries, columns scaled by the training items."""

    train: LetorData
    test: LetorData
    max_grade: int

    @classmethod
    def of(cls, train: LetorData, test: LetorData, max_grade: int) -> Fold:
        """Scale the columns: mean zero and unit deviation over the training items."""
        scaler = StandardScaler().fit(train.X)
        return cls(_with_items(train, scaler), _with_items(test, scaler), max_grade)

    def binned(self) -> Fold:
        """Every column replaced by its place among the training items' quantiles.

        Boosting by histograms does so itself, but with weights its search for quantiles takes most
        of the time; on columns of few values it has nothing to search.
        """
        shares = np.arange(1, BINS) / BINS
        cuts = [np.unique(np.quantile(column, shares)) for column in self.train.X.T]
        parts = [
            LetorData(
                np.column_stack([np.searchsorted(c, x) for c, x in zip(cuts, d.X.T, strict=True)]),
                d.y,
                d.qid,
            )
            for d in (self.train, self.test)
        ]
        return Fold(parts[0], parts[1], self.max_grade)

    def inner(self) -> Fold:
        """Every fifth training query set aside to validate; what is left trains."""
        assert self.train.qid is not None
        aside = np.unique(self.train.qid, return_inverse=True)[1] % 5 == 4
        return Fold(_rows(self.train, ~aside), _rows(self.train, aside), self.max_grade)

    def err(self, scores: np.ndarray) -> float:
        """Mean ERR of the test queries."""
        test = self.test
        return float(metrics.err(test.y, scores, qid=test.qid, max_grade=self.max_grade))


def _with_items(data: LetorData, scaler: StandardScaler) -> LetorData:
    return LetorData(scaler.transform(data.X), data.y, data.qid)


def _rows(data: LetorData, chosen: np.ndarray) -> LetorData:
    assert data.qid is not None
    return LetorData(data.X[chosen], data.y[chosen], data.qid[chosen])


def fit_scores(method: str, fold: Fold) -> tuple[np.ndarray, float | int | None]:
    """Fit a method to the training queries; return its scores of the test items.

    Parameters
    ----------
    method : str
        One of `RANKERS`, `MATCHED`, or "base; target" with one of `BASES` and one of `TARGETS`.
    fold : Fold
        The queries.

    Returns
    -------
    scores : ndarray
        Of the test items.
    setting : number or None
        The one chosen by validation: rounds, smallest leaf, alpha. Nothing is chosen for bags,
        whose number it is, and for least squares: None.
    """
    settings = _settings(method, fold)
    chosen = settings[0] if len(settings) == 1 else tune(method, fold, settings)
    return next(iter(_predictions(method, fold, (chosen,)))), chosen


def tune(method: str, fold: Fold, settings: tuple) -> Any:
    """Return the setting with the largest mean ERR of the validation queries, the first if tied."""
    inner = fold.inner()
    found = [inner.err(scores) for scores in _predictions(method, inner, settings)]
    return settings[int(np.argmax(found))]


def _settings(method: str, fold: Fold) -> tuple:
    if method.startswith("pairwise"):
        return ALPHAS
    if method.startswith("M5'"):
        return MIN_INSTANCES
    if method.startswith("bagged"):
        return (BAGS * fold.max_grade,) if method == MATCHED else (BAGS,)
    return (None,) if method.startswith("least squares") else ROUNDS


def _predictions(method: str, fold: Fold, settings: tuple) -> Iterator[np.ndarray]:
    """Scores of the test items for each setting."""
    base, _, target = method.partition("; ")
    if method == "lambdarank" or base in ("GBRT", "LightGBM"):
        yield from _boosted(base, target, fold, settings)
        return
    for setting in settings:
        if method.startswith("pairwise"):
            ranker = PairwiseRanker(
                method.split(", ")[1], "constant", consistent=False, alpha=setting
            )
            ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
            yield ranker.decision_function(fold.test.X)
        else:
            parts = _regressions(_base(base, setting), target, fold)
            yield sum(part.predict(fold.test.X) for part in parts)


def _base(name: str, setting: Any) -> Any:
    """A regressor that has not seen data."""
    if name == "least squares":
        return LinearRegression()
    if name == "M5'":
        return ModelTree(min_samples_leaf=setting, weighting="importance")
    if name.startswith("bagged"):
        return BaggingRegressor(_base("M5'", BAGGED_INSTANCES), setting, random_state=0)
    if name == "GBRT":
        return HistGradientBoostingRegressor(
            max_iter=setting,
            learning_rate=RATE,
            max_leaf_nodes=LEAVES,
            early_stopping=False,
            random_state=0,
        )
    return _lightgbm("LGBMRegressor", setting)


def _lightgbm(kind: str, rounds: int) -> Any:
    import lightgbm

    return getattr(lightgbm, kind)(
        n_estimators=rounds,
        learning_rate=RATE,
        num_leaves=LEAVES,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        random_state=0,
        verbosity=-1,
    )


def _regressions(base: Any, target: str, fold: Fold) -> list:
    """The fitted regressions whose sum is the score."""
    X, y = fold.train.X, fold.train.y
    if target in ("label", "gain"):
        return [clone(base).fit(X, y.astype(float) if target == "label" else 2.0**y - 1.0)]
    labels = np.arange(fold.max_grade + 1)
    return COCR(base, target, labels=labels).fit(X, y).estimators_


def _boosted(base: str, target: str, fold: Fold, rounds: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Scores after each number of rounds, from one fit with the largest."""
    if base == "lambdarank":
        ranker = _lightgbm("LGBMRanker", max(rounds))
        assert fold.train.qid is not None
        sizes = np.unique(fold.train.qid, return_counts=True)[1]
        parts = [ranker.fit(fold.train.X, fold.train.y, group=sizes)]
    else:
        fold = fold.binned() if base == "GBRT" else fold
        parts = _regressions(_base(base, max(rounds)), target, fold)
    stages: Callable = _stages if base == "GBRT" else _lightgbm_stages
    yield from np.sum([stages(part, fold.test.X, rounds) for part in parts], axis=0)


def _stages(model: Any, X: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
    staged = list(islice(model.staged_predict(X), max(rounds)))
    return np.array([staged[number - 1] for number in rounds])


def _lightgbm_stages(model: Any, X: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
    return np.array([model.predict(X, num_iteration=number) for number in rounds])
