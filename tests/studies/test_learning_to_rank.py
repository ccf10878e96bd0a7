"""The learning-to-rank study: folds that share no query, and stored numbers computed anew."""

import os

import numpy as np
import pytest

from rankbook import metrics, studies
from rankbook.datasets import LetorData, make_letor
from rankbook.exceptions import DatasetUnavailable
from rankbook.studies import _letor_fits as fits
from rankbook.studies import learning_to_rank as study


@pytest.fixture(scope="module")
def stored():
    return studies.load("learning_to_rank")


@pytest.fixture(scope="module")
def fold():
    return fits.Fold.of(make_letor(40, 8, 5, rng=0), make_letor(30, 8, 5, rng=1), 4)


def agree(again, stored, name):
    """All but the values of single queries, which trees may move, to rounding."""
    part, whole = again["sets"][name], stored["sets"][name]
    for key in ("rows", "features", "query_features", "grades", "folds"):
        assert part[key] == whole[key]
    for kind in study.MEASURES:
        old = study.values(stored, name, kind)
        for method, new in study.values(again, name, kind).items():
            assert part["settings"][method] == whole["settings"][method]
            np.testing.assert_allclose(new, old[method], atol=1.5e-4, err_msg=method)


def leaks_agree(again, stored):
    for kind in ("queries", "rows"):
        for share in ("R2", "means", "within"):
            assert again[kind][share] == pytest.approx(stored[kind][share], abs=2e-4)
        total = sum(stored[kind][share] for share in ("R2", "means", "within"))
        assert total == pytest.approx(1, abs=3e-5)
        for name in study.MEASURES:
            new, old = (np.array(part[kind][name].split(), float) for part in (again, stored))
            np.testing.assert_allclose(new, old, atol=1.5e-4)


def test_quick_gives_the_stored_numbers_without_a_file(stored, monkeypatch):
    monkeypatch.delenv("RANKBOOK_DATA", raising=False)
    again = studies.run("learning_to_rank", quick=True, progress=False)
    agree(again, stored, "simulated")
    leaks_agree(again["leakage"]["simulated"], stored["leakage"]["simulated"])


@pytest.mark.parametrize("name", study.SETS[1:])
def test_real_sets_are_computed_anew(stored, name):
    if not os.environ.get("RANKBOOK_DATA"):
        pytest.skip("RANKBOOK_DATA names no folder")
    # Pairs of the long lists of OHSUMED take a while.
    methods = ("least squares; squared", "pairwise, logistic")[: 1 if name == "OHSUMED" else 2]
    agree({"sets": {name: study.measure(name, methods)}}, stored, name)


@pytest.mark.parametrize("method", ["M5'; label", "bagged M5'; oerr", fits.MATCHED])
def test_model_trees_are_computed_anew(stored, method):
    agree({"sets": {"simulated": study.measure("simulated", (method,))}}, stored, "simulated")


def test_leakage_is_computed_anew(stored):
    if not os.environ.get("RANKBOOK_DATA"):
        pytest.skip("RANKBOOK_DATA names no folder")
    leaks_agree(study.leakage("OHSUMED"), stored["leakage"]["OHSUMED"])


def test_matched_bags_are_as_many_as_ordinal_costs_grow(stored):
    for name, boundaries in zip(study.SETS, (4, 4, 4, 2), strict=True):
        settings = stored["sets"][name]["settings"]
        assert set(settings["bagged M5'; oerr"]) == {fits.BAGS}
        assert set(settings[fits.MATCHED]) == {boundaries * fits.BAGS}


def test_form(stored):
    assert list(stored["sets"]) == list(stored["leakage"]) == list(study.SETS)
    for name, queries in zip(study.SETS, (500, 50, 86, 106), strict=True):
        part = stored["sets"][name]
        assert sum(part["grades"]) == part["rows"]
        assert list(part["settings"]) == list(study.METHODS)
        for kind in study.MEASURES:
            found = study.values(stored, name, kind)
            assert list(found) == list(study.METHODS)
            for numbers in found.values():
                assert numbers.shape == (queries,)
                assert (numbers >= 0).all() and (numbers <= 1).all()
            np.testing.assert_array_equal(
                found["least squares; label"], found["least squares; absolute"]
            )


def test_queries_without_a_relevant_item_are_worth_nothing(stored):
    counts = []
    for name in study.SETS:
        err, ndcg = (
            np.array(list(study.values(stored, name, kind).values())) for kind in study.MEASURES
        )
        # ERR goes down the whole list: it is 0 only where there is nothing to find.
        nothing = (err == 0).all(axis=0)
        np.testing.assert_array_equal(nothing, (err == 0).any(axis=0))
        assert (ndcg[:, nothing] == 0).all()
        counts.append(int(nothing.sum()))
    assert counts == [0, 0, 2, 1]


@pytest.mark.parametrize(
    ("starts", "grid", "expected"),
    [
        (("GBRT", "LightGBM", "lambdarank"), fits.ROUNDS, (99, [10, 10])),
        (("M5'",), fits.MIN_INSTANCES, (45, [13, 8])),
        (("pairwise",), fits.ALPHAS, (18, [7, 0])),
    ],
)
def test_some_choices_lie_at_the_end_of_their_grid(stored, starts, grid, expected):
    chosen = [
        setting
        for name in study.SETS
        for method, settings in stored["sets"][name]["settings"].items()
        if method.startswith(starts)
        for setting in settings
    ]
    assert set(chosen) <= set(grid)
    assert (len(chosen), [chosen.count(end) for end in (grid[0], grid[-1])]) == expected


def test_files_that_are_missing_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailable, match=r"rank.train, rank.test into .RANKBOOK_DATA"):
        study.compute(progress=False)
    monkeypatch.delenv("RANKBOOK_DATA")
    with pytest.raises(DatasetUnavailable, match="S1.txt"):
        study.read("OHSUMED")


def test_sizes_of_queries_come_from_their_file(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    folder = tmp_path / "lightgbm-lambdarank"
    folder.mkdir()
    for stem in ("rank.train", "rank.test"):
        (folder / stem).write_text("1 1:2\n0 300:1\n2 5:1\n")
        (folder / f"{stem}.query").write_text("2\n1\n")
    train, test = study.read("LightGBM sample")
    assert train.X.shape == test.X.shape == (3, 300)
    assert train.qid.tolist() == [0, 0, 1]


def test_parts_are_joined_in_their_order():
    parts = [LetorData(np.ones((3, 1)), np.arange(3), np.array(q)) for q in ([9, 9, 4], [9, 1, 1])]
    assert study._joined(parts).qid.tolist() == [0, 0, 1, 2, 3, 3]


def test_features_that_a_query_shares_are_counted():
    X = np.array([[7.0, 1, 2, 0], [7, 1, 3, 0], [7, 4, 3, 1], [7, 4, 3, 1]])
    assert study._query_features(LetorData(X, np.zeros(4), np.array([3, 3, 1, 1]))) == 2
    assert study._query_features(LetorData(X, np.zeros(4), np.array([1, 2, 3, 4]))) == 3


def test_losses_of_the_means_and_within_queries():
    y, codes = np.array([0, 2, 1, 5]), np.array([0, 0, 1, 1])
    found = study._losses(y - np.array([1, 1, 2, 2]), y, codes)
    assert found == pytest.approx({"means": 2 / 14, "within": 10 / 14}, abs=1e-5)


def test_validation_queries_are_set_aside_whole(fold):
    inner = fold.inner()
    assert set(inner.train.qid) | set(inner.test.qid) == set(fold.train.qid)
    assert not set(inner.train.qid) & set(inner.test.qid)
    assert len(set(inner.test.qid)) == 8


def test_bins_keep_the_order(fold):
    binned = fold.binned()
    for old, new in zip(fold.test.X.T, binned.test.X.T, strict=True):
        assert (np.diff(new[np.argsort(old)]) >= 0).all()
    assert len(np.unique(binned.test.X[:, 0])) > 100


@pytest.mark.parametrize("base", ["GBRT", "LightGBM"])
def test_stages_are_fits_of_fewer_rounds(fold, base):
    few = next(fits._predictions(f"{base}; squared", fold, (10,)))
    staged = list(fits._predictions(f"{base}; squared", fold, (10, 30)))
    np.testing.assert_allclose(staged[0], few, rtol=1e-9)
    assert not np.allclose(staged[1], few)


def test_the_best_setting_is_chosen_on_validation_queries(fold):
    inner = fold.inner()
    settings = (1e-3, 1.0, 100.0)
    errs = [inner.err(s) for s in fits._predictions("pairwise, logistic", inner, settings)]
    assert fits.tune("pairwise, logistic", fold, settings) == settings[int(np.argmax(errs))]
    test = inner.test
    scores = next(fits._predictions("pairwise, logistic", inner, (1.0,)))
    per_query = [
        metrics.err(test.y[test.qid == q], scores[test.qid == q], max_grade=4)
        for q in np.unique(test.qid)
    ]
    assert errs[1] == pytest.approx(np.mean(per_query))
