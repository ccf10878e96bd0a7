"""The tripartite simulation: slices of every table anew, the population by other means."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from rankbook import losses, studies
from rankbook.population import FinitePopulation
from rankbook.studies import tripartite as study


@pytest.fixture(scope="module")
def stored():
    return studies.load("tripartite")


def assert_same(again, kept, tolerance):
    assert again.keys() == kept.keys()
    for key, value in again.items():
        np.testing.assert_allclose(value, kept[key], atol=tolerance, err_msg=key)


def test_quick_gives_the_stored_numbers(stored):
    again = studies.run("tripartite", quick=True, progress=False)
    assert again["grid"] == stored["grid"]
    assert_same(again["population"], stored["population"], 1e-6)
    assert again["bayes_risk"] == pytest.approx(stored["bayes_risk"], rel=1e-10)
    (run,), kept = again["runs"], stored["runs"][0]
    assert run.pop("seed") == kept["seed"] == 0
    for method, found in run.items():
        assert_same(found, kept[method], 1e-5)


@pytest.mark.parametrize(("method", "seed"), [("pairwise", 17), ("ORBoost", 39)])
def test_later_samples_are_recomputed_too(stored, method, seed):
    assert stored["runs"][seed]["seed"] == seed
    assert_same(study.measure(method, seed), stored["runs"][seed][method], 1e-5)


def test_every_stored_number_follows_from_the_others(stored):
    """What the slices leave out: curves, thresholds and distances must fit together."""
    assert len(stored["runs"]) == study.SEEDS
    coarse = np.isin(study.FINE.round(9), study.GRID.round(9))
    for run in stored["runs"]:
        assert list(run) == ["seed", *study.METHODS]
        for method in study.METHODS:
            found = run[method]
            assert stored["bayes_risk"] < found["risk"] < 0.08
            assert abs(found["test_risk"] - found["risk"]) < 5 * 0.004
            assert len(found["curve"]) == coarse.sum() == 25
            if "apart" not in found:
                continue
            off = np.array(found["curve"]) - study.target(
                method, study.GRID, found.get("thresholds")
            )
            for end, distance in zip((2, 3), found["apart"], strict=True):
                part = off[np.abs(study.GRID) <= end + 1e-9]
                assert np.ptp(part) / 2 <= distance + 1e-4
                assert np.ptp(part) / 2 > 0.3 * distance
            assert 1 <= found["rounds"] <= study.ROUNDS


def test_the_least_risk_is_that_of_pairs_of_normals(stored):
    by_hand = (2 * norm.cdf(-np.sqrt(2)) + norm.cdf(-2 * np.sqrt(2))) / 3
    assert stored["bayes_risk"] == pytest.approx(by_hand, rel=1e-8)


@pytest.mark.parametrize("method", study.THRESHOLD_METHODS)
def test_population_risks_against_a_search_at_every_point(method):
    gap = 1.3
    theta = np.array([-gap, 0.0])
    name = {"ORBoost": "exponential", "SVOR, implicit": "hinge"}.get(method, "logistic")
    loss = losses.get(name)

    def least(x):
        p = study.MIXTURE.posterior([x])[0]
        up, down = p[:-1], p[1:]
        if method == "SVOR, implicit":
            up, down = np.cumsum(p)[:-1], 1 - np.cumsum(p)[:-1]
        search = minimize_scalar(
            lambda t: up @ loss(theta - t) + down @ loss(t - theta),
            bounds=(-25, 25),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return search.fun * study.MIXTURE.density([x])[0]

    expected = quad(least, -8, 8, limit=60, epsabs=1e-6)[0]
    if method == "proportional odds":
        expected -= np.log(1 - np.exp(-gap)) / 3
    assert study.population_risk(method, gap) == pytest.approx(expected, abs=2e-5)


def test_population_gaps_follow_from_the_odds_of_neighbours(stored):
    gaps = stored["population"]
    assert gaps["ORBoost"] == pytest.approx(2, abs=1e-4)
    assert gaps["proportional odds, loss alone"] == pytest.approx(4, abs=1e-4)
    assert gaps["SVOR, implicit"] == pytest.approx(2, abs=1e-4)
    assert gaps["proportional odds"] > 4.1


def test_targets_are_minimisers():
    """The targets of pairs against those of a population of atoms on a grid."""
    x = np.linspace(-6, 6, 121)
    mass = study.MIXTURE.density(x)
    atoms = FinitePopulation(study.MIXTURE.posterior(x), mass / mass.sum())
    for method, consistent in (("pairwise", True), ("pairwise, plain", False)):
        score = study.target(method, x)
        risk = atoms.surrogate_risk(score, "exponential", "constant", consistent)
        for bend in (np.sin(x), x, np.cos(2 * x)):
            for step in (-0.02, 0.02):
                moved = atoms.surrogate_risk(
                    score + step * bend, "exponential", "constant", consistent
                )
                assert moved > risk


def test_samples_are_balanced_and_independent():
    X, y = study.draw(3, "train")
    assert np.bincount(y).tolist() == [500, 500, 500]
    for k, mean in enumerate((-2, 0, 2)):
        assert abs(X[y == k].mean() - mean) < 4 / np.sqrt(500)
    others = [study.draw(3, part)[0] for part in ("validation", "test")]
    assert abs(np.corrcoef(X[:, 0] - 2 * y, others[0][:, 0] - 2 * y)[0, 1]) < 0.1
    assert not np.array_equal(others[0], others[1])
