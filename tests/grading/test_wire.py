"""Values that cross the sandbox: exactly, or not at all."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rankbook.grading import _wire

DTYPES = st.sampled_from([np.dtype(d) for d in _wire._DTYPES])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=40)
@given(PLAIN)
def test_plain_values_come_back_as_they_were(value):
    assert repr(_wire.loads(_wire.dumps(value))) == repr(value)


@given(
    DTYPES.flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))
)
def test_arrays_come_back_with_dtype_and_shape(array):
    back = _wire.loads(_wire.dumps(array))
    assert back.dtype == array.dtype.newbyteorder("=") and back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_scalars_and_text_keep_their_type():
    value = _wire.loads(_wire.dumps([np.float32(0.5), np.bool_(True), np.array(["a", "bc"])]))
    assert type(value[0]) is np.float32 and type(value[1]) is np.bool_
    assert value[2].tolist() == ["a", "bc"]


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {1, 2}, b"x", 1j, np.array([None]), np.ma.array([1.0]), 10**5000, lambda: 0],
    ids=lambda value: type(value).__name__,
)
def test_nothing_else_leaves(value):
    with pytest.raises(_wire.WireError):
        _wire.dumps(value)


def test_special_numbers_come_back():
    value = _wire.loads(_wire.dumps([float("inf"), -float("inf"), float("nan")]))
    assert value[:2] == [np.inf, -np.inf] and np.isnan(value[2])


def test_lists_in_lists_leave_to_a_depth():
    value = 0
    for _ in range(_wire.DEPTH):
        value = [value]
    assert _wire.loads(_wire.dumps(value)) == value
    with pytest.raises(_wire.WireError, match="nested too deeply"):
        _wire.dumps([value])


def array(dtype, shape, data):
    return json.dumps({"array": [dtype, shape, data]}).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nothing",
        b"NaN",
        b"[Infinity]",
        b"[" * 100_000,
        b"[" * 30 + b"]" * 30,
        b"[" + b"0," * _wire.ITEMS + b"0]",
        b" " * (_wire.BYTES + 1),
        b"{}",
        b'{"pickle": "x"}',
        b'{"tuple": [], "list": []}',
        b'{"tuple": 3}',
        b'{"float": "1e5"}',
        b"9" * 3000,
        b"\xff",
        array("<f8", [2], "AAAA"),
        array("<f8", [-1], ""),
        array("<f8", [2**40], ""),
        array("<f8", [True], "AAAAAAAAAAA="),
        array("<f8", [1], "!"),
        array("|O", [1], "AAAAAAAAAAA="),
        array("|b1", [1], "Ag=="),
        array("str", [2], ["a"]),
        array("str", [20], ["a"] * 19 + ["a" * 2**20]),
        b'{"scalar": ["<f8", [1], "AAAAAAAAAAA="]}',
        b'{"array": 5}',
    ],
    ids=lambda text: repr(text[:30]),
)
def test_a_hostile_text_is_refused(text):
    with pytest.raises(_wire.WireError):
        _wire.loads(text)
