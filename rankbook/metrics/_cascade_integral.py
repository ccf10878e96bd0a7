r"""Expected reciprocal rank of whole groups of tied items, as an integral over [0, 1].

Let a group of m items stand below a others and be passed with probabilities :math:`1 - p_i`. The
mean products of `metrics.lists` are the Bernstein coefficients of a polynomial,

.. math:: B(v) = \prod_i (1 - p_i v) = \sum_t \binom{m}{t} v^t (1 - v)^{m - t} E_t,

so that :math:`E_{t-1} - E_t` are those of :math:`A = -B'/m`, of degree :math:`m - 1`, and what the
group adds, :math:`\sum_t (E_{t-1} - E_t) / (a + t)`, is a linear functional of A. As
:math:`1/(a + t) = \int_0^1 x^{a+t-1} dx`, it is the integral of A against a positive weight, and
no digits are lost. The Bernstein coefficients of a Legendre polynomial :math:`P_k` of [0, 1] are
discrete Chebyshev polynomials, orthogonal on the m places; hence the functional takes
:math:`P_k` to :math:`(-1)^k R_k`, with :math:`R_0 = \sum_t 1/(a + t)` and

.. math:: (k+1)(m-1-k) R_{k+1} - (2k+1)(2a+m+1) R_k + k(m+k) R_{k-1} = 0, \quad k \ge 1,

which downwards from :math:`R_m = 0` is stable, and by which
:math:`R_k \le R_{k-1} m / (2a + m + 1)`. The coefficients of A come from a Gauss rule. It is exact
with m nodes; fewer do where A is smooth on the scale of [0, 1], which the sum of the p_i says, or
where R_k decreases fast.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

__all__ = ["LARGEST_TOTAL", "integral_cascade"]

# Sums of the probabilities of stopping in a group, up to which nodes are few enough.
LARGEST_TOTAL = 1e4
# What is left out of a polynomial of size one.
_TOLERANCE = 1e-17
# Numbers of nodes: groups that need similar numbers are treated together.
_CLASSES = np.unique(np.round(2.0 ** np.arange(1, 20, 0.5)).astype(np.intp))
# Entries of a table that is treated at once: few enough for the processor's cache.
_CHUNK = 1 << 16
# Entries of the functionals that are kept at once, so that memory stays bounded.
_KEPT = 1 << 23
# A sort finds what codes beyond this occur, a table those up to it.
_TABLE = 1 << 18
# Steps of a recursion whose coefficients are computed at once.
_STEPS = 128


def integral_cascade(
    stops: np.ndarray, counts: np.ndarray, above: np.ndarray, inverse_ranks: np.ndarray
) -> np.ndarray:
    """What whole groups add, one a column: `counts[i]` items stop with probability `stops[i]` < 1.

    `inverse_ranks` are the means of 1/rank over the groups' places.
    """
    sizes = counts.sum(axis=0)
    kind = np.searchsorted(_CLASSES, np.minimum(sizes, _nodes_needed(stops @ counts, sizes, above)))
    values = np.empty(sizes.size)
    rows = _KEPT // int(_CLASSES[kind.max()]) + 1
    for begin in range(0, sizes.size, rows):
        part = slice(begin, begin + rows)
        # Groups of one size and place share their functional.
        first, which = _alike(sizes[part].astype(np.intp), above[part])
        most = min(int(_CLASSES[kind[part].max()]), int(sizes[part].max()))
        functionals = _functional(most, sizes[part][first], above[part][first])
        for level in np.flatnonzero(np.bincount(kind[part])):
            similar = np.flatnonzero(kind[part] == level)
            groups = begin + similar
            n = min(int(_CLASSES[level]), int(sizes[groups].max()))
            values[groups] = _at_nodes(stops, counts, groups, functionals[:, :n], which[similar])
    return inverse_ranks * values


def _alike(sizes: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A group of each size and place that occurs, and for every group the number of its like."""
    code = sizes * (int(above.max()) + 1) + above
    if code.max() > _TABLE:
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        return first, which
    table = np.full(int(code.max()) + 1, -1)
    table[code] = np.arange(code.size)
    first = table[table >= 0]
    table[code[first]] = np.arange(first.size)
    return first, table[code]


def _at_nodes(
    stops: np.ndarray,
    counts: np.ndarray,
    groups: np.ndarray,
    functionals: np.ndarray,
    which: np.ndarray,
) -> np.ndarray:
    """Integrals with as many nodes as the functionals have terms; `which` is that of a group."""
    n = functionals.shape[1]
    node, transform = _rule(n)
    weights = functionals @ transform
    passes = 1 - stops[:, None] * node
    logs, ratios = np.log(passes), stops[:, None] / passes
    values = np.empty(groups.size)
    for begin in range(0, groups.size, _CHUNK // n + 1):
        now = slice(begin, begin + _CHUNK // n + 1)
        part = counts[:, groups[now]].T
        at_nodes = part @ logs
        np.exp(at_nodes, out=at_nodes)
        at_nodes *= part @ ratios
        values[now] = np.einsum("gn,gn->g", at_nodes, weights.take(which[now], axis=0))
    return values


def _nodes_needed(totals: np.ndarray, sizes: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Nodes with which the sum over k of coefficients of A times R_k is exact to rounding."""
    # Totals and decays of R_k are rounded, so that few different ones occur; more nodes do no harm.
    total = np.ceil(2 * np.log2(np.maximum(totals, _TOLERANCE))).astype(np.intp)
    decay = np.floor(2 * np.log2((2 * above + sizes + 1) / sizes)).astype(np.intp)
    least, width = int(total.min()), int(decay.max()) + 1
    cells = (total - least) * width + decay
    table = np.zeros(int(cells.max()) + 1)
    for cell in np.flatnonzero(np.bincount(cells)).tolist():
        table[cell] = _nodes(cell // width + least, cell % width)
    return table[cells]


@lru_cache(maxsize=1024)
def _nodes(half_total: int, half_decay: int) -> int:
    """Nodes for a total of 2^(half_total/2) and R_k that decrease by 2^(half_decay/2).

    With n nodes, coefficient k < n is off by those of degree 2n - k and more, of which R_k is the
    factor; as logarithms this is linear in k, so that k = 0 and k = n decide.
    """
    total, n = 2.0 ** (half_total / 2), 1
    least = np.log(_TOLERANCE)
    while True:
        n += 1 + n // 32
        last = _log_coefficient(total, n) - n * half_decay / 2 * np.log(2)
        if max(last, _log_coefficient(total, 2 * n)) < least:
            return n


def _log_coefficient(total: float, n: int) -> float:
    """Log of a bound of the Legendre coefficients of A from n on, over A(0).

    On the ellipse with foci 0 and 1 and sum of half-axes rho/2, |A| is at most A(0) exp(total d),
    d the distance of 0 from its end, and coefficient n at most that over rho^n (1 - 1/rho).
    """
    x = 2 * n / total
    rho = x + np.sqrt(x * x + 1)
    return float(total * (rho - 1) ** 2 / (4 * rho) - n * np.log(rho) - np.log1p(-1 / rho))


@lru_cache(maxsize=64)
def _rule(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes on [0, 1], and the matrix that takes values there to the coefficients of
    (-1)^k P_k; nodes near 0, where A is largest, have all their digits.
    """
    angle = np.pi * (np.arange(1, n + 1) - 0.25) / (n + 0.5)
    for _ in range(5):
        node = np.sin(angle / 2) ** 2
        legendre = _legendre(node, n)
        slope = n * (legendre[n - 1] - (1 - 2 * node) * legendre[n]) / np.sin(angle)
        angle += legendre[n] / slope
    return node, legendre[:n] / slope**2 * (2 * np.arange(n)[:, None] + 1)


def _legendre(node: np.ndarray, n: int) -> np.ndarray:
    """(-1)^k P_k, k = 0, ..., n, at places in [0, 1], by sums of their steps from k to k + 1."""
    values = np.ones((n + 1, node.size))
    step = np.zeros(node.size)
    for k in range(n):
        step = (k * step - (4 * k + 2) * node * values[k]) / (k + 1)
        values[k + 1] = values[k] + step
    return values


def _functional(n: int, sizes: np.ndarray, above: np.ndarray) -> np.ndarray:
    """R_k / R_0 for k = 0, ..., n - 1 (columns), finite for k >= m too, where it has no effect.

    R_k / R_{k-1} = k (m + k) / D_k with D_k = (2k + 1)(2a + m + 1) - (k + 1)^2 (m^2 - (k + 1)^2)
    / D_{k+1}.
    """
    middle, squares = 2.0 * above + sizes + 1, sizes * sizes
    # A wrong start is forgotten by this factor from k to k - 1, or a smaller one.
    z = middle / sizes
    forgets = 2 * np.log(z + np.sqrt(z * z - 1))
    start = int(np.minimum(sizes - 1, np.ceil(n - np.log(_TOLERANCE) / forgets)).max())
    ratios, below = np.zeros((n, sizes.size)), np.full(sizes.size, np.inf)
    for upper in range(start, 0, -_STEPS):
        steps = range(upper, max(upper - _STEPS, 0), -1)
        k = np.array(steps, dtype=float)[:, None]
        factor = (k + 1) ** 2 * (squares - (k + 1) ** 2)
        constant = (2 * k + 1) * middle
        for row, step in enumerate(steps):
            np.divide(factor[row], below, out=below)
            np.subtract(constant[row], below, out=below)
            if step < n:
                np.divide(step * (sizes + step), below, out=ratios[step])
    ratios[0] = 1
    return np.cumprod(ratios, axis=0).T
