"""Errors and warnings that say more than a bare `ValueError` or `UserWarning` could."""

__all__ = [
    "CertificateError",
    "CollinearityWarning",
    "CostConditionError",
    "CrossingWarning",
    "DatasetUnavailable",
    "KernelMemoryError",
    "LabelCostWarning",
    "NotBlockwiseError",
    "SeparationWarning",
    "SolverError",
    "SplitQueryError",
    "ThresholdOrderWarning",
    "UncertifiedOrderWarning",
]


class CostConditionError(ValueError):
    """Costs that do not come from a scale were given where a closed form needs one.

    The condition is ``c[0, K-1] c[j, i] = c[0, i] c[j, K-1] - c[0, j] c[i, K-1]`` for all
    ``j < i`` (Uematsu and Lee, 2013, Theorem 3).
    """


class DatasetUnavailable(RuntimeError):
    """A data set is neither on this machine nor downloadable; the message says what to fetch."""


class SeparationWarning(UserWarning):
    """No finite coefficients attain the minimum, because a direction orders the classes perfectly.

    The fit is finite and its objective is within the tolerance of the infimum; standard errors
    are NaN.
    """


class CollinearityWarning(UserWarning):
    """Some columns are linear combinations of others; the coefficients of least norm are given."""


class CrossingWarning(UserWarning):
    """Thresholds with coefficients of their own cross at some items.

    A fit keeps them in order at its own items; a prediction elsewhere sorts them.
    """


class KernelMemoryError(MemoryError):
    """A kernel matrix would not fit in the memory allowed; the message does the arithmetic."""


class LabelCostWarning(UserWarning):
    """Costs of single labels are not V-shaped, so that a reduction's guarantee does not hold."""


class ThresholdOrderWarning(UserWarning):
    """Fitted thresholds are not in increasing order, so that some labels are never predicted."""


class CertificateError(RuntimeError):
    """A solver's answer failed the check that does not trust the solver."""


class SolverError(RuntimeError):
    """A convex solver stopped without an answer; the message gives its status."""


class UncertifiedOrderWarning(UserWarning):
    """An order of many nodes with large exact weights is best to a solver's tolerance, unproved."""


class NotBlockwiseError(ValueError):
    """A fit or a measure over blocks of rows was asked for what is no sum over blocks."""


class SplitQueryError(ValueError):
    """A query has items in two blocks of rows; the message gives the call that mends it."""
