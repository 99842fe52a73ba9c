// A result as a picture: a time series where a column is a time, bars otherwise.

import { byId, canvas, color, font, make } from "./dom.js";
import { count, moment, plural, shown } from "./format.js";
import { timeTicks } from "./ticks.js";

const TIME = /^(timestamp|date|datetime)/;
const NUMBER = /^(u?int|float|double|decimal|long|real)/;
const [LEFT, TOP, BOTTOM] = [64, 10, 22];
const TICK_WIDTH = 100; // of a mark of time and what it keeps off the next
const BARS_MAX = 60;
const SERIES_MAX = 12;
const HUES = [195, 25, 130, 275, 330, 60, 220, 0, 165, 300, 90, 245];

export class Chart {
  constructor(onKind) {
    this.panel = byId("panel-chart");
    this.onKind = onKind;
    this.kind = "auto";
    this.result = null;
  }

  clear() {
    this.result = null;
    this.panel.replaceChildren();
  }

  // `visualization`: what `render` of KQL asks for.
  show(columns, rows, visualization) {
    this.result = { columns, rows, visualization };
    this.draw();
  }

  setKind(kind) {
    this.kind = ["auto", "time", "bars"].includes(kind) ? kind : "auto";
  }

  draw() {
    if (!this.result) return;
    const { columns, rows, visualization } = this.result;
    const found = chosen(columns, rows, this.kind, visualization);
    const select = make("select", { id: "chart-kind" },
      ...[["auto", "automatic"], ["time", "time series"], ["bars", "bars"]].map(([value, text]) => {
        const option = make("option", { value }, text);
        option.selected = value === this.kind;
        return option;
      }));
    select.addEventListener("change", () => {
      this.setKind(select.value);
      this.onKind(this.kind);
      this.draw();
      byId("chart-kind").focus();
    });
    const parent = make("div", { class: "canvas chart" });
    parent.hidden = found.kind === "none";
    const told = make("p", { class: "hint", id: "chart-text" }, found.text);
    const point = make("p", { class: "hint", id: "chart-point", "aria-live": "polite" },
      found.points ? "Point at the chart, or go through it by arrow keys, to read its values." : "");
    const legend = make("ul", { class: "words", id: "chart-legend", "aria-label": "Series" },
      ...(found.names ?? []).map((name) => make("li", { class: "legend", title: name }, make("i"), make("span", {}, name))));
    legend.hidden = !found.names?.length;
    this.panel.replaceChildren(make("label", { for: "chart-kind" }, "Chart "), select, parent, legend, told, point);
    const draw = found.kind === "time" ? drawTime : found.kind === "bars" ? drawBars : null;
    const { element } = canvas(parent, `Chart: ${found.text}`, (...drawn) => {
      draw?.(...drawn, found);
      element.dataset.drawn = "true";
      [...legend.children].forEach((item, number) => { item.firstChild.style.background = hue(number); });
    });
    followed(element, found, point);
    element.dataset.kind = found.kind;
    element.dataset.points = String(found.points);
  }
}

// Values of the point that the pointer is nearest to, or that keys have gone to; from left to right.
// Keys need no picture: they may come before the first frame.
function followed(element, found, told) {
  let at = -1;
  const tell = (next) => {
    at = Math.min(found.marks.length - 1, Math.max(0, next));
    const { name, at: when, value } = found.marks[at];
    told.textContent = `${when === undefined ? "" : `${moment(when)}, `}${name}: ${value}`;
  };
  element.tabIndex = found.points ? 0 : -1;
  element.addEventListener("pointermove", (event) => {
    if (found.marks?.[0]?.x === undefined) return;
    let [nearest, least] = [0, Infinity];
    found.marks.forEach(({ x, y }, place) => {
      const far = (x - event.offsetX) ** 2 + (y - event.offsetY) ** 2;
      if (far < least) [nearest, least] = [place, far];
    });
    tell(nearest);
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !found.marks?.length) return;
    event.preventDefault();
    tell(at + step);
  });
}

export function chosen(columns, rows, kind, visualization) {
  const numbers = columns.flatMap((column, at) => (NUMBER.test(column.type) ? [at] : []));
  const times = columns.flatMap((column, at) => (TIME.test(column.type) ? [at] : []));
  const others = columns.flatMap((_, at) => (numbers.includes(at) || times.includes(at) ? [] : [at]));
  const asked = /bar|column|pie/.test(visualization?.Visualization ?? "") ? "bars" : "auto";
  const wanted = kind === "auto" ? asked : kind;
  if (!rows.length || !numbers.length) {
    const text = rows.length ? "a chart needs a column of numbers" : "there are no rows";
    return { kind: "none", text, points: 0 };
  }
  if (times.length && wanted !== "bars") return timeSeries(columns, rows, times[0], numbers, others);
  if (wanted === "time") return { kind: "none", text: "a time series needs a column of times", points: 0 };
  const named = others[0] ?? times[0] ?? null;
  const value = numbers.find((at) => at !== named) ?? numbers[0];
  const first = rows.slice(0, BARS_MAX);
  const marks = first.map((row, at) => ({ name: named === null ? String(at + 1) : shown(row[named]), value: row[value] === null ? NaN : Number(row[value]) }))
    .filter((mark) => Number.isFinite(mark.value)); // no number is no bar of 0
  const without = marks.length < first.length ? `; ${count(first.length - marks.length)} without a number` : "";
  const more = rows.length > BARS_MAX ? ` (the first ${BARS_MAX} of ${count(rows.length)} rows)` : "";
  const by = named === null ? "row" : columns[named].name;
  const rest = numbers.filter((at) => at !== value && at !== named).map((at) => columns[at].name).join(", ");
  const undrawn = rest ? `; ${rest} not drawn` : "";
  return { kind: "bars", marks, points: marks.length, text: `${columns[value].name} by ${by}${more}${without}${undrawn}` };
}

function timeSeries(columns, rows, at, numbers, others) {
  const series = new Map();
  let left = 0;
  let without = 0; // a place on the chart
  for (const row of rows) {
    const when = momentOf(row[at]);
    const label = others.map((place) => shown(row[place])).join(", ");
    for (const place of numbers) {
      const value = Number(row[place]);
      if (Number.isNaN(when) || row[place] === null || !Number.isFinite(value)) {
        without += 1;
        continue;
      }
      const name = numbers.length > 1 ? [label, columns[place].name].filter(Boolean).join(" ") : label || columns[place].name;
      if (!series.has(name) && series.size >= SERIES_MAX) {
        left += 1;
        continue;
      }
      if (!series.has(name)) series.set(name, []);
      series.get(name).push([when, value]);
    }
  }
  for (const points of series.values()) points.sort((one, other) => one[0] - other[0]);
  const names = numbers.map((place) => columns[place].name).join(", ");
  const more = (left ? `; further series are left out after ${SERIES_MAX}` : "") +
    (without ? `; ${plural(without, "value")} without a time or a number` : "");
  const points = [...series.values()].reduce((sum, one) => sum + one.length, 0);
  const sorted = [...series.keys()].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const marks = sorted.flatMap((name) => series.get(name).map(([when, value]) => ({ name, at: when, value })));
  marks.sort((one, other) => one.at - other.at);
  return { kind: "time", series, marks, names: sorted, points, text: `${names} over ${columns[at].name}, ${series.size} series${more}` };
}

// A time without a zone is shown as it stands, whatever the browser's own zone is.
function momentOf(value) {
  const text = String(value);
  return Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes("T") ? text : `${text}Z`);
}

function scale(values) {
  let low = Math.min(0, values.reduce((least, one) => Math.min(least, one), Infinity));
  let high = Math.max(0, values.reduce((most, one) => Math.max(most, one), -Infinity));
  if (low === high) high = low + 1;
  const step = 10 ** Math.floor(Math.log10((high - low) / 4));
  const nice = [1, 2, 5, 10].map((by) => by * step).find((by) => (high - low) / by <= 6);
  low = Math.floor(low / nice) * nice;
  high = Math.ceil(high / nice) * nice;
  const ticks = [];
  for (let at = low; at <= high + nice / 2; at += nice) ticks.push(at);
  return { low, high, ticks };
}

function drawScale(context, width, height, { low, high, ticks }) {
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  context.font = font(11);
  context.textAlign = "right";
  for (const tick of ticks) {
    context.strokeStyle = color("--line");
    context.beginPath();
    context.moveTo(LEFT, y(tick));
    context.lineTo(width - 4, y(tick));
    context.stroke();
    context.fillStyle = color("--soft");
    context.fillText(Number(tick.toPrecision(6)).toLocaleString("en"), LEFT - 6, y(tick) + 4);
  }
  context.textAlign = "left";
  return y;
}

function drawTime(context, width, height, found) {
  const { series, names, marks } = found;
  const all = [...series.values()].flat();
  if (!all.length) return;
  const y = drawScale(context, width, height, scale(all.map(([, value]) => value)));
  const first = all.reduce((least, [at]) => Math.min(least, at), Infinity);
  const last = all.reduce((most, [at]) => Math.max(most, at), -Infinity);
  const x = (at) => LEFT + (width - LEFT - 12) * (last === first ? 0.5 : (at - first) / (last - first));
  context.fillStyle = color("--soft");
  context.textAlign = "center";
  for (const { at, text } of timeTicks(first, last, Math.floor((width - LEFT) / TICK_WIDTH))) {
    const half = context.measureText(text).width / 2;
    context.fillRect(x(at), height - BOTTOM, 1, 3);
    context.fillText(text, Math.min(x(at), width - half), height - BOTTOM + 15);
  }
  context.textAlign = "left";
  for (const mark of marks) [mark.x, mark.y] = [x(mark.at), y(mark.value)];
  names.forEach((name, number) => {
    const points = series.get(name);
    context.strokeStyle = context.fillStyle = hue(number);
    context.lineWidth = 1.75;
    context.beginPath();
    for (const [at, value] of points) context.lineTo(x(at), y(value));
    context.stroke();
    if (points.length < 60) for (const [at, value] of points) context.fillRect(x(at) - 2, y(value) - 2, 4, 4);
  });
}

// A label as wide as that; what is cut off is told by `…`.
function cut(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 80);
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

function hue(number) {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  return `hsl(${HUES[number % HUES.length]} 70% ${isDark ? 62 : 38}%)`;
}

function drawBars(context, width, height, found) {
  const { marks } = found;
  if (!marks.length) return;
  const y = drawScale(context, width, height, scale(marks.map(({ value }) => value)));
  const step = (width - LEFT - 8) / marks.length;
  marks.forEach((mark, at) => {
    const { name, value } = mark;
    const x = LEFT + at * step;
    [mark.x, mark.y] = [x + step / 2, y(value)];
    context.fillStyle = color("--read");
    context.fillRect(x + 1, Math.min(y(0), y(value)), Math.max(1, step - 2), Math.max(1, Math.abs(y(value) - y(0))));
    const every = Math.ceil(56 / step);
    if (at % every === 0) {
      context.fillStyle = color("--soft");
      context.textAlign = every === 1 ? "center" : "left"; // below its bar, where each has a name
      context.fillText(cut(context, name, step * every - 4), every === 1 ? x + step / 2 : x, height - BOTTOM + 14);
    }
  });
  context.textAlign = "left";
}
