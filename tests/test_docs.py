"""Shared parts of docstrings stand where they are named."""

import inspect

import pytest

from rankbook._docs import documented
from rankbook.models import ORBoost, PairwiseBoost, RankBoundarySVM, RegressionBoost

PARTS = {"first": "a : int\n    One.", "second": "b : int\n    Two."}


def test_parts_take_the_indentation_of_their_line():
    @documented(**PARTS)
    def function():
        """Do it.

        %(first)s
        c : int
            Three.
        %(second)s
        """

    expected = "Do it.\n\na : int\n    One.\nc : int\n    Three.\nb : int\n    Two."
    assert inspect.getdoc(function) == expected


@pytest.mark.parametrize("text", ["No part.", "%(first)s", "%(first)s\n%(second)s\n%(third)s"])
def test_a_part_that_is_missing_or_unknown_is_an_error(text):
    def function():
        pass

    function.__doc__ = text
    with pytest.raises(ValueError, match="the docstring names"):
        documented(**PARTS)(function)


def test_without_docstrings_nothing_is_to_fill():
    def function():
        pass

    assert documented(**PARTS)(function).__doc__ is None


@pytest.mark.parametrize("model", [ORBoost, PairwiseBoost, RankBoundarySVM, RegressionBoost])
def test_the_estimators_have_whole_docstrings(model):
    text = inspect.getdoc(model)
    assert "%(" not in text
    for name in inspect.signature(model).parameters:
        assert text.count(f"\n{name} : ") == 1
