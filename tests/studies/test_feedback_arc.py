"""The study of exact best lists: its losses are recomputed, its timings looked at for form."""

import numpy as np
import pytest

from rankbook import graphs, studies
from rankbook.studies import feedback_arc as study


@pytest.fixture(scope="module")
def stored():
    return studies.load("feedback_arc")


def test_enumeration_agrees_with_sets():
    for seed in range(3):
        a = study.tournament(6, seed, planted=False)
        assert study.enumerate_orders(a) == graphs.minimum_edge_loss(a, "subsets")


def test_planted_votes_follow_an_order():
    votes = study.tournament(30, 0, planted=True)
    above = np.triu_indices(30, 1)
    order = graphs.optimal_order(votes)
    share = votes[np.ix_(order, order)][above].mean() / 9
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / (9 * 435))


def test_every_quick_loss_is_the_stored_one(stored):
    again = studies.run("feedback_arc", quick=True, progress=False)
    assert again["seeds"] == stored["seeds"]
    assert set(again["loss"]) == set(stored["loss"])
    for method, sizes in again["loss"].items():
        assert len(sizes) >= 3
        for size, values in sizes.items():
            assert values == stored["loss"][method][size]


def test_large_losses_come_from_the_stated_graphs(stored):
    """A slice of the sizes that quick leaves out, by the method that the study did not use."""
    a = study.tournament(15, 3, planted=False)
    assert stored["loss"]["subsets"]["15"][3] == graphs.minimum_edge_loss(a, "milp")
    for method, size in (("milp", "20"), ("milp, planted order", "40")):
        a = study.tournament(int(size), 0, "planted" in method)
        bound = np.triu(np.minimum(a, a.T)).sum()
        found = graphs.minimum_edge_loss(a)
        assert stored["loss"][method][size][0] == found >= bound


def test_timings_have_their_form(stored):
    for method, sizes in study.SIZES.items():
        assert list(stored["seconds"][method]) == list(stored["loss"][method]) == [*map(str, sizes)]
        for seconds in stored["seconds"][method].values():
            assert len(seconds) == len(stored["seeds"])
            assert all(s > 0 for s in seconds)
