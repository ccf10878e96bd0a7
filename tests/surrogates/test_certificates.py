"""Certificates: strong duality holds, and wrong answers are found out."""

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from rankbook.exceptions import CertificateError, SolverError
from rankbook.losses import Exponential, Hinge, Logistic, SquaredHinge
from rankbook.surrogates import _solve, consistency_gap, minimize_edgewise, verify
from rankbook.surrogates._flows import dual_bound, hinge_flow, is_circulation, repaired_circulation
from rankbook.surrogates._problem import EdgeProblem, rational

A = np.array([[0, 1, 5, 1], [0, 0, 2, 0], [2, 0, 0, 3], [1, 2, 0, 0]])
ALL = ["exponential", "logistic", "squared_hinge", "squared", "hinge"]


def problem_of(a, loss):
    return EdgeProblem.from_matrix(np.asarray(a), np.zeros(np.shape(a), dtype=int), loss)


@pytest.mark.parametrize("loss", ALL)
def test_bound_meets_value(loss):
    result = minimize_edgewise(A, loss)
    certificate = result.certificate
    assert is_circulation(result.problem, list(certificate.flow))
    assert certificate.exact == (loss == "hinge")
    assert abs(certificate.gap) <= (0 if loss == "hinge" else 1e-12 * result.value)
    assert certificate.stationarity <= 1e-14


@pytest.mark.parametrize("loss", [Exponential(), Logistic(), SquaredHinge(), Hinge()])
def test_every_circulation_bounds_every_value(loss):
    rng = np.random.default_rng(0)
    problem = problem_of(A, loss)
    ends = list(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    for _ in range(50):
        flow = [Fraction(0)] * len(problem.weight)
        for cycle in ([0, 2], [0, 3], [0, 1, 2], [2, 3, 1], [0, 2, 3], [0, 1, 2, 3]):
            amount = Fraction(int(rng.integers(0, 5)), 20)
            for edge in zip(cycle, cycle[1:] + cycle[:1], strict=True):
                if edge in ends:
                    flow[ends.index(edge)] += amount
        if not is_circulation(problem, flow):
            continue
        assert float(dual_bound(problem, flow)) <= problem.value(rng.normal(size=4)) + 1e-12


@pytest.mark.parametrize("loss", ALL)
def test_wrong_solver_answer_is_detected(loss, monkeypatch):
    monkeypatch.setattr(_solve, "cvxpy_scores", lambda problem: np.arange(problem.n) * 1.0)
    with pytest.raises(CertificateError):
        minimize_edgewise(A, loss)


@pytest.mark.parametrize("loss", ALL)
def test_slightly_wrong_solver_answer_is_detected(loss, monkeypatch):
    right = _solve.cvxpy_scores

    def nearly(problem):
        scores = right(problem)
        scores[0] -= 0.05
        return scores

    monkeypatch.setattr(_solve, "cvxpy_scores", nearly)
    with pytest.raises(CertificateError):
        minimize_edgewise(A, loss)


def test_failing_solver_is_named(monkeypatch):
    import cvxpy as cp

    def fail(self, *args, **kwargs):
        raise cp.error.SolverError("out of patience")

    monkeypatch.setattr(cp.Problem, "solve", fail)
    with pytest.raises(SolverError, match=r"CLARABEL failed on Logistic\(\): out of patience"):
        minimize_edgewise(A, "logistic")
    monkeypatch.setattr(cp.Problem, "solve", lambda self, *args, **kwargs: None)
    with pytest.raises(SolverError, match="HIGHS found no answer"):
        minimize_edgewise(A, "hinge")


def test_missing_cvxpy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match="cvxpy, which is not installed: pip install cvxpy"):
        minimize_edgewise(A, "logistic")


def test_hinge_flow_refuses_scores_that_are_not_optimal():
    problem = problem_of(A, Hinge())
    with pytest.raises(CertificateError, match="no dual solution"):
        hinge_flow(problem, [Fraction(0)] * 4)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, Fraction(1, 10)),
        (1 / 3, Fraction(1, 3)),
        (np.int64(7), Fraction(7)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.pi, Fraction(np.pi)),
    ],
)
def test_floats_are_read_as_the_fractions_they_mean(value, expected):
    assert rational(value) == expected


@pytest.mark.parametrize("ratio", [1e-8, 1e8])
@pytest.mark.parametrize("loss", ALL)
def test_extreme_weights_are_certified(loss, ratio):
    result = minimize_edgewise([[0, ratio, 1], [1, 0, 1], [1, 1, 0]], loss)
    verify(result)


def test_twenty_nodes_are_certified():
    a = np.random.default_rng(5).random((20, 20))
    np.fill_diagonal(a, 0)
    for loss in ALL:
        verify(minimize_edgewise(a, loss))


# Tiny and huge weights, false certificates


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("scale", [3e-15, 1e-15, 1e-200, 1e150])
def test_the_unit_of_the_weights_does_not_matter(loss, scale):
    a = np.array([[0, 3, 0], [0, 0, 4], [2, 0, 0]])
    plain, scaled = minimize_edgewise(a, loss), minimize_edgewise(a * scale, loss)
    assert scaled.value == pytest.approx(plain.value * scale, rel=1e-9)
    np.testing.assert_allclose(scaled.scores, plain.scores, atol=1e-7)
    assert scaled.unique == plain.unique
    verify(scaled)


def test_a_risk_beyond_the_floats_is_refused():
    a = np.array([[0, 1.0], [1.0, 0]]) * 1e308
    for loss in ("hinge", "logistic"):
        assert np.isfinite(minimize_edgewise(a / 4, loss).value)
    with pytest.raises(ValueError, match="a holds weights so large"):
        minimize_edgewise(a, "hinge")
    # The infimum 2 sqrt(w w') and the value w + w' of a tie are finite, or they are not.
    gap = consistency_gap(a * np.array([[0, 1.0], [0.5, 0]]), "exponential")
    assert gap == pytest.approx((1.5 - np.sqrt(2)) * 1e308, rel=1e-8)
    with pytest.raises(ValueError, match="a holds weights so large"):
        consistency_gap(a * np.array([[0, 1.0], [0.9, 0]]), "exponential")


def test_scores_that_are_off_by_more_than_the_tolerance_are_not_certified():
    problem = problem_of(A, Logistic())
    best = _solve.polish(problem, np.zeros(4))
    _solve.certify(problem, best)
    with pytest.raises(CertificateError, match="do not minimise the logistic risk"):
        _solve.certify(problem, best + np.array([1e-3, 0.0, 0.0, 0.0]))


def test_a_negative_flow_is_no_circulation():
    assert not is_circulation(problem_of([[0, 1], [1, 0]], Hinge()), [Fraction(-1)] * 2)


def test_flows_are_repaired_inside_strong_components_alone():
    one_way = problem_of([[0, 1], [0, 0]], Hinge())
    with pytest.raises(CertificateError, match="a component is not strong"):
        repaired_circulation(one_way, np.array([1.0]))
    both_ways = problem_of([[0, 1], [1, 0]], Hinge())
    flow = repaired_circulation(both_ways, np.array([1.0, 0.5]))
    assert flow == [Fraction(1), Fraction(1)]


def test_a_kept_order_is_not_to_be_broken():
    problem = replace(problem_of(A, Hinge()), kept=(0, 3))
    u, v = problem.arcs[-1]
    scores = [Fraction(0)] * 4
    scores[v] = Fraction(1)
    with pytest.raises(CertificateError, match=f"node {v} above node {u}, which is kept above"):
        hinge_flow(problem, scores)
