"""Cumulative link models from a formula, through the optional package formulaic."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from rankbook.models.cumulative_link import CumulativeLink

__all__ = ["design_matrix", "fit_formula"]


def _formulaic() -> Any:
    try:
        import formulaic  # type: ignore[import-untyped]
        import formulaic.errors  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "formulas need the package formulaic: pip install 'rankbook[formula]' or "
            "pip install formulaic"
        ) from None
    return formulaic


def _terms(text: Any, name: str) -> list[str]:
    """Terms of a one-sided formula, or a list of terms."""
    if text is None:
        return []
    if isinstance(text, str):
        text = text.strip().removeprefix("~").split("+")
    if not isinstance(text, list | tuple) or not all(isinstance(term, str) for term in text):
        raise TypeError(f"{name} must be a string or a list of strings, got {text!r}")
    terms = [term.strip() for term in text]
    if not all(terms):
        raise ValueError(f"{name} must name terms, as in '~ a + C(b)', got {text!r}")
    return terms


def _check_frame(data: Any) -> None:
    """Raise unless data are columns with names; pandas need not be imported for it."""
    if not hasattr(data, "columns") or not hasattr(data, "iloc"):
        raise TypeError(f"data must be a pandas.DataFrame, got {type(data).__name__}")


def _sides(formula: Any, data: Any) -> tuple[str, str]:
    """The label's column and the terms of a formula."""
    if not isinstance(formula, str):
        raise TypeError(f"formula must be a string, got {formula!r}")
    _check_frame(data)
    label, tilde, right = formula.partition("~")
    label = label.strip().strip("`")
    if not tilde or label not in data:
        raise ValueError(f"formula must be 'label ~ terms' with a column as label, got {formula!r}")
    if re.search(r"\boffset\(", right):
        raise ValueError(f"formula must not hold offset(...), got {formula!r}: use offset='column'")
    return label, right.strip()


def _column(data: Any, value: Any, name: str) -> Any:
    """A column, where one is named, else the values given."""
    if not isinstance(value, str):
        return value
    if value not in data:
        raise ValueError(f"{name} must be an array or a column of data, got {value!r}")
    return data[value]


def _read(make: Callable[[], Any], what: str) -> Any:
    """What formulaic makes, whose errors of many kinds become one that says where they are from."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - it evaluates what users write
        raise ValueError(f"formulaic cannot read {what}: {error}") from error


def fit_formula(
    formula: str,
    data: Any,
    *,
    nominal: Any = None,
    scale: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    cluster: Any = None,
    **parameters: Any,
) -> CumulativeLink:
    """Fit a cumulative link model to a data frame, by a formula.

    Parameters
    ----------
    formula : str
        ``"label ~ terms"``, the label a column of `data`, the terms as formulaic reads them:
        ``x``, ``C(group)``, ``a:b``, ``log(x)``, ``bs(x, df=4)``, and ``.`` for all other columns.
        There is no intercept, as the thresholds are intercepts.
    data : pandas.DataFrame
        Columns that the formula names.
    nominal, scale : str or list of str, optional
        Terms, as in ``"~ x + C(group)"``, with a coefficient at each threshold, and terms that
        also act on the spread; those that `formula` lacks are added to it.
    sample_weight, offset, cluster : str or array-like, optional
        As in `CumulativeLink.fit`; a string is a column of `data`.
    **parameters
        Other parameters of `CumulativeLink`.

    Returns
    -------
    CumulativeLink
        The fitted model, with `terms_` (columns of each term, which `drop1` drops together) and
        `model_spec_`, by which `design_matrix` makes the columns of new data.

    Raises
    ------
    ImportError
        If formulaic is not installed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rankbook.models import fit_formula
    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame({"x": rng.normal(size=200), "g": rng.choice(["a", "b"], 200)})
    >>> latent = data["x"] + (data["g"] == "b") + rng.logistic(size=200)
    >>> data["y"] = np.digitize(latent, [-1.0, 1.0])
    >>> fit_formula("y ~ x + C(g)", data).param_names_
    ['x', 'C(g)[T.b]', '0|1', '1|2']
    """
    formulaic = _formulaic()
    label, right = _sides(formula, data)
    chosen = {"nominal": _terms(nominal, "nominal"), "scale": _terms(scale, "scale")}
    more = "".join(f" + {term}" for terms in chosen.values() for term in terms)
    text = f"1 + {right or '1'}{more}"
    matrix = _read(
        # Without the label, which "." is not to name.
        lambda: formulaic.model_matrix(text, data.drop(columns=label), na_action="raise"),
        f"formula {formula!r} with these data, nominal and scale",
    )
    spec = matrix.model_spec
    names = list(matrix.columns)
    if "Intercept" not in names:
        raise ValueError(
            "formula must not take the intercept away, as the thresholds are intercepts, "
            f"got {formula!r}"
        )
    terms = {
        str(term): [names[i] for i in places]
        for term, places in spec.term_indices.items()
        if str(term) != "1"
    }
    roles = {
        kind: [column for term in wanted for column in terms[_known(formulaic, term, terms)]]
        for kind, wanted in chosen.items()
    }
    extras = {"sample_weight": sample_weight, "offset": offset, "cluster": cluster}
    extras = {name: _column(data, value, name) for name, value in extras.items()}
    columns = matrix.drop(columns="Intercept")
    model = CumulativeLink(
        nominal=roles["nominal"] or None, scale=roles["scale"] or None, **parameters
    )
    model.fit(columns if columns.shape[1] else None, data[label], **extras)
    model.terms_, model.model_spec_, model.formula_ = terms, spec, formula
    return model


def _known(formulaic: Any, term: str, terms: dict[str, list[str]]) -> str:
    """The name that formulaic gives to a term."""
    found = [
        str(t)
        for t in _read(lambda: formulaic.Formula(f"{term} - 1"), f"nominal or scale {term!r}")
    ]
    if len(found) != 1 or found[0] not in terms:
        raise ValueError(f"nominal and scale must hold single terms, got {term!r}")
    return found[0]


def design_matrix(model: CumulativeLink, data: Any) -> Any:
    """Return the columns of new data for a model that `fit_formula` has fitted.

    Parameters
    ----------
    model : CumulativeLink
        A model from `fit_formula`.
    data : pandas.DataFrame
        New items, with the columns that the formula names.

    Returns
    -------
    pandas.DataFrame or None
        What `predict`, `predict_proba` and so on take; None for a formula without terms.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankbook.models import design_matrix, fit_formula
    >>> data = pd.DataFrame({"y": [1, 2, 1, 2, 3, 3], "x": [0.0, 1.0, 2.0, 3.0, 2.5, 4.0]})
    >>> model = fit_formula("y ~ x", data)
    >>> design_matrix(model, data.head(2))["x"].tolist()
    [0.0, 1.0]
    """
    spec = getattr(model, "model_spec_", None)
    if spec is None:
        raise ValueError("design_matrix needs a model from fit_formula")
    _check_frame(data)

    def make() -> Any:
        with warnings.catch_warnings():
            # A category that the fit has not seen would pass for the first one.
            warnings.filterwarnings("ignore", "Constructing a Categorical")
            warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
            return spec.get_model_matrix(data, na_action="raise").drop(columns="Intercept")

    formulaic = _formulaic()
    columns = _read(make, "these data with the model's formula")
    return columns if columns.shape[1] else None
