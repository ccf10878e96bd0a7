"""Minimisers of surrogates against closed forms, SciPy, and the invariances of the risk."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from rankbook import losses
from rankbook.graphs import PreferenceGraph
from rankbook.population import FinitePopulation
from rankbook.surrogates import (
    minimize_edgewise,
    minimize_pairwise,
    value_regularized_scores,
    verify,
)
from rankbook.surrogates._solve import polish
from rankbook.surrogates.minimize import edge_problem

SMOOTH = ["exponential", "logistic", "squared_hinge", "squared"]
ALL = [*SMOOTH, "hinge"]


def random_weights(rng, m, density=0.7):
    a = rng.integers(1, 9, (m, m)) * (rng.random((m, m)) < density)
    a[np.arange(m), (np.arange(m) + 1) % m] += 1  # a cycle through all keeps the minimum finite
    np.fill_diagonal(a, 0)
    return a


def risk(scores, a, loss, margin=0.0):
    z = scores[:, None] - scores[None, :] - margin
    return float((np.asarray(a, dtype=float) * losses.get(loss)(z)).sum())


def scipy_minimum(a, loss, margin=0.0):
    """Return SciPy's minimum: BFGS for smooth losses, a linear program for the hinge loss."""
    m = len(a)
    if loss != "hinge":
        found = minimize(
            lambda s: risk(np.r_[0.0, s], a, loss, margin), np.zeros(m - 1), options={"gtol": 1e-9}
        )
        return found.fun, np.r_[0.0, found.x]
    tail, head = np.nonzero(a)
    rows = np.zeros((len(tail), m + len(tail)))
    rows[np.arange(len(tail)), tail] = -1.0
    rows[np.arange(len(tail)), head] = 1.0
    rows[np.arange(len(tail)), m + np.arange(len(tail))] = -1.0
    bounds = [(None, None)] * m + [(0, None)] * len(tail)
    margins = np.broadcast_to(margin, a.shape)[tail, head]
    cost = np.r_[np.zeros(m), np.asarray(a, dtype=float)[tail, head]]
    found = linprog(cost, A_ub=rows, b_ub=-1.0 - margins, bounds=bounds)
    return found.fun, found.x[:m]


@pytest.mark.parametrize(
    ("loss", "difference", "value"),
    [
        ("exponential", np.log(3) / 2, 2 * np.sqrt(3)),
        ("logistic", np.log(3), 3 * np.log(4 / 3) + np.log(4)),
        ("squared_hinge", 0.5, 3 * 0.25 + 2.25),
        ("squared", 0.5, 3 * 0.25 + 2.25),
        ("hinge", 1.0, 2.0),
    ],
)
def test_two_nodes_in_closed_form(loss, difference, value):
    result = minimize_edgewise([[0, 3], [1, 0]], loss)
    np.testing.assert_allclose(result.scores, [difference / 2, -difference / 2], rtol=1e-12)
    assert result.value == pytest.approx(value, rel=1e-12)
    assert result.order.tolist() == [0, 1]
    assert result.attained
    assert result.unique
    verify(result)


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_scipy(loss, seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 7))
    a = random_weights(rng, m)
    value, scores = scipy_minimum(a, loss)
    result = minimize_edgewise(a, loss)
    assert result.value == pytest.approx(value, rel=1e-9)
    assert result.value == pytest.approx(risk(result.scores, a, loss), rel=1e-10)
    assert abs(result.scores.mean()) < 1e-12
    if loss in ("exponential", "logistic", "squared"):
        assert result.unique
        np.testing.assert_allclose(result.scores, scores - scores.mean(), atol=1e-4)
    verify(result)


@pytest.mark.parametrize("loss", ALL)
def test_margins_agree_with_scipy(loss):
    rng = np.random.default_rng(20)
    a = random_weights(rng, 4)
    margin = rng.integers(-2, 4, (4, 4)) / 2
    result = minimize_edgewise(a, loss, margin)
    assert result.value == pytest.approx(scipy_minimum(a, loss, margin)[0], rel=1e-8)
    verify(result)
    constant = minimize_edgewise(a, loss, Fraction(1, 2))
    assert constant.value == pytest.approx(scipy_minimum(a, loss, 0.5)[0], rel=1e-8)
    # A margin m on every edge is the loss moved by m: for equal scores nothing else changes.
    assert constant.value > minimize_edgewise(a, loss).value


@pytest.mark.parametrize("loss", ALL)
def test_invariance_to_scale_and_relabelling(loss):
    rng = np.random.default_rng(21)
    a = random_weights(rng, 5)
    order = rng.permutation(5)
    first = minimize_edgewise(a, loss)
    scaled = minimize_edgewise(a * 1000, loss)
    moved = minimize_edgewise(a[np.ix_(order, order)], loss)
    assert scaled.value == pytest.approx(1000 * first.value, rel=1e-10)
    assert moved.value == pytest.approx(first.value, rel=1e-10)
    if first.unique:
        np.testing.assert_allclose(moved.scores, first.scores[order], atol=1e-8)


@pytest.mark.parametrize("loss", ALL)
def test_reversing_every_edge_negates_the_scores(loss):
    a = random_weights(np.random.default_rng(22), 5)
    first, second = minimize_edgewise(a, loss), minimize_edgewise(a.T, loss)
    assert second.value == pytest.approx(first.value, rel=1e-10)
    if first.unique:
        np.testing.assert_allclose(second.scores, -first.scores, atol=1e-8)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_infimum_at_infinity_is_said(loss):
    # 0 <-> 1 hold each other; 2 <-> 3 too; 1 -> 2 only pulls apart.
    a = np.zeros((4, 4), dtype=int)
    a[0, 1], a[1, 0], a[2, 3], a[3, 2], a[1, 2] = 3, 1, 2, 1, 5
    result = minimize_edgewise(a, loss)
    assert not result.attained
    assert not result.unique
    parts = [minimize_edgewise([[0, p], [1, 0]], loss).value for p in (3, 2)]
    assert result.value == pytest.approx(sum(parts), rel=1e-12)
    assert risk(result.scores, a, loss) == pytest.approx(result.value, rel=1e-12)
    assert result.order.tolist() == [0, 1, 2, 3]
    assert result.difference_range(1, 2) == (np.inf, np.inf)
    verify(result)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_losses_that_reach_zero_always_attain_it(loss):
    result = minimize_edgewise([[0, 1, 1], [0, 0, 1], [0, 0, 0]], loss)
    assert result.attained
    assert not result.unique
    assert result.value == 0.0
    assert risk(result.scores, np.triu(np.ones((3, 3)), 1), loss) == 0.0
    assert result.difference_range(0, 1) == (1, np.inf)
    assert result.difference_range(0, 2) == (2, np.inf)


@pytest.mark.parametrize("loss", ALL)
def test_parts_that_no_edge_joins_are_free(loss):
    a = np.zeros((4, 4), dtype=int)
    a[0, 1], a[1, 0], a[2, 3], a[3, 2] = 3, 1, 1, 3
    result = minimize_edgewise(a, loss)
    assert result.attained
    assert not result.unique
    assert result.difference_range(0, 2) == (-np.inf, np.inf)
    assert result.scores[0] == pytest.approx(result.scores[3])
    assert minimize_edgewise(np.zeros((2, 2)), loss).value == 0.0
    assert minimize_edgewise([[0]], loss).unique


def test_hinge_range_over_all_minimisers_is_exact():
    # All of (1, t, 0) with t in [0, 1], and on to (2, 1, 0), have the least risk, 3.
    result = minimize_edgewise([[0, 1, 3], [0, 0, 1], [1, 0, 0]], "hinge")
    assert not result.unique
    assert result.difference_range(0, 2) == (1, 2)
    assert result.difference_range(0, 1) == (0, 1)
    for scores in ([1.0, 0.0, 0.0], [1.0, 0.25, 0.0], [1.0, 1.0, 0.0], [2.0, 1.0, 0.0]):
        assert risk(np.array(scores), result.problem_matrix(), "hinge") == result.value == 3.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_difference_range_agrees_with_linear_programs(loss, seed):
    rng = np.random.default_rng(30 + seed)
    a = random_weights(rng, 4, density=0.5) % 4
    a[np.arange(4), (np.arange(4) + 1) % 4] += 1
    result = minimize_edgewise(a, loss)
    if loss == "squared_hinge":
        assert result.difference_range(0, 1)[0] <= result.scores[0] - result.scores[1] + 1e-9
        return
    tail, head = np.nonzero(a)
    # Minimise s_0 - s_1 over the optimal face of the linear program.
    m, e = 4, len(tail)
    rows = np.zeros((e + 1, m + e))
    rows[np.arange(e), tail], rows[np.arange(e), head] = -1.0, 1.0
    rows[np.arange(e), m + np.arange(e)] = -1.0
    rows[e, m:] = a[tail, head]
    limits = np.r_[-np.ones(e), result.value]
    bounds = [(None, None)] * m + [(0, None)] * e
    for i, j in [(0, 1), (2, 3), (1, 3)]:
        cost = np.zeros(m + e)
        cost[i], cost[j] = 1.0, -1.0
        found = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds)
        assert float(result.difference_range(i, j)[0]) == pytest.approx(found.fun, abs=1e-7)


def test_squared_hinge_with_a_free_node():
    a = np.array([[0, 4, 0], [1, 0, 0], [0, 0, 0]])
    result = minimize_edgewise(a, "squared_hinge")
    assert not result.unique
    assert result.difference_range(0, 1) == pytest.approx((0.6, 0.6))
    assert result.difference_range(0, 2) == (-np.inf, np.inf)


def test_accepts_a_preference_graph_and_fractions():
    graph = PreferenceGraph.from_edges(2, {(0, 1): Fraction(1, 3)})
    assert minimize_edgewise(graph, "hinge").value == 0.0
    third = [[0, Fraction(2, 3)], [Fraction(1, 3), 0]]
    assert minimize_edgewise(third, "hinge").certificate.lower == Fraction(2, 3)


def test_least_squares_solves_a_laplacian_system_whatever_the_directions():
    # No edge lies on a cycle, and yet the minimum is attained: the loss rises from 1 on.
    a = np.array([[0, 1, 4], [0, 0, 2], [0, 0, 0]])
    result = minimize_edgewise(a, "squared")
    laplacian = np.diag((a + a.T).sum(axis=1)) - (a + a.T)
    expected = np.linalg.lstsq(laplacian, (a - a.T).sum(axis=1), rcond=None)[0]
    np.testing.assert_allclose(result.scores, expected - expected.mean(), atol=1e-12)
    assert result.attained
    assert result.unique
    assert min(result.certificate.flow) < 0
    verify(result)
    # The referee's numbers on the running example.
    a = np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]) * Fraction(1, 100)
    assert minimize_edgewise(a, "squared").order.tolist() == [0, 2, 1]


# Populations


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("consistent", [False, True])
def test_population_value_is_its_surrogate_risk(loss, consistent):
    rng = np.random.default_rng(40)
    population = FinitePopulation(rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(5)))
    result = minimize_pairwise(population, loss, "linear", consistent)
    direct = population.surrogate_risk(result.scores, loss, "linear", consistent)
    assert result.value == pytest.approx(direct, rel=1e-10)
    weights = population.pair_weights("linear", consistent)
    own = np.trace(weights) * float(losses.get(loss)(0.0))
    np.fill_diagonal(weights, 0.0)
    assert result.value == pytest.approx(scipy_minimum(weights, loss)[0] + own, rel=1e-7)
    verify(result)


def test_bipartite_exponential_scores_are_half_the_log_odds():
    eta = np.array([0.1, 0.3, 0.5, 0.8])
    population = FinitePopulation(np.column_stack([1 - eta, eta]))
    expected = np.log(eta / (1 - eta)) / 2
    result = minimize_pairwise(population, "exponential")
    np.testing.assert_allclose(result.scores, expected - expected.mean(), rtol=1e-10)
    double = minimize_pairwise(population, "logistic").scores
    np.testing.assert_allclose(double, 2 * (expected - expected.mean()), rtol=1e-10)


def test_exact_population_gives_an_exact_hinge_proof():
    population = FinitePopulation(
        [[Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 2), Fraction(1, 2)], [0, 1]]
    )
    result = minimize_pairwise(population, "hinge")
    assert result.certificate.exact
    assert result.certificate.gap == 0
    assert result.order[0] == 2


def test_float_populations_certify_degenerate_hinge_problems():
    # Atoms alike in pairs make ties that rounding breaks; the proof must survive it.
    posterior = np.array([[0.7, 0.3], [0.7, 0.3], [0.1, 0.9], [0.1, 0.9], [0.4, 0.6]])
    result = minimize_pairwise(FinitePopulation(posterior), "hinge")
    assert float(result.certificate.gap) <= 1e-12
    verify(result)


# Value regularisation


@pytest.mark.parametrize("nu", [1.0, 0.25])
def test_value_regularised_scores_agree_with_cvxpy(nu):
    import cvxpy as cp

    a = random_weights(np.random.default_rng(50), 5).astype(float)
    s = cp.Variable(5)
    tail, head = np.nonzero(a)
    linear = a[tail, head] @ (s[head] - s[tail])
    cp.Problem(cp.Minimize(linear + nu * cp.sum_squares(s))).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(value_regularized_scores(a, nu), s.value, atol=1e-5)


def test_value_regularised_scores_closed_form_and_invariance():
    a = np.array([[0, 2, 3], [1, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(value_regularized_scores(a), [2.0, 0.0, -2.0])
    np.testing.assert_allclose(value_regularized_scores(a, 2.0), [1.0, 0.0, -1.0])
    np.testing.assert_allclose(value_regularized_scores(a.T), -value_regularized_scores(a))


# Bad input


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([[0, -1], [0, 0]], "hinge"), ValueError, "a must not be negative, got -1"),
        (([[1, 0], [0, 0]], "hinge"), ValueError, "a must not have self-loops"),
        (([[0, 1, 2]], "hinge"), ValueError, r"a must be a square matrix, got shape \(1, 3\)"),
        (([[0, 1], [1, 0]], "cross"), ValueError, "loss must be one of 'exponential'"),
        (([[0, 1], [1, 0]], "hinge", [[0.0]]), ValueError, r"margin must have shape \(2, 2\)"),
        (([[0, 1], [1, 0]], "hinge", "wide"), TypeError, "margin must be a real number"),
        (([[0, 1], [1, 0]], "hinge", np.nan), ValueError, "margin must be finite"),
    ],
)
def test_bad_input(arguments, error, match):
    with pytest.raises(error, match=match):
        minimize_edgewise(*arguments)


def test_bad_nu_and_foreign_loss():
    with pytest.raises(ValueError, match="nu must be greater than 0"):
        value_regularized_scores([[0, 1], [0, 0]], nu=0.0)

    with pytest.raises(TypeError, match="strictly convex until it vanishes"):
        minimize_edgewise([[0, 1], [1, 0]], losses.SmoothedHinge(0.5))

    class Doubled(losses.Hinge):
        hinge_parts = ((2.0, 1.0, 1),)

    with pytest.raises(TypeError, match="loss must be the hinge"):
        minimize_edgewise([[0, 1], [1, 0]], Doubled())


def test_a_loss_of_ones_own_is_accepted():
    class Steeper(losses.Logistic):
        name = "steeper"

        def __call__(self, s):
            return super().__call__(2 * np.asarray(s))

        def derivative(self, s):
            return 2 * super().derivative(2 * np.asarray(s))

        def second_derivative(self, s):
            return 4 * super().second_derivative(2 * np.asarray(s))

        def conjugate(self, u):
            return super().conjugate(np.asarray(u) / 2)

        def expression(self, z):
            return super().expression(2 * z)

    result = minimize_edgewise([[0, 3], [1, 0]], Steeper())
    np.testing.assert_allclose(result.scores, [np.log(3) / 4, -np.log(3) / 4], rtol=1e-12)
    verify(result)


@pytest.mark.parametrize("loss", SMOOTH)
def test_polish_goes_on_where_values_differ_by_rounding_alone(loss):
    rng = np.random.default_rng(8)
    for _ in range(20):
        problem = edge_problem(random_weights(rng, 5), loss)
        best = polish(problem, np.zeros(5))
        near = polish(problem, best + 1e-9 * rng.normal(size=5))
        assert np.abs(problem.gradient(near)).max() <= 1e-13 * problem.w.sum()


def test_what_is_no_population_is_named():
    with pytest.raises(TypeError, match="population must be a FinitePopulation, got ndarray"):
        minimize_pairwise(np.ones((2, 2)) / 2, "hinge")


def test_value_regularized_scores_stay_within_the_floats():
    with pytest.raises(ValueError, match="nu must be large enough for finite scores"):
        value_regularized_scores([[0, 1e300], [0, 0]], nu=1e-300)
