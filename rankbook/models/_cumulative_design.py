"""The data of a cumulative link model: items sorted by class, columns in their roles and scaled.

Sorted items make every class a slice, so that no array with an entry for each item and class is
ever formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankbook.solvers.design import thinned_size

__all__ = ["Block", "Design", "Roles", "Standardised"]

_DENSE_BLOCK = 8192
_SPARSE_BLOCK = 65536
# The start is fitted on about this many items a parameter when there are many more of them.
_START_ITEMS = 40
_START_SHARE = 20
# Sums of squares are trusted between this and its inverse.
_TINY = 1e-200


class Roles(NamedTuple):
    """Which columns of X have one coefficient, one a threshold, and a say in the spread."""

    proportional: np.ndarray
    nominal: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class Standardised:
    """Columns divided by their standard deviations, and centred unless they are sparse."""

    x: Any
    mean: np.ndarray
    scale: np.ndarray
    constant: np.ndarray

    def rows(self, index: Any) -> Standardised:
        """Some of the items."""
        part = self.x[index] if sp.issparse(self.x) else np.take(self.x.T, index, axis=1).T
        return replace(self, x=part)

    def columns(self, index: Any) -> Standardised:
        """Some of the columns."""
        return Standardised(
            self.x[:, index], self.mean[index], self.scale[index], self.constant[index]
        )


class Block(NamedTuple):
    """Items of one class: proportional columns, [nominal columns, -1], scale columns."""

    k: int
    x: Any
    w: np.ndarray
    z: np.ndarray
    offset: np.ndarray | None
    weights: np.ndarray | None


@dataclass(frozen=True)
class Design:
    """Items sorted by class; ``edges[k]:edges[k + 1]`` are those of class k.

    `location` are the columns with one coefficient, `nominal` those with one a threshold, `spread`
    those of the scale. `order` gives the items' places in the caller's arrays.
    """

    location: Standardised
    nominal: Standardised
    spread: Standardised
    edges: np.ndarray
    weights: np.ndarray | None
    offset: np.ndarray | None
    order: np.ndarray
    total: float

    @classmethod
    def build(
        cls,
        x: Any,
        codes: np.ndarray,
        n_classes: int,
        weights: np.ndarray | None = None,
        roles: Roles | None = None,
        offset: np.ndarray | None = None,
    ) -> Design:
        """Sort, centre and scale; x itself is left alone."""
        # Small integers are sorted by counting, which is several times faster.
        small = codes.astype(np.uint8 if n_classes <= 256 else np.int64, copy=False)
        order = np.argsort(small, kind="stable")
        edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_classes))])
        weights = None if weights is None else weights[order]
        total = float(len(codes)) if weights is None else float(weights.sum())
        if roles is None:
            none = np.zeros(0, dtype=int)
            roles = Roles(np.arange(x.shape[1]), none, none)
        if sp.issparse(x):
            x = x.tocsr()
            location = _scaled(x[:, roles.proportional][order], weights, total)
        else:
            location = _standardised(x, roles.proportional, order, weights, total)
        parts = []
        for columns in (roles.nominal, roles.scale):
            if sp.issparse(x):
                dense, places = x[:, columns].toarray(), np.arange(len(columns))
            else:
                dense, places = x, columns
            parts.append(_standardised(dense, places, order, weights, total))
        # The column of -1 goes with the thresholds.
        ones = np.full((len(codes), 1), -1.0)
        parts[0] = replace(parts[0], x=np.asfortranarray(np.hstack([parts[0].x, ones])))
        offset = None if offset is None else offset[order]
        return cls(location, parts[0], parts[1], edges, weights, offset, order, total)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.edges) - 1

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.edges[-1])

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Proportional columns, nominal columns, thresholds, scale columns."""
        q = self.nominal.x.shape[1] - 1
        return self.location.x.shape[1], q, self.n_classes - 1, self.spread.x.shape[1]

    @property
    def n_parameters(self) -> int:
        """Coefficients, nominal coefficients, thresholds and scale coefficients."""
        p, q, m, r = self.sizes
        return p + (q + 1) * m + r

    @property
    def units(self) -> np.ndarray:
        """What one standard deviation of a column is worth in the reported parameters."""
        m = self.n_classes - 1
        location, nominal, spread = (
            1.0 / np.where(part.constant & (part.mean != 0.0), np.abs(part.mean), part.scale)
            for part in (self.location, self.nominal, self.spread)
        )
        return np.concatenate([location, np.repeat(nominal, m), np.ones(m), spread])

    @property
    def class_weights(self) -> np.ndarray:
        """Total weight of each class."""
        if self.weights is None:
            return np.diff(self.edges).astype(float)
        return np.add.reduceat(self.weights, self.edges[:-1])

    @property
    def codes(self) -> np.ndarray:
        """Class of each item, in this design's order."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.edges))

    def blocks(self) -> Iterator[tuple[slice, Block]]:
        """Yield rows and the block that they are, at most a block's length each."""
        size = _SPARSE_BLOCK if sp.issparse(self.location.x) else _DENSE_BLOCK
        for k in range(self.n_classes):
            for a in range(self.edges[k], self.edges[k + 1], size):
                rows = slice(a, min(a + size, self.edges[k + 1]))
                yield (
                    rows,
                    Block(
                        k,
                        self.location.x[rows],
                        self.nominal.x[rows],
                        self.spread.x[rows],
                        None if self.offset is None else self.offset[rows],
                        None if self.weights is None else self.weights[rows],
                    ),
                )

    def thinned(self, n_items: int | None = None) -> Design:
        """Some items a parameter, evenly from each class and at least one of it."""
        n = self.n_items
        if n_items is None:
            n_items = thinned_size(n, self.n_parameters + 1, _START_ITEMS, _START_SHARE)
        step = max(1, n // n_items)
        kept = [np.arange(a, b, step) for a, b in zip(self.edges, self.edges[1:], strict=False)]
        edges = np.concatenate([[0], np.cumsum([len(k) for k in kept])])
        rows = np.concatenate(kept)
        weights = None if self.weights is None else self.weights[rows]
        return Design(
            self.location.rows(rows),
            self.nominal.rows(rows),
            self.spread.rows(rows),
            edges,
            weights,
            None if self.offset is None else self.offset[rows],
            self.order[rows],
            float(len(rows)) if weights is None else float(weights.sum()),
        )

    def keeping(self, location: np.ndarray, nominal: np.ndarray, spread: Any = None) -> Design:
        """Only some columns, given by their places in each role (spread: None for all)."""
        part = self.nominal.columns(nominal)
        ones = self.nominal.x[:, -1:]
        part = replace(part, x=np.asfortranarray(np.hstack([part.x, ones])))
        return replace(
            self,
            location=self.location.columns(location),
            nominal=part,
            spread=self.spread if spread is None else self.spread.columns(spread),
        )

    def with_raw_scale(self) -> Design:
        """The scale columns without their centring: parameters are then linear in the raw ones."""
        raw = self.spread.x + self.spread.mean / self.spread.scale
        spread = replace(self.spread, x=raw, mean=np.zeros_like(self.spread.mean))
        return replace(self, spread=spread)

    def jacobian(self) -> np.ndarray:
        """Matrix from this design's parameters to the reported ones.

        Here: coefficients; for each threshold its nominal coefficients and itself; scale. Reported:
        coefficients; for each nominal column its coefficients; thresholds; scale; in the columns'
        own units.
        """
        p, q, m, r = self.sizes
        jacobian = np.zeros((self.n_parameters, self.n_parameters))
        jacobian[range(p), range(p)] = 1.0 / self.location.scale
        first = p + q * m
        for k in range(m):
            here = p + k * (q + 1)
            for j in range(q):
                jacobian[p + j * m + k, here + j] = 1.0 / self.nominal.scale[j]
                jacobian[first + k, here + j] = self.nominal.mean[j] / self.nominal.scale[j]
            jacobian[first + k, here + q] = 1.0
            jacobian[first + k, :p] = self.location.mean / self.location.scale
        last = first + m + np.arange(r)
        jacobian[last, last] = 1.0 / self.spread.scale
        return jacobian


def _means(x: Any, weights: np.ndarray | None, total: float) -> np.ndarray:
    sums = x.sum(axis=0) if weights is None else x.T @ weights
    return np.asarray(sums).ravel() / total


def _scaled(x: Any, weights: np.ndarray | None, total: float) -> Standardised:
    """Sparse columns, scaled only."""
    x = sp.csr_array(x)
    size = np.asarray(abs(x).max(axis=0).todense()).ravel() if x.shape[0] else np.ones(x.shape[1])
    size = np.where(size > 0.0, size, 1.0)
    x = sp.csr_array(x @ sp.diags_array(1.0 / size, format="csr"))
    center = _means(x, weights, total)
    deviation = np.sqrt(np.maximum(_means(x * x, weights, total) - center**2, 0.0))
    # Without centring the variance is a difference, good to half the digits.
    constant = deviation <= 1e-7 * np.abs(center)
    deviation = np.where(constant, 1.0, deviation)
    x = sp.csr_array(x @ sp.diags_array(1.0 / deviation, format="csr"))
    return Standardised(x, np.zeros_like(center), deviation * size, constant)


def _standardised(
    x: np.ndarray,
    columns: np.ndarray,
    order: np.ndarray,
    weights: np.ndarray | None,
    total: float,
) -> Standardised:
    """Sorted, centred and scaled copy; mean, scale, and which columns are constant.

    The copy has whole columns in memory: each is finished while it is in the cache, and scaling
    rows, as the Hessian does, runs along them.
    """
    p = len(columns)
    copy = np.empty((len(order), p), order="F")
    mean, scale = np.zeros(p), np.ones(p)
    constant = np.zeros(p, dtype=bool)
    for j in range(p):
        column = np.take(x[:, columns[j]], order, out=copy[:, j], mode="clip")
        unit = 1.0
        center, squares = _centre(column, weights, total)
        if not _TINY < squares < 1.0 / _TINY:
            # Squares left the range of floats, or the column is constant: in units of its size.
            np.take(x[:, columns[j]], order, out=column, mode="clip")
            unit = float(np.abs(column).max()) or 1.0
            column /= unit
            center, squares = _centre(column, weights, total)
        deviation = np.sqrt(squares / total)
        mean[j] = center * unit
        constant[j] = deviation <= 1e-10 * abs(center)
        if constant[j]:
            column[:] = 0.0
        else:
            scale[j] = deviation * unit
            column *= 1.0 / deviation
    return Standardised(copy, mean, scale, constant)


def _centre(column: np.ndarray, weights: np.ndarray | None, total: float) -> tuple[float, float]:
    """Subtract the mean; return it and the sum of squares about it."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = float(column.sum() if weights is None else column @ weights) / total
        column -= center
        return center, float(column @ (column if weights is None else column * weights))
