"""Means over queries, block by block, against the same in memory."""

import dask.array as da
import numpy as np
import pytest

from rankbook import distributed, metrics
from rankbook.exceptions import NotBlockwiseError, SplitQueryError

RNG = np.random.default_rng(5)
N = 200
QID = np.arange(N) // 8
Y = RNG.integers(0, 4, N) * (QID % 3 > 0)  # every third query is of one class
SCORES = RNG.normal(size=N).round(1)


def blocks(*arrays, chunks=40):
    return [da.from_array(a, chunks=chunks) for a in arrays]


@pytest.mark.parametrize("measure", ["ndcg", "err", "average_precision", "dcg"])
def test_lists(measure):
    y, scores, qid = blocks(Y, SCORES, QID)
    grades = {"max_grade": 3} if measure == "err" else {}
    found = distributed.mean_by_query(measure, y, scores, qid=qid, k=5, **grades)
    expected = getattr(metrics, measure)(Y, SCORES, qid=QID, k=5, **grades)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("measure", ["err", "p_norm_push"])
def test_lists_of_unlike_blocks(measure):
    # Blocks with other largest grades, and queries without an item above the threshold.
    grades = np.where(QID < 10, np.minimum(Y, 2), Y)
    y, scores, qid = blocks(grades, SCORES, QID)
    found = distributed.mean_by_query(measure, y, scores, qid=qid)
    assert found == pytest.approx(getattr(metrics, measure)(grades, SCORES, qid=QID), rel=1e-12)


def test_lists_without_any_value():
    y, scores, qid = blocks(0 * Y, SCORES, QID)
    with pytest.raises(ValueError, match="no value for any query"):
        distributed.mean_by_query("p_norm_push", y, scores, qid=qid)


@pytest.mark.parametrize("labels", [None, [0, 1, 2, 3]])
def test_pairs(labels):
    y, scores, qid = blocks(Y, SCORES, QID)
    found = distributed.mean_by_query(
        "pairwise_risk", y, scores, qid=qid, labels=labels, costs="linear"
    )
    expected = metrics.pairwise_risk(Y, SCORES, "linear", qid=QID)
    assert found == pytest.approx(expected, rel=1e-12)
    found = distributed.mean_by_query("auc", y > 1, scores, qid=qid)
    assert found == pytest.approx(metrics.auc(Y > 1, SCORES, qid=QID), rel=1e-12)


def test_refused():
    y, scores, qid = blocks(Y, SCORES, QID)
    with pytest.raises(NotBlockwiseError, match="auc without qid"):
        distributed.mean_by_query("auc", y, scores)
    with pytest.raises(NotBlockwiseError, match="got 'kendall_tau'"):
        distributed.mean_by_query("kendall_tau", y, scores, qid=qid)
    with pytest.raises(SplitQueryError, match="query 6 in blocks"):
        distributed.mean_by_query("ndcg", *blocks(Y, SCORES, chunks=50), qid=qid.rechunk(50))
    with pytest.raises(ValueError, match="different labels within some query"):
        distributed.mean_by_query("pairwise_risk", 0 * y, scores, qid=qid, labels=[0, 1])
