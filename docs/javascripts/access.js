// What the theme leaves to be desired: copy buttons are landmarks without a name of their own, and a table that is
// wider than the page cannot be scrolled by keyboard.
document$.subscribe(() => setTimeout(() => {
  document.querySelectorAll(".md-code__nav").forEach((nav, index) => nav.setAttribute("aria-label", `Code block ${index + 1}`));
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
}));
