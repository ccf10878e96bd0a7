"""What is wrong with a value: its type, its shape, a NaN, or the numbers; never the right value."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

Complaint = tuple[str, str]  # the kind of error, as hints know it, and a sentence


def complaint(answer: Any, expected: Any, tolerance: float, name: str = "the value") -> Complaint:
    """Compare an answer with what is expected; two empty strings if it is right."""
    if expected is None or isinstance(expected, str | bool | np.bool_):
        return _exact(answer, expected, name)
    if isinstance(expected, Mapping):
        return _mapping(answer, expected, tolerance, name)
    if isinstance(expected, tuple):
        return _tuple(answer, expected, tolerance, name)
    if isinstance(expected, np.ndarray | list):
        return _array(answer, np.asarray(expected), tolerance, name)
    return _number(answer, expected, tolerance, name)


def _exact(answer: Any, expected: Any, name: str) -> Complaint:
    if expected is None:
        return ("", "") if answer is None else ("value", f"{name} should be None here")
    kind = str if isinstance(expected, str) else bool
    if kind is bool and isinstance(answer, np.ndarray) and answer.shape == ():
        answer = answer[()]
    if not isinstance(answer, str if kind is str else bool | np.bool_):
        wanted = "a string" if kind is str else "True or False"
        return "type", f"{name} should be {wanted}, not {_describe(answer)}"
    return ("", "") if answer == expected else ("value", f"{name} is not right")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _number(answer: Any, expected: Any, tolerance: float, name: str) -> Complaint:
    if isinstance(answer, np.ndarray) and answer.shape == ():
        answer = answer[()]
    if isinstance(answer, np.ndarray | list | tuple):
        return "shape", f"{name} should be a single number, not {_describe(answer)}"
    if isinstance(answer, np.bool_) or not _is_number(answer):
        return "type", f"{name} should be a number, not {_describe(answer)}"
    return _close(np.array(_as_float(answer)), np.array(float(expected)), tolerance, name)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def _array(answer: Any, expected: np.ndarray, tolerance: float, name: str) -> Complaint:
    if not isinstance(answer, np.ndarray | list | tuple):
        return (
            "type",
            f"{name} should be an array of shape {expected.shape}, not {_describe(answer)}",
        )
    if len(np.shape(answer) if isinstance(answer, np.ndarray) else (0,)) == 0:
        return "shape", f"{name} should have shape {expected.shape}, not ()"
    if len(answer) != len(expected):
        return "shape", f"{name} should have {len(expected)} entries, not {len(answer)}"
    try:
        array = np.asarray(answer)
    except ValueError:
        return "shape", f"{name} has rows of different lengths"
    if array.shape != expected.shape:
        return "shape", f"{name} should have shape {expected.shape}, not {array.shape}"
    if expected.dtype.kind == "b":
        if array.dtype.kind != "b":
            return "type", f"{name} should hold True and False, not {array.dtype}"
        return _wrong_entries(array == expected, name)
    if array.dtype.kind not in "iuf":
        return "type", f"{name} should hold numbers, not {_entries(array)}"
    return _close(array.astype(float), expected.astype(float), tolerance, name)


def _entries(array: np.ndarray) -> str:
    return {"b": "booleans", "c": "complex numbers", "U": "text"}.get(array.dtype.kind, "objects")


def _close(answer: np.ndarray, expected: np.ndarray, tolerance: float, name: str) -> Complaint:
    missing = np.isnan(answer) & ~np.isnan(expected)
    if missing.any():
        return "nan", f"{name} is NaN{_where(missing)}, where there is a number"
    return _wrong_entries(
        np.isclose(answer, expected, rtol=tolerance, atol=tolerance, equal_nan=True), name
    )


def _wrong_entries(right: np.ndarray, name: str) -> Complaint:
    if right.all():
        return "", ""
    return "value", f"{name} is not right{_where(~right)}"


def _where(wrong: np.ndarray) -> str:
    if wrong.ndim == 0:
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = first[0] if len(first) == 1 else first
    return f" in {int(wrong.sum())} of {wrong.size} entries (the first is entry {place})"


def _tuple(answer: Any, expected: tuple, tolerance: float, name: str) -> Complaint:
    if not isinstance(answer, list | tuple | np.ndarray):
        return "type", f"{name} should be {len(expected)} values, not {_describe(answer)}"
    if (isinstance(answer, np.ndarray) and answer.ndim == 0) or len(answer) != len(expected):
        return "shape", f"{name} should be {len(expected)} values, not {_describe(answer)}"
    for k, (part, wanted) in enumerate(zip(answer, expected, strict=True)):
        found = complaint(part, wanted, tolerance, f"value {k + 1} of {len(expected)}")
        if found[0]:
            return found
    return "", ""


def _mapping(answer: Any, expected: Mapping, tolerance: float, name: str) -> Complaint:
    if not isinstance(answer, Mapping):
        return "type", f"{name} should be a dictionary, not {_describe(answer)}"
    if set(answer) != set(expected):
        return "shape", f"{name} should have the keys {sorted(expected)}"
    for key, wanted in expected.items():
        found = complaint(answer[key], wanted, tolerance, f"the value of {key!r}")
        if found[0]:
            return found
    return "", ""


def _describe(value: Any) -> str:
    if value is None:
        return "None (is there a return?)"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of length {len(value)}"
    if callable(value):
        return "a function"
    return f"a value of type {type(value).__name__}"
