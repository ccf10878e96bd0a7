"""Counts of the grades in groups of ties, in both ways of keeping them."""

import numpy as np
import pytest

from rankbook.metrics import rank_lists


@pytest.mark.parametrize(("n_grades", "kind"), [(5, "_Packed"), (20, "_Dense")])
def test_counts_are_those_of_each_group(n_grades, kind):
    rng = np.random.default_rng(4)
    grades = rng.permutation(np.arange(80) % n_grades)
    scores = rng.choice(3, size=80, p=[0.1, 0.2, 0.7]).astype(float)
    (block,) = rank_lists(grades, scores, qid=np.zeros(80, dtype=int))._blocks
    tally = block.tally
    assert type(tally).__name__ == kind
    groups = [grades[scores == value] for value in (2, 1, 0)]
    expected = np.array([np.bincount(group, minlength=n_grades) for group in groups]).T
    np.testing.assert_array_equal(tally.counts(np.arange(3)), expected)
    np.testing.assert_array_equal(tally.of_rows()[:, 0], expected.sum(axis=1))
    np.testing.assert_array_equal(tally.hits(1.0), expected[2:].sum(axis=0))
    above = expected[2:].sum(axis=0).cumsum() - expected[2:].sum(axis=0)
    np.testing.assert_array_equal(tally.hits_above(1.0), above)
    weights = rng.random(n_grades)
    np.testing.assert_allclose(tally.sums(weights, np.arange(3)), weights @ expected, rtol=1e-14)
    # Codes are of small groups alone, and those of many grades have none.
    small = expected.sum(axis=0) < tally.radix
    codes = tally.radix ** np.arange(n_grades) @ expected
    np.testing.assert_array_equal(tally.codes()[small], codes[small])
    assert small.any() == (kind == "_Packed")


@pytest.mark.parametrize(
    ("n_grades", "n_queries", "n_items"), [(3, 1, 60), (3, 90, 40), (6, 200, 9)]
)
@pytest.mark.parametrize("ragged", [False, True])
def test_products_above_are_those_of_the_items_above(n_grades, n_queries, n_items, ragged):
    """Of few groups, and of so many that tables of one count, or of several together, pay."""
    rng = np.random.default_rng(5)
    grades = rng.integers(0, n_grades, (n_queries, n_items))
    grades[0, :2] = n_grades - 1
    scores = rng.integers(0, 5, grades.shape).astype(float)
    keep = np.ones(grades.shape, dtype=bool)
    keep[1::3, -1] = not ragged
    qid = np.nonzero(keep)[0]
    factors = np.append(1.0, np.sort(rng.random(n_grades - 1))[::-1])
    for block in rank_lists(grades[keep], scores[keep], qid=qid)._blocks:
        assert type(block.tally).__name__ == "_Packed"
        got = np.split(block.tally.products_above(np.log(factors)), block.first_groups[1:])
        for row, query in enumerate(block.queries):
            items = keep[query]
            expected = [
                factors[grades[query, items & (scores[query] > score)]].prod()
                for score in np.unique(scores[query, items])[::-1]
            ]
            np.testing.assert_allclose(got[row][: len(expected)], expected, rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 64])
def test_a_group_may_fill_its_row(n):
    """The largest count takes one bit more where the row is as wide as a power of two."""
    grades, scores = [2] * n + [1, 0], [1] * n + [0, 0]
    (block,) = rank_lists(grades, scores)._blocks
    np.testing.assert_array_equal(block.tally.counts(np.arange(2)), [[0, 1], [0, 1], [n, 0]])
    (block,) = rank_lists([2] * n * 2, np.repeat([0, 0], n))._blocks
    np.testing.assert_array_equal(block.tally.counts(np.arange(1)), [[0], [0], [2 * n]])
