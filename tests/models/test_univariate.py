"""UnivariateRanker: scikit-learn, SciPy, closed forms, invariances, bad input."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from rankbook import losses
from rankbook.exceptions import CollinearityWarning, SeparationWarning
from rankbook.metrics import auc
from rankbook.models import PairwiseRanker, UnivariateRanker
from rankbook.models._margin_risk import MarginRisk
from rankbook.solvers.design import Design

LOSSES = ["logistic", "exponential", "squared_hinge", "squared"]
UNBOUNDED = ["logistic", "exponential"]


def make_data(n=300, p=4, shift=-1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5
    eta = 1 / (1 + np.exp(-(X @ np.linspace(-1, 1, p) + shift)))
    return X, (rng.random(n) < eta).astype(int)


@pytest.mark.parametrize("loss", LOSSES)
def test_check_estimator(loss):
    results = check_estimator(UnivariateRanker(loss=loss), on_skip=None)
    assert len(results) > 30


@pytest.mark.parametrize("alpha", [1e-4, 0.05, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_is_sklearns(alpha, weighted):
    X, y = make_data()
    weights = np.random.default_rng(1).integers(1, 5, y.size).astype(float) if weighted else None
    total = y.size if weights is None else weights.sum()
    ours = UnivariateRanker(alpha=alpha).fit(X, y, sample_weight=weights)
    theirs = LogisticRegression(C=1 / (total * alpha), tol=1e-12, solver="newton-cholesky")
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_.ravel(), atol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-8)


def test_unpenalised_logistic_is_maximum_likelihood():
    X, y = make_data()
    ours = UnivariateRanker(alpha=0.0).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_.ravel(), atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("balanced", [False, True])
def test_exponential_is_scipys(alpha, balanced):
    X, y = make_data(p=3)
    sign = 2 * y - 1
    weights = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean())) if balanced else 1.0

    def objective(v):
        e = weights * np.exp(-sign * (X @ v[:-1] + v[-1]))
        gradient = -np.append((sign * e) @ X, (sign * e).sum()) / y.size
        gradient[:-1] += alpha * v[:-1]
        return e.mean() + alpha / 2 * v[:-1] @ v[:-1], gradient

    found = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-11})
    ours = UnivariateRanker("exponential", alpha=alpha, balanced=balanced).fit(X, y)
    np.testing.assert_allclose(ours.coef_, found.x[:-1], atol=1e-7)
    assert ours.intercept_ == pytest.approx(found.x[-1], abs=1e-7)
    assert ours.objective_ == pytest.approx(found.fun, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.02, 1.0])
def test_balancing_the_exponential_loss_rescales_alpha(alpha):
    X, y = make_data(shift=-2.0)
    p = y.mean()
    balanced = UnivariateRanker("exponential", alpha=alpha, balanced=True).fit(X, y)
    scaled = 2 * alpha * np.sqrt(p * (1 - p))
    plain = UnivariateRanker("exponential", alpha=scaled).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, plain.coef_, atol=1e-9)
    if alpha:
        same = UnivariateRanker("exponential", alpha=alpha).fit(X, y)
        assert np.abs(same.coef_ - balanced.coef_).max() > 1e-3


def test_balancing_the_logistic_loss_is_no_rescaling():
    X, y = make_data(shift=-2.0)
    plain = UnivariateRanker(alpha=0.0).fit(X, y).coef_
    balanced = UnivariateRanker(alpha=0.0, balanced=True).fit(X, y).coef_
    ratio = balanced / plain
    assert ratio.max() - ratio.min() > 1e-3


def test_unpenalised_exponential_minimises_rankboosts_sum():
    """The pairwise exponential sum has the same minimiser (up to the intercept)."""
    X, y = make_data(p=3)
    positive, negative = X[y == 1], X[y == 0]

    def pairs(b):
        return np.log(np.exp(-positive @ b).sum()) + np.log(np.exp(negative @ b).sum())

    found = minimize(pairs, np.zeros(3), method="BFGS", options={"gtol": 1e-10})
    ours = UnivariateRanker("exponential", alpha=0.0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, found.x, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_closed_form_without_slope(loss):
    """A huge penalty leaves the intercept: log odds, half of them, or 2 p - 1."""
    X, y = make_data(shift=-2.0)
    ranker = UnivariateRanker(loss, alpha=1e12).fit(X, y)
    odds = np.log(y.mean() / (1 - y.mean()))
    expected = {"logistic": odds, "exponential": odds / 2}.get(loss, 2 * y.mean() - 1)
    assert ranker.intercept_ == pytest.approx(expected, rel=1e-9)
    assert UnivariateRanker(loss, alpha=1e12, balanced=True).fit(X, y).intercept_ == pytest.approx(
        0, abs=1e-9
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions_and_order_is_nothing(loss):
    X, y = make_data(n=80)
    times = np.random.default_rng(2).integers(0, 4, y.size)
    weighted = UnivariateRanker(loss, alpha=0.1).fit(X, y, sample_weight=times)
    repeated = UnivariateRanker(loss, alpha=0.1).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)
    flipped = UnivariateRanker(loss, alpha=0.1).fit(X[::-1], 1 - y[::-1])
    plain = UnivariateRanker(loss, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(flipped.coef_, -plain.coef_, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_equivariance_without_penalty(loss):
    X, y = make_data()
    plain = UnivariateRanker(loss, alpha=0.0).fit(X, y)
    moved = UnivariateRanker(loss, alpha=0.0).fit(1000 * X + 7, y)
    np.testing.assert_allclose(moved.coef_ * 1000, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        moved.decision_function(1000 * X + 7), plain.decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_many_columns(loss):
    X, y = make_data(n=200, p=6)
    X[np.abs(X) < 0.5] = 0
    dense = UnivariateRanker(loss, alpha=0.1).fit(X, y)
    for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix):
        sparse = UnivariateRanker(loss, alpha=0.1).fit(kind(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-10)
        np.testing.assert_allclose(sparse.predict(kind(X)), dense.predict(X), atol=1e-9)
    wide = np.hstack([X, np.zeros((200, 1600))])
    np.testing.assert_allclose(
        UnivariateRanker(loss, alpha=0.1).fit(wide, y).coef_[:6], dense.coef_, atol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_thinned_start_changes_nothing(loss):
    """Large samples start from a thinned fit; sorted labels must not matter."""
    X, y = make_data(n=40_000, p=3)
    order = np.argsort(y, kind="stable")
    first = UnivariateRanker(loss, alpha=0.01).fit(X, y)
    second = UnivariateRanker(loss, alpha=0.01).fit(X[order], y[order])
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-9)
    design = Design(X, np.zeros(3), np.ones(3))
    weights, ridge = np.full(y.size, 1 / y.size), np.full(3, 0.01)
    risk = MarginRisk(design, 2.0 * y - 1, weights, losses.get(loss), ridge)
    x = np.append(first.coef_, first.intercept_)
    assert np.abs(risk._first_order(x)[1]).max() < 1e-9


@pytest.mark.parametrize("loss", UNBOUNDED)
def test_separable_data(loss):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = [0, 0, 1, 1]
    with pytest.warns(SeparationWarning, match="separates the classes of y so that"):
        ranker = UnivariateRanker(loss, alpha=0.0, tol=1e-10).fit(X, y)
    # The infimum is zero; twice, since the tail's decrement is half of what is left.
    assert 0 < ranker.objective_ < 4e-10
    assert np.isfinite(ranker.coef_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for alpha in (1e-8, 1e-3, 1.0):
            ranker = UnivariateRanker(loss, alpha=alpha).fit(X, y)
            assert ranker.score(X, y) == 1.0
    # Only in part: one pair of items ties on the boundary, and keeps its loss.
    with pytest.warns(SeparationWarning, match="in part"):
        ranker = UnivariateRanker(loss, alpha=0.0).fit([[0.0], [1.0], [1.0], [3.0]], y)
    assert ranker.objective_ == pytest.approx(0.5 * float(losses.get(loss)(0.0)), rel=1e-9)
    # A column that separates a few items.
    X, y = make_data(n=100)
    X = np.column_stack([X, np.where(y == 1, np.arange(100) % 7 == 0, 0.0)])
    with pytest.warns(SeparationWarning, match="in part"):
        UnivariateRanker(loss, alpha=0.0).fit(X, y)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared"])
def test_losses_that_reach_zero_have_a_minimiser(loss):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = UnivariateRanker(loss, alpha=0.0).fit(X, y)
    # Least squares on labels -1 and 1: slope 0.8; the squared hinge can reach zero.
    slope, value = {"squared": (0.8, 0.2), "squared_hinge": (2.0, 0.0)}[loss]
    assert ranker.objective_ == pytest.approx(value, abs=1e-12)
    assert ranker.coef_[0] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_collinear_data(loss):
    X, y = make_data()
    reference = UnivariateRanker(loss, alpha=0.0).fit(X, y)
    scores = reference.decision_function(X)
    for extra in (X[:, 0] - 2 * X[:, 1], np.full(len(y), 3.0), np.zeros(len(y))):
        wide = np.column_stack([X, extra])
        with pytest.warns(CollinearityWarning, match="not unique.*least norm"):
            ranker = UnivariateRanker(loss, alpha=0.0).fit(wide, y)
        np.testing.assert_allclose(ranker.decision_function(wide), scores, atol=1e-6)
        # Least norm: the coefficients are combinations of the rows, less their means.
        centred = wide - wide.mean(axis=0)
        least = np.linalg.pinv(centred) @ (scores - scores.mean())
        np.testing.assert_allclose(ranker.coef_, least, atol=1e-6)
        assert np.isfinite(UnivariateRanker(loss, alpha=0.1).fit(wide, y).coef_).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_time_stamps_are_columns_like_others(loss, alpha, sparse):
    """Multiples of 2^-10 stay exact when 1.7e9 is added."""
    X, y = make_data()
    X = np.round(X * 1024) / 1024
    plain = UnivariateRanker(loss, alpha=alpha).fit(X, y)
    for shift in (1e7, 1.7e9):
        moved = sp.csr_array(X + shift) if sparse else X + shift
        ranker = UnivariateRanker(loss, alpha=alpha).fit(moved, y)
        np.testing.assert_allclose(ranker.coef_, plain.coef_, rtol=1e-7)
        assert ranker.objective_ == pytest.approx(plain.objective_, rel=1e-12)
        assert ranker.score(moved, y) == pytest.approx(plain.score(X, y), abs=1e-3)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160])
def test_units_do_not_matter_without_a_ridge(unit):
    X, y = make_data()
    plain = UnivariateRanker(alpha=0.0).fit(X, y)
    ranker = UnivariateRanker(alpha=0.0).fit(X * unit, y)
    np.testing.assert_allclose(ranker.coef_ * unit, plain.coef_, rtol=1e-8)
    ridged = UnivariateRanker(alpha=1.0).fit(X * unit, y)
    assert np.isfinite(ridged.coef_).all()
    assert ridged.objective_ == pytest.approx(plain.objective_, rel=1e-9) or unit < 1


def test_default_alpha_leaves_columns_of_ordinary_units():
    """Four columns of other units: a ridge of 1 flattened the model, one of 1e-3 does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = (X @ [1.0, 1.0, -1.0, 0.5] + rng.logistic(size=2000) > 0).astype(int)
    X = X * [10.0, 1.0, 0.3, 0.1]
    full = UnivariateRanker(alpha=0.0).fit(X, y).score(X, y)
    assert UnivariateRanker().alpha == 1e-3
    assert full - UnivariateRanker().fit(X, y).score(X, y) < 0.01
    assert full - UnivariateRanker(alpha=1.0).fit(X, y).score(X, y) > 0.05


def test_scores_and_labels():
    X, y = make_data()
    words = np.array(["no", "yes"])[y]
    ranker = UnivariateRanker(labels=["no", "yes"]).fit(X, words)
    assert ranker.classes_.tolist() == ["no", "yes"]
    assert ranker.score(X, words) > 0.7
    against = UnivariateRanker(labels=["yes", "no"]).fit(X, words)
    np.testing.assert_allclose(against.coef_, -ranker.coef_, atol=1e-9)
    ranker = UnivariateRanker().fit(X, y)
    np.testing.assert_array_equal(ranker.predict(X), ranker.decision_function(X))
    assert ranker.score(X, y) == pytest.approx(auc(y, X @ ranker.coef_))
    weights = np.arange(y.size)
    qid = np.arange(y.size) // 100
    scores = ranker.decision_function(X)
    assert ranker.score(X, y, sample_weight=weights) == auc(y, scores, sample_weight=weights)
    assert ranker.score(X, y, qid=qid) == auc(y, scores, qid=qid)


def test_works_with_scikit_learn(capsys):
    X, y = make_data()
    ranker = UnivariateRanker(alpha=0.3, verbose=1)
    fitted = clone(ranker).fit(X, y)
    assert "Newton" in capsys.readouterr().err
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), UnivariateRanker()),
        {"univariateranker__alpha": [0.01, 1.0], "univariateranker__loss": LOSSES},
        cv=StratifiedKFold(3),
    )
    assert 0.5 < search.fit(X, y).best_score_ <= 1.0


def test_stopping_early_warns():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="stopped early.*max_iter"):
        UnivariateRanker(alpha=0.01, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"loss": "hinge"}, ValueError, "loss must be proper and smooth, got 'hinge'"),
        ({"loss": "absolute"}, ValueError, "loss must be"),
        ({"alpha": -1.0}, ValueError, "alpha must be at least 0"),
        ({"alpha": np.nan}, ValueError, "alpha must be"),
        ({"alpha": "1"}, TypeError, "alpha must be a real number"),
        ({"balanced": "yes"}, TypeError, "balanced must be True or False"),
        ({"tol": -1}, ValueError, "tol must be at least 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be an integer"),
    ],
)
def test_bad_parameters(parameters, error, message):
    X, y = make_data(n=20)
    with pytest.raises(error, match=message):
        UnivariateRanker(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        ([[0.0], [1.0], [2.0]], [0, 1, 2], None, "y must hold two classes, got 3"),
        ([[0.0], [1.0]], [1, 1], None, "y must hold at least 2 classes"),
        ([[0.0], [np.nan]], [0, 1], None, "NaN"),
        ([[0.0], [np.inf]], [0, 1], None, "infinity"),
        ([[0.0], [1.0]], [0, 1, 1], None, "y and X must have the same length"),
        ([[0.0], [1.0]], [0, 1], [1, 0], "sample_weight must be positive for items of both"),
        ([[0.0], [1.0]], [0, 1], [0, 0], "sample_weight must have a positive sum"),
        ([[0.0], [1.0]], [0, 1], [1, -1], "sample_weight must not be negative"),
        (np.zeros((2, 0)), [0, 1], None, "0 feature"),
        (np.zeros((0, 2)), [], None, "0 sample"),
    ],
)
def test_bad_data(X, y, weights, message):
    with pytest.raises(ValueError, match=message):
        UnivariateRanker().fit(X, y, sample_weight=weights)


def test_models_are_imported_lazily():
    code = "import rankbook.models, sys; assert 'rankbook.models.univariate' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    import rankbook.models

    assert set(rankbook.models.__all__) <= set(dir(rankbook.models))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        rankbook.models.Nothing  # noqa: B018


def test_points_that_overflow_have_no_hessian():
    X, y = make_data()
    design, sign = Design(X, np.zeros(4), np.ones(4)), np.where(y, 1.0, -1.0)
    risk = MarginRisk(design, sign, np.full(300, 1 / 300), losses.get("exponential"), np.zeros(4))
    with np.errstate(over="ignore", invalid="ignore"):
        value, _, hessian = risk.value_gradient_hessian(np.full(5, 1e4))
    assert value == np.inf and hessian is None


def test_a_start_from_items_of_one_class_is_the_best_intercept():
    # Every sixteenth item is positive, and those are the thinned sample's.
    rng = np.random.default_rng(0)
    n = 64_000
    y = (np.arange(n) % 16 != 0).astype(int)
    X = rng.normal(size=(n, 2)) + y[:, None]
    fit = UnivariateRanker(alpha=1e-3).fit(X, y)
    shuffled = rng.permutation(n)
    again = UnivariateRanker(alpha=1e-3).fit(X[shuffled], y[shuffled])
    np.testing.assert_allclose(fit.coef_, again.coef_, rtol=1e-6)
    np.testing.assert_allclose(fit.objective_, again.objective_, rtol=1e-9)


def test_columns_beyond_a_number_are_not_examined(monkeypatch):
    monkeypatch.setattr("rankbook.models._degenerate._MAX_COLUMNS", 3)
    X, y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollinearityWarning)
        fit = UnivariateRanker(alpha=0.0).fit(np.column_stack([X, X[:, 0]]), y)
        pairs = PairwiseRanker(alpha=0.0).fit(np.column_stack([X, X[:, 0]]), y)
    monkeypatch.undo()
    exact = UnivariateRanker(alpha=0.0).fit(X, y)
    np.testing.assert_allclose(fit.objective_, exact.objective_, rtol=1e-8)
    np.testing.assert_allclose(
        pairs.objective_, PairwiseRanker(alpha=0.0).fit(X, y).objective_, rtol=1e-8
    )
