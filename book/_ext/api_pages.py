"""The reference: the package's docstrings, linked with the chapters that use what they describe.

* ``{rankbook-api} module`` lists and documents all that the module's ``__all__`` names.
* Every entry ends with the chapters that teach it, and every chapter lists the names that it uses.
  Both are computed: the chapters' visible code and text are searched for the package's names.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
from collections import Counter
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

PACKAGE = "rankbook"
PLACE = "Further reading"  # the section that lists what a chapter uses
MOST = 4  # chapters named in an entry; where more use a name, those that do so most


def api_lines(name: str) -> list[str]:
    """MyST that documents what ``name.__all__`` names; submodules become sections."""
    module = importlib.import_module(name)
    members = {member: getattr(module, member) for member in module.__all__}
    lines = []
    for member, value in members.items():
        if inspect.ismodule(value):
            title = inspect.getdoc(value).splitlines()[0]
            lines += ["", f"## `{member}`", "", title, "", *api_lines(value.__name__)]
    plain = [member for member, value in members.items() if not inspect.ismodule(value)]
    if not plain:
        return lines
    table = ["| name | what it is |", "|---|---|"]
    rst = []
    for member in plain:
        value, target = members[member], f"{name}.{member}"
        if inspect.isclass(value):
            kind, options = "class", ["   :members:"]
        elif callable(value):
            kind, options = "function", []
        else:
            kind, options = "data", ["   :no-value:"]
        role = {"function": "func", "class": "class", "data": "data"}[kind]
        first = (inspect.getdoc(value) or "").splitlines()[:1] if kind != "data" else []
        summary = re.sub(r":math:`([^`]+)`", r"$\1$", "".join(first))
        table.append(f"| {{py:{role}}}`{member} <{target}>` | {summary} |")
        rst += [f".. auto{kind}:: {target}", *options, ""]
    return [*table, "", "`````{eval-rst}", *rst, "`````", *lines]


class ApiDirective(SphinxDirective):
    """Document a module of the package from its docstrings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse what `api_lines` writes, in place."""
        module = importlib.import_module(self.arguments[0])
        self.env.note_dependency(inspect.getsourcefile(module))
        box = nodes.section()
        box.document = self.state.document
        lines = StringList(api_lines(self.arguments[0]), self.arguments[0])
        self.state.nested_parse(lines, 0, box, match_titles=True)
        return box.children


def skip_routing_methods(app, what, name, obj, skip, options):
    """Keep scikit-learn's generated ``set_*_request`` methods out of the reference."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


@cache
def public_names() -> dict[str, str]:
    """What the reference documents: its name without the package, and its full name."""
    package = importlib.import_module(PACKAGE)
    found = {}

    def visit(name: str) -> None:
        module = importlib.import_module(name)
        for member in getattr(module, "__all__", ()):
            if inspect.ismodule(getattr(module, member)):
                visit(f"{name}.{member}")
            else:
                found[f"{name}.{member}".removeprefix(f"{PACKAGE}.")] = f"{name}.{member}"

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            visit(f"{PACKAGE}.{module.name}")
    return found


def dotted(node: ast.expr) -> str | None:
    """The name ``a.b.c`` that an expression is, if it is one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (start := dotted(node.value)):
        return f"{start}.{node.attr}"
    return None


def names_in_code(source: str, known: dict[str, str], bound: dict[str, str]) -> Counter:
    """How often the code uses each public name; `bound` keeps the imports from cell to cell."""
    counts: Counter = Counter()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            prefix = node.module.removeprefix(PACKAGE).lstrip(".")
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{prefix}.{alias.name}".lstrip(".")
    for node in ast.walk(tree):
        name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if name and name.split(".")[0] in bound:
            first, *rest = name.split(".")
            full = ".".join([bound[first], *rest])
            if full in known:
                counts[full] += 1
    return counts


def names_in_text(text: str, known: dict[str, str]) -> Counter:
    """How often inline code names something public, with its module or unmistakably without."""
    short = Counter(name.rsplit(".", 1)[-1] for name in known)
    lookup = {name.rsplit(".", 1)[-1]: name for name in known}
    lookup = {last: name for last, name in lookup.items() if short[last] == 1 and len(last) > 4}
    counts: Counter = Counter()
    for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
        name = code.split("(")[0].strip().removeprefix(f"{PACKAGE}.")
        if name in known:
            counts[name] += 1
        elif name in lookup:
            counts[lookup[name]] += 1
    return counts


def names_in_chapter(path: Path) -> Counter:
    """How often a chapter names each public object where its reader sees it."""
    known, bound, counts = public_names(), {}, Counter()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            counts += names_in_text(source, known)
        elif cell["cell_type"] == "code":
            used = names_in_code(source, known, bound)
            if "remove-cell" not in cell["metadata"].get("tags", []):
                counts += used
    return counts


def scan_chapters(app, env, docnames) -> None:
    """Find who teaches what, before any page is read."""
    app.rankbook_uses = {
        docname: names_in_chapter(Path(env.doc2path(docname)))
        for docname in sorted(env.found_docs)
        if Path(env.doc2path(docname)).suffix == ".ipynb"
    }


def outdated_reference(app, env, added, changed, removed) -> list[str]:
    """Read the reference again when a chapter changes."""
    moved = added | changed | removed
    if not any(Path(env.doc2path(name)).suffix == ".ipynb" for name in moved):
        return []
    return [name for name in env.found_docs if name.startswith("book/reference/api/")]


def teachers(app, name: str) -> list[str]:
    """The chapters that use a name, in the order of the book."""
    order = list(app.config.external_site_map)
    return sorted((doc for doc, used in app.rankbook_uses.items() if used[name]), key=order.index)


def add_teachers(app, what, name, obj, options, lines) -> None:
    """End an entry of the reference with the chapters that teach it."""
    short = name.removeprefix(f"{PACKAGE}.")
    found = teachers(app, short) if name in public_names().values() else []
    if not found:
        return
    uses = {doc: app.rankbook_uses[doc][short] for doc in found}
    if len(found) > len(app.rankbook_uses) / 2:
        line = f"**Used in** most chapters, first in :doc:`/{found[0]}`."
    else:
        most = sorted(found, key=lambda doc: -uses[doc])[:MOST]
        line = f"**Taught in:** {', '.join(f':doc:`/{doc}`' for doc in found if doc in most)}."
    lines += ["", line, ""]


def add_names(app, doctree: nodes.document) -> None:
    """Let a chapter's section of further reading list what the chapter uses of the package."""
    used = app.rankbook_uses.get(app.env.docname)
    if not used:
        return
    known = public_names()
    line = nodes.paragraph()
    for i, name in enumerate(sorted(used)):
        xref = addnodes.pending_xref(
            "",
            nodes.literal(name, name),
            refdomain="py",
            reftype="obj",
            reftarget=known[name],
            refexplicit=True,
            refwarn=True,
            refdoc=app.env.docname,
        )
        line += [nodes.Text(", " if i else ""), xref]
    line += nodes.Text(".")
    box = nodes.admonition("", nodes.title("", "From the package"), line, classes=["package"])
    sections = [s for s in doctree.findall(nodes.section) if s.children[0].astext() == PLACE]
    (sections[0] if sections else doctree).append(box)


def plain_labels(app, doctree: nodes.document) -> None:
    """Number the references of a docstring as it does; numpydoc puts a hash before the number."""
    hashed = re.compile(r"\bR[0-9a-f]{12}-(?=\d)")
    for text in list(doctree.findall(nodes.Text)):
        if hashed.search(text):
            text.parent.replace(text, nodes.Text(hashed.sub("", text)))


def straight_quotes(app, doctree: nodes.document) -> None:
    """Keep the quotes of a parameter's type as code has them, such as ``default="logit"``."""
    straight = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")
    for kind in doctree.findall(nodes.classifier):
        for text in list(kind.findall(nodes.Text)):
            text.parent.replace(text, nodes.Text(text.translate(straight)))


def setup(app) -> dict:
    """Connect the functions above."""
    app.add_directive("rankbook-api", ApiDirective)
    app.connect("autodoc-skip-member", skip_routing_methods)
    app.connect("env-get-outdated", outdated_reference)
    app.connect("env-before-read-docs", scan_chapters)
    app.connect("autodoc-process-docstring", add_teachers, priority=900)
    app.connect("doctree-read", add_names)
    app.connect("doctree-read", plain_labels, priority=900)
    app.connect("doctree-read", straight_quotes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
