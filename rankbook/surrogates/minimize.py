r"""Minimise convex surrogates of ranking risks, with proofs.

The surrogate risk of scores s is :math:`W(s) = \sum_{i \ne j} w_{ij} \ell(s_i - s_j - m_{ij})`, for
a graph (Duchi, Mackey and Jordan, 2010, (9) and (13)) as for a finite population.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from rankbook import losses
from rankbook._arrays import as_array
from rankbook._edge_weights import check_edge_weights
from rankbook._validation import check_scalar, check_square
from rankbook.losses import Loss
from rankbook.population import FinitePopulation
from rankbook.surrogates._problem import EdgeProblem, Value, rational
from rankbook.surrogates._solve import ComponentSolution, solve_component
from rankbook.surrogates.result import Certificate, SurrogateResult

__all__ = ["minimize_edgewise", "minimize_pairwise", "value_regularized_scores"]

# Components that infinity should part are put so far apart that exp(-distance) is below rounding.
_FAR = 41
# Beyond this share of its weight an edge of the squared hinge counts as active.
_ACTIVE = 1e-9


def check_margin(margin: Any, n: int) -> np.ndarray:
    """Return margins as an (n, n) matrix, exact where they come exact."""
    if margin is None:
        return np.zeros((n, n), dtype=int)
    if as_array(margin, "margin").ndim == 0:
        check_scalar(margin, "margin")
        return np.full((n, n), margin, dtype=object if isinstance(margin, Fraction) else None)
    if check_square(margin, "margin", nonnegative=False).shape != (n, n):
        raise ValueError(f"margin must have shape ({n}, {n}), got {np.shape(margin)}")
    return np.asarray(margin)


def _place(problem: EdgeProblem, solutions: list[ComponentSolution]) -> list[Any]:
    """Return scores with every component above those that it points to, in each weak component."""
    reach = _FAR if not problem.vanishes else max(m for _, m, _ in problem.loss.hinge_parts)
    gap = max(rational(reach) + max(problem.margin, default=Fraction(0)), Fraction(0))
    scores: list[Any] = [Fraction(0)] * problem.n
    for weak in problem.weak_components:
        ceiling = None
        for c in np.unique(problem.component[weak]):
            nodes, solution = problem.components[c], solutions[c]
            shift = 0 if ceiling is None else ceiling - max(solution.scores)
            for v, s in zip(nodes, solution.scores, strict=True):
                scores[v] = s + shift
            ceiling = min(scores[v] for v in nodes) - gap
        mean = sum(scores[v] for v in weak) / len(weak)
        for v in weak:
            scores[v] -= mean
    return scores


def _bounds(
    problem: EdgeProblem, scores: list[Any], flow: list[Fraction]
) -> Iterator[tuple[int, int, Any]]:
    """Yield (i, j, bound) with s_i - s_j >= bound at every minimiser: complementary slackness."""
    exact = problem.loss.is_piecewise_linear
    zero_from = max((rational(m) for _, m, _ in problem.loss.hinge_parts), default=Fraction(1))
    for e, (u, v) in enumerate(problem.arcs):
        if e == len(problem.weight):
            yield u, v, Fraction(0) if exact else 0.0
            if flow[e] > (0 if exact else _ACTIVE * max(problem.weight, default=0)):
                yield v, u, Fraction(0) if exact else 0.0
            continue
        kink = zero_from + problem.margin[e]
        if exact:
            if flow[e] < problem.weight[e]:
                yield u, v, kink
            if flow[e] > 0:
                yield v, u, -kink
        elif problem.vanishes and flow[e] <= _ACTIVE * problem.weight[e]:
            yield u, v, float(kink)
        elif problem.component[u] == problem.component[v]:
            yield u, v, scores[u] - scores[v]
            yield v, u, scores[v] - scores[u]
        else:
            yield u, v, np.inf


def _lowest(problem: EdgeProblem, scores: list[Any], flow: list[Fraction]) -> np.ndarray:
    """Return the least difference s_i - s_j over all minimisers, for every pair.

    The minimisers are the scores that meet a system of difference constraints, by complementary
    slackness with any optimal flow; longest paths close the system. (They are Fractions, or pass
    through infinite edges: `scipy.sparse.csgraph` takes neither.)
    """
    exact = problem.loss.is_piecewise_linear
    low = np.full((problem.n, problem.n), -np.inf, dtype=object if exact else float)
    np.fill_diagonal(low, Fraction(0) if exact else 0.0)
    for i, j, bound in _bounds(problem, scores, flow):
        low[i, j] = max(low[i, j], bound)
    for k in range(problem.n):
        with np.errstate(invalid="ignore"):
            through = low[:, k, None] + low[None, k, :]
        # Minus infinity marks "no bound", and wins over the infinity of a vanishing edge.
        through[(low[:, k] == -np.inf), :] = -np.inf
        through[:, (low[k, :] == -np.inf)] = -np.inf
        low = np.maximum(low, through)
    return low


def _is_unique(problem: EdgeProblem, scores: np.ndarray, lowest: np.ndarray) -> bool:
    if not problem.attained or not np.isfinite(lowest.astype(float)).all():
        return False
    tol = 1e-9 * (1 + np.ptp(scores)) if not problem.loss.is_piecewise_linear else 0
    return bool((lowest + lowest.T >= -tol).all())


def solve(problem: EdgeProblem, name: str = "a") -> SurrogateResult:
    """Minimise W by components, each with its proof."""
    solutions, flow, stationarity = [], [Fraction(0)] * len(problem.arcs), 0.0
    for nodes in problem.components:
        part, edges = problem.restrict(nodes)
        solution = solve_component(part)
        solutions.append(solution)
        for e, f in zip(edges, solution.flow, strict=True):
            flow[e] = f
        if not problem.loss.is_piecewise_linear:
            stationarity = max(stationarity, _stationarity(part, solution))
    upper = sum((s.value for s in solutions), Fraction(0))
    lower = sum((s.bound for s in solutions), Fraction(0))
    exact = problem.loss.is_piecewise_linear
    placed = _place(problem, solutions)
    scores = np.array([float(s) for s in placed])
    lowest = _lowest(problem, placed, flow)
    return SurrogateResult(
        scores=scores,
        value=_finite(upper + problem.constant, name),
        # Rounded, so that the last bits of tied scores do not decide the order.
        order=np.argsort(-np.round(scores / (1.0 + np.ptp(scores)), 10), kind="stable"),
        attained=problem.attained,
        unique=_is_unique(problem, scores, lowest),
        certificate=Certificate(tuple(flow), lower, upper, stationarity, exact),
        exact_scores=tuple(placed) if exact else None,
        lowest=lowest,
        problem=problem,
    )


def _stationarity(part: EdgeProblem, solution: ComponentSolution) -> float:
    """Return the largest entry of the Lagrangian's gradient, over the total weight."""
    if part.n == 1:
        return 0.0
    unit = part.unit()
    part = part.scaled(unit)
    residual = part.gradient(np.array(solution.scores, dtype=float))
    if part.kept is not None:
        multiplier = float(solution.flow[-1] * unit)
        residual[list(part.kept)] += [-multiplier, multiplier]
    return float(np.abs(residual).max() / part.w.sum())


def _finite(value: Value, name: str) -> float:
    if abs(value) > Fraction(np.finfo(float).max):
        raise ValueError(f"{name} holds weights so large that the least risk is no finite number")
    return float(value)


def _accepted(loss: str | Loss) -> Loss:
    """Return the loss if what is proved here holds for it.

    The exact proofs are the hinge's; those of other losses want strict convexity up to the point
    from which they vanish, if there is one, and that point.
    """
    loss = losses.get(loss)
    parts = loss.hinge_parts
    vanishes = loss.reaches_zero and loss.is_non_increasing
    if loss.is_piecewise_linear:
        known = parts == ((1.0, 1.0, 1),)
    else:
        known = len(parts) == 1 if vanishes else loss.is_smooth
    if not known:
        raise TypeError(
            "loss must be the hinge, or smooth and strictly convex until it vanishes (one of its "
            f"hinge_parts), got {loss!r}"
        )
    return loss


def edge_problem(a: Any, loss: str | Loss, margin: Any = None, name: str = "a") -> EdgeProblem:
    """Return the checked problem of an edgewise surrogate."""
    a = check_edge_weights(a, name)
    return EdgeProblem.from_matrix(a, check_margin(margin, len(a)), _accepted(loss))


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
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "squared"} or Loss
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
    loss : {"exponential", "logistic", "hinge", "squared_hinge", "squared"} or Loss
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
    loss = _accepted(loss)
    if not isinstance(population, FinitePopulation):
        raise TypeError(f"population must be a FinitePopulation, got {type(population).__name__}")
    weights = population.pair_weights(costs, consistent, exact=population.is_exact)
    # Two draws of one atom are tied whatever the scores: a constant.
    own = sum((rational(w) for w in np.diagonal(weights)), Fraction(0))
    weights = weights.copy()
    np.fill_diagonal(weights, 0)
    problem = EdgeProblem.from_matrix(weights, check_margin(None, len(weights)), loss)
    return solve(replace(problem, constant=own * loss.rational(Fraction(0))), "population")


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
    with np.errstate(over="ignore"):
        scores = np.asarray(net, dtype=float) / (2.0 * nu)
    if not np.isfinite(scores).all():
        raise ValueError(f"nu must be large enough for finite scores, got {nu}")
    return scores
