// Row groups of the sidecar: which of them the query would read.

import { byId, canvas, color, say, show } from "./dom.js";
import { count, plural } from "./format.js";

export class RowGroups {
  constructor() {
    this.plan = null;
    const made = canvas(byId("groups"), "Row groups of the sidecar", (...drawn) => this.#draw(...drawn));
    this.element = made.element;
    this.redraw = made.redraw;
  }

  unknown(text) {
    this.plan = null;
    this.#tell(text);
  }

  // `facts`: of the table, or null; `plan`: of the query that is typed, or null.
  show(facts, plan) {
    this.plan = null;
    const sidecar = facts?.sidecar ?? null;
    let text = facts && facts.checkpoint_version !== null
      ? "There is none that serves: a query reads the checkpoint instead. To write one: lazydelta sidecar build."
      : "There is none, and no checkpoint that one could stand beside.";
    if (sidecar) {
      text = `${plural(sidecar.row_groups, "row group")} in ${plural(sidecar.parts, "part")}`;
      this.plan = { bins: [[sidecar.row_groups, null]] };
    }
    if (sidecar && plan?.row_groups) {
      const { row_groups: total, row_groups_read: read } = plan.row_groups;
      text = `the query reads ${count(read)} of ${plural(total, "row group")} and skips ${count(total - read)}` +
        (plan.predicate ? ` by ${plan.predicate}` : "");
      this.plan = plan.row_groups;
    }
    this.#tell(text);
  }

  #tell(text) {
    say(byId("groups-state"), text);
    show(byId("groups"), this.plan !== null);
    this.element.setAttribute("aria-label", `Row groups of the sidecar: ${text}`);
    this.redraw();
  }

  #draw(context, width, height) {
    const bins = this.plan?.bins ?? [];
    if (!bins.length) return;
    const columns = Math.min(bins.length, Math.max(16, Math.floor(width / 10)));
    const lines = Math.ceil(bins.length / columns);
    const [stepX, stepY] = [width / columns, height / lines];
    const [plainColor, readColor, skipColor] = ["--plain", "--read", "--skipped"].map(color);
    bins.forEach(([total, read], at) => {
      const x = (at % columns) * stepX;
      const y = Math.floor(at / columns) * stepY;
      const [w, h] = [Math.max(1, stepX - 1), Math.max(1, stepY - 1)];
      context.fillStyle = read === null ? plainColor : skipColor;
      context.fillRect(x, y, w, h);
      if (read) {
        const part = Math.max(2, (h * read) / total);
        context.fillStyle = readColor;
        context.fillRect(x, y + h - part, w, part);
      }
    });
  }
}
