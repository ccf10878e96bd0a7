"""The volume under the ROC surface: tuples with one item of each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._counting import Sample, ordered, prepare, running_sum

__all__ = ["volume_under_surface"]


def volume_under_surface(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Share of K-tuples, one item of each class, whose scores are in the order of the classes.

    .. math:: \mathrm{VUS}(f) = \frac{1}{n_1 \cdots n_K} \sum_{y_{a_1} = 1} \cdots
       \sum_{y_{a_K} = K} P(f_{a_1} < \dots < f_{a_K})

    Ties are broken at random: the probability is over a random order of equal scores, so a tuple
    whose scores do not decrease counts the product of 1 / m! over its runs of m equal scores. For
    K = 2 this is the AUC with ties one half. The cost is O(n K) after the sort, plus K^2 for every
    score shared by several classes.

    Parameters
    ----------
    y, scores, sample_weight, qid, labels
        As in `pairwise_risk`. With `qid` the mean is over the queries that have every class;
        without it, every class must have an item.

    Returns
    -------
    float
        1 for a perfect ranking; a constant scorer has 1 / K!; 0 says only that no tuple is right.

    Examples
    --------
    >>> from rankbook.metrics import volume_under_surface
    >>> volume_under_surface([0, 0, 1, 2], [0.1, 0.6, 0.4, 0.9])
    0.5
    >>> round(volume_under_surface([0, 1, 2], [7, 7, 7]), 6)
    0.166667
    """
    sample = prepare(y, scores, sample_weight, qid, labels)
    mass = sample.mass()
    complete = (mass > 0).all(axis=1)
    if not complete.any():
        missing = sample.classes[~(mass > 0).any(axis=0)].tolist()
        what = f"lacks {missing}" if missing else "no query has them all"
        raise ValueError(f"y must hold an item of every class for the volume: {what}")
    return float(_volume(sample, mass)[complete].mean())


def _volume(sample: Sample, mass: np.ndarray) -> np.ndarray:
    """Share of correctly ordered K-tuples per query, a run of m equal scores counting 1 / m!.

    `partial[k]` holds, before every group of equal scores, the credit of the tuples of classes
    0..k-1 among the lower scores of its query; a group extends them by any run of its classes.
    """
    data = ordered(sample)
    n_classes = sample.n_classes
    query, group = data.item_query(), data.group
    cell = mass[query, data.codes]
    share = np.divide(data.item_weights(), cell, out=np.zeros_like(cell), where=cell > 0)
    by_class = [
        np.bincount(group, weights=np.where(data.codes == k, share, 0.0)) for k in range(n_classes)
    ]
    query = query[data.starts]
    first_group = np.searchsorted(query, np.arange(sample.n_queries))
    mixed = np.flatnonzero(sum((part > 0).astype(np.intp) for part in by_class) > 1)
    partial = [np.ones(query.size)]
    for k in range(1, n_classes + 1):
        gain = partial[k - 1] * by_class[k - 1]
        run = by_class[k - 1][mixed]
        for m in range(2, k + 1):
            run = run * by_class[k - m][mixed] / m
            gain[mixed] += partial[k - m][mixed] * run
        seen = running_sum(gain)
        partial.append(seen[:-1] - seen[first_group][query])
    return np.bincount(query, weights=gain, minlength=sample.n_queries)
