"""Blocks of rows of aligned Dask arrays, and one pass over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

__all__ = ["Blocks", "check_arrays", "require_dask"]

# Results of so many blocks are combined in one task.
_FAN_IN = 16


def require_dask() -> Any:
    """Dask's array module; an error that says how to get it where it is missing."""
    try:
        import dask.array
    except ImportError as error:
        raise ImportError(
            "rankbook.distributed needs Dask: pip install 'rankbook[distributed]'"
        ) from error
    return dask.array


def check_arrays(**arrays: Any) -> dict[str, Any]:
    """Check Dask arrays of equally many rows, cut at the same rows; None stays None."""
    da = require_dask()
    first = next(iter(arrays))
    for name, array in arrays.items():
        if array is None and name != first:
            continue
        if not isinstance(array, da.Array):
            raise TypeError(
                f"{name} must be a Dask array, got {type(array).__name__}; make one by "
                f"dask.array.from_array({name}, chunks=...), or from a Dask frame by "
                f"{name}.to_dask_array(lengths=True)"
            )
        wanted = 2 if name == "X" else 1
        if array.ndim != wanted:
            raise ValueError(f"{name} must have {wanted} dimension(s), got shape {array.shape}")
        if np.isnan(array.shape).any():
            raise ValueError(
                f"{name} must have chunks of known sizes, got unknown ones; call "
                f"{name}.compute_chunk_sizes() first"
            )
        if wanted == 2 and array.numblocks[1] > 1:
            raise ValueError(
                f"{name} must have whole rows in its chunks, got {array.numblocks[1]} chunks of "
                f"columns; call {name}.rechunk({{1: -1}})"
            )
    chunks = arrays[first].chunks[0]
    for name, array in arrays.items():
        if array is None or array.chunks[0] == chunks:
            continue
        if array.shape[0] != sum(chunks):
            raise ValueError(
                f"{name} and {first} must have the same length, got {array.shape[0]} for {name} "
                f"and {sum(chunks)} for {first}"
            )
        raise ValueError(
            f"{name} must have the chunks of {first} along the rows; call "
            f"{name}.rechunk((({first}.chunks[0]),))"
        )
    return arrays


class Blocks:
    """Rows of aligned arrays, a block for each chunk, in memory only while a task runs.

    Parameters
    ----------
    arrays : dict
        Dask arrays as `check_arrays` returns them; None for one that is not given.
    client : distributed.Client, optional
        Where tasks run; without one, Dask's default scheduler.
    """

    def __init__(self, arrays: dict[str, Any], client: Any = None) -> None:
        given = {name: array for name, array in arrays.items() if array is not None}
        sizes = next(iter(given.values())).chunks[0]
        columns = {name: array.to_delayed().ravel() for name, array in given.items()}
        self._rows = {
            i: {name: column[i] for name, column in columns.items()}
            for i, size in enumerate(sizes)
            if size
        }
        if not self._rows:
            raise ValueError(f"{next(iter(given))} must not be empty")
        self.client = client
        self.passes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def reduce(self, task: Callable[..., Any], combine: Callable[[list], Any], *shared: Any) -> Any:
        """One pass: ``task(*shared, **arrays)`` for every block, combined a few at a time.

        A block may have nothing to say and return None. An error carries the number of its block
        as a note.
        """
        from dask import compute, delayed

        work = delayed(partial(_run, task, shared), pure=False)
        join = delayed(partial(_join, combine), pure=False)
        parts = [work(i, **rows) for i, rows in self._rows.items()]
        while len(parts) > 1:
            parts = [join(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
        options = {} if self.client is None else {"scheduler": self.client}
        (result,) = compute(parts[0], **options)
        self.passes += 1
        return result


def _run(task: Callable[..., Any], shared: tuple, number: int, /, **rows: Any) -> Any:
    # A scheduler's threads do not know how the caller's treats overflow.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            return task(*shared, **rows)
        except (TypeError, ValueError) as error:
            error.add_note(f"in block {number} (indices count the block's rows from 0)")
            raise


def _join(combine: Callable[[list], Any], parts: list) -> Any:
    parts = [part for part in parts if part is not None]
    # A class that no block weighs has the mass zero, and its logarithm is minus infinity; squares
    # that overflow are refused where all blocks are known.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return combine(parts) if parts else None
