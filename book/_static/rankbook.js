// Mends what the theme leaves short of the accessibility rules.
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
  // What scrolls sideways must be reachable with the keyboard.
  const scrolls = "article pre, article .cell_output, article div.math, article .table-wrapper, " +
    "article .pst-scrollable-table-container, article mjx-container[display='true']";
  const reach = () => document.querySelectorAll(scrolls).forEach((box) => {
    if (box.scrollWidth > box.clientWidth + 1 && !box.hasAttribute("tabindex")) {
      box.setAttribute("tabindex", "0");
    }
  });
  reach();
  window.addEventListener("resize", reach);
  window.addEventListener("load", () => {
    const typeset = window.MathJax?.startup?.promise;
    if (typeset) typeset.then(reach);
  });
});
