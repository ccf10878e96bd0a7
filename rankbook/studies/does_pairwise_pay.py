"""Univariate against pairwise training: the experiment of Kotlowski et al. (2011), section 5.

Seven methods, which cross the loss, the class weights and the pairs, each at six penalties:

- on 30 random models of each of the paper's four kinds, with 5 training sets each (the paper has
  30; the methods share them, so that differences are much less noisy than levels);
- the four of them that are trained on single items with logistic loss or hinge, on 40 random
  models, with one training set each, of four kinds on which class weights should help or harm for a
  known reason: log-odds that are linear, at two strengths, and false labels in one class alone;
- the paper's three and the hinge on single items, on the paper's nine small UCI data sets, in ten
  times tenfold cross-validation, as in the paper. A data set that `rankbook.datasets.load_uci` does
  not find is left out.

All of it takes about half an hour on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from rankbook.datasets import UCI_NAMES, load_uci, make_linear_model, make_rule_model
from rankbook.exceptions import DatasetUnavailable
from rankbook.metrics import auc
from rankbook.models import PairwiseRanker, UnivariateRanker
from rankbook.studies._kept_pairs import KeptPairsSVM
from rankbook.studies._linear_svm import LinearSVM

SEED = 2011
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
# Where the hinge is all but silent its scores are small, and few of their digits are right: the
# digits of its ranking need many of the objective. So do those of pairs at weak penalties.
METHODS: dict[str, Callable] = {
    "exponential": partial(UnivariateRanker, "exponential"),
    "logistic": partial(UnivariateRanker, "logistic"),
    "logistic, weighted": partial(UnivariateRanker, "logistic", balanced=True),
    "hinge": partial(LinearSVM, tol=1e-12, accept=1e-7),
    "hinge, weighted": partial(LinearSVM, balanced=True, tol=1e-12, accept=1e-7),
    "pairwise logistic": partial(PairwiseRanker, "logistic", tol=1e-6),
    "pairwise hinge": KeptPairsSVM,
}
# Columns of few values: the minimisers of the hinge put items on one score, which two fits must
# agree on. Steps below the width are none there.
TIE_WIDTH = 1e-6  # of the range of the scores
RUN = {
    "simulation": tuple(METHODS),
    "weights": ("logistic", "logistic, weighted", "hinge", "hinge, weighted"),
    "uci": ("exponential", "logistic", "hinge", "hinge, weighted", "pairwise hinge"),
}
N_TRAIN, N_TEST = 1000, 10_000
N_MODELS = {"simulation": 30, "weights": 40}
N_SETS = {"simulation": 5, "weights": 1}
N_REPEATS = 10  # of tenfold cross-validation


@dataclass(frozen=True)
class Population:
    """Uniform items whose posterior is a function of a linear one."""

    function: Callable[[np.ndarray], np.ndarray]
    link: Callable[[np.ndarray], np.ndarray]
    n_features: int = 50

    def bayes_scores(self, X: np.ndarray) -> np.ndarray:
        """The posterior."""
        return self.link(self.function(X))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw items and labels 0 and 1."""
        X = rng.random((n, self.n_features))
        return X, (rng.random(n) < self.bayes_scores(X)).astype(np.intp)


def two_level_model(
    prior: float, *, bayes_risk: float = 0.1, false_class: str, rng: np.random.Generator
) -> Population:
    """Draw a linear threshold model with false labels in one class alone.

    With q the share above the threshold, "positive" changes labels below it: the posterior is 1
    above and (prior - q) / (1 - q) below, and the least risk (1 - q / prior) / 2. "negative" is
    its mirror image.
    """
    if false_class == "positive":
        share = prior * (1 - 2 * bayes_risk)
        levels = (prior - share) / (1 - share), 1.0
    else:
        share = 1 - (1 - prior) * (1 - 2 * bayes_risk)
        levels = 0.0, prior / share
    function = make_linear_model(share, bayes_risk=0.0, rng=rng).function
    return Population(function, partial(_step, levels=levels))


def _step(values: np.ndarray, levels: tuple[float, float]) -> np.ndarray:
    return np.where(values >= 0, levels[1], levels[0])


def logistic_model(
    prior: float, *, bayes_risk: float = 0.1, rng: np.random.Generator
) -> Population:
    """Draw a model whose log-odds are linear, by scaling and shifting normal coefficients.

    Scale and offset are found on 20,000 items, so that prior and least risk are right to about
    0.005 on average over models.
    """
    weights = rng.normal(size=50)
    values = np.sort(rng.random((20_000, 50)) @ weights)

    def offset(scale: float) -> float:
        """The offset that gives the prior."""
        ends = -scale * values[-1] - 20, -scale * values[0] + 20
        return float(brentq(lambda b: expit(scale * values + b).mean() - prior, *ends))

    def excess(scale: float) -> float:
        eta = expit(scale * values + offset(scale))
        ranks = 2 * np.arange(1, eta.size + 1) - eta.size - 1
        gini = 2 * (ranks @ eta) / eta.size**2
        return 0.5 - gini / (4 * prior * (1 - prior)) - bayes_risk

    scale = float(brentq(excess, 0.01, 50.0, xtol=1e-6))
    return Population(partial(_linear, weights=scale * weights, offset=offset(scale)), expit)


def _linear(X: np.ndarray, weights: np.ndarray, offset: float) -> np.ndarray:
    return X @ weights + offset


SCENARIOS: dict[str, dict[str, Callable]] = {
    "simulation": {
        "linear, balanced": partial(make_linear_model, 0.5),
        "linear, imbalanced": partial(make_linear_model, 0.9),
        "rules, balanced": partial(make_rule_model, 0.5),
        "rules, imbalanced": partial(make_rule_model, 0.9),
    },
    "weights": {
        "logistic, least risk 0.1": partial(logistic_model, 0.9),
        "logistic, least risk 0.2": partial(logistic_model, 0.9, bayes_risk=0.2),
        "false negatives alone": partial(two_level_model, 0.9, false_class="negative"),
        "false positives alone": partial(two_level_model, 0.9, false_class="positive"),
    },
}


def tied(scores: np.ndarray, width: float) -> np.ndarray:
    """Ranks of the scores, equal where no step between neighbours exceeds a share of the range."""
    order = np.argsort(scores)
    steps = np.diff(scores[order]) > width * np.ptp(scores)
    ranks = np.empty(scores.size, dtype=np.intp)
    ranks[order] = np.concatenate(([0], np.cumsum(steps)))
    return ranks


def risks(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    fits: Iterable[Callable],
    width: float = 0.0,
    lambdas: tuple[float, ...] = LAMBDAS,
) -> np.ndarray:
    """Rank loss on the test items, methods by lambdas; a lambda is n times an alpha."""

    def risk(fit: Callable, penalty: float) -> float:
        scores = fit(alpha=penalty / y.size).fit(X, y).decision_function(X_test)
        return 1 - auc(y_test, tied(scores, width))

    return np.array([[risk(fit, penalty) for penalty in lambdas] for fit in fits])


def is_silent(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether the hinge without weights gives all items one score: at one penalty, as at all."""
    return METHODS["hinge"](alpha=1 / y.size).fit(X, y).silent_


def simulate(part: str, scenario: str, index: int, methods: Iterable[str] | None = None) -> dict:
    """Mean rank loss over training sets drawn from one random model, methods by lambdas.

    "silent" counts the sets on which the hinge without weights is. If it is on some and not on
    others, "speaking" is the mean over the others.
    """
    seed = [SEED, list(SCENARIOS[part]).index(scenario), index]
    if part == "weights":
        seed = [SEED + 1, *seed[1:]]
    model = SCENARIOS[part][scenario](rng=np.random.default_rng([*seed, 0]))
    X_test, y_test = model.sample(N_TEST, np.random.default_rng([*seed, 1]))
    sets = [
        model.sample(N_TRAIN, np.random.default_rng([*seed, 2 + k])) for k in range(N_SETS[part])
    ]
    fits = [METHODS[m] for m in (RUN[part] if methods is None else methods)]
    tables = np.array([risks(X, y, X_test, y_test, fits) for X, y in sets])
    bayes = 1 - auc(y_test, model.bayes_scores(X_test))
    silent = np.array([is_silent(X, y) for X, y in sets])
    result = {
        "risk": tables.mean(axis=0).round(6).tolist(),
        "bayes": round(bayes, 6),
        "silent": int(silent.sum()),
    }
    if 0 < silent.sum() < silent.size:
        result["speaking"] = tables[~silent].mean(axis=0).round(6).tolist()
    return result


def cross_validate(name: str, lambdas: tuple[float, ...] = LAMBDAS) -> tuple | None:
    """Mean rank loss over all folds of a UCI data set, and the number of those where the hinge
    without weights is silent; or None where it is not at hand."""
    nominal = ["Patients_year_of_operation"] if name.endswith(", year nominal") else []
    try:
        data = load_uci(name.removesuffix(", year nominal"), nominal=nominal, progress=False)
    except DatasetUnavailable:
        return None
    fits, tables, silent = [METHODS[m] for m in RUN["uci"]], [], 0
    for repeat in range(N_REPEATS):
        folds = StratifiedKFold(n_splits=10, shuffle=True, random_state=SEED + repeat)
        for train, test in folds.split(data.X, data.y):
            prepare = make_pipeline(SimpleImputer(), StandardScaler())
            X, X_test = prepare.fit_transform(data.X[train]), prepare.transform(data.X[test])
            found = risks(X, data.y[train], X_test, data.y[test], fits, TIE_WIDTH, lambdas)
            tables.append(found)
            silent += is_silent(X, data.y[train])
    mean: np.ndarray = np.stack(tables).mean(axis=0)
    return mean.round(6).tolist(), silent


def uci_names() -> list[str]:
    """The nine data sets, and Haberman's with the year as WEKA's file has it."""
    return [*UCI_NAMES, "haberman, year nominal"]


def _tasks(quick: bool) -> Iterator[tuple]:
    """Part, scenario or data set, and number of the model of every piece of work."""
    for part, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            for index in range(1 if quick else N_MODELS[part]):
                yield part, scenario, index
    for name in ["haberman"] if quick else uci_names():
        yield "uci", name, 0


def compute(quick: bool, progress: bool) -> dict:
    """Run everything, or the first model of each kind and one UCI data set.

    Parameters
    ----------
    quick : bool
        Compute a small part of every table.
    progress : bool
        Show a progress bar.

    Returns
    -------
    dict
        "seed", "lambdas" and the "methods" of each part; "simulation" and "weights": for each
        scenario a list of models, each with its mean "risk", methods by lambdas, the "bayes" risk
        of its test set, the number of "silent" training sets and, if some are and some are not,
        the risk on those that are "speaking"; "uci": for each data set its mean risk, methods by
        lambdas; "uci_silent": the number of its silent folds.
    """
    from tqdm.auto import tqdm  # here, because in a notebook its import may warn

    result: dict = {"seed": SEED, "lambdas": LAMBDAS, "methods": RUN}
    for part, scenarios in SCENARIOS.items():
        result[part] = {scenario: [] for scenario in scenarios}
    result["uci"], result["uci_silent"] = {}, {}
    # Fits of this size are slower on several threads than on one.
    with threadpool_limits(1):
        for part, name, index in tqdm(list(_tasks(quick)), desc="tasks", disable=not progress):
            if part != "uci":
                result[part][name].append(simulate(part, name, index))
            elif (found := cross_validate(name)) is not None:
                result["uci"][name], result["uci_silent"][name] = found
    return result
