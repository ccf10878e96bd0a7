r"""The pairwise hinge where all pairs are kept: to its exact minimum, by fewer and fewer pairs.

Stages over all pairs (see `_hinge_stages`) tell roughly on which side of the kink each pair lies;
where there are many pairs an item, steps along their sorted sum (`_hinge_descent`) do, before any
pair is listed, and may be all that the tolerance asks for.
Few are near it: the stages that follow hold the other pairs' multipliers at their bounds, zero or
one, and cost little. A pass over all pairs then shows which of those lie on the other side after
all; they join, until there are none. With the pairs on the kink known, one linear system gives the
minimiser: the duality gap, which is always that of all pairs, comes down to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankbook._progress import Report
from rankbook.models._hinge_descent import Descended, descend
from rankbook.models._hinge_stages import AllPairs, Pairs, Point, SomePairs, Stage
from rankbook.models._pair_fit import coarser
from rankbook.models._pair_objective import Fit, PairRisk, better, stopped, strong_convexity_gap

__all__ = ["minimize_kept_hinge"]

_FIRST_WIDTH, _SMALLEST_WIDTH = 0.3, 1e-10
# Where the ridge is weak the first step needs the curvature of pairs: at zero all are that short.
_WEAK, _WIDE = 1e-4, 2.0
# After a start from fewer items, whose own widths came down to this.
_LATER_WIDTH = 0.03
# The gap to reach, if `tol` asks for less: the last stages are the cheapest.
_GAP, _COARSE_GAP = 1e-13, 1e-3
# Widths shrink by these factors over all pairs, and over some.
_SHRINK, _SHRINK_SOME = 0.4, 0.2
# A stage ends when this share of the gap is what Newton left.
_LEFT = 0.3
# At this gap some pairs are enough: those whose multipliers are this far outside their bounds.
_ROUGH_GAP, _BAND = 1e-2, 1.0
# They are at most this share of the number of items: their differences are kept.
_SHARE = 0.25
# The relative gap over some pairs at which the others are looked at; where those prove right, the
# goal times the second number is the next.
_LOOK, _CLOSER = 1e-5, 0.3
# Steps over some pairs before the others are looked at in any case.
_MAX_STEPS = 200
# Pairs an item beyond which a pass takes less time by sorting, and steps by such passes come first.
_PAIRS_OF_SORT = 25
# Where these leave at most this share of the objective, it is known for all but few pairs on which
# side of the kink they are: so many an item are looked at.
_SURE, _NEAR = 1e-5, 0.1
# They come as close as this, and the gap to this if the ridge is not weak.
_BY_STEPS = 1e-8
# So many steps in a row that do not narrow the gap by this factor are damped too much.
_IDLE, _NARROWER = 12, 0.5
_EPS = np.finfo(float).eps


@dataclass
class _Search:
    """The iteration: how far it may go, and the best found."""

    pairs: AllPairs
    goal: float
    max_iter: int
    report: Report | None
    best: Fit
    n_iter: int = 0
    lowest: float = np.inf
    idle: int = 0

    def certify(self, point: Point) -> tuple[np.ndarray, float]:
        """Compare with the best point and the best bound; return this point's pull and gap."""
        pairs, total = self.pairs, self.pairs.total
        spread = pairs.spread(point.beta)
        slope = pairs.design.adjoint(spread)
        value, gap = _gap(pairs, point, slope)
        slopes, dual_sum = -total * spread, total * pairs.chosen_sum(point.beta)
        found = Fit(point.coef, value, gap, 0, "", False, slopes, dual_sum)
        self.best = better(self.best, found)
        if self.report is not None:
            self.report(self.n_iter, self.best.value, self.best.gap)
        return slope, gap

    @property
    def ended(self) -> bool:
        return _ended(replace(self.best, n_iter=self.n_iter), self.goal, self.max_iter)

    def _ease(self, gap: float) -> None:
        """Damp less where steps come to gain little."""
        self.idle += 1
        if gap <= _NARROWER * self.lowest:
            self.lowest, self.idle = gap, 0
        elif self.idle >= _IDLE:
            self.pairs.ease()
            self.idle = 0

    def over_all(self, stage: Stage, point: Point, enough: float) -> tuple[Stage, Point]:
        """Stages over all pairs until the gap is small enough, and few pairs are near the kink."""
        pairs = self.pairs
        while True:
            slope, gap = self.certify(point)
            if self.ended:
                break
            self._ease(gap)
            moved = self._moved(stage, point, slope, gap)
            if moved is not None:
                # Not step by step: after a long one the margins would keep its rounding.
                point = stage.point(moved.coef, 1.0 - pairs.margins(moved.coef))
                self.n_iter += 1
            elif stage.width < _SMALLEST_WIDTH:
                break
            else:
                by_products = stage.by_products
                stage = Stage(pairs, point.beta, _SHRINK * stage.width)
                stage.by_products = by_products
                if gap <= enough * self.best.value and _few(_near(stage, point), pairs.n):
                    break
                point = stage.point(point.coef, point.short)
        return stage, point

    def over_some(self, stage: Stage, point: Point, goal: float) -> tuple[Stage, Point]:
        """Stages over some pairs until their gap is the goal: one step as far as all go."""
        self.n_iter += 1
        self.lowest, self.idle = np.inf, 0
        for _ in range(_MAX_STEPS):
            slope = stage.pairs.pull(point.beta)
            gap = _gap(stage.pairs, point, slope)[1]
            self._ease(gap)
            if gap <= goal or stage.width < _SMALLEST_WIDTH:
                break
            moved = self._moved(stage, point, slope, gap)
            if moved is None:
                stage, point = stage.next(point, _SHRINK_SOME * stage.width)
            else:
                point = moved
        return stage, point

    def _moved(self, stage: Stage, point: Point, slope: np.ndarray, gap: float) -> Point | None:
        """Newton's step, or None where the stage is done."""
        ridge = stage.pairs.ridge
        gradient = ridge * point.coef - slope
        if strong_convexity_gap(gradient, ridge) <= _LEFT * gap:
            return None
        step = stage.step(point, gradient)
        descent = float(gradient @ step)
        if -descent <= _EPS * self.best.value:
            return None
        return stage.move(point, step, descent)


def _gap(pairs: Pairs, point: Point, slope: np.ndarray) -> tuple[float, float]:
    """The objective, and its distance to the dual value of the multipliers."""
    value = pairs.value(point)
    dual = pairs.chosen_sum(point.beta) - strong_convexity_gap(slope, pairs.ridge)
    return value, max(value - dual, 0.0)


def minimize_kept_hinge(
    risk: PairRisk,
    tol: float,
    max_iter: int,
    report: Report | None = None,
    aim: float | None = None,
) -> Fit:
    """Minimise for the hinge over kept pairs; the best point seen, with the best lower bound.

    The gap is to be at most `tol` times the objective, and is brought to `aim` times it if that
    can be done: by default to rounding, unless `tol` is rough.
    """
    if aim is None:
        aim = min(tol, _GAP) if tol < _COARSE_GAP else tol
    first = None
    # No dual value is below zero, that of no pair.
    at_zero = risk.sums.total * float(risk.sums.loss(0.0)) / risk.sums.different
    best = Fit(np.zeros(len(risk.ridge)), at_zero, at_zero, 0, "", False)
    if (risk.sums.n_kept or 0) > _PAIRS_OF_SORT * risk.design.shape[0]:
        close = _BY_STEPS if aim < _BY_STEPS else 0.0
        first = descend(risk.unkept(), aim, max_iter, report, close, hasty=True)
    n_iter = 0
    if first is not None:
        best, n_iter = better(best, first.fit), first.fit.n_iter
        if _ended(replace(best, n_iter=n_iter), aim, max_iter):
            return _result(best, n_iter, tol, max_iter)
    pairs = AllPairs(risk)
    search = _Search(pairs, aim, max_iter, report, best, n_iter)
    sure = first is not None and first.left <= _SURE * first.fit.value
    if first is not None and sure:
        stage, point = _near_kink(pairs, first.fit.coef)
    else:
        coef, width = _start(risk, max_iter) if first is None else _after(first)
        stage = Stage(pairs, 0.0, width)
        point = stage.point(coef, 1.0 - pairs.margins(coef))
        stage, point = search.over_all(stage, point, _ROUGH_GAP)
    if not search.ended:
        stage, point = _by_some(search, stage, point, look=not sure)
    if not search.ended:
        search.over_all(stage, stage.point(point.coef, point.short), 0.0)
    return _result(search.best, search.n_iter, tol, max_iter)


def _start(risk: PairRisk, max_iter: int) -> tuple[np.ndarray, float]:
    """Coefficients and a width that suits them, from a tenth of the items where there are many."""
    coarse = coarser(risk)
    if coarse is None or coarse.sums.n_kept is None:
        weak = risk.ridge.min() < _WEAK
        return np.zeros(len(risk.ridge)), _WIDE if weak else _FIRST_WIDTH
    return minimize_kept_hinge(coarse, _COARSE_GAP, max_iter).coef, _LATER_WIDTH


def _after(first: Descended) -> tuple[np.ndarray, float]:
    """The same from where steps by sorting came."""
    far = first.left > _ROUGH_GAP * first.fit.value
    return first.fit.coef, _WIDE if far else _LATER_WIDTH


def _ended(fit: Fit, aim: float, max_iter: int) -> bool:
    return fit.gap <= aim * fit.value or fit.n_iter >= max_iter


def _result(best: Fit, n_iter: int, tol: float, max_iter: int) -> Fit:
    if best.gap <= tol * best.value:
        return stopped(best, n_iter, "gap")
    return stopped(best, n_iter, "max_iter" if n_iter >= max_iter else "rounding")


def _near_kink(pairs: AllPairs, coef: np.ndarray) -> tuple[Stage, Point]:
    """A stage so narrow that the multipliers of few pairs are between their bounds."""
    short = 1.0 - pairs.margins(coef)
    distance, few = np.abs(short), int(_NEAR * pairs.n)
    width = float(np.partition(distance, few)[few]) if few < len(short) else _LATER_WIDTH
    stage = Stage(pairs, 0.5, max(width, _SMALLEST_WIDTH))
    return stage, stage.point(coef, short)


def _by_some(search: _Search, stage: Stage, point: Point, look: bool = True) -> tuple[Stage, Point]:
    """Rounds over the pairs near the kink, each with those that the one before had left out.

    The first only looks for such pairs, or else goes as far as the last.
    """
    pairs, free = search.pairs, _near(stage, point)
    while not search.ended and np.count_nonzero(free) <= pairs.n:
        held = (point.short > 0.0).astype(float)
        beta = np.where(free, point.beta, held)
        chosen = np.flatnonzero(free)
        some = Stage(SomePairs(pairs, chosen, held), beta[chosen], stage.width)
        some.by_products = stage.by_products
        start = some.point(point.coef, point.short[chosen])
        goal = (_LOOK if look else _CLOSER * search.goal) * search.best.value
        some, found = search.over_some(some, start, goal)
        held[chosen] = found.beta
        point = Point(found.coef, 1.0 - pairs.margins(found.coef), held)
        wrong = ~free & ((point.short > 0.0) != (held > 0.0))
        search.certify(point)
        width = some.width
        if wrong.any():
            # Multipliers of new pairs should not jump from one bound to the other.
            width = max(width, float(np.abs(point.short[wrong]).max()))
        stage = Stage(pairs, held, width)
        stage.by_products = some.by_products
        look = bool(wrong.any())
        if not look and some.width < _SMALLEST_WIDTH:
            break
        free |= wrong
    return stage, point


def _few(near: np.ndarray, n: int) -> bool:
    return int(np.count_nonzero(near)) <= _SHARE * n


def _near(stage: Stage, point: Point) -> np.ndarray:
    """Pairs whose multipliers are not far outside their bounds."""
    outside = np.abs(point.short + (stage.centre - 0.5) * stage.width)
    return outside < (0.5 + _BAND) * stage.width
