"""The volume under the ROC surface against its definition, the AUC and permutations."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook.metrics import auc, volume_under_surface
from tests.metrics.pair_samples import samples


def brute_volume(y, scores, weights):
    classes = [np.flatnonzero(y == k) for k in range(y.max() + 1)]
    credit = total = 0.0
    for items in itertools.product(*classes):
        weight = np.prod(weights[list(items)])
        total += weight
        s = scores[list(items)]
        if (np.diff(s) >= 0).all():
            runs = np.unique(s, return_counts=True)[1]
            credit += weight / np.prod([math.factorial(r) for r in runs])
    return credit / total


@given(samples(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_choice_of_one_item_a_class(sample, weighted):
    y, scores, weights = sample
    found = volume_under_surface(y, scores, sample_weight=weights if weighted else None)
    expected = brute_volume(y, scores, weights if weighted else np.ones(len(y)))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@given(samples(max_classes=6))
@settings(max_examples=40, deadline=None)
def test_turning_labels_and_scores_changes_nothing(sample):
    y, scores, weights = sample
    volume = volume_under_surface(y, scores, sample_weight=weights)
    turned = volume_under_surface(-y, -scores, sample_weight=weights)
    assert turned == pytest.approx(volume, rel=1e-12, abs=1e-14)


@given(samples(max_classes=2, max_size=30))
@settings(max_examples=40, deadline=None)
def test_of_two_classes_it_is_the_auc(sample):
    y, scores, weights = sample
    area = auc(y, scores, sample_weight=weights)
    assert volume_under_surface(y, scores, sample_weight=weights) == pytest.approx(area, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 20])
def test_extreme_scorers(n_classes):
    y = np.repeat(np.arange(n_classes), 3)
    assert volume_under_surface(y, y + np.tile([0.1, 0.2, 0.3], n_classes)) == pytest.approx(1.0)
    assert volume_under_surface(y, -y) == 0.0
    constant = volume_under_surface(y, np.zeros(y.size))
    assert constant == pytest.approx(1 / math.factorial(n_classes))


def test_queries_that_have_every_class_are_averaged():
    rng = np.random.default_rng(3)
    y, scores, qid = rng.integers(0, 3, 60), rng.integers(0, 9, 60), rng.integers(0, 9, 60)
    whole = [q for q in np.unique(qid) if len(set(y[qid == q])) == 3]
    assert 0 < len(whole) < 9
    expected = np.mean([volume_under_surface(y[qid == q], scores[qid == q]) for q in whole])
    assert volume_under_surface(y, scores, qid=qid) == pytest.approx(expected, rel=1e-12)


def test_memory_does_not_grow_with_the_square_of_the_classes():
    scores = np.random.default_rng(0).random(5000)
    tracemalloc.start()
    volume_under_surface(np.arange(5000), scores)
    tied = volume_under_surface(np.arange(100), np.zeros(100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 8 * 5000
    assert tied == pytest.approx(1 / math.factorial(100), rel=1e-10)
