"""Preference graphs: closed forms, brute force over all orders, invariances, bad input."""

import tracemalloc
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from rankbook import _linear_order, graphs
from rankbook._certified_order import integer_weights, proved_order
from rankbook._linear_order import order_penalty
from rankbook.exceptions import UncertifiedOrderWarning
from rankbook.graphs import PreferenceGraph

# The four single-edge graphs of Theorem 12 (nodes 0, 1, 2), with its probabilities as fractions.
THEOREM_12 = [{(0, 1): 1}, {(1, 2): 1}, {(0, 2): 1}, {(2, 0): 1}]
PROBABILITIES = [Fraction(25, 100), Fraction(1, 100), Fraction(50, 100), Fraction(24, 100)]


def brute_force_loss(a):
    m = len(a)
    return min(
        sum(a[i][j] for k, j in enumerate(order) for i in order[k + 1 :])
        for order in permutations(range(m))
    )


def loop_edge_loss(scores, a, ties):
    total = 0
    for i, j in product(range(len(a)), repeat=2):
        tied = scores[i] == scores[j] and i != j
        if scores[i] < scores[j] or (tied and (ties == "both" or i < j)):
            total += a[i][j]
    return total


def random_weights(rng, m, integer=True):
    a = rng.integers(0, 6, (m, m)) if integer else rng.random((m, m))
    np.fill_diagonal(a, 0)
    return a


# PreferenceGraph


def test_graph_keeps_weights_exact_and_read_only():
    graph = PreferenceGraph.from_edges(3, {(0, 1): Fraction(1, 3), (1, 2): 2})
    assert graph.edges == [(0, 1, Fraction(1, 3)), (1, 2, 2)]
    assert graph.n_nodes == 3
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0, 2] = 1
    again = PreferenceGraph(graph.weights)
    assert again == graph
    assert hash(again) == hash(graph)
    assert eval(repr(PreferenceGraph([[0, 1], [0, 0]]))).edges == [(0, 1, 1)]


def test_graph_loss_is_edge_loss():
    graph = PreferenceGraph([[0, 2, 0], [0, 0, 1], [0, 0, 0]])
    assert graph.loss([3.0, 2.0, 1.0]) == 0
    assert graph.loss([1.0, 2.0, 3.0]) == 3
    assert graph.loss([1.0, 1.0, 1.0], ties="both") == 3


@pytest.mark.parametrize("make", [PreferenceGraph, graphs.optimal_order, graphs.is_low_noise])
@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        ([[0, -1], [0, 0]], ValueError, "must not be negative, got -1"),
        ([[1, 0], [0, 0]], ValueError, r"self-loops, got \w+\[0, 0\]"),
        ([[0, 1, 2], [0, 0, 1]], ValueError, r"square matrix, got shape \(2, 3\)"),
        ([[0, 1], [0]], ValueError, "unequal length"),
        ([0, 1], ValueError, r"square matrix, got shape \(2,\)"),
        ([[0, np.nan], [0, 0]], ValueError, r"finite, got nan at index \(0, 1\)"),
        ([["a", "b"], ["c", "d"]], TypeError, "real numbers"),
        (np.zeros((0, 0)), ValueError, "square"),
    ],
)
def test_bad_weights_are_named(make, bad, error, match):
    with pytest.raises(error, match=match):
        make(bad)


def test_cycle_is_not_a_preference_graph_and_is_named():
    with pytest.raises(ValueError, match=r"acyclic graph, got a cycle through nodes \[2, 3, 1\]"):
        PreferenceGraph([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
    with pytest.raises(ValueError, match="cycle"):
        PreferenceGraph([[0, 1], [1, 0]])


def test_from_edges_checks_nodes():
    with pytest.raises(ValueError, match=r"nodes 0\.\.1, got \(0, 2\)"):
        PreferenceGraph.from_edges(2, {(0, 2): 1})
    with pytest.raises(ValueError, match="n_nodes must be at least 1"):
        PreferenceGraph.from_edges(0, {})


# expected_weights, difference_graph


def test_expected_weights_of_theorem_12_are_exact():
    a = graphs.expected_weights(
        [PreferenceGraph.from_edges(3, e) for e in THEOREM_12], PROBABILITIES
    )
    assert a[0, 1] == Fraction(1, 4)
    assert a[1, 2] == Fraction(1, 100)
    assert a[0, 2] - a[2, 0] == a[0, 1] + a[1, 2]
    assert graphs.difference_graph(a)[0, 2] == Fraction(26, 100)
    assert graphs.difference_graph(a)[2, 0] == 0


def test_expected_weights_match_a_float_average():
    rng = np.random.default_rng(0)
    stack = [np.triu(random_weights(rng, 4, integer=False), 1) for _ in range(5)]
    p = rng.dirichlet(np.ones(5))
    np.testing.assert_allclose(
        graphs.expected_weights(stack, p), np.average(stack, axis=0, weights=p), rtol=1e-14
    )


@pytest.mark.parametrize(
    ("probabilities", "match"),
    [
        ([0.5, 0.4], "probabilities must sum to one, got a sum of 0.9"),
        ([Fraction(1, 2), Fraction(1, 3)], "probabilities must sum to one, got a sum of 0.833333"),
        ([Fraction(1, 2), Fraction(1, 2) - Fraction(1, 10**9)], "got a sum of 9{9}/"),
        ([1.5, -0.5], "probabilities must not be negative"),
        ([1.0], "probabilities must have length 2, got 1"),
    ],
)
def test_expected_weights_checks_probabilities(probabilities, match):
    up = [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match=match):
        graphs.expected_weights([up, up], probabilities)


def test_expected_weights_checks_graphs():
    with pytest.raises(ValueError, match="graphs must not be empty"):
        graphs.expected_weights([], [])
    with pytest.raises(ValueError, match="same length"):
        graphs.expected_weights([[[0, 1], [0, 0]], [[0]]], [0.5, 0.5])
    with pytest.raises(ValueError, match="cycle"):
        graphs.expected_weights([[[0, 1], [1, 0]]], [1.0])


def test_difference_graph_keeps_net_weights():
    rng = np.random.default_rng(1)
    a = random_weights(rng, 6, integer=False)
    d = graphs.difference_graph(a)
    np.testing.assert_allclose(d - d.T, a - a.T, rtol=1e-14)
    assert not ((d > 0) & (d.T > 0)).any()
    np.testing.assert_array_equal(graphs.difference_graph(d), d)


# is_dag, is_low_noise


def test_is_dag_agrees_with_matrix_powers():
    rng = np.random.default_rng(2)
    answers = set()
    for _ in range(200):
        m = rng.integers(1, 6)
        a = (rng.random((m, m)) < 0.3) & ~np.eye(m, dtype=bool)
        cyclic = any(
            np.trace(np.linalg.matrix_power(a.astype(int), k)) > 0 for k in range(1, m + 1)
        )
        assert graphs.is_dag(a) == (not cyclic)
        answers.add(cyclic)
    assert answers == {True, False}


def loop_low_noise(a):
    m = len(a)
    net = [[a[i][j] - a[j][i] for j in range(m)] for i in range(m)]
    return all(
        net[i][k] >= net[i][j] + net[j][k]
        for i, j, k in permutations(range(m), 3)
        if net[i][j] > 0 and net[j][k] > 0
    )


def test_low_noise_agrees_with_the_definition_and_implies_a_dag():
    rng = np.random.default_rng(3)
    answers = []
    for _ in range(500):
        a = random_weights(rng, int(rng.integers(2, 5)))
        answer = graphs.is_low_noise(a)
        assert answer == loop_low_noise(a.tolist())
        assert not answer or graphs.is_dag(graphs.difference_graph(a))
        answers.append(answer)
    assert any(answers)
    assert not all(answers)


def test_low_noise_equality_of_theorem_12_exact_and_float():
    exact = np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]])
    assert graphs.is_low_noise(exact)
    assert graphs.is_low_noise(exact / 100)
    assert graphs.is_low_noise(exact * Fraction(1, 100))
    tighter = exact * Fraction(10**12)
    tighter[2, 0] += 1
    assert not graphs.is_low_noise(tighter)
    # One part in 10^13 is beyond a float's tolerance, and within an integer's.
    assert graphs.is_low_noise(tighter.astype(float))


def test_low_noise_is_invariant_to_relabelling_and_scale():
    rng = np.random.default_rng(4)
    for _ in range(100):
        a = random_weights(rng, 4)
        order = rng.permutation(4)
        assert graphs.is_low_noise(a) == graphs.is_low_noise(a[np.ix_(order, order)])
        assert graphs.is_low_noise(a) == graphs.is_low_noise(a * 1e-8)


def test_differences_of_true_scores_are_low_noise():
    y = np.random.default_rng(5).normal(size=7)
    assert graphs.is_low_noise(np.maximum(y[:, None] - y[None, :], 0))


# edge_loss


@pytest.mark.parametrize("ties", ["index", "both"])
def test_edge_loss_agrees_with_a_double_loop(ties):
    rng = np.random.default_rng(6)
    for _ in range(200):
        m = int(rng.integers(1, 7))
        a = random_weights(rng, m)
        scores = rng.integers(0, 4, m).astype(float)
        assert graphs.edge_loss(scores, a, ties=ties) == loop_edge_loss(scores, a.tolist(), ties)


def test_edge_loss_extremes():
    y = np.array([3.0, 2.0, 1.0])
    a = np.maximum(y[:, None] - y[None, :], 0)
    assert graphs.edge_loss(y, a) == 0.0
    assert graphs.edge_loss(-y, a) == a.sum()
    assert graphs.edge_loss(np.zeros(3), a) == a.sum()
    assert graphs.edge_loss(np.zeros(3), a.T) == 0.0
    assert graphs.edge_loss(np.zeros(3), a.T, ties="both") == a.sum()


def test_edge_loss_is_invariant_to_increasing_transforms_and_reverses():
    rng = np.random.default_rng(7)
    a = random_weights(rng, 6, integer=False)
    s = rng.normal(size=6)
    assert graphs.edge_loss(np.exp(3 * s) + 1, a) == graphs.edge_loss(s, a)
    np.testing.assert_allclose(graphs.edge_loss(s, a) + graphs.edge_loss(-s, a), a.sum())


def test_edge_loss_tells_fractions_apart_that_floats_cannot():
    a = [[0, 1], [0, 0]]
    third = Fraction(1, 3)
    assert graphs.edge_loss([third, third + Fraction(1, 10**40)], a) == 1
    assert graphs.edge_loss([third + Fraction(1, 10**40), third], a) == 0


def test_edge_loss_bad_input():
    a = [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="scores and a must have the same length"):
        graphs.edge_loss([1.0, 2.0, 3.0], a)
    with pytest.raises(ValueError, match="ties must be one of 'index', 'both', got 'half'"):
        graphs.edge_loss([1.0, 2.0], a, ties="half")
    with pytest.raises(ValueError, match="scores must be finite"):
        graphs.edge_loss([1.0, np.inf], a)


# optimal_order, is_optimal


@pytest.mark.parametrize("method", ["auto", "subsets", "milp"])
@pytest.mark.parametrize("integer", [True, False])
def test_optimal_order_attains_the_brute_force_minimum(method, integer):
    rng = np.random.default_rng(8)
    for _ in range(15):
        m = int(rng.integers(1, 8))
        a = random_weights(rng, m, integer)
        order = graphs.optimal_order(a, method)
        assert sorted(order.tolist()) == list(range(m))
        scores = np.empty(m)
        scores[order] = np.arange(m)[::-1]
        best = brute_force_loss(a.tolist())
        assert graphs.edge_loss(scores, a) == pytest.approx(best, rel=1e-12)
        assert graphs.minimum_edge_loss(a, method) == pytest.approx(best, rel=1e-12)
        assert graphs.is_optimal(scores, a)


@pytest.mark.parametrize("m", [9, 13, 16])
def test_subsets_and_milp_agree_beyond_enumeration(m):
    rng = np.random.default_rng(m)
    for _ in range(3):
        a = random_weights(rng, m)
        assert graphs.minimum_edge_loss(a, "subsets") == graphs.minimum_edge_loss(a, "milp")


def test_thirty_nodes_recover_a_planted_order_with_noise():
    rng = np.random.default_rng(9)
    m, truth = 30, np.random.default_rng(10).permutation(30)
    a = np.zeros((m, m), dtype=int)
    position = np.argsort(truth)
    votes = rng.binomial(15, 0.7, (m, m))
    for i, j in product(range(m), repeat=2):
        if position[i] < position[j]:
            a[i, j], a[j, i] = votes[i, j], 15 - votes[i, j]
    order = graphs.optimal_order(a)
    scores = np.empty(m)
    scores[order] = np.arange(m)[::-1]
    planted = -position.astype(float)
    assert graphs.edge_loss(scores, a) <= graphs.edge_loss(planted, a)
    # No adjacent swap, and no move of one node, may improve an optimum.
    for node in range(m):
        for target in range(m):
            moved = [v for v in order if v != node]
            moved.insert(target, node)
            other = np.empty(m)
            other[moved] = np.arange(m)[::-1]
            assert graphs.edge_loss(other, a) >= graphs.edge_loss(scores, a)


def test_thirty_nodes_of_independent_weights():
    a = np.random.default_rng(22).random((30, 30))
    np.fill_diagonal(a, 0)
    best = graphs.minimum_edge_loss(a)
    # Weak duality: disjoint cyclic triangles of the difference graph must each lose an edge.
    bound, net = np.minimum(a, a.T).sum() / 2, graphs.difference_graph(a)
    used = np.zeros_like(net, dtype=bool)
    for i, j, k in permutations(range(30), 3):
        edges = [(i, j), (j, k), (k, i)]
        if all(net[e] > 0 and not used[e] for e in edges):
            bound += min(net[e] for e in edges)
            for e in edges:
                used[e] = True
    assert bound <= best <= a.sum() / 2


def test_order_is_equivariant_and_dags_are_sorted():
    rng = np.random.default_rng(12)
    y = rng.permutation(12).astype(float)
    a = np.maximum(y[:, None] - y[None, :], 0)
    np.testing.assert_array_equal(graphs.optimal_order(a), np.argsort(-y))
    np.testing.assert_array_equal(graphs.optimal_order(a.T), np.argsort(y))


def test_ties_follow_the_paper_in_the_optimal_set():
    # For i < j a tie counts as j above i, so it is optimal just where that order is (Lemma 16).
    assert graphs.is_optimal([1.0, 1.0], [[0, 3], [5, 0]])
    assert not graphs.is_optimal([1.0, 1.0], [[0, 3], [5, 0]], ties="both")
    assert not graphs.is_optimal([1.0, 1.0], [[0, 5], [3, 0]])
    assert graphs.is_optimal([1.0, 1.0], [[0, 4], [4, 0]])


def test_lemma_16_describes_the_optimal_set_of_a_dag():
    rng = np.random.default_rng(13)
    seen = set()
    for _ in range(300):
        a = random_weights(rng, 4)
        if not graphs.is_dag(graphs.difference_graph(a)):
            continue
        s = rng.integers(0, 4, 4).astype(float)
        described = all(
            s[i] > s[j] if i < j else s[i] >= s[j]
            for i, j in permutations(range(4), 2)
            if a[i, j] > a[j, i]
        )
        assert graphs.is_optimal(s, a) == described
        seen.add(described)
    assert seen == {True, False}


def test_optimal_order_bad_input():
    cycle = np.zeros((21, 21))
    cycle[np.arange(21), (np.arange(21) + 1) % 21] = 1
    with pytest.raises(ValueError, match="at most 20 nodes, got 21"):
        graphs.optimal_order(cycle, "subsets")
    assert graphs.minimum_edge_loss(cycle) == 1.0
    with pytest.raises(ValueError, match="method must be one of"):
        graphs.optimal_order(cycle, "greedy")
    with pytest.raises(ValueError, match="time_limit must be greater than 0"):
        graphs.optimal_order(cycle, time_limit=0.0)


def test_time_limit_is_an_error_not_a_wrong_answer():
    a = np.random.default_rng(14).integers(0, 2, (40, 40))
    a = np.triu(a, 1) + np.tril(1 - a.T, -1)
    with pytest.raises(RuntimeError, match="HiGHS did not solve"):
        graphs.optimal_order(a, time_limit=0.05)


def test_huge_integers_stay_exact():
    big = 10**30
    assert graphs.minimum_edge_loss([[0, big + 1], [big, 0]]) == big
    assert not graphs.is_optimal([1.0, 2.0], [[0, big + 1], [big, 0]])


# Large weights, many nodes


def test_an_integer_program_tells_penalties_apart_that_a_float_solver_cannot():
    big = 10**8
    a = [[0, big, big + 2], [big + 1, 0, big], [0, big + 2, 0]]
    assert graphs.minimum_edge_loss(a, method="milp") == 200000001
    halves = np.array(a, dtype=object) * Fraction(1, 2)
    assert graphs.minimum_edge_loss(halves, method="milp") == Fraction(200000001, 2)


@pytest.mark.parametrize("m", [13, 14, 16])
@pytest.mark.parametrize("power", [31, 40])
def test_integer_programs_are_exact_for_large_weights(m, power):
    rng = np.random.default_rng(m + power)
    for spread in (2**power, 1000):
        # Weights that differ by less than a billionth are the hard case.
        a = 2**power - rng.integers(0, spread, (m, m))
        np.fill_diagonal(a, 0)
        assert graphs.minimum_edge_loss(a, "milp") == graphs.minimum_edge_loss(a, "subsets")


def test_an_order_that_is_not_best_is_improved_or_found_unproved():
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2**40, (9, 9))
    np.fill_diagonal(a, 0)
    best = graphs.minimum_edge_loss(a, "subsets")
    for seed in range(5):
        start = np.random.default_rng(seed).permutation(9)
        order, proved = proved_order(integer_weights(a), start)
        assert proved
        assert order_penalty(order, a) == best
    assert not proved_order(integer_weights(a), start, limit=0)[1]


def test_a_proof_waits_for_branches_where_the_first_program_is_fractional():
    rng = np.random.default_rng(8)
    a = rng.integers(0, 2**20, (9, 9))
    np.fill_diagonal(a, 0)
    start = rng.permutation(9)
    order, proved = proved_order(integer_weights(a), start)
    assert proved
    assert order_penalty(order, a) == graphs.minimum_edge_loss(a, "subsets")
    assert not proved_order(integer_weights(a), start, limit=1)[1]


def test_an_order_without_a_proof_is_said(monkeypatch):
    monkeypatch.setattr(_linear_order, "proved_order", lambda a, order: (order, False))
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, (21, 21)) + 10**9 * np.eye(21, k=1, dtype=int)
    a[-1, 0] = 10**9
    np.fill_diagonal(a, 0)
    with pytest.warns(UncertifiedOrderWarning, match="21 nodes was found, but not proved"):
        graphs.optimal_order(a, "milp")
    # Dynamic programming decides where it can; small units are far above HiGHS's tolerance.
    small = a[:9, :9].copy()
    small[8, 0] = 10**9
    assert graphs.minimum_edge_loss(small, "milp") == graphs.minimum_edge_loss(small, "subsets")
    graphs.optimal_order(rng.integers(0, 3, (13, 13)) * (1 - np.eye(13, dtype=int)), "milp")


def test_the_first_best_order_in_the_order_of_the_nodes_is_taken():
    # A cycle of three equal edges has three best orders; so has every relabelling of it.
    for a in ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]]):
        best = [
            order
            for order in permutations(range(3))
            if sum(a[i][j] for k, j in enumerate(order) for i in order[k + 1 :]) == 1
        ]
        assert graphs.optimal_order(a, "subsets").tolist() == list(min(best))
    rng = np.random.default_rng(6)
    for _ in range(20):
        a = rng.integers(0, 2, (5, 5))
        np.fill_diagonal(a, 0)
        losses = {
            order: sum(a[i][j] for k, j in enumerate(order) for i in order[k + 1 :])
            for order in permutations(range(5))
        }
        least = min(losses.values())
        first = min(order for order, loss in losses.items() if loss == least)
        assert _linear_order.by_subsets(a).tolist() == list(first)


def test_sums_of_large_integers_do_not_overflow():
    m, weight = 40, 2**53 - 1
    a = np.full((m, m), weight)
    np.fill_diagonal(a, 0)
    assert graphs.edge_loss(np.zeros(m), a, ties="both") == m * (m - 1) * weight
    ones = np.full((3, 3), 2**53 + 1)
    np.fill_diagonal(ones, 0)
    assert graphs.edge_loss([3, 2, 1], ones) == 3 * (2**53 + 1)


def test_low_noise_of_a_thousand_nodes_takes_memory_of_their_square():
    scores = np.linspace(1.0, 0.0, 1000)
    a = np.maximum(scores[:, None] - scores, 0.0)
    tracemalloc.start()
    assert graphs.is_low_noise(a)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * a.nbytes
    a[0, 999] -= 0.5
    assert not graphs.is_low_noise(a)


@pytest.mark.parametrize("edges", [None, 3, {0: 1}, {("a", "b"): 1}, {(0, 1, 2): 1}])
def test_edges_that_are_no_mapping_of_pairs_are_named(edges):
    with pytest.raises(TypeError, match=r"edges must map pairs \(i, j\) to weights, got"):
        PreferenceGraph.from_edges(3, edges)


def test_graphs_that_are_none_are_named():
    with pytest.raises(ValueError, match=r"weights must be a square matrix, got shape \(\)"):
        PreferenceGraph(None)
    with pytest.raises(TypeError, match="graphs must be a sequence of graphs, got None"):
        graphs.expected_weights(None, [1])
