"""The MovieLens study, on ratings made up here, and its stored results."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from rankbook import studies
from rankbook.datasets import MovieLensData, _files, load_movielens
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


def test_tables_count_from_zero_and_an_unknown_year_is_the_median():
    data = MovieLensData(
        X=np.zeros((2, 0)),
        y=np.array([5, 1]),
        qid=np.array([1, 3]),
        item_id=np.array([2, 1]),
        timestamp=np.zeros(2),
        item_features=np.array([[1995.0, 1, 0], [np.nan, 0, 0], [1960.0, 0, 1], [1990.0, 0, 0]]),
        user_features=np.zeros((3, 0)),
        feature_names=(),
        item_titles=("One", "Two", "Three", "Four"),
        path=Path(),
    )
    ratings, genres, years = study.tables(data)
    assert ratings.tolist() == [[0, 1, 5], [2, 0, 1]]
    assert genres.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert years.tolist() == [1995, 1990, 1960, 1990]


def test_without_ratings_the_error_says_what_to_fetch(tmp_path, monkeypatch):
    def offline(url, timeout):
        raise OSError("no network here")

    monkeypatch.setattr(_files.urllib.request, "urlopen", offline)
    monkeypatch.setenv("RANKBOOK_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
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
    try:
        load_movielens(download_if_missing=False)
    except DatasetUnavailable:
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
