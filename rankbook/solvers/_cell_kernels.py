r"""Convolution of smooth kernels with masses on the line, to near machine precision.

The line is cut into cells of width :math:`h = 1/4`. In a cell, a function of the position is
represented by its Chebyshev interpolant of degree 7, so a cloud of weighted points is represented
by eight **moments** :math:`\sum_b w_b T_l(t_b)`, where :math:`t_b \in [-1, 1]` is the place in the
cell. Between cells that are :math:`d` apart, a kernel becomes an 8 x 8 matrix that depends on
:math:`d` alone: summing over cells is a convolution, done by FFT in blocks.

A loss with a `tail`, such as the logistic one, and its derivatives are analytic in the strip
:math:`|\Im s| < \pi`, which contains the Bernstein ellipse of a cell with parameter
:math:`\rho = 50`; the interpolation error is of order :math:`\rho^{-8} \approx 10^{-14}`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.fft import irfft, rfft

from rankbook.losses import Loss

__all__ = ["DEGREE", "REACH", "WIDTH", "Kernel", "chebyshev_basis", "convolve"]

# A loss, and which of the functions below of it.
Kernel = tuple[Loss, str]

WIDTH = 0.25
DEGREE = 8
# Cells further apart than this are 48 apart in score, where the loss is a straight line up to
# exp(-48) = 1.4e-21.
REACH = 192
# FFT lengths and the distances they allow for: few cells need no more than their own number.
_PLANS = ((64, 21), (256, 85), (1024, REACH))


# All as functions of s = f_a - f_b, a the item that receives the sum and b the one that gives.
_KERNELS = {
    "loss": lambda loss, s: loss(s),
    "slope": lambda loss, s: -loss.derivative(s),
    "slope_reversed": lambda loss, s: -loss.derivative(-s),
    "curvature": lambda loss, s: loss.second_derivative(s),
}


def chebyshev_basis(t: np.ndarray) -> np.ndarray:
    """Chebyshev polynomials T_0..T_7 at each t, shape (n, 8)."""
    out = np.empty((len(t), DEGREE))
    # Blocks that stay in cache: the recursion touches each number several times.
    for begin in range(0, len(t), 4096):
        x = t[begin : begin + 4096]
        rows = np.empty((DEGREE, len(x)))
        rows[0] = 1.0
        rows[1] = x
        x2 = 2.0 * x
        for k in range(2, DEGREE):
            np.multiply(x2, rows[k - 1], out=rows[k])
            rows[k] -= rows[k - 2]
        out[begin : begin + 4096] = rows.T
    return out


@lru_cache(maxsize=len(_KERNELS))
def cell_matrices(kernel: Kernel) -> np.ndarray:
    """Coefficients A[d + REACH, k, l] of T_k(t_a) T_l(t_b) for cells d apart (receiver - giver)."""
    angle = np.pi * (np.arange(DEGREE) + 0.5) / DEGREE
    nodes = np.cos(angle)
    to_coefficients = 2.0 / DEGREE * np.cos(np.outer(np.arange(DEGREE), angle))
    to_coefficients[0] /= 2.0
    apart = np.arange(-REACH, REACH + 1)[:, None, None] * WIDTH
    loss, part = kernel
    values = _KERNELS[part](loss, apart + 0.5 * WIDTH * (nodes[:, None] - nodes[None, :]))
    return to_coefficients @ values @ to_coefficients.T


@lru_cache(maxsize=len(_KERNELS) * len(_PLANS))
def _transformed(kernel: Kernel, fft_length: int, reach: int) -> np.ndarray:
    near = cell_matrices(kernel)[REACH - reach : REACH + reach + 1]
    return rfft(near, fft_length, axis=0)


def convolve(moments: np.ndarray, kernel: Kernel, exact: bool = False) -> np.ndarray:
    """Sum a kernel over all cells at most `REACH` apart.

    Parameters
    ----------
    moments : ndarray of shape (L, 8, m)
        Moments of m clouds of points in L consecutive cells.
    kernel : tuple of a Loss and {"loss", "slope", "slope_reversed", "curvature"}
        Function of the receiver's score minus the giver's.
    exact : bool, default=False
        Sum cell by cell instead of by FFT. Slower, but the rounding error is relative to each
        pair's own kernel value rather than to the largest one.

    Returns
    -------
    ndarray of shape (L, 8, m)
        Chebyshev coefficients, in each cell, of the kernel's sum.
    """
    return _by_cells(moments, kernel) if exact else _by_fft(moments, kernel)


def _by_cells(moments: np.ndarray, kernel: Kernel) -> np.ndarray:
    matrices = cell_matrices(kernel)
    length, _, m = moments.shape
    # Degrees first, so that each distance is one matrix product.
    source = np.ascontiguousarray(moments.transpose(1, 0, 2)).reshape(DEGREE, length * m)
    out = np.zeros_like(source)
    for d in range(-min(REACH, length - 1), min(REACH, length - 1) + 1):
        receivers = slice(max(d, 0) * m, (length + min(d, 0)) * m)
        givers = slice(max(-d, 0) * m, (length + min(-d, 0)) * m)
        out[:, receivers] += matrices[d + REACH] @ source[:, givers]
    return out.reshape(DEGREE, length, m).transpose(1, 0, 2)


def _by_fft(moments: np.ndarray, kernel: Kernel) -> np.ndarray:
    """Overlap-save: every block is transformed with the cells in reach on either side of it."""
    length = len(moments)
    plan = next((plan for plan in _PLANS if length <= plan[1] + 1), _PLANS[-1])
    fft_length, reach = plan
    block = fft_length - 2 * reach
    transformed = _transformed(kernel, fft_length, reach)
    out = np.empty_like(moments)
    for begin in range(0, length, block):
        low, high = begin - reach, begin + block + reach
        piece = np.zeros((fft_length, *moments.shape[1:]))
        piece[max(-low, 0) : min(high, length) - low] = moments[max(low, 0) : min(high, length)]
        result = irfft(transformed @ rfft(piece, axis=0), fft_length, axis=0)
        count = min(block, length - begin)
        # The kernel's array starts at distance -reach, so its zero is at index reach.
        out[begin : begin + count] = result[2 * reach : 2 * reach + count]
    return out
