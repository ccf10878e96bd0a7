"""A browser with no network but this machine, shared by all tests of the built pages."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))  # the modules of the build
HTML = Path(os.environ.get("RANKBOOK_HTML", ROOT / "_build" / "html"))
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def lacking(what):
    """Skip; but fail on the machine that checks, where a skipped test goes unnoticed."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(what)
    pytest.skip(what)


def work_unit(nodeid):
    """What one process does in a row: the tests of a page, loaded once; else those of a module."""
    page = re.search(r"test_pages\.py::\w+\[(.*?\.html)", nodeid)
    return page[1] if page else nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Share out pages among the processes, not modules: one module holds most of the work."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class PageScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return work_unit(nodeid)

    return PageScheduling(config, log)


@pytest.fixture(scope="session")
def html():
    """The folder of the built pages."""
    if not (HTML / "book" / "index.html").is_file():
        lacking(f"no pages in {HTML}: run `make book` first")
    return HTML


@pytest.fixture(scope="session")
def notebooks(html):
    """The folder of the reader's notebooks."""
    folder = html.parent / "notebooks"
    if not list(folder.rglob("*.ipynb")):
        lacking(f"no notebooks in {folder}: run `make book` first")
    return folder


@pytest.fixture(scope="session")
def browser(html):
    """Chromium with every host but this machine mapped to nothing."""
    if CHROMIUM is None:
        lacking("no Chromium on this machine: install chromium or set CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()
