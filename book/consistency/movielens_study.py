"""Three pairwise losses on MovieLens 100k: the experiment of Duchi, Mackey and Jordan, section 4.

``python movielens_study.py`` runs all of it and writes ``movielens_study.json`` beside itself. The
ratings may not be redistributed: they are looked for in ``$RANKBOOK_DATA/movielens-100k`` or
``$RANKBOOK_DATA/ml-100k``, where the official archive ml-100k.zip belongs, unpacked.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from rankbook.models import ValueRegularizedRanker

RESULTS = Path(__file__).with_name("movielens_study.json")
METHODS = ("hinge", "logistic", "linear", "linear, theta = 0")
THETAS = {"linear": 1e-4, "linear, theta = 0": 0.0}
SIZES = (20_000, 40_000, 80_000, 120_000, 160_000)
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
# The order by the linear loss depends on theta / alpha alone, so alpha is sought around theta; with
# theta = 0 it does not matter at all.
LINEAR_ALPHAS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
RUNS = 15
USERS, MOVIES = 943, 1682


def data_folder() -> Path | None:
    """Return the folder that holds the ratings, or None."""
    root = os.environ.get("RANKBOOK_DATA")
    for name in ("movielens-100k", "ml-100k") if root else ():
        folder = Path(root) / name
        if (folder / "u.data").is_file() or (folder / "u.data.gz").is_file():
            return folder
    return None


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ratings (user, movie, rating; from 0), genres (movie x 19) and release years."""

    def lines(name: str) -> list[str]:
        plain, packed = folder / name, folder / f"{name}.gz"
        text = plain.read_bytes() if plain.is_file() else gzip.decompress(packed.read_bytes())
        return text.decode("latin-1").splitlines()

    ratings = np.array([line.split("\t")[:3] for line in lines("u.data")], dtype=int)
    ratings -= [1, 1, 0]
    items = [line.split("|") for line in lines("u.item") if line]
    genres = np.array([item[-19:] for item in items], dtype=float)
    years = np.array([float(item[2][-4:]) if item[2] else np.nan for item in items])
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


def sample_pairs(ratings: np.ndarray, n: int, rng: np.random.Generator) -> tuple:
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


def fit_margin_loss(name, differences, weights, alpha, start):
    """Minimise mean weights * loss(differences @ b) + (alpha / 2) b'b; a hinge is smoothed.

    The hinge's corner is rounded over a width of 0.01, which moves the objective by at most 0.005
    times the mean weight.
    """
    scale = weights / len(weights)

    def value(b):
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


def pair_loss(scores, pairs, weights) -> float:
    """Return the mean weight of the misordered pairs, ties counted one half."""
    gap = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return float(np.mean(weights * ((gap < 0) + 0.5 * (gap == 0))))


def run(folder: Path, seed: int, sizes=SIZES, methods=METHODS) -> dict:
    """One split: test losses of each method for each number of training pairs."""
    ratings, genres, years = read(folder)
    rng = np.random.default_rng(seed)
    part = rng.permutation(len(ratings)) % 5
    train, validation, test = (ratings[part == k] for k in (2, 3, 4))
    features = Features(ratings[part < 2], genres, years)
    X = {"train": features(train[:, 0], train[:, 1])}
    mean, sd = X["train"].mean(0), X["train"].std(0) + 1e-12
    X["train"] = (X["train"] - mean) / sd
    for name, rows in (("validation", validation), ("test", test)):
        X[name] = (features(rows[:, 0], rows[:, 1]) - mean) / sd
    held_out = {
        "validation": sample_pairs(validation, 40_000, rng),
        "test": sample_pairs(test, 40_000, rng),
    }
    pairs, weights = sample_pairs(train, max(SIZES), rng)
    guess = float(held_out["test"][1].mean() / 2)
    result = {"seed": seed, "guessing": guess, "loss": {}, "share": {}, "alpha": {}}
    for n in sizes:
        differences = X["train"][pairs[:n, 0]] - X["train"][pairs[:n, 1]]
        for method in methods:
            best, coef = (np.inf, None, None), np.zeros(X["train"].shape[1])
            for alpha in (LINEAR_ALPHAS if method in THETAS else ALPHAS)[::-1]:
                if method in THETAS:
                    model = ValueRegularizedRanker(theta=THETAS[method], alpha=alpha)
                    coef = model.fit_pairs(X["train"], pairs[:n], weights[:n]).coef_
                else:
                    coef = fit_margin_loss(method, differences, weights[:n], alpha, coef)
                loss = pair_loss(X["validation"] @ coef, *held_out["validation"])
                best = min(best, (loss, alpha, coef), key=lambda item: item[0])
            scores = X["test"] @ best[2]
            key = f"{method} {n}"
            result["loss"][key] = pair_loss(scores, *held_out["test"])
            test_pairs = held_out["test"][0]
            result["share"][key] = pair_loss(scores, test_pairs, np.ones(len(test_pairs)))
            result["alpha"][key] = best[1]
    return result


def main() -> None:
    """Run all splits and write the results."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("set RANKBOOK_DATA to the folder in which ml-100k.zip was unpacked")
    runs = []
    for seed in range(RUNS):
        runs.append(run(folder, seed))
        print(seed, {k: round(v, 4) for k, v in runs[-1]["loss"].items()}, flush=True)
    RESULTS.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
