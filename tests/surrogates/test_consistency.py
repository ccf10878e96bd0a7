"""Consistency gaps: three-node regions in closed form, half-space minima by SciPy, the paper."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from rankbook import losses
from rankbook.exceptions import CertificateError
from rankbook.graphs import difference_graph, is_dag, is_low_noise
from rankbook.surrogates import (
    consistency,
    consistency_gap,
    constrained_minimum,
    find_counterexample,
    is_edge_consistent,
    minimize_edgewise,
    off_optimal_value,
    verify,
)
from rankbook.surrogates.minimize import solve

ALL = ["exponential", "logistic", "squared_hinge", "hinge"]
# Smallest counterexamples on three low-noise nodes, found by the closed forms below.
SMALLEST = {
    "exponential": [[0, 1, 5], [0, 0, 2], [2, 0, 0]],
    "logistic": [[0, 1, 6], [0, 0, 2], [3, 0, 0]],
    "squared_hinge": [[0, 1, 6], [0, 0, 2], [3, 0, 0]],
    "hinge": [[0, 1, 3], [0, 0, 1], [1, 0, 0]],
}
# Four low-noise nodes on which every minimiser of the hinge risk has node 1 above node 0.
STRICT_HINGE = np.array([[0, 1, 3, 13], [0, 0, 2, 7], [0, 0, 0, 5], [5, 0, 0, 0]])


def fails_in_closed_form(a, loss):
    """Say whether a pair i -> j of three nodes is lost, from the optimum with i and j tied.

    With A the weight from {i, j} to k, B that back, the tie pulls i down iff
    a_ij - a_ji <= (a_ki a_jk - a_ik a_kj) / M, M the geometric mean of A and B (exponential) or
    their arithmetic mean (logistic, squared hinge).
    """
    for i, j in permutations(range(3), 2):
        k, net = 3 - i - j, a[i][j] - a[j][i]
        up, down = a[i][k] + a[j][k], a[k][i] + a[k][j]
        cross = a[k][i] * a[j][k] - a[i][k] * a[k][j]
        if net <= 0:
            continue
        if loss == "hinge":
            above = min(a[k][i], a[j][k] - a[k][j])
            below = min(a[k][i] - a[i][k], a[j][k])
            lost = net <= (above if up >= down else below)
        elif loss == "exponential":
            lost = cross > 0 and net**2 * up * down <= cross**2
        else:
            lost = cross > 0 and net * (up + down) <= 2 * cross
        if lost:
            return True
    return False


def random_dag_weights(rng, top=7):
    while True:
        a = rng.integers(0, top, (3, 3)) * (rng.random((3, 3)) < 0.8)
        np.fill_diagonal(a, 0)
        if is_dag(difference_graph(a)) and (a != a.T).any():
            return a


@pytest.mark.parametrize("loss", ALL)
def test_three_node_region_in_closed_form(loss):
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(40):
        a = random_dag_weights(rng)
        expected = fails_in_closed_form(a.tolist(), loss)
        assert is_edge_consistent(a, loss) == (not expected), a.tolist()
        answers.append(expected)
    assert 2 <= sum(answers) <= 38


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
def test_gap_agrees_with_constrained_scipy(loss):
    rng = np.random.default_rng(1)
    for _ in range(4):
        a = rng.integers(1, 9, (3, 3))
        np.fill_diagonal(a, 0)
        if not is_dag(difference_graph(a)):
            continue

        def risk(s, a=a):
            return float((a * losses.get(loss)(s[:, None] - s[None, :])).sum())

        off = min(
            minimize(
                risk,
                np.zeros(3),
                method="SLSQP",
                constraints={"type": "ineq", "fun": lambda s, i=i, j=j: s[j] - s[i]},
                options={"ftol": 1e-13},
            ).fun
            for i, j in np.argwhere(a > a.T)
        )
        best = minimize(risk, np.zeros(3), options={"gtol": 1e-9}).fun
        assert consistency_gap(a, loss) == pytest.approx(max(off - best, 0), abs=2e-6)
        assert off_optimal_value(a, loss).value == pytest.approx(off, rel=1e-6)


def test_hinge_gap_agrees_with_a_grid():
    # Minimisers on the plane and on its half-spaces have integer scores.
    rng = np.random.default_rng(2)
    grid = np.array(list(product(range(-3, 4), repeat=2)))
    grid = np.column_stack([np.zeros(len(grid)), grid])
    for _ in range(20):
        a = random_dag_weights(rng)
        risk = (a * np.maximum(1 - (grid[:, :, None] - grid[:, None, :]), 0)).sum(axis=(1, 2))
        off = np.zeros(len(grid), dtype=bool)
        for i, j in np.argwhere(a > a.T):
            off |= grid[:, i] <= grid[:, j]
        assert consistency_gap(a, "hinge") == risk[off].min() - risk.min()


@pytest.mark.parametrize("loss", ALL)
def test_two_nodes_are_always_consistent(loss):
    assert is_edge_consistent([[0, 2], [1, 0]], loss)
    assert is_edge_consistent([[0, 1], [2, 0]], loss)
    assert is_edge_consistent([[0, 1], [0, 0]], loss)
    assert consistency_gap([[0, 1], [1, 0]], loss) == np.inf


@pytest.mark.parametrize("loss", ALL)
def test_theorem_12_instance_is_low_noise_and_inconsistent(loss):
    a = np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]) * Fraction(1, 100)
    assert is_low_noise(a)
    for margin in (None, 1, Fraction(1, 3)):
        weights = (np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]) * Fraction(1, 100)).tolist()
        assert not is_edge_consistent(a, loss, margin, surrogate_weights=weights)


@pytest.mark.parametrize("loss", ALL)
def test_lemma_10_conditions_are_sufficient_for_every_loss(loss):
    rng = np.random.default_rng(3)
    found = 0
    while found < 5:
        a12, a13, a23, a31 = (int(w) for w in rng.integers(1, 30, 4))
        if not (a13 > a31 and a23 * (a13 + a12) < a31 * a12):
            continue
        found += 1
        a = [[0, a12, a13], [0, 0, a23], [a31, 0, 0]]
        assert not is_edge_consistent(a, loss)


@pytest.mark.parametrize("loss", ALL)
def test_gap_scales_and_is_invariant_to_relabelling(loss):
    a = np.array([[0, 5, 9], [1, 0, 5], [1, 1, 0]])
    gap = consistency_gap(a, loss)
    order = [2, 0, 1]
    assert gap > 0
    assert consistency_gap(10 * a, loss) == pytest.approx(10 * gap, rel=1e-8)
    assert consistency_gap(a[np.ix_(order, order)], loss) == pytest.approx(gap, rel=1e-8)


def test_surrogate_weights_replace_the_penalties():
    a = np.array(SMALLEST["logistic"])
    assert not is_edge_consistent(a, "logistic")
    assert is_edge_consistent(a, "logistic", surrogate_weights=difference_graph(a))
    with pytest.raises(ValueError, match=r"surrogate_weights must have shape \(3, 3\)"):
        consistency_gap(a, "logistic", surrogate_weights=[[0, 1], [0, 0]])


def test_unattained_infimum_in_and_off_the_optimal_set():
    # 0 -> 1 drifts apart, inside A(p): losing it costs the whole of its weight.
    assert consistency_gap([[0, 2], [0, 0]], "exponential") == pytest.approx(2.0)
    # With weights that do not compare 0 and 1 at all, nothing keeps the scores in A(p).
    free = [[0, 0], [0, 0]]
    assert consistency_gap([[0, 2], [0, 0]], "exponential", surrogate_weights=free) == 0.0


def test_cycles_with_one_best_order_are_handled_and_others_refused():
    assert consistency_gap([[0, 3, 0], [0, 0, 4], [2, 0, 0]], "exponential") >= 0.0
    with pytest.raises(ValueError, match="not those of a partial order"):
        consistency_gap([[0, 1, 0], [0, 0, 1], [1, 0, 0]], "exponential")
    ring = np.zeros((9, 9))
    ring[np.arange(9), (np.arange(9) + 1) % 9] = 1
    with pytest.raises(ValueError, match="acyclic difference graph beyond 8 nodes"):
        consistency_gap(ring, "hinge")


def test_a_best_order_of_a_cycle_may_be_missed():
    # Unique best order 0, 1, 2; the exponential loss averages around the cycle.
    gap = consistency_gap([[0, 9, 0], [0, 0, 5], [4, 0, 0]], "exponential")
    result = minimize_edgewise([[0, 9, 0], [0, 0, 5], [4, 0, 0]], "exponential")
    assert (gap > 0) == (result.order.tolist() == [0, 1, 2])


@pytest.mark.parametrize("loss", ALL)
def test_smallest_counterexamples(loss):
    found = find_counterexample(loss)
    assert found.tolist() == SMALLEST[loss]
    assert is_low_noise(found)
    assert consistency_gap(found, loss) == 0.0


@pytest.mark.parametrize("loss", ALL)
def test_no_smaller_counterexample_exists(loss):
    total = int(np.sum(SMALLEST[loss]))
    slots = [(i, j) for i in range(3) for j in range(3) if i != j]

    def compositions(left, parts):
        if parts == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in compositions(left - first, parts - 1):
                yield (first, *rest)

    for size in range(1, total):
        for weights in compositions(size, 6):
            a = [[0] * 3 for _ in range(3)]
            for (i, j), w in zip(slots, weights, strict=True):
                a[i][j] = w
            if fails_in_closed_form(a, loss):
                assert not is_low_noise(a), (size, a)


def test_without_low_noise_failures_are_smaller():
    assert find_counterexample("hinge", low_noise=False).sum() == 4
    assert find_counterexample("exponential", low_noise=False).sum() == 5
    assert find_counterexample("exponential", max_total=9) is None


def test_hinge_never_inverts_three_nodes_but_inverts_four():
    assert find_counterexample("hinge", strict=True, max_total=9) is None
    assert is_low_noise(STRICT_HINGE)
    result = minimize_edgewise(STRICT_HINGE, "hinge")
    assert result.unique
    assert result.exact_scores == (0, 1, 0, -1)
    assert result.difference_range(0, 1) == (-1, -1)
    assert result.certificate.gap == 0


def test_bad_input():
    with pytest.raises(ValueError, match="nodes must be at least 2"):
        find_counterexample("hinge", nodes=1)
    with pytest.raises(TypeError, match="max_total must be an integer"):
        find_counterexample("hinge", max_total=4.5)
    with pytest.raises(ValueError, match="loss must be one of"):
        find_counterexample("zero-one")
    with pytest.raises(ValueError, match="a must not be negative"):
        consistency_gap([[0, -1], [0, 0]], "hinge")
    with pytest.raises(ValueError, match="tol must be at least 0"):
        is_edge_consistent([[0, 1], [0, 0]], "hinge", tol=-1.0)


# The constrained problem, solved and proved by itself


@pytest.mark.parametrize("loss", ALL)
def test_the_constrained_minimum_agrees_with_cvxpy(loss):
    import cvxpy as cp

    rng = np.random.default_rng(11)
    for m in (3, 4):
        a = rng.integers(0, 6, (m, m))
        a[np.arange(m), (np.arange(m) + 1) % m] += 1
        np.fill_diagonal(a, 0)
        for i, j in ((0, 1), (1, 0), (2, 1)):
            s = cp.Variable(m)
            tail, head = np.nonzero(a)
            objective = a[tail, head] @ losses.get(loss).expression(s[tail] - s[head])
            cp.Problem(cp.Minimize(objective), [s[i] <= s[j], s[0] == 0]).solve(solver=cp.CLARABEL)
            result = constrained_minimum(a, loss, (i, j))
            assert result.value == pytest.approx(objective.value, rel=1e-6)
            assert result.scores[i] <= result.scores[j] + 1e-12
            assert abs(result.certificate.gap) <= 1e-12 * result.value
            assert result.certificate.stationarity <= 1e-13
            verify(result)


@pytest.mark.parametrize("loss", ALL)
def test_the_value_off_the_optimal_set_is_solved_for_even_where_the_minimiser_lies_there(
    loss, monkeypatch
):
    solved = []
    monkeypatch.setattr(
        consistency, "solve", lambda problem, name: solved.append(problem.kept) or solve(problem)
    )
    off = off_optimal_value(SMALLEST[loss], loss)
    assert solved == [(1, 0), (2, 0), (2, 1)]
    assert off.value == pytest.approx(minimize_edgewise(SMALLEST[loss], loss).value, rel=1e-12)


@pytest.mark.parametrize("loss", ALL)
def test_a_constraint_that_no_path_opposes_costs_nothing(loss):
    # 0 <-> 1 and 2 <-> 3 are joined by 1 -> 2 alone: 0 below 1, 2 above 3 and 3 below 0 bind not.
    a = np.zeros((4, 4), dtype=int)
    a[0, 1], a[1, 0], a[2, 3], a[3, 2], a[1, 2] = 3, 1, 2, 1, 5
    free = minimize_edgewise(a, loss)
    result = constrained_minimum(a, loss, (3, 0))
    assert result.value == pytest.approx(free.value, rel=1e-12)
    assert result.attained == free.attained
    verify(result)
    bound = constrained_minimum(a, loss, (1, 2))
    assert bound.value > free.value + 0.1
    assert bound.attained
    assert bound.difference_range(1, 2) == pytest.approx((0, 0))
    verify(bound)


@pytest.mark.parametrize("loss", ALL)
def test_verify_rejects_scores_that_break_the_kept_order(loss):
    a = [[0, 1, 0], [1, 0, 4], [0, 2, 0]]
    free, kept = minimize_edgewise(a, loss), constrained_minimum(a, loss, (1, 2))
    with pytest.raises(CertificateError, match="put node 1 above node 2"):
        verify(replace(free, problem=kept.problem, certificate=kept.certificate))
    flow = list(kept.certificate.flow)
    broken = replace(kept.certificate, flow=(*flow[:-1], flow[-1] - 1))
    with pytest.raises(CertificateError, match="not a circulation"):
        verify(replace(kept, certificate=broken))


def test_the_pair_of_a_constraint_is_checked():
    a = [[0, 2], [1, 0]]
    for pair in (None, (0, 1, 2), "ab", (0.5, 1)):
        with pytest.raises(TypeError, match="pair must be two nodes"):
            constrained_minimum(a, "hinge", pair)
    with pytest.raises(ValueError, match="pair must be at least 0 and at most 1, got 2"):
        constrained_minimum(a, "hinge", (0, 2))
    with pytest.raises(ValueError, match="two different nodes"):
        constrained_minimum(a, "hinge", (1, 1))


def test_tolerance_is_relative_to_the_weights_of_the_surrogate():
    a = np.array([[0, 3], [1, 0]])
    gap = consistency_gap(a, "exponential")
    assert is_edge_consistent(a, "exponential", tol=0.99 * gap / 4)
    assert not is_edge_consistent(a, "exponential", tol=1.01 * gap / 4)
    # With surrogate weights of ten times the size, the gap and what it is compared with grow alike.
    for factor, expected in ((0.99, True), (1.01, False)):
        tol = factor * gap / 4
        assert is_edge_consistent(a, "exponential", None, 10 * a, tol=tol) == expected
