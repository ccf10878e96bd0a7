"""UnivariateRanker against scikit-learn's LogisticRegression at the same objective."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import measure, table
from rankbook.models import UnivariateRanker


def _sample(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    score = X @ rng.normal(size=p) / np.sqrt(p) * 2 - 1
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


def _objective(X, y, coef, intercept, alpha) -> float:
    margin = np.where(y == 1, 1, -1) * (X @ coef + intercept)
    return float(np.logaddexp(0, -margin).mean() + alpha / 2 * coef @ coef)


def run() -> None:
    """Print the times of both losses, and of lbfgs at its default and at a tighter tolerance."""
    n, p, alpha = 10**6, 50, 1e-4
    X, y = _sample(n, p)
    rows, excess = [], []
    for loss in ("logistic", "exponential"):
        model = UnivariateRanker(loss=loss, alpha=alpha)
        rows.append((f"rankbook, {loss}", measure(lambda m=model: m.fit(X, y), 2)))
        if loss == "logistic":
            best = model.objective_
    for tol in (1e-4, 1e-6, 1e-8):
        peer = LogisticRegression(C=1 / (n * alpha), tol=tol, max_iter=1000)
        rows.append(
            (f"LogisticRegression, lbfgs, tol={tol:.0e}", measure(lambda m=peer: m.fit(X, y), 2))
        )
        value = _objective(X, y, peer.coef_.ravel(), peer.intercept_[0], alpha)
        excess.append((tol, value - best))
    table(f"n = {n:.0e}, p = {p}, alpha = {alpha}", rows)
    for tol, gap in excess:
        print(f"  lbfgs at tol={tol:.0e} ends {gap:.1e} above rankbook's objective")
