"""What a fit over blocks of rows has in common with the fit in memory.

`rankbook.distributed` takes the objectives of single blocks, and the records that a fitted
estimator keeps, from here; nothing else of the models' inner modules is meant for other packages.
"""

from rankbook.models._class_moments import ClassMoments
from rankbook.models._cumulative_design import Design as LinkDesign
from rankbook.models._cumulative_design import Standardised
from rankbook.models._cumulative_fit import Fitted, without_rounding
from rankbook.models._cumulative_likelihood import Likelihood
from rankbook.models._margin_risk import MarginRisk
from rankbook.models._pair_objective import strong_convexity_gap
from rankbook.models._restricted import Restricted
from rankbook.models.cocr import check_label_costs, fitted_least_squares, is_least_squares

__all__ = [
    "ClassMoments",
    "Fitted",
    "Likelihood",
    "LinkDesign",
    "MarginRisk",
    "Restricted",
    "Standardised",
    "check_label_costs",
    "fitted_least_squares",
    "is_least_squares",
    "strong_convexity_gap",
    "without_rounding",
]
