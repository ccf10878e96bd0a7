"""What the book's build needs beyond settings.

* MathJax comes from a slim copy of the sphinx-mathjax-offline wheel, with the macros of
  ``book/macros.yml``: pages load nothing from the network.
* The execution cache is keyed on the package's source and the requirements as well as on the
  notebooks, and so is the decision to read a page again: a broken package never builds from an
  old cache. Notebooks that are not in the cache run in parallel before they are read.
* The scripts of thebe are dropped from every page.
* Nodes that a package registers for "html" only are given to "singlehtml" too.
* ``{rankbook-api} module`` lists and documents all that the module's ``__all__`` names.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)

MATHJAX = (
    "tex-chtml.js",
    "input/tex/extensions",
    "output/chtml/fonts/woff-v2",
    "ui/safe.js",
)


def source_key(root: Path) -> str:
    """A hash of all that decides what a notebook's code computes, other than the notebook."""
    files = sorted(
        path
        for folder in ("rankbook", "book", "benchmarks")
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".csv", ".json", ".npz", ".mplstyle"}
        and path.is_file()
        and "_build" not in path.parts
        and "__pycache__" not in path.parts
    )
    files += [root / "requirements.txt"]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file():
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def configure(app, config) -> None:
    """Set what depends on files: the macros, the cache's folder, the path of MathJax."""
    root = Path(app.srcdir)
    macros = yaml.safe_load((root / "book" / "macros.yml").read_text(encoding="utf-8"))
    tex = config.mathjax3_config.setdefault("tex", {})
    tex["macros"] = {**macros, **tex.get("macros", {})}
    config.mathjax_path = "mathjax/tex-chtml.js"
    config.rankbook_source_key = source_key(root)
    caches = Path(app.outdir).parent / ".jupyter_cache"
    config.nb_execution_cache_path = str(caches / config.rankbook_source_key)
    if caches.is_dir():
        for old in caches.iterdir():
            if old.is_dir() and old.name != config.rankbook_source_key:
                shutil.rmtree(old)
            elif old.is_file():
                old.unlink()


def copy_mathjax(app, exception) -> None:
    """Copy the two megabytes of MathJax that the pages use, of the wheel's 24."""
    if exception is not None or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(package.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for name in MATHJAX:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)


def mend_page(app, pagename, templatename, context, doctree) -> None:
    """Take thebe, which asks a server for a kernel, off the page; mend the roles of lists."""
    if "script_files" in context:
        context["script_files"] = [
            script
            for script in context["script_files"]
            if "thebe" not in str(getattr(script, "filename", None) or script)
            and "THEBE" not in getattr(script, "attributes", {}).get("body", "")
        ]
    if "body" in context:
        # Roles that docutils writes and that browsers no longer know.
        body = re.sub(
            r' role="(?:list|doc-biblioentry)"(?= class="citation)|(?<=")( role="doc-biblioentry")',
            "",
            context["body"],
        )
        # Every proof gets the id "proof", and an id names one thing.
        body = body.replace(
            '<div class="proof admonition" id="proof">', '<div class="proof admonition">'
        )
        context["body"] = re.sub(
            r'<script type="text/x-thebe-config">.*?</script>\s*'
            r"<script>kernelName = [^<]*</script>",
            "",
            body,
            flags=re.DOTALL,
        )


def share_visitors(app) -> None:
    """Let "singlehtml" render the nodes that were registered for "html" alone."""
    handlers = app.registry.translation_handlers
    handlers["singlehtml"] = {**handlers.get("html", {}), **handlers.get("singlehtml", {})}


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
        table.append(f"| {{py:{role}}}`{member} <{target}>` | {''.join(first)} |")
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


def execute_in_parallel(app, env, docnames) -> None:
    """Run the notebooks that will be read and are not in the cache, two at a time or more.

    A notebook that fails is left for the reader of the page, which runs it again and reports.
    """
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from jupyter_cache.executors.utils import single_nb_execution
    from nbformat import read

    cache = get_cache(app.config.nb_execution_cache_path)
    waiting = {}
    for docname in sorted(docnames):
        path = Path(env.doc2path(docname))
        if path.suffix != ".ipynb":
            continue
        notebook = read(path, as_version=4)
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            waiting[path] = notebook
    workers = min(len(waiting), int(os.environ.get("RANKBOOK_JOBS", os.cpu_count() or 1)))
    if workers < 2:
        return
    logger.info("running %d notebooks, %d at a time", len(waiting), workers)
    with ThreadPoolExecutor(workers) as pool:
        jobs = {
            pool.submit(
                single_nb_execution,
                notebook,
                cwd=str(path.parent),
                allow_errors=False,
                timeout=app.config.nb_execution_timeout,
            ): path
            for path, notebook in waiting.items()
        }
        for job in as_completed(jobs):
            with suppress(Exception):
                result = job.result()
                if result.err is None:
                    cache.cache_notebook_bundle(
                        CacheBundleIn(
                            result.nb, str(jobs[job]), data={"execution_seconds": result.time}
                        ),
                        check_validity=False,
                        overwrite=True,
                    )
                    logger.info("ran %s in %.1f s", jobs[job].name, result.time)


def setup(app) -> dict:
    """Connect the functions above."""
    app.add_config_value("rankbook_source_key", "", "env")
    app.add_directive("rankbook-api", ApiDirective)
    app.connect("config-inited", configure, priority=900)
    app.connect("builder-inited", share_visitors)
    app.connect("env-before-read-docs", execute_in_parallel)
    app.connect("autodoc-skip-member", skip_routing_methods)
    app.connect("html-page-context", mend_page, priority=900)
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
