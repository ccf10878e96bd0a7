"""Boosted regression on the codes against least squares."""

import numpy as np

from rankbook.models import RegressionBoost


def test_boosted_regression_reaches_least_squares():
    X = np.array([[0.0], [0.7], [1.5], [2.0], [3.1]])
    y = np.array([1, 3, 2, 2, 5])
    model = RegressionBoost(n_iter=1000, weak="joint", bandwidth=0.3).fit(X, y)
    basis = np.column_stack([np.ones(5), np.exp(-((X - X.T) ** 2) / 0.6)])
    fitted = basis @ np.linalg.lstsq(basis, y.astype(float), rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), fitted, atol=1e-6)
    named = RegressionBoost(n_iter=5, labels=["a", "b"]).fit(X, ["a", "b", "a", "b", "b"])
    assert 0 <= named.predict(X).min() and named.predict(X).max() < 2


def test_one_step_and_a_constant_give_the_means_of_two_groups():
    X, y = np.array([[0.0], [0.0], [1.0]]), [1, 2, 5]
    model = RegressionBoost(n_iter=40, weak="stump").fit(X, y)
    np.testing.assert_allclose(model.predict(X), [1.5, 1.5, 5.0], atol=1e-8)
    weighted = RegressionBoost(n_iter=40, weak="stump").fit(X, y, sample_weight=[3.0, 1.0, 1.0])
    np.testing.assert_allclose(weighted.predict(X), [1.25, 1.25, 5.0], atol=1e-8)
