"""dlib's svm_rank_trainer on graded queries."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import measure  # first: fixes the threads

# isort: split
import numpy as np


def ranking_pairs(dlib: Any, X: np.ndarray, y: np.ndarray, qid: np.ndarray | None = None) -> Any:
    """The sample as dlib wants it; not timed.

    dlib knows two grades. The items of each grade stand against all lower ones of their query, so
    that each pair of different grades occurs once.
    """
    vectors = [dlib.vector(row) for row in X]
    data = dlib.ranking_pairs()
    qid = np.zeros(len(y), dtype=int) if qid is None else qid
    order = np.argsort(qid, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(qid[order])) + 1):
        for grade in np.unique(y[rows])[1:]:
            pair = dlib.ranking_pair()
            for row in rows[y[rows] == grade]:
                pair.relevant.append(vectors[row])
            for row in rows[y[rows] < grade]:
                pair.nonrelevant.append(vectors[row])
            data.append(pair)
    return data


def fit(
    dlib: Any, data: Any, alpha: float, epsilon: float, repeat: int = 1
) -> tuple[float, np.ndarray]:
    """CPU seconds and coefficients; dlib's c, beside w'w / 2, weighs the mean pair hinge."""
    trainer, models = dlib.svm_rank_trainer(), []
    trainer.c, trainer.epsilon = 1.0 / alpha, epsilon
    seconds = measure(lambda: models.append(trainer.train(data)), repeat=repeat)
    return seconds, np.array(models[0].weights)
