"""Rankers as scikit-learn estimators, one file a method; tests and formulas for one of them.

They are imported when first asked for, so that ``import rankbook.models`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankbook.models._cumulative_tests import anova
    from rankbook.models._formula import design_matrix, fit_formula
    from rankbook.models.cocr import COCR
    from rankbook.models.cumulative_link import CumulativeLink
    from rankbook.models.model_tree import ModelTree
    from rankbook.models.orboost import ORBoost
    from rankbook.models.pairwise import PairwiseRanker
    from rankbook.models.pairwise_boost import PairwiseBoost
    from rankbook.models.proportional_odds_boost import ProportionalOddsBoost
    from rankbook.models.rank_boundary import RankBoundarySVM
    from rankbook.models.regression_boost import RegressionBoost
    from rankbook.models.svor import SVOR
    from rankbook.models.univariate import UnivariateRanker
    from rankbook.models.value_regularized import ValueRegularizedRanker

__all__ = [
    "COCR",
    "SVOR",
    "CumulativeLink",
    "ModelTree",
    "ORBoost",
    "PairwiseBoost",
    "PairwiseRanker",
    "ProportionalOddsBoost",
    "RankBoundarySVM",
    "RegressionBoost",
    "UnivariateRanker",
    "ValueRegularizedRanker",
    "anova",
    "design_matrix",
    "fit_formula",
]

_MODULES = {
    "COCR": "cocr",
    "SVOR": "svor",
    "CumulativeLink": "cumulative_link",
    "ModelTree": "model_tree",
    "ORBoost": "orboost",
    "PairwiseBoost": "pairwise_boost",
    "PairwiseRanker": "pairwise",
    "ProportionalOddsBoost": "proportional_odds_boost",
    "RankBoundarySVM": "rank_boundary",
    "RegressionBoost": "regression_boost",
    "UnivariateRanker": "univariate",
    "ValueRegularizedRanker": "value_regularized",
    "anova": "_cumulative_tests",
    "design_matrix": "_formula",
    "fit_formula": "_formula",
}


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
