r"""Families of simple functions that boosting adds up: Gaussian bumps and stumps.

A family offers, at the training items, the inner products of all its members with a vector, which
is all that the choice of a member needs:

=============  ==========================================================  ========================
family         member                                                      inner products
=============  ==========================================================  ========================
`JointBumps`   :math:`e^{-\|x - c\|^2 / (2 \sigma^2)}`                      O(n m), O(n r) at rank r
`FeatureBumps` :math:`e^{-(x_j - c)^2 / (2 \sigma^2)}`                      bins, O(n p + p m^2)
`Stumps`       1 if :math:`x_j > c`, else -1                               running sums, O(n p)
=============  ==========================================================  ========================

The centres are observed values. Items that weigh nothing are no centres, and values that occur
twice are one centre, so that a weight of two is the same as two items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack
from scipy.spatial.distance import cdist

from rankbook._validation import check_choice

__all__ = ["FeatureBumps", "JointBumps", "Stumps", "WeakLearners", "family"]

# Bytes that the values of all joint bumps at all items may take.
_MAX_BYTES = 2**31
# With at least so many joint bumps a factor of their values is tried, first on that many of them;
# it is kept if its rank is at most this and no pivot above this is left.
_MANY, _LOW_RANK, _ROUNDING = 256, 64, 1e-14
# Bins are so many times finer than centres.
_FINER = 4


class WeakLearners(ABC):
    """A family of functions, prepared for the training items.

    A member is told to others by a row of numbers, which `evaluate` turns into values.

    Attributes
    ----------
    size : int
        Number of members.
    norms : ndarray of shape (size,)
        Their Euclidean norms over the items, each as often as it weighs.
    """

    size: int
    norms: np.ndarray

    @abstractmethod
    def products(self, vector: np.ndarray) -> np.ndarray:
        """Inner products of all members with a vector over the items, shape (size,)."""

    @abstractmethod
    def values(self, member: int) -> np.ndarray:
        """Values of a member at the items, shape (n,)."""

    @abstractmethod
    def row(self, member: int) -> np.ndarray:
        """What describes the member, for `evaluate`."""

    @staticmethod
    @abstractmethod
    def evaluate(rows: np.ndarray, X: np.ndarray, bandwidth: float) -> np.ndarray:
        """Values of the members with these rows at other items, shape (n, len(rows))."""


class JointBumps(WeakLearners):
    """Gaussian bumps over all features together, centred at items."""

    max_centres: ClassVar[int] = 2000

    def __init__(
        self,
        X: np.ndarray,
        weight: np.ndarray,
        bandwidth: float,
        max_centres: int | None,
        rng: np.random.Generator,
    ) -> None:
        centres = np.unique(X[weight > 0], axis=0)
        values, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
        most = self.max_centres if max_centres is None else max_centres
        if len(centres) > most:
            centres = centres[np.sort(rng.choice(len(centres), most, replace=False))]
        needed = 8 * len(X) * len(centres)
        if needed > _MAX_BYTES:
            raise ValueError(
                f"max_centres must leave at most {_MAX_BYTES / 2**30:.0f} GiB for the values of "
                f"all bumps at all items, got {len(X)} items x {len(centres)} centres x 8 bytes = "
                f"{needed / 2**30:.1f} GiB; lower max_centres or set weak='univariate'"
            )
        self.centres = centres
        self.size = len(centres)
        self._values = self.evaluate(centres, X, bandwidth)
        self.norms = np.sqrt(np.einsum("i,ij,ij->j", weight, self._values, self._values))
        self._place, self._factor = place.ravel(), None
        if len(values) == len(centres) >= _MANY:
            self._factor = _low_rank_factor(self._values[first])

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Inner products, by one matrix product, or through a factor of low rank."""
        if self._factor is None:
            return vector @ self._values
        sums = np.bincount(self._place, vector, self.size)
        return self._factor @ (sums @ self._factor)

    def values(self, member: int) -> np.ndarray:
        """A column of the matrix of values."""
        return self._values[:, member]

    def row(self, member: int) -> np.ndarray:
        """The centre."""
        return self.centres[member]

    @staticmethod
    def evaluate(rows: np.ndarray, X: np.ndarray, bandwidth: float) -> np.ndarray:
        """Values of bumps with these centres."""
        with np.errstate(over="ignore"):  # far items, of which a bump is zero
            return np.exp(cdist(X, rows, "sqeuclidean") / (-2.0 * bandwidth))


def _low_rank_factor(square: np.ndarray) -> np.ndarray | None:
    """L of few columns with LL' equal to a positive semidefinite matrix, if there is one."""
    factor = None
    for count in (_MANY, len(square)):
        some = np.linspace(0, len(square) - 1, count).round().astype(int)
        lower, order, rank, _ = lapack.dpstrf(square[np.ix_(some, some)], tol=_ROUNDING, lower=1)
        if rank > _LOW_RANK:
            return None
        factor = np.empty((count, rank))
        factor[order - 1] = np.tril(lower[:, :rank])
    return factor


class FeatureBumps(WeakLearners):
    """Gaussian bumps of one feature each, centred at observed values.

    Beyond `max_centres` different values of a feature, its centres are spread evenly over its
    observed quantiles; beyond four times as many, the inner products move each item to the mean of
    its bin: the choice of a member is then approximate, its values are not.
    """

    max_centres: ClassVar[int] = 256

    def __init__(
        self,
        X: np.ndarray,
        weight: np.ndarray,
        bandwidth: float,
        max_centres: int | None,
        rng: np.random.Generator,
    ) -> None:
        del rng  # Nothing is drawn: every family is made in the same way.
        most = self.max_centres if max_centres is None else max_centres
        self._X, self._bandwidth = np.asfortranarray(X), bandwidth
        self._codes, self._tables, rows = [], [], []
        for feature, column in enumerate(self._X.T):
            centres = _spread(np.unique(column[weight > 0]), most)
            codes, means = _bins(column, _FINER * most)
            self._codes.append(codes)
            self._tables.append(_bump(means[:, None] - centres, bandwidth))
            rows.append(np.column_stack([np.full(len(centres), float(feature)), centres]))
        self.rows = np.concatenate(rows)
        self.size = len(self.rows)
        squares = (table**2 for table in self._tables)
        counts = (np.bincount(codes, weight) for codes in self._codes)
        self.norms = np.sqrt(np.concatenate([c @ s for c, s in zip(counts, squares, strict=True)]))

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Inner products, through the sums of the vector over bins."""
        parts = zip(self._codes, self._tables, strict=True)
        return np.concatenate([np.bincount(c, vector, len(t)) @ t for c, t in parts])

    def values(self, member: int) -> np.ndarray:
        """The bump at every item itself."""
        feature, centre = self.rows[member]
        return _bump(self._X[:, int(feature)] - centre, self._bandwidth)

    def row(self, member: int) -> np.ndarray:
        """Feature and centre."""
        return self.rows[member]

    @staticmethod
    def evaluate(rows: np.ndarray, X: np.ndarray, bandwidth: float) -> np.ndarray:
        """Values of bumps with these features and centres."""
        return _bump(X[:, rows[:, 0].astype(int)] - rows[:, 1], bandwidth)


class Stumps(WeakLearners):
    """Steps of one feature each, midway between two neighbouring values: 1 above, -1 below."""

    def __init__(
        self,
        X: np.ndarray,
        weight: np.ndarray,
        bandwidth: float,
        max_centres: int | None,
        rng: np.random.Generator,
    ) -> None:
        del bandwidth, max_centres, rng  # A step has no width, and all steps are kept.
        self._codes, self._counts, rows = [], [], []
        for feature, column in enumerate(X.T):
            values = np.unique(column[weight > 0])
            cuts = values[:-1] + 0.5 * np.diff(values)
            # The item at the lower value is below, also where the midpoint rounds down to it.
            self._codes.append(np.searchsorted(cuts, column, side="left"))
            self._counts.append(len(cuts))
            rows.append(np.column_stack([np.full(len(cuts), float(feature)), cuts]))
        self.rows = np.concatenate(rows)
        self._first = np.cumsum([0, *self._counts])
        self.size = len(self.rows)
        self.norms = np.full(self.size, np.sqrt(weight.sum()))

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Inner products, through running sums over each sorted feature."""
        total = vector.sum()
        parts = zip(self._codes, self._counts, strict=True)
        below = [np.cumsum(np.bincount(c, vector, m + 1))[:m] for c, m in parts]
        return total - 2.0 * np.concatenate(below)

    def values(self, member: int) -> np.ndarray:
        """1 above the cut, -1 below."""
        feature = int(self.rows[member, 0])
        return np.where(self._codes[feature] > member - self._first[feature], 1.0, -1.0)

    def row(self, member: int) -> np.ndarray:
        """Feature and cut."""
        return self.rows[member]

    @staticmethod
    def evaluate(rows: np.ndarray, X: np.ndarray, bandwidth: float) -> np.ndarray:
        """Values of steps with these features and cuts."""
        del bandwidth
        return np.where(X[:, rows[:, 0].astype(int)] > rows[:, 1], 1.0, -1.0)


_FAMILIES: dict[str, type[WeakLearners]] = {
    "univariate": FeatureBumps,
    "joint": JointBumps,
    "stump": Stumps,
}


def family(name: str) -> type[WeakLearners]:
    """Return a family of weak learners by its name.

    Parameters
    ----------
    name : {"univariate", "joint", "stump"}
        Bumps of one feature, bumps of all features together, or steps of one feature.

    Returns
    -------
    type
        The class.

    Examples
    --------
    >>> family("stump").__name__
    'Stumps'
    """
    return _FAMILIES[check_choice(name, _FAMILIES, "weak")]


def _bump(distance: np.ndarray, bandwidth: float) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-((distance / np.sqrt(2.0 * bandwidth)) ** 2))


def _spread(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the sorted values, both ends among them."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


def _bins(column: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The bin of every item, and the mean of every bin; one bin a value if there are few."""
    values, codes = np.unique(column, return_inverse=True)
    if len(values) > most:
        codes = codes * most // len(values)
    counts = np.bincount(codes)
    return codes, np.bincount(codes, column) / counts
