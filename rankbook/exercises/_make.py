"""Shorter ways to write the questions of the chapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rankbook.exercises._question import Question

# The chapters in the order of the book. A test compares it with the contents.
CHAPTERS = (
    "bipartite/auc",
    "bipartite/surrogate_losses",
    "bipartite/reduction",
    "bipartite/does_pairwise_pay",
    "multipartite/risks",
    "multipartite/best_ranking",
    "multipartite/cycles",
    "multipartite/convex_surrogates",
    "multipartite/regret_transfer",
    "multipartite/top_of_the_list",
    "multipartite/ordinal_regression",
    "multipartite/support_vector_ordinal",
    "consistency/preference_graphs",
    "consistency/edge_consistency",
    "consistency/counterexamples",
    "consistency/inconsistency_regions",
    "consistency/consistent_methods",
    "algorithms/cumulative_link",
    "algorithms/partial_proportional_odds",
    "algorithms/linear_time_pairs",
    "algorithms/rank_boundaries",
    "algorithms/how_many_pairs",
    "algorithms/support_vector_machines",
    "algorithms/boosting",
    "algorithms/ordinal_costs",
    "algorithms/model_trees",
    "experiments/tripartite",
    "experiments/learning_curves",
    "experiments/learning_to_rank",
    "experiments/past_one_machine",
)


def exercise_id(chapter: str, number: int) -> str:
    """Number an exercise as the page does, such as "5.5"."""
    return f"{CHAPTERS.index(chapter) + 1}.{number}"


def value(
    chapter: str,
    number: int,
    title: str,
    answer: str,
    expected: Any,
    *,
    accepts: Callable[[Any, Any], str] | None = None,
    tolerance: float = 1e-8,
    **hints: str,
) -> Question:
    """Make an exercise whose answer is a value."""
    return Question(
        exercise_id(chapter, number),
        title,
        0,
        "",
        lambda rng: [()],
        lambda: expected,
        tolerance,
        hints=hints,
        accepts=accepts,
        answer=answer,
    )


def function(
    chapter: str,
    number: int,
    title: str,
    call: str,
    instances: Callable[[np.random.Generator], list[tuple]],
    reference: Callable[..., object],
    *,
    returns: str,
    accepts: Callable[[Any, Any], str] | None = None,
    tolerance: float = 1e-8,
    hints: Mapping[str, str] | None = None,
) -> Question:
    """Make an exercise whose answer is a function, called as `call` shows."""
    return Question(
        exercise_id(chapter, number),
        title,
        0,
        call.split("(")[0],
        instances,
        reference,
        tolerance,
        hints=hints or {},
        accepts=accepts,
        answer=f"a function `{call}` that returns {returns}",
    )
