r"""Profile-likelihood intervals: all values that a likelihood-ratio test would not reject.

For one reported parameter fixed at v the objective is minimised over all others; with V(v) the
minimum, the signed root :math:`r(v) = \pm\sqrt{2 (V(v) - \min V)}` is nearly linear in v, and the
interval ends where it reaches a normal quantile.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space
from scipy.special import ndtri

from rankbook.models._cumulative_fit import Fitted
from rankbook.models._restricted import Restricted
from rankbook.solvers.newton import minimize

__all__ = ["profile_interval"]

_ROOT_TOLERANCE = 1e-9
# Where the classes are separated, a root below this at twice the estimate will not rise.
_LEVEL = 1e-4
# Beyond this many first steps from the estimate an end counts as infinite.
_FAR = 1e5


class _Profile:
    """The profile of one reported parameter, started from the last point visited."""

    def __init__(self, fitted: Fitted, row: int, tol: float) -> None:
        self.likelihood = fitted.likelihood
        self.functional = fitted.jacobian[row]
        self.basis = null_space(self.functional[None, :])
        self.bound = tol * fitted.likelihood.design.total
        self.lowest = fitted.likelihood.value(fitted.params)
        self.estimate = float(self.functional @ fitted.params)
        square = float(self.functional @ self.functional)
        self.unit = self.functional / square
        self.step = 1.0 / np.sqrt(square)
        self.tangent = self.unit
        self.identified = bool(fitted.identified[row])
        if self.identified:
            image = fitted.bread @ self.functional
            variance = float(self.functional @ image)
            self.step, self.tangent = np.sqrt(variance), image / variance
        self.last = fitted.params

    def _start(self, v: float) -> np.ndarray | None:
        """A point at which the parameter is v; of several, the one of least objective."""
        now = float(self.functional @ self.last)
        starts = [self.last + (v - now) * self.tangent, self.last + (v - now) * self.unit]
        if not self.identified and now != 0.0:
            # Where all classes are separated, a multiple of what separates them does so too.
            starts.insert(0, self.last * (v / now))
        inside = [start for start in starts if self.likelihood.is_inside(start)]
        if self.identified or len(inside) < 2:
            return inside[0] if inside else None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = np.nan_to_num([self.likelihood.value(start) for start in inside], nan=np.inf)
        return inside[int(np.argmin(values))]

    def root(self, v: float) -> tuple[float, float]:
        """Root of twice the loss of log-likelihood at v, without its sign, and its derivative."""
        start = self._start(v)
        if start is None:
            return np.inf, np.nan
        part = Restricted(self.likelihood, start, self.basis)
        zero = np.zeros(self.basis.shape[1])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            first = part.value_gradient_hessian(zero)
        if not all(np.all(np.isfinite(piece)) for piece in first):
            return np.inf, np.nan
        result = minimize(part, zero, tol=self.bound, max_iter=100)
        self.last = part.point(result.x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient, _ = self.likelihood.value_gradient_hessian(self.last)
        root = np.sqrt(max(0.0, 2.0 * (value - self.lowest)))
        return root, float(gradient @ self.unit) / root if root > 0.0 else np.nan


def _end(profile: _Profile, sign: float, target: float) -> float:
    """Where the root reaches the target, on one side: Newton kept inside a bracket."""
    inner, outer = 0.0, np.inf
    distance = target * profile.step
    for _ in range(200):
        root, slope = profile.root(profile.estimate + sign * distance)
        if abs(root - target) < _ROOT_TOLERANCE:
            break
        beyond = distance > abs(profile.estimate) + target * profile.step
        if root < _LEVEL and beyond and not profile.identified:
            return sign * np.inf
        if root < target:
            inner = distance
        else:
            outer = distance
        if inner > _FAR * profile.step * target:
            return sign * np.inf
        newton = distance + (target - root) / (sign * slope)
        limit = outer if np.isfinite(outer) else 4.0 * inner
        inside = np.isfinite(newton) and inner < newton < limit
        if inside:
            distance = newton
        else:
            distance = 0.5 * (inner + outer) if np.isfinite(outer) else limit
        if np.isfinite(outer) and outer - inner <= 1e-14 * outer:
            break
    return profile.estimate + sign * distance


def profile_interval(fitted: Fitted, row: int, level: float, tol: float) -> tuple[float, float]:
    """Lower and upper end for one reported parameter."""
    target = float(ndtri(0.5 + level / 2.0))
    low, high = (_end(_Profile(fitted, row, tol), sign, target) for sign in (-1.0, 1.0))
    return low, high
