"""Cells and pairs with different labels, against loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rankbook._pair_counts import count_cells, pair_weight


def brute(codes, weights, query):
    total = np.zeros(query.max() + 1)
    for a in range(codes.size):
        for b in range(a):
            if query[a] == query[b] and codes[a] != codes[b]:
                total[query[a]] += weights[a] * weights[b]
    return total


@pytest.mark.parametrize("n_classes", [2, 5, 1000])
def test_pair_weight_is_brute_force(n_classes):
    rng = np.random.default_rng(n_classes)
    codes, query = rng.integers(0, n_classes, 80), rng.integers(0, 9, 80)
    weights = rng.integers(0, 4, 80).astype(float)
    assert_allclose(pair_weight(codes, weights, query), brute(codes, weights, query))
    assert_allclose(pair_weight(codes, None, query), brute(codes, np.ones(80), query))
    assert_allclose(pair_weight(codes), brute(codes, np.ones(80), np.zeros(80, int)))


def test_light_queries_and_classes_keep_their_digits():
    codes, query = np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 1, 1, 2, 2])
    weights = np.array([1e20, 1e20, 1.0, 1.0, 1e-18, 1.0])
    assert_array_equal(pair_weight(codes, weights, query), [1e40, 1.0, 1e-18])
    assert pair_weight(np.array([0, 1]), np.array([1e-18, 1.0]))[0] == 1e-18
    assert pair_weight(np.array([3, 3]))[0] == 0.0
    assert_array_equal(pair_weight(np.array([0, 1]), np.zeros(2), np.array([0, 1])), [0.0, 0.0])


@pytest.mark.parametrize("n_classes", [4, 10**9])
def test_cells(n_classes):
    codes, query = np.array([3, 0, 3, 1]), np.array([1, 0, 1, 2])
    cells = count_cells(codes, np.array([1.0, 2.0, 3.0, 0.0]), query, n_classes=n_classes)
    assert_array_equal(cells.query, [0, 1])
    assert_array_equal(cells.label, [0, 3])
    assert_array_equal(cells.mass, [2, 4])
    assert_array_equal(cells.of_items(codes[:3], query[:3]), [1, 0, 1])
    full = count_cells(np.array([0, 1, 3, 1]), None, np.array([0, 0, 0, 1]))
    assert_array_equal(full.above(), [2, 1, 0, 0])
    assert_array_equal(full.before(full.mass), [0, 1, 2, 0])
    assert_array_equal(full.running(full.mass), [1, 2, 3, 1])


def test_many_classes_in_many_queries_are_numbered_by_what_occurs():
    codes, query = np.array([0, 900, 900, 5]), np.array([0, 0, 7, 7])
    cells = count_cells(codes, query=query, n_classes=1000)
    key, size, own = cells.keys_of_items(codes, query)
    assert_array_equal(key, [0, 1, 3, 2])
    assert size == 4
    assert_array_equal(own, np.arange(4))
    # Few of both: a table of all, in which items and cells have the same places.
    cells = count_cells(np.array([0, 1, 1]), query=np.array([0, 0, 1]))
    key, size, own = cells.keys_of_items(np.array([0, 1, 1]), np.array([0, 0, 1]))
    assert_array_equal(key, [0, 1, 3])
    assert size == 4
    assert_array_equal(own, [0, 1, 3])
