"""Separation: known samples, a certificate for the answer yes, an alternative for the answer no."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from rankbook.solvers.separation import separation


def two_class_rows(X, y):
    return np.column_stack([X, np.ones(len(X))]) * np.where(y, 1.0, -1.0)[:, None]


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("seed", range(6))
def test_direction_or_alternative(seed, unit):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(14, 3))
    y = X[:, 0] + (seed % 2) * 3.0 * rng.normal(size=14) > 0
    rows = two_class_rows(X * [1.0, unit, 1.0], y)
    found = separation(sp.csr_array(rows) if seed % 3 else rows)
    # Gordan and Stiemke: no direction separates exactly if positive weights cancel the rows.
    weights = linprog(
        np.ones(14),
        A_eq=rows.T / np.abs(rows).max(axis=0)[:, None],
        b_eq=np.zeros(4),
        bounds=(1, None),
    ).status
    assert (found is None) == (weights == 0)
    assert (found is not None) == (seed % 2 == 0)
    if found is not None:
        margins = rows @ found.direction
        assert margins.min() > -1e-6
        assert margins.max() > 1e-4
        assert found.complete


def test_quasi_separation_is_not_complete():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    found = separation(two_class_rows(X, np.array([0, 0, 1, 1])))
    assert not found.complete
    assert found.columns.tolist() == [0, 1]
    assert np.allclose(two_class_rows(X, np.array([0, 0, 1, 1]))[1:3] @ found.direction, 0)


def test_columns_name_the_culprit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.random(200) < 0.5
    X[:, 1] = 0.0
    X[np.flatnonzero(y)[:3], 1] = 1.0
    found = separation(two_class_rows(X, y))
    assert found.columns.tolist() == [1]
    assert not found.complete


def test_no_rows_that_matter():
    assert separation(np.zeros((3, 2))) is None
    assert separation([[1.0], [-1.0]]) is None
