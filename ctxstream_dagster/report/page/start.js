// What starts the page, listens to the keyboard and prints.

function options() {
  const counts = NAMES.map(() => 0);
  for (const status of data.status) counts[status]++;
  const choices = [["", "everything", total], ["counted", "all counted", counts[COUNTED] + counts[UNGROUNDED] + counts[MODEL_COUNTED]]];
  NAMES.forEach((name, status) => { if (status !== COUNTED && counts[status]) choices.push([status, name, counts[status]]); });
  for (const [value, name, number] of choices) {
    $("by-status").append(element("option", { value }, `${name} (${number.toLocaleString("en")})`));
  }
  $("all-keys").append(...data.keys.slice(0, 1000).map(([key, value]) => element("option", { value: visible(key) }, value)));
  $("all-files").append(...data.paths.slice(0, 1000).map((path) => element("option", { value: visible(path) })));
}

function keyboard(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return clear();
  if (typing) return;
  const moves = { n: 1, j: 1, p: -1, k: -1 };
  const page = Math.floor($("list").clientHeight / ROW_PX);
  if (event.target.id === "list") Object.assign(moves, { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -total, End: total });
  if (event.target.id === "map") {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    if (event.key === "Enter") open(cursor);
    else if (event.key in steps) point(cursor + steps[event.key]);
    else return;
    return event.preventDefault();
  }
  if (event.key === "/") $("by-text").focus();
  else if (event.key in moves) step(moves[event.key]);
  else return;
  event.preventDefault();
}

function printable() {
  const rows = shown.slice(0, PRINTED).map((entry) => element("tr", {},
    element("td", {}, isCounted(data.status[entry]) ? visible(keyOf(entry)) + timesOf(entry) : NAMES[data.status[entry]]),
    element("td", {}, where(entry)),
    element("td", {}, element("bdi", {}, visible(isCounted(data.status[entry]) ? unitOf(entry, 300) : noteOf(entry))))));
  const left = shown.length - rows.length;
  $("print").replaceChildren(element("table", {}, ...rows), left > 0 ? `and ${left.toLocaleString("en")} more; filter to print others.` : "");
}

options();
legend();
for (const id of ["by-key", "by-file", "by-text"]) $(id).addEventListener("input", filter);
$("by-status").addEventListener("change", filter);
$("by-segment").addEventListener("click", () => { segment = -1; filter(); });
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("previous").addEventListener("click", () => step(-1));
$("next").addEventListener("click", () => step(1));
$("list").addEventListener("scroll", drawRows);
$("map").addEventListener("mousemove", (event) => point(cellAt(event)));
$("map").addEventListener("click", (event) => { point(cellAt(event)); open(cursor); });
$("map").addEventListener("focus", () => point(cursor));
document.addEventListener("keydown", keyboard);
addEventListener("resize", () => { drawMap(); drawRows(); });
addEventListener("beforeprint", printable);
// A link may name what to show: report.html#status=3&key=open
const asked = new URLSearchParams(location.hash.slice(1));
for (const name of ["key", "file", "status", "text"]) if (asked.has(name)) $("by-" + name).value = asked.get(name);
drawMap();
filter();
