from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from rankbook import costs as rc
from rankbook._linear_order import strong_components
from rankbook.exceptions import CostConditionError
from rankbook.losses import Exponential, Hinge, Logistic
from rankbook.population import FinitePopulation

CYCLE = np.array([[0, 3, 0, 1], [2, 0, 0, 2], [1, 0, 3, 0]]) * Fraction(1, 4)


def random_population(rng, m, K):
    return FinitePopulation(rng.dirichlet(np.ones(K), m), rng.dirichlet(np.ones(m)))


def random_costs(rng, K):
    return np.triu(rng.random((K, K)), 1)


def brute_risk(population, scores, costs, ties=0.5):
    """Two draws of (atom, label), enumerated."""
    q, p = population.marginal, population.posterior
    m, K = p.shape
    hit = total = 0.0
    for u, v, i, j in product(range(m), range(m), range(K), range(K)):
        if i > j:
            mass = q[u] * p[u, i] * q[v] * p[v, j]
            total += mass
            wrong = 1.0 if scores[u] < scores[v] else ties if scores[u] == scores[v] else 0.0
            hit += mass * costs[j, i] * wrong
    return hit / total


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("ties", [0.0, 0.5, 1.0])
def test_risk_is_the_enumerated_sum(K, ties):
    rng = np.random.default_rng(K)
    population, costs = random_population(rng, 5, K), random_costs(rng, K)
    for scores in (rng.standard_normal(5), np.zeros(5), np.array([1.0, 0, 1, 0, 2])):
        expected = brute_risk(population, scores, costs, ties)
        assert population.risk(scores, costs, ties) == pytest.approx(expected, rel=1e-12)


def test_risk_from_pair_weights_and_of_extreme_scorers():
    rng = np.random.default_rng(0)
    population, costs = random_population(rng, 6, 4), random_costs(rng, 4)
    W = population.pair_weights(costs)
    s = np.array([0.0, 2, 1, 1, 5, -1])
    wrong = (s[:, None] < s[None, :]) + 0.5 * (s[:, None] == s[None, :])
    assert population.risk(s, costs) == pytest.approx((W * wrong).sum(), rel=1e-12)
    assert population.risk(np.zeros(6), costs) == pytest.approx(W.sum() / 2, rel=1e-12)
    assert population.risk(s, costs) + population.risk(-s, costs) == pytest.approx(W.sum())
    assert population.risk(np.zeros(6)) == pytest.approx(0.5, rel=1e-12)


def test_risk_invariances():
    rng = np.random.default_rng(1)
    population, costs = random_population(rng, 7, 3), random_costs(rng, 3)
    s = rng.standard_normal(7)
    risk = population.risk(s, costs)
    assert population.risk(np.exp(s), costs) == risk
    assert population.risk(s, 3 * costs) == pytest.approx(3 * risk)
    order = rng.permutation(7)
    shuffled = FinitePopulation(population.posterior[order], population.marginal[order])
    assert shuffled.risk(s[order], costs) == pytest.approx(risk)
    # An atom split in two with equal scores is the same population.
    split = FinitePopulation(
        np.vstack((population.posterior, population.posterior[-1])),
        np.append(population.marginal[:-1], population.marginal[-1] * np.array([0.3, 0.7])),
    )
    assert split.risk(np.append(s, s[-1]), costs) == pytest.approx(risk)


@pytest.mark.parametrize("loss", [Exponential(), Logistic(), Hinge(), "squared_hinge"])
def test_surrogate_risk_is_the_enumerated_sum(loss):
    rng = np.random.default_rng(2)
    population, costs = random_population(rng, 4, 3), random_costs(rng, 3)
    q, p = population.marginal, population.posterior
    s = rng.standard_normal(4)
    from rankbook.losses import get

    value = total = extra = 0.0
    for u, v, i, j in product(range(4), range(4), range(3), range(3)):
        mass = q[u] * p[u, i] * q[v] * p[v, j]
        total += mass * (i > j)
        value += mass * (costs[j, i] if i > j else 0.0) * float(get(loss)(s[u] - s[v]))
        if i == j == 1:
            weight = costs[0, 1] * costs[1, 2] / costs[0, 2]
            extra += mass * weight * float(get(loss)(s[u] - s[v]))
    plain = population.surrogate_risk(s, loss, costs)
    full = population.surrogate_risk(s, loss, costs, consistent=True)
    assert plain == pytest.approx(value / total, rel=1e-12)
    assert full == pytest.approx((value + extra) / total, rel=1e-12)


def test_consistent_terms_follow_theorem_4_for_more_classes():
    rng = np.random.default_rng(3)
    population = random_population(rng, 5, 5)
    c = rc.from_scale(np.sort(rng.random(5)), rng.random(5) + 0.1)
    joint = population.marginal[:, None] * population.posterior
    weights = c.T.copy()  # weights[i, j]: first item of class i, second of class j
    for i, j in product(range(5), range(5)):
        if j < i:
            weights[i, j] += c[0, j] * c[i, 4] / c[0, 4]
            weights[j, i] += c[0, j] * c[i, 4] / c[0, 4]
        elif i == j and 0 < i < 4:
            weights[i, i] += c[0, i] * c[i, 4] / c[0, 4]
    pairs = (1 - (population.priors**2).sum()) / 2
    expected = joint @ weights @ joint.T / pairs
    np.testing.assert_allclose(population.pair_weights(c, consistent=True), expected, rtol=1e-10)
    # The added terms are symmetric, so they leave every preference as it was.
    difference = population.pair_weights(c, consistent=True) - population.pair_weights(c)
    np.testing.assert_allclose(difference, difference.T, atol=1e-15)


@pytest.mark.parametrize("K", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["random", "constant", "linear", "sparse"])
def test_bayes_scores_against_all_orders(K, kind):
    rng = np.random.default_rng(K)
    for _ in range(4):
        population = random_population(rng, 5, K)
        costs = {"random": random_costs(rng, K), "sparse": np.diag(np.ones(K - 1), 1)}.get(
            kind, kind
        )
        ordering = population.bayes_ordering(costs)
        best = min(population.risk(order, costs) for order in permutations(range(5)))
        assert ordering.risk == pytest.approx(best, rel=1e-12)
        assert population.bayes_risk(costs) == pytest.approx(best, rel=1e-12)
        assert population.risk(population.bayes_scores(costs), costs) == pytest.approx(best)
        assert population.risk(-np.argsort(ordering.order), costs) == pytest.approx(best)
        assert ordering.bound <= best + 1e-15


def test_bayes_scores_are_the_ranks_of_theorem_3s_ratio():
    rng = np.random.default_rng(7)
    population = random_population(rng, 40, 3)
    c = random_costs(rng, 3)
    p = population.posterior
    ratio = (c[0, 1] * p[:, 1] + c[0, 2] * p[:, 2]) / (c[0, 2] * p[:, 0] + c[1, 2] * p[:, 1])
    ranks = np.argsort(np.argsort(ratio))
    np.testing.assert_array_equal(population.bayes_scores(c), ranks)
    np.testing.assert_array_equal(population.bayes_ordering(c).scores, ranks)


def test_ties_of_the_best_score_are_kept_exactly():
    # Different posteriors, one expectation: tied at linear costs, in either arithmetic.
    rows = [[1, 0, 1], [0, 2, 0], [0, 1, 1]]
    exact = FinitePopulation(np.array(rows) * Fraction(1, 2))
    assert exact.is_exact
    assert exact.bayes_scores("linear").tolist() == [0.0, 0.0, 1.0]
    floats = FinitePopulation(np.array(rows) / 2)
    assert not floats.is_exact
    assert floats.bayes_scores("linear").tolist() == [0.0, 0.0, 1.0]
    assert floats.bayes_ordering("linear").scores.tolist() == [0.0, 0.0, 1.0]


def test_exact_comparison_sees_what_floats_cannot():
    tiny = Fraction(1, 10**20)
    half = Fraction(1, 2)
    population = FinitePopulation([[half, half], [half - tiny, half + tiny]])
    assert population.bayes_scores().tolist() == [0.0, 1.0]


def test_cost_free_first_pair_of_classes():
    # c_13 = 0: best is (c_23 p_3 - c_12 p_1) / p_2.
    rng = np.random.default_rng(9)
    population = random_population(rng, 12, 3)
    costs = np.array([[0, 2.0, 0], [0, 0, 0.5], [0, 0, 0]])
    p = population.posterior
    score = (0.5 * p[:, 2] - 2.0 * p[:, 0]) / p[:, 1]
    assert population.bayes_risk(costs) == pytest.approx(population.risk(score, costs), rel=1e-12)
    np.testing.assert_array_equal(population.bayes_scores(costs), np.argsort(np.argsort(score)))


def test_cycle_is_reported_and_broken_at_its_cheapest():
    population = FinitePopulation(CYCLE, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])
    ordering = population.bayes_ordering()
    assert not ordering.is_transitive
    assert not population.is_transitive()
    assert population.is_transitive("linear")
    W = population.pair_weights(exact=True)
    above = W > W.T
    cycle = ordering.cycle
    assert all(above[u, v] for u, v in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    best = min(population.risk(order) for order in permutations(range(3)))
    assert ordering.risk == pytest.approx(best, rel=1e-14)
    assert ordering.risk > ordering.bound + 1e-4


def test_a_longer_cycle_is_found_when_there_is_no_triangle():
    from rankbook.population._order import best_order

    W = np.zeros((4, 4))
    W[[0, 1, 2, 3], [1, 2, 3, 0]] = [3, 2, 1, 3]
    levels, cycle = best_order(W)
    assert len(cycle) == 4
    assert np.argmax(levels) == 3  # the lightest edge, 2 -> 3, is the one to break


def test_many_atoms_with_cycles_go_to_the_integer_program():
    rng = np.random.default_rng(1)
    costs = np.triu(rng.random((8, 8)) < 0.3, 1).astype(float)
    population = FinitePopulation(rng.dirichlet(np.full(8, 0.3), 25))
    W = population.pair_weights(costs)
    assert len(strong_components(np.maximum(W - W.T, 0))) == 1  # one knot of all 25
    ordering = population.bayes_ordering(costs)
    assert not ordering.is_transitive
    assert ordering.bound < ordering.risk
    # No swap of two atoms in the order improves it.
    order = list(ordering.order)
    for a in range(25):
        for b in range(a + 1, 25):
            swapped = order.copy()
            swapped[a], swapped[b] = swapped[b], swapped[a]
            scores = -np.argsort(swapped)
            assert population.risk(scores, costs) >= ordering.risk - 1e-12


def test_exact_pair_weights_are_the_float_ones():
    population = FinitePopulation(CYCLE)
    exact = population.pair_weights("linear", exact=True)
    assert isinstance(exact[0, 0], Fraction)
    np.testing.assert_allclose(exact.astype(float), population.pair_weights("linear"), rtol=1e-14)
    both = population.pair_weights("linear", consistent=True, exact=True)
    np.testing.assert_allclose(
        both.astype(float), population.pair_weights("linear", consistent=True), rtol=1e-14
    )
    costs = np.triu(np.full((4, 4), Fraction(1, 3)), 1)
    assert (
        population.pair_weights(costs, exact=True)[0, 1]
        == Fraction(1, 3) * (population.pair_weights(exact=True)[0, 1])
    )
    # Floats stand for the rationals that they are.
    halves = FinitePopulation([[0.5, 0.5], [0.25, 0.75]]).pair_weights(exact=True)
    assert halves[0, 1] == Fraction(2, 15)


def test_sample_follows_the_population():
    rng = np.random.default_rng(11)
    population = random_population(rng, 3, 4)
    n = 200_000
    atoms, y = population.sample(n, rng)
    joint = population.marginal[:, None] * population.posterior
    counts = np.zeros((3, 4))
    np.add.at(counts, (atoms, y), 1)
    se = np.sqrt(joint * (1 - joint) / n)
    assert (np.abs(counts / n - joint) < 4 * se + 1e-12).all()
    again = population.sample(50, 5)
    np.testing.assert_array_equal(again[0], population.sample(50, 5)[0])
    np.testing.assert_array_equal(again[1], population.sample(50, 5)[1])


def test_sample_risk_converges_to_the_population_risk():
    rng = np.random.default_rng(12)
    population, costs = random_population(rng, 4, 3), random_costs(rng, 3)
    s = np.array([0.0, 1, 1, 2])
    values = []
    for _ in range(40):
        (u, i), (v, j) = population.sample(20_000, rng), population.sample(20_000, rng)
        wrong = (s[u] < s[v]) + 0.5 * (s[u] == s[v])
        pair = i > j
        values.append((costs[j, i] * wrong)[pair].mean())
    se = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - population.risk(s, costs)) < 4 * se


def test_bad_input():
    with pytest.raises(ValueError, match="posterior must sum to one"):
        FinitePopulation([[0.5, 0.6]])
    with pytest.raises(ValueError, match="posterior must not be negative"):
        FinitePopulation([[-0.5, 1.5]])
    with pytest.raises(ValueError, match=r"posterior must have shape \(m, K\)"):
        FinitePopulation([0.5, 0.5])
    with pytest.raises(ValueError, match="posterior must be finite"):
        FinitePopulation([[np.nan, 1.0]])
    with pytest.raises(TypeError, match="posterior must be real numbers"):
        FinitePopulation([["a", "b"]])
    with pytest.raises(ValueError, match="exactly one, got 9999999/10000000"):
        FinitePopulation([[Fraction(1, 2), Fraction(4999999, 10**7)]] + [[0, 1]])
    with pytest.raises(ValueError, match="marginal must have length 2"):
        FinitePopulation([[0.5, 0.5], [1, 0]], [1.0])
    with pytest.raises(ValueError, match="marginal must sum to one"):
        FinitePopulation([[0.5, 0.5], [1, 0]], [0.3, 0.3])
    with pytest.raises(ValueError, match="at least two classes"):
        FinitePopulation([[1.0, 0.0], [1.0, 0.0]])
    population = FinitePopulation([[0.5, 0.5, 0], [0.1, 0.2, 0.7]])
    with pytest.raises(ValueError, match="same length"):
        population.risk([1.0])
    with pytest.raises(ValueError, match="scores must be finite"):
        population.risk([1.0, np.inf])
    with pytest.raises(ValueError, match="costs must have shape"):
        population.risk([1.0, 2.0], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="costs must not be negative"):
        population.bayes_risk([[0, -1, 1], [0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="ties must be"):
        population.risk([1.0, 2.0], ties=2)
    with pytest.raises(ValueError, match="loss must be one of"):
        population.surrogate_risk([1.0, 2.0], "zero")
    with pytest.raises(CostConditionError, match=r"costs\[0, 2\], must be positive"):
        population.pair_weights([[0, 1, 0], [0, 0, 1], [0, 0, 0]], consistent=True)
    with pytest.raises(CostConditionError, match="classes 2 and 3 "):
        FinitePopulation(CYCLE).surrogate_risk(np.zeros(3), "hinge", consistent=True)
    with pytest.raises(TypeError, match="n must be an integer"):
        population.sample(2.5)
    with pytest.raises(ValueError, match="n must be at least 1"):
        population.sample(0)


def test_repr_and_sizes():
    population = FinitePopulation(CYCLE)
    assert repr(population) == "FinitePopulation(3 atoms, 4 classes)"
    assert (population.n_atoms, population.n_classes) == (3, 4)


# Small probabilities


@pytest.mark.parametrize("e", [1e-12, 1e-16, 1e-20, 1e-300])
def test_small_posteriors_do_not_cancel(e):
    # Of the pairs, the higher comes from the atom with 3 e three times in four; half of them tie.
    population = FinitePopulation([[1 - e, e], [1 - 3 * e, 3 * e]])
    assert population.risk([0, 1]) == pytest.approx(0.375, rel=1e-11)
    assert population.risk([1, 0]) == pytest.approx(0.625, rel=1e-11)
    assert population.bayes_risk() == population.risk([0, 1])
    assert population.pair_weights().sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("digits", [12, 20, 400])
def test_small_fractions_are_exact_and_rounded_once(digits):
    e = Fraction(1, 10**digits)
    population = FinitePopulation([[1 - e, e], [1 - 3 * e, 3 * e]])
    p = [1 - e, 1 - 3 * e]
    pairs = (p[0] + p[1]) * 4 * e
    exact = (p[0] * e / 2 + p[1] * 3 * e / 2 + p[1] * e) / pairs
    assert population.risk([0, 1]) == float(exact)
    assert population.risk([0, 1], ties=0.0) == float(p[1] * e / pairs)
    assert population.bayes_risk() == float(exact)


def test_atoms_that_are_nearly_certain_are_told_apart():
    population = FinitePopulation([[1e-17, 1.0], [1e-20, 1.0]])
    assert population.bayes_scores().tolist() == [0.0, 1.0]
    # Both draws are of one atom half of the time.
    assert population.bayes_risk() == pytest.approx((0.5 * 1e-17 + 0.5 * 1e-20 + 1e-20) / 2.002e-17)
    mirrored = FinitePopulation([[1.0, 1e-17], [1.0, 1e-20]])
    assert mirrored.bayes_scores().tolist() == [1.0, 0.0]


def test_exact_costs_are_used_as_given():
    third = Fraction(1, 3)
    population = FinitePopulation([[third, third, third], [0, 0, 1]])
    c = np.array([[0, third, 1], [0, 0, 2 * third], [0, 0, 0]], dtype=object)
    upper = sum(c[j, i] for j in range(3) for i in range(j + 1, 3)) * third**2 / 2
    pairs = Fraction(1, 6) ** 2 + 2 * Fraction(1, 6) * Fraction(2, 3)
    expected = upper / 4 / pairs
    assert population.risk([0, 1], c) == float(expected)


def test_an_ordering_cannot_be_changed_by_mistake():
    ordering = FinitePopulation([[0.2, 0.8], [0.6, 0.4]]).bayes_ordering()
    with pytest.raises(ValueError, match="read-only"):
        ordering.scores[0] = 5.0


def test_the_bound_of_a_circle_counts_every_pair_once():
    dice = np.array([[0, 3, 0, 1], [2, 0, 0, 2], [1, 0, 3, 0]]) * Fraction(1, 4)
    population = FinitePopulation(dice)
    ordering = population.bayes_ordering()
    W = population.pair_weights()
    pairs = sum(min(W[u, v], W[v, u]) for u in range(3) for v in range(u + 1, 3))
    assert ordering.bound == pytest.approx(pairs + np.trace(W) / 2, rel=1e-12)
    assert ordering.bound < ordering.risk
    acyclic = FinitePopulation([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]).bayes_ordering()
    assert acyclic.bound == pytest.approx(acyclic.risk, rel=1e-12)


def test_penalties_that_differ_by_rounding_alone_are_ties():
    # Two atoms alike up to the last bits; a difference of 1e-9 is a preference.
    p = np.array([0.1, 0.2, 0.3, 0.4])
    twin = p * (1 + np.array([1, -1, 1, -1]) * 1e-16)
    assert FinitePopulation([p, twin]).bayes_ordering().scores.tolist() == [0.0, 0.0]
    other = p + 1e-9 * np.array([-1, 0, 0, 1])
    assert FinitePopulation([p, other]).bayes_ordering().scores.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
def test_one_posterior_is_one_level_whatever_the_rounding(seed):
    rng = np.random.default_rng(seed)
    posterior = np.tile(rng.dirichlet(np.ones(4)), (3, 1))
    population = FinitePopulation(posterior, rng.dirichlet(np.ones(3)))
    weights = population.pair_weights()
    assert (weights != weights.T).any()  # penalties that are equal but for their last bits
    assert population.bayes_ordering().scores.tolist() == [0.0, 0.0, 0.0]
