"""The search along a learner, and the choice of one."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from rankbook.solvers.boosting import boost, line_search
from rankbook.solvers.weak_learners import FeatureBumps, Stumps


def polynomial(t):
    return 4 * (t - 2.0) ** 3 + (t - 2.0), 12 * (t - 2.0) ** 2 + 1.0


@pytest.mark.parametrize(
    ("derivatives", "best"),
    [
        (lambda t: (t - 3.0, 1.0), 3.0),
        (polynomial, 2.0),
        (lambda t: (np.exp(40 * t) - np.exp(20), 40 * np.exp(40 * t)), 0.5),
        (lambda t: (-np.exp(-t) + 1e-6 * np.exp(t), np.exp(-t) + 1e-6 * np.exp(t)), np.log(1e3)),
        # A kink has no curvature to help.
        (lambda t: (-1.0 if t <= 1.25 else 2.0, 0.0), 1.25),
        # It never turns, or not before the end.
        (lambda t: (-np.exp(-t), np.exp(-t)), 20.0),
        (lambda t: (-1.0, 0.0), 20.0),
    ],
)
def test_the_search_finds_the_minimum(derivatives, best):
    with np.errstate(over="ignore"):
        assert line_search(derivatives, 20.0) == pytest.approx(best, rel=1e-9)


def test_a_slope_that_overflows_is_past_the_minimum():
    def derivatives(t):
        rise = np.exp(np.float64(200.0) * t)
        return rise - 5.0, 200 * rise

    with np.errstate(over="ignore"):
        assert np.isinf(derivatives(20.0)[0])
        assert line_search(derivatives, 20.0) == pytest.approx(np.log(5) / 200, rel=1e-9)


class Quartic:
    """A smooth convex risk of the scores that is none of the package's."""

    def __init__(self, target):
        self.target, self.n, self.thresholds = target, len(target), np.empty(0)

    def risk(self, scores):
        return float(np.mean((scores - self.target) ** 4 + (scores - self.target) ** 2))

    def gradient(self, scores):
        gap = scores - self.target
        return (4 * gap**3 + 2 * gap) / self.n

    def along(self, scores, direction):
        def derivatives(t):
            gap = scores + t * direction - self.target
            slope = np.mean((4 * gap**3 + 2 * gap) * direction)
            return slope, np.mean((12 * gap**2 + 2) * direction**2)

        return derivatives

    def refit(self, scores):
        return 0.0


@pytest.mark.parametrize("weak", [FeatureBumps, Stumps])
def test_a_round_takes_the_member_that_its_rule_names(weak):
    rng = np.random.default_rng(4)
    X, target = rng.normal(size=(12, 2)).round(1), rng.normal(size=12)
    learners = weak(X, np.ones(12), 0.5, None, rng)
    values = np.column_stack([learners.values(k) for k in range(learners.size)])
    risk = Quartic(target)
    searches = [minimize_scalar(lambda t, h=h: risk.risk(t * h), tol=1e-12) for h in values.T]
    greedy = boost(risk, learners, 1, selection="greedy")
    best = int(np.argmin([search.fun for search in searches]))
    assert greedy.train_risk[0] == pytest.approx(searches[best].fun, rel=1e-9)
    plain = boost(risk, learners, 1, selection="gradient")
    steepest = int(np.abs(risk.gradient(np.zeros(12)) @ values).argmax())
    np.testing.assert_array_equal(plain.rows[0], learners.row(steepest))
    assert plain.steps[0] == pytest.approx(searches[steepest].x, rel=1e-5)


@pytest.mark.parametrize("selection", ["gradient", "greedy"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_gradient_of_either_sign_is_followed(selection, sign):
    """Bumps are positive, so that all products have the sign of the gradient."""
    X = np.array([[0.0], [1.0], [2.0]])
    learners = FeatureBumps(X, np.ones(3), 0.1, None, np.random.default_rng(0))
    found = boost(Quartic(sign * np.array([0.2, 0.1, 3.0])), learners, 1, selection=selection)
    np.testing.assert_array_equal(found.rows[0], learners.row(2))
    assert sign * found.steps[0] > 2.5


def test_the_risk_falls_to_its_minimum_over_the_span_and_then_it_stops():
    X = np.array([[0.0], [1.0], [2.0]])
    target = np.array([3.0, -1.0, 2.0])
    learners = Stumps(X, np.ones(3), 0.5, None, np.random.default_rng(0))
    result = boost(Quartic(target), learners, 20_000)
    assert (np.diff(result.train_risk) <= 1e-14 * result.train_risk[0]).all()
    # Two steps span the scores (-a - b, a - b, a + b).
    grid = minimize_scalar(lambda s: Quartic(target).risk(np.array([-s, s, s])), tol=1e-12).fun
    assert result.train_risk[-1] < grid
    assert result.exhausted
    scores = Stumps.evaluate(result.rows, X, 0.5) @ result.steps
    assert np.abs(learners.products(Quartic(target).gradient(scores))).max() < 1e-10


def test_validation_is_followed_and_reported():
    rng = np.random.default_rng(5)
    X, target = rng.normal(size=(30, 1)), rng.normal(size=30)
    learners = FeatureBumps(X, np.ones(30), 0.5, None, rng)
    seen = []
    other = rng.normal(size=(10, 1)), rng.normal(size=10)
    result = boost(
        Quartic(target),
        learners,
        15,
        validation=(Quartic(other[1]), lambda rows: FeatureBumps.evaluate(rows, other[0], 0.5)),
        report=lambda *told: seen.append(told),
    )
    values = FeatureBumps.evaluate(result.rows, other[0], 0.5)
    for rounds in (1, 8, 15):
        scores = values[:, :rounds] @ result.steps[:rounds]
        assert result.validation_risk[rounds - 1] == pytest.approx(Quartic(other[1]).risk(scores))
    assert [told[0] for told in seen] == list(range(1, 16))
    np.testing.assert_allclose([told[1] for told in seen], result.train_risk)
