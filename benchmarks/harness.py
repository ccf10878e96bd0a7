"""Timing by CPU seconds on one thread, and tables of ratios.

CPU time rather than wall time: a ratio should not depend on what else the machine does.
"""

from __future__ import annotations

import os

# Before numpy is imported anywhere: peers differ in how many threads they take.
for _variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
):
    os.environ.setdefault(_variable, "1")

import importlib
import importlib.util
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any


def measure(function: Callable[[], object], repeat: int = 3) -> float:
    """Return the CPU seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def peak_memory() -> float:
    """Return the most memory this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def limited(function: Callable[[], Any], seconds: float) -> tuple[Any, float]:
    """Return the result of a call in a process of its own, and that process's CPU seconds.

    A call that does not end in time is stopped, and its result is None.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    before = _cpu_of_children()
    process = context.Process(target=lambda: sender.send(function()))
    process.start()
    result = receiver.recv() if receiver.poll(seconds) else None
    process.terminate()
    process.join()
    return result, _cpu_of_children() - before


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peer(name: str):
    """Import a peer, or say that it is missing and return None."""
    if importlib.util.find_spec(name) is None:
        print(f"  ({name} is not installed: its row is left out)")
        return None
    return importlib.import_module(name)


def table(title: str, rows: Sequence[tuple[str, float]], reference: str | None = None) -> None:
    """Print CPU seconds and their ratio to a reference row (the first unless named)."""
    seconds = dict(rows)
    base = seconds[reference or rows[0][0]]
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}")
    print(f"  {'':{width}}  {'CPU s':>9}  {'ratio':>8}")
    for name, value in rows:
        print(f"  {name:{width}}  {value:9.3f}  {value / base:8.2f}")
