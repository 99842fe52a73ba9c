// Rows of a result: only those that are seen are elements, however many there are.

import { byId, make } from "./dom.js";
import { count, shown } from "./format.js";

const MARGIN = 6; // rows above and below what is seen
const NUMERIC = /^(u?int|float|double|halffloat|decimal|long|real|int)/;

const BREAKS = { "\n": "↵", "\r": "␍", "\t": "⇥" };

// A cell is one line: what would break it, and hide the rest, stands there as a sign.
function onLine(text) {
  return text.replace(/[\n\r\t]/g, (found) => BREAKS[found]);
}

export class Grid {
  constructor() {
    this.panel = byId("panel-grid");
    this.clear();
  }

  clear() {
    this.columns = [];
    this.rows = [];
    this.panel.replaceChildren();
  }

  begin(columns) {
    this.columns = columns.map((column) => ({ ...column, isNumber: NUMERIC.test(column.type) }));
    this.rows = [];
    this.head = make("div", { role: "row", class: "head", "aria-rowindex": "1" },
      make("div", { role: "columnheader", class: "cell index" }, "row"),
      ...this.columns.map((column) => {
        const cell = make("div", { role: "columnheader", class: column.isNumber ? "cell number" : "cell" }, column.name);
        cell.title = `${column.name}: ${column.type}`;
        return cell;
      }));
    this.body = make("div", { class: "body", role: "rowgroup" });
    this.grid = make("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": "Rows of the result" },
      make("div", { role: "rowgroup" }, this.head), this.body);
    this.grid.addEventListener("scroll", () => this.#later());
    this.body.addEventListener("focusin", (event) => {
      if (event.target.dataset.at) this.at = event.target.dataset.at.split(",").map(Number);
    });
    this.grid.addEventListener("keydown", (event) => this.#key(event));
    this.panel.replaceChildren(this.grid);
    this.at = [0, 0];
    this.height = 0;
    this.#draw();
  }

  add(rows) {
    if (!this.rows.length && rows.length) this.#measure(rows);
    for (const row of rows) this.rows.push(row);
    this.#later();
  }

  // Columns are as wide as what comes first in them, within reason.
  #measure(rows) {
    this.widths = this.columns.map((column, place) => {
      const longest = rows.slice(0, 50).reduce((most, row) => Math.max(most, shown(row[place]).length), column.name.length);
      return `calc(${Math.min(40, Math.max(3, longest))}ch + 1rem + 2px)`; // of the padding and the line
    });
    [...this.head.children].slice(1).forEach((cell, place) => { cell.style.flexBasis = this.widths[place]; });
  }

  #later() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.#draw();
    });
  }

  #draw() {
    if (!this.grid?.isConnected) return;
    this.height ||= this.head.getBoundingClientRect().height || 24;
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.grid.setAttribute("aria-colcount", String(this.columns.length + 1));
    this.body.style.height = `${this.rows.length * this.height}px`;
    this.body.style.width = `${this.head.scrollWidth}px`;
    const first = Math.max(0, Math.floor(this.grid.scrollTop / this.height) - MARGIN);
    const last = Math.min(this.rows.length, first + Math.ceil(this.grid.clientHeight / this.height) + 2 * MARGIN);
    const lines = [];
    for (let at = first; at < last; at += 1) lines.push(this.#row(at));
    const hadFocus = this.hasFocus || this.body.contains(document.activeElement);
    this.body.replaceChildren(...lines);
    if (hadFocus) this.#focus();
  }

  #row(at) {
    const element = make("div", { role: "row", "aria-rowindex": String(at + 2) },
      make("div", { role: "rowheader", class: "cell index" }, count(at + 1)),
      ...this.rows[at].map((value, place) => this.#cell(value, at, place)));
    element.style.top = `${at * this.height}px`;
    return element;
  }

  #cell(value, at, place) {
    const isNull = value === null;
    const text = shown(value);
    const kind = isNull ? "cell null" : this.columns[place].isNumber ? "cell number" : "cell";
    const cell = make("div", { role: "gridcell", class: kind, "data-at": `${at},${place}`, tabindex: "-1" }, onLine(text));
    cell.style.flexBasis = this.widths[place];
    if (text.length > 20 || cell.textContent !== text) cell.title = text.slice(0, 2000);
    return cell;
  }

  #focus() {
    const cell = this.body.querySelector(`[data-at="${this.at.join(",")}"]`);
    (cell ?? this.grid).focus({ preventScroll: true });
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.grid.clientHeight / this.height) - 2);
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-page, 0],
      PageDown: [page, 0], Home: [event.ctrlKey ? -Infinity : 0, -Infinity], End: [event.ctrlKey ? Infinity : 0, Infinity] };
    const step = steps[event.key];
    if (!step || !this.rows.length) return;
    event.preventDefault();
    const isInside = document.activeElement?.getAttribute("role") === "gridcell";
    const clamp = (value, most) => Math.min(most, Math.max(0, value));
    const next = isInside ? [this.at[0] + step[0], this.at[1] + step[1]] : this.at;
    this.at = [clamp(next[0], this.rows.length - 1), clamp(next[1], this.columns.length - 1)];
    const top = this.at[0] * this.height;
    const seen = this.grid.clientHeight - 2 * this.height;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    if (top > this.grid.scrollTop + seen) this.grid.scrollTop = top - seen;
    this.hasFocus = true;
    this.#draw();
    this.hasFocus = false;
    const cell = document.activeElement;
    if (cell?.getAttribute("role") === "gridcell") cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
