"use strict";
// What is listed: filters, the choice, and the rows in view.
// Everything from the corpus or the model is put into the page as text nodes only; nothing is ever parsed as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const COUNTED = 0, UNGROUNDED = 1, MODEL_COUNTED = 2, REJECTED = 3, FAILED = 4, SKIPPED = 5;
const NAMES = ["counted", "counted, key not in its unit", "counted by the model", "rejected", "segment failed", "skipped"];
const COLOURS = { [REJECTED]: "var(--warn)", [FAILED]: "var(--bad)", [SKIPPED]: "var(--muted)" };
const BEFORE = { [UNGROUNDED]: "not in its unit: ", [MODEL_COUNTED]: "in all of: " };
const isCounted = (status) => status <= MODEL_COUNTED;
const ROW_PX = 48, AROUND_LINES = 22, LONGEST_SHOWN = 4000, PRINTED = 1000;
const $ = (id) => document.getElementById(id);
const total = data.status.length;

let shown = [];      // entries that pass the filters
let at = -1;         // position of the chosen one in `shown`
let segment = -1;    // filter by segment
let drawn = "";      // what the rows on the screen show

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// What cannot be seen or turns the reading direction becomes a sign of itself.
function visible(text) {
  return text.replace(/[\x00-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\x7f/g, "\u2421")
    .replace(/[\x80-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      (c) => "⟨U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩");
}

const keyOf = (entry) => data.key[entry] < 0 ? "" : data.keys[data.key[entry]][0];
const pathOf = (entry) => data.paths[data.path[entry]];
const noteOf = (entry) => data.notes[data.note[entry]];
const colourOf = (entry) => COLOURS[data.status[entry]] || `var(--k${Math.min(data.key[entry], data.coloured)})`;
const timesOf = (entry) => data.value ? " × " + data.value[entry] : "";
const where = (entry) => visible(pathOf(entry)) + (data.line[entry] ? ":" + data.line[entry].toLocaleString("en") : "");

// In the list a file's name is enough; the source pane has the whole path.
const near = (entry) => where(entry).replace(/^.*\//, "");

function unitOf(entry, limit) {
  const place = data.place[entry];
  return place ? data.chunks[place[0]][2].substr(place[1], Math.min(place[2] || limit, limit)) : "";
}

function matcher(typed, known) {
  if (!typed) return null;
  if (known.has(typed)) return (value) => value === typed;
  const part = typed.toLowerCase();
  return (value) => value.toLowerCase().includes(part);
}

const knownKeys = new Set(data.keys.map(([key]) => visible(key)));
const knownPaths = new Set(data.paths.map(visible));

function passing(values, typed, known) {
  const matches = matcher(typed, known);
  return matches ? values.map((value) => matches(visible(value))) : null;
}

function filter() {
  const chosen = shown[at];
  const keys = passing(data.keys.map(([key]) => key), $("by-key").value, knownKeys);
  const paths = passing(data.paths, $("by-file").value, knownPaths);
  const status = $("by-status").value, text = $("by-text").value.toLowerCase();
  shown = [];
  for (let entry = 0; entry < total; entry++) {
    const own = data.status[entry];
    if (keys && !(data.key[entry] >= 0 && keys[data.key[entry]])) continue;
    if (paths && !paths[data.path[entry]]) continue;
    if (status === "counted" ? !isCounted(own) : status !== "" && own !== Number(status)) continue;
    if (segment >= 0 && data.segment[entry] !== segment) continue;
    if (text && !(unitOf(entry, LONGEST_SHOWN) + "\n" + noteOf(entry)).toLowerCase().includes(text)) continue;
    shown.push(entry);
  }
  $("by-segment").hidden = segment < 0;
  $("by-segment").textContent = segment < 0 ? "" : `Segment ${segment + 1} ✕`;
  $("rows").style.height = shown.length * ROW_PX + "px";
  $("list").scrollTop = 0;
  drawn = "";
  const kept = shown.indexOf(chosen);
  choose(shown.length ? Math.max(kept, 0) : -1);
}

function clear() {
  for (const id of ["by-key", "by-file", "by-status", "by-text"]) $(id).value = "";
  segment = -1;
  filter();
}

function choose(position) {
  at = position;
  $("previous").disabled = at <= 0;
  $("next").disabled = at < 0 || at >= shown.length - 1;
  const counted = shown.length.toLocaleString("en");
  $("count").textContent = at < 0 ? `0 of ${total.toLocaleString("en")}` : `${(at + 1).toLocaleString("en")} of ${counted}`;
  if (at >= 0) {
    const list = $("list"), top = at * ROW_PX;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + ROW_PX > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_PX - list.clientHeight;
  }
  drawRows();
  drawSource();
}

// Only the rows in view exist, so that ten thousand open as fast as ten.
function drawRows() {
  const list = $("list");
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_PX) - 6);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_PX) + 6);
  const seen = [first, last, at, shown.length].join();
  if (seen === drawn) return;
  drawn = seen;
  const rows = [];
  for (let position = first; position < last; position++) rows.push(row(position));
  if (!shown.length) rows.push(element("p", { className: "empty" }, "Nothing matches. Esc clears the filters."));
  $("rows").replaceChildren(...rows);
  if (at >= first && at < last) list.setAttribute("aria-activedescendant", "row-" + at);
  else list.removeAttribute("aria-activedescendant");
}

function row(position) {
  const entry = shown[position], status = data.status[entry];
  const title = isCounted(status) ? visible(keyOf(entry)) + timesOf(entry) : NAMES[status];
  const under = isCounted(status) ? unitOf(entry, 200) : noteOf(entry);
  const made = element("div", { className: "row", id: "row-" + position },
    element("div", {}, element("b", { dir: "auto" }, title), element("span", { title: where(entry) }, near(entry))),
    element("small", { dir: "auto" }, (BEFORE[status] || "") + visible(under)));
  made.style.top = position * ROW_PX + "px";
  made.style.setProperty("--k", colourOf(entry));
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", position === at);
  made.setAttribute("aria-posinset", position + 1);
  made.setAttribute("aria-setsize", shown.length);
  made.addEventListener("click", () => choose(position));
  return made;
}

function step(by) {
  if (shown.length) choose(Math.min(Math.max(at + by, 0), shown.length - 1));
}
