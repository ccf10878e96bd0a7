"""The build itself: the cache's key, the macros, and what the reference lists."""

import importlib.util
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def load_extension():
    path = ROOT / "book" / "_ext" / "rankbook_book.py"
    spec = importlib.util.spec_from_file_location("rankbook_book", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small_book(tmp_path):
    """A book of one chapter on a package of one function, with the real configuration."""
    for name in ("_config.yml", "book/_ext", "book/_static", "book/macros.yml"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    (tmp_path / "book" / "references.bib").write_text("")
    (tmp_path / "requirements.txt").write_text("numpy\n")
    package = tmp_path / "rankbook"
    package.mkdir()
    (package / "__init__.py").write_text("def answer():\n    return 42\n")
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n  - file: book/one\n"
    )
    (tmp_path / "book" / "index.md").write_text("# A book\n\nOf one chapter, {ref}`ch-one`.\n")
    cells = [
        ("markdown", "(ch-one)=\n# One"),
        ("code", f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport rankbook"),
        ("code", "rankbook.answer()"),
        ("code", "assert rankbook.answer() == 42"),
    ]
    notebook = {
        "cells": [
            {"cell_type": kind, "id": f"c{i}", "metadata": {}, "source": source}
            | ({"outputs": [], "execution_count": None} if kind == "code" else {})
            for i, (kind, source) in enumerate(cells)
        ],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "book" / "one.ipynb").write_text(json.dumps(notebook))
    return tmp_path


def build(folder):
    program = "from jupyter_book.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "build", ".", "--keep-going", "-W", "-n"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_broken_package_never_builds_from_an_old_cache(small_book):
    first = build(small_book)
    assert first.returncode == 0, first.stdout[-2000:] + first.stderr[-2000:]
    page = small_book / "_build" / "html" / "book" / "one.html"
    assert "42" in page.read_text()

    unchanged = build(small_book)
    assert unchanged.returncode == 0
    assert "Executing notebook" not in unchanged.stdout + unchanged.stderr

    (small_book / "rankbook" / "__init__.py").write_text("def answer():\n    return 41\n")
    broken = build(small_book)
    assert broken.returncode != 0, "the build passed with a broken package"

    (small_book / "rankbook" / "__init__.py").write_text("def answer():\n    return 42.0\n")
    mended = build(small_book)
    assert mended.returncode == 0, mended.stderr[-2000:]
    assert "42.0" in page.read_text(), "the page still shows the old output"


def test_the_key_sees_package_and_requirements(tmp_path):
    key = load_extension().source_key
    (tmp_path / "rankbook" / "models").mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("numpy==1\n")
    (tmp_path / "rankbook" / "models" / "a.py").write_text("x = 1\n")
    keys = [key(tmp_path)]
    (tmp_path / "rankbook" / "models" / "a.py").write_text("x = 2\n")
    keys.append(key(tmp_path))
    (tmp_path / "rankbook" / "models" / "a.py").rename(tmp_path / "rankbook" / "models" / "b.py")
    keys.append(key(tmp_path))
    (tmp_path / "requirements.txt").write_text("numpy==2\n")
    keys.append(key(tmp_path))
    assert len(set(keys)) == 4
    (tmp_path / "README.md").write_text("no code\n")
    assert key(tmp_path) == keys[-1]


def test_the_notation_page_explains_every_macro():
    macros = yaml.safe_load((ROOT / "book" / "macros.yml").read_text())
    page = (ROOT / "book" / "reference" / "notation.md").read_text()
    for name in macros:
        assert re.search(rf"`\\{name}\b", page), f"the notation page does not explain \\{name}"


def public_modules():
    import rankbook

    return [
        module.name
        for module in pkgutil.iter_modules(rankbook.__path__)
        if not module.name.startswith("_")
    ]


@pytest.mark.parametrize("module", public_modules())
def test_every_public_module_has_a_page(module):
    page = ROOT / "book" / "reference" / "api" / f"{module}.md"
    assert page.is_file(), f"write {page.relative_to(ROOT)}"
    assert f"{{rankbook-api}} rankbook.{module}" in page.read_text()
    assert f"book/reference/api/{module}\n" in (ROOT / "_toc.yml").read_text()


def citations():
    """The keys that the pages cite."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")]
    for path in (ROOT / "book").rglob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    groups = re.findall(r"\{cite:\w+\}`([^`]+)`", "\n".join(texts))
    return {re.sub(r"\{[^}]*\}", "", key).strip() for group in groups for key in group.split(",")}


def bibliography():
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    return dict(re.findall(r"^@\w+\{([^,\s]+),(.*?)^\}", text, re.MULTILINE | re.DOTALL))


def test_every_reference_is_there_once():
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{([^,]+),", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) == len(bibliography()), "a key is there twice"


def test_every_reference_is_cited_and_every_citation_known():
    known, cited = set(bibliography()), citations()
    assert cited <= known, f"cited, but not in references.bib: {sorted(cited - known)}"
    assert known <= cited, f"in references.bib, but never cited: {sorted(known - cited)}"


def test_the_labels_of_the_bibliography_are_author_and_year():
    from bibliography_style import AuthorYearLabels
    from pybtex.database import parse_string

    entry = "@misc{{{}, author = {{{}}}, year = {{2001}}, title = {{T}}}}"
    text = [
        entry.format("a", r"Cl{\'e}men{\c{c}}on, S. and De Baets, Bernard"),
        entry.format("b", "One, A. and Two, B. and Three, C."),
        entry.format("c", "Solo, D."),
        entry.format("d", "Solo, D."),
    ]
    entries = parse_string("\n".join(text), "bibtex").entries.values()
    assert list(AuthorYearLabels().format_labels(entries)) == [
        "Clémençon and De Baets, 2001",
        "One et al., 2001",
        "Solo, 2001a",
        "Solo, 2001b",
    ]


def test_digital_object_identifiers_have_their_form():
    found = {}
    for key, body in bibliography().items():
        if doi := re.search(r"^\s*doi\s*=\s*\{(.*)\}", body, re.MULTILINE):
            assert re.fullmatch(r"10\.\d{4,9}/\S+", doi[1]), f"{key}: {doi[1]}"
            assert doi[1] not in found, f"{key} has the identifier of {found.get(doi[1])}"
            found[doi[1]] = key
    assert len(found) >= 25


def test_every_chapter_is_in_the_contents():
    contents = (ROOT / "_toc.yml").read_text()
    for path in (ROOT / "book").rglob("*.ipynb"):
        name = path.relative_to(ROOT).as_posix().removesuffix(".ipynb")
        if not {".ipynb_checkpoints", "coursework"} & set(path.relative_to(ROOT).parts):
            assert f"{name}\n" in contents, f"{name} is not in _toc.yml"


def dry_run(*arguments):
    """What make would do, were the environment installed."""
    command = ["make", "--dry-run", "--old-file=.venv/.installed", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
class TestServe:
    """``make serve``: to this machine only, at any port, and no build where the pages are fresh."""

    def test_fresh_pages_are_only_served(self, tmp_path):
        page = tmp_path / "index.html"
        page.write_text("built")
        said = dry_run("serve", f"PAGE={page}", "PORT=9123")
        assert re.search(r"http\.server --bind 127\.0\.0\.1 .* 9123", said)
        assert "jupyter-book" not in said

    def test_old_pages_are_built(self, tmp_path):
        page = tmp_path / "index.html"
        page.write_text("built")
        os.utime(page, (0, 0))
        assert "jupyter-book build" in dry_run("serve", f"PAGE={page}")

    def test_chapters_run_at_most_twice(self):
        """The build runs the sources, then `test-notebooks` what readers get."""
        said = dry_run("test")
        build, notebooks = said.index("jupyter-book build"), said.index("run_reader_notebooks.py")
        assert build < notebooks < said.index("pytest tests/book")
        assert "--nbmake book" not in said
