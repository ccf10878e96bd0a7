"""Categories of other packages have the order that they declare; stand-ins where none is there."""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rankbook._categories import categories_of
from rankbook._validation import check_labels, check_scores
from rankbook.metrics import pairwise_risk

SIZES = ["low", "mid", "high"]
WORDS = ["mid", "low", "high", "low"]
CODES = [1, 0, 2, 0]


class Column:
    """What polars' Series and Arrow's arrays of integers do: cast, and fill what is missing."""

    def __init__(self, values):
        self.values = values

    def cast(self, kind):
        assert kind in (int, "int64")
        return self

    def fill_null(self, value):
        return np.array([value if v is None else v for v in self.values], dtype=int)


class Enum:
    def __init__(self, categories):
        self.categories = categories


def polars_enum(codes, categories):
    if find_spec("polars"):
        import polars as pl

        words = [None if k is None else categories[k] for k in codes]
        return pl.Series(words, dtype=pl.Enum(categories))
    return SimpleNamespace(dtype=Enum(categories), to_physical=lambda: Column(codes))


class Values(list):
    """A column of Arrow's that is compared as a whole."""

    def to_pylist(self):
        return list(self)


class Chunked:
    """Arrow's array in chunks, of which the first has all categories."""

    def __init__(self, chunks):
        self.chunks, self.type = chunks, chunks[0].type

    def chunk(self, k):
        return self.chunks[k]

    def unify_dictionaries(self):
        first = self.chunks[0]
        place = {value: k for k, value in enumerate(first.dictionary)}
        rest = [[place[c.dictionary[k]] for k in c.indices.values] for c in self.chunks[1:]]
        return Chunked([first, *(dictionary(c, first.dictionary) for c in rest)])


def dictionary(codes, categories, ordered=True):
    if find_spec("pyarrow"):
        import pyarrow as pa

        places = pa.array(codes, pa.int64())
        return pa.DictionaryArray.from_arrays(places, pa.array(categories), ordered=ordered)
    kind = SimpleNamespace(index_type="int64", ordered=ordered)
    return SimpleNamespace(type=kind, indices=Column(codes), dictionary=Values(categories))


def chunked(*chunks):
    if find_spec("pyarrow"):
        import pyarrow as pa

        return pa.chunked_array(chunks)
    return Chunked(list(chunks))


def as_in_pandas(array):
    """A Series on Arrow's memory."""
    dtype = SimpleNamespace(pyarrow_dtype=array.type)
    return SimpleNamespace(dtype=dtype, array=SimpleNamespace(__arrow_array__=lambda: array))


def as_in_xarray(categorical):
    return SimpleNamespace(dtype=categorical.dtype, data=categorical)


ORDERED = {
    "polars": polars_enum(CODES, SIZES),
    "arrow": dictionary(CODES, SIZES),
    "arrow in chunks": chunked(dictionary(CODES[:2], SIZES), dictionary(CODES[2:], SIZES)),
    "arrow in pandas": as_in_pandas(dictionary(CODES, SIZES)),
    "xarray": as_in_xarray(pd.Categorical(WORDS, categories=SIZES, ordered=True)),
    "pandas": pd.Series(pd.Categorical(WORDS, categories=SIZES, ordered=True)),
}
NEVER_ORDERED = {
    "arrow": dictionary(CODES, [3, 2, 1], ordered=False),
    "chunks in two orders": chunked(
        dictionary(CODES[:2], SIZES), dictionary([0, 2], ["high", "mid", "low"])
    ),
    "xarray": as_in_xarray(pd.Categorical(CODES)),
}


@pytest.mark.parametrize("name", ORDERED)
def test_the_declared_order_is_kept(name):
    codes, classes = check_labels(ORDERED[name])
    assert_array_equal(codes, CODES)
    assert classes.tolist() == SIZES
    assert_array_equal(check_scores(ORDERED[name]), CODES)
    assert pairwise_risk(ORDERED[name], CODES) == 0.0
    assert_array_equal(check_labels(ORDERED[name], labels=SIZES[::-1])[0], [1, 2, 0, 2])


def test_numbers_have_the_order_of_their_dictionary():
    codes, classes = check_labels(dictionary(CODES, [30, 20, 10]))
    assert_array_equal(codes, CODES)
    assert classes.tolist() == [30, 20, 10]


@pytest.mark.parametrize("name", NEVER_ORDERED)
def test_an_order_that_nobody_declared_is_refused(name):
    with pytest.raises(ValueError, match=r"got an unordered Categorical.*labels=\[.*pd\.Categ"):
        check_labels(NEVER_ORDERED[name])


def test_chunks_in_two_orders_are_read_with_labels():
    got = check_labels(NEVER_ORDERED["chunks in two orders"], labels=SIZES)[0]
    assert_array_equal(got, [1, 0, 2, 0])


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (polars_enum([0, None], SIZES), ValueError, "y must not hold missing labels"),
        (dictionary([0, None], SIZES), ValueError, "y must not hold missing labels"),
        (dictionary([0, 1], ["low", None]), ValueError, "y must not hold missing labels"),
        (dictionary([0, 1], ["low", "low"]), ValueError, "y must have distinct categories"),
        (dictionary([0, 1], [[1], [2]]), TypeError, "y must hold labels that can be compared"),
        (chunked(dictionary([], SIZES)), ValueError, "y must not be empty"),
    ],
)
def test_categories_that_are_no_labels(y, error, message):
    with pytest.raises(error, match=message):
        check_labels(y)


def test_other_data_carry_none():
    for values in (CODES, np.array(CODES), pd.Series(CODES), None, SimpleNamespace(dtype="Enum")):
        assert categories_of(values) is None
