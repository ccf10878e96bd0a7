"""Quadratic programs with bounds, the machines that they are duals of, and the gap between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from rankbook.solvers.kernels import KernelMatrix

__all__ = ["BoxProgram", "Certificate", "certify", "made_exact"]

# With so few variables strictly between their bounds, these are computed to rounding at the end.
_EXACT = 300


@dataclass(frozen=True)
class BoxProgram:
    """The data of a quadratic program, but for its kernel.

    Attributes
    ----------
    link : csr_array of shape (n, v)
        S; a column holds one entry, 1 or -1, or none.
    equality : csr_array of shape (m, v)
        A; a column with a finite bound holds one entry, 1 or -1.
    upper : ndarray of shape (v,)
        Bounds u, positive; infinite for variables that no hinge stands for.
    linear : ndarray of shape (v,)
        c.
    thresholds : callable
        From f, shape (n,), the multipliers that minimise the machine's objective.
    """

    link: sp.csr_array
    equality: sp.csr_array
    upper: np.ndarray
    linear: np.ndarray
    thresholds: Callable[[np.ndarray], np.ndarray]

    def hinges(self, f: np.ndarray, theta: np.ndarray) -> float:
        """Return the sum of the hinges, each times its bound."""
        slack = self.linear - self.link.T @ f + self.equality.T @ theta
        bounded = np.isfinite(self.upper)
        return float(self.upper[bounded] @ np.maximum(slack[bounded], 0.0))

    def balanced(self, x: np.ndarray) -> np.ndarray | None:
        """Return x with the heavier side of each equality scaled down, or None if that fails.

        What is unbounded stays, so that the result is feasible, up to rounding of sums.
        """
        bounded = np.isfinite(self.upper)
        entries = self.equality @ sp.diags_array(np.where(bounded, x, 0.0))
        above = np.asarray(entries.maximum(0).sum(axis=1)).ravel()
        below = np.asarray((-entries).maximum(0).sum(axis=1)).ravel()
        free = self.equality @ np.where(bounded, 0.0, x)
        smaller = np.minimum(above, below - free)
        if (smaller < 0).any() or (smaller + free < 0).any():
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(above > 0, smaller / above, 1.0)
            down = np.where(below > 0, (smaller + free) / below, 1.0)
        sign = self.equality.T @ np.ones(len(above))
        which = abs(self.equality).T
        factor = np.where(sign > 0, which @ up, which @ down)
        return np.where(bounded, np.minimum(x * factor, self.upper), x)


@dataclass(frozen=True)
class Certificate:
    """A point of the program and of its machine, and how far both are from optimal at most.

    Attributes
    ----------
    x : ndarray of shape (v,)
        Feasible for the program.
    beta, f : ndarrays of shape (n,)
        Coefficients Sx and scores K Sx, with the kernel itself.
    theta : ndarray of shape (m,)
        Thresholds.
    primal, dual : float
        The machine's objective there, and the lower bound that x proves.
    gap : float
        Their difference over the primal value.
    n_iter : int
        Newton steps.
    rank : int
        Columns of the factor; n where the kernel was dense.
    converged : bool
        Whether the gap is at most the tolerance.
    """

    x: np.ndarray
    beta: np.ndarray
    f: np.ndarray
    theta: np.ndarray
    primal: float
    dual: float
    gap: float
    n_iter: int = 0
    rank: int = 0
    converged: bool = False


def certify(program: BoxProgram, matrix: KernelMatrix, x: np.ndarray) -> Certificate | None:
    """Both objectives at a point made feasible, with the kernel itself."""
    feasible = program.balanced(x)
    if feasible is None:
        return None
    beta = program.link @ feasible
    f = matrix.product(beta)
    quadratic = float(beta @ f)
    theta = program.thresholds(f)
    primal = 0.5 * quadratic + program.hinges(f, theta)
    dual = float(program.linear @ feasible) - 0.5 * quadratic
    gap = (primal - dual) / primal if primal > 0 else 0.0
    return Certificate(feasible, beta, f, theta, primal, dual, max(gap, 0.0))


def made_exact(
    program: BoxProgram, matrix: KernelMatrix, x: np.ndarray, theta: np.ndarray
) -> Certificate | None:
    """The point with its free variables moved to stationarity, by one linear system."""
    free = np.flatnonzero((x > 0) & (x < program.upper))
    if not 0 < len(free) <= _EXACT:
        return None
    S, A = program.link[:, free].toarray(), program.equality[:, free].toarray()
    items = np.flatnonzero(abs(S).sum(axis=1))
    curvature = S[items].T @ matrix.columns(items)[items] @ S[items]
    slope = S.T @ matrix.product(program.link @ x) - program.linear[free] - A.T @ theta
    # Variables in units in which kernels are about one, so that the equalities weigh as much.
    unit = float(np.trace(curvature)) / len(free) or 1.0
    system = np.block([[curvature / unit, -A.T], [A, np.zeros((len(A), len(A)))]])
    right = np.concatenate([-slope, -unit * (program.equality @ x)])
    step = np.linalg.lstsq(system, right, rcond=None)[0][: len(free)] / unit
    moved = x.copy()
    moved[free] = np.clip(x[free] + step, 0.0, program.upper[free])
    return certify(program, matrix, moved)
