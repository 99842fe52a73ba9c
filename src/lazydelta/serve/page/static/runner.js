// One query at a time: run, shown as it comes, cancelled.

import { ApiError, GoneError, canStream, stream } from "./api.js";
import { byId, say, show } from "./dom.js";
import * as explain from "./explain.js";
import { count, milliseconds, plural } from "./format.js";

const TOLD_MS = 500; // between two words on how far it is; they are not spoken
const TABS = ["grid", "chart", "explain"];

export class Runner {
  constructor({ editor, grid, chart, onView, onLost }) {
    this.editor = editor;
    this.grid = grid;
    this.chart = chart;
    this.onView = onView;
    this.onLost = onLost;
    this.view = "grid";
    this.running = null;
    byId("run").addEventListener("click", () => this.run());
    byId("cancel").addEventListener("click", () => this.cancel());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.running) this.cancel();
    });
    for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => this.show(name));
    document.querySelector('[role="tablist"]').addEventListener("keydown", (event) => this.#key(event));
    this.#turnTo("grid");
  }

  show(name) {
    this.#turnTo(name);
    this.onView(this.view);
  }

  #turnTo(name) {
    this.view = TABS.includes(name) ? name : "grid";
    for (const one of TABS) {
      const isShown = one === this.view;
      byId(`tab-${one}`).setAttribute("aria-selected", String(isShown));
      byId(`tab-${one}`).tabIndex = isShown ? 0 : -1;
      show(byId(`panel-${one}`), isShown);
    }
    if (this.view === "grid") this.grid.add([]);
    if (this.view === "chart") this.chart.draw();
  }

  cancel() {
    this.running?.abort();
  }

  // Rows of another query, of another table: gone.
  clear() {
    this.running?.abort();
    this.running = null;
    this.grid.clear();
    this.chart.clear();
    explain.clear();
    this.#stopped();
    show(byId("result"), false);
  }

  #stopped() {
    say(byId("result-progress"), "");
    if (document.activeElement === byId("cancel")) byId("run").focus(); // what is disabled loses it
    byId("cancel").disabled = true;
    byId("result").setAttribute("aria-busy", "false");
  }

  async run() {
    if (!this.editor.value.trim()) {
      this.editor.error({ message: "The query is empty.", fix: "", line: null, column: null });
      return;
    }
    this.running?.abort();
    const running = new AbortController();
    this.running = running;
    const began = performance.now();
    this.#begin();
    let result = { columns: [], visualization: null };
    let rows = 0;
    let end = null;
    const tell = () => say(byId("result-progress"), `${plural(rows, "row")} so far, ${milliseconds(performance.now() - began)}`);
    const clock = setInterval(() => this.running === running && tell(), TOLD_MS);
    const body = { language: this.editor.language, text: this.editor.value };
    try {
      for await (const { name, value } of stream("query", { body, signal: running.signal })) {
        if (name === "columns") {
          result = value;
          this.grid.begin(value.columns);
        } else if (name === "rows") {
          rows += value.length;
          this.grid.add(value);
        } else if (name === "end") end = value;
      }
      if (!end) throw new GoneError("the server broke off");
      this.#ended(end, result, body.text);
    } catch (error) {
      if (this.running !== running) return;
      this.#failed(error, rows, began, body.text);
    } finally {
      clearInterval(clock);
      if (this.running === running) {
        this.running = null;
        this.#stopped();
      }
    }
    if (result.columns.length) this.chart.show(result.columns, this.grid.rows, result.visualization);
    if (result.visualization?.Visualization) this.show("chart");
  }

  #begin() {
    this.editor.error(null);
    this.grid.clear();
    this.chart.clear();
    explain.clear();
    show(byId("result"), true);
    byId("result").setAttribute("aria-busy", "true");
    byId("cancel").disabled = false;
    say(byId("result-state"), canStream() ? "running" : "running; this browser shows the rows when all are there");
  }

  #ended(end, result, text) {
    explain.show(end);
    if (end.error) this.editor.error(end.error, false, text);
    const first = end.first_row_ms === null ? "" : `, the first after ${milliseconds(end.first_row_ms)}`;
    const cut = end.is_cut ? "; there are more, which the page does not show" : "";
    const failed = end.error ? "; then it broke off" : "";
    say(byId("result-state"), `${plural(end.rows, "row")} in ${milliseconds(end.elapsed_ms)}${first}${cut}${failed}`);
    if (!end.rows && !result.columns.length) this.grid.clear();
  }

  #failed(error, rows, began, text) {
    if (error.name === "AbortError") {
      say(byId("result-state"), `cancelled after ${milliseconds(performance.now() - began)}; ${count(rows)} rows came before`);
    } else if (error instanceof ApiError) {
      if (error.status === 401) this.onLost(error);
      this.editor.error(error.fault, false, text);
      say(byId("result-state"), rows ? `${plural(rows, "row")}, then it broke off` : "no rows: the query is refused");
      if (!rows) show(byId("result"), false);
    } else if (error instanceof GoneError) {
      this.editor.error({ message: `${error.message}; run it again when the connection is back`, fix: "", line: null, column: null });
      say(byId("result-state"), rows ? `${plural(rows, "row")}, then it broke off` : "no answer");
    } else {
      say(byId("result-state"), "the page made a mistake: it cannot show the rows");
      throw error;
    }
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = TABS[(TABS.indexOf(this.view) + step + TABS.length) % TABS.length];
    this.show(next);
    byId(`tab-${next}`).focus();
  }
}
