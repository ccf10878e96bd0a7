"""A model tree in words."""

from __future__ import annotations

import numpy as np

from rankbook.models._leaf_models import FittedTree

__all__ = ["tree_text"]


def tree_text(
    tree: FittedTree,
    errors: np.ndarray,
    constants: np.ndarray,
    coefficients: np.ndarray,
    names: list[str],
    digits: int,
) -> str:
    """Tests, indented by their depth, then the leaves' models."""
    lines = []
    waiting = [(0, "all items")]
    while waiting:  # depth first, the left side first
        node, test = waiting.pop()
        indent = "|   " * max(int(tree.depth[node]) - 1, 0)
        if tree.leaf[node] >= 0:
            items = f"{tree.count[node]:.{digits}g} items, error {_rounded(errors[node], digits)}"
            lines.append(f"{indent}{test}: LM{tree.leaf[node] + 1} ({items})")
            continue
        if node:
            lines.append(f"{indent}{test}:")
        name, cut = names[tree.feature[node]], f"{tree.threshold[node]:.{digits}g}"
        waiting.append((int(tree.right[node]), f"{name} > {cut}"))
        waiting.append((int(tree.left[node]), f"{name} <= {cut}"))
    lines.append("")
    for k, (constant, row) in enumerate(zip(constants, coefficients, strict=True), start=1):
        terms = [f"LM{k}: {_rounded(constant, digits)}"]
        for j in np.flatnonzero(row):
            sign = "-" if row[j] < 0 else "+"
            terms.append(f"{sign} {abs(row[j]):.{digits}g} {names[j]}")
        lines.append(" ".join(terms))
    return "\n".join(lines)


def _rounded(value: float, digits: int) -> str:
    """Significant digits; what is rounding beside one is zero."""
    return f"{0.0 if abs(value) < 1e-12 else value:.{digits}g}"
