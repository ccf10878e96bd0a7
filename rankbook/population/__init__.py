r"""Known distributions: risks by exact sums or by quadrature, and the best orderings.

A population risk conditions on two independent draws having different labels,

.. math:: R(f) = \mathbb{E}\bigl[c_{Y'Y}\,\{1[f(X) < f(X')] + \tfrac12 1[f(X) = f(X')]\}
          \,\big|\, Y > Y'\bigr],

equation (5) of Uematsu and Lee (2013), and two draws of one atom tie.
"""

from rankbook.population._order import BayesOrdering
from rankbook.population.finite import FinitePopulation
from rankbook.population.normal import NormalMixture

__all__ = ["BayesOrdering", "FinitePopulation", "NormalMixture"]
