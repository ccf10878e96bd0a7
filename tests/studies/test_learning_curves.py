"""The learning curves: exact machines, and stored numbers that are computed anew."""

import gzip
import warnings

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from rankbook import metrics, studies
from rankbook.exceptions import DatasetUnavailable, ThresholdOrderWarning
from rankbook.models import SVOR, RankBoundarySVM
from rankbook.studies import learning_curves as study
from rankbook.studies._hinge_sum import minimize_hinges

KERNEL = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
READINGS = tuple(study.SPREADS)


@pytest.fixture(scope="module")
def stored():
    return studies.load("learning_curves")


@pytest.fixture(scope="module")
def training():
    X, y, _ = study.sample(1000, 0.125, np.random.default_rng(0))
    chosen = study.draw(y, 30, np.random.default_rng(1))
    return X, X[chosen], y[chosen]


@pytest.mark.parametrize("weight", [1e-2, 1.0, 1e3])
def test_a_sum_of_hinges_against_cvxpy(weight):
    rng = np.random.default_rng(0)
    G, c = rng.normal(size=(40, 5)), rng.normal(size=40)
    u, gap = minimize_hinges(G, c, weight, 3)
    v = cp.Variable(5)
    loss = cp.sum_squares(v[:3]) / 2 + weight * cp.sum(cp.pos(c - G @ v))
    best = cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    own = u[:3] @ u[:3] / 2 + weight * np.maximum(c - G @ u, 0).sum()
    assert_allclose(own, best, rtol=1e-6)
    assert gap < 1e-7


def test_an_open_gap_is_told(monkeypatch):
    monkeypatch.setattr("rankbook.studies._hinge_sum._MAX_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        minimize_hinges(np.eye(3), np.ones(3), 1.0, 3)


@pytest.mark.parametrize(
    "method, model",
    [
        ("rank boundaries", RankBoundarySVM(C=100.0, **KERNEL)),
        ("SVOR, implicit", SVOR(C=100.0, **KERNEL)),
    ],
)
def test_ordinal_machines_are_those_of_the_package(training, method, model):
    X, few, y = training
    ranks, scores = study.fit(method, few, y, 100.0)(X)
    model.fit(few, y)
    assert_allclose(scores, model.decision_function(X), atol=1e-4)
    assert (ranks == model.predict(X)).mean() > 0.995


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, study.WEIGHT])
def test_thresholds_are_those_of_the_package(C):
    """At the smallest weight few pairs have their margin, and thresholds lie between means."""
    for seed, spread in enumerate(study.SPREADS.values()):
        X, y, _ = study.sample(45, spread, np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ThresholdOrderWarning)
            model = RankBoundarySVM(C=C, **KERNEL).fit(X, y)
        found = study._between_closest(model.decision_function(X), y)
        assert_allclose(found, model.thresholds_, atol=1e-9)


@pytest.mark.parametrize("model", [SVOR, RankBoundarySVM])
def test_the_package_says_where_the_weight_is_too_large_for_it(model):
    told = []
    for seed in range(4):
        X, y, _ = study.sample(1000, study.SPREADS["variance"], np.random.default_rng(seed))
        chosen = study.draw(y, 45, np.random.default_rng([seed, 45]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = model(C=study.WEIGHT, **KERNEL).fit(X[chosen], y[chosen])
        told.append(any(issubclass(w.category, ConvergenceWarning) for w in caught))
        assert told[-1] == (fitted.dual_gap_ > fitted.tol)
        if not told[-1]:
            method = "SVOR, implicit" if model is SVOR else "rank boundaries"
            scores = study.fit(method, X[chosen], y[chosen])(X)[1]
            assert_allclose(scores, fitted.decision_function(X), atol=1e-4)
    assert not all(told)


def test_classes_and_regression_are_those_of_libsvm(training):
    X, few, y = training
    svc = SVC(C=100.0, tol=1e-6, **KERNEL).fit(few, y)
    assert (study.fit("multiclass", few, y, 100.0)(X)[0] == svc.predict(X)).mean() > 0.99
    for method, codes in (
        ("regression, i", np.arange(1.0, 6)),
        ("regression, exp(i)", np.exp(range(1, 6))),
    ):
        svr = SVR(C=10.0, epsilon=study.TUBE, tol=1e-6, **KERNEL).fit(few, codes[y])
        ranks, scores = study.fit(method, few, y, 10.0)(X)
        assert_allclose(scores, svr.predict(X), atol=2e-3)
        nearest = np.abs(scores[:, None] - codes).argmin(axis=1)
        np.testing.assert_array_equal(ranks, nearest)


def test_draws_hold_every_rank_and_no_more():
    y = np.repeat([0, 1, 2], [50, 3, 2])
    for seed in range(20):
        chosen = study.draw(y, 4, np.random.default_rng(seed))
        assert chosen.sum() == 4
        assert set(y[chosen]) == {0, 1, 2}


def test_the_noise_moves_ranks_as_its_distribution_says():
    X, y, clean = study.sample(50_000, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(y, clean)
    np.testing.assert_array_equal(clean, (study.utility(X)[:, None] > study.THRESHOLDS).sum(axis=1))
    r = 1 / 2.5
    share = 0.5 * (1 - r * (1 - np.log(r)))
    assert abs((clean == 4).mean() - share) < 4 * np.sqrt(share / 50_000)


def test_measures_count_ties_as_they_say():
    y, scores = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 1.0, 2.0])
    found = study._measures(lambda X: (np.array([0, 1, 1, 1]), scores), np.zeros((4, 1)), y)
    assert_allclose(found, [0.5, 0.25, metrics.pairwise_risk(y, scores), 0.25])


@pytest.mark.parametrize("reading", READINGS)
def test_curves_are_computed_anew(stored, reading):
    """The smallest size, all draws."""
    spread = study.SPREADS[reading]
    again = study.curve(
        lambda d: study.sample(study.POOL, spread, np.random.default_rng(d))[:2], study.SIZES[:1]
    )
    _agree(again, stored[reading])


def test_the_query_is_computed_anew(stored):
    path = study.query_file()
    if path is None:
        pytest.skip("the documents of LETOR 3.0 are not there")
    X, y = study.read_query(path)
    assert stored["query"]["counts"] == np.bincount(y).tolist()
    _agree(study.curve(lambda _: (X, y), study.QUERY_SIZES[:1]), stored["query"]["curves"])


def _agree(again, stored):
    for method in study.METHODS:
        for measure in study.MEASURES:
            for key, values in again[method][measure].items():
                expected = stored[method][measure][key][:1]
                if values != [None] or expected != [None]:
                    # A threshold that passes an item moves one label of about a thousand.
                    assert_allclose(values, expected, atol=2e-4, err_msg=f"{method}, {measure}")


def test_thresholds_of_a_larger_size_are_computed_anew(stored, monkeypatch):
    """With five items there is one pair of neighbours; with thirty the rule decides."""
    monkeypatch.setattr(study, "METHODS", study.METHODS[:1])
    spread = study.SPREADS[READINGS[0]]
    again = study.curve(lambda d: study.sample(1000, spread, np.random.default_rng(d))[:2], (30,))
    for measure in study.MEASURES:
        expected = stored[READINGS[0]]["rank boundaries"][measure]["mean"][study.SIZES.index(30)]
        assert_allclose(again["rank boundaries"][measure]["mean"], [expected], atol=2e-4)


def test_larger_sizes_come_from_the_same_draws(stored):
    """Twelve draws of 45 items lie around the stored means."""
    reading, k = "variance", len(study.SIZES) - 1
    again = study.curve(
        lambda d: study.sample(study.POOL, study.SPREADS[reading], np.random.default_rng(d))[:2],
        study.SIZES[-1:],
        n_draws=12,
    )
    for method in study.METHODS:
        part, whole = again[method]["pairs"], stored[reading][method]["pairs"]
        spread = whole["mean error"][k] * np.sqrt(study.DRAWS / 12)
        assert abs(part["mean"][0] - whole["mean"][k]) < 4 * spread


def test_quick_needs_the_documents(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailable, match="S1.txt of LETOR"):
        studies.run("learning_curves", quick=True, progress=False)


def test_documents_of_the_first_query_alone(monkeypatch, tmp_path):
    folder = tmp_path / "letor3-ohsumed"
    folder.mkdir()
    text = "2 qid:1 1:3 2:4 #docid = 7\n0 qid:1 1:0 2:0 #docid = 8\n1 qid:10 1:1 2:1 #docid = 9\n"
    (folder / "S1.txt.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    X, y = study.read_query(study.query_file())
    assert_allclose(X, [[0.6, 0.8], [0, 0]])
    assert y.tolist() == [2, 0]
    (folder / "S1.txt").write_text(text)
    assert study.query_file().name == "S1.txt"


def test_form(stored):
    assert stored["sizes"] == list(study.SIZES)
    assert stored["query"]["sizes"] == list(study.QUERY_SIZES)
    for curves in (*(stored[r] for r in READINGS), stored["query"]["curves"]):
        assert list(curves) == list(study.METHODS)
        assert all(v is None for v in curves["multiclass"]["pairs, scores"]["mean"])
        for method in study.METHODS:
            for measure in ("pairs", "pairs, half", "labels"):
                assert all(0 < v < 1 for v in curves[method][measure]["mean"])
