"""Sums over blocks of rows: the same fit as of the whole."""

import numpy as np
import pytest

from rankbook.models._margin_risk import MarginRisk
from rankbook.models._pair_objective import PairRisk
from rankbook.solvers import PairSums, minimize
from rankbook.solvers.blocks import SumOfBlocks
from rankbook.solvers.design import Design

RIDGE = np.full(3, 1e-2)


def sample(n=240):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.digitize(X @ [1.0, -0.5, 0.2] + rng.logistic(size=n), [-1, 1])
    return X, y, np.arange(n) // 12, rng.random(n) + 0.5


def plain(X):
    return Design(X, np.zeros(3), np.ones(3))


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge", "squared"])
@pytest.mark.parametrize("n_blocks", [1, 3, 5])
def test_blocks_of_queries_give_the_fit_of_the_whole(loss, n_blocks):
    X, y, qid, weight = sample()

    def risk(rows):
        sums = PairSums(
            y[rows], loss, "linear", sample_weight=weight[rows], qid=qid[rows], labels=[0, 1, 2]
        )
        return PairRisk(plain(X[rows]), sums, RIDGE)

    whole = risk(np.arange(len(y)))
    parts = [risk(rows) for rows in np.array_split(np.arange(len(y)), n_blocks)]
    if n_blocks > 1:
        parts = [risk(np.flatnonzero(qid % n_blocks == k)) for k in range(n_blocks)]
    shares = [part.sums.different / whole.sums.different for part in parts]
    total = SumOfBlocks(parts, shares)
    x = np.array([0.3, -0.1, 0.2])
    assert total.value(x) == pytest.approx(whole.value(x), rel=1e-12)
    found, expected = (minimize(f, np.zeros(3), tol=1e-16) for f in (total, whole))
    np.testing.assert_allclose(found.x, expected.x, atol=1e-8)
    assert found.converged


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_blocks_of_items_give_the_likelihoods_fit(loss):
    from rankbook import losses

    X, y, _, weight = sample()
    sign = np.where(y > 0, 1.0, -1.0)

    def risk(rows):
        w = weight[rows] / weight[rows].sum()
        return MarginRisk(plain(X[rows]), sign[rows], w, losses.get(loss), RIDGE)

    blocks = np.array_split(np.arange(len(y)), 4)
    shares = [weight[rows].sum() / weight.sum() for rows in blocks]
    total = SumOfBlocks([risk(rows) for rows in blocks], shares)
    found = minimize(total, np.zeros(4), tol=1e-18)
    expected = minimize(risk(np.arange(len(y))), np.zeros(4), tol=1e-18)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-8)


class Parabola:
    def __init__(self, centre, as_product=False, top=np.inf):
        self.centre, self.as_product, self.top = np.asarray(centre, float), as_product, top

    def value(self, x):
        return float((x - self.centre) @ (x - self.centre)) if x.max() < self.top else np.inf

    def value_gradient_hessian(self, x):
        if not np.isfinite(self.value(x)):
            return np.inf, None, None
        product = (lambda v: 2.0 * v) if self.as_product else 2.0 * np.eye(len(x))
        return self.value(x), 2.0 * (x - self.centre), product


def test_products_and_arrays_mix():
    blocks = [Parabola([1.0, 0.0]), Parabola([4.0, 3.0], as_product=True)]
    total = SumOfBlocks(blocks, [1.0, 2.0])
    value, gradient, hessian = total.value_gradient_hessian(np.zeros(2))
    assert value == 1.0 + 2.0 * 25.0
    np.testing.assert_array_equal(gradient, [-18.0, -12.0])
    np.testing.assert_array_equal(hessian(np.array([1.0, -1.0])), [6.0, -6.0])
    np.testing.assert_allclose(minimize(total, np.zeros(2), tol=1e-20).x, [3.0, 2.0])


def test_outside_the_domain_of_one_block():
    total = SumOfBlocks([Parabola([0.0]), Parabola([0.0], top=1.0)])
    assert total.value(np.array([2.0])) == np.inf
    assert total.value_gradient_hessian(np.array([2.0])) == (np.inf, None, None)


def test_call_is_used_and_arguments_checked():
    seen = []

    def call(function, blocks):
        seen.append(len(blocks))
        return [function(block) for block in blocks]

    SumOfBlocks([Parabola([0.0])] * 3, call=call).value(np.zeros(1))
    assert seen == [3]
    with pytest.raises(ValueError, match="blocks must not be empty"):
        SumOfBlocks([])
    with pytest.raises(ValueError, match=r"weights must have shape \(1,\), one a block"):
        SumOfBlocks([Parabola([0.0])], weights=[1.0, 2.0])
