"""Input checks, in one place, so that every message has one form.

A check returns the clean array and raises `ValueError` or `TypeError` with a message that names
the argument, says what was given and what is wanted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankbook._arrays import as_array, as_float, as_vector, require_finite, require_vector
from rankbook._labels import encode_labels, encode_queries, scores_in_order
from rankbook._room import require_room

__all__ = [
    "FEW_CLASSES",
    "check_choice",
    "check_costs",
    "check_flag",
    "check_group",
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
    "check_vector",
    "check_weights",
    "cost_scale",
]

# Where labels of one class usually come from.
FEW_CLASSES = (
    " (to cross-validate on sorted labels use cv=StratifiedKFold(), or GroupKFold() with queries)"
)
# Wide enough for probabilities rounded to single precision, narrow enough to catch errors.
_SUM_TOLERANCE = 1e-6
# Weights within this factor of one have products that are ordinary numbers.
_MODERATE = 1e100


def check_same_length(n: int, m: int, name_a: str, name_b: str) -> None:
    """Raise unless two arguments have equally many entries."""
    if n != m:
        raise ValueError(
            f"{name_a} and {name_b} must have the same length, got {n} for {name_a} "
            f"and {m} for {name_b}"
        )


def check_vector(values: Any, name: str) -> np.ndarray:
    """Return a finite one-dimensional float array, not empty."""
    return as_vector(values, name)


def check_scores(scores: Any, name: str = "scores") -> np.ndarray:
    """Return scores that are only compared with each other, as a finite float vector.

    Integers that floats would round, Fractions and Decimals are replaced by their ranks, so that
    the order is that of the numbers given.
    """
    return scores_in_order(scores, name)


def check_labels(
    y: Any,
    *,
    labels: Iterable | None = None,
    min_classes: int = 2,
    n: int | None = None,
    name: str = "y",
) -> tuple[np.ndarray, np.ndarray]:
    """Encode labels 0..K-1 in their declared order; return the codes and the K classes.

    Numbers (booleans, Fractions and Decimals too) are ordered by value, an ordered Categorical by
    its categories, everything else by `labels`, which lists all classes, lowest first. Classes
    that are named there, or are categories, count whether or not `y` holds them.
    """
    codes, classes = encode_labels(y, labels, name)
    if n is not None:
        check_same_length(codes.size, n, name, "scores")
    if classes.size < min_classes:
        raise ValueError(
            f"{name} must hold at least {min_classes} classes, got {classes.size}: "
            f"{classes.tolist()}{FEW_CLASSES}"
        )
    return codes, classes


def check_weights(
    sample_weight: Any, n: int, name: str = "sample_weight", *, relative: bool = False
) -> np.ndarray | None:
    """Return non-negative weights with a positive sum, or None for equal weights.

    `relative` says that only their ratios count: weights so large or small that products of them
    would leave the range of floats are then multiplied by a power of two.
    """
    if sample_weight is None:
        return None
    weights = as_vector(sample_weight, name)
    check_same_length(weights.size, n, name, "y")
    if (weights < 0).any():
        raise ValueError(f"{name} must not be negative, got {weights.min()}")
    if not weights.any():
        raise ValueError(f"{name} must have a positive sum, got weights that are all zero")
    largest = weights.max()
    if relative and not 1 / _MODERATE < largest < _MODERATE:
        with np.errstate(under="ignore"):
            return np.ldexp(weights, -np.frexp(largest)[1])
    return weights


def check_qid(qid: Any, n: int, name: str = "qid", *, group: Any = None) -> np.ndarray | None:
    """Return query identifiers encoded 0..Q-1 in sorted order, or None.

    `group`, the sizes of consecutive queries, may be given in place of identifiers.
    """
    if group is not None:
        if qid is not None:
            raise ValueError(f"{name} and group say the same in two ways: give one of them")
        return check_group(group, n)
    if qid is None:
        return None
    codes = encode_queries(qid, name)
    check_same_length(codes.size, n, name, "y")
    return codes


def check_group(group: Any, n: int | None = None, name: str = "group") -> np.ndarray:
    """Return the query 0..Q-1 of every item from the sizes of consecutive queries."""
    sizes = as_array(group, name)
    require_vector(sizes, name)
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold the queries' sizes as integers, got {sizes.dtype}")
    if sizes.min() < 1:
        raise ValueError(f"{name} must hold sizes of at least 1, got {sizes.min()}")
    total = sum(sizes.tolist())
    if n is not None and total != n:
        raise ValueError(f"{name} must sum to the number of items, {n}, got {total}")
    require_room({f"sum({name})": total}, 2.0 * total)
    return np.repeat(np.arange(sizes.size), sizes.astype(np.intp))


def cost_scale(kind: str, n_classes: int, name: str = "costs") -> np.ndarray:
    """Return the numbers whose differences are the "linear" or the "dcg" costs."""
    grades = np.arange(1, n_classes + 1, dtype=float)
    if kind == "linear":
        return grades
    if n_classes >= np.finfo(float).maxexp:
        raise ValueError(f"{name} 'dcg' overflow for more than 1023 classes, got {n_classes}")
    return 2.0**grades


def check_costs(costs: Any, n_classes: int, name: str = "costs") -> np.ndarray:
    """Return a (K, K) cost matrix, zero on and below the diagonal and never negative.

    None means constant costs; "constant", "linear" and "dcg" name the usual ones.
    """
    if costs is None or isinstance(costs, str):
        kind = check_choice(costs or "constant", ("constant", "linear", "dcg"), name)
        if kind == "constant":
            return np.triu(np.ones((n_classes, n_classes)), 1)
        scale = cost_scale(kind, n_classes, name)
        return np.triu(scale[None, :] - scale[:, None], 1)
    array = as_float(costs, name)
    if array.shape != (n_classes, n_classes):
        raise ValueError(
            f"{name} must have shape ({n_classes}, {n_classes}) for {n_classes} classes, "
            f"got {array.shape}"
        )
    require_finite(array, name)
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
    array = as_vector(probabilities, name)
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
    array = as_float(posterior, name)
    if array.ndim < 1 or array.size == 0 or array.shape[-1] < 2:
        raise ValueError(
            f"{name} must have shape (..., K) with K >= 2 classes, got shape {array.shape}"
        )
    require_finite(array, name)
    return _require_simplex(array, name)


def check_thresholds(
    thresholds: Any, *, ordered: bool = True, n: int | None = None, name: str = "thresholds"
) -> np.ndarray:
    """Return thresholds theta_1, ..., theta_{K-1}, in increasing order unless told otherwise."""
    array = as_vector(thresholds, name)
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
    array = as_float(a, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    require_finite(array, name)
    if nonnegative and (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min()}")
    return array


def check_flag(value: Any, name: str) -> bool:
    """Return True or False; nothing else is taken for either."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


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
    try:
        value = (int if integer else float)(value)  # type: ignore[call-overload]
    except OverflowError:
        raise ValueError(f"{name} must be within the range of floats, got {value!r}") from None
    if integer and abs(value) > sys.maxsize:
        raise ValueError(f"{name} must be within the range of indices, got {value}")
    too_low = low is not None and (value <= low if strict_low else value < low)
    if not np.isfinite(value) or too_low or (high is not None and value > high):
        below = "" if low is None else f"{'greater than' if strict_low else 'at least'} {low}"
        above = "" if high is None else f"at most {high}"
        bounds = " and ".join(part for part in (below, above) if part) or "finite"
        raise ValueError(f"{name} must be {bounds}, got {value}")
    return value
