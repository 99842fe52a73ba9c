// Files as a map of time against size, coloured by what the query would read.

import { bytes, count, moment, plural, time } from "./format.js";
import { byId, canvas, color, font, show } from "./dom.js";
import { timeTicks } from "./ticks.js";

const PER_DOUBLING = 4;
const LEFT = 52;
const BOTTOM = 18;
const TICK_WIDTH = 90; // of a mark of time and what it keeps off the next

// Cells of one map, whatever their width: `at(width)` gives them as wide as another map's are.
class Cells {
  constructor() {
    this.clear();
  }

  clear() {
    this.widthMs = 1000;
    this.cells = new Map(); // "time,size" to [files, bytes]
    this.files = 0;
    this.bytes = 0;
    this.withoutTime = 0;
  }

  take(news) {
    if (news.is_whole) this.cells.clear();
    this.widthMs = news.width_ms;
    this.files = news.files;
    this.bytes = news.bytes;
    this.withoutTime = news.without_time;
    for (const [at, size, files, total] of news.cells) this.cells.set(`${at},${size}`, [at, size, files, total]);
  }

  at(widthMs) {
    const ratio = widthMs / this.widthMs;
    const found = new Map();
    for (const [at, size, files, total] of this.cells.values()) {
      const wide = Math.floor(at / ratio);
      const key = `${wide},${size}`;
      const cell = found.get(key) ?? [wide, size, 0, 0];
      found.set(key, [wide, size, cell[2] + files, cell[3] + total]);
    }
    return found;
  }
}

export class FileMap {
  constructor() {
    this.all = new Cells();
    this.read = null; // null: the query says nothing of single files
    this.remark = ""; // what it says of all of them
    this.isAllRead = false; // whether it may read any of them
    this.fresh = []; // [path, size, time] of files of later versions
    this.added = none(); // by later versions
    this.removed = none();
    this.failure = "";
    this.version = null; // whose files these are; null: it is not known yet
    this.isWhole = false;
    this.chosen = null;
    this.shape = null;
    const made = canvas(byId("map"), "Map of the files", (...drawn) => this.#draw(...drawn));
    this.canvas = made.element;
    this.redraw = made.redraw;
    this.canvas.tabIndex = 0;
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.#point(event));
  }

  clear(version = null) {
    this.all.clear();
    this.read = null;
    this.remark = "";
    this.isAllRead = false;
    this.fresh = [];
    this.added = none();
    this.removed = none();
    this.failure = "";
    this.version = version;
    this.isWhole = false;
    this.chosen = null;
    this.#tell();
  }

  // There is no map: `text` says why.
  fail(text) {
    this.clear();
    this.failure = text;
    this.#tell();
  }

  // As facts of a table have them.
  counts() {
    return { num_files: this.all.files, size_bytes: this.all.bytes };
  }

  takeAll(news) {
    this.all.take(news);
    this.#tell();
  }

  beginRead() {
    this.read = new Cells();
    this.read.isWhole = false;
  }

  takeRead(news) {
    this.read.take(news);
    this.#tell();
  }

  endRead() {
    this.read.isWhole = true;
    this.#tell();
  }

  noRead(remark = "", isAllRead = false) {
    this.read = null;
    this.remark = remark;
    this.isAllRead = isAllRead;
    this.#tell();
  }

  end() {
    this.isWhole = true;
    this.#tell();
  }

  // `files`: those of them that are shown; `added`, `removed`: how many there are, and whether that is all.
  addFresh(files, added, removed) {
    this.fresh = [...files, ...this.fresh].slice(0, 1000);
    this.added = together(this.added, added);
    this.removed = together(this.removed, removed);
    this.#tell();
  }

  #tell() {
    const text = this.failure || (this.version === null ? "being looked for" : this.#counted());
    byId("map-state").textContent = text;
    // Spoken once it stands: while files stream in it changes several times a second.
    if (this.failure || (this.isWhole && this.read?.isWhole !== false)) byId("map-spoken").textContent = text;
    this.canvas.setAttribute("aria-label", `Map of the files by time and size: ${text}`);
    this.#legend();
    this.redraw();
  }

  // Only colours that are on the map: `read` beside a map of a query that reads nothing of it would be a lie.
  #legend() {
    show(byId("map-legend"), this.all.files + this.added.files > 0);
    show(byId("legend-plain"), !this.read && !this.isAllRead);
    show(byId("legend-read"), this.read !== null || this.isAllRead);
    show(byId("legend-skipped"), this.read !== null);
    show(byId("legend-fresh"), this.added.files > 0);
  }

  #counted() {
    const { files, bytes: size, withoutTime } = this.all;
    const isOld = isAny(this.added) || isAny(this.removed);
    const at = isOld ? ` at version ${count(this.version)}` : "";
    const parts = [`${plural(files, "live file")}, ${bytes(size)}${at}${this.isWhole ? "" : " so far"}`];
    if (this.read) {
      const soFar = this.read.isWhole && this.isWhole ? "" : " so far";
      parts.push(`the query reads ${count(this.read.files)} and skips ${count(Math.max(0, files - this.read.files))}${soFar}`);
    }
    if (!this.read && this.remark && files) parts.push(this.remark);
    if (isAny(this.added)) parts.push(`${told(this.added)} new since the map was drawn`);
    if (isAny(this.removed)) parts.push(`${told(this.removed)} removed since ${isAny(this.added) ? "then" : "the map was drawn"}`);
    if (withoutTime) parts.push(`${count(withoutTime)} without a time`);
    return parts.join("; ");
  }

  // Cells of all files and of those that are read, equally wide.
  #cells() {
    const widthMs = Math.max(this.all.widthMs, this.read?.widthMs ?? 0);
    return { widthMs, all: this.all.at(widthMs), read: this.read?.at(widthMs) ?? null };
  }

  #layout(width, height) {
    const cells = this.#cells();
    const { widthMs, all } = cells;
    if (!all.size) return null;
    let [first, last, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [at, size] of all.values()) {
      first = Math.min(first, at);
      last = Math.max(last, at);
      low = Math.min(low, size);
      high = Math.max(high, size);
    }
    for (const [, size, at] of this.fresh) {
      last = Math.max(last, Math.floor(at / widthMs));
      high = Math.max(high, sizeCell(size));
      low = Math.min(low, sizeCell(size));
    }
    const inner = [width - LEFT - 4, height - BOTTOM - 4];
    const [columns, lines] = [last - first + 1, high - low + 1];
    return {
      ...cells, first, last, low, high,
      stepX: inner[0] / Math.max(columns, 8), stepY: inner[1] / Math.max(lines, 4), bottom: height - BOTTOM, width,
    };
  }

  #draw(context, width, height) {
    const shape = this.#layout(width, height);
    this.shape = shape;
    context.font = font(11);
    context.fillStyle = color("--soft");
    if (!shape) {
      context.fillText(this.failure ? "" : this.isWhole ? "no files" : "…", LEFT, height / 2);
      return;
    }
    drawAxes(context, shape);
    let most = 1;
    for (const cell of shape.all.values()) most = Math.max(most, cell[2]);
    const readColor = color("--read");
    const restColor = color(shape.read ? "--skipped" : this.isAllRead ? "--read" : "--plain");
    for (const [key, [at, size, files]] of shape.all) {
      const [x, y, w, h] = place(shape, at, size);
      const read = shape.read ? Math.min(files, shape.read.get(key)?.[2] ?? 0) : 0;
      const depth = 0.35 + 0.65 * (Math.log1p(files) / Math.log1p(most));
      context.globalAlpha = depth;
      context.fillStyle = restColor;
      context.fillRect(x, y, w, h);
      if (read) {
        context.globalAlpha = 1;
        context.fillStyle = readColor;
        const part = Math.max(2, h * (read / files));
        context.fillRect(x, y + h - Math.min(h, part), w, Math.min(h, part));
      }
    }
    context.globalAlpha = 1;
    context.fillStyle = color("--fresh");
    for (const [, size, at] of this.fresh) {
      const [x, y, w, h] = place(shape, Math.floor(at / shape.widthMs), sizeCell(size));
      context.fillRect(x, y, Math.max(w, 3), Math.max(h, 3));
    }
    if (this.chosen && shape.all.has(this.chosen)) {
      const [at, size] = shape.all.get(this.chosen);
      const [x, y, w, h] = place(shape, at, size);
      context.strokeStyle = color("--text");
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, w + 2, h + 2);
    }
  }

  #choose(key, { all, read, widthMs }) {
    const cell = all.get(key);
    if (!cell) return;
    this.chosen = key;
    const [at, size, files, total] = cell;
    const from = at * widthMs;
    const ofThem = read ? `; ${count(Math.min(files, read.get(key)?.[2] ?? 0))} read` : "";
    byId("map-cell").textContent =
      `${time(from)} to ${moment(from + widthMs)}, ${bytes(2 ** (size / PER_DOUBLING))} to ` +
      `${bytes(2 ** ((size + 1) / PER_DOUBLING))}: ${plural(files, "file")}, ${bytes(total)}${ofThem}`;
    this.redraw();
  }

  #point(event) {
    if (!this.shape) return;
    const box = this.canvas.getBoundingClientRect();
    const at = Math.floor((event.clientX - box.left - LEFT) / this.shape.stepX) + this.shape.first;
    const size = Math.floor((this.shape.bottom - (event.clientY - box.top)) / this.shape.stepY) + this.shape.low;
    this.#choose(`${at},${size}`, this.shape);
  }

  // Keys need no picture: they may come before the first frame.
  #key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const known = this.#cells();
    if (!step || !known.all.size) return;
    event.preventDefault();
    const cells = [...known.all.values()];
    const from = known.all.get(this.chosen);
    if (!from) {
      const newest = cells.reduce((best, cell) => (cell[0] > best[0] ? cell : best));
      this.#choose(`${newest[0]},${newest[1]}`, known);
      return;
    }
    // The nearest cell that lies in that direction; across counts double, so that lines are kept.
    const [along, across] = step[0] ? [0, 1] : [1, 0];
    const sign = step[along];
    let best = null;
    for (const cell of cells) {
      const forward = (cell[along] - from[along]) * sign;
      if (forward <= 0) continue;
      const far = forward + 2 * Math.abs(cell[across] - from[across]);
      if (!best || far < best[0]) best = [far, cell];
    }
    if (best) this.#choose(`${best[1][0]},${best[1][1]}`, known);
  }
}

// Counts of files that may be more: `isAll` is false then.
function none() {
  return { files: 0, isAll: true };
}

function together(one, other) {
  return { files: one.files + other.files, isAll: one.isAll && other.isAll };
}

function isAny({ files, isAll }) {
  return files > 0 || !isAll;
}

function told({ files, isAll }) {
  return `${isAll ? "" : "at least "}${count(files)}`;
}

function sizeCell(size) {
  return Math.floor(PER_DOUBLING * Math.log2(Math.max(size, 1)));
}

function place(shape, at, size) {
  const x = LEFT + (at - shape.first) * shape.stepX;
  const y = shape.bottom - (size - shape.low + 1) * shape.stepY;
  return [x, y, Math.max(1, shape.stepX - 0.5), Math.max(1, shape.stepY - 0.5)];
}

function drawAxes(context, shape) {
  context.strokeStyle = color("--line");
  context.beginPath();
  context.moveTo(LEFT, 0);
  context.lineTo(LEFT, shape.bottom);
  context.lineTo(shape.width, shape.bottom);
  context.stroke();
  context.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(16 / shape.stepY));
  for (let size = shape.low; size <= shape.high + 1; size += every) {
    const y = shape.bottom - (size - shape.low) * shape.stepY;
    context.fillText(bytes(2 ** (size / PER_DOUBLING)), 2, Math.max(6, y));
  }
  context.textBaseline = "alphabetic";
  const [from, to] = [shape.first * shape.widthMs, (shape.last + 1) * shape.widthMs];
  context.textAlign = "center";
  const room = (shape.last - shape.first + 1) * shape.stepX; // few files do not fill the map
  let free = -Infinity;
  for (const { at, text } of timeTicks(from, to, Math.floor(room / TICK_WIDTH))) {
    const x = LEFT + ((at - from) / shape.widthMs) * shape.stepX;
    const half = context.measureText(text).width / 2;
    const middle = Math.min(x, shape.width - half);
    context.fillRect(x, shape.bottom, 1, 3);
    if (middle - half < free) continue; // marks at both ends of a step that is narrower than they are
    free = middle + half + 4;
    context.fillText(text, middle, shape.bottom + 14);
  }
  context.textAlign = "left";
}
