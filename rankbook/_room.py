"""Whether what is asked for fits in memory: some systems end the process instead of refusing."""

from __future__ import annotations

import os

__all__ = ["memory", "require_room"]


def require_room(sizes: dict[str, float], numbers: float) -> None:
    """Raise `ValueError` that shows the sizes if so many floats would not fit."""
    needed = 8.0 * numbers
    if needed > memory():
        raise ValueError(
            f"{' * '.join(sizes)} must fit in memory, got "
            f"{' * '.join(str(size) for size in sizes.values())}, which takes {needed / 1e9:.3g} "
            f"GB of {memory() / 1e9:.3g}"
        )


def memory() -> float:
    """Bytes of memory that the machine has; 16 GB where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 16e9
