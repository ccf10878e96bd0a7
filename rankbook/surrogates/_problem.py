r"""A weighted sum of losses over the edges of a multigraph, and where its infimum lies.

The objective is :math:`W(s) = \sum_e w_e \ell(s_{u_e} - s_{v_e} - m_e)`. A loss that is positive
and decreasing to zero pulls apart the strong components of the graph of its edges: between them
every term can vanish, within them a cycle holds the scores together. So W is minimised component by
component, and its infimum is attained iff the loss reaches zero or no edge joins two components.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import Any

import numpy as np

from rankbook._linear_order import topological_order
from rankbook.losses import Hinge, Loss, SquaredHinge

__all__ = ["EdgeProblem", "rational"]

# A float this close to a fraction with a small denominator is taken to mean that fraction.
_NICE_DENOMINATOR = 10**6
_NICE_ERROR = 1e-14


def rational(value: Any) -> Fraction:
    """Return the fraction that a number stands for: 0.1 is read as 1/10."""
    if isinstance(value, (Rational, np.integer)):
        return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
    exact = Fraction(float(value))
    nice = exact.limit_denominator(_NICE_DENOMINATOR)
    return nice if abs(nice - exact) <= _NICE_ERROR * max(abs(exact), 1) else exact


@dataclass(frozen=True)
class EdgeProblem:
    """Edges tail -> head with weights and margins, over n nodes, and a loss.

    Weights and margins are kept as Fractions; the float copies serve the smooth losses. The
    constant is added to the risk, and does not matter to its minimiser.
    """

    n: int
    tail: np.ndarray
    head: np.ndarray
    weight: tuple[Fraction, ...]
    margin: tuple[Fraction, ...]
    loss: Loss
    constant: Fraction = Fraction(0)

    @classmethod
    def from_matrix(cls, a: np.ndarray, margin: np.ndarray, loss: Loss) -> EdgeProblem:
        """Return the problem with an edge for every positive entry."""
        tail, head = np.nonzero(a > 0)
        weight = tuple(rational(w) for w in a[tail, head])
        margins = tuple(rational(m) for m in margin[tail, head])
        return cls(len(a), tail, head, weight, margins, loss)

    @cached_property
    def w(self) -> np.ndarray:
        """The weights as floats."""
        return np.array([float(w) for w in self.weight])

    @cached_property
    def m(self) -> np.ndarray:
        """The margins as floats."""
        return np.array([float(m) for m in self.margin])

    @property
    def reaches_zero(self) -> bool:
        """Whether the loss is zero at some finite difference."""
        return isinstance(self.loss, (Hinge, SquaredHinge))

    def differences(self, scores: np.ndarray) -> np.ndarray:
        """Return the argument of the loss at each edge."""
        return scores[self.tail] - scores[self.head] - self.m

    def value(self, scores: np.ndarray) -> float:
        """Return W at the scores."""
        with np.errstate(over="ignore"):
            return float(self.w @ self.loss(self.differences(scores)))

    def divergence(self, flow: np.ndarray) -> np.ndarray:
        """Return what leaves each node minus what enters it."""
        out = np.zeros(self.n, dtype=np.asarray(flow).dtype)
        np.add.at(out, self.tail, flow)
        np.subtract.at(out, self.head, flow)
        return out

    def gradient(self, scores: np.ndarray) -> np.ndarray:
        """Return the gradient of W."""
        return self.divergence(self.w * self.loss.derivative(self.differences(scores)))

    def hessian(self, scores: np.ndarray) -> np.ndarray:
        """Return the Hessian of W, a weighted graph Laplacian."""
        curvature = self.w * self.loss.second_derivative(self.differences(scores))
        laplacian = np.zeros((self.n, self.n))
        np.add.at(laplacian, (self.tail, self.tail), curvature)
        np.add.at(laplacian, (self.head, self.head), curvature)
        np.subtract.at(laplacian, (self.tail, self.head), curvature)
        np.subtract.at(laplacian, (self.head, self.tail), curvature)
        return laplacian

    def restrict(self, nodes: np.ndarray) -> tuple[EdgeProblem, np.ndarray]:
        """Return the problem on some nodes alone, and the positions of its edges."""
        new = np.full(self.n, -1)
        new[nodes] = np.arange(len(nodes))
        inside = np.flatnonzero((new[self.tail] >= 0) & (new[self.head] >= 0))
        weight = tuple(self.weight[e] for e in inside)
        margin = tuple(self.margin[e] for e in inside)
        tail, head = new[self.tail[inside]], new[self.head[inside]]
        return EdgeProblem(len(nodes), tail, head, weight, margin, self.loss), inside

    def merge(self, i: int, j: int) -> EdgeProblem:
        """Return the problem with s_j = s_i: the two nodes glued, their edges a constant."""
        new = np.arange(self.n)
        new[j] = i
        new = np.unique(new, return_inverse=True)[1]
        tail, head = new[self.tail], new[self.head]
        kept = np.flatnonzero(tail != head)
        constant = self.constant
        for e in np.flatnonzero(tail == head):
            constant += self.weight[e] * self._exact_loss(-self.margin[e])
        return EdgeProblem(
            self.n - 1,
            tail[kept],
            head[kept],
            tuple(self.weight[e] for e in kept),
            tuple(self.margin[e] for e in kept),
            self.loss,
            constant,
        )

    def _exact_loss(self, z: Fraction) -> Fraction:
        if self.reaches_zero:
            return max(1 - z, Fraction(0)) ** (1 if isinstance(self.loss, Hinge) else 2)
        return Fraction(float(self.loss(float(z))))

    @cached_property
    def reach(self) -> np.ndarray:
        """Whether a directed path leads from row to column (True on the diagonal)."""
        reach = np.eye(self.n, dtype=bool)
        reach[self.tail, self.head] = True
        for k in range(self.n):
            reach |= reach[:, k, None] & reach[None, k, :]
        return reach

    @cached_property
    def strong_components(self) -> list[np.ndarray]:
        """The strong components, each above those that it points to."""
        mutual = self.reach & self.reach.T
        first = np.unique(mutual.argmax(axis=1))
        blocks = [np.flatnonzero(mutual[v]) for v in first]
        between = self.reach[np.ix_(first, first)].astype(int)
        np.fill_diagonal(between, 0)
        return [blocks[c] for c in topological_order(between)]

    @cached_property
    def weak_components(self) -> list[np.ndarray]:
        """The sets of nodes that edges join, whatever their direction."""
        joined = self.reach | self.reach.T
        for k in range(self.n):
            joined |= joined[:, k, None] & joined[None, k, :]
        return [np.flatnonzero(joined[v]) for v in np.unique(joined.argmax(axis=1))]

    @property
    def attained(self) -> bool:
        """Whether the infimum of W is a minimum."""
        return self.reaches_zero or len(self.strong_components) == len(self.weak_components)
