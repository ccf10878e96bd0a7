"""A reader's notebook in a real JupyterLab, as a reader sees it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

CHAPTER = "bipartite/auc.ipynb"
# What a Markdown cell shows: JupyterLab's own element, and that of jupyterlab-myst.
SHOWN = ".jp-MarkdownCell .jp-RenderedMarkdown, .jp-MarkdownCell .lm-Widget.myst"
# The text of each Markdown cell without its formulas and code; "" while it is not rendered.
TEXTS = f"""() => [...document.querySelectorAll(".jp-MarkdownCell")].map(cell =>
    [...cell.querySelectorAll("{SHOWN}")].map(e => {{
        const copy = e.cloneNode(true);
        copy.querySelectorAll("mjx-container, .katex, code, pre").forEach(m => m.remove());
        return copy.textContent;
    }}).join("\\n").trim())"""
FORMULAS = ".jp-MarkdownCell mjx-container, .jp-MarkdownCell .katex"
RAW = ("{glue", ":::", "{ref}", "{prf:", "{cite", "{numref}", "{eq}", "```{", r"\P(", r"\Risk")


@pytest.fixture(scope="module", params=["plain", "jupyterlab-myst"])
def lab(request, notebooks, tmp_path_factory):
    """The address of a JupyterLab on a copy of the notebooks, with and without the extension."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(notebooks, folder / "work")
    settings = folder / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    # All cells at once: by default those out of sight are not in the page.
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    config = folder / "config" / "labconfig"
    config.mkdir(parents=True)
    off = {"@jupyterlab/apputils-extension:announcements": True}  # it asks the network
    if request.param == "plain":
        off["jupyterlab-myst"] = True
    (config / "page_config.json").write_text(json.dumps({"disabledExtensions": off}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={folder / 'work'}"]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_for(f"{address}/api/status", server, folder / "log")
            yield address
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_for(url, server, log, seconds=240):
    for _ in range(10 * seconds):
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(log.read_text()[-2000:])


def wait_until_rendered(tab, n_cells, seconds=240):
    """Wait until every Markdown cell shows something and the formulas stay as they are.

    Cells are rendered one after another, and one that is still empty has no formula to be counted
    and no dollar sign to be seen; so every cell of the file has to show its text, twice alike, two
    seconds apart. The tests tell what is wrong if it never comes to that.
    """
    before, stop = None, time.monotonic() + seconds
    while time.monotonic() < stop:
        texts = tab.evaluate(TEXTS)
        if len(texts) == n_cells and all(texts) and "$" not in "".join(texts):
            now = (tab.locator(FORMULAS).count(), texts)
            if now == before:
                return
            before = now
        tab.wait_for_timeout(2000)


@pytest.fixture(scope="module")
def notebook(lab, browser, notebooks):
    """The chapter, open and rendered."""
    cells = json.loads((notebooks / CHAPTER).read_text())["cells"]
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.goto(f"{lab}/lab/tree/{CHAPTER}")
    tab.wait_for_selector(".jp-Notebook .jp-MarkdownCell h1", timeout=300_000)
    wait_until_rendered(tab, sum(cell["cell_type"] == "markdown" for cell in cells))
    # A dialog about the kernel would hide what is below; there is no need to run anything.
    tab.keyboard.press("Escape")
    shots = os.environ.get("RANKBOOK_SCREENSHOTS")
    if shots:
        for i, words in enumerate(("Objectives", "Definition 1.1", "Solution to")):
            tab.locator(".jp-MarkdownCell", has_text=words).first.scroll_into_view_if_needed()
            tab.wait_for_timeout(500)
            tab.screenshot(path=f"{shots}/lab-{lab.rsplit(':')[-1]}-{i}.png")
    yield tab
    tab.close()


def test_a_theorem_shows_as_a_quotation_with_its_number(notebook):
    box = notebook.locator(".jp-MarkdownCell blockquote", has_text="Definition 1.1").first
    assert "Ranking loss" in box.inner_text()
    assert box.locator("strong").first.inner_text().startswith("Definition 1.1")


def test_formulas_are_rendered(notebook):
    assert notebook.locator(FORMULAS).count() > 50
    errors = ".jp-MarkdownCell mjx-merror, .jp-MarkdownCell [data-mjx-error], .katex-error"
    assert notebook.locator(errors).count() == 0
    visible = "\n".join(notebook.evaluate(TEXTS))
    assert "$" not in visible, visible[max(0, visible.index("$") - 80) :][:200]


def test_a_solution_is_folded_and_opens(notebook):
    solution = notebook.locator(".jp-MarkdownCell details").first
    assert solution.locator("summary").inner_text().startswith("Solution to Exercise 1.")
    assert not solution.evaluate("e => e.open")
    inside = solution.locator("p").first
    assert not inside.is_visible()
    solution.locator("summary").click()
    assert inside.is_visible()


def test_checks_are_folded_under_a_title(notebook):
    folded = notebook.locator(".jp-CodeCell .jp-InputPlaceholder, .jp-CodeCell .jp-Placeholder")
    assert folded.count() > 5
    assert "Check of the text above" in " ".join(folded.all_inner_texts())


def test_no_raw_markup(notebook):
    text = "\n".join(notebook.locator(SHOWN).all_inner_texts())
    assert text.count("Theorem") > 1
    assert not [raw for raw in RAW if raw in text]
