"""Simulated learning-to-rank data: shares of grades, levels of queries, columns that matter."""

import numpy as np
import pytest

from rankbook.datasets import make_letor


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


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_queries": 0}, "n_queries"),
        ({"n_items": 1}, "n_items"),
        ({"n_features": 0}, "n_features"),
        ({"grades": [0.5, 0.6]}, "grades"),
        ({"noise": 1.5}, "noise"),
        ({"n_queries": 10**6, "n_items": 100, "n_features": 100}, "must be at most 2e9"),
    ],
)
def test_bad_simulations(options, match):
    with pytest.raises(ValueError, match=match):
        make_letor(**options)
