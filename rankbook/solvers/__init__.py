"""The numerical engines under the estimators.

`newton` minimises smooth convex functions; `pair_sums` sums a loss over all pairs without
forming them; `separation` tells whether an infimum is attained.
"""

from rankbook.solvers import newton, pair_sums, separation
from rankbook.solvers.newton import NewtonResult, minimize
from rankbook.solvers.pair_sums import PairSums

__all__ = ["NewtonResult", "PairSums", "minimize", "newton", "pair_sums", "separation"]
