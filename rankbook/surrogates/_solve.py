"""Solve one strong component: cvxpy first, then a polish and a proof that do not trust it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankbook.exceptions import CertificateError, SolverError
from rankbook.losses import Hinge
from rankbook.surrogates._flows import dual_bound, hinge_flow, repaired_circulation
from rankbook.surrogates._problem import EdgeProblem

__all__ = ["ComponentSolution", "certify", "cvxpy_scores", "newton", "solve_component"]

# A solver's value may be off by its own tolerance, not by more: relative to the value, and to the
# largest weight, to which its objective is scaled.
_SOLVER_TOLERANCE = 1e-5
# What the polished answer must reach.
_GAP_TOLERANCE = 1e-9
_MAX_STEPS = 200


@dataclass(frozen=True)
class ComponentSolution:
    """Scores, their value, and the circulation whose bound proves them optimal."""

    scores: list
    value: Fraction | float
    flow: list[Fraction]
    bound: Fraction | float


def cvxpy_scores(problem: EdgeProblem) -> np.ndarray:
    """Return a solver's minimiser: HiGHS for the hinge loss, Clarabel for smooth losses."""
    try:
        import cvxpy as cp
    except ImportError:
        raise ImportError(
            "surrogates are solved with cvxpy, which is not installed: pip install cvxpy"
        ) from None
    s = cp.Variable(problem.n)
    z = s[problem.tail] - s[problem.head] - problem.m
    objective = (problem.w / problem.w.max()) @ problem.loss.expression(z)
    program = cp.Problem(cp.Minimize(objective), [s[0] == 0])
    solver = cp.HIGHS if isinstance(problem.loss, Hinge) else cp.CLARABEL
    try:
        program.solve(solver=solver)
    except cp.error.SolverError as error:
        raise SolverError(f"{solver} failed on {problem.loss!r}: {error}") from None
    if s.value is None or not np.isfinite(s.value).all():
        raise SolverError(f"{solver} found no answer for {problem.loss!r}: {program.status}")
    return np.asarray(s.value)


def newton(problem: EdgeProblem, start: np.ndarray) -> np.ndarray:
    """Return the minimiser of a smooth loss by damped Newton steps with node 0 held fixed."""
    scores = start - start[0]
    value = problem.value(scores)
    for _ in range(_MAX_STEPS):
        gradient = problem.gradient(scores)[1:]
        hessian = problem.hessian(scores)[1:, 1:]
        # The squared hinge may be flat in places: the shortest of the Newton steps will do.
        step = np.zeros(problem.n)
        step[1:] = -np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        slope, length = float(gradient @ step[1:]), 1.0
        # Near the minimum values differ by rounding alone, and a good step must not be refused.
        rounding = 4 * np.finfo(float).eps * abs(value)
        while (new := problem.value(scores + length * step)) - value > (
            1e-4 * length * slope + rounding
        ):
            length /= 2
            if length < 1e-10:
                return scores
        moved = np.abs(length * step).max()
        scores, value = scores + length * step, new
        if moved <= 4e-16 * (1.0 + np.abs(scores).max()):
            break
    return scores


def _snap(problem: EdgeProblem, scores: np.ndarray) -> list[Fraction]:
    """Return the exact scores that a solver's rounded ones stand for.

    Edges at the kink of the hinge loss tie nodes together by exact differences 1 + margin; the
    groups so formed may move freely within some interval, so that any near fraction serves.
    """
    at_kink = np.abs(problem.differences(scores) - 1.0) < 1e-6
    neighbours: list[list[tuple[int, Fraction]]] = [[] for _ in range(problem.n)]
    for e in np.flatnonzero(at_kink):
        u, v, gap = int(problem.tail[e]), int(problem.head[e]), 1 + problem.margin[e]
        neighbours[u].append((v, -gap))
        neighbours[v].append((u, gap))
    exact: list[Fraction | None] = [None] * problem.n
    for root in range(problem.n):
        if exact[root] is not None:
            continue
        exact[root] = Fraction(float(scores[root])).limit_denominator(1000)
        stack = [root]
        while stack:
            u = stack.pop()
            for v, shift in neighbours[u]:
                if exact[v] is None:
                    exact[v] = exact[u] + shift
                    stack.append(v)
    return exact


def hinge_value(problem: EdgeProblem, scores: list[Fraction]) -> Fraction:
    """Return the hinge risk of exact scores, exactly."""
    total = Fraction(0)
    for e, (u, v) in enumerate(zip(problem.tail.tolist(), problem.head.tolist(), strict=True)):
        total += problem.weight[e] * max(1 - scores[u] + scores[v] + problem.margin[e], Fraction(0))
    return total


def certify(problem: EdgeProblem, scores: np.ndarray | list) -> ComponentSolution:
    """Return the proof that scores minimise W on a strong component.

    Raises
    ------
    CertificateError
        If no circulation bounds W from below by its value at the scores.
    """
    if isinstance(problem.loss, Hinge):
        exact = scores if isinstance(scores, list) else _snap(problem, scores)
        total = sum(problem.weight)
        flow = hinge_flow(problem, exact, slack=total * Fraction(1, 10**12))
        value = hinge_value(problem, exact)
        return ComponentSolution(exact, value, flow, dual_bound(problem, flow))
    scores = np.asarray(scores, dtype=float)
    slopes = -problem.w * problem.loss.derivative(problem.differences(scores))
    value = problem.value(scores)
    flow = repaired_circulation(problem, slopes)
    bound = dual_bound(problem, flow)
    if not value - bound <= _GAP_TOLERANCE * max(abs(value), abs(bound)):
        raise CertificateError(
            f"the scores do not minimise the {problem.loss.name} risk: their value is "
            f"{value:.10g}, but the dual bound is only {bound:.10g}"
        )
    return ComponentSolution(scores.tolist(), value, flow, bound)


def solve_component(problem: EdgeProblem) -> ComponentSolution:
    """Minimise W on a strong component, and prove it.

    Raises
    ------
    CertificateError
        If the solver's answer is not optimal to within its tolerance.
    """
    if problem.n == 1:
        return ComponentSolution([Fraction(0)], Fraction(0), [], Fraction(0))
    rough = cvxpy_scores(problem)
    if isinstance(problem.loss, Hinge):
        return certify(problem, rough)
    solution = certify(problem, newton(problem, rough))
    allowed = _SOLVER_TOLERANCE * (abs(solution.bound) + problem.w.max())
    if not problem.value(rough) - solution.bound <= allowed:
        raise CertificateError(
            f"the solver's answer has the {problem.loss.name} risk {problem.value(rough):.10g}; "
            f"the least is {solution.value:.10g}"
        )
    return solution
