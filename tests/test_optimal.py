"""Population minimisers: direct minimisation, the paper's tables, brute force over orders."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from rankbook import costs as c
from rankbook import optimal as o
from rankbook.exceptions import CostConditionError

RNG_SEED = 20130800


def posteriors(n, K, seed=RNG_SEED, concentration=1.0):
    return np.random.default_rng(seed).dirichlet(np.full(K, concentration), n)


def increasing(K, rng, spread=2.0):
    return np.sort(rng.normal(0, spread, K - 1))


def same_order(a, b, tol=1e-9):
    """Two scores order all pairs alike, ties included (to rounding)."""
    a, b = np.subtract.outer(a, a), np.subtract.outer(b, b)
    clear = (np.abs(a) > tol * np.abs(a).max()) & (np.abs(b) > tol * np.abs(b).max())
    return bool((np.sign(a[clear]) == np.sign(b[clear])).all())


def advantage(p, costs):
    """Entry [x, z]: what putting z above x costs, less what putting x above z costs."""
    return p @ (costs - costs.T).T @ p.T


def order_cost(p, costs, order):
    """What an order (best first) costs beyond the pairwise lower bound, up to a constant."""
    gain = advantage(p, costs)
    return sum(gain[b, a] for i, a in enumerate(order) for b in order[i + 1 :])


# ------------------------------------------------------------------------------------- bayes_score


@pytest.mark.parametrize("costs", ["constant", "linear", "dcg"])
def test_three_classes_is_the_ratio_of_theorem_3(costs):
    p = posteriors(50, 3)
    matrix = {"constant": c.constant, "linear": c.linear, "dcg": c.dcg}[costs](3)
    expected = (matrix[0, 1] * p[:, 1] + matrix[0, 2] * p[:, 2]) / (
        matrix[0, 2] * p[:, 0] + matrix[1, 2] * p[:, 1]
    )
    assert_allclose(o.bayes_score(p, costs), expected)
    assert_allclose(o.bayes_score(p, matrix), expected)


def test_two_classes_is_the_odds():
    p = posteriors(20, 2)
    assert_allclose(o.bayes_score(p), p[:, 1] / p[:, 0])


@pytest.mark.parametrize("K", [3, 4, 5, 7])
def test_agrees_with_expected_scale(K):
    rng = np.random.default_rng(K)
    scale, weights = np.sort(rng.random(K)), rng.random(K) + 0.1
    p = posteriors(60, K)
    score = o.bayes_score(p, c.from_scale(scale, weights))
    position = o.expected_scale(p, scale, weights)
    assert same_order(score, position)
    s, w = c.scale_and_weights(c.from_scale(scale, weights))
    assert_allclose(o.expected_scale(p, s, w), score / (1 + score))


ODD_COSTS = {
    "constant": c.constant(3),
    "no cost of 1 against 3": np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]]),
    "unequal, none of 1 against 3": np.array([[0, 3.0, 0], [0, 0, 0.5], [0, 0, 0]]),
    "first class free": np.array([[0, 0.0, 0], [0, 0, 2.0], [0, 0, 0]]),
    "last class free": np.array([[0, 2.0, 0], [0, 0, 0.0], [0, 0, 0]]),
    "only 1 against 3": np.array([[0, 0.0, 1.0], [0, 0, 0.0], [0, 0, 0]]),
    "linear 5": c.linear(5),
    "dcg 4": c.dcg(4),
    "weights with zeros": c.from_scale([0, 1, 2, 4, 5], [0, 1, 0, 2, 0]),
    "half-plane, five classes": None,
}


def half_plane_costs():
    """Rank two with c_1K = 0: classes are directions that turn by exactly half a circle."""
    angle = np.array([0.0, 0.5, 1.3, 2.5, np.pi])
    length = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    v = length[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    cross = np.outer(v[:, 0], v[:, 1]) - np.outer(v[:, 1], v[:, 0])
    cross[0, -1] = 0.0
    return np.triu(cross, 1)


@pytest.mark.parametrize("name", ODD_COSTS)
def test_best_among_all_orders(name):
    matrix = half_plane_costs() if ODD_COSTS[name] is None else ODD_COSTS[name]
    rng = np.random.default_rng(3)
    for _ in range(8):
        p = rng.dirichlet(np.full(matrix.shape[0], 0.7), 5)
        score = o.bayes_score(p, matrix)
        best = min(order_cost(p, matrix, order) for order in permutations(range(5)))
        assert_allclose(order_cost(p, matrix, np.argsort(-score)), best, atol=1e-12)


def test_zero_denominators_and_zero_costs_give_finite_scores():
    corners = np.eye(3)
    score = o.bayes_score(corners, c.linear(3))
    assert np.isfinite(score).all() and score[0] < score[1] < score[2]
    chain = ODD_COSTS["no cost of 1 against 3"]
    score = o.bayes_score([[1, 0, 0], [0.1, 0.8, 0.1], [0, 0, 1], [0.5, 0, 0.5]], chain)
    assert np.isfinite(score).all() and score[0] < score[1] < score[2]
    assert score[3] == 0
    assert_array_equal(o.bayes_score(corners, np.zeros((3, 3))), np.zeros(3))


def test_c_13_to_zero_is_the_limit_of_theorem_3():
    p = posteriors(40, 3)
    chain = ODD_COSTS["unequal, none of 1 against 3"]
    small = chain.copy()
    small[0, 2] = 1e-7
    assert same_order(o.bayes_score(p, chain), o.bayes_score(p, small), tol=1e-6)
    unit = ODD_COSTS["no cost of 1 against 3"]
    assert_allclose(o.bayes_score(p, unit), (1 - 2 * p[:, 0]) / p[:, 1] - 1)


@pytest.mark.parametrize("matrix", [c.constant(4), c.ovo([3, 1, 4, 1, 5])])
def test_condition_violated(matrix):
    K = matrix.shape[0]
    with pytest.raises(CostConditionError, match=r"classes \d and \d .*violate.*bayes_scores"):
        o.bayes_score(posteriors(2, K), matrix)


def test_condition_error_names_the_pair_and_keeps_labels_after_trimming():
    matrix = np.zeros((6, 6))
    matrix[1:5, 1:5] = c.constant(4)
    with pytest.raises(CostConditionError, match="classes 3 and 4 ") as error:
        o.bayes_score(posteriors(2, 6), matrix)
    assert "c(2,5) c(3,4) = 1, but c(2,4) c(3,5) - c(2,3) c(4,5) = 0" in str(error.value)


def test_expected_label_and_gain():
    p = posteriors(30, 5)
    labels = np.arange(1, 6)
    assert_allclose(o.expected_scale(p, labels), p @ labels)
    assert_allclose(o.expected_gain(p, 2.0**labels - 1), p @ (2.0**labels - 1))
    assert same_order(o.expected_gain(p, 2.0**labels - 1), o.bayes_score(p, "dcg"))
    assert o.expected_scale([0.0, 1.0], [0.0, 1.0], [1.0, 0.0]) == 0
    assert o.expected_scale(p.reshape(5, 6, 5), labels).shape == (5, 6)


# --------------------------------------------------------------------- smooth conditional risks


def exponential_risk(t, p, theta):
    return p[:-1] @ np.exp(t - theta) + p[1:] @ np.exp(theta - t)


def logistic_risk(t, p, theta):
    return p[:-1] @ np.logaddexp(0, t - theta) + p[1:] @ np.logaddexp(0, theta - t)


def stationary_point(derivative, centre=0.0):
    low, high = centre - 60.0, centre + 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if derivative(middle) > 0 else (middle, high)
    return (low + high) / 2


@pytest.mark.parametrize("K", [2, 3, 4, 6])
@pytest.mark.parametrize("method", ["orboost", "proportional odds"])
def test_minimisers_of_smooth_risks(K, method):
    rng = np.random.default_rng(K)
    for p in posteriors(25, K, seed=K):
        theta = increasing(K, rng)
        if method == "orboost":
            got, risk = o.orboost_score(p, theta), exponential_risk

            def slope(t, p=p, theta=theta):
                return p[:-1] @ np.exp(t - theta) - p[1:] @ np.exp(theta - t)
        else:
            got, risk = o.proportional_odds_score(p, theta), logistic_risk

            def slope(t, p=p, theta=theta):
                sigma = 1 / (1 + np.exp(theta - t))
                return p[:-1] @ sigma - p[1:] @ (1 - sigma)

        assert_allclose(got, stationary_point(slope), atol=1e-8)
        found = minimize_scalar(risk, args=(p, theta), bracket=(-5, 5), tol=1e-12)
        assert risk(got, p, theta) <= found.fun * (1 + 1e-14)
        assert_allclose(got, found.x, atol=1e-5)


def test_proportional_odds_closed_form_as_printed():
    p = posteriors(200, 3)
    theta = np.array([-0.7, 1.9])
    q = (p[:, 1] + p[:, 2]) / (p[:, 0] + p[:, 1])
    root = np.sqrt((q - 1) ** 2 + 4 * np.exp(theta[0] - theta[1]) * q)
    printed = np.log((q - 1 + root) / (2 * np.exp(-theta[1])))
    assert_allclose(o.proportional_odds_score(p, theta), printed, rtol=1e-9, atol=1e-10)
    assert same_order(o.proportional_odds_score(p, theta), o.bayes_score(p))


def test_proportional_odds_solver_agrees_with_closed_form_and_survives_extremes():
    p = posteriors(300, 3, concentration=0.3)
    theta = np.array([-2.0, 0.5])
    # A fourth class of no probability adds a threshold that no label touches.
    padded = np.c_[p, np.zeros(300)]
    got = o.proportional_odds_score(padded, [-2.0, 0.5, 0.5])
    slope = (padded[:, :-1] / (1 + np.exp(np.array([-2, 0.5, 0.5]) - got[:, None]))).sum(1)
    slope -= (padded[:, 1:] / (1 + np.exp(got[:, None] - np.array([-2, 0.5, 0.5])))).sum(1)
    assert np.abs(slope[np.isfinite(got)]).max() < 1e-14
    assert_allclose(
        o.proportional_odds_score(p, theta + 7), 7 + o.proportional_odds_score(p, theta)
    )
    for gap in (1e-9, 50.0, 3000.0):
        assert np.isfinite(o.proportional_odds_score(p[:20], [0.0, gap])).all()
    wide = o.proportional_odds_score(posteriors(50, 5), [-900.0, -1.0, 1.0, 900.0])
    assert np.isfinite(wide).all()


def test_certain_outer_classes_are_infinite():
    for K in (2, 3, 5):
        theta = np.linspace(-1, 1, K - 1)
        for score in (o.orboost_score, o.proportional_odds_score):
            assert_array_equal(score(np.eye(K)[[0, -1]], theta), [-np.inf, np.inf])


@pytest.mark.parametrize("K", [3, 4, 6])
def test_orboost_orders_as_its_implied_costs(K):
    rng = np.random.default_rng(K)
    p = posteriors(60, K)
    for _ in range(5):
        theta = increasing(K, rng, 0.7)
        ratio = o.bayes_score(p, c.from_orboost_thresholds(theta))
        # Both sums of Theorem 3 carry the factor exp(theta_{K-1} - theta_1) or none.
        expected = (
            2 * o.orboost_score(p, theta) + np.log(ratio[0]) - 2 * o.orboost_score(p[0], theta)
        )
        assert_allclose(np.log(ratio), expected, atol=1e-9)


def test_table_2_of_the_paper():
    printed = {
        (-0.0932, -0.0656, -0.0386, 0.0): [
            1,
            1.028,
            1.056,
            1.098,
            0.053,
            0.116,
            1.068,
            0.063,
            1.039,
            1,
        ],
        (-0.7742, -0.7742, -0.4183, 0.0): [
            1,
            1,
            1.427,
            2.169,
            0.299,
            0.966,
            2.169,
            0.539,
            1.519,
            1,
        ],
    }
    for theta, values in printed.items():
        got = c.from_orboost_thresholds(theta)[np.triu_indices(5, 1)]
        assert np.abs(got - values).max() < 1.1e-3


# ------------------------------------------------------------------------------------ SVOR


def hinge_risk(t, p, theta, constraints):
    hinge = lambda s: np.maximum(1 - s, 0)  # noqa: E731
    value = 0.0
    for k, weight in enumerate(p):
        for j, cut in enumerate(theta):
            if constraints == "explicit" and j not in (k - 1, k):
                continue
            value += weight * (hinge(cut - t) if j >= k else hinge(t - cut))
    return value


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
@pytest.mark.parametrize("K", [2, 3, 4, 6])
def test_svor_interval_is_the_set_of_minimisers(K, constraints):
    rng = np.random.default_rng(K)
    for p in posteriors(40, K, seed=K + 1):
        theta = rng.normal(0, 2, K - 1)  # any order
        lower, upper = o.svor_interval(p, theta, constraints)
        candidates = np.concatenate([theta - 1, theta + 1])
        values = np.array([hinge_risk(t, p, theta, constraints) for t in candidates])
        best = values.min()
        minimisers = candidates[values <= best + 1e-12]
        assert_allclose([lower, upper], [minimisers.min(), minimisers.max()], atol=1e-12)


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_svor_flat_pieces(constraints):
    p, theta = np.array([0.3, 0.4, 0.3]), [-1.5, 1.5]
    assert_allclose(o.svor_interval(p, theta, constraints), (-0.5, 0.5))
    assert_array_equal(o.svor_interval([1.0, 0, 0], theta, "implicit"), (-np.inf, -2.5))
    assert_array_equal(o.svor_interval([0, 0, 1.0], theta, "implicit"), (2.5, np.inf))


@pytest.mark.parametrize("theta", [(-0.4, 0.9), (-2.0, 1.5), (0.0, 2.0), (0.3, 0.3)])
def test_tables_of_section_4_3_ordered_thresholds(theta):
    p = posteriors(300, 3)
    low, high = theta
    steps = np.array([low - 1, min(low + 1, high - 1), max(low + 1, high - 1), high + 1])
    r = (1 - p[:, 0]) / (1 - p[:, 2])
    assert_allclose(o.svor_interval(p, theta, "implicit")[0], steps[np.digitize(r, [0.5, 1, 2])])
    r = (1 - 2 * p[:, 0]) / p[:, 1]
    assert_allclose(o.svor_interval(p, theta, "explicit")[0], steps[np.digitize(r, [0, 1, 2])])


def test_tables_of_section_4_3_crossed_thresholds():
    p = posteriors(300, 3)
    r = (1 - 2 * p[:, 0]) / p[:, 1]
    got = o.svor_interval(p, (0.7, -0.4), "explicit")[0]
    assert_allclose(got, np.where(r < 1, 0.7 - 1, -0.4 + 1))
    lower, upper = o.svor_interval(p, (2.0, -1.5), "explicit")
    assert_allclose((lower, upper), (np.full(300, -0.5), np.full(300, 1.0)))


def test_svor_moves_with_the_thresholds_and_mirrors():
    p = posteriors(100, 5)
    theta = np.array([-1.2, 0.1, 0.3, 2.2])
    for constraints in ("implicit", "explicit"):
        lower, upper = o.svor_interval(p, theta, constraints)
        moved = o.svor_interval(p, theta + 3, constraints)
        assert_allclose(moved, (lower + 3, upper + 3))
        mirrored = o.svor_interval(p[:, ::-1], -theta[::-1], constraints)
        assert_allclose(mirrored, (-upper, -lower))


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "function",
    [
        o.orboost_score,
        o.proportional_odds_score,
        lambda p, theta: o.svor_interval(p, theta, "implicit"),
    ],
)
def test_thresholds_whose_distances_overflow_are_refused(function):
    posterior = [[0.1, 0.2, 0.3, 0.4]]
    with pytest.raises(ValueError, match="thresholds must have finite distances"):
        function(posterior, [-1e308, 0.0, 1e308])
    assert np.isfinite(function(posterior, [-8e307, 0.0, 8e307])).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: o.bayes_score([0.5, 0.6]), ValueError, "posterior must sum to one"),
        (lambda: o.bayes_score([1.0]), ValueError, "posterior must have shape"),
        (lambda: o.bayes_score([[np.nan, 1.0]]), ValueError, "posterior must be finite"),
        (lambda: o.bayes_score([-0.5, 1.5]), ValueError, "posterior must not be negative"),
        (lambda: o.bayes_score([0.5, 0.5], np.ones((3, 3))), ValueError, "costs must have shape"),
        (lambda: o.bayes_score(["a", "b"]), TypeError, "posterior must be real numbers"),
        (lambda: o.expected_scale([0.5, 0.5], [2.0, 1.0]), ValueError, "scale must be in increas"),
        (lambda: o.expected_scale([0.5, 0.5], [1, 2, 3]), ValueError, "scale must have one entry"),
        (lambda: o.expected_scale([0.5, 0.5], [1, 2], [0, 0]), ValueError, "weights must be non-n"),
        (lambda: o.expected_gain([0.5, 0.5], [1.0]), ValueError, "gain must have one entry"),
        (lambda: o.orboost_score([0.5, 0.5], [0.0, 1.0]), ValueError, "thresholds must have leng"),
        (lambda: o.orboost_score([0.2, 0.3, 0.5], [1, 0]), ValueError, "thresholds must be in inc"),
        (lambda: o.proportional_odds_score([0.5, 0.5], [np.nan]), ValueError, "thresholds must be"),
        (lambda: o.svor_interval([0.5, 0.5], [0.0], "free"), ValueError, "constraints must be one"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_root_is_found_where_newton_alone_runs_away():
    # Far thresholds make the slope vanish between them, where a Newton step is enormous.
    far = [-300.0, 0.0, 300.0]
    for p, thresholds in (
        ([0.1, 0.2, 0.3, 0.4], far),
        ([0.4, 0.1, 0.1, 0.4], far),
        ([0.001, 0.499, 0.499, 0.001], far),
        ([0.7, 0.2, 0.05, 0.05], [-40.0, 0.0, 60.0]),
    ):
        t = o.proportional_odds_score([p], thresholds)[0]

        def slope(t, p=p, thresholds=thresholds):
            p = np.array(p)
            return ((p[:-1] + p[1:]) * expit(t - np.array(thresholds))).sum() - p[1:].sum()

        assert t == pytest.approx(brentq(slope, -700, 700, xtol=1e-13), abs=1e-8)


def test_the_interval_of_a_flat_risk_is_the_whole_of_it():
    # Slopes that rounding makes not quite zero are zero.
    lower, upper = o.svor_interval([[1 / 3, 1 / 3, 1 / 3]], [0.0, 10.0], "explicit")
    assert (lower[0], upper[0]) == (1.0, 9.0)
    lower, upper = o.svor_interval([[0.7, 0.1, 0.2]], [0.0, 10.0], "implicit")
    assert (lower[0], upper[0]) == (-1.0, -1.0)
    assert 0.6 != 1 - 0.2 - 0.2
    lower, upper = o.svor_interval([[0.6, 0.2, 0.2]], [0.0, 10.0], "implicit")
    assert (lower[0], upper[0]) == (-1.0, 1.0)


def test_the_classes_at_fault_are_numbered_as_in_the_book():
    c = np.triu(np.ones((5, 5)), 1)
    c[0] = 0.0  # class 1 costs nothing and is left out
    with pytest.raises(
        CostConditionError, match=r"classes 3 and 4 \(of 1\.\.5\) violate it: c\(2,"
    ):
        o.bayes_score(np.full((1, 5), 0.2), c)
