"""The volume under the ROC surface: tuples with one item of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankbook.metrics._counting import Ordered, Sample, ordered, prepare, running_sum

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
    K = 2 this is the AUC with ties one half. The cost is that of the sort, plus m^2 for every
    score shared by m classes.

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
    cells = sample.cells
    complete = np.bincount(cells.query, minlength=sample.n_queries) == sample.n_classes
    if not complete.any():
        missing = np.delete(sample.classes, cells.label).tolist()
        what = f"lacks {missing[:10]}" if missing else "no query has them all"
        raise ValueError(f"y must hold an item of every class for the volume: {what}")
    return float(_volume(sample)[complete].mean())


def _volume(sample: Sample) -> np.ndarray:
    """Share of correctly ordered K-tuples per query, a run of m equal scores counting 1 / m!.

    Class by class: every item of class k ends the tuples of classes 0..k whose other scores are
    lower (their credit is a running sum over the items of class k - 1), and those that end in a
    run of equal scores.
    """
    data = ordered(sample)
    share = data.item_weights() / sample.cells.mass[sample.cells.of_items(data.codes, data.query)]
    query = data.item_query()[data.starts]
    first_group = np.searchsorted(query, np.arange(sample.n_queries))
    bounds, group, share = _class_by_class(data, share, sample.n_classes)
    at, credit = group[: bounds[1]], share[: bounds[1]]
    alone, runs = credit, _Runs(np.full(at.size, -1), np.zeros((0, 0)))
    for first, last in zip(bounds[1:-1], bounds[2:], strict=True):
        here, weight = group[first:last], share[first:last]
        place = np.searchsorted(at, here)
        seen = running_sum(credit)
        below = seen[place] - seen[np.searchsorted(at, first_group[query[here]])]
        level = np.flatnonzero(at[np.minimum(place, at.size - 1)] == here)
        runs = runs.extended(alone, place[level], level, weight)
        at, alone = here, below * weight
        credit = alone.copy()
        credit[level] += runs.terms.sum(axis=1)
    return np.bincount(query[at], weights=credit, minlength=sample.n_queries)


def _class_by_class(
    data: Ordered, share: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups of equal scores that hold each class, and the class's share in them."""
    order = np.argsort(data.codes, kind="stable")
    label, group = data.codes[order], data.group[order]
    is_new = np.ones(label.size, dtype=bool)
    is_new[1:] = (label[1:] != label[:-1]) | (group[1:] != group[:-1])
    starts = np.flatnonzero(is_new)
    bounds = np.searchsorted(label[starts], np.arange(n_classes + 1))
    return bounds, group[starts], np.add.reduceat(share[order], starts)


@dataclass(frozen=True)
class _Runs:
    """Credit of the tuples that end in a run of 2, 3, ... equal scores.

    Row `row[a]` of `terms` belongs to item a of the last class; -1 means that it ends no run.
    """

    row: np.ndarray
    terms: np.ndarray

    def extended(
        self, alone: np.ndarray, before: np.ndarray, level: np.ndarray, weight: np.ndarray
    ) -> _Runs:
        """Runs with the next class, whose items `level` tie with the items `before` of the last.

        A run of m has 1 / m!, hence the division of its credit by its new length.
        """
        kept = self.row[before]
        width = self.terms.shape[1] if (kept >= 0).any() else 0
        terms = np.zeros((level.size, width + 1))
        terms[:, 0] = alone[before]
        terms[kept >= 0, 1:] = self.terms[kept[kept >= 0], :width]
        terms *= weight[level, None] / np.arange(2, width + 3)
        row = np.full(weight.size, -1)
        row[level] = np.arange(level.size)
        return _Runs(row, terms)
