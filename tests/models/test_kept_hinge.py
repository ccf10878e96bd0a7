"""The hinge over kept pairs against the smoothing path and against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from rankbook.models import PairwiseRanker
from rankbook.models import _hinge_path as path
from rankbook.models import _hinge_stages as stages
from rankbook.models import _kept_hinge as kept_hinge


def sample(n_queries=60, size=8, p=6, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), size)
    X = rng.normal(size=(qid.size, p))
    return X, np.digitize(X[:, 0] + rng.logistic(size=qid.size), [0.0, 2.0]), qid


def ranker(alpha, **options):
    return PairwiseRanker("hinge", "constant", consistent=False, alpha=alpha, **options)


def as_if_not_kept(monkeypatch):
    """The same fits by the path that rounds off the kink."""
    monkeypatch.setattr("rankbook.solvers.pair_sums.PairSums.n_kept", None)
    monkeypatch.setattr(path, "descend", lambda *_: None)


@pytest.mark.parametrize("p", [6, 60])
@pytest.mark.parametrize("alpha", [1e-4, 1e-1, 10.0])
def test_agrees_with_the_smoothing_path(monkeypatch, alpha, p):
    X, y, qid = sample(p=p)
    kept = ranker(alpha).fit(X, y, qid=qid)
    assert kept.dual_gap_ <= 1e-12
    as_if_not_kept(monkeypatch)
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


def test_many_columns_and_a_weak_ridge_are_no_obstacle():
    """At zero all pairs are as short as can be: the first step needs their curvature."""
    X, y, qid = sample(n_queries=20, size=12, p=60)
    fit = ranker(1e-6).fit(X, y, qid=qid)
    assert fit.dual_gap_ <= 1e-10
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    m, p = len(upper), X.shape[1]
    program = linprog(
        np.append(np.zeros(p), np.full(m, 1 / m)),
        A_ub=-np.hstack([X[upper] - X[lower], np.eye(m)]),
        b_ub=-np.ones(m),
        bounds=[(None, None)] * p + [(0, None)] * m,
    )
    penalty = 0.5e-6 * (fit.coef_ @ fit.coef_)
    assert program.fun <= fit.objective_ <= program.fun + 100 * penalty
    np.testing.assert_allclose(fit.objective_, program.fun, rtol=1e-4)


@pytest.mark.parametrize("seed", [8, 10, 11, 17, 27])
def test_columns_of_many_units_are_no_obstacle(seed):
    """A column in a large unit has so little ridge that no other curvature may stand in for it."""
    rng = np.random.default_rng(seed)
    qid, y = np.repeat(np.arange(4), 5), rng.integers(0, 3, 20)
    X = rng.normal(size=(20, 30)) * 10.0 ** np.linspace(0, 4, 30)
    ranker = PairwiseRanker(loss="hinge", alpha=1e-6).fit(X, y, qid=qid)
    assert ranker.dual_gap_ < 1e-6


def test_a_system_that_overflows_gives_no_step():
    """And no endless search for a matrix that can be factored."""
    assert_array_equal(stages._factored(np.full((2, 2), np.nan), np.ones(2)), [0.0, 0.0])


def test_an_objective_close_to_zero_is_that_of_its_coefficients(monkeypatch):
    """Long steps, as the first is where no pair has curvature, leave no rounding in the margins."""
    monkeypatch.setattr(kept_hinge, "_WIDE", 0.3)
    X, y, qid = sample(n_queries=10, size=30, p=200)
    with pytest.warns(ConvergenceWarning):
        fit = ranker(1e-8).fit(X, y, qid=qid)
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    hinge = np.maximum(1 - (X[upper] - X[lower]) @ fit.coef_, 0).mean()
    value = hinge + 0.5e-8 * fit.coef_ @ fit.coef_
    np.testing.assert_allclose(fit.objective_, value, rtol=1e-7)


def far_out(p, seed=0):
    """Queries of 64 pairs an item, with columns in which a few rows are far from the others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((320, p))
    scores = X @ rng.normal(size=p)
    y = np.digitize(scores, np.quantile(scores, [0.2, 0.4, 0.6, 0.8]))
    return X, y, np.repeat(np.arange(4), 80)


def test_steps_by_sorting_that_do_not_come_far_are_gone_on_with(monkeypatch):
    X, y, qid = far_out(60)
    fit = ranker(1e-4).fit(X, y, qid=qid)
    assert fit.dual_gap_ <= 1e-10 and fit.n_iter_ < 200
    monkeypatch.setattr(kept_hinge, "_PAIRS_OF_SORT", np.inf)
    other = ranker(1e-4, max_iter=1000).fit(X, y, qid=qid)
    np.testing.assert_allclose(fit.objective_, other.objective_, rtol=1e-9)


@pytest.mark.parametrize("max_iter", [1, 2])
def test_the_gap_is_never_more_than_the_objective(max_iter):
    """No loss is below zero, however few the steps."""
    X, y, qid = far_out(20)
    with pytest.warns(ConvergenceWarning):
        fit = ranker(1e-4, max_iter=max_iter).fit(X, y, qid=qid)
    assert fit.n_iter_ == max_iter
    assert fit.objective_ < 1 and 0 < fit.dual_gap_ <= 1


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
    with pytest.warns(UserWarning, match="max_iter steps"):
        fit = ranker(1e-4, max_iter=2).fit(X, y, qid=qid)
    assert fit.n_iter_ == 2


def test_kept_pairs_are_solved_by_multipliers(monkeypatch):
    X, y, qid = sample()
    calls = []
    real = path.minimize_kept_hinge
    monkeypatch.setattr(
        path, "minimize_kept_hinge", lambda *a, **k: calls.append(1) or real(*a, **k)
    )
    ranker(0.1).fit(X, y, qid=qid)
    assert calls == [1]


@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("p", [5, 90])
def test_many_pairs_an_item_are_sorted_first(monkeypatch, alpha, p):
    """Steps by sorting come before the pairs, and end a fit whose tolerance they reach."""
    X, y, qid = sample(n_queries=20, size=100, p=p, seed=4)
    listed = []
    real = kept_hinge.AllPairs
    monkeypatch.setattr(kept_hinge, "AllPairs", lambda risk: listed.append(1) or real(risk))
    fit = ranker(alpha).fit(X, y, qid=qid)
    assert listed and fit.dual_gap_ <= 1e-12
    listed.clear()
    rough = ranker(alpha, tol=1e-3).fit(X, y, qid=qid)
    assert rough.dual_gap_ <= 1e-3
    assert rough.objective_ >= fit.objective_ * (1 - 1e-12)
    assert not listed or alpha < 0.1
    monkeypatch.setattr(kept_hinge, "_PAIRS_OF_SORT", np.inf)
    other = ranker(alpha).fit(X, y, qid=qid)
    np.testing.assert_allclose(fit.objective_, other.objective_, rtol=1e-12)


def test_a_near_minimum_leaves_few_pairs_to_look_at(monkeypatch):
    """A tenth as many as items, the nearest to the kink; one round over them is exact."""
    X, y, qid = sample(n_queries=20, size=100, p=5, seed=4)
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    seen = []
    real = kept_hinge._near_kink

    def look(pairs, coef):
        stage, point = real(pairs, coef)
        seen.append((coef / pairs.design.scale, stage.width, point))
        return stage, point

    monkeypatch.setattr(kept_hinge, "_near_kink", look)
    ranker(0.1).fit(X, y, qid=qid)
    ((coef, width, point),) = seen
    short = 1 - (X[upper] - X[lower]) @ coef
    np.testing.assert_allclose(np.sort(point.short), np.sort(short), atol=1e-12)
    assert np.count_nonzero(np.abs(short) < width) == pytest.approx(len(y) / 10, abs=1)


def test_the_path_reports_and_stops(monkeypatch, capsys):
    X, y, qid = sample()
    as_if_not_kept(monkeypatch)
    with pytest.warns(ConvergenceWarning, match="max_iter steps were taken"):
        fit = ranker(1e-3, max_iter=2, verbose=1).fit(X, y, qid=qid)
    assert fit.n_iter_ == 2 and "to_go" in capsys.readouterr().err


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_the_gap_of_a_loose_path_bounds_the_distance(monkeypatch, alpha):
    X, y, qid = sample()
    exact = ranker(alpha).fit(X, y, qid=qid).objective_
    as_if_not_kept(monkeypatch)
    for tol in (0.3, 0.03, 1e-3):
        loose = ranker(alpha, tol=tol).fit(X, y, qid=qid)
        assert 0 < loose.dual_gap_ <= tol
        assert loose.objective_ * (1 - loose.dual_gap_) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1e-1, 1.0])
def test_reaches_the_minimum_to_rounding(alpha, weighted):
    X, y, qid = sample(n_queries=150, p=12)
    weight = np.random.default_rng(2).uniform(0.0, 2.0, y.size) if weighted else np.ones(y.size)
    weight[:3] = 0.0 if weighted else 1.0
    fit = ranker(alpha).fit(X, y, qid=qid, sample_weight=weight)
    upper, lower = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    w, margins = weight[upper] * weight[lower], (X @ fit.coef_)[upper] - (X @ fit.coef_)[lower]
    w = w / w.sum()
    # The conditions of a minimum: multipliers one below the kink, zero above it, and on it some
    # between that give the coefficients exactly.
    on = np.abs(margins - 1) < 1e-9
    rows = X[upper] - X[lower]
    left = alpha * fit.coef_ - (w * (margins < 1) * ~on) @ rows
    free = np.linalg.lstsq((w[on, None] * rows[on]).T, left, rcond=None)[0]
    assert 0 < on.sum() <= 12
    assert free.min() > -1e-8 and free.max() < 1 + 1e-8
    np.testing.assert_allclose(free @ (w[on, None] * rows[on]), left, atol=1e-11)
    assert fit.dual_gap_ <= 1e-12


def test_pairs_left_out_join_when_they_are_wrong(monkeypatch):
    """With a band that leaves out nearly all pairs, rounds add those that cross the kink."""
    X, y, qid = sample(n_queries=150, p=12)
    expected = ranker(0.01).fit(X, y, qid=qid).objective_
    chosen, real = [], stages.SomePairs

    def counted(pairs, free, held):
        chosen.append(len(free))
        return real(pairs, free, held)

    monkeypatch.setattr(kept_hinge, "SomePairs", counted)
    monkeypatch.setattr(kept_hinge, "_BAND", -0.4)
    fit = ranker(0.01).fit(X, y, qid=qid)
    assert len(chosen) >= 2 and chosen[-1] > chosen[0]
    np.testing.assert_allclose(fit.objective_, expected, rtol=1e-12)
    assert fit.dual_gap_ <= 1e-12


def test_never_over_some_pairs_where_many_are_near(monkeypatch):
    X, y, qid = sample(p=4)
    expected = ranker(0.1).fit(X, y, qid=qid).objective_
    monkeypatch.setattr(kept_hinge, "_SHARE", -1.0)
    monkeypatch.setattr(kept_hinge, "SomePairs", None)
    fit = ranker(0.1).fit(X, y, qid=qid)
    np.testing.assert_allclose(fit.objective_, expected, rtol=1e-11)


@pytest.mark.parametrize("k", [5, 30])
def test_curvature_both_ways(k):
    """Products undo solutions, by rows and by the Laplacian, with a weight of zero too."""
    rng = np.random.default_rng(3)
    design = stages.Design(rng.normal(size=(40, 12)), np.zeros(12), np.exp2(np.arange(12) - 6.0))
    upper, lower = rng.integers(0, 40, (2, k))
    weight, ridge, v = rng.random(k), rng.random(12) + 0.1, rng.normal(size=12)
    weight[0] = 0.0
    rows = stages._Rows(design.differences(upper, lower), design.scale, weight, ridge)
    laplacian = stages._Laplacian(design, (upper, lower), weight, ridge)
    D = (design.X[upper] - design.X[lower]) / design.scale
    image = D.T @ (weight * (D @ v)) + ridge * v
    for curvature in (rows, laplacian):
        np.testing.assert_allclose(curvature.product(v), image, rtol=1e-10)
        np.testing.assert_allclose(curvature.solve(image), v, rtol=1e-7, atol=1e-9)
