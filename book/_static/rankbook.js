// Mends what the theme leaves short of the accessibility rules, and shows what scrolls.
document.addEventListener("DOMContentLoaded", () => {
  // The arrow that unfolds a chapter of the sidebar says which one.
  document.querySelectorAll("nav details > summary").forEach((arrow) => {
    const name = arrow.closest("li")?.querySelector("a")?.textContent.trim();
    arrow.setAttribute("aria-label", `Pages of ${name || "this section"}`);
  });
  // All of the sidebar is navigation, its title and search box too.
  const sidebar = document.querySelector(".bd-sidebar-primary");
  sidebar?.setAttribute("role", "navigation");
  sidebar?.setAttribute("aria-label", "Book");

  // An identifier that fits on a phone's line stays whole. A longer one may break after a dot or a
  // bracket, and after an underscore only where that does not help. So does a line of code, which
  // has spaces. The contents beside a page have room for half of that, and break before capitals.
  const [line, aside] = [30, 15];
  document.querySelectorAll("article :not(pre) > code, .bd-sidebar-secondary code, article .sig-name")
    .forEach((code) => {
      const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
      const whole = code.closest(".bd-sidebar-secondary") ? aside : line;
      const texts = [];
      while (walker.nextNode()) texts.push(walker.currentNode);
      if (code.textContent.length <= whole && !/\s/.test(code.textContent)) {
        code.classList.add("whole");
        return;
      }
      texts.filter((text) => text.length > 12).forEach((text) => {
        const pieces = text.data.split(/(?<=[.,(/=])(?![.,])/).flatMap((piece) =>
          piece.length <= whole ? [piece]
            : piece.split(whole === aside ? /(?<=_)|(?<=[a-z])(?=[A-Z])/ : /(?<=_)/));
        text.replaceWith(...pieces.flatMap((piece, i) =>
          i ? [document.createElement("wbr"), piece] : [piece]));
      });
    });

  // What scrolls sideways is reachable with the keyboard, and fades on the side that hides more.
  const boxes = "article pre, article .cell_output, article .cell_output .output, article div.math, " +
    "article table, article .pst-scrollable-table-container, article mjx-container[display='true'], " +
    "article mjx-container.own-line";
  const mark = (box) => {
    const hidden = box.scrollWidth - box.clientWidth;
    const scrolls = hidden > 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
    box.classList.toggle("scrolls", scrolls);
    box.classList.toggle("more-left", scrolls && box.scrollLeft > 1);
    box.classList.toggle("more-right", scrolls && box.scrollLeft < hidden - 1);
    if (scrolls && box.tabIndex < 0) box.tabIndex = 0;
  };
  // A formula in a sentence that is longer than the line gets a line of its own, which scrolls.
  const isolate = (formula) => {
    // Without the marks of a narrower window, or of one that is being resized.
    formula.classList.remove("own-line", "scrolls", "more-left", "more-right");
    const room = formula.closest("p, li, dd, dt, figcaption, div")?.clientWidth;
    const long = formula.getBoundingClientRect().width > room + 1;
    formula.classList.toggle("own-line", long && !formula.closest("table"));
  };
  const markAll = () => {
    document.querySelectorAll("article mjx-container:not([display])").forEach(isolate);
    document.querySelectorAll(boxes).forEach(mark);
  };
  document.addEventListener("scroll", (event) => {
    if (event.target.matches?.(".scrolls")) mark(event.target);
  }, true);
  // A folded block has no width until it is opened.
  document.addEventListener("toggle", markAll, true);
  document.addEventListener("click", () => setTimeout(markAll, 50));
  window.addEventListener("resize", markAll);
  window.addEventListener("load", () => {
    markAll();
    const typeset = window.MathJax?.startup?.promise;
    if (typeset) typeset.then(markAll);
  });
  markAll();

  // Paper is white, whatever the screen was.
  let theme = null;
  window.matchMedia("print").addEventListener("change", (paper) => {
    const root = document.documentElement;
    if (paper.matches) theme = root.dataset.theme;
    root.dataset.theme = paper.matches ? "light" : theme;
  });
});
