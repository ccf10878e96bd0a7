"""The reference names the chapters that teach a thing, and the chapters name the reference."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(
    path
    for path in (ROOT / "book").rglob("*.ipynb")
    if not {".ipynb_checkpoints", "coursework"} & set(path.relative_to(ROOT).parts)
)
KNOWN = {
    "metrics.auc": "rankbook.metrics.auc",
    "metrics.dcg": "rankbook.metrics.dcg",
    "costs.dcg": "rankbook.costs.dcg",
    "models.PairwiseRanker": "rankbook.models.PairwiseRanker",
    "solvers.newton.minimize": "rankbook.solvers.newton.minimize",
}


@pytest.mark.parametrize(
    "code, names",
    [
        ("from rankbook import metrics\nmetrics.auc(y, s) + metrics.auc(y, t)", {"metrics.auc": 2}),
        ("from rankbook.metrics import auc as area\narea(y, s)", {"metrics.auc": 1}),
        ("from rankbook import models as m\nm.PairwiseRanker()", {"models.PairwiseRanker": 1}),
        ("from rankbook.solvers import newton\nnewton.minimize", {"solvers.newton.minimize": 1}),
        ("from sklearn import metrics\nmetrics.auc(y, s)", {}),
        ("from rankbook.metrics import auc", {}),
    ],
)
def test_names_in_code(code, names):
    from api_pages import names_in_code

    assert names_in_code(code, KNOWN, {}) == names


def test_imports_hold_in_later_cells():
    from api_pages import names_in_code

    bound = {}
    names_in_code("from rankbook.metrics import auc", KNOWN, bound)
    assert names_in_code("auc(y, s)", KNOWN, bound) == {"metrics.auc": 1}


def test_names_in_text():
    from api_pages import names_in_text

    text = "See `metrics.auc(y, s)`, `PairwiseRanker`, `rankbook.costs.dcg`; `dcg` may be either."
    assert names_in_text(text, KNOWN) == {
        "metrics.auc": 1,
        "models.PairwiseRanker": 1,
        "costs.dcg": 1,
    }


@pytest.fixture(scope="module")
def reference(html):
    """The entries of the reference: full name -> the element of its description."""
    found = {}
    for page in (html / "book" / "reference" / "api").glob("*.html"):
        soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
        for term in soup.select("dl.py > dt[id]"):
            found[term["id"]] = (page, term.find_next_sibling("dd"))
    return found


def test_every_entry_links_the_chapters_that_use_it(reference, html):
    from api_pages import names_in_chapter, public_names

    uses = {path: names_in_chapter(path) for path in CHAPTERS}
    assert sum(len(used) for used in uses.values()) > 50
    for short, full in public_names().items():
        page, entry = reference[full]
        lines = [
            p for p in entry.find_all("p") if re.match("Taught in:|Used in most", p.get_text())
        ]
        users = {path.stem for path, used in uses.items() if used[short]}
        if not users:
            assert not lines, f"no chapter uses {short}"
            continue
        assert len(lines) == 1, f"{short} is used in {users}, and its entry does not say so"
        links = [(page.parent / a["href"]).resolve() for a in lines[0].find_all("a")]
        assert links and all(link.is_file() for link in links)
        assert {link.stem for link in links} <= users


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_links_what_it_uses(path, html):
    from api_pages import names_in_chapter

    page = html / path.relative_to(ROOT).with_suffix(".html")
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    (box,) = soup.select("div.admonition.package")
    assert {a.get_text() for a in box.find_all("a")} == set(names_in_chapter(path))


def test_references_of_docstrings_have_plain_numbers(html):
    for page in (html / "book" / "reference" / "api").glob("*.html"):
        soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
        assert not re.findall(r"R[0-9a-f]{12}-\d", soup.get_text()), page.name
