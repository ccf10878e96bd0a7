r"""A weighted sum of losses over the edges of a multigraph, and where its infimum lies.

The objective is :math:`W(s) = \sum_e w_e \ell(s_{u_e} - s_{v_e} - m_e)`, over all scores or over
those that keep one node at least as high as another. A loss that decreases to zero pulls apart the
strong components of the graph of its edges: between them every term can vanish, within them a cycle
holds the scores together. So W is minimised component by component, and its infimum is attained iff
the loss reaches zero or no edge joins two components. A loss that grows at both ends holds together
whatever an edge joins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

from rankbook._linear_order import ordered_components
from rankbook.losses import Loss

__all__ = ["EdgeProblem", "Value", "rational"]

# A Fraction where the loss is piecewise linear, else a float.
Value: TypeAlias = Any

# A float this close (relatively) to a fraction with a small denominator is taken to mean it.
_NICE_DENOMINATOR = 10**6
_NICE_ERROR = 1e-14


def _nice(exact: Fraction) -> Fraction | None:
    nice = exact.limit_denominator(_NICE_DENOMINATOR)
    return nice if abs(nice - exact) <= _NICE_ERROR * abs(exact) else None


def rational(value: Any) -> Fraction:
    """Return the fraction that a number stands for: 0.1 is read as 1/10."""
    if isinstance(value, (Rational, np.integer)):
        return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
    exact = Fraction(float(value))
    nice = _nice(exact)
    return exact if nice is None else nice


def rationals(values: list[Any]) -> tuple[Fraction, ...]:
    """Return the fractions that numbers stand for, by themselves or by their ratios.

    Weights of 3e-15 and 4e-15 are no small fractions, but three to four is: where some number is
    none, all are read relative to the largest, if that makes small fractions of them all.
    """
    read = tuple(rational(v) for v in values)
    if all(r.denominator <= _NICE_DENOMINATOR for r in read):
        return read
    largest = Fraction(max(values))
    ratios = [_nice(Fraction(v) / largest) for v in values]
    if any(r is None for r in ratios):
        return read
    return tuple(r * largest for r in ratios if r is not None)


@dataclass(frozen=True, eq=False)
class EdgeProblem:
    """Edges tail -> head with weights and margins, over n nodes, and a loss.

    Weights and margins are kept as Fractions; the float copies serve the smooth losses. The
    constant is added to the risk, and does not matter to its minimiser. With ``kept = (j, i)`` the
    scores must have node j at least as high as node i; in the dual this is one more edge j -> i,
    the last, which may carry any flow and costs nothing.
    """

    n: int
    tail: np.ndarray
    head: np.ndarray
    weight: tuple[Fraction, ...]
    margin: tuple[Fraction, ...]
    loss: Loss
    constant: Fraction = Fraction(0)
    kept: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for array in (self.tail, self.head):
            array.flags.writeable = False

    @classmethod
    def from_matrix(cls, a: np.ndarray, margin: np.ndarray, loss: Loss) -> EdgeProblem:
        """Return the problem with an edge for every positive entry."""
        tail, head = np.nonzero(a > 0)
        weight = rationals(a[tail, head].tolist())
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

    @cached_property
    def arcs(self) -> list[tuple[int, int]]:
        """The ends of every edge, the one that `kept` adds included."""
        ends = list(zip(self.tail.tolist(), self.head.tolist(), strict=True))
        return ends if self.kept is None else [*ends, self.kept]

    @property
    def vanishes(self) -> bool:
        """Whether the loss is zero from some difference on."""
        return self.loss.reaches_zero and self.loss.is_non_increasing

    def scaled(self, factor: Fraction) -> EdgeProblem:
        """Return the problem with every weight, and the constant, multiplied."""
        weight = tuple(w * factor for w in self.weight)
        return replace(self, weight=weight, constant=self.constant * factor)

    def unit(self) -> Fraction:
        """Return the power of two by which the largest weight comes to lie between 1/2 and 2."""
        largest = max(self.weight, default=Fraction(1))
        shift = largest.denominator.bit_length() - largest.numerator.bit_length()
        return Fraction(2) ** shift

    def differences(self, scores: np.ndarray) -> np.ndarray:
        """Return the argument of the loss at each edge."""
        return scores[self.tail] - scores[self.head] - self.m

    def value(self, scores: np.ndarray) -> float:
        """Return W at the scores."""
        with np.errstate(over="ignore"):
            return float(self.w @ self.loss(self.differences(scores)))

    def divergence(self, flow: np.ndarray) -> np.ndarray:
        """Return what leaves each node minus what enters it."""
        out = np.bincount(self.tail, flow, self.n)
        return out - np.bincount(self.head, flow, self.n)

    def gradient(self, scores: np.ndarray) -> np.ndarray:
        """Return the gradient of W."""
        return self.divergence(self.w * self.loss.derivative(self.differences(scores)))

    def hessian(self, scores: np.ndarray) -> np.ndarray:
        """Return the Hessian of W, a weighted graph Laplacian."""
        curvature = self.w * self.loss.second_derivative(self.differences(scores))
        between = np.bincount(self.tail * self.n + self.head, curvature, self.n**2)
        between = between.reshape(self.n, self.n)
        between = between + between.T
        return np.diag(between.sum(axis=1)) - between

    def restrict(self, nodes: np.ndarray) -> tuple[EdgeProblem, list[int]]:
        """Return the problem on some nodes alone, and the positions of its edges."""
        new = np.full(self.n, -1)
        new[nodes] = np.arange(len(nodes))
        inside = np.flatnonzero((new[self.tail] >= 0) & (new[self.head] >= 0)).tolist()
        part = EdgeProblem(
            len(nodes),
            new[self.tail[inside]],
            new[self.head[inside]],
            tuple(self.weight[e] for e in inside),
            tuple(self.margin[e] for e in inside),
            self.loss,
        )
        if self.kept is None or min(new[list(self.kept)]) < 0:
            return part, inside
        above, below = self.kept
        part = replace(part, kept=(int(new[above]), int(new[below])))
        return part, [*inside, len(self.weight)]

    def _joined(self, both_ways: bool) -> np.ndarray:
        joined = np.zeros((self.n, self.n), dtype=bool)
        joined[self.tail, self.head] = True
        if both_ways:
            joined |= joined.T
        if self.kept is not None:
            joined[self.kept] = True
        return joined

    @cached_property
    def components(self) -> list[np.ndarray]:
        """The sets of nodes that the loss holds together, each above those that it points to."""
        return ordered_components(self._joined(both_ways=not self.loss.is_non_increasing))

    @cached_property
    def component(self) -> np.ndarray:
        """The number of each node's component."""
        number = np.zeros(self.n, dtype=int)
        for c, nodes in enumerate(self.components):
            number[nodes] = c
        return number

    @cached_property
    def weak_components(self) -> list[np.ndarray]:
        """The sets of nodes that edges join, whatever their direction."""
        joined = self._joined(both_ways=True)
        return ordered_components(joined | joined.T)

    @property
    def attained(self) -> bool:
        """Whether the infimum of W is a minimum."""
        within = self.component[self.tail] == self.component[self.head]
        return self.vanishes or bool(within.all())
