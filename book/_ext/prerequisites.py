"""What needs what: read from the boxes at the start of the chapters, drawn, and kept by the plans.

* ``{rankbook-prerequisites}`` draws the graph of the chapters.
* ``{rankbook-chapters}`` tabulates them: what each needs, what it teaches, how long it takes.
* ``{rankbook-plan} label ...`` is the shortest course that ends with the named chapters: they and
  all that they need, in the order of the book.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

STEP_X, STEP_Y, RADIUS = 62, 74, 19
PARTS = ("#9ccbe8", "#f2c879", "#a8dcc4", "#e7b6d2", "#d6d6d6")  # fills, one a part of the book


@dataclass(frozen=True)
class Chapter:
    """A chapter as the box at its start describes it."""

    docname: str
    label: str
    title: str
    needs: tuple[str, ...]
    objective: str
    reading: int
    running: int


def read_chapter(path: Path, docname: str) -> Chapter:
    """Read a chapter's label, title and box of objectives."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    head = re.search(r"^\((ch-[\w-]+)\)=\s*\n+# (.+)$", text, re.M)
    if head is None:
        raise ValueError(f"{path} does not start with a label and a title")
    box = re.search(r"\{admonition\} Objectives\n(.*?)^(?::{3,}|`{3,})\s*$", text, re.M | re.S)
    words = " ".join((box[1] if box else "").split())
    needs = re.search(
        r"\*\*Prerequisites:\*\*(.*?)\*\*reading:\*\* (\d+).*?\*\*running:\*\* (\d+)", words
    )
    objective = re.search(r"- (.*?)[;.](?= - | \*\*Prerequisites|$)", words)
    if needs is None or objective is None:
        raise ValueError(f"{path}: its box lacks objectives or the line with prerequisites")
    labels = dict.fromkeys(re.findall(r"\{ref\}`(?:[^`<]*<)?(ch-[\w-]+)>?`", needs[1]))
    return Chapter(
        docname, head[1], head[2].strip(), tuple(labels), objective[1], int(needs[2]), int(needs[3])
    )


def read_book(paths: dict[str, Path]) -> dict[str, Chapter]:
    """All chapters by their label; `paths` maps their names to files, in the order of the book.

    Raises
    ------
    ValueError
        If a chapter needs one that comes later.
    """
    chapters: dict[str, Chapter] = {}
    found = [read_chapter(path, docname) for docname, path in paths.items()]
    labels = {chapter.label for chapter in found}
    for chapter in found:
        # Pages such as that of the notation are no chapters.
        needs = tuple(label for label in chapter.needs if label in labels)
        if late := [label for label in needs if label not in chapters]:
            raise ValueError(f"{chapter.docname} needs {late}, which come later in the book")
        chapters[chapter.label] = Chapter(**{**chapter.__dict__, "needs": needs})
    return chapters


def all_needs(chapters: dict[str, Chapter], label: str) -> set[str]:
    """All chapters that one needs, directly or not."""
    direct = chapters[label].needs
    return set(direct).union(*(all_needs(chapters, need) for need in direct))


def plan(chapters: dict[str, Chapter], goals: list[str]) -> list[Chapter]:
    """The goals and all that they need, in the order of the book."""
    unknown = [goal for goal in goals if goal not in chapters]
    if unknown:
        raise ValueError(f"no chapter has the label {unknown}")
    wanted = set(goals).union(*(all_needs(chapters, goal) for goal in goals))
    return [chapter for label, chapter in chapters.items() if label in wanted]


def edges(chapters: dict[str, Chapter]) -> list[tuple[str, str]]:
    """(needed, needing), without those that follow from others."""
    return [
        (need, label)
        for label, chapter in chapters.items()
        for need in chapter.needs
        if not any(need in all_needs(chapters, other) for other in chapter.needs if other != need)
    ]


def places(chapters: dict[str, Chapter]) -> dict[str, tuple[float, float]]:
    """Where the drawing puts each chapter: below all that it needs, near to it."""
    level: dict[str, int] = {}
    for label, chapter in chapters.items():
        level[label] = 1 + max((level[need] for need in chapter.needs), default=-1)
    rows = [[c for c in chapters if level[c] == row] for row in range(max(level.values()) + 1)]
    widest = max(map(len, rows))
    at: dict[str, tuple[float, float]] = {}
    for row, labels in enumerate(rows):
        above = {
            label: sum(at[n][0] for n in chapters[label].needs) / len(chapters[label].needs)
            if chapters[label].needs
            else 0.0
            for label in labels
        }
        labels.sort(key=lambda label: above[label])
        shift = (widest - len(labels)) / 2 + (0.25 if row % 2 else -0.25)
        for column, label in enumerate(labels):
            at[label] = (STEP_X * (column + shift + 1), STEP_Y * row + 2 * RADIUS)
    return at


def arrow(start: str, end: str, at: dict[str, tuple[float, float]]) -> str:
    """An arrow between two circles, bent as little as it takes to pass the others."""
    (x1, y1), (x2, y2) = at[start], at[end]
    others = [place for label, place in at.items() if label not in (start, end)]

    def room(bend: float) -> float:
        """The least distance of the curve's points to the centre of another circle."""
        middle = (x1 + x2) / 2 + bend, (y1 + y2) / 2
        return min(
            (
                ((1 - t) ** 2 * x1 + 2 * t * (1 - t) * middle[0] + t**2 * x2 - x) ** 2
                + ((1 - t) ** 2 * y1 + 2 * t * (1 - t) * middle[1] + t**2 * y2 - y) ** 2
            )
            ** 0.5
            for x, y in others
            for t in (i / 20 for i in range(21))
        )

    bends = sorted((STEP_X * k / 4 for k in range(-8, 9)), key=abs)
    bend = next((b for b in bends if not others or room(b) > RADIUS + 4), 0.0)
    middle_x, middle_y = (x1 + x2) / 2 + bend, (y1 + y2) / 2

    def rim(x: float, y: float) -> tuple[float, float]:
        """Where the curve leaves the circle around (x, y)."""
        length = ((middle_x - x) ** 2 + (middle_y - y) ** 2) ** 0.5
        return x + RADIUS * (middle_x - x) / length, y + RADIUS * (middle_y - y) / length

    (x1, y1), (x2, y2) = rim(x1, y1), rim(x2, y2)
    return (
        f'<path d="M{x1:.1f} {y1:.1f}Q{middle_x:.1f} {middle_y:.1f} {x2:.1f} {y2:.1f}" fill="none" '
        'stroke="currentColor" stroke-width="1.2" marker-end="url(#tip)"/>'
    )


def drawing(chapters: dict[str, Chapter]) -> str:
    """The graph as SVG: circles with the chapters' numbers, arrows to those that need them."""
    at = places(chapters)
    width = max(x for x, _ in at.values()) + STEP_X
    height = max(y for _, y in at.values()) + 2 * RADIUS
    folders = list(dict.fromkeys(Path(c.docname).parent.name for c in chapters.values()))
    parts = [
        f'<svg class="prerequisites" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{escape(description(chapters))}" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width: {1.4 * width:g}px">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>',
    ]
    parts += [arrow(start, end, at) for start, end in edges(chapters)]
    for number, chapter in enumerate(chapters.values(), 1):
        x, y = at[chapter.label]
        fill = PARTS[folders.index(Path(chapter.docname).parent.name) % len(PARTS)]
        parts.append(
            f"<g><title>{number}. {escape(chapter.title)}</title>"
            f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="{fill}" stroke="currentColor"/>'
            f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle" font-size="15" fill="#000">'
            f"{number}</text></g>"
        )
    return "".join([*parts, "</svg>"])


def description(chapters: dict[str, Chapter]) -> str:
    """The graph in words."""
    number = {label: i for i, label in enumerate(chapters, 1)}
    lines = [
        f"{number[c.label]} needs {' and '.join(str(number[n]) for n in c.needs)}"
        for c in chapters.values()
        if c.needs
    ]
    return f"Graph of {len(chapters)} chapters, by number: {'; '.join(lines)}."


def book_of(app) -> dict[str, Chapter]:
    """The chapters of the book that is being built."""
    env = app.env
    names = [name for name in app.config.external_site_map if name in env.found_docs]
    paths = {name: Path(env.doc2path(name)) for name in names}
    return read_book({name: path for name, path in paths.items() if path.suffix == ".ipynb"})


class FromChapters(SphinxDirective):
    """A directive whose text is computed from the chapters."""

    def parse(self, lines: list[str]) -> list[nodes.Node]:
        """Parse MyST that was written by a program."""
        box = nodes.section()
        box.document = self.state.document
        self.state.nested_parse(StringList(lines, self.name), 0, box, match_titles=True)
        return box.children


class Prerequisites(FromChapters):
    """The drawing, with its caption."""

    def run(self) -> list[nodes.Node]:
        svg = drawing(book_of(self.env.app))
        caption = (
            "What needs what, by the numbers of the chapters: an arrow leads from a chapter to one "
            "that needs it. What follows from other arrows is not drawn. The colours are the parts."
        )
        html = (
            f'<figure class="align-default">{svg}<figcaption><p>{caption}</p></figcaption></figure>'
        )
        return [nodes.raw("", html, format="html")]


class Chapters(FromChapters):
    """The table of all chapters."""

    def run(self) -> list[nodes.Node]:
        chapters = book_of(self.env.app)
        number = {label: i for i, label in enumerate(chapters, 1)}
        lines = [
            "| | chapter | needs | the class should leave able to | minutes |",
            "|---|---|---|---|---|",
        ]
        for label, chapter in chapters.items():
            needs = ", ".join(map(str, sorted(number[need] for need in chapter.needs))) or "-"
            lines.append(
                f"| {number[label]} | {{ref}}`{label}` | {needs} | {chapter.objective} "
                f"| {chapter.reading} |"
            )
        return self.parse(lines)


class Plan(FromChapters):
    """A course that respects the prerequisites."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        course = plan(book_of(self.env.app), self.arguments[0].split())
        minutes = sum(chapter.reading for chapter in course)
        names = ", ".join(f"{{ref}}`{chapter.label}`" for chapter in course)
        return self.parse(
            [f"{names}: {len(course)} chapters, {minutes / 60:.0f} hours of reading."]
        )


def outdated(app, env, added, changed, removed) -> list[str]:
    """Read the page on teaching again when a chapter changes."""
    moved = (Path(env.doc2path(name)) for name in added | changed | removed)
    page = "book/reference/teaching"
    return [page] if page in env.found_docs and any(p.suffix == ".ipynb" for p in moved) else []


def setup(app) -> dict:
    """Register the directives."""
    app.add_directive("rankbook-prerequisites", Prerequisites)
    app.add_directive("rankbook-chapters", Chapters)
    app.add_directive("rankbook-plan", Plan)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
