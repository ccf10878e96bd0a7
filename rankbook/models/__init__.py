"""Rankers as scikit-learn estimators, one file a method.

They are imported when first asked for, so that ``import rankbook.models`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankbook.models.cumulative_link import CumulativeLink
    from rankbook.models.pairwise import PairwiseRanker
    from rankbook.models.univariate import UnivariateRanker
    from rankbook.models.value_regularized import ValueRegularizedRanker

__all__ = [
    "CumulativeLink",
    "PairwiseRanker",
    "UnivariateRanker",
    "ValueRegularizedRanker",
]

_MODULES = {
    "CumulativeLink": "cumulative_link",
    "PairwiseRanker": "pairwise",
    "UnivariateRanker": "univariate",
    "ValueRegularizedRanker": "value_regularized",
}


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
