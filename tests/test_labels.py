"""The order of labels is the declared one; without a declaration it is that of numbers alone."""

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rankbook._validation import check_group, check_labels, check_qid, check_scores

SIZES = ["low", "mid", "high"]
STRINGS = np.dtypes.StringDType(na_object=None)
ROWS = np.empty(2, dtype=object)
ROWS[:] = [np.array([0, 1]), np.array([1, 0])]


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        ([3, 1, 2, 1], [2, 0, 1, 0], [1, 2, 3]),
        ([3, 1, 9], [1, 0, 2], [1, 3, 9]),
        ([-1, 1], [0, 1], [-1, 1]),
        ([10**9, 5], [1, 0], [5, 10**9]),
        ([0.5, 2.0, 0.5], [0, 1, 0], [0.5, 2.0]),
        ([1.0, 3.0, 1.0], [0, 1, 0], [1.0, 3.0]),
        ([True, False], [1, 0], [False, True]),
        (np.array([3, 1], dtype=np.uint8), [1, 0], [1, 3]),
        (np.array([127, -128], dtype=np.int8), [1, 0], [-128, 127]),
        (np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), [1, 0], [2**64 - 2, 2**64 - 1]),
        (np.array([2**53 + 1, 2**53], dtype=np.uint64), [1, 0], [2**53, 2**53 + 1]),
        ([4096, 0, 4095], [2, 0, 1], [0, 4095, 4096]),
        ([4095.5, -4096.0, 4096.0], [1, 0, 2], [-4096.0, 4095.5, 4096.0]),
        ([2**63, -1, 2**63 + 1], [1, 0, 2], [-1, 2**63, 2**63 + 1]),
        ([2**53 + 1, 0.5, 2**53], [2, 0, 1], [0.5, 2**53, 2**53 + 1]),
        ([2**70 + 1, 2**70], [1, 0], [2**70, 2**70 + 1]),
        ([Fraction(1, 2), Fraction(1, 3)], [1, 0], [Fraction(1, 3), Fraction(1, 2)]),
        ([Decimal("1E+999999"), Decimal("0.1")], [1, 0], [Decimal("0.1"), Decimal("1E+999999")]),
        ([Decimal("0.1"), 0.1, Fraction(1, 10)], [0, 1, 0], [Decimal("0.1"), 0.1]),
        ([Decimal(1), 1.0, Fraction(1), True, 2], [0, 0, 0, 0, 1], [1, 2]),
        (pd.Series([5, 2], index=[7, -1]), [1, 0], [2, 5]),
        (pd.Series([5, 2], dtype="Int64"), [1, 0], [2, 5]),
        (np.array([np.float32(0.5), np.int8(-1)], object), [1, 0], [-1, 0.5]),
        (np.ma.array([2, 1], mask=False), [1, 0], [1, 2]),
    ],
)
def test_numbers_are_ordered_by_value(y, codes, classes):
    got_codes, got_classes = check_labels(y)
    assert_array_equal(got_codes, codes)
    assert got_classes.tolist() == classes
    assert got_codes.dtype == np.intp


@pytest.mark.parametrize("wrap", [lambda c: c, pd.Series, pd.CategoricalIndex])
def test_ordered_categoricals_are_ordered_by_their_categories(wrap):
    y = wrap(pd.Categorical(["high", "low", "high"], categories=SIZES, ordered=True))
    codes, classes = check_labels(y)
    assert_array_equal(codes, [2, 0, 2])
    assert classes.tolist() == SIZES
    codes, classes = check_labels(y, labels=["high", "low"])
    assert_array_equal(codes, [0, 1, 0])
    assert classes.tolist() == ["high", "low"]


def test_intervals_and_numbers_as_categories():
    cut = pd.cut([5.0, 1.0, 9.0], [0, 2, 6, 10])
    codes, classes = check_labels(cut)
    assert_array_equal(codes, [1, 0, 2])
    assert classes.shape == (3,) and classes[0] == pd.Interval(0, 2)
    down = pd.Categorical([1, 2, 3], categories=[3, 2, 1], ordered=True)
    assert_array_equal(check_labels(down)[0], [2, 1, 0])


@pytest.mark.parametrize(
    ("y", "labels", "codes"),
    [
        (["mid", "high", "low"], SIZES, [1, 2, 0]),
        (np.array(["mid", "high", "low"]), tuple(SIZES), [1, 2, 0]),
        (np.array(["mid", "high"], dtype=object), pd.Index(SIZES), [1, 2]),
        (pd.Series(["mid", "high"]), np.array(SIZES), [1, 2]),
        (pd.Categorical(["mid", "high"]), SIZES, [1, 2]),
        ([2, 2, 4], [4, 3, 2], [2, 2, 0]),
        ([2.0, 4.0], [4, 3, 2], [2, 0]),
        (np.array([2**53 + 1, 2**53], np.uint64), [2**53, 2**53 + 1], [1, 0]),
        ([2**64, 0], [0, 2**64 - 1, 2**64], [2, 0]),
        ([1, "a"], ["a", 1], [1, 0]),
        ([True, False], [True, False], [0, 1]),
        (np.array([None, (1, 2)], object)[1:], [(1, 2), (0, 0)], [0]),
        (np.array(["2020", "2021"], "M8[Y]"), np.array(["2021", "2020"], "M8[Y]"), [1, 0]),
        ([1j, 2j], [2j, 1j], [1, 0]),
        (np.array(["mid", "low"], np.dtypes.StringDType()), SIZES, [1, 0]),
        (["mid", "low"], [np.array(size) for size in SIZES], [1, 0]),
        (["mid", "low"], [SimpleNamespace(as_py=lambda s=size: s) for size in SIZES], [1, 0]),
    ],
)
def test_labels_declare_the_order_as_given(y, labels, codes):
    got_codes, classes = check_labels(y, labels=labels)
    assert_array_equal(got_codes, codes)
    assert classes.shape == (len(labels),)
    plain = [label.as_py() if hasattr(label, "as_py") else label for label in labels]
    assert all(a == b for a, b in zip(classes.tolist(), plain, strict=True))


@pytest.mark.parametrize(
    "y",
    [
        ["low", "high"],
        np.array(["low", "high"], object),
        np.array([b"low", b"high"]),
        np.array(["low", "high"], np.dtypes.StringDType()),
        pd.Series(["low", "high"]),
        pd.Categorical(["low", "high"]),
        pd.Categorical([1, 2]),
        np.array([1, "a"], object),
        np.array(["2020", "2021"], "M8[Y]"),
    ],
)
def test_an_undeclared_order_is_refused_and_both_ways_are_shown(y):
    with pytest.raises(ValueError, match=r"y must hold labels .*labels=\[.*pd\.Categorical\(y"):
        check_labels(y)


@pytest.mark.parametrize(
    ("y", "labels", "error", "message"),
    [
        ([0, 1], [], ValueError, "labels must not be empty"),
        ([0, 1], [0, np.nan, 1], ValueError, "labels must not hold missing"),
        ([0, 1], [0, None, 1], ValueError, "labels must not hold missing"),
        ([0, 1], [0, pd.NaT, 1], ValueError, "labels must not hold missing"),
        ([0, 1], [0, 1, 1.0], ValueError, "labels must be distinct, got 1.0 twice"),
        ([0, 1], [[0, 1]], TypeError, "labels must be one-dimensional"),
        ([0, 1], np.array([[0, 1]]), ValueError, "labels must be one-dimensional"),
        ([0, 1], np.ma.array([0, 1], mask=[0, 1]), ValueError, "labels must not hold masked"),
        ([0, 1], "01", TypeError, "labels must list the classes"),
        ([0, 1], 2, TypeError, "labels must list the classes"),
        ([0, 1], {0, 1}, TypeError, "labels must list the classes, lowest first, got the set"),
        (["a", "b"], frozenset("ab"), TypeError, "labels must list the classes, lowest first"),
        ([0, np.ma.masked], None, ValueError, "y must not hold masked"),
        ([0, 7], [0, 1], ValueError, r"y holds \[7\], not among labels"),
        (["a", "b"], ["a", "c"], ValueError, r"y holds \['b'\], not among labels"),
        (np.array([[1], 2], object), [1, 2], TypeError, "y must hold labels that can be compared"),
        ([None, "a"], ["a"], ValueError, "y must not hold missing"),
        (np.array([np.nan, "a"], object), ["a"], ValueError, "y must not hold missing"),
        (np.array(["NaT", "2020"], "M8[Y]"), None, ValueError, "y must not hold missing"),
        (np.array([pd.NaT, 1], object), None, ValueError, "y must not hold missing"),
        (np.array(["a", None], STRINGS), ["a"], ValueError, "y must not hold missing"),
        (np.array([pd.NA, 1], object), None, ValueError, "y must not hold missing"),
        ([Decimal("sNaN"), 1], None, ValueError, "y must not hold missing"),
        ([Decimal("NaN"), 1], None, ValueError, "y must not hold missing"),
        ([Decimal("Infinity"), 1], None, ValueError, "y must be finite"),
        ([np.inf, 2**80], None, ValueError, "y must be finite"),
        (pd.Categorical([1, None], ordered=True), None, ValueError, "y must not hold missing"),
        (pd.Categorical([], ordered=True), None, ValueError, "y must not be empty"),
        (np.ma.array([0, 1], mask=[0, 1]), None, ValueError, "y must not hold masked"),
        ([[0, 1], [1]], None, ValueError, "y must be an array or a list of equally long"),
        ([1j, 2j], None, TypeError, "y must hold ordered labels"),
        (np.array([1j, 2], object), None, TypeError, "y must hold ordered labels"),
        (None, None, ValueError, "y must be one-dimensional"),
        (pd.Categorical(["a"], categories=["a"], ordered=True), None, ValueError, "at least 2 cl"),
    ],
)
def test_bad_labels(y, labels, error, message):
    with pytest.raises(error, match=message):
        check_labels(y, labels=labels)


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([2**53, 2**53 + 1], [0, 1]),
        (np.array([2**53 + 1, 2**53]), [1, 0]),
        (np.array([-(2**53) - 1, -(2**53)]), [0, 1]),
        (np.array([2**64 - 1, 2**64 - 2, 0], np.uint64), [2, 1, 0]),
        ([2**63, 2**63 + 1, -1], [1, 2, 0]),
        ([2**70, 2**70 + 1], [0, 1]),
        ([2**53 + 1, 2**53, 0.5], [2, 1, 0]),
        ([Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)], [0, 1]),
        (np.array([1, 1 + np.finfo(np.longdouble).eps], np.longdouble), [0, 1]),
        (pd.Series([1_700_000_000_000_000_001, 1_700_000_000_000_000_000]), [1, 0]),
        (pd.Categorical([1, 9, 3], categories=[9, 3, 1], ordered=True), [2, 0, 1]),
        (pd.Series([1, 9], dtype=pd.CategoricalDtype(["low", 9, 1], ordered=True)), [1, 0]),
        (pd.Categorical([1, 9, 3], categories=[9, 3, 1]), [0, 2, 1]),
    ],
)
def test_scores_are_compared_exactly(scores, order):
    checked = check_scores(scores)
    assert checked.dtype == np.float64
    assert_array_equal(np.argsort(np.argsort(checked)), order)
    assert np.unique(checked).size == len(order)


def test_scores_that_floats_hold_are_kept():
    assert_array_equal(check_scores([2**53, -3]), [2.0**53, -3])
    assert_array_equal(check_scores(np.array([1, 2], np.int8)), [1, 2])
    given = np.array([1.5, 2.5])
    assert check_scores(given) is given


def test_queries():
    assert_array_equal(check_qid(["b", "a", "b"], 3), [1, 0, 1])
    assert_array_equal(check_qid(None, 3, group=[2, 1]), [0, 0, 1])
    assert_array_equal(check_qid([2**63, -1, 2**63 + 1], 3), [1, 0, 2])
    assert check_qid(None, 3) is None
    assert_array_equal(check_group([1, 2]), [0, 1, 1])
    assert_array_equal(check_group(np.array([1, 2], np.uint64)), [0, 1, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: check_qid([1], 2), ValueError, "qid and y must have the same length"),
        (lambda: check_qid([1, np.nan], 2), ValueError, "qid must be finite"),
        (lambda: check_qid(np.array([1, "a"], object), 2), TypeError, "qid must hold identifiers"),
        (lambda: check_qid(np.array([1j, 1]), 2), TypeError, "qid must hold numbers or text"),
        (lambda: check_qid([1, np.inf], 2), ValueError, "qid must be finite"),
        (lambda: check_qid(np.zeros(2, "V4"), 2), TypeError, "qid must hold numbers or text"),
        (lambda: check_qid(ROWS, 2), TypeError, "qid must hold identifiers that can be sorted"),
        (lambda: check_qid(np.array(["a", None], STRINGS), 2), ValueError, "qid must not hold m"),
        (lambda: check_qid([0, 1], 2, group=[2]), ValueError, "qid and group say the same"),
        (lambda: check_qid(None, 2, group=[2, 1]), ValueError, "group must sum to the number of"),
        (lambda: check_group([1.0]), TypeError, "group must hold the queries' sizes"),
        (lambda: check_group([1, 0]), ValueError, "group must hold sizes of at least 1, got 0"),
        (lambda: check_group([]), ValueError, "group must not be empty"),
        (lambda: check_group([2**40]), ValueError, r"sum\(group\) must fit in memory, got 1099"),
        (lambda: check_group([2**63 - 1] * 3), ValueError, r"sum\(group\) must fit in memory"),
        (lambda: check_scores([2**70, np.nan]), ValueError, "scores must be finite"),
        (lambda: check_scores([2**70, np.inf]), ValueError, "scores must be finite"),
        (lambda: check_scores([2**70, None]), TypeError, "scores must be real numbers"),
        (lambda: check_scores(np.ma.array([1.0], mask=[1])), ValueError, "scores must not hold m"),
        (lambda: check_scores([[1], [1, 2]]), ValueError, "scores must be an array or a list of"),
        (lambda: check_scores(np.array([1j], object)), TypeError, "scores must be real numbers"),
    ],
)
def test_bad_queries_and_scores(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_fractions_and_decimals_are_compared_by_value():
    codes, classes = check_labels([Fraction(1, 2), Decimal("0.25"), 1])
    assert_array_equal(codes, [1, 0, 2])
    assert classes.tolist() == [Decimal("0.25"), Fraction(1, 2), 1]


def test_an_array_in_an_array_is_no_label():
    y = np.empty(2, dtype=object)
    y[:] = [np.array([1, 2]), np.array([3, 4])]
    with pytest.raises((TypeError, ValueError), match="y "):
        check_labels(y)


@pytest.mark.parametrize("kind", [Fraction, np.int64, np.longdouble])
def test_numbers_of_all_kinds_have_one_order(kind):
    # Neither of numpy's two is comparable with a Decimal.
    y = [Decimal("1.5"), kind(2), Decimal("0.25"), kind(1)]
    codes, classes = check_labels(y)
    assert_array_equal(codes, [2, 3, 0, 1])
    assert classes.tolist() == [Decimal("0.25"), kind(1), Decimal("1.5"), kind(2)]


def test_categories_of_unequal_lengths_stay_what_they_are():
    categories = [(1,), (1, 2), (2,)]
    series = pd.Series(
        pd.Categorical.from_codes(
            [2, 0, 1], pd.Index(categories, tupleize_cols=False), ordered=True
        )
    )
    codes, classes = check_labels(series)
    assert_array_equal(codes, [2, 0, 1])
    assert classes.tolist() == categories
