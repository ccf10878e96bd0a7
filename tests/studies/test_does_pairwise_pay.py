"""The stored results are those of the code, and the code's parts do what they say."""

import copy
from functools import partial

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rankbook import metrics, studies
from rankbook.datasets import load_uci
from rankbook.exceptions import DatasetUnavailable
from rankbook.models import PairwiseRanker
from rankbook.studies import does_pairwise_pay as study
from rankbook.studies._kept_pairs import KeptPairsSVM
from rankbook.studies._linear_svm import _INSIDE, LinearSVM, hull_distance

RESULTS = studies.load("does_pairwise_pay")
MODELS = [(part, name) for part, scenarios in study.SCENARIOS.items() for name in scenarios]


def compare(results, part, name, again):
    """One entry of a table, computed again, against the file."""
    before = results[part][name][0]["risk"]
    assert np.shape(before) == (len(study.RUN[part]), len(study.LAMBDAS))
    np.testing.assert_allclose(again, before, rtol=0, atol=5e-5)


@pytest.mark.parametrize(("part", "name"), MODELS)
def test_the_first_model_of_each_kind_comes_out_again(part, name):
    again = study.simulate(part, name, 0)
    compare(RESULTS, part, name, again["risk"])
    assert again["bayes"] == pytest.approx(RESULTS[part][name][0]["bayes"], abs=5e-5)
    assert again["silent"] == RESULTS[part][name][0]["silent"]
    edited = copy.deepcopy(RESULTS)
    edited[part][name][0]["risk"][1][2] += 1e-4
    with pytest.raises(AssertionError):
        compare(edited, part, name, again["risk"])


def test_the_sets_where_the_hinge_speaks_come_out_again():
    # The first model on which it is silent on some training sets and not on others.
    stored = RESULTS["simulation"]["rules, imbalanced"][1]
    rows = [study.RUN["simulation"].index(m) for m in ("logistic", "hinge")]
    again = study.simulate("simulation", "rules, imbalanced", 1, ("logistic", "hinge"))
    assert again["silent"] == stored["silent"] == 2
    for key in ("risk", "speaking"):
        np.testing.assert_allclose(again[key], np.array(stored[key])[rows], rtol=0, atol=5e-5)
    # A silent machine ties all items: its rank loss is one half.
    parts = 2 / 5 * 0.5 + 3 / 5 * np.array(stored["speaking"])[rows[1]]
    np.testing.assert_allclose(stored["risk"][rows[1]], parts, rtol=0, atol=2e-6)


def test_silence_in_the_file():
    for part, name in MODELS:
        for model in RESULTS[part][name]:
            silent, hinge = model["silent"], model["risk"][study.RUN[part].index("hinge")]
            assert 0 <= silent <= study.N_SETS[part]
            assert (silent == study.N_SETS[part]) == (hinge == [0.5] * len(study.LAMBDAS))
            assert ("speaking" in model) == (0 < silent < study.N_SETS[part])
    assert set(RESULTS["uci_silent"]) == set(RESULTS["uci"])


def test_a_data_set_comes_out_again():
    # Every method, at a small and a large penalty.
    found = study.cross_validate("haberman", study.LAMBDAS[1::3])
    if found is None:
        pytest.skip("Haberman's data are not at hand")
    again, silent = found
    assert silent == RESULTS["uci_silent"]["haberman"]
    stored = np.array(RESULTS["uci"]["haberman"])
    assert stored.shape == (len(study.RUN["uci"]), len(study.LAMBDAS))
    np.testing.assert_allclose(again, stored[:, 1::3], rtol=0, atol=5e-5)
    stored[1, 4] += 1e-4
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(again, stored[:, 1::3], rtol=0, atol=5e-5)


def fold(name, repeat, number):
    """One fold of a UCI data set, prepared as the study has it."""
    try:
        data = load_uci(name, progress=False)
    except DatasetUnavailable:
        pytest.skip(f"the data set {name} is not at hand")
    folds = StratifiedKFold(n_splits=10, shuffle=True, random_state=study.SEED + repeat)
    train, test = list(folds.split(data.X, data.y))[number]
    prepare = make_pipeline(SimpleImputer(), StandardScaler())
    X, X_test = prepare.fit_transform(data.X[train]), prepare.transform(data.X[test])
    return X, data.y[train], X_test, data.y[test]


class TestTies:
    def test_ranks(self):
        scores = np.array([3.0, 0.0, 1.0, 1.0 + 1e-9, 10.0])
        np.testing.assert_array_equal(study.tied(scores, 0.0), [3, 0, 1, 2, 4])
        np.testing.assert_array_equal(study.tied(scores, 1e-6), [2, 0, 1, 1, 3])
        np.testing.assert_array_equal(study.tied(np.ones(3), 1e-6), [0, 0, 0])

    def test_an_increasing_transform_keeps_the_risk(self):
        rng = np.random.default_rng(7)
        y, scores = rng.integers(0, 2, 200), rng.integers(0, 9, 200) / 7
        assert metrics.auc(y, study.tied(scores, 1e-6)) == metrics.auc(y, scores)

    def test_minimisers_that_tie_items_are_told_from_those_that_nearly_do(self):
        # Of the steps between neighbours none is near the width.
        for number in range(3):
            X, y, X_test, _ = fold("haberman", 0, number)
            for penalty in (0.01, 0.1, 1.0):
                scores = KeptPairsSVM(penalty / y.size).fit(X, y).decision_function(X_test)
                steps = np.diff(np.sort(scores)) / np.ptp(scores)
                assert not ((steps > 1e-7) & (steps < 1e-5)).any()


def test_hinges_are_minimised_with_a_certificate():
    X, y, _, _ = fold("haberman", 0, 0)
    for name in ("hinge", "hinge, weighted", "pairwise hinge"):
        gaps = [study.METHODS[name](alpha=v / y.size).fit(X, y).dual_gap_ for v in study.LAMBDAS]
        assert max(gaps) < 1e-9
    model = study.SCENARIOS["simulation"]["linear, imbalanced"](rng=np.random.default_rng(8))
    X, y = model.sample(study.N_TRAIN, np.random.default_rng(9))
    for name in ("hinge", "hinge, weighted", "pairwise hinge"):
        gaps = [study.METHODS[name](alpha=v / y.size).fit(X, y).dual_gap_ for v in (0.01, 10)]
        assert max(gaps) < 2e-6


class TestKeptPairsSVM:
    @pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
    def test_against_the_machine_for_single_items_on_differences(self, penalty):
        X, y, X_test, y_test = fold("haberman", 0, 3)
        alpha = penalty / y.size
        found = KeptPairsSVM(alpha).fit(X, y)
        d = (X[y == 1][:, None] - X[y == 0][None]).reshape(-1, X.shape[1])
        # Each difference with both signs: the best intercept is zero.
        sign = np.repeat([1, 0], len(d))
        other = LinearSVM(alpha, tol=1e-11).fit(np.concatenate([d, -d]), sign)
        np.testing.assert_allclose(found.coef_, other.coef_, atol=1e-6 * abs(found.coef_).max())
        seen = [
            metrics.auc(y_test, study.tied(m.decision_function(X_test), 1e-6))
            for m in (found, other)
        ]
        assert seen[0] == seen[1]

    def test_agrees_with_the_package(self):
        model = study.SCENARIOS["simulation"]["rules, imbalanced"](rng=np.random.default_rng(1))
        X, y = model.sample(study.N_TRAIN, np.random.default_rng(2))
        X_test, y_test = model.sample(study.N_TEST, np.random.default_rng(3))
        fits = [partial(PairwiseRanker, "hinge", tol=1e-8), KeptPairsSVM]
        close, exact = study.risks(X, y, X_test, y_test, fits)
        np.testing.assert_allclose(close, exact, rtol=0, atol=5e-5)

    def test_no_queries_or_weights(self):
        with pytest.raises(ValueError, match="neither queries nor weights"):
            KeptPairsSVM(0.1).fit([[0.0], [1.0]], [0, 1], sample_weight=[1, 2])


def test_the_file_is_complete():
    assert RESULTS["seed"] == study.SEED and tuple(RESULTS["lambdas"]) == study.LAMBDAS
    assert {k: tuple(v) for k, v in RESULTS["methods"].items()} == study.RUN
    for part, name in MODELS:
        models = RESULTS[part][name]
        assert len(models) == study.N_MODELS[part]
        shape = (len(models), len(study.RUN[part]), len(study.LAMBDAS))
        assert np.array([m["risk"] for m in models]).shape == shape
        whole = (len(study.RUN[part]), len(study.LAMBDAS))
        assert all(np.shape(m.get("speaking", m["risk"])) == whole for m in models)
    assert set(RESULTS["uci"]) == set(study.uci_names())


def test_quick_is_a_part_of_the_whole():
    whole, part = list(study._tasks(False)), list(study._tasks(True))
    assert set(part) < set(whole) and len(whole) == 4 * 30 + 4 * 40 + 10
    assert {task[:2] for task in part} == {*MODELS, ("uci", "haberman")}


def test_populations_have_the_prior_and_the_least_risk():
    for name, make in study.SCENARIOS["weights"].items():
        model = make(rng=np.random.default_rng(3))
        X, y = model.sample(40_000, np.random.default_rng(4))
        assert y.mean() == pytest.approx(0.9, abs=0.01)
        wanted = 0.2 if name.endswith("0.2") else 0.1
        assert 1 - metrics.auc(y, model.bayes_scores(X)) == pytest.approx(wanted, abs=0.015)
    eta = model.bayes_scores(X)
    assert eta.max() == 1 and 0 < eta.min() < 1, "false positives alone"


class TestSilence:
    """A hinge without class weights whose minimiser is zero, whatever the penalty."""

    ALPHAS = (1e-5, 1e-3, 0.1, 10.0)

    @pytest.mark.parametrize("label", [0, 1])
    @pytest.mark.parametrize(("where", "silent"), [(0.0, True), (1.9, True), (2.1, False)])
    def test_one_item_against_three_by_hand(self, where, silent, label):
        # Of the larger class one item may count in full: the hull is that of -1, 0 and 2.
        X, y = np.array([[-1.0], [0.0], [2.0], [where]]), np.array([1, 1, 1, 0]) ^ label
        assert (hull_distance(X, y) < 1e-12) == silent
        for alpha in self.ALPHAS:
            found = LinearSVM(alpha).fit(X, y)
            assert found.silent_ == silent == (found.coef_[0] == 0)
            grid = np.linspace(-0.5, 0.5, 10_001)
            score = grid[:, None] * X[:, 0]
            sign = np.where(y == 1, 1.0, -1.0)
            cost = [
                np.maximum(1 - sign * (score + b[:, None]), 0).mean(axis=1)
                for b in (sign[None] - score).T
            ]
            value = np.min(cost, axis=0) + alpha / 2 * grid**2
            assert (abs(grid[value.argmin()]) < 1e-9) == silent

    def test_two_items_may_count_one_half_each(self):
        # Two against four: the largest mean of two of 0, 1, 3, 4 is 3.5, and 4 is beyond.
        X = np.array([0.0, 1.0, 3.0, 4.0, 3.0, 3.9])[:, None]
        y = np.array([1, 1, 1, 1, 0, 0])
        assert LinearSVM(0.1).fit(X, y).silent_
        X[5] = 4.1
        assert not LinearSVM(0.1).fit(X, y).silent_
        unit = np.sqrt(X.var())
        assert hull_distance(X, y) == pytest.approx(0.05 / unit, rel=1e-9)

    def test_against_directions_and_libsvm(self):
        rng = np.random.default_rng(11)
        angles = np.linspace(0, 2 * np.pi, 5_000)
        directions = np.array([np.cos(angles), np.sin(angles)])
        seen = set()
        for _ in range(20):
            y = np.repeat([0, 1], [5, 20])
            X = rng.normal(size=(25, 2)) + np.outer(y == 0, rng.normal(size=2))
            # Silent: in every direction the five highest are as high, on average, as the minority.
            ahead = (X[y == 0] @ directions).mean(axis=0)
            ahead = ahead - np.sort(X[y == 1] @ directions, axis=0)[-5:].mean(axis=0)
            silent = bool(ahead.max() < 0)
            seen.add(silent)
            assert silent == (hull_distance(X, y) < _INSIDE)
            found = LinearSVM(0.1).fit(X, y)
            assert found.silent_ == silent and abs(found.dual_gap_) < 1e-7
            other = SVC(kernel="linear", C=1 / (0.1 * y.size), tol=1e-6).fit(X, y).coef_[0]
            np.testing.assert_allclose(found.coef_, other, atol=1e-4)
            assert (np.abs(other).max() < 1e-4) == silent
        assert seen == {False, True}

    def test_the_two_kinds_are_far_apart(self):
        # The bound lies between the distances of all training sets; here those of one data set.
        distances = [hull_distance(*fold("haberman", 0, k)[:2]) for k in range(10)]
        assert all(d < 1e-3 * _INSIDE or d > 100 * _INSIDE for d in distances)
        assert min(distances) < _INSIDE < max(distances)

    def test_equal_class_weights_and_pairs_are_silent_for_equal_means_alone(self):
        X, y = np.array([[-1.0], [0.0], [2.0], [0.0]]), np.array([1, 1, 1, 0])
        assert LinearSVM(0.1).fit(X, y).silent_
        for name in ("hinge, weighted", "pairwise hinge"):
            assert abs(study.METHODS[name](alpha=0.1).fit(X, y).coef_[0]) > 0.1
        X[3] = 1 / 3
        weighted = LinearSVM(0.1, balanced=True).fit(X, y)
        assert weighted.silent_ and weighted.dual_gap_ < 1e-20
        assert abs(study.METHODS["pairwise hinge"](alpha=0.1).fit(X, y).coef_[0]) < 1e-6

    def test_stored_digits_rest_on_no_residue(self):
        # Two tolerances, and rows and columns in another order, as rounding on another processor.
        rng = np.random.default_rng(12)
        for number in range(10):
            X, y, X_test, y_test = fold("haberman", 0, number)
            rows, columns = rng.permutation(y.size), rng.permutation(X.shape[1])
            for penalty in study.LAMBDAS:
                fits = [
                    LinearSVM(penalty / y.size, tol=1e-12, accept=1e-7).fit(X, y),
                    LinearSVM(penalty / y.size, tol=1e-13, accept=1e-7).fit(X, y),
                ]
                scores = [m.decision_function(X_test) for m in fits]
                moved = LinearSVM(penalty / y.size, tol=1e-12, accept=1e-7)
                moved.fit(X[rows][:, columns], y[rows])
                scores.append(moved.decision_function(X_test[:, columns]))
                risk = [1 - metrics.auc(y_test, study.tied(s, 1e-6)) for s in scores]
                assert risk[0] == risk[1] == risk[2]
                assert (risk[0] == 0.5) == study.is_silent(X, y)


class TestLinearSVM:
    def data(self):
        rng = np.random.default_rng(5)
        X = rng.normal(size=(120, 4))
        return X, (X @ [1, -1, 0.5, 0] + rng.normal(size=120) > -1).astype(int)

    @pytest.mark.parametrize("balanced", [False, True])
    @pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0])
    def test_against_libsvm(self, alpha, balanced):
        X, y = self.data()
        reference = SVC(
            kernel="linear",
            C=1 / (alpha * y.size),
            class_weight="balanced" if balanced else None,
            tol=1e-9,
        ).fit(X, y)
        found = LinearSVM(alpha, balanced).fit(X, y).coef_
        np.testing.assert_allclose(found, reference.coef_[0], atol=2e-4)

    def test_a_shift_of_the_items_changes_nothing(self):
        X, y = self.data()
        plain, moved = LinearSVM(0.01).fit(X, y), LinearSVM(0.01).fit(X + 7, y)
        np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-6)

    def test_one_feature_and_two_items_by_hand(self):
        # The hinge of both is zero from a slope of 1 on, and the penalty wants no more.
        found = LinearSVM(0.01).fit([[-1.0], [1.0]], [0, 1]).coef_
        np.testing.assert_allclose(found, [1.0], atol=1e-4)

    def test_repeated_columns_share_the_coefficient(self):
        X, y = self.data()
        once = LinearSVM(0.05).fit(X[:, :1], y).coef_
        twice = LinearSVM(0.1).fit(np.repeat(X[:, :1], 2, axis=1), y).coef_
        np.testing.assert_allclose(twice, np.repeat(once / 2, 2), atol=1e-4)

    @pytest.mark.parametrize("balanced", [False, True])
    def test_classes_that_a_light_penalty_all_but_separates(self, balanced):
        rng = np.random.default_rng(6)
        X = rng.choice([-1.0, 0.1, 1.0], size=(400, 16))
        y = (X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.normal(size=400) > 0).astype(int)
        for alpha in (1e-4, 1e-6):
            model = LinearSVM(alpha, balanced).fit(X, y)
            weight = 0.5 / np.where(y == 1, y.mean(), 1 - y.mean()) if balanced else np.ones(400)
            sign, score = np.where(y == 1, 1, -1), model.decision_function(X)
            # The best intercept is at a kink.
            cost = [(weight * np.maximum(1 - sign * (score + b), 0)).mean() for b in sign - score]
            value = min(cost) + alpha / 2 * model.coef_ @ model.coef_
            other = SVC(
                kernel="linear",
                C=1 / (alpha * y.size),
                class_weight="balanced" if balanced else None,
                tol=1e-6,
                max_iter=10**6,
            ).fit(X, y)
            hinge = np.maximum(1 - sign * other.decision_function(X), 0)
            rival = (weight * hinge).mean() + alpha / 2 * other.coef_[0] @ other.coef_[0]
            assert value <= rival + 1e-7

    def test_steps_that_would_go_round_in_a_cycle(self):
        X, y, _, _ = fold("vote", 5, 9)
        found = LinearSVM(1 / y.size).fit(X, y).coef_
        reference = SVC(kernel="linear", C=1.0, tol=1e-9).fit(X, y).coef_[0]
        np.testing.assert_allclose(found, reference, atol=1e-4)

    def test_the_gap_bounds_the_distance_to_the_minimum(self):
        X, y = self.data()
        sign = np.where(y == 1, 1, -1)

        def value(model):
            score = model.decision_function(X)
            # The best intercept is at a kink.
            hinge = min(np.maximum(1 - sign * (score + b), 0).mean() for b in sign - score)
            return hinge + 0.01 / 2 * model.coef_ @ model.coef_

        rough, exact = LinearSVM(0.01, tol=1e-2).fit(X, y), LinearSVM(0.01, tol=1e-12).fit(X, y)
        excess = value(rough) / value(exact) - 1
        assert 1e-8 < excess <= rough.dual_gap_ * 1.1 < 0.1 and abs(exact.dual_gap_) < 1e-10
