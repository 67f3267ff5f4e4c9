// Opens the folded section that an address names, and says which tables are wider than the screen.
function open_named() {
  const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let each = named; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  if (named) named.scrollIntoView();
}
function hint_wide_tables() {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    const before = wrap.previousElementSibling;
    const hinted = before !== null && before.className === "hint";
    const wide = wrap.scrollWidth > wrap.clientWidth + 1;
    if (wide && !hinted) {
      const hint = document.createElement("p");
      hint.className = "hint";
      hint.textContent = "Scroll the table sideways to see all columns →";
      wrap.before(hint);
    } else if (!wide && hinted) before.remove();
  }
}
addEventListener("hashchange", open_named);
addEventListener("resize", hint_wide_tables);
addEventListener("load", () => { open_named(); setTimeout(hint_wide_tables, 200); });
document.addEventListener("toggle", hint_wide_tables, true);
