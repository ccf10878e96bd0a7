"""Designs: products as of the plain matrix, shifts and scales as promised, least norms."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankbook.solvers import PairSums
from rankbook.solvers.design import (
    Design,
    least_norm_shift,
    null_space,
    power_of_two,
    thinned_size,
    weighted_gram,
)


def matrix():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 4)) * [1.0, 1e5, 1e-7, 3.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_products_are_those_of_scaled_columns(sparse):
    X = matrix()
    design = Design.build(sp.csr_matrix(X) if sparse else X)
    assert not design.shift.any() and (design.unit == 1).all()
    scaled = X / design.scale
    assert (np.abs(np.log2(scaled.std(axis=0))) <= 0.51).all()
    rng = np.random.default_rng(1)
    v, u, w = rng.normal(size=4), rng.normal(size=30), rng.random(30)
    np.testing.assert_allclose(design.scores(v), scaled @ v)
    np.testing.assert_allclose(design.adjoint(u), scaled.T @ u)
    np.testing.assert_allclose(design.gram(w), scaled.T @ (w[:, None] * scaled), atol=1e-12)
    np.testing.assert_allclose(X @ design.coef(v), design.scores(v))
    np.testing.assert_allclose(design.subset([3, 5]).scores(v), (scaled @ v)[[3, 5]])
    assert design.shape == (30, 4)


def test_only_large_offsets_are_shifted():
    X = matrix()
    X[:, 0] += 100.0
    X[:, 3] += 1e9
    design = Design.build(X)
    assert design.shift[:3].tolist() == [0.0, 0.0, 0.0]
    assert design.shift[3] == pytest.approx(1e9, rel=1e-6)
    np.testing.assert_array_equal(design.X[:, 3], X[:, 3] - design.shift[3])
    assert 1.0 <= design.scale[3] <= 8.0
    untouched = matrix()
    assert Design.build(untouched).X is untouched


def test_sparse_columns_with_zeros_stay():
    X = matrix()
    X[:, 0] += 1e9
    X[:, 3] = 1e9
    X[0, 3] = 0.0
    design = Design.build(sp.csr_array(X))
    assert design.shift[0] != 0 and design.shift[3] == 0
    assert design.X.nnz == 119
    np.testing.assert_array_equal(design.X.toarray()[:, 0], X[:, 0] - design.shift[0])


def test_a_zero_that_no_sample_of_rows_shows_keeps_its_sparse_column():
    column = 1e9 + np.random.default_rng(0).normal(size=20_001)
    column[1] = 0.0
    X = sp.csr_array(np.column_stack([column, column + (column == 0)]))
    design = Design.build(X)
    assert design.shift[0] == 0 and design.shift[1] != 0


@pytest.mark.parametrize("sparse", [False, True])
def test_units_out_of_range_are_divided_out(sparse):
    X = matrix() * [1e200, 1.0, 1e-200, 1.0]
    design = Design.build(sp.csr_array(X) if sparse else X)
    assert (design.unit != 1).tolist() == [True, False, True, False]
    gram = design.gram(np.ones(30))
    assert np.isfinite(gram).all() and (np.diagonal(gram) > 10).all()
    v = np.ones(4)
    np.testing.assert_allclose(X @ design.coef(v), design.scores(v), rtol=1e-9)
    # A ridge keeps a column that is far below its root from being blown up.
    assert Design.build(X, ridge=4.0).scale[2] == 2.0


def test_wide_sparse_matrices_are_scaled_by_their_largest_entries():
    X = sp.random(50, 2500, density=0.01, random_state=0, format="csr") * 64.0
    design = Design.build(X)
    largest = abs(X).max(axis=0).toarray().ravel()
    np.testing.assert_array_equal(design.scale, power_of_two(largest))
    assert design.scale.max() == 64.0


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_pair_gram_both_ways(smoothing):
    rng = np.random.default_rng(2)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.arange(60) // 10
    loss = "hinge" if smoothing else "logistic"
    sums = PairSums(y, loss, qid=qid, smoothing=smoothing)
    scores = 0.8 * X[:, 0] + y
    point = sums.at(scores)
    few = 0 < len(point.curved[2]) < 60
    assert few == bool(smoothing)
    design = Design(X, np.zeros(3), np.array([1.0, 2.0, 4.0]))
    products = [X.T @ point.hessian_product(column) for column in X.T]
    expected = np.stack(products) / np.outer(design.scale, design.scale)
    np.testing.assert_allclose(design.pair_gram(*point.curved), expected, rtol=1e-9, atol=1e-9)
    sparse = Design(sp.csr_array(X), design.shift, design.scale)
    np.testing.assert_allclose(sparse.pair_gram(*point.curved), expected, rtol=1e-9, atol=1e-9)


def test_weighted_gram():
    X, w = matrix(), np.arange(30.0)
    expected = X.T @ np.diag(w) @ X
    np.testing.assert_allclose(weighted_gram(X, w), expected, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(weighted_gram(sp.csr_array(X), w), expected, rtol=1e-10, atol=1e-9)
    signed = np.where(np.arange(len(w)) % 2, w, -w)
    for items in (X, sp.csr_array(X)):
        found = weighted_gram(items, signed)
        np.testing.assert_allclose(found, (X.T * signed) @ X, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(weighted_gram(items), X.T @ X, rtol=1e-10, atol=1e-9)


def test_null_space_and_least_norm():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 3)) * [1.0, 1e4, 1e-4]
    X = np.column_stack([X, X[:, 0] + X[:, 2], np.zeros(20)])
    flat = null_space(X.T @ X)
    assert flat.shape == (5, 2)
    assert np.abs(X @ flat).max() < 1e-6 * np.abs(flat).max()
    assert null_space(np.eye(3)).shape == (3, 0)
    b = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    least = b + flat @ least_norm_shift(b, flat)
    np.testing.assert_allclose(flat.T @ least, 0.0, atol=1e-7 * np.abs(flat).max())
    np.testing.assert_allclose(X @ least, X @ b, rtol=1e-6)


def test_power_of_two():
    assert power_of_two(np.array([0.0, 1.0, 3.0, 0.7, 1e-3])).tolist() == [1, 1, 4, 0.5, 2**-10]


def test_a_thinned_sample_has_items_for_its_parameters():
    assert thinned_size(10_000, 3, each=100, share=16) == 2000
    assert thinned_size(10_000, 30, each=100, share=16) == 3000
    assert thinned_size(1_000_000, 30, each=100, share=16) == 62_500
