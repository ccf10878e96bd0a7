"""The chapters as they are written: structure, limits and claims, read from the notebooks."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(
    path
    for path in (ROOT / "book").rglob("*.ipynb")
    if not {".ipynb_checkpoints", "coursework"} & set(path.relative_to(ROOT).parts)
)
FREE_SECTIONS = ("Overview", "Summary", "Further reading", "Exercises")
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


def name_of(path):
    return path.relative_to(ROOT / "book").as_posix().removesuffix(".ipynb")


@pytest.fixture(params=CHAPTERS, ids=name_of, scope="module")
def cells(request):
    notebook = json.loads(request.param.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook["cells"]


def code(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def markdown(cells):
    return "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")


def tags(cell):
    return set(cell["metadata"].get("tags", []))


def headings(text):
    """(level, title) of the headings that stand outside every fence."""
    found, fence = [], None
    for line in text.splitlines():
        opening = re.match(r"^(`{3,}|~{3,}|:{3,})", line)
        if fence:
            if opening and line.strip()[0] == fence[0] and len(opening[1]) >= len(fence):
                fence = None if line.strip() == opening[1] else fence
        elif opening:
            fence = opening[1]
        elif heading := re.match(r"^(#{1,6})\s+(.*\S)", line):
            found.append((len(heading[1]), heading[2]))
    return found


def sections(cells):
    """``##`` sections in order: title -> its cells (text before the first one: title "")."""
    result, title = {"": []}, ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for level, heading in headings(cell["source"]):
                if level == 2:
                    title = heading
                    assert title not in result, f"two sections are called {title!r}"
                    result[title] = []
        result[title].append(cell)
    return result


def section_text(cells, title):
    text = markdown(cells)
    found = re.search(rf"^## {re.escape(title)}\s*$(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section '## {title}'"
    return found[1]


def bullets(text):
    return re.findall(r"^\s{0,2}[-*+]\s+((?:.+\n?)(?:[ ]{2,}\S.*\n?)*)", text, re.M)


def without_code_fences(text):
    """Drop fences, and what stands inside plain or ``{math}`` ones; keep other directives' text."""
    kept, open_fences = [], []
    for line in text.splitlines():
        fence = re.match(r"^(`{3,}|:{3,}|~{3,})\s*(.*)$", line)
        if fence and open_fences and not fence[2] and fence[1] == open_fences[-1][0]:
            open_fences.pop()
        elif fence:
            is_text = fence[2].startswith("{") and not fence[2].startswith("{math}")
            open_fences.append((fence[1], is_text))
        elif all(is_text for _, is_text in open_fences):
            kept.append(line)
    return "\n".join(kept)


def prose(text):
    """Text as a reader reads it: no code, mathematics, roles, options or link targets."""
    text = without_code_fences(text)
    text = re.sub(r"\$\$.*?\$\$(\s*\([\w:-]+\))?", " MATH ", text, flags=re.S)
    text = re.sub(r"\{[\w:.+-]+\}`[^`]*`", " ROLE ", text)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", " CODE ", text)
    text = re.sub(r"(?<!\\)\$(?!\$)(?:\\.|[^$\\])+\$", " MATH ", text, flags=re.S)
    text = re.sub(r"^\s*(`{3,}|:{3,}|~{3,}).*$", " ", text, flags=re.M)
    text = re.sub(r"^\s*:[\w-]+:.*$", " ", text, flags=re.M)
    text = re.sub(r"^\([\w-]+\)=\s*$", " ", text, flags=re.M)
    text = re.sub(r"\]\([^)]*\)", "] ", text)
    return re.sub(r"https?://\S+", " ", text)


def words(text):
    return len(re.findall(r"[^\W_][\w'’.-]*", prose(text)))


def exercises(cells):
    """(label, text) of every exercise, fenced or gated."""
    text = markdown(cells)
    fenced = re.findall(
        r"^(`{3,}|:{3,})\{exercise(?:-start)?\}[^\n]*\n\s*:label:\s*(\S+)(.*?)^\1\s*$",
        text,
        re.M | re.S,
    )
    gated = dict(
        re.findall(r"\{exercise-start\}[^\n]*\n\s*:label:\s*(\S+)(.*?)\{exercise-end\}", text, re.S)
    )
    return [(label, gated.get(label, body)) for _, label, body in fenced]


def test_there_are_chapters():
    assert CHAPTERS, "no chapter found under book/"


def test_labels_are_unique():
    labels = [
        label
        for path in CHAPTERS
        for label in re.findall(r"\((ch-[\w-]+)\)=", path.read_text(encoding="utf-8"))
    ]
    assert len(labels) == len(set(labels))


def test_no_outputs_are_stored(cells):
    for cell in code(cells):
        assert not cell.get("outputs"), f"outputs are stored in: {cell['source'][:60]!r}"
        assert cell.get("execution_count") is None


def test_label_then_title(cells):
    first = cells[0]["source"].lstrip()
    assert re.match(r"\(ch-[a-z0-9-]+\)=\s*\n+# \S", first), f"starts with {first[:60]!r}"
    assert [level for level, _ in headings(markdown(cells))].count(1) == 1


def test_objectives(cells):
    text = "\n".join(cell["source"] for cell in sections(cells)[""])
    text += "\n" + markdown(cells).split("\n## ")[0]
    box = re.search(r"^(:{3,}|`{3,})\{admonition\} Objectives\n(.*?)^\1\s*$", text, re.M | re.S)
    assert box, "no box ':::{admonition} Objectives' before the first section"
    assert re.search(r"^:class: objectives\s*$", box[2], re.M), "the box lacks ':class: objectives'"
    assert 3 <= len(bullets(box[2])) <= 6, f"{len(bullets(box[2]))} objectives, not 3 to 6"
    line = r"\*\*Prerequisites:\*\*.*\*\*reading:\*\* \d+ minutes?; \*\*running:\*\* \d+ seconds?"
    assert re.search(line, box[2].replace("\n", " ")), "the box lacks its prerequisites line"


def test_sections_in_order(cells):
    titles = [title for level, title in headings(markdown(cells)) if level == 2]
    assert titles[0] == "Overview"
    assert titles[-3:] == ["Summary", "Further reading", "Exercises"]
    assert len(titles) >= 6, "fewer than two sections of substance"


def test_overview_length(cells):
    count = words(section_text(cells, "Overview"))
    assert 150 <= count <= 300, f"the overview has {count} words, not 150 to 300"


def test_imports_come_first(cells):
    first = code(cells)[0]
    assert "import " in first["source"]
    assert "use_style()" in first["source"], "the import cell ends with use_style()"


def test_summary_links_its_claims(cells):
    items = bullets(section_text(cells, "Summary"))
    assert 4 <= len(items) <= 7, f"{len(items)} claims in the summary, not 4 to 7"
    for item in items:
        assert re.search(r"\{(prf:ref|numref|eq|ref)\}`|\]\(#", item), f"nothing linked: {item!r}"


def test_exercises(cells):
    found = exercises(cells)
    assert 5 <= len(found) <= 8, f"{len(found)} exercises, not 5 to 8"
    labels = [label for label, _ in found]
    assert len(set(labels)) == len(labels)
    levels = []
    for label, text in found:
        tag = re.search(r"\*\*\(([EMH]), (?:proof|code|data|critique)\b[^)]*\)\*\*", text)
        assert tag, f"{label} lacks its tag, such as **(E, code)**"
        levels.append(tag[1])
    assert levels.count("E") >= 2, "fewer than two exercises of level E"
    text = markdown(cells)
    solved = set(re.findall(r"\{solution(?:-start)?\}\s*(\S+)", text))
    assert solved <= set(labels), f"solutions of nothing: {sorted(solved - set(labels))}"
    assert len(solved) >= 0.6 * len(labels), f"{len(solved)} of {len(labels)} have a solution"
    for block in re.findall(r"\{solution(?:-start)?\}[^\n]*\n([^\n]*)\n", text):
        assert re.match(r":class: .*dropdown|:label:", block), f"solution not a dropdown: {block}"


def test_solution_gates_are_empty(cells):
    """The page drops what stands inside ``{solution-start}``: the text comes after its fence."""
    gate = r"^(`{3,}|:{3,})\{solution-start\}\s*(\S+)\n((?::[\w-]+:[^\n]*\n)*)(.*?)^\1\s*$"
    for _, label, _, text in re.findall(gate, markdown(cells), re.M | re.S):
        assert not text.strip(), f"lost from the page: {label}: {text.strip()[:60]!r}"


def test_length(cells):
    count = words(markdown(cells))
    assert 2000 <= count <= 4500, f"{count} words, not 2000 to 4500"


def test_number_and_size_of_cells(cells):
    count = len(code(cells))
    assert 15 <= count <= 40, f"{count} code cells, not 15 to 40"
    for cell in code(cells):
        lines = len(cell["source"].rstrip().splitlines())
        assert 0 < lines <= 25, f"a cell of {lines} lines: {cell['source'][:60]!r}"


def test_visible_lines_fit_the_page(cells):
    for cell in code(cells):
        if not tags(cell) & {"remove-cell", "remove-input"}:
            longest = max(cell["source"].splitlines(), key=len)
            assert len(longest) <= 79, f"{len(longest)} characters: {longest.strip()!r}"


def is_plot(cell):
    return bool(re.search(r"\bplt\.(subplots|figure|show)\(", cell["source"]))


def test_long_plot_cells_are_collapsed(cells):
    for cell in code(cells):
        if is_plot(cell) and len(cell["source"].rstrip().splitlines()) > 8:
            assert tags(cell) & HIDDEN, f"collapse this plot: {cell['source'][:60]!r}"


def test_figures_have_caption_name_and_alt(cells):
    names = []
    for cell in code(cells):
        if not is_plot(cell) or tags(cell) & {"remove-cell", "remove-output"}:
            continue
        meta = cell["metadata"].get("mystnb", {})
        figure, image = meta.get("figure", {}), meta.get("image", {})
        where = cell["source"][:60]
        assert len(figure.get("caption", "").split()) >= 5, f"no caption: {where!r}"
        assert figure.get("name", "").startswith("fig-"), f"name it fig-...: {where!r}"
        assert len(image.get("alt", "").split()) >= 6, f"no alt text that says enough: {where!r}"
        assert ".set_title(" not in cell["source"] or "subplots(" in cell["source"]
        names.append(figure["name"])
    assert len(set(names)) == len(names)
    text = markdown(cells)
    for name in names:
        assert re.search(rf"\{{numref\}}`[^`]*{name}\b", text), f"{name} is never cited"


def test_every_section_asserts_its_claims(cells):
    for title, content in sections(cells).items():
        if title in ("", *FREE_SECTIONS):
            continue
        checks = [cell for cell in code(content) if "remove-cell" in tags(cell)]
        assert any(
            re.search(r"^\s*assert\b|\bassert_\w+\(|\.testing\.", cell["source"], re.M)
            for cell in checks
        ), f"section {title!r} has no hidden cell (remove-cell) with an assertion"


def test_numbers_in_prose_are_glued(cells):
    text = re.sub(r"\bPython \d\.\d+", "", prose(markdown(cells)))
    typed = re.findall(r"(?<![\w.])\d[\d,]*\.\d{2,}(?![\w.]*\w)", text)
    assert not typed, f"computed numbers are glued, not typed: {typed}"


def test_no_local_paths_and_nothing_left_to_do(cells):
    text = "\n".join(cell["source"] for cell in cells)
    assert not re.search(r"(?<!\w)/(tmp|root|home)/|\bTODO\b|\bFIXME\b|\bTBD\b", text)


class TestTheReaders:
    """The helpers above, on text whose answer is known."""

    def test_headings_inside_fences_are_not_headings(self):
        text = "# A\n```{note}\n## no\n```\n````{x}\n```\n## no\n```\n````\n## yes"
        assert headings(text) == [(1, "A"), (2, "yes")]

    def test_prose_drops_what_is_not_prose(self):
        text = "It is $0.123$, `0.456`, {glue:text}`a:.3f`\n$$\n0.789\n$$ (eq-a)\nbut 0.25."
        assert re.findall(r"\d\.\d+", prose(text)) == ["0.25"]

    def test_bullets_span_lines(self):
        assert len(bullets("- one\n  more\n- two\n\ntext\n* three\n")) == 3

    def test_words(self):
        assert words("One two, $x + y$ three {ref}`ch-auc`.\n\n```python\ncode code\n```\n") == 5

    def test_exercises_are_found(self):
        cell = {"cell_type": "markdown", "metadata": {}, "source": ""}
        cell["source"] = "```{exercise}\n:label: ex-a-1\n**(E, code)** text\n```\n"
        assert [label for label, _ in exercises([cell])] == ["ex-a-1"]
