"""ValueRegularizedRanker against scikit-learn's Ridge and against explicit pairs."""

from __future__ import annotations

from benchmarks import harness  # first: it fixes the number of threads

# isort: split
import tracemalloc

import numpy as np
from sklearn.linear_model import Ridge

from rankbook.models import ValueRegularizedRanker

_FEATURES, _PER_QUERY = 100, 100


def _data(n_queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    n = n_queries * _PER_QUERY
    X = rng.standard_normal((n, _FEATURES))
    y = np.digitize(X @ rng.standard_normal(_FEATURES) / 10 + rng.standard_normal(n), [-1, 0, 1, 2])
    return X, y, np.repeat(np.arange(n_queries), _PER_QUERY)


def _explicit(X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """Form every pair of a query and solve the same normal equations."""
    gradient, n_pairs = np.zeros(X.shape[1]), 0
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        i, j = np.nonzero(y[rows][:, None] > y[rows][None, :])
        weights = (y[rows][i] - y[rows][j]).astype(float)
        gradient += weights @ (X[rows[i]] - X[rows[j]])
        n_pairs += i.size
    normal = 2e-4 / len(y) * X.T @ X + np.eye(X.shape[1])
    return np.linalg.solve(normal, gradient / n_pairs)


def run() -> None:
    """Print the times for 1e6 items and how they and the memory grow."""
    model = ValueRegularizedRanker()
    X, y, qid = _data(100)
    np.testing.assert_allclose(model.fit(X, y, qid=qid).coef_, _explicit(X, y, qid), rtol=1e-9)
    explicit = 100 * harness.measure(lambda: _explicit(X, y, qid), repeat=1)

    X, y, qid = _data(10_000)
    pairs = model.fit(X, y, qid=qid).n_pairs_
    ridge = Ridge(fit_intercept=False, solver="cholesky")
    harness.table(
        f"Value-regularised: 1e6 items, {_FEATURES} features, 1e4 queries, {pairs:.0e} pairs",
        [
            ("rankbook", harness.measure(lambda: model.fit(X, y, qid=qid))),
            ("Ridge on the same items", harness.measure(lambda: ridge.fit(X, y.astype(float)))),
            ("explicit pairs (scaled from 1e4 items)", explicit),
        ],
    )
    rows = []
    for n in (250_000, 500_000, 1_000_000):
        part = X[:n], y[:n]
        tracemalloc.start()
        model.fit(*part, qid=qid[:n])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        seconds = harness.measure(lambda part=part, n=n: model.fit(*part, qid=qid[:n]))
        rows.append((f"{n} items, {peak / n:.0f} bytes an item beyond X", seconds))
    harness.table("Growth with the number of items", rows)


if __name__ == "__main__":
    run()
