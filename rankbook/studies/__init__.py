"""Long experiments: one module and one file of results each.

A study is a module of this package with a function ``compute(quick, progress)`` that returns what
JSON can hold. Its results lie beside it, in a file of the same name. The chapters read them with
`load`, and ``python -m rankbook.studies NAME`` computes them anew.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from importlib import resources
from pathlib import Path
from typing import Any

from rankbook._validation import check_choice

__all__ = ["load", "names", "run"]


def names() -> list[str]:
    """Return the names of all studies.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from rankbook import studies
    >>> all(name.isidentifier() for name in studies.names())
    True
    """
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def load(name: str) -> Any:
    """Return the committed results of a study.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    dict
        What the study's ``compute`` returned when its results were committed.

    Examples
    --------
    >>> from rankbook import studies
    >>> results = studies.load("does_pairwise_pay")
    >>> results["lambdas"]
    [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    >>> len(results["simulation"]["linear, balanced"])
    30
    """
    check_choice(name, names(), "name")
    text = resources.files("rankbook.studies").joinpath(f"{name}.json").read_text("utf-8")
    return json.loads(text)


def run(name: str, *, quick: bool = False, progress: bool = True) -> Any:
    """Compute a study anew; the committed results stay as they are.

    Parameters
    ----------
    name : str
        One of `names`.
    quick : bool, default=False
        Compute a small part: the same numbers as in the committed file, only fewer of them.
    progress : bool, default=True
        Show a progress bar.

    Returns
    -------
    dict
        The results, of the form that `load` returns.

    Examples
    --------
    >>> from rankbook import studies
    >>> again = studies.run("does_pairwise_pay", quick=True)    # doctest: +SKIP
    >>> stored = studies.load("does_pairwise_pay")
    >>> again["weights"].keys() == stored["weights"].keys()     # doctest: +SKIP
    True
    """
    check_choice(name, names(), "name")
    module = importlib.import_module(f"rankbook.studies.{name}")
    return json.loads(json.dumps(module.compute(quick=quick, progress=progress)))
