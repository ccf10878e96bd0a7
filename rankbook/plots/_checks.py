"""Checks of what the drawings take beside numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["check_axes", "check_list"]


def check_axes(ax: Any, name: str = "ax") -> Any:
    """Return matplotlib Axes."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"{name} must be matplotlib Axes, got {ax!r}")
    return ax


def check_list(values: Any, name: str, n: int | None = None) -> list:
    """Return the entries of a sequence, n of them if told."""
    if not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a sequence, got {values!r}")
    entries = list(values)
    if n is not None and len(entries) != n:
        raise ValueError(f"{name} must have {n} entries, got {len(entries)}")
    return entries
