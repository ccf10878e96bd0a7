"""Every built page, in a browser that has no network."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
HTML = Path(os.environ.get("RANKBOOK_HTML", ROOT / "_build" / "html"))
PAGES = sorted(
    [path.relative_to(HTML).as_posix() for path in (HTML / "book").rglob("*.html")]
    + [name for name in ("genindex.html", "search.html") if (HTML / name).is_file()]
)

# What a reader sees, without code and mathematics, whose text may hold anything.
VISIBLE_TEXT = """() => {
    const article = document.querySelector("article") || document.body;
    const copy = article.cloneNode(true);
    copy.querySelectorAll("pre, code, script, style, mjx-container, .sig").forEach(e => e.remove());
    return copy.textContent;
}"""

RAW_MARKUP = [
    r"\$[^$\n]{1,200}\$",  # TeX between dollars
    r"\$\$",
    r"\\\w+\s*\{|\\\(|\\\[|\\(?:frac|sum|int|le|ge|eta|theta|alpha|cdot|mid)\b",
    r"\{[\w:.-]+\}`",  # a role that was not read as one
    r"^\s*(?::{3,}|`{3,})",  # a fence
    r"^\s*:(?:label|class|tags|name|alt):",
    r"\((?:eq|ch|thm|def|lem|prop|fig|ex)-[\w-]+\)",  # a label
    r"%\s*raw latex|\bmystnb\b|\{\{.*?\}\}",
]


@pytest.fixture(params=PAGES, scope="module")
def page(request, browser, html):
    """A page, loaded once, with all that it asked for and complained of."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.complaints, tab.requests_made = [], []
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on(
        "console",
        lambda message: (
            tab.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    tab.on("request", lambda asked: tab.requests_made.append(asked.url))
    tab.goto((html / request.param).as_uri())
    if tab.query_selector(".math"):
        tab.wait_for_function("window.MathJax?.startup?.promise !== undefined")
        tab.evaluate("() => MathJax.startup.promise.then(() => null)")
    yield tab
    tab.close()


def test_all_mathematics_is_typeset(page):
    blank = page.evaluate(
        """() => [...document.querySelectorAll(".math")]
            .filter(e => !e.querySelector("mjx-container")).map(e => e.textContent)"""
    )
    assert not blank, f"not typeset: {blank}"
    errors = page.evaluate(
        """() => [...document.querySelectorAll("mjx-merror, [data-mjx-error], .merror")]
            .map(e => e.getAttribute("data-mjx-error") || e.getAttribute("title") || "error")"""
    )
    assert not errors, f"MathJax errors: {errors}"


def test_no_markup_is_left(page):
    text = page.evaluate(VISIBLE_TEXT)
    left = [found for raw in RAW_MARKUP for found in re.findall(raw, text, re.MULTILINE)]
    assert not left, f"raw markup in the text: {left[:8]}"
    assert page.query_selector(".system-message, .problematic") is None


def test_no_cell_warned(page):
    warned = page.evaluate(
        """() => [...document.querySelectorAll(".output.stderr")].map(e => e.textContent)"""
    )
    assert not warned, f"a cell wrote to stderr: {warned}"


def test_no_complaint_and_no_network(page):
    assert not page.complaints, f"the console says {page.complaints}"
    outside = [url for url in page.requests_made if not url.startswith(("file:", "data:", "blob:"))]
    assert not outside, f"the page asks the network for {outside}"


def test_images_have_alt_text_and_caption(page):
    bare = page.evaluate(
        """() => [...document.querySelectorAll("article img")].filter(image =>
            !(image.alt || "").trim() || !image.closest("figure")?.querySelector("figcaption")
            || image.naturalWidth === 0).map(image => image.src)"""
    )
    assert not bare, f"no alt text, no caption, or not loaded: {bare}"


@pytest.mark.parametrize("width", [390, 1280])
def test_no_horizontal_overflow(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    wide = page.evaluate(
        """() => {
            const root = document.documentElement;
            if (root.scrollWidth <= root.clientWidth) return [];
            return [...document.querySelectorAll("main *")]
                .filter(e => e.getBoundingClientRect().right > root.clientWidth + 1)
                .map(e => `${e.tagName}.${e.className}`).slice(0, 5).concat(root.scrollWidth);
        }"""
    )
    page.set_viewport_size({"width": 1280, "height": 900})
    assert not wide, f"wider than {width} px: {wide}"


# Open what is folded; then all blocks whose content is wider than they are.
OPEN_FOLDED = """() => {
    document.querySelectorAll("article details").forEach(e => { e.open = true; });
    document.querySelectorAll(".toggle-hidden").forEach(e => e.classList.remove("toggle-hidden"));
}"""
WIDE_BLOCKS = """() => {
    const blocks = "article pre, article table, article .cell_output, article .cell_output .output,"
        + " article div.math, article mjx-container[display='true'], article figure";
    return [...document.querySelectorAll(blocks)].filter(e =>
        e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible");
}"""


@pytest.fixture
def opened(page):
    """The page with everything unfolded."""
    page.evaluate(OPEN_FOLDED)
    yield page
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("width", [1280, 1440])
def test_no_block_is_cut_or_scrolls(opened, width):
    opened.set_viewport_size({"width": width, "height": 900})
    cut = opened.evaluate(
        f"""() => ({WIDE_BLOCKS})().map(e => `${{e.tagName}} ${{e.scrollWidth - e.clientWidth}} px `
            + `too wide: ${{e.textContent.trim().slice(0, 80)}}`)"""
    )
    assert not cut, f"at {width} px: {cut}"


def test_on_a_phone_a_wide_block_shows_that_it_scrolls(opened):
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.evaluate("window.dispatchEvent(new Event('resize'))")
    faults = opened.evaluate(
        f"""() => ({WIDE_BLOCKS})().flatMap(e => {{
            const style = getComputedStyle(e);
            const fades = style.maskImage.match(/rgba\\(0, 0, 0, 0\\)/g) || [];
            const words = `${{e.tagName}}: ${{e.textContent.trim().slice(0, 60)}}`;
            if (!/auto|scroll/.test(style.overflowX)) return [`cut, not scrolling: ${{words}}`];
            if (e.tabIndex < 0) return [`not reached by the keyboard: ${{words}}`];
            if (fades.length !== 1) return [`no cue: ${{words}}`];
            return [];
        }})"""
    )
    assert not faults, faults[:8]


def test_the_cue_moves_with_the_scroll(browser, html):
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.goto((html / "book" / "bipartite" / "auc.html").as_uri())
    tab.wait_for_selector("pre.scrolls.more-right")
    box = tab.locator("pre.scrolls").first
    sides = "e => [e.classList.contains('more-left'), e.classList.contains('more-right')]"
    assert box.evaluate(sides) == [False, True]
    box.evaluate("e => { e.scrollLeft = 10; }")
    tab.wait_for_selector("pre.scrolls.more-left.more-right")
    box.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    tab.wait_for_selector("pre.scrolls.more-left:not(.more-right)")
    tab.close()


def test_figures_follow_the_dark_theme_and_print_is_light(browser, html):
    tab = browser.new_page(color_scheme="dark")
    tab.goto((html / "book" / "bipartite" / "auc.html").as_uri())
    tab.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    image = tab.locator("article img[src$='.svg']").first
    assert "invert(1)" in image.evaluate("e => getComputedStyle(e).filter")
    assert image.evaluate("e => getComputedStyle(e).mixBlendMode") == "screen"
    tab.emulate_media(media="print")
    tab.wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert image.evaluate("e => getComputedStyle(e).filter") == "none"
    tab.emulate_media(media="screen")
    tab.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    tab.close()


# A token of code or a formula has the look that its classes and those around it give it (and in a
# table the parity of its row). Contrast takes milliseconds an element, and there are thousands of
# them: one of each look stays, the others go. Links keep all of their text, which names them.
# A formula becomes a word, since axe passes over text of one letter.
ONE_OF_EACH_LOOK = """() => {
    document.querySelectorAll("mjx-container").forEach(e => e.replaceChildren("xyz"));
    const leaves = "mjx-container, pre span, code span, .sig span", seen = new Set();
    for (const leaf of document.querySelectorAll(leaves)) {
        if (leaf.children.length || leaf.closest("a")) continue;
        let look = leaf.getAttribute("style") || "";
        for (let e = leaf; e; e = e.parentElement)
            look += ` ${e.tagName}.${e.className}${e.tagName === "TR" ? e.rowIndex % 2 : ""}`;
        if (seen.has(look)) leaf.remove();
        seen.add(look);
    }
    return seen.size;
}"""


def grave_faults(page):
    """What axe calls serious in the light scheme; in the dark one, which differs in colours alone,
    too little contrast.
    """
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(ONE_OF_EACH_LOOK)
    # A colour that is still fading is measured halfway.
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; }")
    grave = []
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        found = Axe().run(page, options={"resultTypes": ["violations"], **rules})
        grave += [
            (scheme, rule["id"], node["html"][:160], node["failureSummary"][:200])
            for rule in found.response["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"][:2]
        ]
    return grave


def test_accessible(page):
    """It comes last, since it takes the formulas and most of the code from the page."""
    grave = grave_faults(page)
    assert not grave, grave


@pytest.mark.parametrize(
    "pale",
    [
        "article pre .k, article pre .kn { color: #bbb !important; }",
        "html[data-theme=dark] article mjx-container { color: #333 !important; }",
        "article .output pre { color: #999 !important; }",
    ],
)
def test_pale_code_and_formulas_are_noticed(browser, html, pale):
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto((html / "book" / "bipartite" / "auc.html").as_uri())
    tab.wait_for_function("window.MathJax?.startup?.promise !== undefined")
    tab.evaluate("() => MathJax.startup.promise.then(() => null)")
    tab.add_style_tag(content=pale)
    assert {fault[1] for fault in grave_faults(tab)} == {"color-contrast"}
    tab.close()


def test_search_finds_a_term(browser, html):
    tab = browser.new_page()
    tab.goto((html / "search.html").as_uri() + "?q=calibrated")
    tab.wait_for_selector("#search-results li a", timeout=10_000)
    assert tab.locator("#search-results li").count() >= 1
    tab.goto((html / "search.html").as_uri() + "?q=xyzzyplugh")
    tab.wait_for_selector("#search-results p")
    assert tab.locator("#search-results li").count() == 0
    tab.close()


@pytest.fixture(scope="module")
def parsed(html):
    return {
        name: BeautifulSoup((html / name).read_text(encoding="utf-8"), "html.parser")
        for name in [*PAGES, "index.html"]
    }


def test_no_broken_internal_link(parsed, html):
    anchors = {
        name: {tag.get("id") for tag in soup.find_all(id=True)}
        | {tag.get("name") for tag in soup.find_all("a", attrs={"name": True})}
        for name, soup in parsed.items()
    }
    broken = []
    for name, soup in parsed.items():
        links = [tag["href"] for tag in soup.find_all(["a", "link"], href=True)]
        links += [tag["src"] for tag in soup.find_all(["img", "script"], src=True)]
        for link in links:
            if urlsplit(link).scheme:
                continue
            target, anchor = urldefrag(link)
            path = (html / name).parent / unquote(target.split("?")[0]) if target else html / name
            path = Path(os.path.normpath(path))
            if not path.exists():
                broken.append((name, link))
            elif anchor and path.suffix == ".html":
                known = anchors.get(path.relative_to(html).as_posix())
                if known is not None and unquote(anchor) not in known:
                    broken.append((name, link))
    assert not broken, broken[:10]


def test_every_page_of_the_contents_is_built():
    import yaml

    def files(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("file", "root"):
                    yield value
                else:
                    yield from files(value)
        elif isinstance(node, list):
            for item in node:
                yield from files(item)

    if not PAGES:
        pytest.skip(f"no pages in {HTML}: run `make book` first")
    wanted = {f"{name}.html" for name in files(yaml.safe_load((ROOT / "_toc.yml").read_text()))}
    assert wanted == {page for page in PAGES if page.startswith("book/")}
