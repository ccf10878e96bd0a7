r"""Gradient descent in function space: one engine for every boosted ranker.

The score is a sum :math:`f = f_0 + \sum_t a_t h_t` of members of a family of weak learners. A round
picks the member with the greatest inner product with the gradient of the risk at the items (or the
one that lowers the risk most), finds its step by an exact search along it, and lets the objective
set anew what is not in the family: thresholds, and a constant added to all scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankbook._progress import Report
from rankbook.solvers.weak_learners import WeakLearners

__all__ = ["Ensemble", "StageObjective", "boost", "line_search", "staged_scores"]

# No step moves a score by more than this: a member that separates the classes has no best step.
_LARGEST_MOVE = 20.0
# The slope along a member is brought down to this share of what it was.
_SLOPE_TOL = 1e-10
_MAX_SEARCH = 100
# With `greedy` so many members are tried; in a larger family, those of steepest slope.
_TRIED = 64
# An inner product below this share of the gradient's size is rounding.
_FLAT = 1e-13

Derivatives = Callable[[float], tuple[float, float]]
Values = Callable[[np.ndarray], np.ndarray]


class StageObjective(Protocol):
    """A risk of the scores, and of what is set anew after every round.

    Attributes
    ----------
    n : int
        Number of items.
    thresholds : ndarray
        Thresholds at which the risk is taken; empty where there are none.
    """

    n: int
    thresholds: np.ndarray

    def risk(self, scores: np.ndarray) -> float:
        """The risk at the scores."""

    def gradient(self, scores: np.ndarray) -> np.ndarray:
        """Its derivative with respect to each score."""

    def along(self, scores: np.ndarray, direction: np.ndarray) -> Derivatives:
        """The first two derivatives at ``scores + t * direction``, as a function of t."""

    def refit(self, scores: np.ndarray) -> float:
        """Set the thresholds to the best; return what is to be added to all scores."""


# The risk at other items, and the values there of the member that a row describes.
Validation = tuple[StageObjective, Values]


@dataclass(frozen=True)
class Ensemble:
    """What boosting found, round by round.

    Attributes
    ----------
    rows : ndarray of shape (rounds, ...)
        The members, as their family describes them.
    steps : ndarray of shape (rounds,)
        Their factors.
    constants : ndarray of shape (rounds + 1,)
        What is added to all scores, before the first round and after each.
    thresholds : ndarray of shape (rounds + 1, K - 1)
        The thresholds, before the first round and after each.
    train_risk : ndarray of shape (rounds,)
        The risk after each round.
    validation_risk : ndarray of shape (rounds,)
        The same on the validation set; NaN without one.
    exhausted : bool
        Whether no member lowered the risk any more.
    """

    rows: np.ndarray
    steps: np.ndarray
    constants: np.ndarray
    thresholds: np.ndarray
    train_risk: np.ndarray
    validation_risk: np.ndarray
    exhausted: bool


def line_search(derivatives: Derivatives, largest: float) -> float:
    """Return the minimiser on [0, largest] of a convex function that falls at 0.

    Newton's method on the slope inside a bracket, which is halved where Newton would leave it or
    gain too little. A slope that overflows counts as rising.

    Parameters
    ----------
    derivatives : callable
        Slope and curvature at a step.
    largest : float
        Where to stop if the function still falls.

    Returns
    -------
    float
        The step.

    Examples
    --------
    >>> import math
    >>> search = line_search(lambda t: (math.exp(t) - 2.0, math.exp(t)), 10.0)
    >>> round(search - math.log(2.0), 12)
    0.0
    """
    low, high = 0.0, largest
    slope, curvature = derivatives(0.0)
    target = _SLOPE_TOL * abs(slope)
    step, before = 0.0, largest
    for _ in range(_MAX_SEARCH):
        newton = step - slope / curvature if curvature > 0 and np.isfinite(slope) else np.inf
        if not low < newton < high or abs(newton - step) > 0.5 * before:
            # The far end is tried once: it is the answer where the function never turns.
            newton = high if high == largest and step == low else 0.5 * (low + high)
        step, before = newton, abs(newton - step)
        slope, curvature = derivatives(step)
        rising = not slope <= 0
        if abs(slope) <= target or (not rising and step == largest):
            return step
        low, high = (low, step) if rising else (step, high)
        if high - low <= 4 * np.finfo(float).eps * high:
            return low
    return low


def boost(
    objective: StageObjective,
    learners: WeakLearners,
    n_iter: int,
    *,
    selection: str = "gradient",
    validation: Validation | None = None,
    report: Report | None = None,
) -> Ensemble:
    """Lower a risk by adding weak learners one at a time.

    Parameters
    ----------
    objective : StageObjective
        The risk at the training items.
    learners : WeakLearners
        The family, prepared for the same items.
    n_iter : int
        Number of rounds.
    selection : {"gradient", "greedy"}, default="gradient"
        The member of greatest inner product with the gradient, or the one whose best step lowers
        the risk most (in a family of more than 64, among the 64 of steepest slope per unit norm).
    validation : tuple, optional
        The risk at other items, and a function from the row of a member to its values there.
    report : callable, optional
        Told the round, the risk and the fall in the last round.

    Returns
    -------
    Ensemble
        All rounds.
    """
    history = _History(objective, learners, validation)
    for number in range(n_iter):
        member, step = _choose(objective, learners, history.scores, selection)
        if step == 0.0:
            break
        before = history.risk
        history.add(member, step)
        if report is not None:
            report(number + 1, history.risk, before - history.risk)
    return history.ensemble(exhausted=len(history.steps) < n_iter)


def _choose(
    objective: StageObjective, learners: WeakLearners, scores: np.ndarray, selection: str
) -> tuple[int, float]:
    """The member to add and its step; a step of zero if none helps."""
    gradient = objective.gradient(scores)
    products = learners.products(gradient)
    size = np.abs(products)
    if not size.size or not size.max() > _FLAT * np.abs(gradient).sum():
        return 0, 0.0
    if selection == "gradient":
        member = int(size.argmax())
        return member, _step(objective, learners, scores, member, products[member])
    steepest = np.divide(size, learners.norms, out=np.zeros_like(size), where=learners.norms > 0)
    tried = np.argsort(-steepest, kind="stable")[:_TRIED]
    best, found = np.inf, (0, 0.0)
    for member in map(int, tried[size[tried] > 0]):
        step = _step(objective, learners, scores, member, products[member])
        risk = objective.risk(scores + step * learners.values(member))
        if risk < best:
            best, found = risk, (member, step)
    return found


def _step(
    objective: StageObjective,
    learners: WeakLearners,
    scores: np.ndarray,
    member: int,
    product: float,
) -> float:
    sign = -np.sign(product)
    values = learners.values(member)
    largest = _LARGEST_MOVE / np.abs(values).max()
    with np.errstate(over="ignore", invalid="ignore"):
        return float(sign * line_search(objective.along(scores, sign * values), largest))


class _History:
    """The scores at the items, and all that was done to get there."""

    def __init__(
        self,
        objective: StageObjective,
        learners: WeakLearners,
        validation: Validation | None,
    ) -> None:
        self.objective, self.learners, self.validation = objective, learners, validation
        self.scores = np.zeros(objective.n)
        self.constants = [objective.refit(self.scores)]
        self.scores += self.constants[0]
        self.thresholds = [objective.thresholds]
        self.risk = objective.risk(self.scores)
        self.rows: list[np.ndarray] = []
        self.steps: list[float] = []
        self.train: list[float] = []
        self.other: list[float] = []
        self._unseen: np.ndarray | float = self.constants[0]

    def add(self, member: int, step: float) -> None:
        self.scores += step * self.learners.values(member)
        shift = self.objective.refit(self.scores)
        self.scores += shift
        self.rows.append(self.learners.row(member))
        self.steps.append(step)
        self.constants.append(self.constants[-1] + shift)
        self.thresholds.append(self.objective.thresholds)
        self.risk = self.objective.risk(self.scores)
        self.train.append(self.risk)
        if self.validation is None:
            self.other.append(np.nan)
        else:
            self.other.append(self._validate(*self.validation, step, shift))

    def _validate(self, risk: StageObjective, values: Values, step: float, shift: float) -> float:
        self._unseen = self._unseen + step * values(self.rows[-1][None])[:, 0] + shift
        risk.thresholds = self.objective.thresholds
        with np.errstate(over="ignore"):
            return risk.risk(self._unseen)

    def ensemble(self, exhausted: bool) -> Ensemble:
        return Ensemble(
            rows=np.array(self.rows),
            steps=np.array(self.steps),
            constants=np.array(self.constants),
            thresholds=np.array(self.thresholds),
            train_risk=np.array(self.train),
            validation_risk=np.array(self.other),
            exhausted=exhausted,
        )


def staged_scores(ensemble: Ensemble, values: Values, n: int, rounds: int) -> Iterator[np.ndarray]:
    """Yield the scores of n items after each of the first rounds.

    Parameters
    ----------
    ensemble : Ensemble
        The rounds.
    values : callable
        From the rows of members to their values at the items, shape (n, len(rows)).
    n : int
        Number of items.
    rounds : int
        How many rounds.

    Yields
    ------
    ndarray of shape (n,)
        The scores.
    """
    total = np.zeros(n)
    for number in range(rounds):
        total = total + ensemble.steps[number] * values(ensemble.rows[number : number + 1])[:, 0]
        yield total + ensemble.constants[number + 1]
