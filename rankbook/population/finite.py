"""A population of finitely many atoms: every risk is a finite sum."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from rankbook._cost_scale import require_scale_condition, satisfies_scale_condition
from rankbook._validation import (
    check_costs,
    check_flag,
    check_posterior,
    check_probabilities,
    check_rng,
    check_same_length,
    check_scalar,
    check_scores,
    check_ties,
)
from rankbook.losses import Loss
from rankbook.losses import get as get_loss
from rankbook.population._levels import group_levels, misranked, pair_mass
from rankbook.population._order import BayesOrdering, best_order
from rankbook.population._rational import fractions, rational_joint


class FinitePopulation:
    r"""Items from a finite set of atoms, with a known posterior at each.

    Parameters
    ----------
    posterior : array-like of shape (m, K)
        P(Y = k | atom u), rows that sum to one. Where all entries are integers or `Fraction`, sums
        must be exactly one, every comparison between orders is made exactly, and a risk is
        computed in rational arithmetic and rounded once, to the nearest float.
    marginal : array-like of shape (m,), optional
        Probability of each atom; equal by default.

    Attributes
    ----------
    posterior, marginal : ndarray
        As floats.
    priors : ndarray of shape (K,)
        Probability of each class.
    is_exact : bool
        Whether the population was given in rationals.

    Examples
    --------
    >>> population = FinitePopulation([[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])
    >>> population.risk([1, 2, 3]) == population.bayes_risk()
    True
    >>> population.bayes_scores("linear").tolist()
    [0.0, 1.0, 2.0]

    Exact input gives exact decisions: four classes at constant costs, and a circle of preferences.

    >>> from fractions import Fraction
    >>> dice = np.array([[0, 3, 0, 1], [2, 0, 0, 2], [1, 0, 3, 0]]) * Fraction(1, 4)
    >>> FinitePopulation(dice).bayes_ordering().cycle
    (0, 1, 2)
    """

    def __init__(self, posterior: Any, marginal: Any = None) -> None:
        self.posterior = check_posterior(posterior)
        if self.posterior.ndim != 2:
            raise ValueError(
                f"posterior must have shape (m, K), one row an atom, got {self.posterior.shape}"
            )
        m = self.posterior.shape[0]
        if marginal is None:
            self.marginal = np.full(m, 1.0 / m)
        else:
            self.marginal = check_probabilities(marginal, m, name="marginal")
        self._rational = rational_joint(posterior, marginal, m)
        self._joint = self.marginal[:, None] * self.posterior
        masses = self._masses().sum(axis=0)
        self.priors = masses.astype(float)
        self._pair_mass = pair_mass(masses)
        if self._pair_mass <= 0:
            raise ValueError("posterior must give at least two classes a positive probability")

    @property
    def is_exact(self) -> bool:
        """Whether posterior and marginal were given in integers and fractions."""
        return self._rational is not None

    def _masses(self) -> np.ndarray:
        """Return P(atom u, Y = k), in rationals if the population was given so."""
        return self._joint if self._rational is None else self._rational

    def _costs(self, costs: Any, exact: bool) -> np.ndarray:
        """Return checked costs; as Fractions, those that were given, where all is exact."""
        c = check_costs(costs, self.n_classes)
        if not exact:
            return c
        return fractions(c if costs is None or isinstance(costs, str) else np.asarray(costs))

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return self.posterior.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.posterior.shape[1]

    def __repr__(self) -> str:
        return f"FinitePopulation({self.n_atoms} atoms, {self.n_classes} classes)"

    def _scores(self, scores: Any) -> np.ndarray:
        scores = check_scores(scores)
        check_same_length(scores.size, self.n_atoms, "scores", "posterior")
        return scores

    def pair_weights(
        self, costs: Any = None, consistent: bool = False, exact: bool = False
    ) -> np.ndarray:
        r"""Return what it costs to put atom v above atom u, for every ordered pair.

        .. math:: W_{uv} = \frac{q_u q_v}{P(Y > Y')} \sum_{j < i} c_{ji}\, p_i(u)\, p_j(v),

        so that the risk is :math:`\sum_{uv} W_{uv} (1[s_u < s_v] + \frac12 1[s_u = s_v])` and the
        surrogate risk :math:`\sum_{uv} W_{uv} \ell(s_u - s_v)`. The consistent version has Theorem
        4's terms (Uematsu and Lee, 2013) added, and factors:

        .. math:: W_{uv} = \frac{q_u q_v}{c_{1K} P(Y > Y')}
                  \sum_i c_{1i} p_i(u) \sum_j c_{jK} p_j(v).

        Parameters
        ----------
        costs : None, str or array-like of shape (K, K)
            The costs.
        consistent : bool, default=False
            Whether to add the terms of Theorem 4.
        exact : bool, default=False
            Whether to compute in rationals, floats standing for the rationals that they are.

        Returns
        -------
        ndarray of shape (m, m)
            Floats, or `Fraction` objects if `exact`.

        Raises
        ------
        CostConditionError
            If `consistent` and the costs do not come from a scale.

        Examples
        --------
        >>> population = FinitePopulation([[0.5, 0.5], [0.25, 0.75]])
        >>> population.pair_weights().round(3).tolist()
        [[0.267, 0.133], [0.4, 0.2]]
        """
        if check_flag(consistent, "consistent"):
            c = check_costs(costs, self.n_classes)
            require_scale_condition(c, "Theorem 4's terms exist only for costs that do.")
        c = self._costs(costs, exact)
        joint = self._joint
        if exact:
            joint = fractions(self._masses())
        if consistent:
            upper, lower = joint @ c[0], joint @ c[:, -1]
            weights = np.outer(upper, lower) / c[0, -1]
        else:
            weights = joint @ c.T @ joint.T
        return weights / pair_mass(joint.sum(axis=0))

    def risk(self, scores: Any, costs: Any = None, ties: float = 0.5) -> float:
        """Return the expected cost of a pair with different labels, equation (5).

        Parameters
        ----------
        scores : array-like of shape (m,)
            Score of each atom.
        costs : None, str or array-like of shape (K, K)
            The costs.
        ties : float, default=0.5
            What a tied pair counts; two draws of one atom always tie.

        Returns
        -------
        float
            The risk.

        Examples
        --------
        >>> population = FinitePopulation([[1, 0], [0, 1]])
        >>> population.risk([0, 1]), population.risk([0, 0]), population.risk([1, 0])
        (0.0, 0.5, 1.0)
        """
        scores = self._scores(scores)
        c = self._costs(costs, self.is_exact)
        tied = Fraction(check_ties(ties)) if self.is_exact else check_ties(ties)
        below, same = misranked(group_levels(scores, self._masses()))
        return float((c * (below + tied * same)).sum() / self._pair_mass)

    def surrogate_risk(
        self, scores: Any, loss: str | Loss, costs: Any = None, consistent: bool = False
    ) -> float:
        """Return the expected surrogate loss of a pair, with Theorem 4's terms if `consistent`.

        Parameters
        ----------
        scores : array-like of shape (m,)
            Score of each atom.
        loss : str or Loss
            The surrogate.
        costs : None, str or array-like of shape (K, K)
            The costs.
        consistent : bool, default=False
            Whether to add the terms of Theorem 4.

        Returns
        -------
        float
            The surrogate risk.

        Examples
        --------
        >>> population = FinitePopulation([[1, 0], [0, 1]])
        >>> population.surrogate_risk([0, 0.25], "hinge")
        0.75
        """
        scores = self._scores(scores)
        values = get_loss(loss)(scores[:, None] - scores[None, :])
        weights = self.pair_weights(costs, consistent, exact=self.is_exact)
        return float((weights.astype(float) * values).sum())

    def bayes_ordering(self, costs: Any = None) -> BayesOrdering:
        """Return a best ordering of the atoms, for any costs.

        Where the pairwise preferences have no cycle, each pair is put in its cheaper order.
        Otherwise the ordering is a minimum feedback arc set inside each knot of cycles, found
        exactly by `rankbook.graphs.optimal_order`.

        Parameters
        ----------
        costs : None, str or array-like of shape (K, K)
            The costs.

        Returns
        -------
        BayesOrdering
            Scores, order, risk, and a cycle of preferences if there is one.

        Examples
        --------
        >>> ordering = FinitePopulation([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]).bayes_ordering()
        >>> ordering.order, ordering.is_transitive
        ((0, 2, 1), True)
        """
        weights = self.pair_weights(costs, exact=self.is_exact)
        levels, cycle = best_order(weights)
        scores = levels.astype(float)
        cheaper = np.minimum(weights, weights.T)
        return BayesOrdering(
            scores=scores,
            order=tuple(int(u) for u in np.argsort(-scores, kind="stable")),
            risk=self.risk(scores, costs),
            bound=float(cheaper.sum() / 2),
            cycle=cycle,
        )

    def bayes_scores(self, costs: Any = None) -> np.ndarray:
        """Return scores of a best ordering of the atoms, exact for any costs.

        Levels 0, 1, ...: for costs from a scale the dense ranks of Theorem 3's ratio.

        Parameters
        ----------
        costs : None, str or array-like of shape (K, K)
            The costs.

        Returns
        -------
        ndarray of shape (m,)
            The scores.

        See Also
        --------
        bayes_ordering : the same, with the risk and with a cycle if there is one.

        Examples
        --------
        >>> FinitePopulation([[0.2, 0.8], [0.6, 0.4], [0.2, 0.8]]).bayes_scores().tolist()
        [1.0, 0.0, 1.0]
        """
        c = check_costs(costs, self.n_classes)
        if self.is_exact or not satisfies_scale_condition(c):
            return self.bayes_ordering(costs).scores
        upper, lower = self.posterior @ c[0], self.posterior @ c[:, -1]
        # The smaller over the larger keeps all digits. An atom whose classes all cost nothing may
        # stand anywhere.
        larger = np.maximum(upper, lower)
        ratio = np.divide(np.minimum(upper, lower), larger, out=0 * larger, where=larger > 0)
        keys = np.column_stack([upper > lower, np.where(upper > lower, -ratio, ratio)])
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(float)

    def bayes_risk(self, costs: Any = None) -> float:
        """Return the least risk that any scores reach, with ties counting one half.

        Parameters
        ----------
        costs : None, str or array-like of shape (K, K)
            The costs.

        Returns
        -------
        float
            The risk of `bayes_scores`.

        Examples
        --------
        >>> FinitePopulation([[0.25, 0.75], [0.75, 0.25]]).bayes_risk()
        0.25
        """
        return self.risk(self.bayes_scores(costs), costs)

    def is_transitive(self, costs: Any = None) -> bool:
        """Say whether one ordering of the atoms respects every strict pairwise preference.

        Parameters
        ----------
        costs : None, str or array-like of shape (K, K)
            The costs.

        Returns
        -------
        bool
            True for every population if the costs come from a scale.

        Examples
        --------
        >>> FinitePopulation([[0.25, 0.75], [0.75, 0.25]]).is_transitive()
        True
        """
        c = check_costs(costs, self.n_classes)
        return satisfies_scale_condition(c) or self.bayes_ordering(costs).is_transitive

    def sample(self, n: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw items.

        Parameters
        ----------
        n : int
            Number of items.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        atoms : ndarray of shape (n,)
            Index of each item's atom.
        y : ndarray of shape (n,)
            Labels 0..K-1.

        Examples
        --------
        >>> atoms, y = FinitePopulation([[1, 0], [0, 1]]).sample(5, rng=0)
        >>> bool((atoms == y).all())
        True
        """
        n = check_scalar(n, "n", low=1, integer=True)
        rng = check_rng(rng)
        atoms = rng.choice(self.n_atoms, size=n, p=self.marginal / self.marginal.sum())
        thresholds = np.cumsum(self.posterior, axis=1)[:, :-1]
        y = (rng.random(n)[:, None] >= thresholds[atoms]).sum(axis=1)
        return atoms, y
