"""Univariate against pairwise training: the experiment of Kotlowski et al. (2011), section 5.

``python does_pairwise_pay.py`` runs all of it, some twenty-five minutes on one core, and writes
``does_pairwise_pay.json`` beside itself. ``--quick`` runs the slice that the chapter recomputes and
compares it with the stored one, ``--jobs`` uses several processes. The nine UCI data sets are run
where `rankbook.datasets.load_uci` finds them; otherwise the stored results are kept.

The paper has 30 random models with 30 training sets each. Here it is 30 models with 5 training
sets: the methods share them, so that differences are much less noisy than levels. On the UCI data
it is ten times tenfold cross-validation, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rankbook.datasets import UCI_NAMES, load_uci, make_linear_model, make_rule_model
from rankbook.exceptions import DatasetUnavailable
from rankbook.metrics import auc
from rankbook.models import PairwiseRanker, UnivariateRanker

RESULTS = Path(__file__).with_name("does_pairwise_pay.json")
SEED = 2011
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
SCENARIOS = {
    "linear, balanced": (make_linear_model, 0.5),
    "linear, imbalanced": (make_linear_model, 0.9),
    "rules, balanced": (make_rule_model, 0.5),
    "rules, imbalanced": (make_rule_model, 0.9),
}
METHODS: dict[str, Callable] = {
    "exponential": partial(UnivariateRanker, "exponential"),
    "logistic": partial(UnivariateRanker, "logistic"),
    "logistic, weighted": partial(UnivariateRanker, "logistic", balanced=True),
    "pairwise hinge": partial(PairwiseRanker, "hinge", tol=1e-4),
    "pairwise logistic": partial(PairwiseRanker, "logistic", tol=1e-6),
}
PAPER_METHODS = ("exponential", "logistic", "pairwise hinge")
N_MODELS, N_SETS, N_TRAIN, N_TEST = 30, 5, 1000, 10_000
N_REPEATS = 10  # of tenfold cross-validation
SLICE = ("linear, imbalanced", 0, 1)  # scenario, model, number of training sets


def risks(X, y, X_test, y_test, methods: Iterable[str]) -> list[list[float]]:
    """Rank loss on the test items for every method and every lambda."""
    return [
        [
            1 - auc(y_test, METHODS[name](alpha=value / y.size).fit(X, y).decision_function(X_test))
            for value in LAMBDAS
        ]
        for name in methods
    ]


def simulate(scenario: str, index: int, n_sets: int = N_SETS) -> dict:
    """Mean rank loss over training sets drawn from one random model, methods by lambdas."""
    make, prior = SCENARIOS[scenario]
    seed = [SEED, list(SCENARIOS).index(scenario), index]
    model = make(prior, rng=np.random.default_rng([*seed, 0]))
    X_test, y_test = model.sample(N_TEST, np.random.default_rng([*seed, 1]))
    total = 0.0
    for k in range(n_sets):
        X, y = model.sample(N_TRAIN, np.random.default_rng([*seed, 2 + k]))
        total = total + np.array(risks(X, y, X_test, y_test, METHODS))
    bayes = 1 - auc(y_test, model.bayes_scores(X_test))
    return {"risk": np.round(total / n_sets, 6).tolist(), "bayes": round(bayes, 6)}


def cross_validate(name: str, repeat: int) -> list[list[float]] | None:
    """Mean rank loss over ten folds of a UCI data set, or None where it is not at hand."""
    year = "Patients_year_of_operation"
    try:
        if name == "haberman, year nominal":
            data = load_uci("haberman", nominal=[year], progress=False)
        else:
            data = load_uci(name, progress=False)
    except DatasetUnavailable:
        return None
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=1, random_state=SEED + repeat)
    total = 0.0
    for train, test in folds.split(data.X, data.y):
        prepare = make_pipeline(SimpleImputer(), StandardScaler())
        X, X_test = prepare.fit_transform(data.X[train]), prepare.transform(data.X[test])
        total = total + np.array(risks(X, data.y[train], X_test, data.y[test], PAPER_METHODS))
    return np.round(total / 10, 6).tolist()


def _call(task: tuple) -> tuple:
    kind, *arguments = task
    # Fits of this size are slower on several threads than on one.
    with threadpool_limits(1):
        return task, (simulate if kind == "simulation" else cross_validate)(*arguments)


def run(jobs: int = 1, n_models: int = N_MODELS, n_repeats: int = N_REPEATS) -> dict:
    """Run everything, with a progress bar; the result is what the file holds."""
    from tqdm.auto import tqdm  # here, because in a notebook its import may warn

    tasks = [("simulation", s, i) for s in SCENARIOS for i in range(n_models)]
    tasks += [("uci", name, r) for name in uci_names() for r in range(n_repeats)]
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            done = dict(tqdm(pool.map(_call, tasks), total=len(tasks), desc="tasks"))
    else:
        done = dict(tqdm(map(_call, tasks), total=len(tasks), desc="tasks"))
    result: dict = {
        "seed": SEED,
        "lambdas": LAMBDAS,
        "methods": list(METHODS),
        "slice": simulate(*SLICE),
        "simulation": {s: [done["simulation", s, i] for i in range(n_models)] for s in SCENARIOS},
        "uci": {},
    }
    for name in uci_names():
        values = [done["uci", name, r] for r in range(n_repeats)]
        if all(value is not None for value in values):
            result["uci"][name] = np.round(np.mean(values, axis=0), 6).tolist()
    return result


def uci_names() -> list[str]:
    """The nine data sets, and Haberman's with the year as WEKA's file has it."""
    return [*UCI_NAMES, "haberman, year nominal"]


def stored() -> dict:
    """The committed results."""
    return json.loads(RESULTS.read_text())


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--quick", action="store_true", help="only compare the slice")
    options = parser.parse_args()
    if options.quick:
        again, before = simulate(*SLICE), stored()["slice"]
        gap = np.abs(np.subtract(again["risk"], before["risk"])).max()
        print(f"largest difference from the stored slice: {gap:.1e}")
        return int(gap > 1e-4)
    result = run(options.jobs)
    if RESULTS.is_file():
        result["uci"] = {**stored()["uci"], **result["uci"]}
    RESULTS.write_text(json.dumps(result, indent=None, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
