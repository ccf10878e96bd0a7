"""Linear models in the nodes of a tree, many at a time, with needless columns eliminated.

The columns of a node are standardised there, so that a coefficient is a standardised one. The
sweep operator turns the correlations into coefficients, their covariances and the residual sum of
squares; sweeping a column back eliminates it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from rankbook.models._tree_growth import Sample, Tree

__all__ = ["NodeModels", "fit_models"]

# A column of which the columns before it leave less than this share of variance is collinear.
_COLLINEAR = 1e-10
# A residual sum of squares below this share of the total is rounding: the fit is exact.
_EXACT = 1e-14
# Numbers that one batch of nodes may hold.
_BATCH = 2_000_000


@dataclass
class NodeModels:
    """For each node its constant, its squared residuals, their weight, and its parameters.

    The coefficients are kept as (nodes, columns, values), zeros left out; `parameters` counts the
    constant too.
    """

    constant: np.ndarray
    squares: np.ndarray
    weight: np.ndarray
    parameters: np.ndarray
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def coefficients(self, n_columns: int) -> sp.csr_array:
        """All coefficients, a row for each node."""
        nodes, columns, values = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        shape = (self.constant.size, n_columns)
        return sp.csr_array(sp.coo_array((values, (nodes, columns)), shape=shape))


def fit_models(
    sample: Sample, tree: Tree, nodes: np.ndarray, uses: np.ndarray, models: NodeModels
) -> None:
    """Fit the models of some nodes on the columns that they may use, in place."""
    width = uses[nodes].sum(axis=1)
    size = tree.stop[nodes] - tree.start[nodes]
    length = 1 << np.ceil(np.log2(np.maximum(size, 1))).astype(int)
    key = width * (2 * length.max()) + length
    for value in np.unique(key):
        group = nodes[key == value]
        k, longest = int(width[key == value][0]), int(size[key == value].max())
        step = max(1, _BATCH // (longest * (k + 2)))
        for begin in range(0, group.size, step):
            _fit_batch(sample, tree, group[begin : begin + step], uses, models)


def _fit_batch(
    sample: Sample, tree: Tree, nodes: np.ndarray, uses: np.ndarray, models: NodeModels
) -> None:
    columns = np.nonzero(uses[nodes])[1].reshape(nodes.size, -1)
    size = tree.stop[nodes] - tree.start[nodes]
    place = np.arange(size.max())
    present = place < size[:, None]
    rows = tree.rows[tree.start[nodes][:, None] + place * present]
    weights = sample.weights[rows] * present
    total = weights.sum(axis=1)
    values = np.empty((*rows.shape, columns.shape[1] + 1))
    values[..., :-1] = sample.X[rows[:, :, None], columns[:, None, :]]
    values[..., -1] = sample.y[rows]
    mean = np.einsum("mn,mnk->mk", weights, values) / total[:, None]
    values -= mean[:, None, :]
    values *= np.sqrt(weights)[:, :, None]
    moments = np.matmul(values.transpose(0, 2, 1), values)
    scale = np.sqrt(np.einsum("mkk->mk", moments))
    _drop_constants(scale, mean, total)
    safe = np.where(scale > 0, scale, 1.0)
    moments /= safe[:, :, None] * safe[:, None, :]
    fit = _Elimination(moments, scale[:, :-1] > 0, tree.count[nodes])
    fit.run()
    coef = fit.coefficients * safe[:, -1:] / safe[:, :-1]
    models.constant[nodes] = mean[:, -1] - (coef * mean[:, :-1]).sum(axis=1)
    kept = np.nonzero(fit.active)
    models.parts.append((nodes[kept[0]], columns[kept], coef[kept]))
    models.squares[nodes] = fit.residual * scale[:, -1] ** 2
    models.weight[nodes] = total
    models.parameters[nodes] = fit.active.sum(axis=1) + 1


def _drop_constants(scale: np.ndarray, mean: np.ndarray, total: np.ndarray) -> None:
    """Columns that vary by no more than rounding are constant."""
    rounding = 8 * np.finfo(float).eps * np.abs(mean) * np.sqrt(total)[:, None]
    scale[scale <= rounding] = 0.0


class _Elimination:
    """Backward elimination in a batch of regressions, by the sweep operator.

    The column with the smallest standardised coefficient goes, as long as Akaike's criterion
    falls by it.
    """

    def __init__(self, moments: np.ndarray, active: np.ndarray, count: np.ndarray) -> None:
        self.m, self.active, self.count = moments, active, count
        for j in range(active.shape[1]):
            self.active[:, j] &= self.m[:, j, j] > _COLLINEAR
            self._sweep(np.flatnonzero(self.active[:, j]), np.full(1, j))

    @property
    def coefficients(self) -> np.ndarray:
        return np.where(self.active, self.m[:, :-1, -1], 0.0)

    @property
    def residual(self) -> np.ndarray:
        return np.maximum(self.m[:, -1, -1], 0.0)

    def run(self) -> None:
        full = np.maximum(self.residual, _EXACT)
        initial = self.active.sum(axis=1) + 1.0
        alive = np.arange(len(self.m))
        while alive.size and self.active.shape[1]:
            alive = alive[self.active[alive].any(axis=1)]
            size = np.where(self.active[alive], np.abs(self.m[alive, :-1, -1]), np.inf)
            j = size.argmin(axis=1)
            b, inverse = self.m[alive, j, -1], -self.m[alive, j, j]
            # The criterion falls if the relative increase of the squares, times n - v, is below 2.
            free = np.maximum(self.count[alive] - initial[alive], 0.0)
            improved = b**2 * free < 2.0 * inverse * full[alive]
            alive, j = alive[improved], j[improved]
            self._sweep(alive, j)
            self.active[alive, j] = False

    def _sweep(self, which: np.ndarray, j: np.ndarray) -> None:
        """Sweep one column of some regressions in, or out again if it was in."""
        if which.size == 0:
            return
        j = np.broadcast_to(j, which.shape)
        part = self.m[which]
        each = np.arange(which.size)
        pivot = part[each, j, j]
        column = part[each, j, :]
        row = column / pivot[:, None]
        part -= column[:, :, None] * row[:, None, :]
        row *= np.sign(pivot)[:, None]  # a column that is in has a negative diagonal
        part[each, j, :] = row
        part[each, :, j] = row
        part[each, j, j] = -1.0 / pivot
        self.m[which] = part
