"""Edge weights of graphs: checked, and kept exact where they come exact."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from rankbook._arrays import as_array
from rankbook._validation import check_scalar, check_square

__all__ = ["check_edge_weights", "is_exact", "matrix_of_edges", "plain", "tolerance"]

# Integers below are exact as floats; a matrix that adds up to less than the second fits in int64.
_SAFE_INTEGER = 2**53
_SAFE_SUM = 2**62


def is_exact(array: np.ndarray) -> bool:
    """Say whether the weights are integers or Fractions."""
    return array.dtype.kind in "iO"


def check_edge_weights(a: Any, name: str = "a") -> np.ndarray:
    """Return checked weights: int64 or Fractions where they are exact, else float."""
    if hasattr(a, "weights"):
        return a.weights
    if isinstance(a, np.ma.MaskedArray):
        a = as_array(a, name)
    try:
        array = np.asarray(a)
    except ValueError:
        raise ValueError(f"{name} must be a square matrix, got rows of unequal length") from None
    as_float = check_square(array, name)
    if np.diagonal(as_float).any():
        node = int(np.flatnonzero(np.diagonal(as_float))[0])
        raise ValueError(f"{name} must not have self-loops, got {name}[{node}, {node}] != 0")
    safe = as_float.max() < _SAFE_INTEGER and as_float.sum() < _SAFE_SUM
    if array.dtype.kind in "biu" and safe:
        return array.astype(np.int64)
    if array.dtype.kind in "iu" or (
        array.dtype.kind == "O" and all(isinstance(w, Rational) for w in array.flat)
    ):
        exact = np.empty(array.size, dtype=object)
        exact[:] = [Fraction(w) for w in array.ravel().tolist()]
        return exact.reshape(array.shape)
    return as_float


def matrix_of_edges(n_nodes: Any, edges: Any) -> list[list[Any]]:
    """Return the matrix of a mapping from pairs (i, j) to weights, the weights as they come."""
    n_nodes = check_scalar(n_nodes, "n_nodes", low=1, integer=True)
    if not isinstance(edges, Mapping):
        raise TypeError(f"edges must map pairs (i, j) to weights, got {edges!r}")
    weights: list[list[Any]] = [[0] * n_nodes for _ in range(n_nodes)]
    for ends, weight in edges.items():
        if np.shape(ends) != (2,) or np.asarray(ends).dtype.kind not in "iu":
            raise TypeError(f"edges must map pairs (i, j) to weights, got the key {ends!r}")
        i, j = (int(v) for v in ends)
        if not (0 <= i < n_nodes and 0 <= j < n_nodes):
            raise ValueError(f"edges must join nodes 0..{n_nodes - 1}, got {(i, j)}")
        weights[i][j] = weight
    return weights


def tolerance(a: np.ndarray, tol: float) -> float:
    """Return the absolute tolerance of comparisons: none for exact weights."""
    tol = check_scalar(tol, "tol", low=0.0)
    return 0 if is_exact(a) else tol * max(float(np.abs(a).max(initial=0.0)), np.finfo(float).tiny)


def plain(total: Any) -> int | Fraction | float:
    """Return a numpy number as Python's own."""
    return total.item() if isinstance(total, np.generic) else total
