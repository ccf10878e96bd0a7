"""What a minimiser hands back, and the check that anyone can repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from rankbook._validation import check_scalar
from rankbook.exceptions import CertificateError
from rankbook.surrogates._flows import dual_bound, is_circulation
from rankbook.surrogates._problem import EdgeProblem, Value
from rankbook.surrogates._solve import hinge_value

__all__ = ["Certificate", "SurrogateResult", "verify"]


@dataclass(frozen=True)
class Certificate:
    r"""A proof of optimality by duality.

    Attributes
    ----------
    flow : tuple of Fraction
        A circulation over the edges of the problem, exact in rational arithmetic; a kept order
        adds an edge of its own, the last.
    lower : Fraction or float
        The bound below every value that it gives.
    upper : Fraction or float
        The value at the scores (of the components, where the infimum is not attained).
    stationarity : float
        The largest entry of the gradient, over the total weight; 0 for the exact hinge proof.
    exact : bool
        Whether primal and dual were compared in rational arithmetic (the hinge loss).
    """

    flow: tuple[Fraction, ...] = field(repr=False)
    lower: Value
    upper: Value
    stationarity: float
    exact: bool

    @property
    def gap(self) -> Value:
        """Upper minus lower bound: zero, or what rounding leaves."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class SurrogateResult:
    """The minimiser of a surrogate risk.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Scores of mean zero. If the infimum is not attained, scores whose risk exceeds it by less
        than rounding.
    value : float
        The infimum.
    order : ndarray of int, shape (m,)
        The nodes, best first (ties by index).
    attained : bool
        Whether the infimum is a minimum.
    unique : bool
        Whether the minimiser is unique up to a constant.
    certificate : Certificate
        The proof.
    exact_scores : tuple of Fraction or None
        The scores in rational arithmetic, for the hinge loss.
    lowest : ndarray of shape (m, m)
        ``lowest[i, j]``, the infimum of ``s_i - s_j`` over all minimisers; infinite if not bounded.
        Fractions for the hinge loss.
    problem : EdgeProblem
        The edges, weights, margins and loss, from which `verify` checks the rest.
    """

    scores: np.ndarray
    value: float
    order: np.ndarray
    attained: bool
    unique: bool
    certificate: Certificate
    exact_scores: tuple[Fraction, ...] | None = field(repr=False)
    lowest: np.ndarray = field(repr=False)
    problem: EdgeProblem = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.scores, self.order, self.lowest):
            array.flags.writeable = False

    def difference_range(self, i: int, j: int) -> tuple[Any, Any]:
        """Return the infimum and supremum of ``s_i - s_j`` over all minimisers."""
        return self.lowest[i, j], -self.lowest[j, i]

    def problem_matrix(self) -> np.ndarray:
        """Return the weights of the problem as a float matrix."""
        matrix = np.zeros((self.problem.n, self.problem.n))
        np.add.at(matrix, (self.problem.tail, self.problem.head), self.problem.w)
        return matrix


def _inner_value(problem: EdgeProblem, result: SurrogateResult) -> Value:
    """Return W without the edges between components if those vanish only in the limit."""
    if result.exact_scores is not None:
        return hinge_value(problem, result.exact_scores)
    if result.attained:
        return problem.value(result.scores)
    total = 0.0
    for nodes in problem.components:
        total += problem.restrict(nodes)[0].value(result.scores[nodes])
    return total


def _check_scores(result: SurrogateResult) -> None:
    """Raise unless the scores are those that were certified, and keep the order that they must."""
    spread = 1 + np.abs(result.scores).max()
    if result.problem.loss.is_piecewise_linear:
        if result.exact_scores is None:
            raise CertificateError("the hinge loss is certified by exact scores, got none")
        as_floats = np.array([float(s) for s in result.exact_scores])
        if np.abs(as_floats - result.scores).max() > 1e-9 * spread:
            raise CertificateError("the scores differ from the exact scores that were certified")
    if result.problem.kept is not None:
        above, below = result.problem.kept
        if result.scores[below] - result.scores[above] > 1e-9 * spread:
            raise CertificateError(f"the scores put node {below} above node {above}")


def verify(result: SurrogateResult, tol: float = 1e-8) -> None:
    """Check a result from its data alone: no solver, no trust in what it says of itself.

    Parameters
    ----------
    result : SurrogateResult
        A result of `minimize_edgewise`, `minimize_pairwise` or `constrained_minimum`.
    tol : float, default 1e-8
        Relative tolerance of the gap for smooth losses; the hinge loss is checked exactly (for
        float weights, to 1e-12).

    Raises
    ------
    CertificateError
        If the flow is no circulation, or its bound does not meet the value of the scores.

    Examples
    --------
    >>> from rankbook.surrogates import minimize_edgewise
    >>> verify(minimize_edgewise([[0, 2], [1, 0]], "logistic"))
    """
    if not isinstance(result, SurrogateResult):
        raise TypeError(f"result must be a SurrogateResult, got {result!r}")
    allowed: Value = check_scalar(tol, "tol", low=0.0)
    unit = result.problem.unit()
    problem = result.problem.scaled(unit)
    flow = [f * unit for f in result.certificate.flow]
    if len(flow) != len(problem.arcs) or not is_circulation(problem, flow):
        raise CertificateError("the certificate's flow is not a circulation over the edges")
    _check_scores(result)
    lower, upper = dual_bound(problem, flow), _inner_value(problem, result)
    if problem.loss.is_piecewise_linear:
        allowed = Fraction(1, 10**12)
    if not upper - lower <= allowed * abs(upper):
        raise CertificateError(
            f"the scores have the risk {float(upper / unit):.10g}, "
            f"the dual bound is {float(lower / unit):.10g}"
        )
    value = Fraction(upper) + problem.constant
    if abs(Fraction(result.value) * unit - value) > allowed * abs(value):
        raise CertificateError(f"the value is {float(value / unit):.10g}, not {result.value:.10g}")
