"""Values as JSON, in and out of the sandbox: plain values and arrays, nothing that acts.

None, booleans, integers, finite floats and strings are themselves, and a list is a list. All else
is an object with one key that says what it is: ``{"tuple": [...]}``, ``{"dict": {...}}``,
``{"float": "nan"}``, ``{"array": [dtype, shape, data]}``, ``{"scalar": [dtype, [], data]}``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any

import numpy as np

DEPTH = 20
ITEMS = 1_000_000
BYTES = 16 << 20
BITS = 4096
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")


class WireError(ValueError):
    """A value, or a text, that does not cross."""


def dumps(value: Any) -> bytes:
    """Return one line of JSON."""
    return json.dumps(encode(value), allow_nan=False, separators=(",", ":")).encode() + b"\n"


def loads(text: bytes) -> Any:
    """Return the value of a line, whoever wrote it."""
    return decode(parse(text))


def parse(text: bytes) -> Any:
    """Return what a line of JSON holds, not yet decoded."""
    if len(text) > BYTES:
        raise WireError(f"{len(text)} bytes, more than {BYTES}")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise WireError("nested too deeply") from None
    except ValueError as error:
        raise WireError(f"not JSON: {str(error)[:80]}") from None


def _refuse_constant(name: str) -> None:
    raise WireError(f"{name} is not JSON")


def encode(value: Any, depth: int = 0) -> Any:
    """Return what `json.dumps` takes without loss; a `WireError` for anything else."""
    if depth > DEPTH:
        raise WireError("nested too deeply")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        return {"scalar": _encode_array(np.asarray(value))}
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise WireError("an integer with thousands of digits")
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.ndarray):
        return {"array": _encode_array(value)}
    if isinstance(value, list):
        return [encode(entry, depth + 1) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(entry, depth + 1) for entry in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise WireError("a dict whose keys are not strings")
        return {"dict": {key: encode(entry, depth + 1) for key, entry in value.items()}}
    raise WireError(f"a value of type {type(value).__name__[:60]}")


def _encode_array(array: np.ndarray) -> list:
    if isinstance(array, np.ma.MaskedArray):
        raise WireError("a masked array")
    if array.dtype.kind == "U":
        return ["str", list(array.shape), [str(entry) for entry in array.ravel()]]
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise WireError(f"an array of dtype {array.dtype}")
    plain = np.ascontiguousarray(array, dtype=dtype)
    return [dtype, list(array.shape), base64.b64encode(plain.tobytes()).decode()]


def decode(value: Any) -> Any:
    """Return the value that `encode` was given; a `WireError` if it was none."""
    budget = [ITEMS]
    return _decode(value, 0, budget)


def _decode(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth > DEPTH or budget[0] < 0:
        raise WireError("nested too deeply" if depth > DEPTH else "too many items")
    if value is None or isinstance(value, (bool, str, float)):
        return value
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise WireError("an integer with thousands of digits")
        return value
    if isinstance(value, list):
        return [_decode(entry, depth + 1, budget) for entry in value]
    if len(value) != 1:
        raise WireError("an object without one kind")
    ((kind, content),) = value.items()
    if kind == "tuple" and isinstance(content, list):
        return tuple(_decode(entry, depth + 1, budget) for entry in content)
    if kind == "dict" and isinstance(content, dict):
        return {key: _decode(entry, depth + 1, budget) for key, entry in content.items()}
    if kind == "float" and isinstance(content, str) and content in _SPECIAL:
        return _SPECIAL[content]
    if kind in ("array", "scalar"):
        array = _decode_array(content, budget)
        if kind == "array":
            return array
        if array.ndim == 0:
            return array[()]
    raise WireError(f"an object of kind {kind[:60]!r}")


def _decode_array(content: Any, budget: list[int]) -> np.ndarray:
    if not (isinstance(content, list) and len(content) == 3):
        raise WireError("an array without dtype, shape and data")
    dtype, shape, data = content
    if not (isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int for n in shape)):
        raise WireError("an array without a shape")
    if any(not 0 <= n <= BYTES for n in shape) or math.prod(shape) > BYTES:
        raise WireError("an array of an impossible shape")
    if dtype == "str":
        is_text = isinstance(data, list) and all(isinstance(entry, str) for entry in data)
        budget[0] -= len(data) if is_text else 0
        if not is_text or len(data) != math.prod(shape) or budget[0] < 0:
            raise WireError("an array whose data do not fit its shape")
        # numpy pads every entry to the longest.
        if max(map(len, data), default=0) * len(data) > BYTES:
            raise WireError("an array of long strings")
        return np.array(data, dtype=str).reshape(shape)
    if not (isinstance(dtype, str) and dtype in _DTYPES and isinstance(data, str)):
        raise WireError("an array of another dtype")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise WireError("an array whose data are not base64") from None
    if len(raw) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise WireError("an array whose data do not fit its shape")
    array = np.frombuffer(raw, dtype=dtype).reshape(shape)
    if dtype == "|b1" and np.any(array.view(np.uint8) > 1):
        raise WireError("a boolean array with other bytes")
    return array.astype(np.dtype(dtype).newbyteorder("="))
