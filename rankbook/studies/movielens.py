"""Three pairwise losses on MovieLens 100k: the experiment of Duchi, Mackey and Jordan, section 4.

The ratings may not be redistributed: `rankbook.datasets.load_movielens` finds or fetches them. All
splits take about a quarter of an hour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from tqdm import tqdm

from rankbook.datasets import MovieLensData, load_movielens
from rankbook.models import ValueRegularizedRanker

__all__ = ["compute"]

Pairs = tuple[np.ndarray, np.ndarray]

METHODS = ("hinge", "logistic", "linear", "linear, theta = 0")
THETAS = {"linear": 1e-4, "linear, theta = 0": 0.0}
SIZES = (20_000, 40_000, 80_000, 120_000, 160_000)
# At the least of these ridges the penalty no longer matters, so that the grid ends where it may.
ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
# The order by the linear loss depends on theta / alpha alone, so alpha is sought around theta; with
# theta = 0 it does not matter at all.
LINEAR_ALPHAS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
RUNS = 15
USERS, MOVIES = 943, 1682


def tables(data: MovieLensData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ratings (user, movie, rating; from 0), genres (movie x 19) and release years."""
    ratings = np.column_stack([data.qid - 1, data.item_id - 1, data.y])
    years, genres = data.item_features[:, 0], data.item_features[:, 1:]
    return ratings, genres, np.where(np.isnan(years), np.nanmedian(years), years)


class Features:
    """Features of a user and a movie, from ratings that are used for nothing else."""

    def __init__(self, known: np.ndarray, genres: np.ndarray, years: np.ndarray) -> None:
        self.genres, self.age = genres, (1998 - years) / 10
        self.rated, values = np.zeros((USERS, MOVIES)), np.zeros((USERS, MOVIES))
        self.rated[known[:, 0], known[:, 1]] = 1
        values[known[:, 0], known[:, 1]] = known[:, 2]
        count = self.rated.sum(1, keepdims=True)
        user_mean = (values.sum(1, keepdims=True) + 5 * known[:, 2].mean()) / (count + 5)
        self.centred = (values - user_mean) * self.rated
        norms = np.sqrt((self.centred**2).sum(1)) + 1e-12
        similarity = self.centred @ self.centred.T / np.outer(norms, norms)
        np.fill_diagonal(similarity, 0.0)
        self.alike, self.unlike = np.maximum(similarity, 0), np.maximum(-similarity, 0)

    def __call__(self, users: np.ndarray, movies: np.ndarray) -> np.ndarray:
        """Return the feature matrix of the given (user, movie) rows."""
        liked = self.genres[movies]
        genre_sum = ((self.centred @ self.genres)[users] * liked).sum(1)
        genre_count = ((self.rated @ self.genres)[users] * liked).sum(1)
        movie_sum, movie_count = self.centred.sum(0)[movies], self.rated.sum(0)[movies]
        columns = [
            self.age[movies],
            genre_sum / (genre_count + 2.0),
            movie_sum / (movie_count + 2.0),
        ]
        for similarity in (self.alike, self.unlike):
            total = (similarity @ self.centred)[users, movies]
            weight = (similarity @ self.rated)[users, movies]
            columns.append(total / (weight + 0.5))
        return np.column_stack([*columns, liked])


def sample_pairs(ratings: np.ndarray, n: int, rng: np.random.Generator) -> Pairs:
    """Return n pairs of rows (preferred first) of one user each, and their rating differences.

    A rating is drawn, then another of the same user; pairs with equal ratings are drawn again.
    """
    order = np.argsort(ratings[:, 0], kind="stable")
    start = np.searchsorted(ratings[order, 0], np.arange(USERS + 1))
    pairs = np.empty((0, 2), dtype=int)
    while len(pairs) < n:
        first = rng.integers(len(ratings), size=2 * n)
        user = ratings[first, 0]
        second = order[start[user] + rng.integers(start[user + 1] - start[user])]
        differ = ratings[first, 2] != ratings[second, 2]
        pairs = np.concatenate([pairs, np.column_stack([first, second])[differ]])
    pairs = pairs[:n]
    gap = ratings[pairs[:, 0], 2] - ratings[pairs[:, 1], 2]
    pairs[gap < 0] = pairs[gap < 0][:, ::-1]
    return pairs, np.abs(gap).astype(float)


def fit_margin_loss(
    name: str, differences: np.ndarray, weights: np.ndarray, alpha: float, start: np.ndarray
) -> np.ndarray:
    """Minimise mean weights * loss(differences @ b) + (alpha / 2) b'b; a hinge is smoothed.

    The hinge's corner is rounded over a width of 0.01, which moves the objective by at most 0.005
    times the mean weight.
    """
    scale = weights / len(weights)

    def value(b: np.ndarray) -> tuple[float, np.ndarray]:
        margin = differences @ b
        if name == "logistic":
            loss, slope = np.logaddexp(0, -margin), -expit(-margin)
        else:
            short = 1 - margin
            loss = np.where(short > 0.01, short - 0.005, np.maximum(short, 0) ** 2 / 0.02)
            slope = -np.clip(short / 0.01, 0, 1)
        gradient = differences.T @ (scale * slope) + alpha * b
        return scale @ loss + alpha / 2 * b @ b, gradient

    return minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x


def pair_loss(scores: np.ndarray, pairs: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean weight of the misordered pairs, ties counted one half."""
    gap = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return float(np.mean(weights * ((gap < 0) + 0.5 * (gap == 0))))


class Split:
    """One split of the ratings: features from two fifths, then train, validation and test."""

    def __init__(self, data: MovieLensData, seed: int) -> None:
        ratings, genres, years = tables(data)
        rng = np.random.default_rng(seed)
        part = rng.permutation(len(ratings)) % 5
        rows = dict(zip(("train", "validation", "test"), (2, 3, 4), strict=True))
        parts = {name: ratings[part == k] for name, k in rows.items()}
        features = Features(ratings[part < 2], genres, years)
        raw = {name: features(table[:, 0], table[:, 1]) for name, table in parts.items()}
        mean, sd = raw["train"].mean(0), raw["train"].std(0) + 1e-12
        self.X = {name: (table - mean) / sd for name, table in raw.items()}
        self.pairs = {
            name: sample_pairs(parts[name], n, rng)
            for name, n in (("validation", 40_000), ("test", 40_000), ("train", max(SIZES)))
        }

    def fit(self, method: str, n: int) -> tuple[float, np.ndarray]:
        """Return the ridge that does best on the validation pairs, and its coefficients."""
        X, (pairs, weights) = self.X["train"], self.pairs["train"]
        pairs, weights = pairs[:n], weights[:n]
        differences = X[pairs[:, 0]] - X[pairs[:, 1]]
        best, coef = (np.inf, 0.0, np.zeros(X.shape[1])), np.zeros(X.shape[1])
        for alpha in (LINEAR_ALPHAS if method in THETAS else ALPHAS)[::-1]:
            if method in THETAS:
                model = ValueRegularizedRanker(theta=THETAS[method], alpha=alpha)
                coef = model.fit_pairs(X, pairs, weights).coef_
            else:
                coef = fit_margin_loss(method, differences, weights, alpha, coef)
            loss = pair_loss(self.X["validation"] @ coef, *self.pairs["validation"])
            best = min(best, (loss, alpha, coef), key=lambda item: item[0])
        return best[1], best[2]

    def evaluate(self, method: str, n: int) -> dict[str, float]:
        """Return the test loss, the share of misordered pairs, and the ridge chosen."""
        alpha, coef = self.fit(method, n)
        pairs, weights = self.pairs["test"]
        scores = self.X["test"] @ coef
        return {
            "loss": pair_loss(scores, pairs, weights),
            "share": pair_loss(scores, pairs, np.ones(len(pairs))),
            "alpha": alpha,
        }


def compute(quick: bool = False, progress: bool = True) -> dict[str, Any]:
    """Compute the test losses of each method, for each number of training pairs.

    Parameters
    ----------
    quick : bool, default=False
        The smallest number of pairs of the first split alone.
    progress : bool, default=True
        Show a progress bar over the splits.

    Returns
    -------
    dict
        ``runs``, one for each split: its ``seed``, the loss of ``guessing``, and the tables
        ``loss``, ``share`` and ``alpha``, keyed by method and number of pairs.

    Raises
    ------
    DatasetUnavailable
        If the ratings are neither found nor to be fetched.
    """
    data = load_movielens(progress=progress)
    runs: list[dict[str, Any]] = []
    for seed in tqdm(range(1 if quick else RUNS), desc="splits", disable=not progress):
        split = Split(data, seed)
        guess = float(split.pairs["test"][1].mean() / 2)
        run: dict[str, Any] = {"seed": seed, "guessing": guess, "loss": {}, "share": {}}
        run["alpha"] = {}
        for n in SIZES[:1] if quick else SIZES:
            for method in METHODS:
                for table, value in split.evaluate(method, n).items():
                    run[table][f"{method} {n}"] = value
        runs.append(run)
    return {"runs": runs}
