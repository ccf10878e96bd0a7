"""What the book's build needs beyond settings.

* MathJax comes from a slim copy of the sphinx-mathjax-offline wheel, with the macros of
  ``book/macros.yml``: pages load nothing from the network.
* The execution cache is keyed on the package's source and the requirements as well as on the
  notebooks, and so is the decision to read a page again: a broken package never builds from an
  old cache. A change of the layout, in this folder, reads all pages again but runs nothing.
  Notebooks that are not in the cache run in parallel before they are read.
* The scripts of thebe are dropped from every page.
* Nodes that a package registers for "html" only are given to "singlehtml" too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

import yaml
from sphinx.util import logging

logger = logging.getLogger(__name__)

MATHJAX = (
    "tex-chtml.js",
    "input/tex/extensions",
    "output/chtml/fonts/woff-v2",
    "ui/safe.js",
)


def digest(root: Path, files: Iterable[Path]) -> str:
    """A hash of the names and contents of those files that are there."""
    whole = hashlib.sha256()
    for path in sorted(files):
        if path.is_file():
            whole.update(path.relative_to(root).as_posix().encode())
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]


def source_key(root: Path) -> str:
    """A hash of all that decides what a notebook's code computes, other than the notebook.

    What only lays out pages, this folder, does not count.
    """
    files = [
        path
        for folder in ("rankbook", "book", "benchmarks")
        for path in (root / folder).rglob("*")
        if path.suffix in {".py", ".csv", ".json", ".npz", ".mplstyle"}
        and not {"_build", "__pycache__"} & set(path.parts)
        and root / "book" / "_ext" not in path.parents
    ]
    return digest(root, [*files, root / "requirements.txt"])


def layout_key(root: Path) -> str:
    """A hash of what turns a chapter into a page and a reader's notebook."""
    return digest(root, [*(root / "book" / "_ext").glob("*.py"), root / "book" / "macros.yml"])


def configure(app, config) -> None:
    """Set what depends on files: the macros, the cache's folder, the path of MathJax."""
    root = Path(app.srcdir)
    macros = yaml.safe_load((root / "book" / "macros.yml").read_text(encoding="utf-8"))
    tex = config.mathjax3_config.setdefault("tex", {})
    tex["macros"] = {**macros, **tex.get("macros", {})}
    config.mathjax_path = "mathjax/tex-chtml.js"
    config.rankbook_source_key = source_key(root)
    config.rankbook_layout_key = layout_key(root)
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
        # A line must not end between a formula and its comma.
        body = re.sub(
            r'(<span class="math notranslate nohighlight">[^<]*</span>)([,.;:!?)\u2019\u201d]+)',
            r'<span class="held">\1\2</span>',
            body,
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
    app.add_config_value("rankbook_layout_key", "", "env")
    app.connect("config-inited", configure, priority=900)
    app.connect("builder-inited", share_visitors)
    app.connect("env-before-read-docs", execute_in_parallel)
    app.connect("html-page-context", mend_page, priority=900)
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
