"""Linear models in the nodes of a tree, many at a time, with needless columns eliminated.

The columns of a node are standardised there, so that a coefficient is a standardised one. The
inverse of their correlations gives the coefficients and their covariances. Eliminating a column is
a step of Cholesky's factorisation of that inverse: the covariances of what is left are the inverse
less the squares of the factor's columns, and only the column that goes next is worked out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from rankbook.models._tree_growth import Sample, Tree

__all__ = ["NodeModels", "fit_models"]

# A column of which the columns before it leave less than this share of variance is collinear.
_COLLINEAR = 1e-10
# A standardised coefficient above this speaks of columns that cancel each other.
_HUGE = 1.5
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


def fit_models(sample: Sample, tree: Tree, uses: np.ndarray) -> NodeModels:
    """Fit the models of all nodes on the columns that they may use."""
    models = NodeModels(*np.zeros((4, tree.feature.size)))
    width, size = _rounded_up(uses.sum(axis=1)), tree.stop - tree.start
    key = width * (2 * size.max()) + _rounded_up(size)
    for value in np.unique(key):
        group = np.flatnonzero(key == value)
        k, longest = int(width[group[0]]), int(size[group].max())
        step = max(1, _BATCH // (longest * (k + 2) + 2 * k * k))
        for begin in range(0, group.size, step):
            _fit_batch(sample, tree, group[begin : begin + step], uses, models)
    return models


def _rounded_up(sizes: np.ndarray) -> np.ndarray:
    """The next of 0, 1, 2, 3, 4, 6, 8, 12, 16, and so on, to have few sizes."""
    power = 1 << np.ceil(np.log2(np.maximum(sizes, 1))).astype(int)
    return np.where(sizes == 0, 0, np.where(4 * sizes <= 3 * power, 3 * power // 4, power))


def _columns_of(uses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns that each node uses, filled up with the first one, and which are not filling."""
    width = uses.sum(axis=1)
    filled = np.arange(width.max(initial=0)) < width[:, None]
    columns = np.zeros(filled.shape, dtype=np.intp)
    columns[filled] = np.nonzero(uses)[1]
    return columns, filled


def _fit_batch(
    sample: Sample, tree: Tree, nodes: np.ndarray, uses: np.ndarray, models: NodeModels
) -> None:
    columns, filled = _columns_of(uses[nodes])
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
    scale[:, :-1] *= filled
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
    """Backward elimination in a batch of regressions.

    The column with the smallest standardised coefficient goes, as long as Akaike's criterion
    falls by it. `moments` are correlations, those with the target last.
    """

    def __init__(self, moments: np.ndarray, active: np.ndarray, count: np.ndarray) -> None:
        self.active, self.count = active.copy(), count
        root = self._root_of(moments[:, :-1, :-1])
        back = np.linalg.inv(root)
        target = np.where(self.active, moments[:, :-1, -1], 0.0)
        scores = np.einsum("mij,mj->mi", back, target)
        self.residual = np.maximum(moments[:, -1, -1] - (scores**2).sum(axis=1), 0.0)
        self.coefficients = np.einsum("mij,mi->mj", back, scores)
        self.inverse = np.matmul(back.transpose(0, 2, 1), back)
        self.variance = np.einsum("mkk->mk", self.inverse).copy()
        self.factor = np.zeros_like(self.inverse)
        self.steps = np.zeros(len(moments), dtype=np.intp)

    def _root_of(self, moments: np.ndarray) -> np.ndarray:
        """Cholesky's root; collinear columns become inactive, with rows of the identity."""
        root = np.zeros_like(moments)
        for j in range(moments.shape[1]):
            rest = moments[:, j:, j] - np.matmul(root[:, j:, :j], root[:, j, :j, None])[..., 0]
            self.active[:, j] &= rest[:, 0] > _COLLINEAR
            on = self.active[:, j]
            root[:, j:, j] = rest * (on / np.sqrt(np.where(on, rest[:, 0], 1.0)))[:, None]
            root[~on, j, :j] = 0.0
            root[~on, j, j] = 1.0
        return root

    def run(self) -> None:
        """Drop columns with huge coefficients, then those that do not pay."""
        if self.active.shape[1]:
            self._drop_huge()
            self._drop_small()

    def _drop_huge(self) -> None:
        alive = np.arange(len(self.active))
        while alive.size:
            size = np.abs(self.coefficients[alive])
            j = size.argmax(axis=1)
            huge = size[np.arange(alive.size), j] > _HUGE
            alive, j = alive[huge], j[huge]
            self._drop(alive, j)

    def _drop_small(self) -> None:
        full = np.maximum(self.residual, _EXACT)
        # The criterion falls if the relative increase of the squares, times n - v, is below 2.
        free = np.maximum(self.count - self.active.sum(axis=1) - 1.0, 0.0)
        alive = np.flatnonzero(self.active.any(axis=1))
        while alive.size:
            size = np.where(self.active[alive], np.abs(self.coefficients[alive]), np.inf)
            j = size.argmin(axis=1)
            b, variance = self.coefficients[alive, j], self.variance[alive, j]
            improved = b**2 * free[alive] < 2.0 * variance * full[alive]
            alive, j = alive[improved], j[improved]
            self._drop(alive, j)
            alive = alive[self.active[alive].any(axis=1)]

    def _drop(self, which: np.ndarray, j: np.ndarray) -> None:
        """Eliminate one column of some regressions."""
        if which.size == 0:
            return
        each, steps = np.arange(which.size), self.steps[which]
        past = self.factor[:, : steps.max()]
        past = past if which.size == len(past) else past[which]
        column = self.inverse[which, j]
        column -= np.matmul(past[each, :, j][:, None, :], past)[:, 0]
        column /= np.sqrt(self.variance[which, j])[:, None]
        column[~self.active[which]] = 0.0
        self.factor[which, steps] = column
        self.steps[which] += 1
        score = self.coefficients[which, j] / np.sqrt(self.variance[which, j])
        self.residual[which] += score**2
        self.coefficients[which] -= column * score[:, None]
        self.variance[which] -= column**2
        self.coefficients[which, j] = 0.0
        self.active[which, j] = False
