"""Data of a student's own, for questions of the problem sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np


def two_markers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two correlated measurements of sixty people, and who is ill (problem set 1)."""
    y = rng.permutation(np.repeat([0, 1], [36, 24]))
    noise = rng.normal(size=(60, 2)) @ np.array([[1.0, rng.uniform(-0.4, 0.4)], [0.0, 1.0]])
    return np.round(noise + y[:, None] * rng.uniform(0.4, 1.2, 2), 2), y


def graded_items(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
    """Scores of eighty items, some of them tied, with five labels (problem set 2)."""
    y = rng.permutation(np.append(np.arange(5), rng.integers(0, 5, 75)))
    return np.round(y + rng.uniform(0.8, 1.5) * rng.normal(size=80), 1), y, 5


def shortlists(rng: np.random.Generator) -> tuple[list[list[int]], int]:
    """Ballots of twenty voters, who list up to four of twelve films (problem set 3)."""
    liking = rng.normal(size=12)
    lists = np.argsort(-liking - rng.gumbel(size=(20, 12)), axis=1)
    return [ballot[: rng.integers(1, 5)].tolist() for ballot in lists], 12


def two_groups(rng: np.random.Generator) -> tuple[np.ndarray]:
    """Counts of five labels in two groups, whose odds need not be proportional (problem set 4)."""
    latent = rng.logistic(size=300)
    group = np.repeat([0, 1], [160, 140])
    spread = np.where(group == 1, rng.uniform(0.6, 1.6), 1.0)
    y = np.searchsorted([-1.5, -0.4, 0.5, 1.6], rng.uniform(-0.8, 0.8) * group + spread * latent)
    return (np.bincount(5 * group + y, minlength=10).reshape(2, 5),)


def broken_lines(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three features of sixty items; the target has two slopes and a jump (problem set 5)."""
    X = np.round(rng.uniform(0, 6, (60, 3)), 1)
    x, slopes = X[:, rng.integers(3)], rng.uniform(0.4, 1.0, 2) * rng.choice([-1, 1], 2)
    left = x < rng.uniform(2, 4)
    y = np.where(left, slopes[0] * x, slopes[1] * x + rng.uniform(-1, 1))
    return X, np.round(y + 0.4 * rng.normal(size=60), 2)


@cache
def election_study() -> np.ndarray:
    """A row a person of the American National Election Study of 1996, which is public domain.

    The file ships with statsmodels; its columns are popul, TVnews, selfLR, ClinLR, DoleLR, PID,
    age, educ, income and vote. Reading it alone spares a submission the import of statsmodels.
    """
    spec = find_spec("statsmodels")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("these data come with the package statsmodels: pip install statsmodels")
    folder = Path(spec.submodule_search_locations[0])
    return np.loadtxt(folder / "datasets" / "anes96" / "anes96.csv", skiprows=1)


def party_survey(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nine answers of seven hundred people, and their party in seven steps (problem set 6)."""
    people = rng.choice(election_study(), 700, replace=False)
    X = np.delete(people, 5, axis=1)
    X[:, 0] = np.log(X[:, 0] + 0.1)
    return X, people[:, 5].astype(int)


DATASETS: dict[str, Callable[[np.random.Generator], tuple]] = {
    "P1.9": two_markers,
    "P2.9": graded_items,
    "P3.9": shortlists,
    "P4.9": two_groups,
    "P5.9": broken_lines,
    "P6.1": party_survey,
}
