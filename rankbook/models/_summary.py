"""Tables in the form that statistical packages print: text, HTML in notebooks, a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.special import ndtr

__all__ = ["Summary", "Table", "estimates_table"]


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


@dataclass(frozen=True)
class Table:
    """Numbers under headings, a row a name; NaN is left blank.

    Attributes
    ----------
    title : str
        Heading.
    names : tuple of str
        Rows.
    headings : tuple of str
        Columns; one that starts with "P>" holds p-values.
    values : ndarray of shape (n_rows, n_columns)
        The numbers.
    digits : tuple of int
        Digits after the point, a column.
    notes : tuple of str
        Lines below the table.
    """

    title: str
    names: tuple[str, ...]
    headings: tuple[str, ...]
    values: np.ndarray
    digits: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def _cells(self, row: np.ndarray) -> list[str]:
        cells = []
        for value, heading, digits in zip(row, self.headings, self.digits, strict=True):
            if np.isnan(value):
                cells.append("")
            elif heading.startswith("P>"):
                cells.append(_p_value(value))
            else:
                cells.append(f"{value:.{digits}f}")
        return cells

    def _top(self, total: int) -> list[str]:
        """Lines between the title and the table."""
        return []

    def _has_rule(self, i: int) -> bool:
        """Whether a line is drawn above row i."""
        return False

    def __str__(self) -> str:
        width = max([12, *(len(name) for name in self.names)])
        cells = [self._cells(row) for row in self.values]
        columns = zip(self.headings, *cells, strict=True)
        widths = [max(11, *(len(cell) + 2 for cell in column)) for column in columns]
        total = width + sum(widths)
        lines = [self.title.center(total).rstrip(), "=" * total, *self._top(total)]
        head = "".join(h.rjust(w) for h, w in zip(self.headings, widths, strict=True))
        lines += [" " * width + head, "-" * total]
        for i, (name, row) in enumerate(zip(self.names, cells, strict=True)):
            if self._has_rule(i):
                lines.append("-" * total)
            body = "".join(c.rjust(w) for c, w in zip(row, widths, strict=True))
            lines.append((name.ljust(width) + body).rstrip())
        return "\n".join([*lines, "=" * total, *self.notes])

    __repr__ = __str__

    def _caption(self) -> str:
        return escape("; ".join((self.title, *self.notes)))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(h)}</th>" for h in ("", *self.headings))
        rows = "".join(
            f"<tr><th>{escape(name)}</th>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in self._cells(row))
            + "</tr>"
            for name, row in zip(self.names, self.values, strict=True)
        )
        caption = f"<caption>{self._caption()}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def to_frame(self) -> Any:
        """Return the numbers as a pandas DataFrame, rows and columns named.

        Returns
        -------
        pandas.DataFrame
            The table's numbers, not rounded.
        """
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.names), columns=list(self.headings))


@dataclass(frozen=True)
class Summary(Table):
    """Estimates with standard errors, tests and intervals.

    Attributes
    ----------
    facts : tuple of (str, str)
        What stands above the table: name and value.
    rules : tuple of int
        Rows above which a line separates kinds of parameters.
    """

    facts: tuple[tuple[str, str], ...] = ()
    rules: tuple[int, ...] = ()

    def _top(self, total: int) -> list[str]:
        lines, half = [], total // 2
        for i in range(0, len(self.facts), 2):
            pair = [f"{name}:".ljust(20) + value.rjust(12) for name, value in self.facts[i : i + 2]]
            lines.append("".join(cell.ljust(half) for cell in pair).rstrip())
        return [*lines, "=" * total]

    def _has_rule(self, i: int) -> bool:
        return i in self.rules

    def _caption(self) -> str:
        facts = "; ".join(f"{escape(name)}: {escape(value)}" for name, value in self.facts)
        return f"{escape(self.title)}. {facts}"


def estimates_table(
    *,
    title: str,
    facts: list[tuple[str, str]],
    names: list[str],
    estimates: np.ndarray,
    standard_errors: np.ndarray,
    interval: np.ndarray,
    level: float,
    tested: np.ndarray,
    rules: list[int],
) -> Summary:
    """Table of estimates with Wald tests of those that are `tested`."""
    z = np.where(tested, estimates / standard_errors, np.nan)
    p_values = 2.0 * ndtr(-np.abs(z))
    tail = (1.0 - level) / 2.0
    return Summary(
        title=title,
        names=tuple(names),
        headings=("coef", "std err", "z", "P>|z|", f"[{tail:.4g}", f"{1 - tail:.4g}]"),
        values=np.column_stack([estimates, standard_errors, z, p_values, interval]),
        digits=(4, 3, 3, 3, 3, 3),
        facts=tuple(facts),
        rules=tuple(rules),
    )
