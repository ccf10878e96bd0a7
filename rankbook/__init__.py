"""Rankbook: ranking with ordered labels, from two classes to many.

The package behind the textbook of the same name: exact metrics of pairs and lists, optimal
rankings of known distributions, convex surrogates with certificates, and estimators in the style
of scikit-learn.

Submodules are imported when they are first used, so that ``import rankbook`` stays light.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "bounds",
    "costs",
    "datasets",
    "distributed",
    "exceptions",
    "exercises",
    "graphs",
    "losses",
    "metrics",
    "models",
    "optimal",
    "plots",
    "population",
    "solvers",
    "surrogates",
]


def __getattr__(name: str):
    if name in __all__:
        return importlib.import_module(f"rankbook.{name}")
    raise AttributeError(f"module 'rankbook' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
