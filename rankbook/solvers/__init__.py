"""The numerical engines under the estimators.

`newton` minimises smooth convex functions; `pair_sums` sums a loss over all pairs without
forming them.
"""

from rankbook.solvers import newton
from rankbook.solvers.newton import NewtonResult, minimize

__all__ = ["NewtonResult", "minimize", "newton"]
