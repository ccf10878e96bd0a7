"""The simulator of queries: what it promises of grades and features, and hostile calls."""

import os
from fractions import Fraction

import numpy as np
import pytest

from rankbook import _room, metrics
from rankbook.datasets import make_letor


def same(a, b):
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in ("X", "y", "qid"))


def test_simulated_grades_have_their_shares_and_queries_differ():
    data = make_letor(4000, 10, 8, rng=5)
    shares = np.bincount(data.y, minlength=5) / data.y.size
    # Items of a query are alike: the effective number of them is smaller than n.
    np.testing.assert_allclose(shares, (0.52, 0.32, 0.13, 0.02, 0.01), atol=0.015)
    sizes = np.bincount(data.qid)[1:]
    assert sizes.min() >= 2
    assert abs(sizes.mean() - 10) < 0.2
    level = np.bincount(data.qid, data.X[:, 2])[1:] / sizes
    np.testing.assert_allclose(data.X[:, 2], level[data.qid - 1], atol=1e-12)


def test_simulated_relevance_without_noise_is_known():
    data = make_letor(3000, 4, 4, noise=0.0, grades=[0.5, 0.5], rng=0)
    signal, query_level = data.X[:, 0], data.X[:, 2]
    above = data.y == 1
    assert signal[above].mean() - signal[~above].mean() > 1.0
    assert query_level[above].mean() - query_level[~above].mean() > 0.3
    assert abs(data.X[above, 3].mean() - data.X[~above, 3].mean()) < 4 / np.sqrt(len(above) / 4)
    assert abs(above.mean() - 0.5) < 0.03


def test_the_smallest_sample():
    data = make_letor(n_queries=1, n_items=2, n_features=1, rng=0)
    assert data.X.shape == (2, 1)
    assert data.y.shape == (2,)
    assert data.qid.tolist() == [1, 1]
    assert np.isfinite(data.X).all()


def test_mean_sizes_need_not_be_whole():
    sizes = np.bincount(make_letor(4000, 2.5, 1, rng=0).qid)[1:]
    assert sizes.min() == 2
    assert abs(sizes.mean() - 2.5) < 4 * np.sqrt(0.5 / 4000)


def test_every_query_has_two_items_where_two_are_asked_for():
    assert np.bincount(make_letor(50, 2, 3, rng=0).qid)[1:].tolist() == [2] * 50


def test_seeds():
    first = make_letor(5, 4, 6, rng=3)
    assert same(first, make_letor(5, 4, 6, rng=np.int64(3)))
    assert same(first, make_letor(5, 4, 6, rng=np.random.default_rng(3)))
    assert not same(first, make_letor(5, 4, 6, rng=4))
    assert not same(make_letor(5, 4, 6), make_letor(5, 4, 6))
    generator = np.random.default_rng(3)
    assert not same(make_letor(5, 4, 6, rng=generator), make_letor(5, 4, 6, rng=generator))


def test_more_columns_do_not_change_grades_or_the_columns_before():
    few, many = make_letor(20, 5, 3, rng=1), make_letor(20, 5, 9, rng=1)
    np.testing.assert_array_equal(few.y, many.y)
    np.testing.assert_array_equal(few.X, many.X[:, :3])


@pytest.mark.parametrize("grades", [[1.0], [1.0, 0.0], [0.0, 0.0, 1.0], [0.3, 0.0, 0.7]])
def test_grades_without_a_share_do_not_occur(grades):
    y = make_letor(200, 10, 1, grades=grades, rng=0).y
    counts = np.bincount(y, minlength=len(grades))
    np.testing.assert_array_equal(counts > 0, np.array(grades) > 0)


def test_many_grades():
    y = make_letor(2000, 10, 1, grades=np.full(100, 0.01), rng=0).y
    assert y.min() == 0 and y.max() == 99
    assert abs(y.mean() - 49.5) < 2


def test_any_real_number_will_do():
    fractions = make_letor(5, Fraction(9, 2), noise=Fraction(1, 4), rng=0)
    assert same(fractions, make_letor(5, 4.5, noise=0.25, rng=0))


@pytest.mark.parametrize("grades", [[Fraction(1, 2)] * 2, np.array([0.5, 0.5], np.float32)])
def test_shares_of_any_type_of_number(grades):
    assert same(make_letor(5, grades=grades, rng=0), make_letor(5, grades=[0.5, 0.5], rng=0))


def test_all_noise_cannot_be_ranked():
    data = make_letor(3000, 10, 4, noise=1.0, rng=0)
    risks = metrics.pairwise_risk(data.y, data.X[:, 0], qid=data.qid)
    assert abs(risks - 0.5) < 0.01
    clear = make_letor(3000, 10, 4, noise=0.0, rng=0)
    assert metrics.pairwise_risk(clear.y, clear.X[:, 0], qid=clear.qid) < 0.35


def test_a_query_s_features_do_not_rank_its_items():
    data = make_letor(300, 8, 12, rng=0)
    for j in (2, 6, 10):
        assert metrics.pairwise_risk(data.y, data.X[:, j], qid=data.qid) == 0.5


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_queries": 0}, ValueError, "n_queries must be at least 1, got 0"),
        ({"n_queries": True}, TypeError, "n_queries must be an integer, got True"),
        ({"n_queries": 2.0}, TypeError, "n_queries must be an integer"),
        ({"n_queries": "3"}, TypeError, "n_queries must be an integer"),
        ({"n_queries": 10**30}, ValueError, "n_queries must be within"),
        ({"n_items": 1}, ValueError, "n_items must be at least 2"),
        ({"n_items": np.nan}, ValueError, "n_items must be at least 2, got nan"),
        ({"n_items": np.inf}, ValueError, "n_items"),
        ({"n_items": "20"}, TypeError, "n_items must be a real number"),
        ({"n_features": 0}, ValueError, "n_features must be at least 1"),
        ({"n_features": None}, TypeError, "n_features must be an integer"),
        ({"noise": np.nan}, ValueError, "noise"),
        ({"noise": -0.1}, ValueError, "noise"),
        ({"noise": None}, TypeError, "noise must be a real number"),
        ({"noise": 1.5}, ValueError, "noise"),
        ({"grades": []}, ValueError, "grades"),
        ({"grades": [0.5, 0.6]}, ValueError, "grades"),
        ({"grades": [0.5, np.nan]}, ValueError, "grades"),
        ({"grades": [-0.5, 1.5]}, ValueError, "grades"),
        ({"grades": [[0.5, 0.5]]}, ValueError, "grades"),
        ({"grades": None}, (ValueError, TypeError), "grades"),
        ({"grades": ["0.5", "0.5"]}, (ValueError, TypeError), "grades"),
        ({"grades": [0.5 + 1j, 0.5]}, (ValueError, TypeError), "grades"),
        ({"rng": -1}, TypeError, "rng must be None, a non-negative integer"),
        ({"rng": "a"}, TypeError, "rng"),
        ({"rng": 1.5}, TypeError, "rng"),
    ],
)
def test_bad_calls_are_named(options, error, match):
    with pytest.raises(error, match=match):
        make_letor(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"n_queries": 10**13},
        {"n_items": 1e300},
        {"n_features": 10**13},
        {"n_queries": 1, "n_items": 1e15, "n_features": 1},
    ],
)
def test_more_than_any_machine_holds(options):
    with pytest.raises(ValueError, match=r"must fit in memory, got .* GB of"):
        make_letor(**options)


def test_memory_is_asked_for_and_all_that_is_drawn_is_counted(monkeypatch):
    assert _room.memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(_room, "memory", lambda: 8.0 * 100 * 20 * 9)
    assert make_letor(100, 20, 1, rng=0).X.shape[1] == 1
    with pytest.raises(ValueError, match=r"100 \* 20 \* 2, which takes 0.00016 GB of 0.000144"):
        make_letor(100, 20, 2, rng=0)


def test_a_machine_that_does_not_tell_its_memory(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert _room.memory() == 16e9
