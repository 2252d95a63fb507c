// The coverage map: a cell for each segment in corpus order, then one for each skipped path.

const NS = "http://www.w3.org/2000/svg";
const skippedCount = data.status.filter((status) => status === SKIPPED).length;
let columns = 1, cell = 14, cursor = 0;

function drawMap() {
  const box = $("map"), width = Math.max(box.clientWidth, 200), cells = data.segments.length + skippedCount;
  cell = [14, 10, 7, 5, 4].find((size) => cells * size * size <= width * 150) || 3;
  columns = Math.floor(width / cell);
  const paths = { done: "", lost: "", left: "" }, size = cell - (cell > 4 ? 2 : 1);
  const square = (index) => `M${(index % columns) * cell + 1} ${Math.floor(index / columns) * cell + 1}h${size}v${size}h${-size}z`;
  // A failed cell is a triangle, so that it is told by its form too.
  const triangle = (index) => `M${(index % columns) * cell + 1} ${Math.floor(index / columns) * cell + 1 + size}h${size}l${-size / 2} ${-size}z`;
  data.segments.forEach(([, read], index) => { if (read) paths.done += square(index); else paths.lost += triangle(index); });
  for (let index = data.segments.length; index < cells; index++) paths.left += square(index);
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${columns * cell} ${Math.ceil(cells / columns) * cell + 1}`);
  for (const [name, d] of Object.entries({ ...paths, here: square(cursor) })) {
    const path = document.createElementNS(NS, "path");
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    svg.append(path);
  }
  svg.style.maxWidth = columns * cell + "px";
  box.replaceChildren(svg);
  for (const [name, value] of [["valuemin", 1], ["valuemax", cells], ["valuenow", cursor + 1], ["valuetext", says(cursor)]]) box.setAttribute("aria-" + name, value);
}

function says(index) {
  if (index >= data.segments.length) {
    const entry = data.status.indexOf(SKIPPED) + index - data.segments.length;
    return `Skipped: ${visible(pathOf(entry))} (${visible(noteOf(entry))})`;
  }
  const [key, read, path, line] = data.segments[index];
  const from = path < 0 ? "" : ` · from ${visible(data.paths[path])}:${line.toLocaleString("en")}`;
  return `Segment ${index + 1}: ${read ? "read" : "failed"} · ${visible(key)}${from}`;
}

function point(index) {
  if (!(index >= 0 && index < data.segments.length + skippedCount)) return;
  cursor = index;
  $("map-says").textContent = says(index);
  drawMap();
}

function open(index) {
  clear();
  if (index < data.segments.length) segment = index;
  else $("by-status").value = SKIPPED;
  filter();
  if (segment < 0) choose(index - data.segments.length);
}

function cellAt(event) {
  const box = $("map").firstChild.getBoundingClientRect(), scale = columns * cell / box.width;
  return Math.floor((event.clientY - box.top) * scale / cell) * columns + Math.floor((event.clientX - box.left) * scale / cell);
}

function legend() {
  const failed = data.segments.filter(([, read]) => !read).length;
  const signs = [["done", "M1 1h10v10h-10z", `${(data.segments.length - failed).toLocaleString("en")} segments read`],
    ["lost", "M1 11h10l-5 -10z", `${failed.toLocaleString("en")} failed`],
    ["left", "M1.5 1.5h9v9h-9z", `${skippedCount.toLocaleString("en")} skipped`]];
  for (const [name, d, words] of signs) {
    const svg = document.createElementNS(NS, "svg"), path = document.createElementNS(NS, "path");
    svg.setAttribute("viewBox", "0 0 12 12");
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    svg.append(path);
    $("legend").append(element("li", {}, svg, words));
  }
}
