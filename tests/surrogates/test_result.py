"""What `verify` finds out about a result from its data alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from rankbook.exceptions import CertificateError
from rankbook.surrogates import minimize_edgewise, verify

A = np.array([[0, 1, 5, 1], [0, 0, 2, 0], [2, 0, 0, 3], [1, 2, 0, 0]])
ALL = ["exponential", "logistic", "squared_hinge", "squared", "hinge"]


def cycle_certificate(loss, amount):
    """Return a result whose certificate sends an amount around the cycle 0, 2."""
    result = minimize_edgewise(A, loss)
    flow = list(result.certificate.flow)
    for edge in ((0, 2), (2, 0)):
        flow[result.problem.arcs.index(edge)] += amount
    return replace(result, certificate=replace(result.certificate, flow=tuple(flow)))


@pytest.mark.parametrize("loss", ALL)
def test_verify_rejects_other_scores_flows_and_values(loss):
    result = minimize_edgewise(A, loss)
    verify(result)
    other = result.scores + np.array([0.3, 0.0, 0.0, -0.3])
    with pytest.raises(CertificateError, match="scores"):
        verify(replace(result, scores=other))
    with pytest.raises(CertificateError, match="the value is"):
        verify(replace(result, value=result.value * 1.001))
    zero = replace(result.certificate, flow=(Fraction(0),) * len(result.certificate.flow))
    with pytest.raises(CertificateError, match="dual bound"):
        verify(replace(result, certificate=zero))
    broken = list(result.certificate.flow)
    broken[0] += Fraction(1, 1000)
    with pytest.raises(CertificateError, match="not a circulation"):
        verify(replace(result, certificate=replace(zero, flow=tuple(broken))))


def test_verify_checks_exact_hinge_scores_too():
    result = minimize_edgewise(A, "hinge")
    moved = (result.exact_scores[0] + 1, *result.exact_scores[1:])
    scores = np.array([float(s) for s in moved])
    with pytest.raises(CertificateError, match="dual bound"):
        verify(replace(result, exact_scores=moved, scores=scores))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_negative_flow_is_no_proof(loss):
    with pytest.raises(CertificateError, match="not a circulation"):
        verify(cycle_certificate(loss, Fraction(-50)))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_flow_above_its_weight_is_no_proof(loss):
    with pytest.raises(CertificateError, match="dual bound is -inf"):
        verify(cycle_certificate(loss, Fraction(50)))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((None,), "result must be a SurrogateResult, got None"), ((3,), "got 3")],
)
def test_verify_names_what_is_no_result(arguments, match):
    with pytest.raises(TypeError, match=match):
        verify(*arguments)
    with pytest.raises(TypeError, match="tol must be a real number, got 'a'"):
        verify(minimize_edgewise(A, "hinge"), tol="a")


def test_results_cannot_be_changed_by_mistake():
    result = minimize_edgewise(A, "hinge")
    for array in (result.scores, result.order, result.lowest, result.problem.tail):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_hinge_result_without_its_exact_scores_proves_nothing():
    result = minimize_edgewise(A, "hinge")
    with pytest.raises(CertificateError, match="certified by exact scores, got none"):
        verify(replace(result, exact_scores=None))
