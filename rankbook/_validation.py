"""Input checks, in one place, so that every message has one form.

A check returns the clean array and raises `ValueError` or `TypeError` with a message that names
the argument, says what was given and what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = [
    "check_choice",
    "check_costs",
    "check_labels",
    "check_posterior",
    "check_probabilities",
    "check_qid",
    "check_rng",
    "check_same_length",
    "check_scalar",
    "check_scores",
    "check_square",
    "check_thresholds",
    "check_ties",
    "check_weights",
]

# Wide enough for probabilities rounded to single precision, narrow enough to catch errors.
_SUM_TOLERANCE = 1e-6
# Integer labels in a range this small are counted instead of sorted.
_COUNTABLE_RANGE = 4096


def _as_float(values: Any, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind in "OSUVMm" or np.iscomplexobj(array):
        if array.dtype.kind == "O":
            try:
                return array.astype(float)
            except (TypeError, ValueError):
                pass
        raise TypeError(f"{name} must be real numbers, got an array of dtype {array.dtype}")
    return array.astype(float, copy=False)


def _require_finite(array: np.ndarray, name: str) -> None:
    # The sum is finite only if every entry is (up to overflow): one cheap pass for the usual case.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not np.isfinite(total) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        at = where[0] if where.size == 1 else tuple(int(i) for i in where)
        value = array[tuple(where)]
        raise ValueError(f"{name} must be finite, got {value} at index {at}")


def _vector(values: Any, name: str) -> np.ndarray:
    array = _as_float(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    _require_finite(array, name)
    return array


def check_same_length(n: int, m: int, name_a: str, name_b: str) -> None:
    """Raise unless two arguments have equally many entries."""
    if n != m:
        raise ValueError(
            f"{name_a} and {name_b} must have the same length, got {n} for {name_a} "
            f"and {m} for {name_b}"
        )


def check_scores(scores: Any, name: str = "scores") -> np.ndarray:
    """Return scores as a finite one-dimensional float array."""
    return _vector(scores, name)


def _sorted_codes(y: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Encode labels by their order; small integers are counted, everything else is sorted."""
    if y.dtype.kind == "b":
        codes, classes = _sorted_codes(y.view(np.uint8), name)
        return codes, classes.astype(bool)
    if y.dtype.kind in "iu":
        low, high = int(y.min()), int(y.max())
        if high - low < _COUNTABLE_RANGE and high <= np.iinfo(np.intp).max:
            # Widen before subtracting: an int8 range can exceed an int8.
            offsets = y.astype(np.intp, copy=False) - low
            present = np.bincount(offsets, minlength=high - low + 1) > 0
            classes = np.flatnonzero(present) + low
            if present.all():
                return offsets, classes.astype(y.dtype)
            lookup = np.cumsum(present) - 1
            return lookup[offsets], classes.astype(y.dtype)
    if y.dtype.kind == "f" and np.abs(y).max() < _COUNTABLE_RANGE:
        whole = y.astype(np.int64)
        if np.array_equal(whole, y):
            codes, classes = _sorted_codes(whole, name)
            return codes, classes.astype(y.dtype)
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"{name} must hold labels that can be sorted: {error}") from None
    return codes.astype(np.intp, copy=False), classes


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, Real) and bool(np.isnan(value)))


def _clean_labels(y: Any, name: str) -> np.ndarray:
    array = np.asarray(y)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array.dtype.kind == "f":
        _require_finite(array, name)
    elif array.dtype.kind == "O" and any(_is_missing(v) for v in array):
        raise ValueError(f"{name} must not hold missing labels (None or NaN)")
    elif array.dtype.kind in "cMm":
        raise TypeError(f"{name} must hold ordered labels, got dtype {array.dtype}")
    return array


def check_labels(
    y: Any,
    *,
    labels: Iterable | None = None,
    min_classes: int = 2,
    n: int | None = None,
    name: str = "y",
) -> tuple[np.ndarray, np.ndarray]:
    """Encode labels 0..K-1 in sorted order; return the codes and the K classes.

    With `labels`, the classes are those named there (sorted), whether or not `y` holds them all.
    """
    array = _clean_labels(y, name)
    if n is not None:
        check_same_length(array.size, n, name, "scores")
    codes, classes = _sorted_codes(array, name)
    if labels is not None:
        named = np.unique(np.asarray(list(labels)))
        position = np.searchsorted(named, classes)
        known = (position < named.size) & (named[np.minimum(position, named.size - 1)] == classes)
        if not np.all(known):
            raise ValueError(f"{name} holds {classes[~known].tolist()}, not among labels")
        codes, classes = position[codes], named
    if classes.size < min_classes:
        raise ValueError(
            f"{name} must hold at least {min_classes} classes, got {classes.size}: "
            f"{classes.tolist()}"
        )
    return codes, classes


def check_weights(sample_weight: Any, n: int, name: str = "sample_weight") -> np.ndarray | None:
    """Return non-negative weights with a positive sum, or None for equal weights."""
    if sample_weight is None:
        return None
    weights = _vector(sample_weight, name)
    check_same_length(weights.size, n, name, "y")
    if (weights < 0).any():
        raise ValueError(f"{name} must not be negative, got {weights.min()}")
    if weights.sum() <= 0:
        raise ValueError(f"{name} must have a positive sum, got weights that are all zero")
    return weights


def check_qid(qid: Any, n: int, name: str = "qid") -> np.ndarray | None:
    """Return query identifiers encoded 0..Q-1 in sorted order, or None."""
    if qid is None:
        return None
    array = _clean_labels(qid, name)
    check_same_length(array.size, n, name, "y")
    return _sorted_codes(array, name)[0]


def check_costs(costs: Any, n_classes: int, name: str = "costs") -> np.ndarray:
    """Return a (K, K) cost matrix, zero on and below the diagonal and never negative.

    None means constant costs; "constant", "linear" and "dcg" name the usual ones.
    """
    if costs is None or isinstance(costs, str):
        kind = check_choice(costs or "constant", ("constant", "linear", "dcg"), name)
        grades = np.arange(1, n_classes + 1, dtype=float)
        grades = {"constant": None, "linear": grades, "dcg": 2.0**grades}[kind]
        if grades is None:
            return np.triu(np.ones((n_classes, n_classes)), 1)
        return np.triu(grades[None, :] - grades[:, None], 1)
    array = _as_float(costs, name)
    if array.shape != (n_classes, n_classes):
        raise ValueError(
            f"{name} must have shape ({n_classes}, {n_classes}) for {n_classes} classes, "
            f"got {array.shape}"
        )
    _require_finite(array, name)
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    if np.tril(array).any():
        raise ValueError(
            f"{name}[j, i] is the cost of class j above class i for j < i: "
            "entries on and below the diagonal must be zero"
        )
    return array


def check_probabilities(
    probabilities: Any, n: int | None = None, name: str = "probabilities"
) -> np.ndarray:
    """Return a vector of non-negative numbers that sum to one."""
    array = _vector(probabilities, name)
    if n is not None and array.size != n:
        raise ValueError(f"{name} must have length {n}, got {array.size}")
    return _require_simplex(array, name)


def _require_simplex(array: np.ndarray, name: str) -> np.ndarray:
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    total = array.sum(axis=-1)
    worst = np.abs(total - 1).max()
    if worst > _SUM_TOLERANCE:
        bad = np.ravel(total)[np.argmax(np.abs(np.ravel(total) - 1))]
        raise ValueError(f"{name} must sum to one, got a sum of {bad:.6g}")
    return array


def check_posterior(posterior: Any, name: str = "posterior") -> np.ndarray:
    """Return P(Y = k | x) as a float array (..., K) whose last axis sums to one."""
    array = _as_float(posterior, name)
    if array.ndim < 1 or array.size == 0 or array.shape[-1] < 2:
        raise ValueError(
            f"{name} must have shape (..., K) with K >= 2 classes, got shape {array.shape}"
        )
    _require_finite(array, name)
    return _require_simplex(array, name)


def check_thresholds(
    thresholds: Any, *, ordered: bool = True, n: int | None = None, name: str = "thresholds"
) -> np.ndarray:
    """Return thresholds theta_1, ..., theta_{K-1}, in increasing order unless told otherwise."""
    array = _vector(thresholds, name)
    if n is not None and array.size != n:
        raise ValueError(f"{name} must have length K - 1 = {n}, got {array.size}")
    if ordered and (np.diff(array) < 0).any():
        raise ValueError(f"{name} must be in increasing order, got {array.tolist()}")
    return array


def check_ties(ties: Any, name: str = "ties") -> float:
    """Return what a tied pair counts: a number from 0 (free) to 1 (an error)."""
    return check_scalar(ties, name, low=0.0, high=1.0)


def check_rng(rng: Any, name: str = "rng") -> np.random.Generator:
    """Return a Generator from a seed, a Generator or None."""
    if isinstance(rng, np.random.RandomState):
        return np.random.Generator(rng._bit_generator)
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be None, a non-negative integer seed or a numpy Generator, got {rng!r}"
        ) from None


def check_square(a: Any, name: str = "a", *, nonnegative: bool = True) -> np.ndarray:
    """Return a square finite float matrix."""
    array = _as_float(a, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    _require_finite(array, name)
    if nonnegative and (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    return array


def check_choice(value: Any, choices: Iterable[str], name: str) -> str:
    """Return `value` if it is one of the choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {wanted}, got {value!r}")
    return value


def check_scalar(
    value: Any,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
    strict_low: bool = False,
    integer: bool = False,
) -> Any:
    """Return a finite number (an int with `integer`) within the given bounds."""
    kind = Integral if integer else Real
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        wanted = "an integer" if integer else "a real number"
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    value = int(value) if integer else float(value)
    too_low = low is not None and (value <= low if strict_low else value < low)
    if not np.isfinite(value) or too_low or (high is not None and value > high):
        below = "" if low is None else f"{'greater than' if strict_low else 'at least'} {low}"
        above = "" if high is None else f"at most {high}"
        bounds = " and ".join(part for part in (below, above) if part) or "finite"
        raise ValueError(f"{name} must be {bounds}, got {value}")
    return value
