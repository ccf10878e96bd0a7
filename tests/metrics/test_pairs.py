"""Pair metrics against brute force, peers, and what must not change them."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from rankbook import costs as cost_matrices
from rankbook.metrics import (
    auc,
    kendall_tau,
    pair_error_rates,
    pairwise_risk,
    u_cons,
    u_ovo,
    u_pairs,
    volume_under_surface,
)
from rankbook.metrics._bitwise import scale_errors
from rankbook.metrics._counting import prepare
from tests.metrics.pair_samples import samples

MULTI = [pairwise_risk, pair_error_rates, u_pairs, u_ovo, u_cons, kendall_tau, volume_under_surface]
U = [u_pairs, u_ovo, u_cons]


def brute_table(y, scores, ties, weights):
    """Weights of wrong pairs and of all pairs for every pair of classes, by a double loop."""
    n_classes = max(y) + 1
    wrong, total = np.zeros((2, n_classes, n_classes))
    for a, b in itertools.product(range(len(y)), repeat=2):
        if y[a] < y[b]:
            pair = weights[a] * weights[b]
            total[y[a], y[b]] += pair
            wrong[y[a], y[b]] += pair * (
                1.0 if scores[a] > scores[b] else ties if scores[a] == scores[b] else 0.0
            )
    return wrong, total


def brute_risk(y, scores, ties=0.5, weights=None):
    wrong, total = brute_table(y, scores, ties, np.ones(len(y)) if weights is None else weights)
    return wrong.sum() / total.sum()


@given(samples(), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_brute_force(sample, ties, weighted):
    y, scores, weights = sample
    weights = weights if weighted else np.ones(len(y))
    keywords = {"sample_weight": weights if weighted else None}
    wrong, total = brute_table(y, scores, ties, weights)
    n_classes = y.max() + 1
    upper = np.triu_indices(n_classes, 1)
    rates = pair_error_rates(y, scores, ties, **keywords)
    np.testing.assert_allclose(rates[upper], (wrong[upper] / total[upper]), rtol=1e-12, atol=1e-14)
    assert np.isnan(rates[np.tril_indices(n_classes)]).all()
    for costs in (None, "linear", "dcg"):
        matrix = getattr(cost_matrices, costs or "constant")(n_classes)
        expected = (matrix * wrong).sum() / total.sum()
        risk = pairwise_risk(y, scores, costs, ties, **keywords)
        assert risk == pytest.approx(expected, rel=1e-12, abs=1e-14)
    cuts = [
        1 - wrong[: k + 1, k + 1 :].sum() / total[: k + 1, k + 1 :].sum()
        for k in range(n_classes - 1)
    ]
    u = u_pairs(y, scores, ties, **keywords)
    assert u == pytest.approx(1 - wrong.sum() / total.sum(), abs=1e-13)
    ovo = 1 - (wrong[upper] / total[upper]).mean()
    assert u_ovo(y, scores, ties, **keywords) == pytest.approx(ovo, abs=1e-13)
    assert u_cons(y, scores, ties, **keywords) == pytest.approx(np.mean(cuts), abs=1e-13)


@given(samples(max_classes=6), st.sampled_from([np.arctan, np.exp, lambda s: 2 * s - 7]))
@settings(max_examples=60, deadline=None)
def test_increasing_transforms_change_nothing(sample, transform):
    y, scores, weights = sample
    for metric in MULTI:
        before = metric(y, scores, sample_weight=weights)
        after = metric(y, transform(scores), sample_weight=weights)
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-13)
        again = metric(y * 10 - 3, scores, sample_weight=weights)
        np.testing.assert_allclose(again, before, rtol=1e-12, atol=1e-13)


@given(samples(max_classes=6))
@settings(max_examples=60, deadline=None)
def test_reversal(sample):
    y, scores, weights = sample
    for metric in [*U, pairwise_risk, pair_error_rates]:
        flipped = metric(y, -scores, sample_weight=weights)
        expected = 1 - metric(y, scores, sample_weight=weights)
        np.testing.assert_allclose(flipped, expected, rtol=1e-12, atol=1e-13)
        both = metric(-y, -scores, sample_weight=weights)
        same = metric(y, scores, sample_weight=weights)
        if metric is pair_error_rates:
            both = both[::-1, ::-1].T
        np.testing.assert_allclose(both, same, rtol=1e-12, atol=1e-13)
    tau = kendall_tau(y, scores, sample_weight=weights)
    assert kendall_tau(y, -scores, sample_weight=weights) == pytest.approx(-tau, abs=1e-12)


@given(samples(), st.data())
@settings(max_examples=60, deadline=None)
def test_integer_weights_are_repetitions(sample, data):
    y, scores, _ = sample
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y)))
    for metric in MULTI:
        weighted = metric(y, scores, sample_weight=times)
        repeated = metric(np.repeat(y, times), np.repeat(scores, times))
        if metric is not kendall_tau:
            np.testing.assert_allclose(weighted, repeated, rtol=1e-12, atol=1e-13)
    # A copy ties with itself in neither count, so tau-b is the same as well.
    tau = kendall_tau(np.repeat(y, times), np.repeat(scores, times))
    assert kendall_tau(y, scores, sample_weight=times) == pytest.approx(tau, abs=1e-12)


@given(samples(max_size=20, all_classes=False), st.data())
@settings(max_examples=80, deadline=None)
def test_queries_are_averaged(sample, data):
    y, scores, weights = sample
    qid = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    qid[:2] = 0
    labels = range(y.max() + 1)
    for metric in [pairwise_risk, *U, kendall_tau]:
        parts = []
        for q in np.unique(qid):
            here = qid == q
            if len(set(y[here])) > 1:
                parts.append(metric(y[here], scores[here], sample_weight=weights[here]))
        value = metric(y, scores, sample_weight=weights, qid=qid, labels=labels)
        assert value == pytest.approx(np.mean(parts), rel=1e-11, abs=1e-13)
        named = metric(y, scores, sample_weight=weights, qid=[f"q{9 - q}" for q in qid])
        assert named == pytest.approx(value, rel=1e-11, abs=1e-13)


def test_rates_of_queries_are_averaged():
    rng = np.random.default_rng(3)
    y, scores, qid = rng.integers(0, 3, 60), rng.integers(0, 9, 60), rng.integers(0, 9, 60)
    rates = []
    for q in np.unique(qid):
        here = qid == q
        rates.append(pair_error_rates(y[here], scores[here], labels=[0, 1, 2]))
    upper = np.triu_indices(3, 1)
    expected = np.nanmean(np.array(rates)[:, *upper], axis=0)
    np.testing.assert_allclose(pair_error_rates(y, scores, qid=qid)[upper], expected)


@given(samples(max_classes=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_auc_is_sklearns(sample):
    y, scores, weights = sample
    expected = roc_auc_score(y, scores, sample_weight=weights)
    assert auc(y, scores, sample_weight=weights) == pytest.approx(expected, rel=1e-12)
    assert auc(y, scores) == pytest.approx(roc_auc_score(y, scores), rel=1e-13)
    assert auc(y, scores) == pytest.approx(1 - pairwise_risk(y, scores), rel=1e-13)


@pytest.mark.parametrize("n_labels", [2, 5, 13, 40, 300])
@pytest.mark.parametrize("decimals", [1, 9])
def test_kendall_tau_is_scipys(n_labels, decimals):
    rng = np.random.default_rng(n_labels)
    y = rng.integers(0, n_labels, 500)
    scores = np.round(y / n_labels + rng.normal(size=500), decimals)
    expected = stats.kendalltau(y, scores).statistic
    assert kendall_tau(y, scores) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 7, 12, 13, 64, 257, 400])
@pytest.mark.parametrize("queries", [None, 5])
def test_constant_costs_two_ways(n_classes, queries):
    """Bit by bit (many classes) and class by class (an explicit matrix) agree."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 1200)
    scores = np.round(y / n_classes + rng.normal(size=1200), 1)
    keywords = {"labels": np.arange(n_classes)}
    if queries:
        keywords |= {"qid": rng.integers(0, queries, 1200), "sample_weight": rng.random(1200)}
    matrix = np.triu(np.ones((n_classes, n_classes)), 1)
    for ties in (0.0, 0.5):
        by_row = pairwise_risk(y, scores, matrix, ties, **keywords)
        assert pairwise_risk(y, scores, None, ties, **keywords) == pytest.approx(by_row, rel=1e-12)


def test_scores_that_differ_in_the_last_bit():
    """The sort packs the class into the last bits of a score; near ties must not become ties."""
    up = np.nextafter(1.0, 2.0)
    assert auc([0, 1], [1.0, up]) == 1.0
    assert auc([1, 0], [1.0, up]) == 0.0
    assert auc([0, 1, 0, 1], [1.0, up, up, 1.0]) == 0.5
    tiny = np.nextafter(0.0, 1.0)
    assert auc([0, 1], [-tiny, tiny]) == 1.0
    assert auc([0, 1], [0.0, tiny]) == 1.0
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    scores = 1.0 + rng.integers(0, 50, 4000) * np.finfo(float).eps
    assert auc(y, scores) == pytest.approx(roc_auc_score(y, scores), rel=1e-13)


def test_zero_has_no_sign_and_large_scores_are_fine():
    assert auc([0, 1], [0.0, -0.0]) == 0.5
    assert auc([0, 1], [-0.0, 0.0]) == 0.5
    # A negative number that the packed sort rounds to -0.0 still lies below 0.0.
    tiny = np.finfo(float).smallest_subnormal
    assert auc([0, 0, 1], [0.0, -tiny, 0.0]) == 0.75
    assert auc([1, 0, 0], [-tiny, 0.0, -0.0]) == 0.0
    y, scores = np.arange(6) % 3, np.array([0.0, -tiny, -3 * tiny, 2 * tiny, -0.0, 0.0])
    assert u_pairs(y, scores) == 1 - brute_risk(y, scores)
    big = np.finfo(float).max
    assert auc([0, 0, 1, 1], [-big, 0, 1, big]) == 1.0


@pytest.mark.parametrize("base", [2**53, 1_700_000_000_000_000_000, 2**63, 2**70])
def test_integer_scores_are_compared_exactly(base):
    y, scores = [0, 1, 1, 2], [base, base + 1, base + 3, base + 2]
    expected = u_pairs(y, [0, 1, 3, 2])
    assert u_pairs(y, scores) == expected < 1
    if base < 2**64:
        assert u_pairs(y, np.array(scores, dtype=np.uint64)) == expected
    if base < 2**63:
        assert u_pairs(y, -np.array(scores)) == u_pairs(y, [0, -1, -3, -2])
    assert auc([0, 1], [base, base + 1]) == 1.0


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-154, 1e154, 1e200, 1e300])
@pytest.mark.parametrize("metric", MULTI)
def test_weights_of_any_size(metric, factor):
    y, scores = np.array([0, 1, 2, 0, 1, 2, 1]), np.array([1, 2, 2, 3, 1, 3, 0])
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 0.0])
    qid = np.array([0, 0, 0, 1, 1, 1, 1])
    expected = metric(y, scores, sample_weight=weights)
    got = metric(y, scores, sample_weight=factor * weights)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
    expected = metric(y, scores, sample_weight=weights, qid=qid)
    uneven = weights * np.where(qid == 1, factor, 1.0)
    got = metric(y, scores, sample_weight=uneven, qid=qid)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_light_classes_beside_heavy_ones_keep_their_rates():
    y, scores = [0, 0, 1, 1, 2], [1, 3, 2, 0, 9]
    weights = [1e-200, 1e-200, 1e-200, 3e-200, 1.0]
    assert u_ovo(y, scores, sample_weight=weights) == pytest.approx((0.125 + 1 + 1) / 3)
    rates = pair_error_rates(y, scores, sample_weight=weights)
    assert rates[0, 1] == pytest.approx(0.875)
    # A class far lighter than the other still makes pairs with it.
    assert auc([0, 1, 1], [1, 0, 2], sample_weight=[1.0, 1e-18, 1e-18]) == 0.5
    assert auc([0, 0, 1], [0, 2, 1], sample_weight=[1e-18, 1e-18, 1.0]) == 0.5
    with pytest.raises(ValueError, match="sample_weight must not span"):
        auc([0, 1, 0], [1, 2, 3], sample_weight=[1e-320, 1e300, 1e-320])


@pytest.mark.parametrize("metric", [pairwise_risk, *U, kendall_tau])
@pytest.mark.parametrize("heavy", [0, 1])
@pytest.mark.parametrize("n_classes", [3, 15])
def test_light_items_keep_their_part_whatever_queries_come_before(metric, n_classes, heavy):
    """A heavy item makes its query's pairs with light ones: only ratios within a query count."""
    rng = np.random.default_rng(1)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 6))
    scores, weights = rng.integers(0, 5, y.size), np.full(y.size, 1e-18)
    weights[heavy] = 1.0
    expected = metric(y, scores, sample_weight=weights)
    others = np.repeat([0, 1], y.size)
    got = metric(
        np.tile(y, 3),
        np.tile(scores, 3),
        sample_weight=np.concatenate([np.ones(2 * y.size), weights]),
        qid=np.append(others, np.full(y.size, 2)),
    )
    plain = metric(y, scores)
    assert got == pytest.approx((2 * plain + expected) / 3, rel=1e-12)


def test_many_classes_and_queries_cost_what_occurs():
    """Every label of its own, in many queries: nothing is classes times classes or queries."""
    rng = np.random.default_rng(0)
    n = 20_000
    y, scores, qid = rng.random(n), rng.random(n), rng.integers(0, 2000, n)
    weights = rng.random(n)
    small = 300
    near = y[:small].argsort().argsort()
    tracemalloc.start()
    for metric in [pairwise_risk, *U, kendall_tau]:
        for keywords in ({}, {"qid": qid}, {"qid": qid, "sample_weight": weights}):
            metric(y, scores, **keywords)
    pairwise_risk(y, scores, "linear", qid=qid)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 8 * n
    expected = 1 - stats.kendalltau(y, scores).statistic
    assert 2 * pairwise_risk(y, scores) == pytest.approx(expected, rel=1e-12)
    # With one item a class every pair of classes is a pair of items.
    assert u_ovo(near, scores[:small]) == pytest.approx(u_pairs(near, scores[:small]), rel=1e-12)
    matrix = cost_matrices.consecutive(np.ones(small))
    by_row = pairwise_risk(near, scores[:small], matrix)
    assert u_cons(near, scores[:small]) == pytest.approx(1 - by_row, rel=1e-11)
    matrix = cost_matrices.linear(small)
    by_row = pairwise_risk(near, scores[:small], matrix)
    assert pairwise_risk(near, scores[:small], "linear") == pytest.approx(by_row, rel=1e-12)


@pytest.mark.parametrize("n_classes", [13, 40])
def test_bitwise_sums_agree_with_class_by_class(n_classes):
    rng = np.random.default_rng(n_classes)
    y, qid = rng.integers(0, n_classes, 400), rng.integers(0, 3, 400)
    scores = np.round(y / n_classes + rng.normal(size=400), 1)
    weights = rng.gamma(0.3, size=400) + 1e-9
    weights[::7] = 0
    for ties in (0.0, 0.5, 1.0):
        ovo, cons = [], []
        for q in range(3):
            here = (qid == q) & (weights > 0)
            codes = np.unique(y[here], return_inverse=True)[1]
            wrong, total = brute_table(codes, scores[here], ties, weights[here])
            upper = np.triu_indices(len(wrong), 1)
            ovo.append(1 - (wrong[upper] / total[upper]).mean())
            cut = range(1, len(wrong))
            parts = [wrong[:k, k:].sum() / total[:k, k:].sum() for k in cut]
            cons.append(1 - np.mean(parts))
        keywords = {"sample_weight": weights, "qid": qid}
        assert u_ovo(y, scores, ties, **keywords) == pytest.approx(np.mean(ovo), rel=1e-11)
        assert u_cons(y, scores, ties, **keywords) == pytest.approx(np.mean(cons), rel=1e-11)


def test_short_distances_beside_long_ones_keep_their_digits():
    """Only two neighbours of sixteen classes are confused, a billionth of the others' distance."""
    place = np.cumsum(np.where(np.arange(16) == 8, 1e-9, 1.0))
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(16), 5)
    scores = place[y] + 3e-9 * rng.random(y.size)
    weights = rng.random(y.size) + 0.1
    expected = sum(
        Fraction(weights[a]) * Fraction(weights[b]) * (Fraction(place[8]) - Fraction(place[7]))
        for a, b in itertools.product(np.flatnonzero(y == 7), np.flatnonzero(y == 8))
        if scores[a] > scores[b]
    )
    sample = prepare(y, scores, weights, None, None)
    (found,) = scale_errors(sample, 0.5, place)
    assert found == pytest.approx(float(expected), rel=1e-13, abs=0)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 20])
def test_extreme_scorers(n_classes):
    y = np.repeat(np.arange(n_classes), 3)
    perfect, reverse, constant = y + np.tile([0.1, 0.2, 0.3], n_classes), -y, np.zeros(y.size)
    for u in U:
        assert u(y, perfect) == 1.0
        assert u(y, reverse) == pytest.approx(0.0, abs=1e-14)
        assert u(y, constant) == pytest.approx(0.5)
        assert u(y, constant, ties=1) == pytest.approx(0.0)
    assert pairwise_risk(y, perfect) == 0.0
    assert pairwise_risk(y, reverse) == 1.0
    assert kendall_tau(y, y) == pytest.approx(1.0)
    assert kendall_tau(y, reverse) == pytest.approx(-1.0)
    assert kendall_tau(y, constant) == 0.0


def test_closed_forms():
    # One negative above k of m positives.
    assert auc([0, 1, 1, 1, 1], [2.5, 1, 2, 3, 4]) == 0.5
    # Costs multiply errors and leave the divisor alone.
    matrix = np.array([[0, 2.0, 5.0], [0, 0, 3.0], [0, 0, 0]])
    assert pairwise_risk([0, 1, 2], [3, 2, 1], matrix) == pytest.approx(10 / 3)
    assert pairwise_risk([0, 1, 2], [1, 1, 1], matrix, ties=1.0) == pytest.approx(10 / 3)


def test_u_statistics_are_cost_weighted_risks():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 200)
    scores = np.round(y + 2 * rng.normal(size=200), 1)
    counts = np.bincount(y)
    assert pairwise_risk(y, scores, cost_matrices.ovo(counts)) == pytest.approx(
        1 - u_ovo(y, scores), rel=1e-12
    )
    assert pairwise_risk(y, scores, cost_matrices.consecutive(counts)) == pytest.approx(
        1 - u_cons(y, scores), rel=1e-12
    )


@pytest.mark.parametrize("metric", MULTI)
def test_the_declared_order_counts(metric):
    sizes = ["low", "mid", "high"]
    y, scores = np.array(sizes)[[0, 2, 1, 2, 0, 1]], [0.1, 0.9, 0.4, 0.3, 0.2, 0.8]
    expected = metric([0, 2, 1, 2, 0, 1], scores)
    ordered = pd.Categorical(y, categories=sizes, ordered=True)
    for declared in (ordered, pd.Series(ordered, index=range(6, 0, -1))):
        np.testing.assert_array_equal(metric(declared, scores), expected)
    np.testing.assert_array_equal(metric(y, scores, labels=sizes), expected)
    for undeclared in (y, y.tolist(), pd.Categorical(y)):
        with pytest.raises(ValueError, match="order is declared"):
            metric(undeclared, scores)


def test_auc_counts_the_classes_that_occur():
    assert auc(["mid", "low"], [2, 1], labels=["low", "mid", "high"]) == 1.0
    assert auc([0, 1, 2], [1, 2, 0], sample_weight=[1, 1, 0]) == 1.0


def test_absent_classes():
    y, scores = np.array(["b", "d", "b", "d"]), [0.1, 0.2, 0.3, 0.4]
    labels = ["a", "b", "c", "d"]
    rates = pair_error_rates(y, scores, labels=labels)
    assert rates.shape == (4, 4)
    assert rates[1, 3] == 0.25
    assert np.isnan(np.delete(rates.ravel(), 1 * 4 + 3)).all()
    for metric in [pairwise_risk, *U, kendall_tau]:
        assert metric(y, scores, labels=labels) == metric(y, scores, labels=["b", "d"])
    with pytest.raises(ValueError, match="item of every class.*'a', 'c'"):
        volume_under_surface(y, scores, labels=labels)
    # A class whose items all weigh nothing is absent too.
    assert u_ovo([0, 1, 2], [1, 2, 0], sample_weight=[1, 1, 0]) == 1.0


def test_memory_is_linear():
    n = 200_000
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 5, n), rng.normal(size=n)
    tracemalloc.start()
    for metric in MULTI:
        metric(y, scores, sample_weight=np.ones(n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 8 * n


@pytest.mark.parametrize("metric", [auc, *MULTI])
@pytest.mark.parametrize(
    ("y", "scores", "keywords", "error", "message"),
    [
        ([0, 1], [1.0], {}, ValueError, "y and scores must have the same length"),
        ([0, 1], [1.0, np.nan], {}, ValueError, "scores must be finite, got nan at index 1"),
        ([0, 1], [np.inf, 1.0], {}, ValueError, "scores must be finite, got inf"),
        ([0, 1], ["a", "b"], {}, TypeError, "scores must be real numbers"),
        ([0, 1], [1j, 2j], {}, TypeError, "scores must be real numbers"),
        ([0, 1], [[1.0, 2.0]], {}, ValueError, "scores must be one-dimensional"),
        ([[0, 1]], [1.0, 2.0], {}, ValueError, "y must be one-dimensional"),
        ([], [], {}, ValueError, "must not be empty"),
        ([1, 1], [1.0, 2.0], {}, ValueError, "y must hold at least 2 classes"),
        ([0, np.nan], [1.0, 2.0], {}, ValueError, "y must be finite"),
        ([0, None], [1.0, 2.0], {}, ValueError, "y must not hold missing labels"),
        ([0, 1], [1, 2], {"sample_weight": [0, 0]}, ValueError, "sample_weight must have a pos"),
        ([0, 1], [1, 2], {"sample_weight": [1, -1]}, ValueError, "sample_weight must not be neg"),
        ([0, 1], [1, 2], {"sample_weight": [1]}, ValueError, "sample_weight and y must have"),
        ([0, 1], [1, 2], {"sample_weight": [1, 0]}, ValueError, "y must hold"),
        ([0, 1], [1, 2], {"qid": [1]}, ValueError, "qid and y must have the same length"),
        ([0, 1], [1, 2], {"qid": [1, 2]}, ValueError, "y must hold|no query has them all"),
        ([0, 1], [1, 2], {"labels": [0, 2]}, ValueError, "not among labels"),
        ([1, 1], [1, 2], {"labels": [0, 1]}, ValueError, "y must hold"),
    ],
)
def test_bad_input(metric, y, scores, keywords, error, message):
    with pytest.raises(error, match=message):
        metric(y, scores, **keywords)


@pytest.mark.parametrize("ties", [-0.1, 1.5, np.nan, "half", None])
@pytest.mark.parametrize("metric", [auc, pairwise_risk, pair_error_rates, *U])
def test_bad_ties(metric, ties):
    with pytest.raises((ValueError, TypeError), match="ties must be"):
        metric([0, 1], [1, 2], ties=ties)


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        (np.ones((2, 2)), ValueError, "on and below the diagonal"),
        (-np.triu(np.ones((3, 3)), 1), ValueError, "costs must not be negative"),
        (np.zeros((2, 2)), ValueError, r"costs must have shape \(3, 3\)"),
        (np.full((3, 3), np.nan), ValueError, "costs must be finite"),
        ("quadratic", ValueError, "costs must be one of"),
    ],
)
def test_bad_costs(costs, error, message):
    y = [0, 1] if np.shape(costs) == (2, 2) and np.any(costs) else [0, 1, 2]
    with pytest.raises(error, match=message):
        pairwise_risk(y, y, costs)


def test_auc_is_for_two_classes():
    with pytest.raises(ValueError, match="y must hold two classes for the AUC, got 3"):
        auc([0, 1, 2], [1, 2, 3])
