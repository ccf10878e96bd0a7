"""List measures: closed forms, brute force over tie orders, scikit-learn, simulation, bad input."""

from fractions import Fraction
from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import (
    average_precision_score,
    dcg_score,
    label_ranking_average_precision_score,
    ndcg_score,
)

from rankbook.metrics import auc
from rankbook.metrics import lists as m
from rankbook.metrics._large_ties import _steps, last_place

# ---------------------------------------------------------------- one ordered list, in plain loops


def plain_linear(grades, gain, discount, k=None):
    n = len(grades)
    return sum(gain(g) * discount(i, n) for i, g in list(enumerate(grades, 1))[:k])


def plain_dcg(grades, k=None):
    return plain_linear(grades, lambda g: 2.0**g - 1, lambda i, n: 1 / np.log2(1 + i), k)


def plain_ndcg(grades, k=None):
    best = plain_dcg(sorted(grades, reverse=True), k)
    return plain_dcg(grades, k) / best if best > 0 else 0.0


def plain_precision(grades, k=None):
    return sum(g > 0 for g in grades[:k]) / (len(grades) if k is None else k)


def plain_ap(grades, k=None):
    hits = [g > 0 for g in grades]
    found = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits)) if hits[i]]
    inside = sum(hits[:k])
    return sum(found[:inside]) / sum(hits) if any(hits) else 0.0


def plain_rr(grades, k=None):
    return next((1 / i for i, g in enumerate(grades[:k], 1) if g > 0), 0.0)


def plain_err(grades, k=None, top=4):
    value, reached = 0.0, 1.0
    for i, g in enumerate(grades[:k], 1):
        stop = (2.0**g - 1) / 2.0**top
        value, reached = value + reached * stop / i, reached * (1 - stop)
    return value


def plain_push(grades, k=None, p=3.0):
    hits = [g > 0 for g in grades]
    if all(hits) or not any(hits):
        return np.nan
    below = [sum(hits[i:]) / sum(hits) for i in range(len(hits)) if not hits[i]]
    return sum(b**p for b in below) / len(below)


def linear(y, scores, **kwargs):
    return m.linear_rank_statistic(
        y, scores, lambda g: 1 + g**2, lambda i, n: 1 / i + 1 / n, **kwargs
    )


def err4(y, scores, **kwargs):
    return m.err(y, scores, max_grade=4, **kwargs)


def push3(y, scores, k=None, **kwargs):
    return m.p_norm_push(y, scores, 3.0, **kwargs)


def plain_general(grades, k=None):
    return plain_linear(grades, lambda g: 1 + g**2, lambda i, n: 1 / i + 1 / n, k)


MEASURES = {
    "linear": (linear, plain_general),
    "dcg": (m.dcg, plain_dcg),
    "ndcg": (m.ndcg, plain_ndcg),
    "precision": (m.precision_at, plain_precision),
    "ap": (m.average_precision, plain_ap),
    "rr": (m.reciprocal_rank, plain_rr),
    "err": (err4, plain_err),
    "push": (push3, plain_push),
}
every_measure = pytest.mark.parametrize("name", MEASURES)


def ranked(y, scores):
    """Grades in ranked order, ties as given."""
    return [y[i] for i in sorted(range(len(y)), key=lambda i: -scores[i])]


def over_tie_orders(plain, y, scores, k):
    """The mean of a measure over all orders of the items that respect the scores."""
    values = [
        plain([y[i] for i in order], k)
        for order in permutations(range(len(y)))
        if all(scores[a] >= scores[b] for a, b in zip(order, order[1:], strict=False))
    ]
    return np.mean(values)


# ------------------------------------------------------------------------------------ closed forms


def test_by_hand():
    y, scores = [0, 1, 2], [3.0, 2.0, 1.0]
    assert_allclose(m.dcg(y, scores), 1 / np.log2(3) + 3 / 2)
    assert_allclose(m.ndcg(y, scores), (1 / np.log2(3) + 3 / 2) / (3 + 1 / np.log2(3)))
    assert_allclose(m.average_precision(y, scores), (1 / 2 + 2 / 3) / 2)
    assert m.reciprocal_rank(y, scores) == 0.5
    assert_allclose(m.precision_at(y, scores, k=2), 0.5)
    assert_allclose(m.err(y, scores), 1 / 2 * 1 / 4 + 1 / 3 * 3 / 4 * 3 / 4)
    assert_allclose(m.p_norm_push(y, scores, 5.0), 1.0)
    assert_allclose(m.linear_rank_statistic(y, scores, np.sqrt, lambda i, n: n - i), 1.0)


def test_constant_scorer_has_closed_forms():
    n, r = 12, 5
    y, scores = np.r_[np.ones(r), np.zeros(n - r)], np.zeros(n)
    harmonic = (1 / np.arange(1, n + 1)).sum()
    expected = (harmonic + (r - 1) / (n - 1) * (n - harmonic)) / n
    assert_allclose(m.average_precision(y, scores), expected)
    assert_allclose(m.precision_at(y, scores, k=4), r / n)
    assert_allclose(m.dcg(y, scores), r / n * (1 / np.log2(np.arange(2, n + 2))).sum())
    # Two identical items, each passed with probability 1/2.
    assert_allclose(m.err([1, 1], [0, 0]), 1 / 2 + 1 / 4 / 2)


def test_push_with_p_1_is_one_minus_auc():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 200), rng.integers(0, 20, 200)
    assert_allclose(m.p_norm_push(y, scores, 1.0), 1 - auc(y, scores))


def test_linear_statistic_holds_the_auc():
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 2, 300), rng.integers(0, 40, 300)
    n, positives = y.size, y.sum()
    value = m.linear_rank_statistic(y, scores, lambda g: g, lambda i, n: n - i)
    pairs = value - positives * (positives - 1) / 2
    assert_allclose(pairs / (positives * (n - positives)), auc(y, scores))


# ------------------------------------------------------------------------------------- brute force


@every_measure
@pytest.mark.parametrize("k", [None, 1, 2, 3, 5, 9])
def test_average_is_the_mean_over_tie_orders(name, k):
    measure, plain = MEASURES[name]
    rng = np.random.default_rng(2)
    for _ in range(12):
        n = int(rng.integers(1, 7))
        y, scores = rng.integers(0, 5, n), rng.integers(0, 3, n).astype(float)
        if name == "push" and ((y > 0).all() or not (y > 0).any()):
            continue
        got = measure(y, scores, k=k, per_query=True)
        assert_allclose(got, [over_tie_orders(plain, y, scores, k)], rtol=1e-12, atol=1e-15)


@every_measure
@pytest.mark.parametrize("k", [None, 1, 4, 30])
def test_ragged_unsorted_queries(name, k):
    measure, plain = MEASURES[name]
    rng = np.random.default_rng(3)
    qid = rng.permutation(np.repeat([7, -2, 30, 31, 5], [1, 40, 9, 17, 3]))
    y, scores = rng.integers(0, 5, qid.size), rng.integers(0, 12, qid.size) / 3
    y[qid == 31] = 0
    got = measure(y, scores, k=k, qid=qid, per_query=True, ties="order")
    k = None if name == "push" else k
    expected = [plain(ranked(y[qid == q], scores[qid == q]), k) for q in sorted(set(qid))]
    assert_allclose(got, expected, rtol=1e-12)
    apart = [
        measure(y[qid == q], scores[qid == q], k=k, per_query=True)[0] for q in sorted(set(qid))
    ]
    assert_allclose(measure(y, scores, k=k, qid=qid, per_query=True), apart, rtol=1e-12)


@every_measure
def test_tied_queries_of_one_length_do_not_mix(name):
    # They are the rows of one matrix, and none may see the groups of those above it.
    measure, _ = MEASURES[name]
    rng = np.random.default_rng(4)
    y, scores = rng.integers(0, 4, (5, 12)), rng.integers(0, 4, (5, 12))
    scores[1:3] = 1
    got = measure(y.ravel(), scores.ravel(), qid=np.repeat(np.arange(5), 12), per_query=True)
    apart = [measure(y[q], scores[q], per_query=True)[0] for q in range(5)]
    assert_allclose(got, apart, rtol=1e-12)


@every_measure
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_both_tie_rules_agree_without_ties_and_with_brute_force(name, data):
    measure, plain = MEASURES[name]
    n = data.draw(st.integers(2, 8))
    y = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    scores = data.draw(st.lists(st.floats(-5, 5), min_size=n, max_size=n, unique=True))
    average = measure(y, scores, per_query=True)
    assert_allclose(average, measure(y, scores, per_query=True, ties="order"))
    assert_allclose(average, [plain(ranked(y, scores))], rtol=1e-12, atol=1e-15)


def test_grades_that_are_not_small_integers():
    rng = np.random.default_rng(4)
    y, scores = rng.gamma(1.0, size=60), rng.integers(0, 20, 60)
    qid = np.repeat([0, 1], [20, 40])
    expected = [plain_ndcg(ranked(y[qid == q], scores[qid == q]), 7) for q in (0, 1)]
    assert_allclose(m.ndcg(y, scores, k=7, qid=qid, per_query=True, ties="order"), expected)
    high = np.array([300.0, 2.0, 0.0])
    assert_allclose(m.ndcg(high, [1, 2, 3]), plain_ndcg([0.0, 2.0, 300.0]))
    assert_allclose(m.err(high, [1, 2, 3]), 1 / 3)
    whole = rng.integers(0, 41, 50)
    assert_allclose(m.ndcg(whole, np.arange(50)), plain_ndcg(whole[::-1].tolist()))


def test_high_grades_give_numbers_or_are_refused():
    assert_allclose(m.ndcg([2000, 1, 0], [1, 2, 3]), 0.5)
    assert_allclose(
        m.ndcg([2000, 1999, 0], [2, 3, 1]), (0.5 + 1 / np.log2(3)) / (1 + 0.5 / np.log2(3))
    )
    # A list of low grades beside one of high grades keeps its own value.
    y, scores, qid = [3000, 0, 0, 2, 1, 0], [2, 3, 1, 1, 2, 3], [0, 0, 0, 1, 1, 1]
    expected = [1 / np.log2(3), plain_ndcg([0, 1, 2])]
    assert_allclose(m.ndcg(y, scores, qid=qid, per_query=True), expected)
    assert_allclose(m.err([2000, 1, 0], [1, 2, 3]), 1 / 3)
    assert_allclose(m.ndcg([950.0, 950.0, 0], [1, 1, 1], k=1), 2 / 3)
    for call in (
        lambda: m.dcg([2000, 1, 0], [1, 2, 3]),
        lambda: m.dcg([1023, 1023, 1023, 1023], [1, 1, 2, 3]),
        lambda: m.ndcg([1e308, 1e308, 1e308], [1, 2, 3], gain="linear"),
        # The best order's sum overflows, the given order's does not.
        lambda: m.ndcg([1.5e308, 1.5e308, 0, 0], [1, 2, 3, 4], gain="linear"),
        lambda: m.linear_rank_statistic([1e308, 1e308], [1, 2], lambda g: g, lambda i, n: 10.0),
    ):
        with pytest.raises(ValueError, match="y holds grades whose gains"):
            call()


def test_prepared_lists_know_their_tie_rule():
    average, order = (m.rank_lists([1, 0], [1, 1], ties=ties) for ties in ("average", "order"))
    assert m.ndcg(average) != m.ndcg(order) == m.ndcg(order, ties="order")
    with pytest.raises(ValueError, match="ties must be one of"):
        m.ndcg(average, ties="nonsense")
    with pytest.raises(ValueError, match="ties must be that of rank_lists, 'average'"):
        m.err(average, ties="order")


@pytest.mark.parametrize("measure", [m.dcg, m.average_precision, m.reciprocal_rank, err4])
def test_integer_scores_are_ranked_exactly(measure):
    base = 2**60
    y, scores = [0, 2, 1], np.array([base, base + 2, base + 1])
    assert measure(y, scores) == measure(y, [0, 2, 1])


@every_measure
def test_scores_that_differ_in_their_last_bits_are_no_ties(name):
    """Grades are sorted as last bits of scores, where these are not needed to tell them apart."""
    measure, _ = MEASURES[name]
    rng = np.random.default_rng(13)
    y, ranks = rng.integers(0, 5, 40), rng.integers(-8, 9, 40)
    expected = measure(y, ranks)
    one = np.array([-1.0, 1.0])
    for beyond in (1, 2, 3, 8, 9):
        # Neighbours of one, and numbers next to zero, on both sides.
        near = one.view(np.int64) + beyond * np.abs(ranks)[:, None]
        near = near.view(float)[np.arange(40), (ranks > 0).astype(int)]
        near[ranks == 0] = 0.0
        for scores in (near, ranks * beyond * 5e-324, ranks * 2e307):
            assert measure(y, scores) == expected
    zeros = np.where(rng.random(40) < 0.5, 0.0, -0.0)
    assert measure(y, np.where(ranks > 3, 1.0, zeros)) == measure(y, np.where(ranks > 3, 1, 0))


@every_measure
def test_numbers_next_to_zero_are_not_zero(name):
    """Of these only the sign is left where grades are the last bits, and -0.0 equals 0.0."""
    measure, _ = MEASURES[name]
    rng = np.random.default_rng(14)
    for _ in range(100):
        y, ranks = rng.permutation([0, 0, 0, 1, 2, 4]), rng.integers(-2, 3, 6)
        assert measure(y, ranks * 5e-324) == measure(y, ranks)


@pytest.mark.parametrize("name", ["dcg", "ap", "rr", "err"])
@pytest.mark.parametrize(("highest", "n"), [(4, 4095), (4, 8191), (1, 900), (12, 15), (48, 3)])
def test_counts_that_an_integer_holds_and_others_agree(name, highest, n):
    """An irrelevant item at the bottom of a list changes nothing, nor does another query."""
    measure, _ = MEASURES[name]
    if name == "err":
        measure = m.err
    rng = np.random.default_rng(n)
    y, scores = rng.integers(0, highest + 1, n), rng.integers(0, 3 + n // 20, n)
    y[rng.random(n) < 0.8] = 0
    y[0] = highest
    once = measure(y, scores)
    longer = [*y, 0], [*scores, -1]
    assert_allclose(measure(*longer), once, rtol=1e-13)
    qid = np.repeat([0, 1], [n, n + 1])
    both = measure([*y, *longer[0]], [*scores, *longer[1]], qid=qid, per_query=True)
    assert_allclose(both, [once, once], rtol=1e-13)


@every_measure
@pytest.mark.parametrize("k", [None, 5])
def test_queries_of_one_length_together_and_apart(name, k):
    measure, _ = MEASURES[name]
    rng = np.random.default_rng(14)
    y, scores = rng.integers(0, 5, (60, 12)), rng.integers(0, 4, (60, 12))
    y[:, :6] *= rng.integers(0, 2, (60, 1))
    qid = np.repeat(np.arange(60), 12)
    together = measure(y.ravel(), scores.ravel(), k=k, qid=qid, per_query=True)
    apart = [measure(*row, k=k, per_query=True)[0] for row in zip(y, scores, strict=True)]
    assert_allclose(together, apart, rtol=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [int, float])
def test_a_reader_who_surely_stops(kind):
    """Where floats round 1 - 2^-60 to 1 its logarithm is infinite, and nothing comes after."""
    y = np.r_[60, np.zeros(300)].astype(kind)
    scores = np.r_[np.ones(150), np.zeros(151)]
    expected = (1 / np.arange(1, 151)).sum() / 150
    assert_allclose(m.err(y, scores), expected, rtol=1e-13)
    assert_allclose(m.err([60, 60, 60], [0, 0, -1]), 1.0)


def test_tied_cascade_far_down_a_list():
    rng = np.random.default_rng(4)
    y = np.r_[np.zeros(14_000), rng.choice([0, 0, 1, 4], 100)].astype(int)
    scores = np.r_[np.arange(14_000, 0, -1), np.repeat([0, -1, -2, -3], [30, 30, 20, 20])]
    expected = float(_exact_cascade(y, scores, None, 4))
    assert_allclose(m.err(y, scores, max_grade=4), expected, rtol=2e-14)


@pytest.mark.parametrize("n", [300, 512, 513, 700])
@pytest.mark.parametrize("k", [None, 7, 100])
def test_large_tie_groups_with_few_and_many_grades(n, k):
    """Groups on both sides of the limit, below other items, against the recursion item by item."""
    rng = np.random.default_rng(n)
    mostly_zero = rng.choice([0, 1, 4], size=n, p=[0.9, 0.05, 0.05])
    hardly_zero = rng.choice([0, 0.2, 0.3], size=n, p=[0.01, 0.01, 0.98])
    for y in (mostly_zero, hardly_zero, rng.uniform(0, 4, n)):
        means = np.zeros(n + 1)
        means[0] = 1
        for j, stop in enumerate((2.0**y - 1) / 16):
            t = np.arange(1, j + 2)
            means[1 : j + 2] += t / (j + 1) * ((1 - stop) * means[: j + 1] - means[1 : j + 2])
        steps = (means[:-1] - means[1:]) / np.arange(2, n + 2)
        first = 1 / 16
        expected = first + (1 - first) * steps[: None if k is None else k - 1].sum()
        got = m.err(np.r_[1, y], np.r_[1, np.zeros(n)], k=k, max_grade=4)
        assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_tied_groups_of_unlike_sizes_side_by_side():
    """What is divided by beyond the end of the smaller group must not vanish."""
    sizes = [260, 512]
    y, qid = np.arange(772) % 4 + 0.5, np.repeat([0, 1], sizes)
    apart = [m.err(y[qid == q], np.zeros(sizes[q]), max_grade=14) for q in (0, 1)]
    together = m.err(y, np.zeros(772), qid=qid, max_grade=14, per_query=True)
    assert_allclose(together, apart, rtol=1e-13)


@pytest.mark.parametrize("k", [None, 300])
def test_a_large_tie_group_with_two_relevant_items(k):
    """Every place counts; how many of the two lie in the first t is hypergeometric."""
    n, stops = 2000, np.array([3 / 16, 15 / 16])
    t = np.arange(n + 1.0)
    both = t * (t - 1) / (n * (n - 1))
    one = 2 * t * (n - t) / (n * (n - 1))
    means = 1 - both - one + one * (1 - stops).mean() + both * (1 - stops).prod()
    expected = ((means[:-1] - means[1:]) / t[1:])[:k].sum()
    y = np.r_[np.zeros(n - 2), 2, 4]
    assert_allclose(m.err(y, np.zeros(n), k=k, max_grade=4), expected, rtol=1e-12)


@pytest.mark.parametrize("top", [1, 4, 12])
@pytest.mark.parametrize("size", [2, 9, 17, 60, 100])
def test_tied_cascade_in_exact_arithmetic(top, size):
    """Groups of every kind of work, in several rows and below others, against rationals."""
    rng = np.random.default_rng(size + top)
    y = rng.choice([0, 0, 0, 1, top], size=(4, size + 30))
    scores = np.r_[np.arange(size + 30, size, -1), np.zeros(size)] * np.ones((4, 1))
    scores[1, :9] = scores[1, 0]
    scores[2, :] = 1
    scores[3, 25:27] = scores[3, 24]
    qid = np.repeat(np.arange(4), size + 30)
    for k in (None, 20, 40):
        got = m.err(y.ravel(), scores.ravel(), qid=qid, k=k, max_grade=top, per_query=True)
        expected = [float(_exact_cascade(*row, k, top)) for row in zip(y, scores, strict=True)]
        assert_allclose(got, expected, rtol=2e-14)


def _exact_cascade(y, scores, k, top):
    reached, above, value = Fraction(1), 0, Fraction(0)
    for score in np.unique(scores)[::-1]:
        products = [Fraction(1)]
        for grade in y[scores == score].tolist():
            passes = 1 - Fraction(2**grade - 1, 2**top)
            longer = zip([*products, 0], [0, *products], strict=True)
            products = [same + passes * less for same, less in longer]
        size = len(products) - 1
        means = [product / comb(size, t) for t, product in enumerate(products)]
        for t in range(1, size + 1):
            if k is None or above + t <= k:
                value += reached * (means[t - 1] - means[t]) / (above + t)
        reached, above = reached * means[-1], above + size
    return value


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("highest", [1, 3, 24, 60])
@pytest.mark.parametrize("k", [1, 6, 63, 64, 65, 90])
def test_first_places_of_a_tied_group_in_exact_arithmetic(highest, k):
    """Few places are counted by grades, more by items; a reader may surely stop."""
    rng = np.random.default_rng(k)
    y = np.append(rng.choice([0, 0, 1, highest], 100), highest)
    for scores in (np.zeros(101), np.arange(101) < 2):
        expected = float(_exact_cascade(y, scores, k, highest))
        assert_allclose(m.err(y, scores, k=k, max_grade=highest), expected, rtol=2e-14)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [2, 9, 17, 60])
@pytest.mark.parametrize("top", [20, 60, 600])
def test_tied_cascade_of_tiny_chances_to_stop(size, top):
    """They keep their digits beside 1, in tables, integrals and groups that the cut-off divides."""
    rng = np.random.default_rng(size)
    y, scores = rng.integers(0, 3, size), np.zeros(size)
    y[:2] = 1, 2
    for k in (None, 1, 2, 7):
        expected = _exact_cascade(y, scores, k, top)
        # As they stand, and as grades that are not counted.
        for grades in (y, np.append(y, 0.5)):
            got = m.err(grades, [*scores, -1][: len(grades)], k=min(k or size, size), max_grade=top)
            assert abs(Fraction(got) / expected - 1) < 2e-14


@pytest.mark.parametrize("n_grades", [2, 700])
@pytest.mark.parametrize("k", [5, 40])
def test_large_tie_groups_of_tiny_chances_to_stop(n_grades, k):
    """Nobody stops before, so that each place adds the mean chance, to first order exactly."""
    y = np.arange(700) % n_grades / n_grades
    stops = np.expm1(y * np.log(2)) * 2.0**-60
    expected = stops.mean() * (1 / np.arange(1, k + 1)).sum()
    assert_allclose(m.err(y, np.zeros(700), k=k, max_grade=60), expected, rtol=1e-13)


@pytest.mark.parametrize(("n", "queries"), [(1000, 3), (200_000, 1)])
@pytest.mark.parametrize(("tied", "relevant"), [(2, 1), (2, 2), (5, 3)])
def test_ties_far_down_a_list(n, queries, tied, relevant):
    """What is added up from the top would lose these digits."""
    if queries > 1 and tied > 2:
        n = 400
    y = np.r_[np.zeros(n - relevant), np.ones(relevant)].astype(int)
    scores = np.maximum(np.arange(n, 0, -1), tied)
    t, r = np.arange(1, tied + 1), relevant
    ranks = n - tied + t
    discount = r / tied * (1 / np.log2(1 + ranks)).sum()
    found = ((1 + (t - 1) * (r - 1) / (tied - 1)) / ranks).sum() / tied
    expected = {m.dcg: discount, m.average_precision: found}
    if relevant == 1:
        expected[m.err] = (1 / ranks).sum() / tied / 2
    qid = np.repeat(np.arange(queries), n)
    for measure, value in expected.items():
        got = measure(np.tile(y, queries), np.tile(scores, queries), qid=qid, per_query=True)
        assert_allclose(got, value, rtol=4e-15)


@pytest.mark.parametrize("top", [1, 10, 30])
def test_a_million_ties_of_which_few_are_relevant(top):
    n, relevant = 10**6, 10**4
    y = np.zeros(n, dtype=int)
    y[:relevant] = 1
    value = m.err(y, np.zeros(n), max_grade=top)
    # Drawn with replacement, 1/rank of a geometric stop; a reader who never stops finds nothing.
    stop = relevant / n * 2.0**-top
    t = np.arange(n)
    assert_allclose(value, (stop * np.exp(t * np.log1p(-stop)) / (t + 1)).sum(), rtol=1e-4)


@pytest.mark.parametrize("k", [5000, 300_000, 999_999])
def test_a_million_ties_that_a_cut_off_divides(k):
    """One relevant item stops at each place alike; where all are, each is reached by q^(t-1)."""
    n, ranks = 1_000_000, np.arange(1.0, k + 1)
    y, constant = np.zeros(n, dtype=int), np.zeros(n)
    y[7] = 3
    expected = 7 / 2**15 / n * (1 / ranks).sum()
    assert_allclose(m.err(y, constant, k=k, max_grade=15), expected, rtol=1e-10)
    expected = (0.5**15 * (1 - 0.5**15) ** (ranks - 1) / ranks).sum()
    assert_allclose(m.err(np.ones(n), constant, k=k, max_grade=15), expected, rtol=1e-10)


def test_all_places_but_the_last_of_many_ties():
    """What the last place adds: all others are passed, and the last item is not."""
    n, top = 20_000, 14
    y = np.random.default_rng(3).integers(0, 4, n)
    y[:5] = top - 1
    whole, cut = (m.err(y, np.zeros(n), k=k, max_grade=top) for k in (n, n - 1))
    passes = 1 - (2.0**y - 1) / 2.0**top
    last = np.prod(passes) * np.mean(1 / passes - 1) / n
    assert_allclose(cut, whole - last, rtol=1e-12)


def test_steps_of_readers_who_rarely_stop_in_exact_arithmetic():
    values, counts = np.array([0.0, 1 / 1024, 1 / 128, 1.0]), np.array([40, 30, 11, 1])
    polynomial = [Fraction(1)]
    for value, count in zip(values, counts, strict=True):
        for _ in range(count):
            longer = zip([*polynomial, 0], [0, *polynomial], strict=True)
            polynomial = [same + (1 - Fraction(value)) * less for same, less in longer]
    means = [c / comb(82, t) for t, c in enumerate(polynomial)]
    expected = [float(means[t - 1] - means[t]) for t in range(1, 83)]
    assert_allclose(_steps(values, counts, np.arange(1.0, 83)), expected, rtol=1e-12)


def test_a_million_ties():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 10**6)
    value = m.err(y, np.zeros(y.size))
    # So many items are as good as drawn with replacement: 1/rank of a geometric stop.
    stop = ((2.0**y - 1) / 16).mean()
    assert_allclose(value, -np.log(stop) * stop / (1 - stop), rtol=1e-5)


def test_one_tie_in_a_ragged_query():
    """Padding is a group of its own; a query with a single tie must not pass for one without."""
    y, scores, qid = [0, 1, 3, 2, 0, 1, 2], [5, 5, 1, 9, 8, 7, 6], [0, 0, 0, 1, 1, 1, 1]
    for measure in (m.dcg, m.ndcg, m.average_precision, m.reciprocal_rank, err4):
        first = measure(y[:3], scores[:3])
        assert first != measure(y[:3], scores[:3], ties="order")
        second = measure(y[3:], scores[3:])
        got = measure(y, scores, qid=qid, per_query=True)
        assert_allclose(got, [first, second], rtol=1e-13)


@pytest.mark.parametrize("gain", [lambda g: 1 + g, lambda g: 5 - g])
@pytest.mark.parametrize("k", [None, 2, 6])
@pytest.mark.parametrize("grades", [5, 50])
@pytest.mark.parametrize("ties", ["average", "order"])
def test_padding_has_no_gain_where_grade_zero_has(gain, k, grades, ties):
    rng = np.random.default_rng(grades)
    qid = np.repeat([0, 1, 2], [5, 7, 8])
    y = rng.integers(0, 5, 20) if grades == 5 else rng.integers(0, 5, 20) + 0.25
    if grades == 50:
        y[0] = 4.5
    scores = rng.integers(0, 4, 20)
    keywords = {"k": k, "gain": gain, "ties": ties}
    for measure in (m.dcg, m.ndcg):
        apart = [measure(y[qid == q], scores[qid == q], **keywords) for q in range(3)]
        together = measure(y, scores, qid=qid, per_query=True, **keywords)
        assert_allclose(together, apart, rtol=1e-12)
    ideal = [np.sort(gain(y[qid == q]))[::-1][:k] for q in range(3)]
    best = [(g / np.log2(np.arange(2, g.size + 2))).sum() for g in ideal]
    dcg, ndcg = (f(y, scores, qid=qid, per_query=True, **keywords) for f in (m.dcg, m.ndcg))
    assert_allclose(ndcg, dcg / best, rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("grades", [[1, 2, 4, 4, 1, 1, 2], [1, 2, 4.5, 4.5, 1, 1, 2]])
@pytest.mark.parametrize("scores", [[1, 2, 3, 4, 5, 6, 7], [1, 1, 3, 2, 2, 2, 1]])
@pytest.mark.parametrize("k", [None, 1])
def test_gains_are_asked_of_the_grades_that_occur(grades, scores, k):
    """Neither padding's zero nor a grade between those of the items."""
    values = {1: 1.0, 2: 5.0, 4: 2.0, 4.5: 2.0}
    gain = np.vectorize(values.__getitem__, otypes=[float])
    gains = [values[g] for g in grades]
    options = {"qid": [0, 0, 0, 1, 1, 1, 1], "k": k, "per_query": True}
    for measure in (m.dcg, m.ndcg):
        expected = measure(gains, scores, gain="linear", **options)
        assert_allclose(measure(grades, scores, gain=gain, **options), expected, rtol=1e-14)
    ranks = {"discount": lambda i, n: 1.0 * i}
    expected = m.linear_rank_statistic(gains, scores, lambda g: g, **ranks, **options)
    got = m.linear_rank_statistic(grades, scores, gain, **ranks, **options)
    assert_allclose(got, expected, rtol=1e-14)


def test_linear_statistic_asks_for_no_discount_beyond_a_list():
    y, scores, qid = [1, 2, 0, 1, 0, 2, 1], [3, 1, 2, 4, 2, 1, 3], [0, 0, 0, 1, 1, 1, 1]
    options = {"gain": lambda g: 1 + g, "discount": lambda i, n: 1 / (n - i + 1)}
    apart = [m.linear_rank_statistic(y[s], scores[s], **options) for s in (slice(3), slice(3, 7))]
    together = m.linear_rank_statistic(y, scores, qid=qid, per_query=True, **options)
    assert_allclose(together, apart)


def test_large_tie_group_truncates_without_loss():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 5, 3000)
    stops = (2.0**y - 1) / 16
    # Sequential expectation: draw the order by simulation of the exact recursion, item by item.
    means = np.zeros(y.size + 1)
    means[0] = 1
    for j, stop in enumerate(stops):
        t = np.arange(1, j + 2)
        means[1 : j + 2] += t / (j + 1) * ((1 - stop) * means[: j + 1] - means[1 : j + 2])
    expected = ((means[:-1] - means[1:]) / np.arange(1, y.size + 1)).sum()
    assert_allclose(m.err(y, np.zeros(y.size), max_grade=4), expected, rtol=1e-13)


# -------------------------------------------------------------------- independent implementations


@pytest.mark.parametrize("k", [None, 1, 5, 50])
def test_scikit_learn_dcg_and_ndcg_average_ties_too(k):
    rng = np.random.default_rng(6)
    y, scores = rng.integers(0, 5, (30, 20)), rng.integers(0, 6, (30, 20))
    qid = np.repeat(np.arange(30), 20)
    ours = {"k": k, "qid": qid, "gain": "linear"}
    assert_allclose(m.dcg(y.ravel(), scores.ravel(), **ours), dcg_score(y, scores, k=k))
    assert_allclose(m.ndcg(y.ravel(), scores.ravel(), **ours), ndcg_score(y, scores, k=k))
    gains = 2.0**y - 1
    ours["gain"] = "exponential"
    assert_allclose(m.ndcg(y.ravel(), scores.ravel(), **ours), ndcg_score(gains, scores, k=k))
    natural = m.dcg(y.ravel(), scores.ravel(), k=k, qid=qid, log_base=np.e)
    assert_allclose(natural, dcg_score(gains, scores, k=k, log_base=np.e))


def test_scikit_learn_average_precision_without_ties():
    rng = np.random.default_rng(7)
    y, scores = rng.integers(0, 2, (25, 30)), rng.normal(size=(25, 30))
    y[:, 0] = 1
    qid = np.repeat(np.arange(25), 30)
    got = m.average_precision(y.ravel(), scores.ravel(), qid=qid, per_query=True)
    assert_allclose(got, [average_precision_score(a, b) for a, b in zip(y, scores, strict=True)])
    assert_allclose(got.mean(), label_ranking_average_precision_score(y, scores))


def test_err_is_the_mean_of_a_simulated_cascade():
    rng = np.random.default_rng(8)
    y = np.array([1, 3, 0, 2, 4, 1, 2])
    scores = np.array([2.0, 1.0, 1.0, 3.0, 1.0, 0.0, 2.0])
    draws = 200_000
    noise = rng.random((draws, y.size))
    order = np.lexsort((noise, np.broadcast_to(-scores, noise.shape)), axis=1)
    stops = rng.random((draws, y.size)) < ((2.0**y - 1) / 16)[order]
    value = np.where(stops.any(axis=1), 1 / (stops.argmax(axis=1) + 1), 0.0)
    tolerance = 4 * value.std() / np.sqrt(draws)
    assert abs(m.err(y, scores, max_grade=4) - value.mean()) < tolerance
    first = np.where(stops[:, :3].any(axis=1), value, 0.0)
    assert abs(m.err(y, scores, k=3, max_grade=4) - first.mean()) < tolerance


# ------------------------------------------------------------------------------------- invariances


@every_measure
def test_increasing_transforms_and_order_of_items_change_nothing(name):
    measure, _ = MEASURES[name]
    rng = np.random.default_rng(9)
    y, scores = rng.integers(0, 5, 90), rng.integers(0, 15, 90)
    qid = rng.integers(0, 7, 90)
    value = measure(y, scores, qid=qid, k=6)
    assert_allclose(measure(y, np.exp(scores / 5) + 3, qid=qid, k=6), value, rtol=1e-12)
    shuffle = rng.permutation(90)
    assert_allclose(measure(y[shuffle], scores[shuffle], qid=qid[shuffle], k=6), value, rtol=1e-12)
    names = np.array(list("cabgfde"))
    assert_allclose(measure(y, scores, qid=names[qid], k=6), value, rtol=1e-12)


def test_no_ndcg_exceeds_one():
    rng = np.random.default_rng(0)
    samples = [(rng.integers(0, 4, n), rng.integers(0, 4, n)) for n in rng.integers(2, 9, 300)]
    values = [m.ndcg(y, scores, k=k) for y, scores in samples for k in (1, 3)]
    values += [m.ndcg(y, y, k=3) for y, _ in samples]
    assert max(values) == 1.0 and set(values[600:]) <= {0.0, 1.0}


def test_perfect_reversed_and_empty_lists():
    y = np.array([0, 1, 2, 0, 3])
    for measure in (m.ndcg, m.average_precision, m.reciprocal_rank):
        assert_allclose(measure(y, y), 1.0)
        assert measure(y, -y) < measure(y, np.zeros(5)) < 1
        assert measure(np.zeros(3), [1, 2, 3]) == 0
    assert m.err([0, 0], [1, 2]) == 0 and m.dcg([0, 0], [1, 2]) == 0
    assert m.p_norm_push(y, y) == 0 and m.p_norm_push(y, -y) == 1
    assert m.ndcg([2], [0.0]) == m.average_precision([2], [0.0]) == 1.0


def test_threshold_moves_relevance():
    y, scores = np.array([1, 2, 3, 0]), np.array([4, 3, 2, 1])
    assert m.reciprocal_rank(y, scores, threshold=1) == 0.5
    assert m.precision_at(y, scores, k=2, threshold=2) == 0
    assert_allclose(m.average_precision(y, scores, threshold=2), 1 / 3)
    # Grades that fill an integer: nothing is left for one that exceeds the highest.
    y, scores = np.arange(13) % 13, np.arange(13) // 2
    assert m.precision_at(y, scores, threshold=11) == 1 / 13
    assert m.precision_at(y, scores, threshold=12) == m.precision_at(y, scores, threshold=99) == 0


def test_prepared_lists_give_the_same_values():
    rng = np.random.default_rng(10)
    y, scores, qid = rng.integers(0, 5, 80), rng.integers(0, 9, 80), rng.integers(0, 6, 80)
    for ties in ("average", "order"):
        lists = m.rank_lists(y, scores, qid=qid, ties=ties)
        assert "n_queries=6" in repr(lists)
        for measure in (m.ndcg, m.dcg, m.err, m.average_precision, m.reciprocal_rank):
            expected = measure(y, scores, qid=qid, ties=ties, per_query=True, k=4)
            assert_array_equal(measure(lists, per_query=True, k=4), expected)


def test_push_skips_queries_without_a_pair():
    y, scores, qid = [1, 1, 0, 1, 0], [2, 1, 3, 2, 1], [1, 1, 2, 2, 2]
    assert_array_equal(m.p_norm_push(y, scores, qid=qid, per_query=True), [np.nan, 0.5])
    assert m.p_norm_push(y, scores, qid=qid) == 0.5
    with pytest.raises(ValueError, match="y must hold a positive and a negative"):
        m.p_norm_push([1, 1], [1, 2])


# --------------------------------------------------------------------------------------- bad input


@every_measure
@pytest.mark.parametrize(
    ("y", "scores", "error", "message"),
    [
        ([], [], ValueError, "scores must not be empty"),
        ([1, 0], [1.0], ValueError, "y and scores must have the same length"),
        ([1, np.nan], [1.0, 2.0], ValueError, "y must be finite"),
        ([1, -1], [1.0, 2.0], ValueError, "y must hold grades that are not negative"),
        ([1, 0], [1.0, np.inf], ValueError, "scores must be finite"),
        ([1, 0], ["a", "b"], TypeError, "scores must be real numbers"),
        ([[1, 0]], [[1.0, 2.0]], ValueError, "scores must be one-dimensional"),
    ],
)
def test_bad_lists(name, y, scores, error, message):
    with pytest.raises(error, match=message):
        MEASURES[name][0](y, scores)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: m.ndcg([1, 0], [1, 2], k=0), ValueError, "k must be at least 1"),
        (lambda: m.ndcg([1, 0], [1, 2], k=2.5), TypeError, "k must be an integer"),
        (lambda: m.ndcg([1, 0], [1, 2], ties="mean"), ValueError, "ties must be one of"),
        (lambda: m.ndcg([1, 0], [1, 2], qid=[1]), ValueError, "qid and y must have the same"),
        (lambda: m.ndcg([1, 0], [1, 2], gain="cubic"), ValueError, "gain must be one of"),
        (lambda: m.ndcg([1, 0], [1, 2], gain=lambda g: g - 1), ValueError, "gain must not be neg"),
        (lambda: m.dcg([1, 0], [1, 2], log_base=1.0), ValueError, "log_base must be greater"),
        (lambda: m.err([3, 0], [1, 2], max_grade=2), ValueError, "max_grade must be at least"),
        (lambda: m.precision_at([1], [1], threshold=-1), ValueError, "threshold must be at least"),
        (lambda: m.p_norm_push([1, 0], [1, 2], p=0), ValueError, "p must be greater than"),
        (lambda: m.ndcg([1, 0]), TypeError, "scores must be given"),
        (lambda: m.ndcg(m.rank_lists([1], [1]), [1]), TypeError, "scores and qid must be left out"),
        (lambda: m.linear_rank_statistic([1], [1], 2, 3), TypeError, "gain and discount must be"),
        (
            lambda: m.linear_rank_statistic([1], [1], np.sqrt, lambda i, n: 1 / (i - 1.0)),
            ValueError,
            "discount must return finite",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("sizes", [(6, 2, 8), (4, 8, 8, 8, 8, 8, 6), (8, 8, 6), (5, 3, 8, 8)])
def test_lists_of_similar_lengths_are_not_taken_for_equal_ones(sizes):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    y, scores = rng.integers(0, 4, len(qid)), rng.normal(size=len(qid))
    alone = [m.ndcg(y[qid == q], scores[qid == q]) for q in range(len(sizes))]
    np.testing.assert_allclose(m.ndcg(y, scores, qid=qid, per_query=True), alone, rtol=1e-12)


def test_the_last_place_that_counts_of_a_large_tie():
    assert last_place(0.0, 2.0**-10) == 1
    assert last_place(0.5, 2.0**-10) == 11
    assert last_place(1.0, 2.0**-10) == np.inf
