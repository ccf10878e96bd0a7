"""The hinge of many items: values and bounds by brute force, and what goes on where steps stall."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankbook import costs as cost_schemes
from rankbook.models import PairwiseRanker, _hinge_descent, _hinge_path
from rankbook.models._hinge_descent import certify, descend
from rankbook.models._pair_objective import PairRisk
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design


def sample(n=9000, p=4, K=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    f = X @ rng.normal(size=p) + 2 * rng.logistic(size=n)
    return X, np.digitize(f, np.quantile(f, np.linspace(0, 1, K + 1)[1:-1]))


def risk_of(X, y, alpha, **options):
    sums = PairSums(y, "hinge", **options)
    return PairRisk(Design.build(X), sums, alpha / Design.build(X).scale ** 2)


def brute(X, y, coef, alpha, matrix, weight, qid):
    """The objective, and the dual value of the pairs below the margin, pair by pair."""
    f, value, chosen, total = X @ coef, 0.0, 0.0, 0.0
    pull = np.zeros(X.shape[1])
    for query in np.unique(qid):
        for i in range(len(matrix)):
            up = np.flatnonzero((y == i) & (qid == query))
            for j in range(len(matrix)):
                low = np.flatnonzero((y == j) & (qid == query))
                pairs = weight[up][:, None] * weight[low]
                total += pairs.sum() * (j < i)
                if not matrix[j, i]:
                    continue
                short = 1.0 - (f[up][:, None] - f[low])
                value += matrix[j, i] * (pairs * np.maximum(short, 0.0)).sum()
                pairs = matrix[j, i] * pairs * (short > 0)
                chosen += pairs.sum()
                pull += pairs.sum(axis=1) @ X[up] - pairs.sum(axis=0) @ X[low]
    ridge = 0.5 * alpha * coef @ coef
    return value / total + ridge, chosen / total - pull @ pull / total**2 / (2 * alpha)


@pytest.mark.parametrize("case", ["two classes", "four classes", "weights", "lists"])
@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_value_and_gap_are_those_of_every_pair(case, alpha):
    X, y = sample(K=4 if case == "four classes" else 2)
    rng = np.random.default_rng(1)
    weight = rng.exponential(size=y.size) if case == "weights" else np.ones(y.size)
    qid = rng.integers(0, 8, y.size) if case == "lists" else np.zeros(y.size, dtype=int)
    matrix = cost_schemes.linear(4 if case == "four classes" else 2)
    risk = risk_of(X, y, alpha, costs=matrix, sample_weight=weight, qid=qid)
    found = descend(risk, 1e-6, 100)
    value, bound = brute(X, y, risk.design.coef(found.fit.coef), alpha, matrix, weight, qid)
    assert found.fit.value == pytest.approx(value, rel=1e-11)
    # The best bound need not come from the best point.
    fit, _ = certify(risk, found.fit.coef, risk.sums.loss)
    assert fit.value - fit.gap == pytest.approx(bound, rel=1e-9)
    assert found.fit.gap <= fit.gap * (1 + 1e-12)
    if case != "lists":
        assert found.fit.gap <= 1e-6 * value and found.fit.n_iter <= 10


def lists_of(kind, seed):
    rng = np.random.default_rng(seed)
    n = 9000
    X = {
        "rounded": np.round(rng.normal(size=(n, 6))),
        "half": np.round(2 * rng.normal(size=(n, 3))) / 2 + 0.0,
        "mixed": np.hstack([(rng.random((n, 4)) < 0.3) * 1.0, rng.normal(size=(n, 3))]),
        "heavy tails": rng.standard_t(2, size=(n, 5)),
        "separable": rng.normal(size=(n, 4)),
        "rare": rng.normal(size=(n, 4)),
    }[kind]
    f = X @ rng.normal(size=X.shape[1])
    f = f + (0 if kind == "separable" else 2) * rng.logistic(size=n)
    return X, (f > np.quantile(f, 0.99 if kind == "rare" else 0.6)).astype(int)


@pytest.mark.parametrize("kind", ["rounded", "half", "mixed", "heavy tails", "separable", "rare"])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
def test_the_minimum_is_that_of_the_other_method(monkeypatch, kind, alpha):
    X, y = lists_of(kind, seed=3)
    fit = PairwiseRanker("hinge", alpha=alpha).fit(X, y)
    monkeypatch.setattr(_hinge_path, "descend", lambda *_: None)
    other = PairwiseRanker("hinge", alpha=alpha).fit(X, y)
    assert fit.dual_gap_ <= 1e-6 and other.dual_gap_ <= 1e-6
    assert fit.objective_ == pytest.approx(other.objective_, rel=1.1e-6)


def test_many_columns_are_left_to_the_other_method():
    X, y = sample(n=1000, p=301)
    assert descend(risk_of(X, y, 0.1), 1e-6, 100) is None
    assert descend(risk_of(X[:, :300], y, 0.1), 1e-6, 100) is not None


@pytest.mark.parametrize("lists", [1, 6])
def test_the_first_hessian_is_half_that_of_the_squared_loss(lists):
    """Between zero, where no pair is at the kink, and the minimiser."""
    X, y = sample(n=300, K=3)
    qid = np.arange(300) % lists
    risk = risk_of(X, y, 0.1, qid=qid)
    pairs = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    D = (X[pairs[0]] - X[pairs[1]]) / risk.design.scale
    expected = 0.5 * D.T @ D / len(D) + np.diag(risk.ridge)
    np.testing.assert_allclose(_hinge_descent._first_hessian(risk), expected, rtol=1e-9)


def test_steps_that_run_out_leave_an_honest_gap():
    X, y = sample()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        early = PairwiseRanker("hinge", alpha=1e-3, max_iter=1, tol=1e-9).fit(X, y)
    assert early.n_iter_ == 1
    late = PairwiseRanker("hinge", alpha=1e-3, tol=1e-8).fit(X, y)
    assert early.objective_ * (1 - early.dual_gap_) <= late.objective_ * (1 + 1e-12)
    assert early.objective_ > late.objective_ * (1 + 1e-9)


def test_a_tolerance_below_single_pairs_is_reached_by_the_other_method():
    X, y = sample()
    seen = []
    solve = _hinge_path.solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_hinge_path, "solve", lambda *a, **k: seen.append(1) or solve(*a, **k))
        rough = PairwiseRanker("hinge", alpha=1e-2, tol=1e-6).fit(X, y)
        assert not seen
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fine = PairwiseRanker("hinge", alpha=1e-2, tol=1e-15).fit(X, y)
        assert seen
    assert fine.dual_gap_ < 1e-13 < rough.dual_gap_
    assert fine.objective_ <= rough.objective_


def test_steps_from_zero_have_more_patience():
    """The first two gain little there: the Hessian is a guess."""
    rng = np.random.default_rng(3)
    direction = rng.normal(size=5) / np.sqrt(5)
    X = rng.normal(size=(10_000, 5))
    risk = risk_of(X, (X @ direction + rng.normal(size=10_000) > 0).astype(int), 1e-3)
    found = descend(risk, 1e-6, 100)
    assert found.fit.gap <= 1e-6 * found.fit.value and found.part is None
    hasty = descend(risk, 1e-6, 100, hasty=True)
    assert hasty.fit.gap > 0.1 * hasty.fit.value


def test_items_whose_scores_overflow_are_left_to_the_other_method(monkeypatch):
    X, y = sample()
    monkeypatch.setattr(_hinge_descent, "_MANY", 4)
    part = risk_of(X, y, 0.1).thinned(2000 / 9000)
    left_out = np.setdiff1d(np.arange(len(y)), risk_of(X, y, 0.1).sums.thinned(2000 / 9000)[0])[0]
    assert part is not None
    X[left_out] = 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = PairwiseRanker("hinge", alpha=1e-2).fit(X, y)
    assert np.isfinite(found.objective_) and found.objective_ <= 1.0


def test_progress_is_reported(monkeypatch):
    X, y = sample()
    seen = []
    descend(risk_of(X, y, 1e-2), 1e-6, 100, lambda *numbers: seen.append(numbers))
    steps, values, gaps = zip(*seen, strict=True)
    assert list(steps) == sorted(steps) and len(steps) >= 3
    assert list(values) == sorted(values, reverse=True)
    assert gaps[-1] <= 1e-6 * values[-1] < gaps[0]


def test_a_second_hessian_is_formed_where_the_first_misleads(monkeypatch):
    X, y = sample()
    formed = _hinge_descent._rounded_hessian
    unlike = np.outer([1.0, 5.0, 0.3, 2.0], [1.0, 5.0, 0.3, 2.0])
    widths = []

    def mislead(risk, coef, width):
        widths.append(width)
        hessian = formed(risk, coef, width)
        return unlike * hessian if width == _hinge_descent._SMOOTHING else hessian

    monkeypatch.setattr(_hinge_descent, "_rounded_hessian", mislead)
    monkeypatch.setattr(_hinge_descent, "_MANY", 4)
    monkeypatch.setattr(_hinge_descent, "_FEW_STEPS", 0)
    monkeypatch.setattr(_hinge_descent, "_STEPS", 3)
    found = descend(risk_of(X, y, 1e-2), 1e-6, 100)
    assert widths[-1] < widths[0] == _hinge_descent._SMOOTHING
    exact = PairwiseRanker("hinge", alpha=1e-2).fit(X, y).objective_
    assert found.fit.value == pytest.approx(exact, rel=1e-3)
