"""The notebooks that readers download: plain Markdown, and the code of the chapter."""

import ast
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(
    path.relative_to(ROOT / "book").as_posix()
    for path in (ROOT / "book").rglob("*.ipynb")
    if not {".ipynb_checkpoints", "coursework"} & set(path.relative_to(ROOT).parts)
)
RAW = [
    r"\{[\w:.+-]+\}`",  # a role
    r"^[> ]*(?::{3,}|`{3,}\{)",  # a directive
    r"^\([\w-]+\)=",  # a label
    r"^\s*:(?:label|class|tags|name|alt):",
    r"\bproof-content\b|<div|\bmystnb\b",
]


def load(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook["cells"]


@pytest.fixture(params=CHAPTERS, scope="module")
def both(request, notebooks):
    """The chapter as it is written, and as its readers get it."""
    return load(ROOT / "book" / request.param), load(notebooks / request.param)


def kind(cells, name):
    return [cell for cell in cells if cell["cell_type"] == name]


def text_of(cells):
    return "\n\n".join(cell["source"] for cell in kind(cells, "markdown"))


def test_the_first_cell_says_what_to_install(both):
    assert 'pip install "rankbook[book]"' in both[1][0]["source"]


def test_no_raw_markup(both):
    text = text_of(both[1])
    left = [found for raw in RAW for found in re.findall(raw, text, re.M)]
    assert not left, left[:5]


def test_no_macro_of_the_book_is_left(both):
    import yaml

    macros = yaml.safe_load((ROOT / "book" / "macros.yml").read_text(encoding="utf-8"))
    used = re.findall(r"\\(" + "|".join(macros) + r")(?![A-Za-z])", text_of(both[1]))
    assert not used, sorted(set(used))


def test_the_code_is_the_chapters(both):
    """All code cells, in their order; only what glues numbers into the pages is gone."""
    from reader_notebooks import without_glue

    def statements(source):
        return ast.dump(ast.parse(source))

    written = [without_glue(cell["source"]) for cell in kind(both[0], "code")]
    written = [statements(source) for source in written if source.strip()]
    assert [statements(cell["source"]) for cell in kind(both[1], "code")] == written
    assert "glue(" not in "\n".join(cell["source"] for cell in kind(both[1], "code"))


def test_what_the_page_hides_is_folded_under_a_title(both):
    hidden = {cell["id"]: set(cell["metadata"].get("tags", [])) for cell in kind(both[0], "code")}
    for cell in kind(both[1], "code"):
        if hidden[cell["id"]] & {"remove-cell", "remove-input", "hide-input", "hide-cell"}:
            assert cell["metadata"]["jupyter"]["source_hidden"] is True
            assert cell["source"].startswith("# @title ")


def test_theorems_exercises_and_figures_are_all_there(both):
    source, text = text_of(both[0]), text_of(both[1])
    for name in ("theorem", "lemma", "proposition", "definition", "corollary"):
        written = len(re.findall(rf"\{{prf:{name}\}}", source))
        shown = len(re.findall(rf"^> \*\*{name.capitalize()} \d+\.\d+", text, re.M))
        assert shown == written, f"{shown} of {written} are shown: {name}"
    assert text.count("*Proof.*") == text.count("∎") == source.count("{prf:proof}")
    exercises = len(re.findall(r"\{exercise(?:-start)?\}", source))
    assert len(re.findall(r"^\*\*Exercise \d+\.\d+", text, re.M)) == exercises
    figures = [c for c in kind(both[0], "code") if "figure" in c["metadata"].get("mystnb", {})]
    assert len(re.findall(r"^\*\*Fig\. \d+\.\d+\*\* ", text, re.M)) == len(figures)


def test_solutions_are_folded_whole(both):
    """Text and code open with one click; the cells below, to be run, are folded."""
    source, text = text_of(both[0]), text_of(both[1])
    written = re.findall(r"\{solution(?:-start)?\}\s*\S+", source)
    opening = r"<summary>(Solution to Exercise \d+\.\d+)[^<]*</summary>"
    folded = dict(re.findall(rf"<details>\n{opening}\n\n(.*?)</details>", text, re.S))
    assert len(folded) == len(written), f"{len(folded)} of {len(written)} solutions are folded"
    shown = 0
    for cell in kind(both[1], "code"):
        if title := re.match(r"# @title (Solution to Exercise [\d.]+): its code", cell["source"]):
            assert cell["metadata"]["jupyter"]["source_hidden"] is True
            code = cell["source"].split("\n", 1)[1]
            assert f"```python\n{code}\n```" in folded[title[1]]
            shown += 1
    assert shown == len(solution_cells(both[0])), "a solution hides its code"
    outside = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
    assert "Solution to" not in outside


def solution_cells(cells):
    """The code cells that stand in solutions and that the page shows."""
    found, inside = [], False
    for cell in cells:
        if cell["cell_type"] == "markdown":
            marks = re.findall(r"\{solution-(start|end)\}", cell["source"])
            inside = marks[-1] == "start" if marks else inside
        elif inside and "remove-cell" not in cell["metadata"].get("tags", []):
            found.append(cell)
    return found


def test_references_stand_at_the_end(both):
    cited = set(re.findall(r"\{cite:[tp]\}`([^`]+)`", text_of(both[0])))
    keys = {key.strip() for group in cited for key in group.split(",")}
    last = both[1][-1]["source"]
    assert last.startswith("## References")
    assert len(re.findall(r"^- ", last, re.M)) == len(keys)


def test_links_lead_to_notebooks_that_exist(both, notebooks, request):
    here = notebooks / request.node.callspec.params["both"]
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(both[1])):
        if not re.match(r"\w+:", target):
            assert target.endswith(".ipynb")
            assert (here.parent / target).resolve().is_file(), target


def requirements(name, extras=()):
    """The distributions that installing `name` brings, with all that they need."""
    found, waiting = set(), [(canonicalize_name(name), frozenset(extras))]
    while waiting:
        item = waiting.pop()
        if item in found:
            continue
        found.add(item)
        try:
            needs = importlib.metadata.requires(item[0]) or []
        except importlib.metadata.PackageNotFoundError:  # for another system or Python
            continue
        for line in needs:
            need = Requirement(line)
            wanted = item[1] or {""}
            if not need.marker or any(need.marker.evaluate({"extra": e}) for e in wanted):
                waiting.append((canonicalize_name(need.name), frozenset(need.extras)))
    return {distribution for distribution, _ in found}


def test_the_book_extra_brings_all_that_the_chapters_import(both):
    brought = requirements("rankbook", {"book"})
    owners = importlib.metadata.packages_distributions()
    for cell in kind(both[1], "code"):
        for node in ast.walk(ast.parse(cell["source"])):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for top in {name.split(".")[0] for name in names} - set(sys.stdlib_module_names):
                dists = {canonicalize_name(dist) for dist in owners.get(top, [])}
                assert top == "rankbook" or dists & brought, f"{top} is not in rankbook[book]"


def test_the_download_button_gives_the_readers_notebook(both, html, notebooks, request):
    from bs4 import BeautifulSoup

    name = request.node.callspec.params["both"]
    page = html / "book" / name.replace(".ipynb", ".html")
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    (button,) = soup.select("a.btn-download-source-button")
    offered = (page.parent / button["href"]).resolve()
    assert offered.read_bytes() == (notebooks / name).read_bytes()


class TestTheWriter:
    """The pieces of the converter, on text whose answer is known."""

    macros = {"E": r"\mathbb{E}", "ind": [r"\mathbf{1}\{#1\}", 1], "cost": ["c_{#1#2}", 2]}

    @pytest.mark.parametrize(
        "tex, plain",
        [
            (r"\E X", r"\mathbb{E} X"),
            (r"\Eta", r"\Eta"),
            (r"\ind{f_{\E} < \{0\}}", r"\mathbf{1}\{f_{\mathbb{E}} < \{0\}\}"),
            (r"\cost{j}{i} + \cost 1K", "c_{ji} + c_{1K}"),
            (r"x_\E", r"x_{\mathbb{E}}"),
            (r"a \\E", r"a \\E"),
            (r"\cost\alpha\beta", r"c_{\alpha\beta}"),
        ],
    )
    def test_macros(self, tex, plain):
        from tex_macros import expand

        assert expand(tex, self.macros) == plain

    def test_a_missing_argument_is_an_error(self):
        from tex_macros import expand

        with pytest.raises(ValueError, match="missing"):
            expand(r"\cost{1}", self.macros)
        with pytest.raises(ValueError, match="not closed"):
            expand(r"\ind{1", self.macros)

    @pytest.mark.parametrize(
        "code, left",
        [
            ("from myst_nb import glue\nimport numpy", "import numpy"),
            ("x = 1\nglue('a', x, display=False)\nx", "x = 1\nx"),
            ("for k in (1, 2):\n    glue(f'{k}', k)\ny = 2", "y = 2"),
            (
                "for k in (1, 2):\n    n = k\n    glue(\n        'a', k)",
                "for k in (1, 2):\n    n = k",
            ),
            ("for a in b:\n    for c in d:\n        glue('a', c)", ""),
            ("unglue(1)", "unglue(1)"),
        ],
    )
    def test_glue_is_taken_out(self, code, left):
        from reader_notebooks import without_glue

        assert without_glue(code) == left

    def test_mathematics_in_a_quotation_stays_on_one_line(self):
        from reader_markdown import quote

        assert quote("a\n\n$$\nx\n= y\n$$\n\nb") == "> a\n>\n> $$x = y$$\n>\n> b"


def test_a_readers_own_copy_is_never_overwritten(tmp_path):
    from my_notebooks import update

    book, mine = tmp_path / "book", tmp_path / "mine"
    book.mkdir()
    for name in ("a", "b"):
        (book / f"{name}.ipynb").write_text(f"{name} 1")
    assert update(book, mine) == []
    (mine / "a.ipynb").write_text("my own")
    assert update(book, mine) == [], "the book has nothing new"
    (book / "a.ipynb").write_text("a 2")
    (book / "b.ipynb").write_text("b 2")
    assert update(book, mine) == ["a.ipynb"]
    assert (mine / "a.ipynb").read_text() == "my own"
    assert (mine / "b.ipynb").read_text() == "b 2"
