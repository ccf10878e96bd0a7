"""Edge weights of graphs: checked, and kept exact where they come exact."""

from __future__ import annotations

from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from rankbook._validation import check_scalar, check_square

__all__ = ["check_edge_weights", "is_exact", "tolerance"]

# Integers up to here are exact as floats, and sums of a whole matrix of them fit into int64.
_SAFE_INTEGER = 2**53


def is_exact(array: np.ndarray) -> bool:
    """Say whether the weights are integers or Fractions."""
    return array.dtype.kind in "iO"


def check_edge_weights(a: Any, name: str = "a") -> np.ndarray:
    """Return checked weights: int64 or Fractions where they are exact, else float."""
    if hasattr(a, "weights"):
        return a.weights
    try:
        array = np.asarray(a)
    except ValueError:
        raise ValueError(f"{name} must be a square matrix, got rows of unequal length") from None
    as_float = check_square(array, name)
    if np.diagonal(as_float).any():
        node = int(np.flatnonzero(np.diagonal(as_float))[0])
        raise ValueError(f"{name} must not have self-loops, got {name}[{node}, {node}] != 0")
    if array.dtype.kind in "biu" and np.abs(as_float).max() < _SAFE_INTEGER:
        return array.astype(np.int64)
    if array.dtype.kind in "iu" or (
        array.dtype.kind == "O" and all(isinstance(w, Rational) for w in array.flat)
    ):
        exact = np.empty(array.shape, dtype=object)
        exact.flat = [Fraction(w) for w in array.astype(object).flat]
        return exact
    return as_float


def tolerance(a: np.ndarray, tol: float) -> float:
    """Return the absolute tolerance of comparisons: none for exact weights."""
    tol = check_scalar(tol, "tol", low=0.0)
    return 0 if is_exact(a) else tol * max(float(np.abs(a).max(initial=0.0)), np.finfo(float).tiny)
