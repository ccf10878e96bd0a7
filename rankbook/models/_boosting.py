"""What the boosted rankers share: parameters, the fit, staged scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankbook._progress import progress
from rankbook._validation import (
    check_choice,
    check_labels,
    check_rng,
    check_same_length,
    check_scalar,
    check_weights,
)
from rankbook.models._base import RankerMixin, check_items
from rankbook.solvers.boosting import StageObjective, boost, staged_scores
from rankbook.solvers.weak_learners import family

__all__ = ["BoostedRanker"]


BOOSTING_PARAMETERS = r"""
n_iter : int, default=300
    Number of rounds.
weak : {"univariate", "joint", "stump"}, default="univariate"
    Gaussian bumps of one feature each, Gaussian bumps of all features together, or steps of
    one feature; bumps are centred at observed values.
bandwidth : float, default=0.5
    The variance :math:`\sigma^2` of the bumps.
selection : {"gradient", "greedy"}, default="gradient"
    Add the learner of greatest inner product with the gradient, or the one whose best step
    lowers the risk most (of the 64 of steepest slope per unit norm, if there are more).
validation_fraction : float, default=0.0
    Share of the items that is held out to choose the number of rounds; of each class, or of
    the queries.
max_centres : int, optional
    Most centres of bumps, of a feature (256 by default) or in all (2000 by default).
random_state : None, int or numpy.random.Generator, default=None
    Draws the held-out items, and the centres of joint bumps if there are too many.
labels : array-like, optional
    All classes, lowest first, where their order is not that of numbers.
verbose : int, default=0
    1 shows a progress bar.
"""

THRESHOLD_ATTRIBUTES = r"""
thresholds_ : ndarray of shape (K - 1,)
    The thresholds, in order; the last is 0.
threshold_path_ : ndarray of shape (rounds + 1, K - 1)
    The thresholds before the first round and after each.
"""

BOOSTING_ATTRIBUTES = r"""
classes_ : ndarray of shape (K,)
    The labels, in order.
n_iter_ : int
    Number of rounds that are kept.
train_risk_ : ndarray
    The risk after each round.
validation_risk_ : ndarray
    The risk of the validation set after each round, if there was one.
n_features_in_ : int
    Columns of X.
"""


class BoostedRanker(RankerMixin, BaseEstimator):
    """A ranker that adds up weak learners; a subclass says which risk they lower.

    Parameters and attributes are those of its subclasses.
    """

    def __init__(
        self,
        n_iter: int = 300,
        weak: str = "univariate",
        bandwidth: float = 0.5,
        selection: str = "gradient",
        validation_fraction: float = 0.0,
        max_centres: int | None = None,
        random_state: Any = None,
        labels: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_iter = n_iter
        self.weak = weak
        self.bandwidth = bandwidth
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.max_centres = max_centres
        self.random_state = random_state
        self.labels = labels
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Add weak learners.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.
        y : array-like of shape (n,)
            Ordered labels.
        validation : tuple (X, y), default=None
            Other items: the number of rounds with the smallest risk there is kept.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights.

        Returns
        -------
        BoostedRanker
            The fitted estimator.
        """
        return self._fit(X, y, validation, sample_weight, None)

    @abstractmethod
    def _objective(
        self, codes: np.ndarray, weight: np.ndarray, query: np.ndarray | None
    ) -> StageObjective:
        """The risk at items with these codes of labels, weights and queries."""

    def _fit(
        self,
        X: Any,
        y: Any,
        validation: Any,
        sample_weight: Any,
        query: np.ndarray | None,
        other_query: np.ndarray | None = None,
    ) -> Any:
        self._check_parameters()
        rng = check_rng(self.random_state, "random_state")
        X = check_items(self, X, dtype=np.float64, ensure_min_samples=2)
        codes = self._encode_labels(y, len(X))
        weight = check_weights(sample_weight, len(X), relative=True)
        weight = np.ones(len(X)) if weight is None else weight
        if query is not None:
            check_same_length(len(query), len(X), "qid", "X")
        self._check_classes(codes, weight)
        held_out, check = np.zeros(len(X), dtype=bool), None
        if validation is not None:
            check = self._validation_set(validation, other_query)
        elif self.validation_fraction > 0:
            held_out = _hold_out(codes, weight, query, self.validation_fraction, rng)
            check = (X[held_out], codes[held_out], weight[held_out], _rows(query, held_out))
        # An item without weight has no say, and where its loss overflows, no weight outweighs that.
        kept = ~held_out & (weight > 0)
        self._boost(X[kept], codes[kept], weight[kept], _rows(query, kept), check, rng)
        return self

    def _boost(
        self,
        X: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
        query: np.ndarray | None,
        check: tuple | None,
        rng: np.random.Generator,
    ) -> None:
        # Kept, as scores are asked for later, when parameters may have been set anew.
        self._weak, self._width = weak, width = family(self.weak), self.bandwidth
        learners = weak(X, weight, width, self.max_centres, rng)  # type: ignore[call-arg]
        validation = None
        if check is not None:
            other, *about = check
            validation = (
                self._objective(*about),
                lambda rows: weak.evaluate(rows, other, width),
            )
        with progress(self.verbose, self.n_iter, "Boosting") as report:
            self._ensemble = boost(
                self._objective(codes, weight, query),
                learners,
                self.n_iter,
                selection=self.selection,
                validation=validation,
                report=report,
            )
        rounds = len(self._ensemble.steps)
        if rounds == 0:
            warnings.warn(
                f"{type(self).__name__} added nothing: no weak learner lowers the risk.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.train_risk_ = self._ensemble.train_risk
        self.n_iter_ = rounds
        if check is not None:
            self.validation_risk_ = self._ensemble.validation_risk
            self.n_iter_ = int(np.argmin(self.validation_risk_)) + 1 if rounds else 0
        elif hasattr(self, "validation_risk_"):
            del self.validation_risk_

    def _check_parameters(self) -> None:
        check_scalar(self.n_iter, "n_iter", low=1, integer=True)
        family(self.weak)
        check_scalar(self.bandwidth, "bandwidth", low=0.0, strict_low=True)
        check_choice(self.selection, ("gradient", "greedy"), "selection")
        share = check_scalar(self.validation_fraction, "validation_fraction", low=0.0, high=1.0)
        if share == 1.0:
            raise ValueError("validation_fraction must be less than 1, got 1.0")
        if self.max_centres is not None:
            check_scalar(self.max_centres, "max_centres", low=1, integer=True)

    def _check_classes(self, codes: np.ndarray, weight: np.ndarray) -> None:
        """Every class must weigh something: its thresholds would lie at infinity."""
        mass = np.bincount(codes, weight, len(self.classes_))
        if not (mass > 0).all():
            missing = self.classes_[mass == 0].tolist()
            raise ValueError(
                f"y must hold items of positive weight of every class, got none of {missing}"
            )

    def _validation_set(self, validation: Any, query: np.ndarray | None) -> tuple:
        wanted = 2 if query is None else 3
        if not isinstance(validation, (tuple, list)) or len(validation) != wanted:
            size = f" of {len(validation)}" if isinstance(validation, (tuple, list)) else ""
            raise TypeError(
                f"validation must be a tuple (X, y), got {type(validation).__name__}{size}"
            )
        X = check_items(self, validation[0], reset=False, dtype=np.float64)
        codes, _ = check_labels(
            validation[1], labels=self.classes_, min_classes=1, name="validation[1]"
        )
        check_same_length(len(codes), len(X), "validation[1]", "validation[0]")
        return X, codes, np.ones(len(X)), query

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the ranking scores.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            The scores, higher for items ranked higher.
        """
        check_is_fitted(self, "n_iter_")
        items: np.ndarray = check_items(self, X, reset=False, dtype=np.float64)
        scores = np.full(len(items), self._ensemble.constants[self.n_iter_])
        if self.n_iter_:
            # A learner that was picked twice is evaluated once.
            rows = self._ensemble.rows[: self.n_iter_]
            members, place = np.unique(rows, axis=0, return_inverse=True)
            steps = np.bincount(place.ravel(), self._ensemble.steps[: self.n_iter_])
            for block in np.array_split(
                np.arange(len(items)), 1 + scores.size * len(members) // 2**22
            ):
                values = self._weak.evaluate(members, items[block], self._width)
                scores[block] += values @ steps
        return scores

    def staged_decision_function(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Yield the ranking scores after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.

        Yields
        ------
        ndarray of shape (n,)
            The scores after rounds 1, 2, ..., `n_iter_`.
        """
        check_is_fitted(self, "n_iter_")
        items: np.ndarray = check_items(self, X, reset=False, dtype=np.float64)
        weak, width = self._weak, self._width
        yield from staged_scores(
            self._ensemble,
            lambda rows: weak.evaluate(rows, items, width),
            len(items),
            self.n_iter_,
        )

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the ranking scores, as `decision_function` does.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            The scores.
        """
        return self.decision_function(X)


class BoostedThresholds(BoostedRanker):
    """A boosted ranker that has thresholds, and so predicts labels."""

    def _fit(self, *arguments: Any, **keywords: Any) -> Any:
        super()._fit(*arguments, **keywords)
        self.threshold_path_ = self._ensemble.thresholds
        self.thresholds_ = self.threshold_path_[self.n_iter_]
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the labels: class i where the score is above i thresholds.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Items.

        Returns
        -------
        ndarray of shape (n,)
            The labels.
        """
        scores = self.decision_function(X)
        return self.classes_[np.searchsorted(self.thresholds_, scores, side="left")]


def _rows(array: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if array is None else array[rows]


def _hold_out(
    codes: np.ndarray,
    weight: np.ndarray,
    query: np.ndarray | None,
    fraction: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """A random part of the items of each class, or of the queries; some of each class stay."""
    if query is not None:
        queries = rng.permutation(query.max() + 1)
        out = np.isin(query, queries[: round(fraction * len(queries))])
    else:
        out = np.zeros(len(codes), dtype=bool)
        for k in range(codes.max() + 1):
            items = rng.permutation(np.flatnonzero((codes == k) & (weight > 0)))
            out[items[: min(round(fraction * len(items)), len(items) - 1)]] = True
    kept = np.unique(codes[~out & (weight > 0)])
    if not out.any() or len(kept) < len(np.unique(codes)):
        raise ValueError(
            f"validation_fraction must leave items of every class on both sides, got {fraction}"
        )
    return out
