"""Sums of hinges in few dimensions, solved exactly at any weight.

`_linear_svm` cannot take its place: its dual has one equality, for one free intercept, while
learning curves have a free threshold for each class but one. It has one weight for all hinges, not
one for each class as that machine has, and stops at a gap of 1e-8, not of 1e-10.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

__all__ = ["minimize_hinges"]

_TOLERANCE, _TOO_WIDE = 1e-8, 1e-5
_MAX_STEPS = 200
_NEAR_END = 0.99


def minimize_hinges(
    G: np.ndarray, c: np.ndarray, weight: float, penalised: int
) -> tuple[np.ndarray, float]:
    r"""Minimise :math:`|w|^2 / 2 + C \sum_v (c_v - (G u)_v)_+` over u, w its first entries.

    A primal-dual interior point in the primal variables: at weights of a million, coefficients of
    items are that large, cancel, and lose the digits that a kernel machine needs.

    Parameters
    ----------
    G : ndarray of shape (v, d)
        A row for each hinge.
    c : ndarray of shape (v,)
        Constants.
    weight : float
        C.
    penalised : int
        How many entries of u are penalised.

    Returns
    -------
    u : ndarray of shape (d,)
        The minimiser.
    gap : float
        The duality gap there, relative to the objective.

    Warns
    -----
    ConvergenceWarning
        If the gap is above 1e-5.
    """
    u, ridge = np.zeros(G.shape[1]), np.zeros(G.shape[1])
    ridge[:penalised] = 1.0 / weight
    # Kept beside a: near the bound, the difference would be rounding.
    a, room = np.full(len(c), 0.5), np.full(len(c), 0.5)
    over, under = np.maximum(c, 0.0) + 1.0, np.maximum(-c, 0.0) + 1.0
    best, best_gap = u, np.inf
    for _ in range(_MAX_STEPS):
        gap = _gap(G, c, u, a, ridge)
        best, best_gap = (u, gap) if gap < best_gap else (best, best_gap)
        mu = (a @ under + room @ over) / (2 * len(c))
        if gap <= _TOLERANCE or mu < 1e-18:
            break
        system = _Newton(G, c, u, a, room, over, under, ridge)
        first = system.step(-a * under, -room * over)
        t = system.length(first)
        ahead = (a + t * first[1]) @ (under + t * first[3])
        ahead += (room - t * first[1]) @ (over + t * first[2])
        centre = (ahead / (2 * len(c)) / mu) ** 3 * mu
        full = system.step(
            centre - a * under - first[1] * first[3],
            centre - room * over + first[1] * first[2],
        )
        t = _NEAR_END * system.length(full)
        u, a, room = u + t * full[0], a + t * full[1], room - t * full[1]
        over, under = over + t * full[2], under + t * full[3]
    if best_gap > _TOO_WIDE:
        warnings.warn(f"a relative gap of {best_gap:.1e} is left", ConvergenceWarning, stacklevel=2)
    return best, float(best_gap)


def _gap(G: np.ndarray, c: np.ndarray, u: np.ndarray, a: np.ndarray, ridge: np.ndarray) -> float:
    """The relative gap at u and a; what a lacks in the free entries counts at their size."""
    pull = G.T @ a
    held = ridge > 0
    primal = 0.5 * (ridge * u) @ u + np.maximum(c - G @ u, 0.0).sum()
    dual = (
        c @ a - 0.5 * (pull[held] ** 2 / ridge[held]).sum() - np.abs(pull[~held] * u[~held]).sum()
    )
    return float(max(primal - dual, 0.0) / primal) if primal > 0 else 0.0


class _Newton:
    """The linear equations of one step, solved for two right-hand sides."""

    def __init__(
        self,
        G: np.ndarray,
        c: np.ndarray,
        u: np.ndarray,
        a: np.ndarray,
        room: np.ndarray,
        over: np.ndarray,
        under: np.ndarray,
        ridge: np.ndarray,
    ) -> None:
        self.G, self.a, self.room, self.over, self.under = G, a, room, over, under
        self.stationarity = ridge * u - G.T @ a
        self.margin = c - G @ u - over + under
        self.inverse = 1.0 / (over / room + under / a)
        self.matrix = np.diag(ridge) + G.T @ (self.inverse[:, None] * G)

    def step(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
        """Changes of u, a, over and under."""
        right = self.margin - high / self.room + low / self.a
        du = np.linalg.lstsq(
            self.matrix, -self.stationarity + self.G.T @ (self.inverse * right), rcond=1e-15
        )[0]
        da = self.inverse * (right - self.G @ du)
        return du, da, (high + self.over * da) / self.room, (low - self.under * da) / self.a

    def length(self, step: tuple[np.ndarray, ...]) -> float:
        """The longest step that keeps everything positive, at most one."""
        _, da, dover, dunder = step
        pairs = ((self.a, da), (self.room, -da), (self.over, dover), (self.under, dunder))
        shrinking = [(-v[d < 0] / d[d < 0]).min() for v, d in pairs if (d < 0).any()]
        return min([1.0, *map(float, shrinking)])
