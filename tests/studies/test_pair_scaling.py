"""The study of the cost of pairs: objectives and counts are recomputed, timings need form."""

from math import isqrt

import numpy as np
import pytest

from rankbook import losses, studies
from rankbook.models import PairwiseRanker
from rankbook.studies import pair_scaling as study


@pytest.fixture(scope="module")
def stored():
    return studies.load("pair_scaling")


def test_quick_gives_the_stored_numbers(stored):
    again = studies.run("pair_scaling", quick=True, progress=False)
    for setting in ("alpha", "p", "seed"):
        assert again[setting] == stored[setting]
    assert again["n"] == stored["n"][:1]
    assert again["pairs"] == stored["pairs"][:1]
    assert again["explicit"]["pairs"] == stored["explicit"]["pairs"][:1]
    for loss in study.LOSSES:
        rtol = 2e-6 if loss == "hinge" else 1e-8
        np.testing.assert_allclose(
            again["objective"][loss], stored["objective"][loss][:1], rtol=rtol, err_msg=loss
        )


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("loss", study.LOSSES)
def test_larger_sizes_are_recomputed_too(stored, loss, size):
    X, y = study.sample(stored["n"][size])
    assert stored["pairs"][size] == (y == 1).sum() * (y == 0).sum()
    model = PairwiseRanker(loss, alpha=study.ALPHA).fit(X, y)
    rtol = 2e-6 if loss == "hinge" else 1e-8
    np.testing.assert_allclose(model.objective_, stored["objective"][loss][size], rtol=rtol)


def test_the_objective_is_that_of_the_explicit_pairs():
    X, y = study.sample(300)
    differences = (X[y == 1][:, None, :] - X[y == 0][None, :, :]).reshape(-1, X.shape[1])
    for name in study.LOSSES:
        model = PairwiseRanker(name, alpha=study.ALPHA).fit(X, y)
        b = model.coef_
        value = losses.get(name)(differences @ b).mean() + study.ALPHA / 2 * b @ b
        np.testing.assert_allclose(model.objective_, value, rtol=1e-9)


def test_exponent_of_powers():
    sizes = np.array([10, 50, 700])
    for power in (0.5, 1, 2):
        np.testing.assert_allclose(study.exponent(sizes, 3.0 * sizes**power), power, rtol=1e-12)


def test_numbers_of_pairs_are_products_of_two_classes(stored):
    for n, pairs in zip(stored["n"], stored["pairs"], strict=True):
        # The sizes of the classes solve k (n - k) = pairs; with a median of zero they are alike.
        difference = isqrt(n * n - 4 * pairs)
        assert difference**2 == n * n - 4 * pairs
        assert (n - difference) % 2 == 0 and difference < 5 * n**0.5
    for n, pairs in zip(stored["explicit"]["n"], stored["explicit"]["pairs"], strict=True):
        _, y = study.sample(n)
        assert pairs == (y == 1).sum() * (y == 0).sum()


def test_form(stored):
    assert stored["n"] == list(study.SIZES)
    assert stored["explicit"]["n"] == list(study.EXPLICIT)
    for loss in study.LOSSES:
        assert len(stored["objective"][loss]) == len(stored["seconds"][loss]) == len(study.SIZES)
        assert all(s > 0 for s in stored["seconds"][loss])
        # More items, the same population: the objective settles.
        assert np.ptp(stored["objective"][loss][2:]) < 0.01 * stored["objective"][loss][-1]
    assert len(stored["explicit"]["seconds"]) == len(study.EXPLICIT)
