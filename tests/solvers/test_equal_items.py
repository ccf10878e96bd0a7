"""Items that are equal are found, and none that are not."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankbook.solvers.equal_items import equal_items


def groups(found, n):
    first, group = found
    assert len(first) == group.max() + 1 and len(group) == n
    assert np.array_equal(group[first], np.arange(len(first)))
    return [frozenset(np.flatnonzero(group == k)) for k in range(len(first))]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [50, 5000])
def test_groups_are_those_of_unique_rows(n, sparse):
    rng = np.random.default_rng(n)
    X = rng.integers(-1, 2, (n, 2)) * np.array([1e-3, 1e6]) * (rng.random((n, 2)) < 0.7)
    kind = rng.integers(0, 2, n)
    expected = np.unique(np.column_stack([X, kind]), axis=0, return_inverse=True)[1].ravel()
    found = equal_items(sp.csr_array(X) if sparse else X, kind)
    each = [frozenset(np.flatnonzero(expected == k)) for k in range(expected.max() + 1)]
    assert sorted(map(min, groups(found, n))) == sorted(map(min, each))
    assert set(groups(found, n)) == set(each)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_equal_sums_are_compared_column_by_column(sparse):
    # Beside 1 the second column is lost in any sum.
    X = np.tile([[1.0, 1e-30], [1.0, 2e-30]], (20, 1))
    found = equal_items(sp.csr_array(X) if sparse else X, np.zeros(40, dtype=int))
    if found is not None:
        for group in groups(found, 40):
            assert len(set(X[list(group), 1])) == 1


def test_zeros_of_both_signs_are_equal_and_huge_rows_are_not_confused():
    X = np.array([[0.0], [-0.0], [0.0], [-0.0]])
    assert len(equal_items(X, np.zeros(4, dtype=int))[0]) == 1
    huge = np.array([[1e308, 1e308], [1e308, 1e308], [-1e308, 1e308], [-1e308, 1e308]])
    found = equal_items(huge, np.zeros(4, dtype=int))
    assert found is None or all(
        len(np.unique(huge[list(g)], axis=0)) == 1 for g in groups(found, 4)
    )


def test_items_that_differ_are_left_alone():
    rng = np.random.default_rng(0)
    assert equal_items(rng.normal(size=(5000, 3)), np.zeros(5000, dtype=int)) is None
    # A few copies are not worth the work.
    X = rng.normal(size=(5000, 1))
    X[:1000] = 0.0
    assert equal_items(X, np.zeros(5000, dtype=int)) is None
    X[:4000] = 0.0
    assert len(equal_items(X, np.zeros(5000, dtype=int))[0]) == 1001
