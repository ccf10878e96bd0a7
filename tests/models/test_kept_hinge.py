"""The hinge over kept pairs against the smoothing path and against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from rankbook.models import PairwiseRanker
from rankbook.models import _hinge_path as path


def sample(n_queries=60, size=8, p=6, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), size)
    X = rng.normal(size=(qid.size, p))
    return X, np.digitize(X[:, 0] + rng.logistic(size=qid.size), [0.0, 2.0]), qid


def ranker(alpha, **options):
    return PairwiseRanker("hinge", "constant", consistent=False, alpha=alpha, **options)


@pytest.mark.parametrize("p", [6, 60])
@pytest.mark.parametrize("alpha", [1e-4, 1e-1, 10.0])
def test_agrees_with_the_smoothing_path(monkeypatch, alpha, p):
    X, y, qid = sample(p=p)
    kept = ranker(alpha).fit(X, y, qid=qid)
    assert kept.dual_gap_ <= 1e-8
    monkeypatch.setattr("rankbook.solvers.pair_sums.PairSums.pairs", None)
    smoothed = ranker(alpha).fit(X, y, qid=qid)
    np.testing.assert_allclose(kept.objective_, smoothed.objective_, rtol=1e-6)
    assert kept.objective_ <= smoothed.objective_ * (1 + 1e-8)


def test_objective_is_that_of_the_formula():
    X, y, qid = sample(n_queries=20)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, y.size)
    fit = ranker(0.05).fit(X, y, qid=qid, sample_weight=weight)
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    w, scores = weight[upper] * weight[lower], X @ fit.coef_
    hinge = np.maximum(1 - scores[upper] + scores[lower], 0) @ w / w.sum()
    value = hinge + 0.5 * 0.05 * fit.coef_ @ fit.coef_
    np.testing.assert_allclose(fit.objective_, value, rtol=1e-12)


def test_a_weak_ridge_gives_the_linear_program():
    X, y, qid = sample(n_queries=15, p=3)
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    rows, m = X[upper] - X[lower], len(upper)
    program = linprog(
        np.append(np.zeros(3), np.full(m, 1 / m)),
        A_ub=-np.hstack([rows, np.eye(m)]),
        b_ub=-np.ones(m),
        bounds=[(None, None)] * 3 + [(0, None)] * m,
    )
    fit = ranker(1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(fit.objective_, program.fun, rtol=1e-6)


def test_sparse_and_dense_items_agree():
    X, y, qid = sample(p=60)
    X[np.abs(X) < 1] = 0
    dense = ranker(0.01).fit(X, y, qid=qid)
    sparse = ranker(0.01).fit(sp.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=1e-8)


def test_all_pairs_on_the_slope_have_the_closed_form():
    X, y, qid = sample()
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    mean = (X[upper] - X[lower]).mean(axis=0)
    fit = ranker(1e3).fit(X, y, qid=qid)
    np.testing.assert_allclose(fit.coef_, mean / 1e3, rtol=1e-9)


def test_few_steps_are_reported():
    X, y, qid = sample()
    with pytest.warns(UserWarning, match="max_iter Newton steps"):
        fit = ranker(1e-4, max_iter=2).fit(X, y, qid=qid)
    assert fit.n_iter_ == 2


def test_kept_pairs_are_solved_by_multipliers(monkeypatch):
    X, y, qid = sample()
    calls = []
    real = path.minimize_kept_hinge
    monkeypatch.setattr(path, "minimize_kept_hinge", lambda *a: calls.append(1) or real(*a))
    ranker(0.1).fit(X, y, qid=qid)
    assert calls == [1]


def test_the_path_reports_and_stops(monkeypatch, capsys):
    X, y, qid = sample()
    monkeypatch.setattr("rankbook.solvers.pair_sums.PairSums.pairs", None)
    with pytest.warns(ConvergenceWarning, match="max_iter Newton steps were taken"):
        fit = ranker(1e-3, max_iter=2, verbose=1).fit(X, y, qid=qid)
    assert fit.n_iter_ == 2 and "to_go" in capsys.readouterr().err


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_the_gap_of_a_loose_path_bounds_the_distance(monkeypatch, alpha):
    X, y, qid = sample()
    exact = ranker(alpha).fit(X, y, qid=qid).objective_
    monkeypatch.setattr("rankbook.solvers.pair_sums.PairSums.pairs", None)
    for tol in (0.3, 0.03, 1e-3):
        loose = ranker(alpha, tol=tol).fit(X, y, qid=qid)
        assert 0 < loose.dual_gap_ <= tol
        assert loose.objective_ * (1 - loose.dual_gap_) <= exact * (1 + 1e-9)
