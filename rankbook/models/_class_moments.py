r"""Moments of each class, from which least squares of every class boundary follows.

The weights of boundary k depend on an item through its class alone, so that its weighted Gram
matrix is a sum of the classes' Gram matrices: one pass over X serves all boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankbook.solvers.design import power_of_two

__all__ = ["ClassMoments"]

# Rows taken at a time: the copy of them, ordered by class, stays in the cache.
_BLOCK = 4096
# Below this, relative to ones on the diagonal, the normal equations lose too many digits.
_WELL_CONDITIONED = 1e-8


@dataclass
class ClassMoments:
    """Weighted sums of shifted and scaled rows (x - shift) / scale, class by class."""

    shift: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    mass: np.ndarray  # (K,) total weight
    total: np.ndarray  # (K, p) sum of the rows
    gram: np.ndarray  # (K, p, p) sum of their products

    @classmethod
    def of(cls, X: np.ndarray, codes: np.ndarray, weights: np.ndarray, K: int) -> ClassMoments:
        """Gather the moments in one pass; `codes` are classes 0..K-1."""
        p = X.shape[1]
        thin = X[:: max(1, len(X) // _BLOCK)]
        shift = thin.mean(axis=0)
        spread = np.abs(thin - shift).max(axis=0, initial=0.0)
        scale = power_of_two(np.where(spread > 0, spread, 1.0))
        moments = cls(shift, scale, np.zeros(K), np.zeros((K, p)), np.zeros((K, p, p)))
        for begin in range(0, len(X), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            moments.add((X[rows] - shift) / scale, codes[rows], weights[rows])
        return moments

    def add(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> None:
        """Add rows that are shifted and scaled already."""
        for k in np.unique(codes):
            chosen = codes == k
            Z, w = rows[chosen], weights[chosen]
            weighted = Z if (w == 1.0).all() else Z * w[:, None]
            self.mass[k] += w.sum()
            self.total[k] += weighted.sum(axis=0)
            self.gram[k] += weighted.T @ Z

    def boundary_regressions(
        self, steps: np.ndarray, *, intercept: bool
    ) -> list[tuple[np.ndarray, float]] | None:
        """Coefficients and intercept of least squares on 1{class > k} for every boundary k.

        `steps` [y, k] is the weight of class y there. None if a system is too ill-conditioned to
        be solved by its normal equations.
        """
        solutions = []
        for k, step in enumerate(steps.T):
            solution = self._regression(step / step.max(), k, intercept)
            if solution is None:
                return None
            solutions.append(solution)
        return solutions

    def _regression(
        self, step: np.ndarray, k: int, intercept: bool
    ) -> tuple[np.ndarray, float] | None:
        above = step[k + 1 :]
        mass, total = step @ self.mass, step @ self.total
        gram = np.tensordot(step, self.gram, axes=1)
        terms = np.diag(gram)  # what the diagonal is a sum or difference of
        rhs, hits = above @ self.total[k + 1 :], above @ self.mass[k + 1 :]
        if intercept:
            mean = total / mass
            gram = gram - mass * np.outer(mean, mean)
            rhs = rhs - hits * mean
        else:
            # Back to rows that are not shifted: x = shift + scale z, in units of scale.
            offset = self.shift / self.scale
            terms = terms + mass * offset**2
            gram = gram + np.outer(offset, total) + np.outer(total, offset)
            gram = gram + mass * np.outer(offset, offset)
            rhs = rhs + hits * offset
        coef = _solve(gram, rhs, terms)
        if coef is None:
            return None
        constant = hits / mass - mean @ coef if intercept else 0.0
        coef = coef / self.scale
        return coef, float(constant - self.shift @ coef) if intercept else 0.0


def _solve(gram: np.ndarray, rhs: np.ndarray, terms: np.ndarray) -> np.ndarray | None:
    """Solve a positive definite system with ones on its diagonal; None if it is not clearly so.

    `terms` is the size of what was added and subtracted to give the diagonal: where little of it
    is left, the rows lie far from the shift, and the digits are gone before the system is solved.
    """
    size = np.sqrt(np.diag(gram).clip(0.0))
    if not ((size > 0).all() and np.isfinite(terms).all()):
        return None
    unit = gram / np.outer(size, size)
    try:
        factor = cho_factor(unit, lower=True)
    except LinAlgError:
        return None
    if (np.diag(factor[0]) ** 2 * (size**2 / terms)).min() < _WELL_CONDITIONED:
        return None
    solution = cho_solve(factor, rhs / size)
    solution += cho_solve(factor, rhs / size - unit @ solution)
    return solution / size
