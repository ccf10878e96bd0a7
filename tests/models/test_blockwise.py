"""What blocks of rows share with fits in memory: sums of their objectives are the whole's."""

import numpy as np
from numpy.testing import assert_allclose

from rankbook import losses
from rankbook.models import blockwise
from rankbook.solvers.design import Design


def test_everything_promised_is_there():
    assert all(hasattr(blockwise, name) for name in blockwise.__all__)


def margin_risk(X, sign, weights):
    p = X.shape[1]
    design = Design(X, np.zeros(p), np.ones(p))
    return blockwise.MarginRisk(design, sign, weights, losses.get("logistic"), np.zeros(p))


def test_margin_risks_of_blocks_add_up():
    rng = np.random.default_rng(0)
    X, sign = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40)
    weights, x = rng.random(40), rng.normal(size=4)
    rows = [slice(0, 7), slice(7, 40)]
    value, gradient, hessian = margin_risk(X, sign, weights).value_gradient_hessian(x)
    parts = [margin_risk(X[r], sign[r], weights[r]).value_gradient_hessian(x) for r in rows]
    assert_allclose(value, sum(part[0] for part in parts), rtol=1e-12)
    assert_allclose(gradient, sum(part[1] for part in parts), rtol=1e-12)
    assert_allclose(hessian, sum(part[2] for part in parts), rtol=1e-12)
    by_hand = weights @ np.log1p(np.exp(-sign * (X @ x[:3] + x[3])))
    assert_allclose(value, by_hand, rtol=1e-12)


def test_a_restricted_objective_is_the_whole_one_on_a_subspace():
    rng = np.random.default_rng(1)
    X, sign = rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], 30)
    whole = margin_risk(X, sign, np.full(30, 1 / 30))
    origin, basis = rng.normal(size=4), rng.normal(size=(4, 2))
    part, t = blockwise.Restricted(whole, origin, basis), rng.normal(size=2)
    value, gradient, hessian = part.value_gradient_hessian(t)
    assert value == whole.value(origin + basis @ t) == part.value(t)
    steps = 1e-5 * np.eye(2)
    slopes = [(part.value(t + s) - part.value(t - s)) / 2e-5 for s in steps]
    assert_allclose(gradient, slopes, rtol=1e-6)
    change = [
        part.value_gradient_hessian(t + s)[1] - part.value_gradient_hessian(t - s)[1] for s in steps
    ]
    assert_allclose(hessian, np.array(change) / 2e-5, rtol=1e-6)


def test_the_gap_that_strong_convexity_leaves():
    gradient, ridge = np.array([1.0, -2.0, 0.0]), np.array([0.5, 4.0, 0.0])
    assert_allclose(blockwise.strong_convexity_gap(gradient, ridge), 1.0 + 4.0 / 8.0, rtol=1e-15)
    assert blockwise.strong_convexity_gap(np.ones(1), np.zeros(1)) == np.inf
