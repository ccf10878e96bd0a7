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
from itertools import accumulate, combinations, pairwise
from math import hypot
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sklearn.isotonic import isotonic_regression
from sphinx.util.docutils import SphinxDirective

STEP_X, STEP_Y, RADIUS, CORNER = 62, 74, 19, 16
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


Spot = str | tuple[str, str, int]  # a chapter, or where an arrow passes a row


def rows_of(chapters: dict[str, Chapter]) -> tuple[list[list[Spot]], list[tuple[Spot, Spot]]]:
    """Rows of the drawing, each chapter below all that it needs, and the steps of the arrows.

    An arrow that passes a row has a spot of its own in it, so that it runs through no circle.
    """
    level: dict[str, int] = {}
    for label, chapter in chapters.items():
        level[label] = 1 + max((level[need] for need in chapter.needs), default=-1)
    rows: list[list[Spot]] = [[] for _ in range(max(level.values()) + 1)]
    for label in chapters:
        rows[level[label]].append(label)
    steps: list[tuple[Spot, Spot]] = []
    for start, end in edges(chapters):
        passed = [(start, end, row) for row in range(level[start] + 1, level[end])]
        for spot in passed:
            rows[spot[2]].append(spot)
        path = [start, *passed, end]
        steps += zip(path, path[1:], strict=False)
    return rows, steps


def crossings(rows: list[list[Spot]], steps: list[tuple[Spot, Spot]]) -> int:
    """How many pairs of steps cross."""
    column = {spot: i for row in rows for i, spot in enumerate(row)}
    line = {spot: i for i, row in enumerate(rows) for spot in row}
    return sum(
        line[a] == line[c] and (column[a] - column[c]) * (column[b] - column[d]) < 0
        for (a, b), (c, d) in combinations(steps, 2)
    )


def layout(chapters: dict[str, Chapter]) -> dict[Spot, tuple[float, float]]:
    """The places of all spots: rows are sorted by their neighbours, then drawn towards them."""
    rows, steps = rows_of(chapters)
    near: dict[Spot, list[Spot]] = {spot: [] for row in rows for spot in row}
    for start, end in steps:
        near[start].append(end)
        near[end].append(start)

    def wish(spot: Spot, x: dict[Spot, float]) -> float:
        return sum(x[other] for other in near[spot]) / len(near[spot]) if near[spot] else x[spot]

    best = [list(row) for row in rows]
    for sweep in range(12):
        for row in rows if sweep % 2 else rows[::-1]:
            x = {spot: i - len(line) / 2 for line in rows for i, spot in enumerate(line)}
            row.sort(key=lambda spot: wish(spot, x))
        if crossings(rows, steps) < crossings(best, steps):
            best = [list(row) for row in rows]
    # A circle takes a column, an arrow that passes half of one.
    width = {spot: STEP_X * (1.0 if isinstance(spot, str) else 0.6) for spot in near}
    offset: dict[Spot, float] = {}
    for row in best:
        sums = accumulate(((width[a] + width[b]) / 2 for a, b in pairwise(row)), initial=0.0)
        offset.update(zip(row, sums, strict=True))
    x = {spot: offset[spot] - offset[row[-1]] / 2 for row in best for spot in row}
    for sweep in range(40):
        for row in best if sweep % 2 else best[::-1]:
            free = isotonic_regression([wish(spot, x) - offset[spot] for spot in row])
            x.update({spot: at + offset[spot] for spot, at in zip(row, free, strict=True)})
    left = min(x.values())
    return {
        spot: (x[spot] - left + STEP_X, STEP_Y * i + 2 * RADIUS)
        for i, row in enumerate(best)
        for spot in row
    }


def path_of(start: str, end: str, at: dict[Spot, tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of an arrow, from rim to rim."""
    passed = sorted(
        (spot for spot in at if not isinstance(spot, str) and spot[:2] == (start, end)),
        key=lambda spot: spot[2],
    )
    points = [at[spot] for spot in (start, *passed, end)]

    def rim(centre: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
        length = hypot(towards[0] - centre[0], towards[1] - centre[1])
        part = RADIUS / length
        return (
            centre[0] + part * (towards[0] - centre[0]),
            centre[1] + part * (towards[1] - centre[1]),
        )

    return [rim(points[0], points[1]), *points[1:-1], rim(points[-1], points[-2])]


def arrow(start: str, end: str, at: dict[Spot, tuple[float, float]]) -> str:
    """An arrow between two circles; at its corners it is round."""
    points = path_of(start, end, at)
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for before, (x, y), after in zip(points, points[1:], points[2:], strict=False):
        (a, b), (c, d) = (
            (x + CORNER * (u - x) / hypot(u - x, v - y), y + CORNER * (v - y) / hypot(u - x, v - y))
            for u, v in (before, after)
        )
        text += f"L{a:.1f} {b:.1f}Q{x:.1f} {y:.1f} {c:.1f} {d:.1f}"
    text += f"L{points[-1][0]:.1f} {points[-1][1]:.1f}"
    return (
        f'<path d="{text}" fill="none" '
        'stroke="currentColor" stroke-width="1.2" marker-end="url(#tip)"/>'
    )


def drawing(chapters: dict[str, Chapter]) -> str:
    """The graph as SVG: circles with the chapters' numbers, arrows to those that need them."""
    at = layout(chapters)
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


def hours(minutes: int) -> str:
    """A length of time in words, to half an hour.

    >>> hours(85), hours(60), hours(200)
    ('1½ hours', '1 hour', '3½ hours')
    """
    halves = max(1, round(minutes / 30))
    number = f"{halves // 2 or ''}{'½' * (halves % 2)}"
    return f"{number} hour{'s' * (halves > 2)}"


class Plan(FromChapters):
    """A course that respects the prerequisites."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        course = plan(book_of(self.env.app), self.arguments[0].split())
        minutes = sum(chapter.reading for chapter in course)
        names = ", ".join(f"{{ref}}`{chapter.label}`" for chapter in course)
        return self.parse([f"{names}: {len(course)} chapters, {hours(minutes)} of reading."])


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
