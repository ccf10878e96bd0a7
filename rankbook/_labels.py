"""Labels and scores in order: who stands above whom, without rounding.

The order of labels is declared, never guessed. Numbers have one; an ordered pandas Categorical, a
polars Enum and an ordered Arrow dictionary carry one; other labels are listed, lowest first.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankbook._arrays import as_array, as_float, require_finite, require_vector
from rankbook._categories import Categories, categories_of

__all__ = ["encode_labels", "encode_queries", "scores_in_order"]

# Integer labels in a range this small are counted instead of sorted.
_COUNTABLE_RANGE = 4096
# Integers up to here are floats without rounding.
_EXACT_INTEGERS = 2**53

Encoded = tuple[np.ndarray, np.ndarray]


def encode_labels(y: Any, labels: Iterable | None, name: str) -> Encoded:
    """Codes 0..K-1 of labels in their declared order, and the K classes.

    With `labels` or an ordered Categorical the classes are all that are named, whether or not `y`
    holds them.
    """
    found = categories_of(y)
    if found is not None:
        codes, classes = _category_codes(found, name)
        if labels is None and not found.ordered:
            raise ValueError(_undeclared(name, "an unordered Categorical"))
    else:
        array = _clean(y, name)
        if labels is None and not (array.dtype.kind in "biuf" or array.dtype.kind == "O"):
            if array.dtype.kind == "c":
                raise TypeError(f"{name} must hold ordered labels, got dtype {array.dtype}")
            raise ValueError(_undeclared(name, f"{array[0].item()!r}"))
        codes, classes = _distinct(array, name, any_type=labels is not None)
    if labels is None:
        return codes, classes
    return _in_order_of(labels, codes, classes, name)


def _undeclared(name: str, got: str) -> str:
    return (
        f"{name} must hold labels whose order is declared, got {got}. Name all classes, lowest "
        f'first, by labels=["low", "mid", "high"], or make {name} an ordered Categorical: '
        f'pd.Categorical({name}, categories=["low", "mid", "high"], ordered=True)'
    )


def _category_codes(found: Categories, name: str) -> Encoded:
    require_vector(found.codes, name)
    missing = [k for k, value in enumerate(found.values) if _is_missing(value)]
    if found.codes.min() < 0 or np.isin(found.codes, missing).any():
        raise ValueError(f"{name} must not hold missing labels")
    try:
        distinct = len(set(found.values)) == len(found.values)
    except TypeError as error:
        raise TypeError(f"{name} must hold labels that can be compared: {error}") from None
    if not distinct:
        raise ValueError(f"{name} must have distinct categories, got {found.values[:10]}")
    return found.codes, _as_classes(found.values)


def _as_classes(values: list) -> np.ndarray:
    """An array with these entries; of objects where numpy would alter them."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0)
    if array.shape == (len(values),) and array.tolist() == values:
        return array
    classes = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        classes[i] = value
    return classes


def _in_order_of(labels: Any, codes: np.ndarray, classes: np.ndarray, name: str) -> Encoded:
    """The codes of y anew, with the classes as `labels` lists them."""
    named = _check_named(labels)
    position = {label: k for k, label in enumerate(named)}
    present = np.bincount(codes, minlength=classes.size) > 0
    values = classes.tolist()
    unknown = [v for v, here in zip(values, present, strict=True) if here and v not in position]
    if unknown:
        raise ValueError(f"{name} holds {unknown[:10]}, not among labels {named[:10]}")
    lookup = np.array([position.get(value, -1) for value in values], dtype=np.intp)
    return lookup[codes], _as_classes(named)


def _check_named(labels: Any) -> list:
    """The classes that a user listed: any hashable values, distinct, none missing."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise TypeError(f"labels must list the classes, lowest first, got {labels!r}")
    if isinstance(labels, Set) and not isinstance(labels, KeysView):
        raise TypeError(f"labels must list the classes, lowest first, got the set {labels!r}")
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"labels must be one-dimensional, got shape {labels.shape}")
    if np.ma.is_masked(labels):
        raise ValueError("labels must not hold masked entries")
    named = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    named = [_plain(value) for value in named]
    if not named:
        raise ValueError("labels must not be empty")
    if any(_is_missing(value) for value in named):
        raise ValueError("labels must not hold missing values (None, NaN or NaT)")
    seen = set()
    for value in named:
        try:
            twice = value in seen
        except TypeError:
            raise TypeError(f"labels must be one-dimensional, got an entry {value!r}") from None
        if twice:
            raise ValueError(f"labels must be distinct, got {value!r} twice")
        seen.add(value)
    return named


def _plain(value: Any) -> Any:
    """An entry of an array of numpy's, xarray's or Arrow's as an object of Python."""
    if hasattr(value, "as_py"):
        return value.as_py()
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _clean(values: Any, name: str) -> np.ndarray:
    """Labels as an array of finite numbers, text or objects, of which none is missing."""
    array = as_array(values, name)
    require_vector(array, name)
    if array.dtype.kind == "T":  # numpy's strings of any length, which may lack some
        array = array.astype(object)
    if array.dtype.kind in "fc":
        require_finite(array, name)
    elif array.dtype.kind in "Mm" and np.isnat(array).any():
        raise ValueError(f"{name} must not hold missing labels (NaT)")
    elif array.dtype.kind == "O" and any(_is_missing(v) for v in array.tolist()):
        raise ValueError(f"{name} must not hold missing labels (None, NaN or NaT)")
    return array


def _is_missing(value: Any) -> bool:
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except ValueError:  # an array in an array, which is refused later
        return False
    except (TypeError, ArithmeticError):  # pandas.NA, a signalling NaN
        return True


def _distinct(array: np.ndarray, name: str, *, any_type: bool) -> Encoded:
    """Codes and distinct values; the values are sorted if they are numbers."""
    if array.dtype.kind == "O":
        return _distinct_objects(array, name, any_type=any_type)
    if array.dtype.kind in "biuf":
        return _sorted_codes(array)
    classes, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.intp, copy=False), classes


def _distinct_objects(array: np.ndarray, name: str, *, any_type: bool = False) -> Encoded:
    values = array.tolist()
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError as error:
        raise TypeError(f"{name} must hold labels that can be compared: {error}") from None
    if not any_type:
        _require_numbers(distinct, name)
        distinct = _sorted_numbers(distinct)
    position = {value: k for k, value in enumerate(distinct)}
    codes = np.fromiter((position[value] for value in values), np.intp, len(values))
    return codes, _as_classes(distinct)


def _require_numbers(values: list, name: str) -> None:
    for value in values:
        if not isinstance(value, (Real, Decimal, np.bool_)):
            if isinstance(value, (complex, np.complexfloating)):
                raise TypeError(f"{name} must hold ordered labels, got {value!r}")
            raise ValueError(_undeclared(name, repr(value)))
        if value == np.inf or value == -np.inf:
            raise ValueError(f"{name} must be finite, got {value}")


def _sorted_numbers(values: list) -> list:
    """Numbers of any kind by their exact values, as Python compares them."""
    try:
        return sorted(values)
    except TypeError:  # not all of numpy's numbers are comparable with a Decimal
        return sorted(values, key=_as_fraction)


def _as_fraction(value: Any) -> Fraction:
    if isinstance(value, (Integral, np.bool_)):  # numpy's have no ratio
        return Fraction(int(value))
    return Fraction(*value.as_integer_ratio())


def _sorted_codes(y: np.ndarray) -> Encoded:
    """Encode numbers by their order; small integers are counted, everything else is sorted."""
    if y.dtype.kind == "b":
        codes, classes = _sorted_codes(y.view(np.uint8))
        return codes, classes.astype(bool)
    if y.dtype.kind in "iu":
        low, high = int(y.min()), int(y.max())
        if high - low < _COUNTABLE_RANGE and high <= np.iinfo(np.intp).max:
            # Widen before subtracting: an int8 range can exceed an int8.
            offsets = y.astype(np.intp, copy=False)
            offsets = offsets - low if low else offsets
            present = np.bincount(offsets, minlength=high - low + 1) > 0
            classes = np.flatnonzero(present) + low
            if present.all():
                return offsets, classes.astype(y.dtype)
            lookup = np.cumsum(present) - 1
            return lookup[offsets], classes.astype(y.dtype)
    if y.dtype.kind == "f" and np.abs(y).max() < _COUNTABLE_RANGE:
        whole = y.astype(np.int64)
        if np.array_equal(whole, y):
            codes, classes = _sorted_codes(whole)
            return codes, classes.astype(y.dtype)
    classes, codes = np.unique(y, return_inverse=True)
    return codes.astype(np.intp, copy=False), classes


def encode_queries(qid: Any, name: str) -> np.ndarray:
    """Codes 0..Q-1 of query identifiers, in sorted order."""
    array = _clean(qid, name)
    if array.dtype.kind in "biuf":
        return _sorted_codes(array)[0]
    if array.dtype.kind in "cMmV":
        raise TypeError(f"{name} must hold numbers or text, got dtype {array.dtype}")
    try:
        codes = np.unique(array, return_inverse=True)[1]
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold identifiers that can be sorted: {error}") from None
    return codes.astype(np.intp, copy=False)


def scores_in_order(scores: Any, name: str) -> np.ndarray:
    """Scores as floats in their exact order: where rounding would tie them, their ranks.

    An ordered Categorical has the order of its categories, whether or not they are numbers.
    """
    found = categories_of(scores)
    if found is not None and found.ordered:
        return _category_codes(found, name)[0].astype(float)
    array = as_array(scores, name)
    require_vector(array, name)
    if array.dtype.kind == "O":
        return _object_scores(array, name)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        if max(int(array.max()), -int(array.min())) > _EXACT_INTEGERS:
            return _sorted_codes(array)[0].astype(float)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        require_finite(array, name)
        return _sorted_codes(array)[0].astype(float)
    array = as_float(array, name)
    require_finite(array, name)
    return array


def _object_scores(array: np.ndarray, name: str) -> np.ndarray:
    if not all(isinstance(value, (Real, Decimal, np.bool_)) for value in array.tolist()):
        raise TypeError(f"{name} must be real numbers, got an array of dtype {array.dtype}")
    if any(_is_missing(value) for value in array.tolist()):
        raise ValueError(f"{name} must be finite, got NaN")
    return _distinct_objects(array, name)[0].astype(float)
