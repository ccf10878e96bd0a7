"""Solve one component: cvxpy first, then a polish and a proof that do not trust it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankbook.exceptions import CertificateError, SolverError
from rankbook.solvers import newton
from rankbook.surrogates._flows import dual_bound, hinge_flow, repaired_circulation
from rankbook.surrogates._problem import EdgeProblem, Value

__all__ = ["ComponentSolution", "certify", "cvxpy_scores", "polish", "solve_component"]

# A solver's value may be off by its own tolerance, not by more: relative to the value, and to the
# largest weight, to which its objective is scaled.
_SOLVER_TOLERANCE = 1e-5
# What the polished answer must reach.
_GAP_TOLERANCE = 1e-9
# Half the squared Newton decrement of weights near one, where the gradient is all rounding.
_DECREMENT = 1e-31
# A multiplier this far below zero (of the total weight) is a rounded zero.
_ROUNDED = 1e-13


@dataclass(frozen=True)
class ComponentSolution:
    """Scores, their value, and the circulation whose bound proves them optimal."""

    scores: tuple[Any, ...]
    value: Value
    flow: tuple[Fraction, ...]
    bound: Value


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
    objective = problem.w @ problem.loss.expression(z)
    constraints = [s[0] == 0]
    if problem.kept is not None:
        constraints.append(s[problem.kept[0]] >= s[problem.kept[1]])
    program = cp.Problem(cp.Minimize(objective), constraints)
    solver = cp.HIGHS if problem.loss.is_piecewise_linear else cp.CLARABEL
    try:
        with warnings.catch_warnings():
            # "May be inaccurate" is for the certificate to judge.
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            program.solve(solver=solver)
    except cp.error.SolverError as error:
        raise SolverError(f"{solver} failed on {problem.loss!r}: {error}") from None
    if s.value is None or not np.isfinite(s.value).all():
        raise SolverError(
            f"{solver} found no answer for {problem.loss!r}: {program.status}; the weights or the "
            "margin may be out of its range"
        )
    return np.asarray(s.value)


class _Reduced:
    """W as a function of the scores of groups of nodes, the group of node 0 at zero."""

    def __init__(self, problem: EdgeProblem, group: np.ndarray) -> None:
        self.problem, self.group = problem, group
        self.free = np.unique(group[group != group[0]])

    def scores(self, x: np.ndarray) -> np.ndarray:
        placed = np.zeros(self.problem.n)
        placed[self.free] = x
        return placed[self.group]

    def value(self, x: np.ndarray) -> float:
        return self.problem.value(self.scores(x))

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        scores, n = self.scores(x), self.problem.n
        gradient = np.bincount(self.group, self.problem.gradient(scores), n)
        member = np.eye(n)[self.group]
        hessian = member.T @ self.problem.hessian(scores) @ member
        return (
            self.problem.value(scores),
            gradient[self.free],
            hessian[np.ix_(self.free, self.free)],
        )


def polish(
    problem: EdgeProblem, start: np.ndarray, tied: tuple[int, int] | None = None
) -> np.ndarray:
    """Return the minimiser of a smooth loss by Newton's method, two nodes tied if so told."""
    group = np.arange(problem.n)
    if tied is not None:
        group[max(tied)] = min(tied)
    objective = _Reduced(problem, group)
    if not objective.free.size:
        return np.zeros(problem.n)
    x0 = (start - start[0])[objective.free]
    return objective.scores(newton.minimize(objective, x0, tol=_DECREMENT).x)


def _snap(problem: EdgeProblem, scores: np.ndarray) -> tuple[Fraction, ...]:
    """Return the exact scores that a solver's rounded ones stand for.

    Edges at the kink of the hinge loss tie nodes together by exact differences 1 + margin, a kept
    order that holds with equality by 0; the groups so formed may move freely within some interval,
    so that any near fraction serves.
    """
    gaps = [1 + m for m in problem.margin] + [Fraction(0)]
    neighbours: list[list[tuple[int, Fraction]]] = [[] for _ in range(problem.n)]
    for (u, v), gap in zip(problem.arcs, gaps, strict=False):
        if abs(scores[u] - scores[v] - float(gap)) < 1e-6:
            neighbours[u].append((v, -gap))
            neighbours[v].append((u, gap))
    exact: dict[int, Fraction] = {}
    for root in range(problem.n):
        if root in exact:
            continue
        exact[root] = Fraction(float(scores[root])).limit_denominator(1000)
        stack = [root]
        while stack:
            u = stack.pop()
            for v, shift in neighbours[u]:
                if v not in exact:
                    exact[v] = exact[u] + shift
                    stack.append(v)
    return tuple(exact[v] for v in range(problem.n))


def hinge_value(problem: EdgeProblem, scores: tuple[Fraction, ...]) -> Fraction:
    """Return the hinge risk of exact scores, exactly."""
    total = Fraction(0)
    for w, m, (u, v) in zip(problem.weight, problem.margin, problem.arcs, strict=False):
        total += w * problem.loss.rational(scores[u] - scores[v] - m)
    return total


def certify_hinge(problem: EdgeProblem, scores: tuple[Fraction, ...]) -> ComponentSolution:
    """Return the proof that scores minimise the hinge risk, in rational arithmetic.

    Raises
    ------
    CertificateError
        If no circulation bounds W from below by its value at the scores.
    """
    slack = sum(problem.weight, Fraction(0)) * Fraction(1, 10**12)
    flow = hinge_flow(problem, scores, slack)
    value = hinge_value(problem, scores)
    return ComponentSolution(scores, value, tuple(flow), dual_bound(problem, flow))


def certify(problem: EdgeProblem, scores: np.ndarray) -> ComponentSolution:
    """Return the proof that scores minimise W on a component, for a smooth loss.

    Raises
    ------
    CertificateError
        If no circulation bounds W from below by its value at the scores.
    """
    slopes = -problem.w * problem.loss.derivative(problem.differences(scores))
    if problem.kept is not None:
        above, below = problem.kept
        tied = scores[above] == scores[below]
        pull = problem.divergence(slopes)[below] if tied else 0.0
        slopes = np.append(slopes, max(pull, 0.0))
    value = problem.value(scores)
    flow = repaired_circulation(problem, slopes)
    bound = dual_bound(problem, flow)
    if not value - bound <= _GAP_TOLERANCE * abs(value):
        raise CertificateError(
            f"the scores do not minimise the {problem.loss.name} risk: their value is "
            f"{value:.10g}, but the dual bound is only {bound:.10g}"
        )
    return ComponentSolution(tuple(scores.tolist()), value, tuple(flow), bound)


def _polished(problem: EdgeProblem, rough: np.ndarray) -> np.ndarray:
    """Return the minimiser of a smooth loss near a solver's answer.

    If the tie of a kept order is pulled apart in the wrong direction, the order binds there, and by
    convexity the tied scores are best; otherwise it does not bind, and the free scores are.
    """
    if problem.kept is None:
        return polish(problem, rough)
    tied = polish(problem, rough, problem.kept)
    pull = -problem.gradient(tied)[problem.kept[1]]
    if pull >= -_ROUNDED * problem.w.sum():
        return tied
    return polish(problem, rough)


def solve_component(problem: EdgeProblem) -> ComponentSolution:
    """Minimise W on a component, and prove it; the weights are scaled to about one first.

    Raises
    ------
    CertificateError
        If the solver's answer is not optimal to within its tolerance.
    """
    if problem.n == 1:
        return ComponentSolution((Fraction(0),), Fraction(0), (), Fraction(0))
    unit = problem.unit()
    solution = _solve_scaled(problem.scaled(unit))
    return replace(
        solution,
        value=_unscaled(solution.value, unit),
        flow=tuple(f / unit for f in solution.flow),
        bound=_unscaled(solution.bound, unit),
    )


def _unscaled(value: Value, unit: Fraction) -> Value:
    if isinstance(value, Fraction):
        return value / unit
    exact = Fraction(value) / unit
    return float(exact) if abs(exact) <= Fraction(np.finfo(float).max) else np.inf


def _solve_scaled(problem: EdgeProblem) -> ComponentSolution:
    rough = cvxpy_scores(problem)
    if problem.loss.is_piecewise_linear:
        return certify_hinge(problem, _snap(problem, rough))
    solution = certify(problem, _polished(problem, rough))
    allowed = _SOLVER_TOLERANCE * (abs(solution.bound) + problem.w.max())
    if not problem.value(rough) - solution.bound <= allowed:
        raise CertificateError(
            f"the solver's answer has the {problem.loss.name} risk {problem.value(rough):.10g}; "
            f"the least is {solution.value:.10g}"
        )
    return solution
