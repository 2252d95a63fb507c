// The source pane: the lines around the chosen entry, every unit in view marked by its keys.

const entriesOf = new Map();  // chunk -> entries by place
for (let entry = 0; entry < total; entry++) {
  const place = data.place[entry];
  if (!place) continue;
  if (!entriesOf.has(place[0])) entriesOf.set(place[0], []);
  entriesOf.get(place[0]).push(entry);
}
for (const list of entriesOf.values()) list.sort((a, b) => data.place[a][1] - data.place[b][1] || a - b);

function drawSource() {
  const entry = shown[at], pane = $("source");
  if (entry === undefined) return pane.replaceChildren();
  const status = data.status[entry];
  const about = [NAMES[status]];
  if (data.segment[entry] >= 0) about.push("segment " + visible(data.segments[data.segment[entry]][0]));
  const head = element("header", {}, element("b", { dir: "ltr" }, where(entry)), element("p", {}, about.join(" · ")));
  if (status === MODEL_COUNTED) head.append(element("p", {}, "The model added up by itself in the marked text: no single line stands behind this number."));
  if (!isCounted(status)) head.append(element("p", { dir: "auto" }, visible(noteOf(entry))));
  const place = data.place[entry];
  pane.replaceChildren(head, place ? lines(entry, place) : element("p", { className: "gap" }, "There is no source text to show."));
  const chosen = pane.querySelector(".chosen");
  pane.scrollTop = chosen ? Math.max(0, chosen.offsetTop - pane.offsetTop - 120) : 0;
}

function lines(entry, [chunk, start, length]) {
  const [, firstLine, text] = data.chunks[chunk];
  const stop = start + Math.min(length, LONGEST_SHOWN);
  const from = reach(text, start, -1), to = reach(text, stop, 1);
  const units = unitsBetween(chunk, from, to);
  const body = element("div", { className: "text" });
  if (from > 0 || firstLine > 1 && !data.whole) body.append(gap(from, "above"));
  let number = firstLine + count(text, 0, from), position = from;
  while (position < to || position === from) {
    let end = text.indexOf("\n", position);
    if (end < 0 || end > to) end = to;
    const shape = element("bdi", { dir: "auto" });
    fill(shape, text, position, text[end - 1] === "\r" && end > position ? end - 1 : end, units, entry);
    body.append(element("div", { className: "line" }, element("i", {}, String(number)), shape));
    number++;
    position = end + 1;
  }
  if (length > LONGEST_SHOWN) body.append(element("p", { className: "gap" }, `${(length - LONGEST_SHOWN).toLocaleString("en")} more characters of this unit`));
  else if (to < text.length || !data.whole) body.append(gap(text.length - to, "below"));
  return body;
}

function gap(characters, side) {
  const more = characters > 0 ? `${characters.toLocaleString("en")} more characters ${side}` : "more text " + side;
  return element("p", { className: "gap" }, data.whole ? more : `${more}; this page leaves out text far from any entry`);
}

// Where the lines around a place start (way -1) or end (way 1); a line of more than LONGEST_SHOWN characters is cut.
function reach(text, position, way) {
  const limit = way < 0 ? Math.max(0, position - LONGEST_SHOWN) : Math.min(text.length, position + LONGEST_SHOWN);
  let reached = limit;
  for (let lines = 0; lines <= AROUND_LINES; lines++) {
    const found = way > 0 ? text.indexOf("\n", position) : position > 0 ? text.lastIndexOf("\n", position - 1) : -1;
    if (found < 0) return limit === 0 || limit === text.length ? limit : reached;
    if (way < 0 ? found < limit : found > limit) return reached;
    reached = way < 0 ? found + 1 : found;
    position = way < 0 ? found : found + 1;
  }
  return reached;
}

function count(text, from, to) {
  let lines = 0;
  for (let found = text.indexOf("\n", from); found >= 0 && found < to; found = text.indexOf("\n", found + 1)) lines++;
  return lines;
}

// Units with their entries, those of one place together.
function unitsBetween(chunk, from, to) {
  const units = new Map();
  for (const entry of entriesOf.get(chunk)) {
    const [, start, length] = data.place[entry];
    if (start >= to) break;
    if (!length || start + length <= from) continue;
    if (!units.has(start)) units.set(start, { start, end: start + length, entries: [] });
    units.get(start).entries.push(entry);
  }
  return [...units.values()];
}

function fill(target, text, from, to, units, chosen) {
  let position = from;
  for (const unit of units) {
    if (unit.end <= from || unit.start > to || (unit.start === to && to > from)) continue;
    const begin = Math.max(unit.start, position), end = Math.min(unit.end, to);
    if (end < begin) continue;
    target.append(visible(text.slice(position, begin)));
    target.append(marked(text.slice(begin, end), unit, { chosen, first: begin === unit.start }));
    position = end;
  }
  target.append(visible(text.slice(position, to)));
}

function marked(text, unit, { chosen, first }) {
  const lead = unit.entries.includes(chosen) ? chosen : unit.entries[0];
  const made = element("mark", { className: unit.entries.includes(chosen) ? "chosen" : "" });
  made.style.setProperty("--k", colourOf(lead));
  made.addEventListener("click", () => visit(unit.entries[0]));
  emphasise(made, text, unit.entries.filter((entry) => data.status[entry] === COUNTED).map(keyOf));
  if (!first) return made;
  const tags = unit.entries.slice(0, 12).map((entry) => {
    const status = data.status[entry];
    const words = status === REJECTED ? "rejected" : visible(keyOf(entry)).slice(0, 60) + (status === MODEL_COUNTED ? timesOf(entry) : "");
    const tag = element("span", { className: status === COUNTED ? "tag" : "tag loose", title: NAMES[status] }, words);
    tag.style.setProperty("--k", colourOf(entry));
    return tag;
  });
  const both = document.createDocumentFragment();
  both.append(made, ...tags);
  return both;
}

// Underline the keys where they stand, a whole word before a part of one.
function emphasise(target, text, keys) {
  const low = text.toLowerCase(), hits = [];
  for (const key of new Set(keys)) {
    const wanted = key.toLowerCase();
    if (!wanted || low.length !== text.length) continue;
    const found = [];
    for (let start = low.indexOf(wanted); start >= 0; start = low.indexOf(wanted, start + wanted.length)) found.push(start);
    const word = (start) => !/\w/.test(low[start - 1] || " ") && !/\w/.test(low[start + wanted.length] || " ");
    const whole = found.filter(word);
    for (const start of whole.length ? whole : found) hits.push([start, start + wanted.length]);
  }
  hits.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let position = 0;
  for (const [start, end] of hits) {
    if (start < position) continue;
    target.append(visible(text.slice(position, start)), element("u", {}, visible(text.slice(start, end))));
    position = end;
  }
  target.append(visible(text.slice(position)));
}

function visit(entry) {
  const position = shown.indexOf(entry);
  if (position >= 0) return choose(position);
  clear();
  choose(shown.indexOf(entry));
}
