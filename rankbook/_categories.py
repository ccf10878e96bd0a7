"""Data that carry categories: pandas' Categoricals, polars' Enums and Arrow's dictionaries.

All are known by their attributes, so that none of the three packages is imported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Categories", "categories_of"]


class Categories(NamedTuple):
    """Codes into categories, -1 where an entry is missing.

    Attributes
    ----------
    codes : ndarray of int of shape (n,)
        The place of each entry's category.
    values : list
        The categories, lowest first if they are ordered.
    ordered : bool
        Whether their order was declared.
    """

    codes: np.ndarray
    values: list
    ordered: bool


def categories_of(values: Any) -> Categories | None:
    """The categories that data carry; None for anything else."""
    dtype: Any = getattr(values, "dtype", None)
    if hasattr(dtype, "categories") and hasattr(dtype, "ordered"):
        # A Categorical, or what holds one: a Series of pandas', an array of xarray's.
        held: Any
        for held in (values, getattr(values, "array", None), getattr(values, "data", None)):
            if hasattr(held, "codes"):
                codes = np.asarray(held.codes).astype(np.intp)
                return Categories(codes, dtype.categories.tolist(), bool(dtype.ordered))
    if type(dtype).__name__ == "Enum" and hasattr(values, "to_physical"):
        codes = np.asarray(values.to_physical().cast(int).fill_null(-1)).astype(np.intp)
        return Categories(codes, list(dtype.categories), True)
    if hasattr(dtype, "pyarrow_dtype"):
        values = getattr(values, "array", values).__arrow_array__()
    kind: Any = getattr(values, "type", None)
    if hasattr(kind, "index_type") and hasattr(kind, "ordered"):
        return _of_dictionary(values, bool(kind.ordered))
    return None


def _of_dictionary(values: Any, ordered: bool) -> Categories:
    """Of an Arrow array, or of one in chunks: these may differ in their dictionaries."""
    if hasattr(values, "chunks"):
        # Chunks whose dictionaries differ have no common order that anybody declared.
        ordered = ordered and all(c.dictionary == values.chunk(0).dictionary for c in values.chunks)
        values = values.unify_dictionaries()
    chunks = getattr(values, "chunks", [values])
    codes = [np.asarray(chunk.indices.cast("int64").fill_null(-1)) for chunk in chunks]
    categories = chunks[0].dictionary.to_pylist() if chunks else []
    return Categories(np.concatenate([np.empty(0, np.intp), *codes]), categories, ordered)
