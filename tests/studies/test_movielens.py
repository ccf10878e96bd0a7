"""The MovieLens study, on ratings made up here, and its stored results."""

import gzip

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from rankbook import studies
from rankbook.exceptions import DatasetUnavailable
from rankbook.studies import movielens as study


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    users, movies = rng.integers(study.USERS, size=4000), rng.integers(study.MOVIES, size=4000)
    return np.column_stack([users, movies, rng.integers(1, 6, size=4000)])


def test_pairs_join_one_user_and_put_the_higher_rating_first(ratings):
    pairs, weights = study.sample_pairs(ratings, 500, np.random.default_rng(1))
    first, second = ratings[pairs[:, 0]], ratings[pairs[:, 1]]
    assert pairs.shape == (500, 2)
    np.testing.assert_array_equal(first[:, 0], second[:, 0])
    np.testing.assert_array_equal(weights, first[:, 2] - second[:, 2])
    assert weights.min() >= 1


def test_pair_loss_of_extreme_scores(ratings):
    pairs, weights = study.sample_pairs(ratings, 300, np.random.default_rng(2))
    labels = ratings[:, 2].astype(float)
    assert study.pair_loss(labels, pairs, weights) == 0
    assert study.pair_loss(-labels, pairs, weights) == weights.mean()
    assert study.pair_loss(np.zeros(len(labels)), pairs, weights) == weights.mean() / 2


def test_logistic_fit_equals_scikit_learn():
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(300, 4)) + 0.2, rng.integers(1, 5, size=300).astype(float)
    coef = study.fit_margin_loss("logistic", X, weights, 0.1, np.zeros(4))
    reference = LogisticRegression(C=1 / (0.1 * 300), fit_intercept=False, tol=1e-8)
    signs = np.where(np.arange(300) % 2, 1, -1)
    reference.fit(X * signs[:, None], signs, sample_weight=weights)
    np.testing.assert_allclose(coef, reference.coef_[0], rtol=1e-3, atol=1e-4)


def test_features_do_not_see_the_other_ratings(ratings):
    genres = np.eye(19)[np.arange(study.MOVIES) % 19]
    features = study.Features(ratings[:3000], genres, np.full(study.MOVIES, 1990.0))
    X = features(ratings[3000:, 0], ratings[3000:, 1])
    assert X.shape == (1000, 24) and np.isfinite(X).all()
    np.testing.assert_allclose(X[:, 0], 0.8)


def test_files_are_found_plain_or_packed(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKBOOK_DATA", raising=False)
    assert study.data_folder() is None
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    assert study.data_folder() is None
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    (folder / "u.data").write_text("1\t2\t5\t0\n3\t1\t1\t0\n")
    items = "1|One (1995)|01-Jan-1995||url" + "|1" * 19 + "\n2|Two|||url" + "|0" * 19 + "\n"
    (folder / "u.item.gz").write_bytes(gzip.compress(items.encode("latin-1")))
    assert study.data_folder() == folder
    ratings, genres, years = study.read(folder)
    assert ratings.tolist() == [[0, 1, 5], [2, 0, 1]]
    assert genres.sum(1).tolist() == [19, 0] and years.tolist() == [1995, 1995]


def test_without_ratings_the_error_says_what_to_fetch(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailable, match=r"ml-100k\.zip"):
        study.compute(quick=True, progress=False)


def test_stored_results_are_complete():
    runs = studies.load("movielens")["runs"]
    assert [run["seed"] for run in runs] == list(range(study.RUNS))
    keys = {f"{method} {n}" for method in study.METHODS for n in study.SIZES}
    for run in runs:
        assert set(run["loss"]) == set(run["share"]) == set(run["alpha"]) == keys
        assert all(0 < value < run["guessing"] for value in run["loss"].values())
        for key, alpha in run["alpha"].items():
            assert alpha in (study.LINEAR_ALPHAS if key.startswith("linear") else study.ALPHAS)
            # Differences of ratings lie between 1 and 4, and so does loss over share.
            assert 1 < run["loss"][key] / run["share"][key] < 4


def test_the_first_split_gives_the_stored_numbers():
    if study.data_folder() is None:
        pytest.skip("RANKBOOK_DATA does not hold the MovieLens ratings")
    stored = studies.load("movielens")["runs"][0]
    again = studies.run("movielens", quick=True, progress=False)["runs"][0]
    assert again["seed"] == stored["seed"]
    np.testing.assert_allclose(again["guessing"], stored["guessing"], rtol=1e-12)
    assert len(again["loss"]) == len(study.METHODS)
    for table in ("loss", "share", "alpha"):
        for key, value in again[table].items():
            # The margin losses are minimised by iterations, which may round differently.
            rtol = 1e-9 if key.startswith("linear") else 2e-3
            np.testing.assert_allclose(value, stored[table][key], rtol=rtol, err_msg=key)
