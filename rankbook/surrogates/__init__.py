"""Convex surrogates on graphs and populations, solved with cvxpy and proved without it."""

from rankbook.surrogates.consistency import (
    consistency_gap,
    constrained_minimum,
    find_counterexample,
    is_edge_consistent,
    off_optimal_value,
)
from rankbook.surrogates.minimize import (
    minimize_edgewise,
    minimize_pairwise,
    value_regularized_scores,
)
from rankbook.surrogates.result import Certificate, SurrogateResult, verify

__all__ = [
    "Certificate",
    "SurrogateResult",
    "consistency_gap",
    "constrained_minimum",
    "find_counterexample",
    "is_edge_consistent",
    "minimize_edgewise",
    "minimize_pairwise",
    "off_optimal_value",
    "value_regularized_scores",
    "verify",
]
