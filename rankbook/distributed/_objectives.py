"""What a block adds to each objective, from its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbook._link import Link
from rankbook.distributed._survey import Columns, Rows
from rankbook.losses import Loss
from rankbook.models.blockwise import Likelihood, LinkDesign, MarginRisk, Standardised
from rankbook.solvers import PairSums
from rankbook.solvers.design import Design, weighted_gram

__all__ = ["LikelihoodBlock", "MarginBlock", "PairBlock", "SquareBlock", "link_design"]


def _design(Z: np.ndarray) -> Design:
    p = Z.shape[1]
    return Design(Z, np.zeros(p), np.ones(p))


@dataclass(frozen=True)
class MarginBlock:
    """Losses of single items; an item of class k weighs its weight over ``mass[k]``."""

    loss: Loss
    mass: np.ndarray

    def __call__(self, rows: Rows) -> MarginRisk:
        sign = np.where(rows.codes == 1, 1.0, -1.0)
        weights = rows.w / self.mass[rows.codes]
        return MarginRisk(_design(rows.Z), sign, weights, self.loss, np.zeros(rows.Z.shape[1]))


@dataclass(frozen=True)
class LikelihoodBlock:
    """Minus the log-likelihood of a cumulative link model."""

    link: Link
    n_classes: int

    def __call__(self, rows: Rows) -> Likelihood:
        p = rows.Z.shape[1]
        columns = Columns(np.zeros(p), np.ones(p), np.zeros(p, dtype=bool))
        return Likelihood(link_design(rows, columns, self.n_classes), self.link)


def link_design(rows: Rows, columns: Columns, n_classes: int) -> LinkDesign:
    """Rows that are scaled already, sorted by class."""
    order = np.argsort(rows.codes, kind="stable")
    none, nobody = np.zeros(0), np.zeros(0, dtype=bool)
    ones = np.full((len(order), 1), -1.0)
    Z = np.asfortranarray(rows.Z[order])
    weights = None if rows.weights is None else rows.weights[order]
    counts = np.bincount(rows.codes, minlength=n_classes)
    return LinkDesign(
        location=Standardised(Z, columns.shift, columns.scale, columns.constant),
        nominal=Standardised(ones, none, none, nobody),
        spread=Standardised(np.zeros((len(order), 0)), none, none, nobody),
        edges=np.concatenate([[0], np.cumsum(counts)]),
        weights=weights,
        offset=None,
        order=order,
        total=float(rows.w.sum()),
    )


@dataclass(frozen=True)
class PairBlock:
    """Losses of the pairs within a block's queries, over the weight of all blocks' pairs."""

    loss: Loss
    matrix: np.ndarray
    different: float

    def __call__(self, rows: Rows) -> PairObjective:
        sums = PairSums(
            rows.codes,
            self.loss,
            self.matrix,
            sample_weight=rows.weights,
            qid=rows.query,
            labels=np.arange(len(self.matrix)),
        )
        return PairObjective(_design(rows.Z), sums, self.different)


class PairObjective:
    """A pair sum as a function of coefficients."""

    def __init__(self, design: Design, sums: PairSums, different: float) -> None:
        self.design, self.sums, self.different = design, sums, different

    def value(self, x: np.ndarray) -> float:
        """Value at x."""
        scores = self.design.scores(x)
        return self.sums.at(scores).value / self.different if np.isfinite(scores).all() else np.inf

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, Any, Any]:
        """Value, gradient, and the Hessian as a matrix where pairs are kept, else as products."""
        scores = self.design.scores(x)
        if not np.isfinite(scores).all():
            return np.inf, None, None
        point = self.sums.at(scores)
        gradient = self.design.adjoint(point.gradient() / self.different)
        hessian: Any
        if self.sums.n_kept is not None:
            hessian = self.design.pair_gram(*point.curved) / self.different
        else:

            def hessian(v: np.ndarray) -> np.ndarray:
                image = point.hessian_product(self.design.scores(v))
                return self.design.adjoint(image / self.different)

        return point.value / self.different, gradient, hessian


@dataclass(frozen=True)
class SquareBlock:
    r"""The value-regularised loss, :math:`\theta \sum_i w_i s_i^2 / W - \sum_i u_i s_i / N`.

    `mean` is the mean grade of all items where there are no queries; `mass` the total weight.
    """

    theta: float
    grades: np.ndarray
    mass: float
    mean: float
    n_pairs: float

    def __call__(self, rows: Rows) -> SquareObjective:
        grades, w = self.grades[rows.codes], rows.w
        if rows.query is None:
            balance = w * self.mass * (grades - self.mean)
        else:
            mass = np.bincount(rows.query, w)
            means = np.bincount(rows.query, w * grades) / mass
            balance = w * mass[rows.query] * (grades - means[rows.query])
        return SquareObjective(rows.Z, balance / self.n_pairs, self.theta * w / self.mass)


class SquareObjective:
    """Weighted squares of scores less a linear function of them."""

    def __init__(self, Z: np.ndarray, balance: np.ndarray, weights: np.ndarray) -> None:
        self.Z, self.balance, self.weights = Z, balance, weights

    def value(self, x: np.ndarray) -> float:
        """Value at x."""
        scores = self.Z @ x
        return float((self.weights * scores - self.balance) @ scores)

    def value_gradient_hessian(self, x: np.ndarray) -> tuple[float, Any, Any]:
        """Value, gradient and Hessian."""
        scores = self.Z @ x
        slope = 2.0 * self.weights * scores - self.balance
        value = float((self.weights * scores - self.balance) @ scores)
        return value, self.Z.T @ slope, 2.0 * weighted_gram(self.Z, self.weights)
