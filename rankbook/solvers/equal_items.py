r"""Items that are equal, found so that they can stand as one.

Where features are categories, many items have the same row. A sum over pairs sees them at one
score: items of one class and one query are one item whose weight is the sum of theirs, and the
pairs of their class with itself, if they count, come out the same,
:math:`\sum_a \sum_b w_a w_b = (\sum_a w_a)^2`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["equal_items"]

# So many items tell whether a look at all of them is worth while, which it is if at most this
# share of them differ.
_SAMPLE, _DIFFERENT = 1000, 0.5


def equal_items(X: Any, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Group the items with equal rows and of equal kind.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Items.
    kind : ndarray of int of shape (n,)
        What else they must share.

    Returns
    -------
    first : ndarray of shape (m,)
        An item of each group.
    group : ndarray of shape (n,)
        Every item's group. None in place of both where most items differ.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [1.0], [1.0], [1.0], [1.0]])
    >>> first, group = equal_items(X, np.array([0, 0, 0, 1, 1, 1]))
    >>> X[first].ravel().tolist(), group.tolist()
    ([1.0, 1.0, 2.0], [0, 2, 0, 1, 1, 1])
    """
    n, p = X.shape
    # They decide how fast items are grouped, not how: a fixed seed will do.
    rng = np.random.default_rng(0)
    # Equal rows have equal sums; that rows of equal sums are equal has to be checked.
    directions = rng.normal(size=p)
    if n > 2 * _SAMPLE:
        few = rng.choice(n, _SAMPLE, replace=False)
        if not _is_worthwhile(_grouped(X[few], kind[few], directions), len(few)):
            return None
    found = _grouped(X, kind, directions)
    return found if _is_worthwhile(found, n) else None


def _is_worthwhile(found: tuple[np.ndarray, np.ndarray], n: int) -> bool:
    return len(found[0]) <= _DIFFERENT * n


def _grouped(X: Any, kind: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.asarray(X @ directions).ravel()
    order = np.lexsort((kind, sums))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (sums[order[1:]] != sums[order[:-1]]) | (np.diff(kind[order]) != 0)
    # The later of two neighbours that look alike is the same item only if each column says so.
    alike = np.flatnonzero(~new)
    new[alike[_differ(X, order[alike], order[alike - 1])]] = True
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    return order[new], group


def _differ(X: Any, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether rows of X differ from others, one by one."""
    if sp.issparse(X):
        return np.diff((X[rows] != X[others]).indptr) > 0
    return (X[rows] != X[others]).any(axis=1)
