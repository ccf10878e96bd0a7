r"""Scale effects whose likelihood has its supremum at infinity, and how near to it a fit can come.

At fixed scale coefficients :math:`\zeta` the likelihood is that of a model without scale effects
whose rows are divided by the spreads. So the directions along which it rises for ever do not
depend on :math:`\zeta`: the ends that they send to infinity can be left out (`Limit`), and what
is left has a maximum at every :math:`\zeta`. The supremum is that of the profile over
:math:`\zeta`, a smooth function of as many variables as there are scale columns.

The profile may still grow for ever, as a spread that tends to zero makes items certain, and one
that tends to infinity makes them toss a coin between the extreme classes. What is left to gain
falls exponentially, so that Newton's steps, each about one unit, reach any tolerance in a few
dozen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, null_space

from rankbook.models._cumulative_likelihood import Likelihood
from rankbook.models._cumulative_limit import Limit
from rankbook.solvers.newton import minimize

__all__ = ["SpreadFit", "better_start", "fit_spreads", "is_finite"]

# A log-likelihood that changes by less within one unit of a logarithm of the spread says nothing.
_LEVEL = 1e-5
# Rounding that costs more than this, an item, comes of spreads of very different sizes.
_ROUGH = 1e-8
# Values whose difference is a smaller share of them are alike.
_ALIKE = 1e-12
# Spreads whose logarithms differ by more leave the smaller one's thresholds to rounding.
_LOST = 25.0
# Where the location moves by more with a scale coefficient, all of it does.
_FAR_OUT = 1e5
# No spread is taken further than this logarithm: products with it stay floats.
_WIDEST = 60.0
# Directions are axes of a curvature, with its rounding: a smaller share of a move is none.
_STILL = 1e-6
# Starts: the largest difference of two items' logarithms of the spread.
_STARTS = (4.0, 12.0)
_MAX_STEPS = 60
# A start from other spreads is better if it gains so much an item, in so many steps.
_BETTER, _SHORT = 1e-4, 15
_LARGEST_RADIUS = 16.0
# Nearer than this to one, or to that of an infinite spread, a probability has its limit.
_LIMIT = 1e-5


@dataclass(frozen=True)
class SpreadFit:
    """A point near the supremum of a likelihood with scale effects.

    `params` are its parameters without the directions that are left out, `value` the objective in
    their limit, `off` a basis of the scale coefficients that run to infinity, `hidden` the
    directions of all parameters along which nothing is identified for that reason, and `idle`
    whether the likelihood stays the same along them.
    """

    params: np.ndarray
    value: float
    off: np.ndarray
    hidden: np.ndarray
    idle: bool


@dataclass(frozen=True)
class _Point:
    """A point of the profile: all parameters, value, slope and curvature, and the path there.

    `rounding` is what the rounding of the parameters makes of the value.
    """

    params: np.ndarray
    value: float
    slope: np.ndarray
    curvature: np.ndarray
    path: np.ndarray
    rounding: float

    @property
    def worst(self) -> float:
        """The value that rounding may leave of it."""
        return self.value + self.rounding


class _Profile:
    """The least objective at given scale coefficients."""

    def __init__(self, limit: Limit, free: np.ndarray, bound: float, beside: float) -> None:
        self.limit, self.bound, self.beside = limit, bound, beside
        r = limit.center.size
        across = null_space(free.T) if free.shape[1] else np.eye(limit.size)
        self.across = np.vstack([across, np.zeros((r, across.shape[1]))])
        self.r = r

    def at(self, params: np.ndarray) -> _Point | None:
        """Minimise over the location, from a point; None where that has no finite value."""
        if not np.isfinite(self.limit.value(params)):
            return None
        params = self.limit.descended(params, self.across, 0.01 * self.bound)
        value, gradient, hessian = self.limit.value_gradient_hessian(params)
        if not (np.isfinite(value) and np.isfinite(hessian).all()):
            return None
        r, within = self.r, self.across.T @ hessian @ self.across
        mixed = self.across.T @ hessian[:, -r:]
        # Rows in units of their own, as spreads of many sizes give curvatures of many.
        unit = np.sqrt(np.maximum(np.diagonal(within), np.finfo(float).tiny))
        scaled = within / unit / unit[:, None], mixed / unit[:, None]
        if not all(np.isfinite(part).all() for part in scaled):
            return None
        solved = np.linalg.lstsq(*scaled, rcond=None)[0] / unit[:, None]
        path = -self.across @ solved
        path[-r:] = np.eye(r)
        curvature = hessian[-r:, -r:] - mixed.T @ solved
        curvature = 0.5 * (curvature + curvature.T)
        return _Point(params, value, gradient[-r:], curvature, path, self.limit.rounding(params))

    def moved(self, point: _Point, step: np.ndarray) -> _Point | None:
        """The point after a step of the scale coefficients."""
        still = point.params.copy()
        still[-self.r :] += step
        starts = [point.params + point.path @ step, still]
        values = np.nan_to_num([self.limit.value(start) for start in starts], nan=np.inf)
        best = int(np.argmin(values))
        return self.at(starts[best]) if np.isfinite(values[best]) else None

    def width(self, step: np.ndarray) -> float:
        """The largest change of an item's logarithm of the spread."""
        return max(float(np.abs(group.z @ step).max()) for group in self.limit.groups)

    def is_reachable(self, zeta: np.ndarray) -> bool:
        """Whether floats hold these spreads, and beside them the items that are left out."""
        if max(self.width(zeta), abs(float(self.limit.center @ zeta))) > _WIDEST:
            return False
        least = min(float((group.z @ zeta).min()) for group in self.limit.groups)
        return float((self.limit.left_out @ zeta).max(initial=-np.inf)) - least <= self.beside


def fit_spreads(
    likelihood: Likelihood,
    last: np.ndarray,
    free: np.ndarray,
    tol: float,
    beside: float = _WIDEST,
) -> SpreadFit | None:
    """Climb the profile of the scale coefficients from several starts, and take the best end.

    `last` is where Newton's method ended, `free` the directions of the parameters that are left
    out. `beside` bounds the logarithm of the largest spread of the items that are left out over the
    least of the others. None if there is no finite start.
    """
    r, bound = likelihood.sizes[3], tol * likelihood.design.total
    free = free[:-r]
    limit = Limit(likelihood, free)
    profile = _Profile(limit, free, bound, beside)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ends = []
        for zeta in [*_starts(profile, _STARTS), _narrowed(profile, last[-r:])]:
            start = limit.start(likelihood, zeta)
            point = None if start is None else profile.at(start)
            if point is not None:
                ends.append(_climbed(profile, point))
        if not ends:
            return None
        lowest = min(end.value for end in ends)
        lowest += bound + _ALIKE * abs(lowest)
        good = [end for end in ends if end.value <= lowest]
        best = min(good, key=lambda end: profile.width(end.params[-r:]))
        off, idle = _on_their_way(profile, best)
        if idle:
            # Of points that are alike the one without the effect.
            best = profile.moved(best, -off @ (off.T @ best.params[-r:])) or best
        hidden = _path(limit, best) @ off if idle else _hidden(limit, best, off)
    params = best.params.copy()
    params[:-r] *= np.exp(limit.center @ params[-r:])
    if np.abs(hidden).max(initial=0.0) > _FAR_OUT:
        hidden = np.eye(len(params))
    return SpreadFit(params, best.value, off, hidden, idle)


def better_start(likelihood: Likelihood, start: np.ndarray) -> np.ndarray:
    """A start that is as good as one given, or better than it by what other spreads lead to."""
    r, total = likelihood.sizes[3], likelihood.design.total
    free = np.zeros((start.size - r, 0))
    limit = Limit(likelihood, free)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        least = likelihood.value(start) - _BETTER * total
        for zeta in _starts(_Profile(limit, free, 0.0, _WIDEST), _STARTS[:1])[1:]:
            point = limit.start(likelihood, zeta)
            if point is None or not is_finite(limit, point):
                continue
            found = minimize(limit, point, tol=_BETTER * total, max_iter=_SHORT)
            params = found.x.copy()
            params[:-r] *= np.exp(limit.center @ params[-r:])
            if likelihood.value(params) < least and is_finite(likelihood, params):
                least, start = likelihood.value(params), params
    return start


def is_finite(objective: Limit | Likelihood, params: np.ndarray) -> bool:
    """Whether Newton's method can start at a point."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        pieces = objective.value_gradient_hessian(params)
    return all(piece is not None and bool(np.isfinite(piece).all()) for piece in pieces)


def _starts(profile: _Profile, sizes: tuple[float, ...]) -> list[np.ndarray]:
    """No scale effect, and one of each column either way."""
    starts = [np.zeros(profile.r)]
    for axis in np.eye(profile.r):
        width = profile.width(axis)
        if width > 0.0:
            starts += [sign * size / width * axis for size in sizes for sign in (1.0, -1.0)]
    return starts


def _narrowed(profile: _Profile, zeta: np.ndarray) -> np.ndarray:
    """Scale coefficients no larger than those of the starts."""
    width = profile.width(zeta)
    return zeta * min(1.0, max(_STARTS) / width) if width > 0.0 else zeta


def _climbed(profile: _Profile, point: _Point) -> _Point:
    """Newton's steps within a trust region, until none gains more than the bound."""
    radius = 1.0
    for _ in range(_MAX_STEPS):
        values, vectors = np.linalg.eigh(point.curvature)
        size = np.maximum(values, 1e-12 * max(1.0, np.abs(values).max()))
        step = -vectors @ ((vectors.T @ point.slope) / size)
        width = profile.width(step)
        if width > radius:
            step *= radius / width
        gain = -float(point.slope @ step + 0.5 * step @ point.curvature @ step)
        if gain <= max(0.1 * profile.bound, point.rounding) or radius < 1e-3:
            break
        reached = profile.is_reachable(point.params[-profile.r :] + step)
        new = profile.moved(point, step) if reached else None
        if new is None or not new.worst <= point.worst - 1e-4 * gain:
            radius = 0.25 * min(radius, width)
            continue
        point, radius = new, min(2.0 * radius, _LARGEST_RADIUS)
    return point


def _on_their_way(profile: _Profile, point: _Point) -> tuple[np.ndarray, bool]:
    """Directions of the scale coefficients along which the profile never falls again.

    They are looked for among the axes of the curvature, which rounding may have spoilt: points far
    along show whether the profile falls. Where it is the same at no effect and on both sides the
    coefficients are free, not on their way.
    """
    design = profile.limit.design
    level = _LEVEL * design.total / design.n_items
    zeta = point.params[-profile.r :]

    def is_level(step: np.ndarray) -> bool:
        end = profile.moved(point, step)
        return end is not None and end.value <= point.value + level

    found, ways = [], 0
    for vector in np.linalg.eigh(point.curvature)[1].T:
        away = 1.0 / profile.width(vector) * vector
        back = -(vector @ zeta) * vector
        if is_level(away) or is_level(-away):
            found.append(vector)
            ways += is_level(back + away) and is_level(back - away)
    idle = bool(found) and ways == len(found)
    lost = point.rounding > _ROUGH * design.total or profile.width(zeta) > _LOST
    if not found and lost:
        found = [zeta / np.linalg.norm(zeta)]
    return np.array(found).T if found else np.zeros((profile.r, 0)), idle


def _path(limit: Limit, point: _Point) -> np.ndarray:
    """How the parameters follow the scale coefficients, in the units of the likelihood."""
    r = limit.center.size
    path = point.path.copy()
    path[:-r] += np.outer(point.params[:-r], limit.center)
    path[:-r] *= np.exp(limit.center @ point.params[-r:])
    return path


def _hidden(limit: Limit, point: _Point, off: np.ndarray) -> np.ndarray:
    """Directions of the parameters that running spreads leave unidentified.

    If the spreads of all items whose probabilities are between their limits stay, these items
    identify what they see of the location; otherwise nothing counts as identified, though some of
    it may be.
    """
    n_params = len(point.params)
    if not off.shape[1]:
        return np.zeros((n_params, 0))
    moves, seen, widest = [], [np.zeros((0, limit.size))], 0.0
    for group in limit.groups:
        z = group.z + limit.center
        ends = group.ends(point.params)
        assert ends is not None
        log_p = limit.link.log_interval(*ends)
        nearest = np.ones(len(z))
        if group.upper is None or group.lower is None:
            middle = limit.link.log_sf if group.upper is None else limit.link.log_cdf
            nearest = np.abs(np.exp(log_p) - np.exp(middle(np.zeros(1))))
        between = (np.exp(log_p) < 1.0 - _LIMIT) & (nearest > _LIMIT)
        moves.append((z @ off)[between])
        seen += [rows[between] for rows in (group.upper, group.lower) if rows is not None]
        widest = max(widest, float(np.abs(z @ off).max()))
    stays = all(np.all(np.abs(move) <= _STILL * widest) for move in moves)
    if not stays or not any(len(move) for move in moves):
        return np.eye(n_params)
    return block_diag(null_space(np.vstack(seen)), off)
