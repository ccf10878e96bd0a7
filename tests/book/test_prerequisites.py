"""What the chapters need, read from them, and the page on teaching that is computed from it."""

import json
import re
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]


def contents(node):
    """The files of the contents, in order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("file", "root"):
                yield value
            else:
                yield from contents(value)
    elif isinstance(node, list):
        for item in node:
            yield from contents(item)


@pytest.fixture(scope="module")
def book():
    from prerequisites import read_book

    names = contents(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))
    paths = {name: ROOT / f"{name}.ipynb" for name in names}
    return read_book({name: path for name, path in paths.items() if path.is_file()})


def write(folder, name, title, needs):
    text = (
        f"(ch-{name})=\n# {title}\n\n:::{{admonition}} Objectives\n:class: objectives\n"
        f"- **do** this, too;\n- **do** that.\n\n**Prerequisites:** {needs}; "
        "**reading:** 40 minutes; **running:** 5 seconds.\n:::\n"
    )
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text}]
    (folder / f"{name}.ipynb").write_text(json.dumps({"cells": cells}))
    return folder / f"{name}.ipynb"


@pytest.fixture
def small(tmp_path):
    """a; b and c need a; d needs b and, as follows already, a; a page that is no chapter."""
    needs = {"a": "none", "b": "{ref}`ch-a`", "c": "{ref}`first <ch-a>`, {ref}`ch-notation`"}
    needs["d"] = "{ref}`ch-b` and {ref}`ch-a`"
    return {name: write(tmp_path, name, name.upper(), text) for name, text in needs.items()}


def test_a_small_book(small):
    from prerequisites import edges, plan, read_book

    book = read_book(small)
    assert {label: chapter.needs for label, chapter in book.items()} == {
        "ch-a": (),
        "ch-b": ("ch-a",),
        "ch-c": ("ch-a",),
        "ch-d": ("ch-b", "ch-a"),
    }
    assert (book["ch-b"].objective, book["ch-b"].reading) == ("**do** this, too", 40)
    assert edges(book) == [("ch-a", "ch-b"), ("ch-a", "ch-c"), ("ch-b", "ch-d")]
    assert [chapter.label for chapter in plan(book, ["ch-d"])] == ["ch-a", "ch-b", "ch-d"]
    with pytest.raises(ValueError, match="ch-x"):
        plan(book, ["ch-x"])


def test_a_chapter_that_needs_a_later_one_is_an_error(small):
    from prerequisites import read_book

    with pytest.raises(ValueError, match="come later"):
        read_book({name: small[name] for name in ("a", "d", "b", "c")})


def test_the_drawing_covers_no_circle(book):
    from prerequisites import RADIUS, drawing, edges, layout, path_of

    at = layout(book)
    circles = {label: at[label] for label in book}
    for (x, y), (u, v) in combinations(circles.values(), 2):
        assert (x - u) ** 2 + (y - v) ** 2 > (2 * RADIUS) ** 2, "two circles overlap"
    for start, end in edges(book):
        for (x, y), (u, v) in pairwise(path_of(start, end, at)):
            spots = [(x + t * (u - x), y + t * (v - y)) for t in np.linspace(0, 1, 50)]
            for label, centre in circles.items():
                clear = min(np.hypot(a - centre[0], b - centre[1]) for a, b in spots)
                assert label in (start, end) or clear > RADIUS + 3, f"{start}-{end} meets {label}"
    svg = drawing(book)
    assert svg.count("<circle") == len(book)
    assert svg.count("marker-end") == len(edges(book))


def test_reading_time_in_words():
    from prerequisites import hours

    assert [hours(minutes) for minutes in (20, 60, 85, 200)] == [
        "½ hour",
        "1 hour",
        "1½ hours",
        "3½ hours",
    ]


def test_every_course_of_the_teaching_page_respects_the_prerequisites(book, html):
    """Read from the built page: whatever wrote a course, all that it needs comes before."""
    page = html / "book" / "reference" / "teaching.html"
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    label = {Path(chapter.docname).stem: name for name, chapter in book.items()}
    courses = [dd for dd in soup.select("dl > dd") if "of reading" in dd.get_text()]
    assert len(courses) >= 5
    lists = [[a["href"] for a in course.find_all("a")] for course in courses]
    lists.append([row.find("a")["href"] for row in soup.select("table tbody tr") if row.find("a")])
    assert len(lists[-1]) == len(book)
    for links in lists:
        seen = set()
        for link in links:
            name = label[Path(link.split("#")[0]).stem]
            missing = set(book[name].needs) - seen
            assert not missing, f"{name} comes before {missing}"
            seen.add(name)


def test_the_teaching_page_draws_the_graph(html):
    page = html / "book" / "reference" / "teaching.html"
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    (svg,) = soup.select("figure svg.prerequisites")
    assert re.search(r"\d+ needs \d+", svg["aria-label"])
    assert svg.find_parent("figure").find("figcaption").get_text(strip=True)
