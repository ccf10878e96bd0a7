"""A progress bar for iterations whose end is known only as a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["Report", "check_verbose", "newton_callback", "progress"]

Report = Callable[[int, float, float], None]


def check_verbose(verbose: Any) -> int:
    """Return whether, or how much, to report."""
    if not isinstance(verbose, (bool, np.bool_, Integral)):
        raise TypeError(f"verbose must be an integer or a boolean, got {verbose!r}")
    return int(verbose)


@contextmanager
def progress(verbose: int, total: int, description: str = "Newton") -> Iterator[Report | None]:
    """Yield a function of the step, the objective and what is left of it; None if not verbose."""
    if not check_verbose(verbose):
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=description, unit="step", leave=False) as bar:

        def report(step: int, objective: float, to_go: float) -> None:
            bar.update(step - bar.n)
            bar.set_postfix(objective=f"{objective:.6g}", to_go=f"{to_go:.1e}")

        yield report


def newton_callback(report: Report | None) -> Callable[..., None] | None:
    """The function as `rankbook.solvers.newton.minimize` calls it at each step."""
    if report is None:
        return None
    return lambda step, x, objective, to_go: report(step, objective, to_go)
