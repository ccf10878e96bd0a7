r"""Quadratic programs of kernel machines, by a primal-dual interior point with a certificate.

The dual of a machine with hinges is

.. math::

    \min_x \; \tfrac12 \beta^\top K \beta - c^\top x \quad \text{subject to} \quad
    0 \le x \le u, \quad A x = 0, \qquad \beta = S x,

with a kernel matrix K of n items and few rows in A; the multipliers of :math:`Ax = 0` are the
machine's thresholds :math:`\theta`. Each variable belongs to one item at most, so that S has one
entry :math:`\pm 1` a column at most. Eliminating all but the items from Newton's equations leaves
one n x n system

.. math:: (I + T K) \, v = q, \qquad T = S D^{-1} S^\top \text{ diagonal},

symmetric with eigenvalues of at least one after scaling by :math:`T^{1/2}`; with a factor
:math:`K = LL^\top` of rank r it is the r x r system of :math:`I + L^\top T L`. Steps are
Mehrotra's: a predictor towards complementarity, a corrector for its error.

The machine itself,

.. math::

    \min_{\beta, \theta} \; \tfrac12 \beta^\top K \beta
    + \sum_v u_v \max(0, c_v - (S^\top f)_v + (A^\top \theta)_v), \qquad f = K \beta,

bounds the dual from above. The gap that is reported is the difference of the two at one feasible
point, with the kernel itself: a low-rank factor that is too coarse shows, and is refined.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from rankbook._progress import Report
from rankbook.solvers._kernel_systems import Dense, System, kernel_system
from rankbook.solvers.box_program import BoxProgram, Certificate, certify, made_exact
from rankbook.solvers.kernels import KernelMatrix
from rankbook.solvers.low_rank import LowRank

__all__ = ["BoxProgram", "Certificate", "solve"]

# Share of the trace that the first factor may leave, where bounds times kernels are one; how much
# less each later one may; and where rounding ends it.
_FACTOR_TOL, _FACTOR_REFINEMENT, _FINEST = 1e-6, 1e-2, 1e-14
# Steps stop this far inside the boundary.
_DAMPED = 0.995
# Variables below this share of their bound, and certain to be zero at the optimum, are set to zero;
# smaller shares follow only where that costs too much.
_PURGE, _LESS = (1e-3, 1e-6), (1e-9, 0.0)
# The gap has stalled if it did not fall in so many steps, after it was once small.
_PATIENCE, _NEAR = 8, 1e-2


class _Iterate:
    """A point inside the box with multipliers of its bounds, and Newton's equations there."""

    def __init__(self, program: BoxProgram, system: System) -> None:
        self.program, self.system = program, system
        self.bounded = np.isfinite(program.upper)
        half = program.balanced(np.where(self.bounded, 0.5 * program.upper, 0.0))
        assert half is not None
        self.x = np.where(self.bounded, half, 0.5 * program.upper[self.bounded].mean())
        self.room = np.where(self.bounded, program.upper - self.x, 1.0)
        self._update()
        self.theta = program.thresholds(self.f)
        self.low = np.ones(len(self.x))
        self.high = np.where(self.bounded, self.x / self.room, 0.0)

    def _update(self) -> None:
        self.beta = self.program.link @ self.x
        self.f = self.system.product(self.beta)

    @property
    def complementarity(self) -> float:
        total = self.x @ self.low + self.room @ self.high
        return float(total) / (len(self.x) + int(self.bounded.sum()))

    def gap(self) -> float:
        """The relative gap with the system's kernel, less than exact where x is infeasible."""
        program = self.program
        quadratic = float(self.beta @ self.f)
        theta = program.thresholds(self.f)
        primal = 0.5 * quadratic + program.hinges(self.f, theta)
        missing = abs(program.equality @ self.x) @ abs(theta)
        dual = float(program.linear @ self.x) - 0.5 * quadratic - missing
        return (primal - dual) / primal if primal > 0 else 0.0

    def step(self) -> None:
        """One predictor and corrector step."""
        program, x, low, high, room = self.program, self.x, self.low, self.high, self.room
        S, A = program.link, program.equality
        stationarity = S.T @ self.f - program.linear - A.T @ self.theta - low + high
        infeasible = A @ x
        inverse = 1.0 / (low / x + high / room)
        SD = S @ sp.diags_array(inverse)
        coupling = (SD @ A.T).toarray()
        apply = self.system.factorise(np.asarray(abs(SD).sum(axis=1)).ravel())
        image = apply(coupling)
        schur = (A @ sp.diags_array(inverse) @ A.T).toarray() - coupling.T @ image

        def newton(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            particular = apply(SD @ target)
            right = -infeasible - A @ (inverse * target) + coupling.T @ particular
            theta = np.linalg.solve(schur, right)
            rest = S.T @ (particular + image @ theta)
            return inverse * (target + A.T @ theta - rest), theta

        dx, _ = newton(-stationarity - low + high)
        dlow, dhigh = -low - low / x * dx, np.where(self.bounded, -high + high / room * dx, 0.0)
        length = self._length(dx, dlow, dhigh)
        mu = self.complementarity
        ahead = (x + length * dx) @ (low + length * dlow)
        ahead += (room - length * dx) @ (high + length * dhigh)
        ahead /= len(x) + int(self.bounded.sum())
        centre = max(ahead / mu, 0.0) ** 3 * mu
        goal_low, goal_high = centre - dx * dlow, np.where(self.bounded, centre + dx * dhigh, 0.0)
        dx, dtheta = newton(-stationarity - low + goal_low / x + high - goal_high / room)
        dlow = -low + goal_low / x - low / x * dx
        dhigh = np.where(self.bounded, -high + goal_high / room + high / room * dx, 0.0)
        length = _DAMPED * self._length(dx, dlow, dhigh)
        self.x, self.theta = x + length * dx, self.theta + length * dtheta
        # Kept beside x: near the bound, the difference would be rounding.
        self.room = np.where(self.bounded, room - length * dx, 1.0)
        self.low, self.high = low + length * dlow, high + length * dhigh
        self._update()

    def _length(self, dx: np.ndarray, dlow: np.ndarray, dhigh: np.ndarray) -> float:
        """The longest step that keeps everything positive, at most one."""
        at = self.bounded
        pairs = ((self.x, dx), (self.room[at], -dx[at]), (self.low, dlow))
        shrinking = [(v[d < 0], d[d < 0]) for v, d in (*pairs, (self.high[at], dhigh[at]))]
        return min([1.0] + [float((-v / d).min()) for v, d in shrinking if len(v)])

    def purged(self, share: float) -> np.ndarray:
        """The point with variables that are zero, or at their bound, at the optimum put there."""
        upper = np.where(self.bounded, self.program.upper, 1.0)
        x = np.where(self.x < np.minimum(self.low, share) * upper, 0.0, self.x)
        full = self.bounded & (self.room < np.minimum(self.high, share) * upper)
        return np.where(full, self.program.upper, x)


def solve(
    program: BoxProgram,
    matrix: KernelMatrix,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    max_memory: float = 2e9,
    report: Report | None = None,
) -> Certificate:
    """Solve a program to a relative gap.

    Parameters
    ----------
    program : BoxProgram
        All but the kernel.
    matrix : KernelMatrix
        The kernel.
    tol : float, default=1e-6
        Largest gap, relative to the primal objective.
    max_iter : int, default=100
        Most Newton steps with one factor of the kernel.
    max_memory : float, default=2e9
        Bytes that the kernel may take.
    report : callable, default=None
        Called with the step, the objective and the gap.

    Returns
    -------
    Certificate
        The best point found; `converged` says whether its gap is at most `tol`.

    Examples
    --------
    Two items, one threshold, K = I: the machine's objective is (beta'beta) / 2 plus two hinges.

    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from rankbook.solvers.kernels import Kernel, KernelMatrix
    >>> sign = sp.csr_array(np.diag([-1.0, 1.0]))
    >>> program = BoxProgram(
    ...     sign,
    ...     sp.csr_array([[-1.0, 1.0]]),
    ...     np.full(2, 10.0),
    ...     np.ones(2),
    ...     lambda f: f.mean(keepdims=True),
    ... )
    >>> found = solve(program, KernelMatrix(Kernel("precomputed"), np.eye(2)))
    >>> found.beta.round(5).tolist(), found.converged
    ([-1.0, 1.0], True)
    """
    weight = float(np.median(program.upper)) * float(np.mean(matrix.diagonal()))
    factor_tol = min(_FACTOR_TOL, max(_FACTOR_TOL / weight, _FINEST)) if weight > 0 else _FACTOR_TOL
    best: Certificate | None = None
    low: LowRank | None = None
    while True:
        system, low = kernel_system(matrix, factor_tol, low, max_memory)
        found = _iterate(program, matrix, system, tol, max_iter, report)
        best = found if best is None or found.gap < best.gap else best
        if best.gap <= tol or low is None or factor_tol <= _FINEST:
            return replace(best, converged=best.gap <= tol)
        factor_tol = max(factor_tol * _FACTOR_REFINEMENT, _FINEST)


def _iterate(
    program: BoxProgram,
    matrix: KernelMatrix,
    system: System,
    tol: float,
    max_iter: int,
    report: Report | None,
) -> Certificate:
    """Newton steps until the certified gap is within the tolerance, or no longer falls."""
    nothing = certify(program, matrix, np.zeros(len(program.upper)))
    assert nothing is not None
    best = replace(nothing, rank=system.rank)
    iterate, goal, gaps = _Iterate(program, system), 0.3 * tol, [np.inf]
    candidates: list[np.ndarray] = []
    for n_iter in range(1, max_iter + 1):
        try:
            iterate.step()
        except np.linalg.LinAlgError:
            break
        gaps.append(iterate.gap())
        if report is not None:
            report(n_iter, float(program.linear @ iterate.x), gaps[-1])
        if gaps[-1] < min(gaps[:-1]):
            candidates = [iterate.purged(share) for share in (*_PURGE, *_LESS)]
        if gaps[-1] <= goal:
            best = _best(program, matrix, candidates[: len(_PURGE)], tol, best, n_iter)
            if best.gap <= tol or _too_coarse(program, matrix, iterate, tol):
                return best
            goal = 0.1 * gaps[-1]
        if not np.isfinite(gaps[-1]) or _stalled(gaps):
            break
    return _best(program, matrix, candidates, tol, best, n_iter)


def _best(
    program: BoxProgram,
    matrix: KernelMatrix,
    candidates: list[np.ndarray],
    tol: float,
    best: Certificate,
    n_iter: int,
) -> Certificate:
    """The first point within the tolerance, made exact where that is cheap; else the closest."""
    for x in candidates:
        if best.gap <= tol:
            break
        found = certify(program, matrix, x)
        if found is None:
            continue
        exact = made_exact(program, matrix, x, found.theta)
        found = exact if exact is not None and exact.gap < found.gap else found
        if found.gap < best.gap:
            best = replace(found, n_iter=n_iter, rank=best.rank)
    return best


def _too_coarse(program: BoxProgram, matrix: KernelMatrix, iterate: _Iterate, tol: float) -> bool:
    """Whether the kernel's factor, not the rounding of variables, leaves the gap open."""
    if isinstance(iterate.system, Dense):
        return False
    exact = certify(program, matrix, iterate.x)
    return exact is not None and exact.gap > tol


def _stalled(gaps: list[float]) -> bool:
    earlier = min(gaps[:-_PATIENCE], default=np.inf)
    return earlier < _NEAR and min(gaps[-_PATIENCE:]) > 0.5 * earlier
