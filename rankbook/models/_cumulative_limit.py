"""A likelihood with scale effects whose ends at infinity are left out: values, slopes, steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from rankbook._link import Terms
from rankbook.models._cumulative_degenerate import slack_matrix
from rankbook.models._cumulative_likelihood import Likelihood

__all__ = ["Limit"]

# A row that moves by no more than this share of its size along a direction does not move.
_STILL = 1e-6
_MAX_STEPS = 40
_MAX_HALVINGS = 40
# Standardised ends may always move this far in one step.
_FIRST = 4.0
_EPS = float(np.finfo(float).eps)
# Roundings on the way from these parameters to an item's standardised threshold.
_ROUNDINGS = 4.0


class Limit:
    """The objective with the ends left out that some directions send to infinity.

    Its parameters are those of the likelihood, with the scale columns centred where there is
    neither an offset nor a penalty: the location is then in units of the spreads'
    geometric mean. `left_out` has the scale columns of the items that have lost an end.
    """

    def __init__(self, likelihood: Likelihood, free: np.ndarray) -> None:
        design = self.design = likelihood.design
        self.link, self.penalty = likelihood.link, likelihood.penalty
        n, first = design.n_items, design.edges[1]
        rows = slack_matrix(design)
        n_upper = design.edges[-2]
        gone = np.zeros(rows.shape[0], dtype=bool)
        if free.shape[1]:
            size = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            gone = np.abs(rows @ free).max(axis=1) > _STILL * size
        upper, lower = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        upper[:n_upper], lower[first:] = ~gone[:n_upper], ~gone[n_upper:]
        self.size = rows.shape[1]
        z = design.spread.x
        is_free = design.offset is None and not self.penalty.any()
        weights = np.ones(n) if design.weights is None else design.weights
        self.center = weights @ z / design.total if is_free else np.zeros(z.shape[1])
        complete = upper == (np.arange(n) < n_upper)
        complete &= lower == (np.arange(n) >= first)
        self.left_out = z[~complete] - self.center
        self.groups = []
        for has_upper, has_lower in ((True, True), (True, False), (False, True)):
            items = np.flatnonzero((upper == has_upper) & (lower == has_lower))
            if items.size:
                self.groups.append(
                    _Group(
                        rows[items].toarray() if has_upper else None,
                        -rows[n_upper + items - first].toarray() if has_lower else None,
                        z[items] - self.center,
                        0.0 if design.offset is None else design.offset[items],
                        weights[items],
                    )
                )

    def value(self, params: np.ndarray) -> float:
        """Objective alone."""
        total = 0.5 * float(self.penalty @ (params * params))
        for group in self.groups:
            ends = group.ends(params)
            if ends is None:
                return np.inf
            total += self.link.value(*ends, group.weights)
        return total

    def value_gradient_hessian(self, params: np.ndarray) -> tuple[float, Any, Any]:
        """Objective, gradient and Hessian."""
        value = 0.5 * float(self.penalty @ (params * params))
        gradient, hessian = self.penalty * params, np.diag(self.penalty)
        for group in self.groups:
            ends = group.ends(params)
            if ends is None:
                return np.inf, None, None
            part, terms = self.link.value_terms(*ends, group.weights)
            value += part
            slopes = group.slopes(ends, params)
            bends = {(0, 0): terms.uu, (1, 1): terms.ll, (0, 1): terms.ul, (1, 0): terms.ul}
            tail = slice(self.size, None)
            for i, slope in slopes.items():
                # Terms are derivatives with respect to shifts by minus one.
                pull = -(terms.u, terms.l)[i]
                gradient += slope.T @ pull
                for j, other in slopes.items():
                    hessian += slope.T @ (other * bends[i, j][:, None])
                hessian[tail, tail] += (group.z * (pull * ends[i])[:, None]).T @ group.z
                mixed = slope[:, : self.size].T @ (group.z * -pull[:, None])
                hessian[: self.size, tail] += mixed
                hessian[tail, : self.size] += mixed.T
        return value, gradient, hessian

    def descended(self, params: np.ndarray, across: np.ndarray, tol: float) -> np.ndarray:
        """The best location in the span of some columns, at the scale coefficients given.

        Newton's method on the items' square roots of curvature: their sizes differ by the squares
        of the spreads, which a Hessian would add up, and an orthogonal factor keeps apart.
        """
        value = self.value(params)
        for _ in range(_MAX_STEPS):
            rows, pulls = self._roots(params)
            rows = rows @ across[: self.size]
            order = np.argsort(-np.abs(rows).max(axis=1, initial=0.0), kind="stable")
            q, factor, places = qr(rows[order], mode="economic", pivoting=True)
            pull = q.T @ pulls[order]
            rank = np.count_nonzero(np.abs(np.diagonal(factor)) > _EPS * abs(factor[0, 0]) * _EPS)
            step = np.zeros(across.shape[1])
            step[places[:rank]] = -solve_triangular(factor[:rank, :rank], pull[:rank])
            decrement = 0.5 * float(pull[:rank] @ pull[:rank])
            if not decrement > max(tol, self.rounding(params)):
                break
            # Where curvature is all but gone its step is too far: ends may double, no more.
            move = across @ step
            t = min(1.0, max(_FIRST, self._reach(params)) / max(self._reach(move, params), _FIRST))
            for _ in range(_MAX_HALVINGS):
                new = self.value(params + t * move)
                if new <= value - 2e-4 * t * decrement:
                    break
                t *= 0.5
            else:
                break
            params, value = params + t * move, new
        return params

    def _reach(self, params: np.ndarray, at: np.ndarray | None = None) -> float:
        """The largest standardised end, or change of one, whatever its sign."""
        part, reach = params[: self.size], 0.0
        for group in self.groups:
            spread = group.spread(params if at is None else at)
            for rows in (group.upper, group.lower):
                if rows is not None:
                    reach = max(reach, float(np.abs(rows @ part / spread).max()))
        return reach

    def _roots(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows whose Gram matrix is the location's Hessian, and by which pulls give its slope.

        Negative curvatures, of links that are not log-concave, are left out.
        """
        part, penalty = params[: self.size], np.sqrt(self.penalty[: self.size])
        penalised = penalty > 0.0
        rows, pulls = [np.diag(penalty)[penalised]], [(penalty * part)[penalised]]
        for group in self.groups:
            ends = group.ends(params)
            assert ends is not None
            _, terms = self.link.value_terms(*ends, group.weights)
            spread = group.spread(params)
            for row, root, pull in group.roots(terms):
                rows.append(row * (root / spread)[:, None])
                pulls.append(np.divide(pull, root, out=np.zeros_like(root), where=root > 0.0))
        return np.vstack(rows), np.concatenate(pulls)

    def rounding(self, params: np.ndarray) -> float:
        """What the rounding of the location's parameters may cost in the value."""
        part, total = np.abs(params[: self.size]), 0.0
        for group in self.groups:
            ends = group.ends(params)
            assert ends is not None
            _, terms = self.link.value_terms(*ends, group.weights)
            spread = group.spread(params)
            for rows, pull, bend in (
                (group.upper, terms.u, terms.uu),
                (group.lower, terms.l, terms.ll),
            ):
                if rows is not None:
                    noise = _ROUNDINGS * _EPS * (np.abs(rows) @ part) / spread
                    total += float(np.abs(pull) @ noise + np.abs(bend) @ (noise * noise))
        return total

    def start(self, likelihood: Likelihood, zeta: np.ndarray) -> np.ndarray | None:
        """No effects, and thresholds in units of one of the items' spreads."""
        plain = likelihood.start()[: self.size]
        logs = np.concatenate([group.z @ zeta for group in self.groups])
        units = np.exp(np.quantile(logs, (0.0, 0.25, 0.5, 0.75, 1.0)))
        points = [np.concatenate([unit * plain, zeta]) for unit in units]
        values = np.nan_to_num([self.value(point) for point in points], nan=np.inf)
        best = int(np.argmin(values))
        return points[best] if np.isfinite(values[best]) else None


@dataclass(frozen=True)
class _Group:
    """Items with the same finite ends: rows that give them, scale columns, offset, weights."""

    upper: np.ndarray | None
    lower: np.ndarray | None
    z: np.ndarray
    offset: Any
    weights: np.ndarray

    def spread(self, params: np.ndarray) -> np.ndarray:
        return np.exp(self.z @ params[-self.z.shape[1] :])

    def ends(self, params: np.ndarray) -> tuple[Any, Any, Any] | None:
        """Standardised ends and gap; None where some are not in order."""
        part, spread = params[: -self.z.shape[1]], self.spread(params)
        upper = None if self.upper is None else (self.upper @ part - self.offset) / spread
        lower = None if self.lower is None else (self.lower @ part - self.offset) / spread
        gap = None
        if self.upper is not None and self.lower is not None:
            gap = ((self.upper - self.lower) @ part) / spread
            if not gap.min() > 0.0:
                return None
        return upper, lower, gap

    def slopes(self, ends: tuple[Any, Any, Any], params: np.ndarray) -> dict[int, np.ndarray]:
        """Derivatives of the finite ends, 0 the upper and 1 the lower one."""
        spread = self.spread(params)[:, None]
        return {
            i: np.hstack([rows / spread, -self.z * ends[i][:, None]])
            for i, rows in enumerate((self.upper, self.lower))
            if rows is not None
        }

    def roots(self, terms: Terms) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rows, square roots of their curvatures and their slopes; ends are not yet divided.

        An interval is moved by its lower end and by its length, whose curvatures do not cancel.
        """
        if self.upper is not None and self.lower is None:
            return [(self.upper, np.sqrt(np.maximum(terms.uu, 0.0)), -terms.u)]
        if self.lower is not None and self.upper is None:
            return [(self.lower, np.sqrt(np.maximum(terms.ll, 0.0)), -terms.l)]
        assert self.upper is not None and self.lower is not None
        bend = np.maximum(terms.uu, np.finfo(float).tiny)
        share = terms.eta_u / bend
        left = np.maximum(terms.eta_eta - share * terms.eta_u, 0.0)
        length = self.upper - self.lower + self.lower * share[:, None]
        return [
            (length, np.sqrt(bend), -terms.u),
            (self.lower, np.sqrt(left), -terms.eta + share * terms.u),
        ]
