"""The first pass: what the rows are, checked, and what all blocks must agree on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbook._arrays import as_float, require_finite
from rankbook._pair_counts import pair_weight
from rankbook._validation import check_labels, check_qid, check_weights
from rankbook.distributed._blocks import Blocks
from rankbook.exceptions import SplitQueryError
from rankbook.solvers.design import power_of_two

__all__ = ["Columns", "Plan", "Rows", "Survey", "read", "survey"]

# A column whose deviation is a smaller share of its mean is constant.
_CONSTANT = 1e-10


@dataclass(frozen=True)
class Survey:
    """Sums over some blocks; weights are relative to `largest`.

    Attributes
    ----------
    n : int
        Number of rows.
    largest, total : float
        Largest weight, and the sum of weights.
    values, masses : ndarrays
        Labels that occur with positive weight, block by block, and their weights.
    named : ndarray
        Labels that occur with any weight.
    different : float
        Weight of the pairs within queries with different labels.
    queries : list of ndarrays
        The queries of each block.
    mean, squares : ndarrays of shape (p,)
        Weighted mean of each column, and the sum of squares about it.
    digest : list of bytes
        Fingerprints of the blocks' labels and weights.
    """

    n: int
    largest: float
    total: float
    values: np.ndarray
    masses: np.ndarray
    named: np.ndarray
    different: float
    queries: list[np.ndarray]
    mean: np.ndarray
    squares: np.ndarray
    digest: list[bytes]


def _survey_block(
    labels: Any, p: int, X: Any, y: Any, qid: Any = None, sample_weight: Any = None
) -> Survey:
    X, codes, classes = _check_block(X, y, labels, p)
    n = len(X)
    weights = np.ones(n)
    if sample_weight is not None:
        weights = as_float(sample_weight, "sample_weight")
        # All zero in a block is no error: in the sum of blocks it is.
        if weights.any() or len(weights) != n:
            check_weights(weights, n)
    largest = float(weights.max())
    digest = hashlib.sha256(repr(classes.tolist()).encode() + codes.tobytes())
    digest.update(b"none" if sample_weight is None else weights.tobytes())
    weights = weights / largest if largest > 0 else weights
    mass = np.bincount(codes, weights, len(classes))
    query = None if qid is None else check_qid(qid, n)
    total = float(weights.sum())
    mean = weights @ X / total if total > 0 else np.zeros(X.shape[1])
    return Survey(
        n=n,
        largest=largest,
        total=total,
        values=classes[mass > 0],
        masses=mass[mass > 0],
        named=classes[np.bincount(codes, minlength=len(classes)) > 0],
        different=float(pair_weight(codes, weights, query).sum()) if largest > 0 else 0.0,
        queries=[] if qid is None else [np.unique(np.asarray(qid))],
        mean=mean,
        squares=weights @ (X - mean) ** 2,
        digest=[digest.digest()],
    )


def _check_block(X: Any, y: Any, labels: Any, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not isinstance(X, np.ndarray):
        raise TypeError(f"X must be made of dense blocks, got one of {type(X).__name__}")
    X = as_float(X, "X")
    require_finite(X, "X")
    if X.shape[1:] != (p,):
        raise ValueError(f"X must have {p} columns, as its chunks say, got a block of {X.shape}")
    codes, classes = check_labels(y, labels=labels, min_classes=1)
    if len(codes) != len(X):
        raise ValueError(
            f"X and y must have the same length, got {len(X)} for X and {len(codes)} for y: "
            "their chunks promise other sizes than their blocks have"
        )
    return X, codes, classes


def _merge(parts: list[Survey]) -> Survey:
    largest = max(part.largest for part in parts)
    scale = [part.largest / largest if largest > 0 else 0.0 for part in parts]
    totals = np.array([s * part.total for s, part in zip(scale, parts, strict=True)])
    total = float(totals.sum())
    means = np.stack([part.mean for part in parts])
    mean = totals @ means / total if total > 0 else means[0]
    squares = sum(s * part.squares for s, part in zip(scale, parts, strict=True))
    return Survey(
        n=sum(part.n for part in parts),
        largest=largest,
        total=total,
        values=np.concatenate([part.values for part in parts]),
        masses=np.concatenate([s * part.masses for s, part in zip(scale, parts, strict=True)]),
        named=np.concatenate([part.named for part in parts]),
        different=sum(s * s * part.different for s, part in zip(scale, parts, strict=True)),
        queries=[query for part in parts for query in part.queries],
        mean=mean,
        squares=squares + totals @ (means - mean) ** 2,
        digest=[digest for part in parts for digest in part.digest],
    )


def survey(blocks: Blocks, labels: Any, p: int) -> Survey:
    """Check all rows of p columns in one pass; `labels` as an estimator has them."""
    found = blocks.reduce(_survey_block, _merge, labels, p)
    if not found.largest > 0:
        raise ValueError("sample_weight must have a positive sum, got weights that are all zero")
    if not (np.isfinite(found.squares).all() and np.isfinite(found.total)):
        raise ValueError("X must hold columns whose squares, summed, are within the floats' range")
    require_whole_queries(found.queries)
    return found


def require_whole_queries(queries: list[np.ndarray]) -> None:
    """Raise if a query occurs in two blocks."""
    if len(queries) < 2:
        return
    every = np.concatenate(queries)
    distinct, counts = np.unique(every, return_counts=True)
    if (counts > 1).any():
        split = distinct[counts > 1][0]
        where = [i for i, block in enumerate(queries) if (block == split).any()]
        raise SplitQueryError(
            f"qid must keep each query in one block, got query {split.item()!r} in blocks "
            f"{where[:4]} ({np.count_nonzero(counts > 1)} such queries); call "
            "X, y, qid, *rest = rankbook.distributed.rechunk_by_query(X, y, qid) first"
        )


@dataclass(frozen=True)
class Columns:
    """How columns are shifted and scaled (by powers of two), and which are constant."""

    shift: np.ndarray
    scale: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, found: Survey, ridge: float = 0.0, *, centred: bool = True) -> Columns:
        """Choose by the survey; a column far smaller than the ridge's root is not blown up."""
        mean, deviation = found.mean, np.sqrt(found.squares / found.total)
        constant = deviation <= _CONSTANT * np.abs(mean)
        if not centred:
            size = np.hypot(np.abs(mean), deviation)
            scale = power_of_two(np.hypot(size, ridge**0.5))
            return cls(np.zeros_like(mean), scale, np.zeros_like(constant))
        scale = power_of_two(np.hypot(np.where(constant, 0.0, deviation), ridge**0.5))
        return cls(mean, scale, constant)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """A scaled copy; constant columns are exactly zero."""
        Z = (X - self.shift) / self.scale
        Z[:, self.constant] = 0.0
        return Z


@dataclass(frozen=True)
class Plan:
    """What every task needs to read a block: classes in order, columns, the unit of weights."""

    classes: tuple
    columns: Columns
    unit: float


@dataclass(frozen=True)
class Rows:
    """The rows of positive weight of a block: scaled, encoded."""

    Z: np.ndarray
    codes: np.ndarray
    query: np.ndarray | None
    weights: np.ndarray | None

    @property
    def w(self) -> np.ndarray:
        """Weights as an array."""
        return np.ones(len(self.codes)) if self.weights is None else self.weights


def read(plan: Plan, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Rows | None:
    """A block as its objective wants it; None if no row has a positive weight."""
    X = np.asarray(X, dtype=float)
    y, weights = np.asarray(y), None
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=float) / plan.unit
        kept = weights > 0
        if not kept.any():
            return None
        if not kept.all():
            X, y, weights = X[kept], y[kept], weights[kept]
            qid = None if qid is None else np.asarray(qid)[kept]
    # A class without any weight may not be among those of the plan: its rows are gone by now.
    codes = check_labels(y, labels=plan.classes, min_classes=1)[0]
    query = None if qid is None else check_qid(qid, len(codes))
    return Rows(plan.columns.apply(X), codes, query, weights)
