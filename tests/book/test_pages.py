"""Every built page, in a browser that has no network."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

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


def load(tab, path):
    """Open a page, and wait until its formulas are typeset."""
    tab.goto(path.as_uri())
    if tab.query_selector(".math"):
        tab.wait_for_function("window.MathJax?.startup?.promise !== undefined")
        tab.evaluate("() => MathJax.startup.promise.then(() => null)")


def resize(tab, width):
    """Lay the page out anew; that takes long, so tests of one width follow each other."""
    if tab.viewport_size["width"] != width:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.evaluate("window.dispatchEvent(new Event('resize'))")


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
    load(tab, html / request.param)
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


WIDER_THAN_THE_WINDOW = """() => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return [];
    return [...document.querySelectorAll("main *")]
        .filter(e => e.getBoundingClientRect().right > root.clientWidth + 1)
        .map(e => `${e.tagName}.${e.className}`).slice(0, 5).concat(root.scrollWidth);
}"""


def test_no_horizontal_overflow(page):
    resize(page, 1280)
    wide = page.evaluate(WIDER_THAN_THE_WINDOW)
    assert not wide, f"wider than 1280 px: {wide}"


# Open what is folded; then all blocks whose content is wider than they are.
OPEN_FOLDED = """() => {
    document.querySelectorAll("article details").forEach(e => { e.open = true; });
    document.querySelectorAll(".toggle-hidden").forEach(e => e.classList.remove("toggle-hidden"));
}"""
WIDE_BLOCKS = """() => {
    const blocks = "article pre, article table, article .cell_output, article .cell_output .output,"
        + " article div.math, article mjx-container[display='true'], article figure,"
        + " article mjx-container.own-line";
    return [...document.querySelectorAll(blocks)].filter(e =>
        e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible");
}"""


@pytest.fixture
def opened(page):
    """The page with everything unfolded."""
    page.evaluate(OPEN_FOLDED)
    return page


# As in the middle of a resize, or on paper: narrow, and wide again.
NARROW_AND_WIDE = """() => {
    const article = document.querySelector("article") ?? document.body;
    for (const width of ["1px", ""]) {
        article.style.width = width;
        window.dispatchEvent(new Event("resize"));
    }
    return [...document.querySelectorAll("article mjx-container.scrolls:not([display])")]
        .filter(e => !e.matches(".own-line")).length;
}"""


def test_formulas_lose_the_marks_of_a_narrow_window(page):
    assert page.evaluate(NARROW_AND_WIDE) == 0


@pytest.mark.parametrize("width", [1280, 1440])
def test_no_block_is_cut_or_scrolls(opened, width):
    resize(opened, width)
    cut = opened.evaluate(
        f"""() => ({WIDE_BLOCKS})().map(e => `${{e.tagName}} ${{e.scrollWidth - e.clientWidth}} px `
            + `too wide: ${{e.textContent.trim().slice(0, 80)}}`)"""
    )
    assert not cut, f"at {width} px: {cut}"


def test_names_in_the_contents_are_not_cut(page):
    resize(page, 1280)
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".bd-sidebar-secondary code")].filter(e =>
            e.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent)"""
    )
    assert not cut, f"beyond the window's edge: {cut}"


def test_cells_of_result_tables_are_padded(opened):
    tight = opened.evaluate(
        """() => [...document.querySelectorAll("article .cell_output td")].filter(e =>
            parseFloat(getComputedStyle(e).paddingLeft) < 4).map(e => e.textContent.trim())"""
    )
    assert not tight, f"cells that may touch their neighbours: {tight}"


def test_no_horizontal_overflow_on_a_phone(opened):
    resize(opened, 390)
    wide = opened.evaluate(WIDER_THAN_THE_WINDOW)
    assert not wide, f"wider than 390 px: {wide}"


def test_on_a_phone_no_formula_in_a_sentence_is_cut(opened):
    resize(opened, 390)
    cut = opened.evaluate(
        """() => {
        const edge = document.querySelector("article")?.getBoundingClientRect().right + 1;
        const scrolls = e => e && e.tagName !== "BODY" && (
            /auto|scroll/.test(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1
            || scrolls(e.parentElement));
        return [...document.querySelectorAll("article mjx-container:not([display])")]
            .filter(e => e.getBoundingClientRect().right > edge && !scrolls(e))
            .map(e => e.closest("p, li, td, dd").textContent.trim().slice(0, 80));
        }"""
    )
    assert not cut, f"at 390 px: {cut}"


def test_on_a_phone_a_wide_block_shows_that_it_scrolls(opened):
    resize(opened, 390)
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


# Contrast takes axe milliseconds an element, and there are thousands of them. It depends on the
# computed colour and font of a text and on the grounds beneath it: two texts of each look are
# enough. Kinds of element are told apart, too, since axe does not judge every kind everywhere.
SOME_OF_EACH_LOOK = """() => {
    const grounds = new Map([[null, ""]]), looks = new Map();
    const ground = e => {
        if (!grounds.has(e)) {
            const s = getComputedStyle(e), own = [s.backgroundImage, s.opacity, s.filter].join();
            const clear = own === "none,1,none" && s.backgroundColor === "rgba(0, 0, 0, 0)";
            grounds.set(e, ground(e.parentElement) + (clear ? "" : `/${s.backgroundColor},${own}`));
        }
        return grounds.get(e);
    };
    const shown = { checkOpacity: true, checkVisibilityCSS: true };
    for (const e of document.body.querySelectorAll("*")) {
        const words = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim());
        const box = e.getBoundingClientRect();  // words for screen readers lie in a box of a pixel
        // axe passes over text of one letter
        if (words.join("").length < 2 || !e.checkVisibility(shown) || box.width < 2) continue;
        const s = getComputedStyle(e);
        const kin = [e, e.parentElement].map(k => `${k.tagName}.${k.className}`);
        const look = [s.color, s.fontSize, s.fontWeight, s.textShadow, ground(e), ...kin].join(";");
        looks.set(look, looks.get(look) || []).get(look).push(e);
    }
    // the smallest, since axe takes all that is inside them, too
    const size = e => e.getElementsByTagName("*").length;
    return [...looks.values()].flatMap(alike =>
        alike.map(e => [size(e), e]).sort((a, b) => a[0] - b[0]).slice(0, 2).map(pair => pair[1]));
}"""


def prepare_for_axe(page):
    """Formulas become a word each, nothing fades (a fading colour is measured halfway)."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.evaluate(
        """() => document.querySelectorAll("mjx-container")
            .forEach(e => e.replaceChildren("xyz"))"""
    )
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; }")
    resize(page, 1280)
    page.evaluate(AXE_SCRIPT)


def grave(violations):
    return [
        (rule["id"], node["html"][:160], node["failureSummary"][:200])
        for rule in violations
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:2]
    ]


def too_pale(page, scheme):
    """What axe says of the contrast of texts of each look."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
    return grave(
        page.evaluate(
            f"""() => axe.run({{ include: ({SOME_OF_EACH_LOOK})() }},
                {{ runOnly: ["color-contrast"], resultTypes: ["violations"] }})
                .then(found => found.violations)"""
        )
    )


def test_accessible(page):
    """It comes last, since it takes the formulas from the page. The dark scheme differs from the
    light one in colours alone.
    """
    prepare_for_axe(page)
    others = page.evaluate(
        """() => axe.run(document, { resultTypes: ["violations"],
            rules: { "color-contrast": { enabled: false } } }).then(found => found.violations)"""
    )
    assert not grave(others), grave(others)
    for scheme in ("light", "dark"):
        pale = too_pale(page, scheme)
        assert not pale, (scheme, pale)


@pytest.fixture(scope="module")
def ready_for_axe(browser, html):
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    load(tab, html / "book" / "bipartite" / "auc.html")
    prepare_for_axe(tab)
    yield tab
    tab.close()


@pytest.mark.parametrize(
    "scheme, pale",
    [
        ("light", "article pre .k, article pre .kn { color: #bbb !important; }"),
        ("dark", "html[data-theme=dark] article mjx-container { color: #333 !important; }"),
        ("light", "article .output pre { color: #999 !important; }"),
        ("light", "article p:nth-of-type(7) { color: #aaa !important; }"),
        ("light", "article table.dataframe tr:nth-child(2) { background: #777 !important; }"),
    ],
)
def test_pale_text_is_noticed(ready_for_axe, scheme, pale):
    style = ready_for_axe.add_style_tag(content=pale)
    faults = too_pale(ready_for_axe, scheme)
    style.evaluate("e => e.remove()")
    assert {fault[0] for fault in faults} == {"color-contrast"}


def test_search_finds_a_term(browser, html):
    tab = browser.new_page()
    tab.goto((html / "search.html").as_uri() + "?q=calibrated")
    tab.wait_for_selector("#search-results li a", timeout=10_000)
    assert tab.locator("#search-results li").count() >= 1
    tab.goto((html / "search.html").as_uri() + "?q=xyzzyplugh")
    tab.wait_for_selector("#search-results p")
    assert tab.locator("#search-results li").count() == 0
    tab.close()


class Links(HTMLParser):
    """The anchors of a page, and what it links."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs.get("id"), attrs.get("name") if tag == "a" else None} - {None}
        link = {"a": "href", "link": "href", "img": "src", "script": "src"}.get(tag)
        if link in attrs:
            self.links.append(attrs[link])


def test_no_broken_internal_link(html):
    parsed = {
        name: Links((html / name).read_text(encoding="utf-8")) for name in [*PAGES, "index.html"]
    }
    broken = []
    for name, found in parsed.items():
        for link in found.links:
            if urlsplit(link).scheme:
                continue
            target, anchor = urldefrag(link)
            path = (html / name).parent / unquote(target.split("?")[0]) if target else html / name
            path = Path(os.path.normpath(path))
            if not path.exists():
                broken.append((name, link))
            elif anchor and path.suffix == ".html":
                target = parsed.get(path.relative_to(html).as_posix())
                if target is not None and unquote(anchor) not in target.anchors:
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
