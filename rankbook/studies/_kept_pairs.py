"""RankSVM with all its pairs kept, whatever their number: slower, and as exact as is wished."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankbook.losses import Loss
from rankbook.models import PairwiseRanker
from rankbook.solvers import PairSums

__all__ = ["KeptPairsSVM"]


class KeptPairsSVM(PairwiseRanker):
    """`rankbook.models.PairwiseRanker` with the hinge, two classes and neither queries nor weights.

    Where pairs are many, `PairwiseRanker` does not form them, and the last digits come slowly; the
    method for kept pairs reaches a duality gap of 1e-11 in a few steps more than one of 1e-6.

    Parameters
    ----------
    alpha : float
        Weight of the ridge.
    tol : float, default=1e-11
        Largest relative duality gap.
    """

    def __init__(self, alpha: float, tol: float = 1e-11) -> None:
        super().__init__("hinge", alpha=alpha, tol=tol)

    def _pair_sums(
        self, codes: np.ndarray, loss: Loss, qid: Any, group: Any, sample_weight: Any
    ) -> tuple[PairSums, float]:
        sums, unit = super()._pair_sums(codes, loss, qid, group, sample_weight)
        if qid is not None or group is not None or sample_weight is not None:
            raise ValueError("neither queries nor weights are meant here")
        return PairSums(codes, loss, self.pair_weights_ / unit, method="explicit"), unit
