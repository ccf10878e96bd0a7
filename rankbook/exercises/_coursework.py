"""Data of a student's own, for questions of the problem sets."""

from __future__ import annotations

from collections.abc import Callable

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


DATASETS: dict[str, Callable[[np.random.Generator], tuple]] = {
    "P1.9": two_markers,
    "P2.9": graded_items,
}
