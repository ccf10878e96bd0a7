"""The bounds on the ERR against every list of a few items, and their sharpness."""

import itertools

import numpy as np
import pytest

from rankbook.bounds import err_regret_bound, expected_rank_error_bound
from rankbook.metrics import err


def all_lists(n, n_grades):
    grades = list(itertools.product(range(n_grades), repeat=n))
    return itertools.product(grades, grades)


def stops(order, grades, top):
    """The reader's walk, step by step."""
    left, chance = 1.0, {}
    for i in order:
        stop = (2 ** grades[i] - 1) / 2**top
        chance[i] = left * stop
        left *= 1 - stop
    return np.array([chance[i] for i in range(len(grades))])


@pytest.mark.parametrize(("n", "n_grades"), [(2, 4), (3, 3), (4, 2)])
def test_regret_is_within_both_bounds_for_all_small_lists(n, n_grades):
    top = n_grades - 1
    positive = 0
    for y, guess in all_lists(n, n_grades):
        options = {"ties": "order", "max_grade": top}
        regret = err(y, y, **options) - err(y, guess, **options)
        for version in ("grades", "stopping"):
            bound = err_regret_bound(y, guess, max_grade=top, version=version)
            assert regret <= bound + 1e-12, (y, guess, version)
        positive += regret > 1e-9
    assert positive > 20


@pytest.mark.parametrize("predictions", [(0, 1, 2, 3), (0.0, 0.1, 2.9, 3.0), (1, 2.5, 2.6, 3)])
def test_regret_is_within_both_bounds_in_every_order_of_four_items(predictions):
    """Every order is that of some predictions; the ERR is the sum over the reader's walk."""
    places = 1 / np.arange(1, 5)
    orders = [list(order) for order in itertools.permutations(range(4))]
    for y in itertools.product(range(4), repeat=4):
        values = [places @ stops(order, y, 3)[order] for order in orders]
        for order, value in zip(orders, values, strict=True):
            guess = np.empty(4)
            guess[order] = predictions[::-1]
            for version in ("grades", "stopping"):
                bound = err_regret_bound(y, guess, max_grade=3, version=version)
                assert max(values) - value <= bound + 1e-12, (y, guess, version)


@pytest.mark.parametrize(("n", "n_grades"), [(3, 3), (4, 2)])
def test_bounds_are_the_formulas(n, n_grades):
    top = n_grades - 1
    for y, guess in itertools.islice(all_lists(n, n_grades), 0, None, 7):
        rho = sorted(range(n), key=lambda i: -y[i])
        pi = sorted(range(n), key=lambda i: -guess[i])
        moved = sum((1 / (1 + rho.index(i)) - 1 / (1 + pi.index(i))) ** 2 for i in range(n))
        single = sum(((2 ** y[i] - 2 ** guess[i]) / 2**top) ** 2 for i in range(n))
        walk = ((stops(rho, y, top) - stops(pi, guess, top)) ** 2).sum()
        assert err_regret_bound(y, guess, max_grade=top) == pytest.approx((moved * single) ** 0.5)
        assert err_regret_bound(y, guess, max_grade=top, version="stopping") == pytest.approx(
            (moved * walk) ** 0.5
        )


def test_other_readings_of_the_theorem_are_false():
    """Both walks by the predicted order, or both by the best one: the regret is larger."""
    y, guess, top = (0, 0, 0, 3), (3, 3, 3, 3), 3
    rho, pi = [3, 0, 1, 2], [0, 1, 2, 3]
    moved = sum((1 / (1 + rho.index(i)) - 1 / (1 + pi.index(i))) ** 2 for i in range(4))
    regret = err(y, y, max_grade=top) - err(y, guess, ties="order", max_grade=top)
    best_order = ((stops(rho, y, top) - stops(rho, guess, top)) ** 2).sum()
    assert regret**2 > 10 * moved * best_order
    y, guess = (0, 2, 2, 3), (1, 1, 1, 1)
    rho = [3, 1, 2, 0]
    moved = sum((1 / (1 + rho.index(i)) - 1 / (1 + pi.index(i))) ** 2 for i in range(4))
    regret = err(y, y, max_grade=top) - err(y, guess, ties="order", max_grade=top)
    given_order = ((stops(pi, y, top) - stops(pi, guess, top)) ** 2).sum()
    assert regret**2 > 1.2 * moved * given_order


def test_no_error_no_regret():
    assert err_regret_bound([2, 0, 1], [2, 0, 1]) == 0.0


def test_expected_rank_error_bound_is_sharp_and_holds():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(1000, 4))
    bound = expected_rank_error_bound(errors)
    assert bound.shape == (1000,)
    assert (np.abs(errors.sum(axis=1)) <= bound + 1e-12).all()
    assert expected_rank_error_bound([0.25] * 4) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: err_regret_bound([0, 1], [0]), "predicted and y must have the same length"),
        (lambda: err_regret_bound([0, -1], [0, 1]), "y must lie between"),
        (lambda: err_regret_bound([0, 1], [0, 5], max_grade=3), "predicted must lie between"),
        (lambda: err_regret_bound([0, 1], [0, 1], version="printed"), "version"),
        (lambda: err_regret_bound([], []), "y"),
        (lambda: expected_rank_error_bound(0.5), "boundary_errors"),
        (lambda: expected_rank_error_bound([np.nan]), "boundary_errors"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()
