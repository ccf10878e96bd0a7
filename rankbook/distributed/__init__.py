"""The same fits on Dask arrays larger than memory, on one machine or on a cluster.

An objective that is a sum over blocks of rows needs one block in memory at a time: Dask adds the
blocks' values, gradients and Hessians, and Newton's method does not know. Dask itself is imported
when a function is called; ``pip install rankbook[distributed]`` brings it.
"""

from __future__ import annotations

from rankbook.distributed._fit import fit
from rankbook.distributed._metrics import mean_by_query
from rankbook.distributed._queries import rechunk_by_query

__all__ = ["fit", "mean_by_query", "rechunk_by_query"]
