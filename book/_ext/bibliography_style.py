"""A bibliography whose labels are the author and year that the text cites."""

from __future__ import annotations

from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle


def short_names(persons) -> str:
    """One author, two, or the first and others."""
    names = [
        " ".join(map(str, person.rich_prelast_names + person.rich_last_names)) for person in persons
    ]
    if len(names) > 2:
        return f"{names[0]} et al."
    return " and ".join(names)


class AuthorYearLabels(BaseLabelStyle):
    """Labels such as "Mann and Whitney, 1947"; letters tell works of one year apart."""

    def format_labels(self, sorted_entries):
        """Yield the label of each entry."""
        labels = []
        for entry in sorted_entries:
            names = short_names(entry.persons.get("author") or entry.persons["editor"])
            labels.append(f"{names}, {entry.fields['year']}")
        for place, label in enumerate(labels):
            same = [i for i, other in enumerate(labels) if other == label]
            yield label + (chr(ord("a") + same.index(place)) if len(same) > 1 else "")


class AuthorYearStyle(PlainStyle):
    """The plain style, under those labels."""

    default_label_style = AuthorYearLabels


def setup(app) -> dict:
    """Make the style known by its name."""
    register_plugin("pybtex.style.formatting", "author_year", AuthorYearStyle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
