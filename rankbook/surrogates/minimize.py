r"""Minimise convex surrogates of ranking risks, with proofs.

The surrogate risk of scores s is :math:`W(s) = \sum_{i \ne j} w_{ij} \ell(s_i - s_j - m_{ij})`, for
a graph (Duchi, Mackey and Jordan, 2010, (9) and (13)) as for a finite population.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankbook import losses
from rankbook._edge_weights import check_edge_weights
from rankbook._validation import check_scalar, check_square
from rankbook.losses import Hinge, Loss
from rankbook.surrogates._problem import EdgeProblem, rational
from rankbook.surrogates._solve import ComponentSolution, solve_component
from rankbook.surrogates.result import Certificate, SurrogateResult

__all__ = ["minimize_edgewise", "minimize_pairwise", "value_regularized_scores"]

# Components that infinity should part are put so far apart that exp(-distance) is below rounding.
_FAR = 40
# Beyond this share of its weight an edge of the squared hinge counts as active.
_ACTIVE = 1e-9


def check_margin(margin: Any, n: int) -> np.ndarray:
    """Return margins as an (n, n) matrix, exact where they come exact."""
    if margin is None:
        return np.zeros((n, n), dtype=int)
    if np.ndim(margin) == 0:
        check_scalar(margin, "margin")
        return np.full((n, n), margin, dtype=object if isinstance(margin, Fraction) else None)
    if check_square(margin, "margin", nonnegative=False).shape != (n, n):
        raise ValueError(f"margin must have shape ({n}, {n}), got {np.shape(margin)}")
    return np.asarray(margin)


def _place(problem: EdgeProblem, solutions: list[ComponentSolution]) -> list:
    """Return scores with every component above those that it points to, in each weak component."""
    gap = 1 + max(problem.margin, default=Fraction(0))
    gap = max(gap, Fraction(0)) + (0 if problem.reaches_zero else _FAR)
    scores: list = [Fraction(0)] * problem.n
    for weak in problem.weak_components:
        ceiling = None
        members = set(weak.tolist())
        for nodes, solution in zip(problem.strong_components, solutions, strict=True):
            if nodes[0] not in members:
                continue
            shift = 0 if ceiling is None else ceiling - max(solution.scores)
            for v, s in zip(nodes, solution.scores, strict=True):
                scores[v] = s + shift
            ceiling = min(scores[v] for v in nodes) - gap
        mean = sum(scores[v] for v in weak) / len(weak)
        for v in weak:
            scores[v] -= mean
    return scores


def _lowest(problem: EdgeProblem, scores: list, flow: list[Fraction]) -> np.ndarray:
    """Return the least difference s_i - s_j over all minimisers, for every pair.

    The minimisers are the scores that meet a system of difference constraints, one or two for each
    edge, by complementary slackness with any optimal flow; longest paths close the system.
    """
    exact = isinstance(problem.loss, Hinge)
    low = np.full((problem.n, problem.n), -np.inf, dtype=object if exact else float)
    np.fill_diagonal(low, Fraction(0) if exact else 0.0)

    def at_least(i: int, j: int, bound) -> None:
        low[i, j] = max(low[i, j], bound)

    together = problem.reach & problem.reach.T
    for e, (u, v) in enumerate(zip(problem.tail.tolist(), problem.head.tolist(), strict=True)):
        kink = 1 + problem.margin[e]
        if exact:
            if flow[e] < problem.weight[e]:
                at_least(u, v, kink)
            if flow[e] > 0:
                at_least(v, u, -kink)
        elif problem.reaches_zero and flow[e] <= _ACTIVE * problem.weight[e]:
            at_least(u, v, float(kink))
        elif together[u, v]:
            at_least(u, v, scores[u] - scores[v])
            at_least(v, u, scores[v] - scores[u])
        else:
            at_least(u, v, np.inf)
    for k in range(problem.n):
        with np.errstate(invalid="ignore"):
            through = low[:, k, None] + low[None, k, :]
        # Minus infinity marks "no bound", and wins over the infinity of a vanishing edge.
        through[(low[:, k] == -np.inf), :] = -np.inf
        through[:, (low[k, :] == -np.inf)] = -np.inf
        low = np.maximum(low, through)
    return low


def solve(problem: EdgeProblem) -> SurrogateResult:
    """Minimise W by strong components, each with its proof."""
    solutions, flow, stationarity = [], [Fraction(0)] * len(problem.weight), 0.0
    for nodes in problem.strong_components:
        part, edges = problem.restrict(nodes)
        solution = solve_component(part)
        solutions.append(solution)
        for e, f in zip(edges, solution.flow, strict=True):
            flow[e] = f
        if part.n > 1 and not isinstance(problem.loss, Hinge):
            residual = np.abs(part.gradient(np.array(solution.scores, dtype=float))).max()
            stationarity = max(stationarity, float(residual / part.w.sum()))
    upper = sum(s.value for s in solutions)
    placed = _place(problem, solutions)
    exact = isinstance(problem.loss, Hinge)
    scores = np.array([float(s) for s in placed])
    lowest = _lowest(problem, placed, flow)
    unique = problem.attained and bool(np.isfinite(lowest.astype(float)).all())
    if unique:
        tol = 0 if exact else 1e-9 * (1 + np.ptp(scores))
        unique = bool((lowest + lowest.T >= -tol).all())
    return SurrogateResult(
        scores=scores,
        value=float(upper + problem.constant),
        # Rounded, so that the last bits of tied scores do not decide the order.
        order=np.argsort(-np.round(scores / (1.0 + np.ptp(scores)), 10), kind="stable"),
        attained=problem.attained,
        unique=unique,
        certificate=Certificate(
            tuple(flow), sum(s.bound for s in solutions), upper, stationarity, exact
        ),
        exact_scores=tuple(placed) if exact else None,
        lowest=lowest,
        problem=problem,
    )


def _known(loss: str | Loss) -> Loss:
    loss = losses.get(loss)
    if type(loss) not in (losses.Exponential, losses.Logistic, losses.Hinge, losses.SquaredHinge):
        raise TypeError(f"loss must be one of the four of rankbook.losses, got {loss!r}")
    return loss


def edge_problem(a: Any, loss: str | Loss, margin: Any = None, name: str = "a") -> EdgeProblem:
    """Return the checked problem of an edgewise surrogate."""
    a = check_edge_weights(a, name)
    return EdgeProblem.from_matrix(a, check_margin(margin, len(a)), _known(loss))


def minimize_edgewise(a: Any, loss: str | Loss, margin: Any = None) -> SurrogateResult:
    r"""Minimise an edgewise surrogate over all scores of the nodes, with a certificate.

    .. math:: W(s) = \sum_{i \ne j} a_{ij} \ell(s_i - s_j - m_{ij})

    cvxpy solves; then the answer is polished and proved without it. A circulation over the edges
    bounds W from below, and the bound meets the value: exactly, in rational arithmetic, for the
    hinge loss, to rounding for the smooth ones.

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Weights; ``a[i, j]`` is that of the edge i -> j.
    loss : {"exponential", "logistic", "hinge", "squared_hinge"} or Loss
        The surrogate.
    margin : float or array-like of shape (m, m), optional
        The margins m of (13) in Duchi et al.; zero if not given.

    Returns
    -------
    SurrogateResult
        With ``scores`` (mean zero), ``value``, ``order``, ``attained``, ``unique``,
        ``certificate`` and ``difference_range(i, j)``.

    Raises
    ------
    CertificateError
        If the solver's answer turns out not to be optimal.
    SolverError
        If the solver gives none.
    ImportError
        If cvxpy is not installed.

    Notes
    -----
    Exponential and logistic loss never reach zero: if some edge lies on no cycle, its ends drift
    apart for ever and the infimum is not attained. Then ``attained`` is False, ``value`` is the
    infimum, and ``scores`` come within rounding of it.

    Examples
    --------
    >>> result = minimize_edgewise([[0, 3], [1, 0]], "exponential")
    >>> result.scores.round(6).tolist()  # the difference is log(3) / 2
    [0.274653, -0.274653]
    >>> result.unique, float(result.certificate.gap) < 1e-12
    (True, True)
    >>> minimize_edgewise([[0, 3], [0, 0]], "exponential").attained
    False
    """
    return solve(edge_problem(a, loss, margin))


def minimize_pairwise(
    population: Any, loss: str | Loss, costs: Any = None, consistent: bool = False
) -> SurrogateResult:
    """Minimise the pairwise surrogate risk of a finite population over the scores of its atoms.

    Parameters
    ----------
    population : FinitePopulation
        A known distribution of atoms and labels.
    loss : {"exponential", "logistic", "hinge", "squared_hinge"} or Loss
        The surrogate.
    costs : None, str or array-like of shape (K, K)
        The costs of misranked pairs.
    consistent : bool, default False
        Whether to add the terms of Theorem 4 of Uematsu and Lee (2013).

    Returns
    -------
    SurrogateResult
        As `minimize_edgewise`; its value is ``population.surrogate_risk(scores, ...)``.

    Examples
    --------
    >>> from rankbook.population import FinitePopulation
    >>> population = FinitePopulation([[0.5, 0.5], [0.2, 0.8]])
    >>> minimize_pairwise(population, "exponential").order.tolist()
    [1, 0]
    """
    loss = _known(loss)
    weights = population.pair_weights(costs, consistent, exact=population.is_exact)
    # Two draws of one atom are tied whatever the scores: a constant.
    own = sum((rational(w) for w in np.diagonal(weights)), Fraction(0))
    weights = weights.copy()
    np.fill_diagonal(weights, 0)
    problem = EdgeProblem.from_matrix(weights, check_margin(None, len(weights)), loss)
    return solve(replace(problem, constant=own * rational(loss(0.0))))


def value_regularized_scores(a: Any, nu: float = 1.0) -> np.ndarray:
    r"""Return the minimiser of the value-regularised linear loss (14) with r(x) = x^2.

    .. math:: \sum_{ij} a_{ij} (s_j - s_i) + \nu \sum_i s_i^2 \quad\text{at}\quad
              s_i = \frac{1}{2 \nu} \sum_j (a_{ij} - a_{ji})

    Parameters
    ----------
    a : array-like of shape (m, m) or PreferenceGraph
        Expected penalties, ``a[i, j]`` for putting j above i.
    nu : float, default 1.0
        The weight of the regularisation, positive.

    Returns
    -------
    ndarray of shape (m,)
        The unique minimiser (Theorem 13), of sum zero: net weighted out-degrees.

    Examples
    --------
    >>> value_regularized_scores([[0, 2, 3], [0, 0, 1], [0, 0, 0]]).tolist()
    [2.5, -0.5, -2.0]
    """
    a = check_edge_weights(a)
    nu = check_scalar(nu, "nu", low=0.0, strict_low=True)
    net = (a - a.T).sum(axis=1)
    return np.asarray(net, dtype=float) / (2.0 * nu)
