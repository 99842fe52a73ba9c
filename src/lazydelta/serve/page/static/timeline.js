// Versions as a timeline: what each added and removed, checkpoints (◆) and sidecars (▣).

import { ask } from "./api.js";
import { byId, make, pairs, say, show } from "./dom.js";
import { bytes, count, moment, plural } from "./format.js";

const SHOWN_MAX = 500;

export class Timeline {
  constructor(onChosen, onLost) {
    this.onChosen = onChosen;
    this.onLost = onLost;
    this.list = byId("versions");
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (item) this.#choose(this.versions.find((one) => one.version === Number(item.dataset.version)), true);
    });
    byId("versions-older").addEventListener("click", () => this.#older());
    byId("versions-newest").addEventListener("click", () => this.onChosen(null));
    this.#clear();
  }

  #clear() {
    this.versions = [];
    this.before = null;
    this.chosen = null;
  }

  // There is none: `text` says why; from a version that is not there, the newest can be gone to.
  fail(text, version) {
    this.#clear();
    this.list.replaceChildren();
    pairs(byId("version-facts"), []);
    say(byId("versions-state"), text);
    show(byId("versions-newest"), version !== null);
    byId("versions-older").disabled = true;
  }

  async load(table, chosen, signal) {
    this.#clear();
    this.table = table;
    this.signal = signal;
    const at = chosen === null ? "" : `&before=${chosen + 1}`;
    await this.#page(`count=50${at}`);
    const found = chosen === null ? this.versions[0] : this.versions.find((one) => one.version === chosen);
    if (found) this.#choose(found, false);
    const hadFocus = document.activeElement === byId("versions-newest");
    show(byId("versions-newest"), chosen !== null);
    if (hadFocus) this.#focus();
  }

  // Later versions. Where they are too many to be told, the earlier ones go: `Older` fetches what lies between.
  add(versions) {
    if (!versions.length) return;
    const isJoined = !this.versions.length || versions.at(-1).version <= this.versions[0].version + 1;
    const wasNewest = this.chosen === this.versions[0]?.version;
    const kept = isJoined ? this.versions : [];
    this.versions = [...this.#unknown(versions), ...kept].slice(0, SHOWN_MAX);
    if (!isJoined) this.#reach(this.versions.at(-1).version);
    else if (this.versions.length === SHOWN_MAX) this.#reach(null);
    this.#draw();
    if (wasNewest || !isJoined) this.#choose(this.versions[0], false);
  }

  #unknown(versions) {
    const known = new Set(this.versions.map((one) => one.version));
    return versions.filter((one) => !known.has(one.version));
  }

  // `before`: there are earlier versions; null: none that are shown.
  #reach(before) {
    this.before = before || null;
    byId("versions-older").disabled = this.before === null;
  }

  #focus() {
    this.list.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  async #older() {
    const hadFocus = document.activeElement === byId("versions-older"); // what is disabled loses it
    byId("versions-older").disabled = true;
    try {
      await this.#page(`count=50&before=${this.before}`);
    } catch (error) {
      byId("versions-older").disabled = false;
      if (error.name !== "AbortError") this.onLost(error);
    }
    if (hadFocus && byId("versions-older").disabled) this.#focus();
    else if (hadFocus) byId("versions-older").focus();
    this.list.lastElementChild?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  async #page(query) {
    const found = await ask(`tables/${encodeURIComponent(this.table)}/versions?${query}`, { signal: this.signal });
    this.versions.push(...this.#unknown(found.versions));
    this.#reach(this.versions.length < SHOWN_MAX ? found.before : null);
    this.#draw();
  }

  #draw() {
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.version : null;
    const most = Math.max(1, ...this.versions.flatMap((one) => [one.adds ?? 0, one.removes ?? 0]));
    const height = (number) => (number ? Math.max(6, 100 * (Math.log1p(number) / Math.log1p(most))) : 0);
    this.list.replaceChildren(...this.versions.map((one) => {
      const up = make("span", { class: "up" }, bar(height(one.adds)));
      const down = make("span", { class: "down" }, bar(height(one.removes)));
      const marks = `${one.has_checkpoint ? "◆" : ""}${one.has_sidecar ? "▣" : ""}`;
      const isChosen = one.version === this.chosen;
      return make("li", {
        role: "option", "data-version": one.version, tabindex: isChosen ? "0" : "-1",
        "aria-selected": String(isChosen), "aria-label": spoken(one),
      }, up, down, make("span", { class: "marks", "aria-hidden": "true" }, marks), make("span", {}, String(one.version)));
    }));
    const first = this.versions[0];
    const last = this.versions.at(-1);
    say(byId("versions-state"), first ? spanned(last.version, first.version) : "no commit is left in the log");
    if (!this.list.querySelector('[tabindex="0"]')) this.list.firstElementChild?.setAttribute("tabindex", "0");
    if (focused) (this.list.querySelector(`[data-version="${focused}"]`) ?? this.list.firstElementChild)?.focus({ preventScroll: true });
  }

  #choose(one, isAsked) {
    this.chosen = one.version;
    for (const item of this.list.children) {
      const isChosen = Number(item.dataset.version) === one.version;
      item.setAttribute("aria-selected", String(isChosen));
      item.tabIndex = isChosen ? 0 : -1;
    }
    const by = one.is_counted ? "" : ", as its writer tells";
    pairs(byId("version-facts"), [
      ["version", `${count(one.version)}, ${moment(one.timestamp)}`],
      ["operation", [one.operation ?? "its writer does not tell", one.engine, one.user].filter(Boolean).join(", by ")],
      ["added", `${one.adds === null ? "unknown" : plural(one.adds, "file")}` +
        `${one.bytes_added === null ? "" : `, ${bytes(one.bytes_added)}`}${by}`],
      ["removed", `${one.removes === null ? "unknown" : plural(one.removes, "file")}${by}`],
      ["commit", bytes(one.commit_bytes)],
      ["has", [one.has_checkpoint ? "a checkpoint" : "", one.has_sidecar ? "a sidecar" : ""].filter(Boolean).join(" and ")
        || "no checkpoint, no sidecar"],
    ]);
    if (isAsked) this.onChosen(one.version === this.versions[0]?.version && this.#isNewest() ? null : one.version);
  }

  #isNewest() {
    return byId("versions-newest").hidden;
  }

  #key(event) {
    const steps = { ArrowLeft: 1, ArrowRight: -1, Home: Infinity, End: -Infinity }; // the newest is at the right
    const items = [...this.list.children];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    if (event.key in steps) {
      event.preventDefault();
      const next = items[Math.min(items.length - 1, Math.max(0, at + steps[event.key]))];
      next.focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      document.activeElement.click();
    }
  }
}

function spanned(first, last) {
  return first === last ? `version ${count(first)}` : `versions ${count(first)} to ${count(last)}`;
}

function bar(percent) {
  const element = make("span", { class: "bar" });
  element.style.height = `${percent}%`;
  return element;
}

function spoken(one) {
  const parts = [`version ${one.version}`, moment(one.timestamp), one.operation ?? "",
    one.adds === null ? "" : `${plural(one.adds, "file")} added`, one.removes ? `${count(one.removes)} removed` : "",
    one.has_checkpoint ? "checkpoint" : "", one.has_sidecar ? "sidecar" : ""];
  return parts.filter(Boolean).join(", ");
}
