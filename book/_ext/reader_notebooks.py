"""Reader's notebooks: every chapter as a notebook that reads and runs anywhere.

The chapters are written in MyST, which JupyterLab, Colab and VS Code show raw. While the pages
are built, each chapter is also written to ``_build/notebooks/<part>/<chapter>.ipynb`` in plain
Markdown, with the code that its author wrote. What only the build needs (the gluing of numbers
into the text) is taken out, and checks and solutions are folded. The pages offer these files for
download.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shutil
from pathlib import Path
from urllib.parse import urldefrag

import nbformat
import yaml
from docutils import nodes
from pybtex.plugin import find_plugin
from reader_markdown import MarkdownWriter, fold, split_title, unwrap

# Titles of folded cells. Colab shows them as forms; JupyterLab shows a folded cell's first line.
CHECK = "# @title Check of the text above (run it with the rest; it prints nothing)"
FIGURE = "# @title Code of the figure"
CODE = "# @title Code of this step"
LINES_A_CELL = 10_000  # how myst-nb numbers the lines of a notebook
DOWNLOADS = "_notebooks"

FIRST = """\
> This is a chapter of *Rankbook*, a textbook on ranking with ordered labels, as a notebook to
> run and to change. It needs Python 3.11 or later and
>
> ```
> pip install "rankbook[book]"
> ```
>
> (in a copy of the repository: `pip install ".[book]"`). Run the cells from the top. Folded cells
> check what the text says or draw its figures; run them too, later cells may use what they
> compute. Solutions are folded, too."""


def without_glue(source: str) -> str:
    """The code without the statements that hand values to the page's text.

    A loop that does nothing else goes, too.

    Examples
    --------
    >>> without_glue("from myst_nb import glue\\nx = 1\\nglue('a', x, display=False)\\nx")
    'x = 1\\nx'
    """
    if "glue" not in source:
        return source
    drop: set[int] = set()

    def is_glue(node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            return node.module == "myst_nb" and [a.name for a in node.names] == ["glue"]
        if isinstance(node, ast.For):
            return not node.orelse and all(map(is_glue, node.body))
        call = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
        return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "glue"

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and is_glue(node):
            drop.update(range(node.lineno, node.end_lineno + 1))
    kept = [line for number, line in enumerate(source.splitlines(), 1) if number not in drop]
    return "\n".join(kept).strip("\n")


class Chapter:
    """The cells of one reader's notebook, gathered in the order of the page."""

    def __init__(self, source: nbformat.NotebookNode, writer: MarkdownWriter):
        self.source, self.writer = source, writer
        self.cells: list[nbformat.NotebookNode] = []
        self.waiting: list[str] = []
        self.next = 0  # the first cell of the source that is not yet passed

    def add_text(self, text: str) -> None:
        self.waiting.append(text)

    def flush(self) -> None:
        """Make one cell of the text that waits."""
        if self.waiting:
            cell = nbformat.v4.new_markdown_cell("\n\n".join(self.waiting))
            cell.id = f"text-{len(self.cells):03d}"
            self.cells.append(cell)
            self.waiting = []

    def add_code(self, index: int, title: str | None = None) -> None:
        """The code cell of this index, folded under a title where the page hides it."""
        cell = self.source.cells[index]
        tags = set(cell.metadata.get("tags", []))
        code = without_glue(cell.source)
        if not code.strip():
            return
        self.flush()
        if title is None and "remove-cell" in tags:
            title = CHECK
        elif title is None and tags & {"hide-input", "hide-cell", "remove-input"}:
            title = FIGURE if "figure" in cell.metadata.get("mystnb", {}) else CODE
        metadata = {"tags": sorted(tags)} if tags else {}
        if title is not None:
            metadata |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
            code = f"{title}\n{code}"
        made = nbformat.v4.new_code_cell(code, metadata=metadata)
        made.id = cell.get("id", f"code-{index:03d}")
        self.cells.append(made)

    def pass_cells(self, until: int) -> None:
        """Add the cells before `until` that have no node on the page: the checks."""
        for index in range(self.next, until):
            cell = self.source.cells[index]
            if cell.cell_type == "code" and "remove-cell" in cell.metadata.get("tags", []):
                self.add_code(index)
        self.next = max(self.next, until)

    def walk(self, children, depth: int = 0) -> None:
        """Add nodes of the page, each after the checks that stand before it in the source."""
        for node in children:
            if isinstance(node, nodes.section):
                self.walk(node.children, depth + 1)
            elif is_code(node):
                self.add_cell_node(node)
            elif node.tagname == "solution_node" and any(map(is_code, node.findall())):
                self.add_solution(node)
            else:
                index = cell_of(node)
                if index is not None:
                    self.pass_cells(index)
                if isinstance(node, nodes.title) or node.tagname.startswith("exercise"):
                    self.flush()
                for block in self.writer.blocks([node], depth):
                    self.add_text(block)

    def add_cell_node(self, node: nodes.container, title: str | None = None) -> None:
        """A code cell, and the captions of its figures."""
        index = node["cell_index"]
        self.pass_cells(index)
        self.add_code(index, title)
        self.next = index + 1
        for figure in node.findall(nodes.figure):
            for caption in self.writer.blocks([figure]):
                self.add_text(caption)

    def add_solution(self, node: nodes.Element) -> None:
        """A solution with code: all of it in one fold, and its cells, folded, below to be run.

        A cell cannot stand inside a fold, so whoever opens the solution reads a copy of the code.
        """
        head, blocks, cells = self.writer.solution_head(node), [], []
        for child in unwrap(split_title(node)[1]):
            if is_code(child):
                cells.append(child)
                code = without_glue(self.source.cells[child["cell_index"]].source)
                blocks.append(f"```python\n{code}\n```")
            else:
                blocks += self.writer.blocks([child])
        self.add_text(fold(head, "\n\n".join(blocks)))
        for cell in cells:
            self.add_cell_node(cell, f"# @title {head}: its code, to run")

    def finish(self) -> list[nbformat.NotebookNode]:
        """All cells, the last checks too."""
        self.pass_cells(len(self.source.cells))
        self.flush()
        return self.cells


def is_code(node: nodes.Node) -> bool:
    """Whether the node shows a code cell."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def cell_of(node: nodes.Node) -> int | None:
    """The index of the source's cell that the node comes from."""
    lines = (inner.line for inner in node.findall() if getattr(inner, "line", None))
    line = next((line for line in lines if line >= LINES_A_CELL), None)
    return None if line is None else line // LINES_A_CELL - 1


class Numbers:
    """The printed numbers of a page's sections, equations, figures and theorems."""

    def __init__(self, env, docname: str):
        self.sections = env.toc_secnumbers.get(docname, {})
        self.figures = env.toc_fignumbers.get(docname, {})

    def __call__(self, kind: str, node: nodes.Element) -> str:
        if kind == "section":
            anchors = [f"#{name}" for name in node["ids"]]
            anchors += [""] * isinstance(node.parent, nodes.document)
            found = next((self.sections[a] for a in anchors if a in self.sections), ())
        else:
            names = node["ids"]
            if kind == "equation":
                kind = "displaymath"
                names = [f"equation-{node.get('label')}", *names]
            known = self.figures.get(kind, {})
            found = next((known[name] for name in names if name in known), ())
        return ".".join(map(str, found))


def cited(env, docname: str) -> list[str]:
    """The references that a page cites, formatted, in the order of their authors."""
    domain = env.get_domain("cite")
    here = {
        target.key
        for citation in domain.citation_refs
        if citation.docname == docname
        for target in citation.targets
    }
    backend = find_plugin("pybtex.backends", "markdown")()
    found = []
    for item in domain.citations:
        if item.key in here:
            text = item.formatted_entry.text.render(backend).replace("\n", " ")
            found.append("- " + re.sub(r"\\([-.()])", r"\1", text))
    return found


def notebook_path(app, docname: str) -> Path:
    """Where the reader's notebook of a chapter goes."""
    return Path(app.outdir).parent / "notebooks" / f"{docname.removeprefix('book/')}.ipynb"


def is_chapter(env, docname: str) -> bool:
    return Path(env.doc2path(docname)).suffix == ".ipynb"


def link_from(app, docname: str):
    """How a reader's notebook points to another page of the book."""

    def link(uri: str) -> str | None:
        page, _ = urldefrag(uri)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(docname), page))
        target = target.removesuffix(".html")
        if not page or target == docname:
            return None
        if target in app.env.found_docs and is_chapter(app.env, target):
            return page.removesuffix(".html") + ".ipynb"
        base = app.config.html_baseurl
        return f"{base.rstrip('/')}/{target}.html" if base else None

    return link


def write_notebook(app, doctree: nodes.document, docname: str) -> None:
    """Write the reader's notebook of a chapter when its page is resolved."""
    env = app.env
    if app.builder.name != "html" or not is_chapter(env, docname):
        return
    source = nbformat.read(env.doc2path(docname), as_version=4)
    macros = yaml.safe_load((Path(app.srcdir) / "book" / "macros.yml").read_text(encoding="utf-8"))
    writer = MarkdownWriter(macros, Numbers(env, docname), link_from(app, docname))
    chapter = Chapter(source, writer)
    chapter.add_text(FIRST)
    chapter.flush()
    chapter.walk(doctree.children)
    cells = chapter.finish()
    if references := cited(env, docname):
        chapter.add_text("\n".join(["## References", "", *references]))
        chapter.flush()
    notebook = nbformat.v4.new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    nbformat.validate(notebook)
    path = notebook_path(app, docname)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def missing_notebooks(app, env, added, changed, removed) -> list[str]:
    """Read a page again whose notebook is gone."""
    return [
        docname
        for docname in env.found_docs
        if is_chapter(env, docname) and not notebook_path(app, docname).is_file()
    ]


def offer_downloads(app, pagename, templatename, context, doctree) -> None:
    """Let the page's download button give the reader's notebook."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("label") == "download-source-button" and button["text"] == ".ipynb":
                target = f"{DOWNLOADS}/{pagename.removeprefix('book/')}.ipynb"
                button["url"] = context["pathto"](target, 1)
                button["tooltip"] = "Download this chapter as a notebook to run"


def copy_notebooks(app, exception) -> None:
    """Put the notebooks beside the pages, and forget those of chapters that are gone."""
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir).parent / "notebooks"
    wanted = {notebook_path(app, d) for d in app.env.found_docs if is_chapter(app.env, d)}
    for path in folder.rglob("*.ipynb"):
        if path not in wanted and ".ipynb_checkpoints" not in path.parts:
            path.unlink()
    target = Path(app.outdir) / DOWNLOADS
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(wanted):
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def setup(app) -> dict:
    """Connect the functions above."""
    app.connect("env-get-outdated", missing_notebooks)
    app.connect("doctree-resolved", write_notebook, priority=950)
    app.connect("html-page-context", offer_downloads, priority=950)
    app.connect("build-finished", copy_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
