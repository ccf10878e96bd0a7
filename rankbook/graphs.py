r"""Preference graphs: edge losses, difference graphs, low noise, and exact best orders.

A **preference graph** is a directed acyclic graph whose edge :math:`i \to j` with weight
:math:`a_{ij}` says that item i should be above item j, at a penalty of :math:`a_{ij}` if it is not.
Everywhere in this module ``a[i, j]`` is the (expected) penalty of putting j above i.

Weights may be floats, integers or `fractions.Fraction`. Integers and fractions stay exact:
comparisons are then made without a tolerance, and losses come out as integers or fractions.
Equation numbers are those of Duchi, Mackey and Jordan (2010).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from rankbook._edge_weights import check_edge_weights, is_exact, matrix_of_edges, plain, tolerance
from rankbook._linear_order import (
    by_milp,
    by_subsets,
    find_cycle,
    order_penalty,
    strong_components,
    topological_order,
)
from rankbook._validation import (
    check_choice,
    check_probabilities,
    check_same_length,
    check_scalar,
    check_scores,
)

__all__ = [
    "PreferenceGraph",
    "difference_graph",
    "edge_loss",
    "expected_weights",
    "is_dag",
    "is_low_noise",
    "is_optimal",
    "minimum_edge_loss",
    "optimal_order",
]

_SUBSET_NODES = 12  # up to here dynamic programming, of m 2^m numbers, beats an integer program


class PreferenceGraph:
    """A directed acyclic graph of weighted preferences over items 0..m-1.

    Parameters
    ----------
    weights : array-like of shape (m, m)
        ``weights[i, j]``, the penalty of putting j above i; zero where there is no edge.

    Attributes
    ----------
    weights : ndarray of shape (m, m)
        The weights, read-only; exact if integers or fractions were given.

    Examples
    --------
    >>> graph = PreferenceGraph([[0, 2, 0], [0, 0, 1], [0, 0, 0]])
    >>> graph.edges
    [(0, 1, 2), (1, 2, 1)]
    >>> graph.loss([1.0, 3.0, 2.0])
    2
    """

    __slots__ = ("_weights",)

    def __init__(self, weights: Any) -> None:
        checked = check_edge_weights(weights, "weights").copy()
        if not is_dag(checked):
            raise ValueError(
                "weights must be those of a directed acyclic graph, got a cycle through nodes "
                f"{find_cycle(checked)}"
            )
        checked.flags.writeable = False
        self._weights = checked

    @classmethod
    def from_edges(cls, n_nodes: int, edges: Mapping[tuple[int, int], Any]) -> PreferenceGraph:
        """Return the graph with the given edges, a mapping from (i, j) to the weight of i -> j.

        Examples
        --------
        >>> PreferenceGraph.from_edges(3, {(0, 2): 1}).weights.tolist()
        [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
        """
        return cls(matrix_of_edges(n_nodes, edges))

    @property
    def weights(self) -> np.ndarray:
        """The (m, m) matrix of weights."""
        return self._weights

    @property
    def n_nodes(self) -> int:
        """The number of items."""
        return len(self._weights)

    @property
    def edges(self) -> list[tuple[int, int, Any]]:
        """The edges (i, j, weight), row by row."""
        table = self._weights.tolist()
        return [(i, j, table[i][j]) for i, j in np.argwhere(self._weights > 0).tolist()]

    def loss(self, scores: Any, ties: str = "index") -> int | Fraction | float:
        """Return the edge loss (7) of the scores; see `edge_loss`."""
        return edge_loss(scores, self._weights, ties=ties)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PreferenceGraph) and np.array_equal(self._weights, other._weights)

    def __hash__(self) -> int:
        return hash(tuple(self._weights.ravel().tolist()))

    def __repr__(self) -> str:
        return f"PreferenceGraph({self._weights.tolist()})"


def is_dag(a: Any) -> bool:
    """Say whether the edges of positive weight hold no directed cycle.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Non-negative weights, zero on the diagonal.

    Returns
    -------
    bool
        True if the graph is acyclic.

    Examples
    --------
    >>> is_dag([[0, 1, 1], [0, 0, 1], [0, 0, 0]]), is_dag([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    (True, False)
    """
    edges = (check_edge_weights(a) > 0).astype(int)
    return len(topological_order(edges)) == len(edges)


def _graph(graph: Any, name: str) -> PreferenceGraph:
    if isinstance(graph, PreferenceGraph):
        return graph
    try:
        return PreferenceGraph(graph)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def expected_weights(graphs: Iterable[Any], probabilities: Sequence[Any]) -> np.ndarray:
    r"""Return the expected penalties :math:`a_{ij} = \sum_G p_G a_{ij}^G` (above (8)).

    Parameters
    ----------
    graphs : sequence of PreferenceGraph or of array-likes of shape (m, m)
        Acyclic graphs over the same m items.
    probabilities : sequence of float, int or Fraction
        Their probabilities, which sum to one; fractions and exact graphs give exact weights.

    Returns
    -------
    ndarray of shape (m, m)
        The expected penalties. They may well hold cycles.

    Examples
    --------
    >>> up, down = [[0, 1], [0, 0]], [[0, 0], [1, 0]]
    >>> expected_weights([up, down], [0.75, 0.25]).tolist()
    [[0.0, 0.75], [0.25, 0.0]]
    """
    if not isinstance(graphs, Iterable) or getattr(graphs, "ndim", 1) == 0:
        raise TypeError(f"graphs must be a sequence of graphs, got {graphs!r}")
    graphs = [_graph(g, f"graphs[{k}]") for k, g in enumerate(graphs)]
    if not graphs:
        raise ValueError("graphs must not be empty")
    for graph in graphs:
        check_same_length(graph.n_nodes, graphs[0].n_nodes, "graphs[k]", "graphs[0]")
    as_float = check_probabilities(probabilities, n=len(graphs))
    exact = all(isinstance(p, Rational) for p in probabilities)
    if exact and sum(probabilities) != 1:
        raise ValueError(f"probabilities must sum to one, got a sum of {sum(probabilities)}")
    if exact and all(is_exact(g.weights) for g in graphs):
        terms = [
            g.weights.astype(object) * Fraction(p)
            for g, p in zip(graphs, probabilities, strict=True)
        ]
    else:
        terms = [g.weights.astype(float) * p for g, p in zip(graphs, as_float, strict=True)]
    return sum(terms[1:], start=terms[0])


def difference_graph(a: Any) -> np.ndarray:
    r"""Return the weights :math:`\max(a_{ij} - a_{ji}, 0)` of the difference graph.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Expected penalties.

    Returns
    -------
    ndarray of shape (m, m)
        Of each pair at most one edge is left, with the net weight of the preference.

    Examples
    --------
    >>> difference_graph([[0, 5], [3, 0]]).tolist()
    [[0, 2], [0, 0]]
    """
    a = check_edge_weights(a)
    return np.maximum(a - a.T, 0)


def is_low_noise(a: Any, tol: float = 1e-9) -> bool:
    r"""Say whether the difference graph obeys the reverse triangle inequality of Definition 8.

    Whenever it has edges :math:`i \to j` and :math:`j \to k`, the weight of :math:`i \to k` must be
    at least the sum of theirs. A low-noise graph has an acyclic difference graph.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Expected penalties (the difference is taken here).
    tol : float, default 1e-9
        Tolerance for float weights, relative to the largest; integers and fractions are compared
        exactly.

    Returns
    -------
    bool
        True if the condition holds.

    Examples
    --------
    >>> is_low_noise([[0, 1, 3], [0, 0, 2], [0, 0, 0]])
    True
    >>> is_low_noise([[0, 1, 2], [0, 0, 2], [0, 0, 0]])
    False
    """
    a = check_edge_weights(a)
    tol = tolerance(a, tol)
    net = a - a.T
    edge = net > tol
    # One middle node at a time: m^2 numbers, not m^3.
    for j in range(len(a)):
        above, below = np.flatnonzero(edge[:, j]), np.flatnonzero(edge[j])
        least = net[above, j][:, None] + net[j, below]
        if (net[np.ix_(above, below)] < least - tol).any():
            return False
    return True


def edge_loss(scores: Any, a: Any, ties: str = "index") -> int | Fraction | float:
    r"""Return the penalty of the edges that the scores get wrong, (7) for a graph, (8) in the mean.

    .. math:: \sum_{i<j} a_{ij} 1[s_i \le s_j] + \sum_{i>j} a_{ij} 1[s_i < s_j]

    Parameters
    ----------
    scores : array-like of shape (m,)
        A higher score is ranked higher.
    a : array-like of shape (m, m) or PreferenceGraph
        Penalties, ``a[i, j]`` for putting j above i.
    ties : {"index", "both"}, default "index"
        "index", the paper's: tied nodes i < j pay ``a[i, j]`` alone; "both": they pay both weights.

    Returns
    -------
    int, Fraction or float
        The loss, exact for exact weights.

    Examples
    --------
    >>> a = [[0, 5], [3, 0]]
    >>> edge_loss([2.0, 1.0], a), edge_loss([1.0, 2.0], a)
    (3, 5)
    >>> edge_loss([1.0, 1.0], a), edge_loss([1.0, 1.0], a, ties="both")
    (5, 8)
    """
    a = check_edge_weights(a)
    check_choice(ties, ("index", "both"), "ties")
    check_same_length(check_scores(scores).size, len(a), "scores", "a")
    # Ranks, not floats: scores may be fractions that differ by less than a float can tell.
    _, rank = np.unique(np.asarray(scores), return_inverse=True)
    wrong = rank[:, None] < rank[None, :]
    tied = rank[:, None] == rank[None, :]
    wrong |= np.triu(tied, 1) if ties == "index" else tied
    return plain(a[wrong].sum())


def optimal_order(a: Any, method: str = "auto", time_limit: float | None = None) -> np.ndarray:
    r"""Return nodes, best first, in an order of least edge loss.

    This is the minimum feedback arc set problem, NP-hard in general (Lemma 7). The strong
    components of the difference graph are solved apart, since some best order keeps each of them
    together and puts them in topological order; so an acyclic difference graph is merely sorted.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Penalties, ``a[i, j]`` for putting j above i.
    method : {"auto", "subsets", "milp"}, default "auto"
        For a component: dynamic programming over subsets (at most 20 nodes), an integer program
        solved by HiGHS, or the first up to 12 nodes and the second beyond. For integers and
        fractions the program's answer is proved in integer arithmetic; should a proof grow too
        long, and the weights be too large for HiGHS to tell apart, dynamic programming decides,
        and beyond 20 nodes an `UncertifiedOrderWarning` says that the order is not proved.
    time_limit : float, optional
        Seconds allowed for each integer program; a RuntimeError is raised beyond.

    Returns
    -------
    ndarray of int, shape (m,)
        The nodes, best first. Where several orders are best, one of them, always the same.

    Examples
    --------
    >>> optimal_order([[0, 3, 0], [0, 0, 4], [2, 0, 0]]).tolist()  # a cycle loses its lightest edge
    [0, 1, 2]
    """
    a = check_edge_weights(a)
    check_choice(method, ("auto", "subsets", "milp"), "method")
    if time_limit is not None:
        time_limit = check_scalar(time_limit, "time_limit", low=0.0, strict_low=True)
    parts = []
    for nodes in strong_components(a):
        inner = a[np.ix_(nodes, nodes)]
        if len(nodes) == 1:
            parts.append(nodes)
        elif method == "subsets" or (method == "auto" and len(nodes) <= _SUBSET_NODES):
            parts.append(nodes[by_subsets(inner)])
        else:
            parts.append(nodes[by_milp(inner, time_limit)])
    return np.concatenate(parts)


def minimum_edge_loss(a: Any, method: str = "auto") -> int | Fraction | float:
    """Return the least edge loss of any scores, attained by `optimal_order`.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Penalties.
    method : {"auto", "subsets", "milp"}, default "auto"
        As in `optimal_order`.

    Returns
    -------
    int, Fraction or float
        The loss, exact for exact weights.

    Examples
    --------
    >>> minimum_edge_loss([[0, 3, 0], [0, 0, 4], [2, 0, 0]])
    2
    """
    a = check_edge_weights(a)
    return plain(order_penalty(optimal_order(a, method), a))


def is_optimal(scores: Any, a: Any, ties: str = "index", tol: float = 1e-9) -> bool:
    r"""Say whether the scores lie in :math:`A(p)`, the scores of least expected edge loss (5).

    Parameters
    ----------
    scores : array-like of shape (m,)
        Scores of the nodes.
    a : array-like of shape (m, m) or PreferenceGraph
        Expected penalties.
    ties : {"index", "both"}, default "index"
        What a tie pays, as in `edge_loss`.
    tol : float, default 1e-9
        Tolerance for float weights, relative to the largest; exact weights have none.

    Returns
    -------
    bool
        True if no scores have a smaller loss.

    Examples
    --------
    >>> a = [[0, 5], [3, 0]]
    >>> is_optimal([2.0, 1.0], a), is_optimal([1.0, 1.0], a)
    (True, False)
    """
    a = check_edge_weights(a)
    loss = edge_loss(scores, a, ties=ties)
    return bool(loss <= minimum_edge_loss(a) + tolerance(a, tol))
