"""A browser with no network, shared by all tests of the built pages."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@pytest.fixture(scope="session")
def html():
    """The folder of the built pages."""
    if not (HTML / "book" / "index.html").is_file():
        pytest.skip(f"no pages in {HTML}: run `make book` first")
    return HTML


@pytest.fixture(scope="session")
def browser(html):
    """Chromium with every host name mapped to nothing."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install chromium or set CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()
