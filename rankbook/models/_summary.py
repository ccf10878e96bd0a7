"""A table of estimates in the form that statistical packages print."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from scipy.special import ndtr

__all__ = ["Summary", "estimates_table"]


@dataclass(frozen=True)
class Summary:
    """Estimates with standard errors, tests and intervals, as text or, in notebooks, as HTML.

    Attributes
    ----------
    title : str
        Heading.
    facts : tuple of (str, str)
        What stands above the table: name and value.
    names : tuple of str
        Parameters, in the order of the rows.
    values : ndarray of shape (n_parameters, 6)
        Estimate, standard error, z, p-value, and the interval's two ends.
    n_coefficients : int
        Rows above the line between coefficients and thresholds.
    level : float
        Confidence level of the interval.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    values: np.ndarray
    n_coefficients: int
    level: float

    @property
    def headings(self) -> tuple[str, ...]:
        """Column headings."""
        tail = (1.0 - self.level) / 2.0
        return "coef", "std err", "z", "P>|z|", f"[{tail:.4g}", f"{1 - tail:.4g}]"

    def _cells(self, row: np.ndarray) -> tuple[str, ...]:
        formats = ("{:.4f}", "{:.3f}", "{:.3f}", "{:.3f}", "{:.3f}", "{:.3f}")
        return tuple(f.format(v) for f, v in zip(formats, row, strict=True))

    def __str__(self) -> str:
        width = max(12, *(len(name) for name in self.names))
        total = width + 6 * 11
        lines = [self.title.center(total).rstrip(), "=" * total]
        half = total // 2
        for i in range(0, len(self.facts), 2):
            pair = [f"{name}:".ljust(20) + value.rjust(12) for name, value in self.facts[i : i + 2]]
            lines.append("".join(cell.ljust(half) for cell in pair).rstrip())
        lines.append("=" * total)
        lines.append(" " * width + "".join(h.rjust(11) for h in self.headings))
        lines.append("-" * total)
        for i, (name, row) in enumerate(zip(self.names, self.values, strict=True)):
            if i == self.n_coefficients and i > 0:
                lines.append("-" * total)
            lines.append(name.ljust(width) + "".join(c.rjust(11) for c in self._cells(row)))
        lines.append("=" * total)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "; ".join(f"{escape(name)}: {escape(value)}" for name, value in self.facts)
        head = "".join(f"<th>{escape(h)}</th>" for h in ("", *self.headings))
        rows = "".join(
            f"<tr><th>{escape(name)}</th>"
            + "".join(f"<td>{cell}</td>" for cell in self._cells(row))
            + "</tr>"
            for name, row in zip(self.names, self.values, strict=True)
        )
        caption = f"<caption>{escape(self.title)}. {facts}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def estimates_table(
    *,
    title: str,
    facts: list[tuple[str, str]],
    names: list[str],
    estimates: np.ndarray,
    standard_errors: np.ndarray,
    interval: np.ndarray,
    level: float,
    n_coefficients: int,
    log_likelihood: float,
    n_obs: float,
) -> Summary:
    """Table of maximum-likelihood estimates with Wald tests and information criteria."""
    size = len(estimates)
    z = estimates / standard_errors
    p_values = 2.0 * ndtr(-np.abs(z))
    fit_facts = [
        ("Observations", f"{n_obs:g}"),
        ("Parameters", str(size)),
        ("Log-likelihood", f"{log_likelihood:.3f}"),
        ("AIC", f"{2.0 * size - 2.0 * log_likelihood:.3f}"),
        ("BIC", f"{np.log(n_obs) * size - 2.0 * log_likelihood:.3f}"),
    ]
    return Summary(
        title=title,
        facts=tuple(facts + fit_facts),
        names=tuple(names),
        values=np.column_stack([estimates, standard_errors, z, p_values, interval]),
        n_coefficients=n_coefficients,
        level=level,
    )
