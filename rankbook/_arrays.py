"""Arrays out of what users pass, with messages that name the argument.

Nothing is lost on the way in silence: masked entries and ragged lists are refused, and a list of
integers that numpy would round to floats is kept as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "as_array",
    "as_float",
    "as_vector",
    "require_finite",
    "require_normal",
    "require_vector",
]

# Integers up to here are floats without rounding.
_EXACT_INTEGERS = 2.0**53
# Python and numpy would make floats of these.
_NO_NUMBERS = (str, bytes, complex, np.complexfloating)
# A number of about one, divided by this, is within the range of floats.
_SMALLEST = 1e-305
_FEW_ROWS = 64


def as_array(values: Any, name: str) -> np.ndarray:
    """Return values as an array whose entries are those given, as objects where need be."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(f"{name} must not hold masked entries: drop or fill them")
        values = values.data
    if isinstance(values, (list, tuple)) and any(v is np.ma.masked for v in values):
        raise ValueError(f"{name} must not hold masked entries: drop or fill them")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must be an array or a list of equally long lists, got {_short(values)}"
        ) from None
    if isinstance(values, (list, tuple)) and _is_altered(values, array):
        array = np.asarray(values, dtype=object)
    return array


def _is_altered(values: list | tuple, array: np.ndarray) -> bool:
    """Whether numpy rounded large integers, or wrote numbers as text."""
    if array.ndim != 1 or array.size == 0:
        return False
    if array.dtype.kind == "f":
        return bool(np.abs(array).max() >= _EXACT_INTEGERS) and bool(np.isfinite(array).all())
    return array.dtype.kind in "SU" and not all(isinstance(v, (str, bytes)) for v in values)


def _short(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_float(values: Any, name: str) -> np.ndarray:
    """Return values as an array of floats; complex numbers and text are refused."""
    array = as_array(values, name)
    if array.dtype.kind == "O":
        if not any(isinstance(v, _NO_NUMBERS) for v in array.ravel().tolist()):
            try:
                return array.astype(float)
            except (TypeError, ValueError, OverflowError):
                pass
    elif array.dtype.kind in "biuf":
        return array.astype(float, copy=False)
    raise TypeError(f"{name} must be real numbers, got an array of dtype {array.dtype}")


def require_finite(array: np.ndarray, name: str) -> None:
    """Raise unless every entry of an array of floats is finite."""
    # The sum is finite only if every entry is (up to overflow): one cheap pass for the usual case.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not np.isfinite(total) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        at = where[0] if where.size == 1 else tuple(int(i) for i in where)
        value = array[tuple(where)]
        raise ValueError(f"{name} must be finite, got {value} at index {at}")


def require_normal(array: Any, name: str) -> None:
    """Raise if a column (or the vector) is so small that numbers in its unit leave the floats."""
    if 0 in array.shape:
        return
    matrix = array if array.ndim == 2 else array[:, None]
    # A few rows clear most columns.
    unclear = np.flatnonzero(_largest(matrix[:_FEW_ROWS]) < _SMALLEST)
    largest = _largest(matrix[:, unclear]) if unclear.size else np.zeros(0)
    small = (largest > 0) & (largest < _SMALLEST)
    if small.any():
        raise ValueError(
            f"{name} must not have largest entries below {_SMALLEST} but zero, got "
            f"{largest[small][0]}: choose another unit"
        )


def _largest(matrix: Any) -> np.ndarray:
    """The largest size of the entries of each column."""
    largest = abs(matrix).max(axis=0)
    return largest.toarray().ravel() if sp.issparse(largest) else np.asarray(largest)


def require_vector(array: np.ndarray, name: str) -> None:
    """Raise unless an array is one-dimensional and not empty."""
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")


def as_vector(values: Any, name: str) -> np.ndarray:
    """Return values as a finite one-dimensional array of floats, not empty."""
    array = as_float(values, name)
    require_vector(array, name)
    require_finite(array, name)
    return array
