// The query box: completion by the server, errors at their place, keys.

import { ApiError, ask } from "./api.js";
import { byId, make, say, show } from "./dom.js";

const TYPED_MS = 120; // after the last key, before completions are asked for

export class Editor {
  constructor({ onChange, onLanguage, onRun, table }) {
    this.text = byId("query-text");
    this.list = byId("completions");
    this.table = table;
    this.onChange = onChange;
    this.onRun = onRun;
    this.isRunError = false; // what is shown is of a run: it stays until the text changes or another run begins
    this.caret = -1; // where typing left it: completions are for that place
    this.text.addEventListener("input", () => this.#typed());
    document.addEventListener("selectionchange", () => this.#stay());
    this.text.addEventListener("keydown", (event) => this.#key(event));
    this.text.addEventListener("blur", () => setTimeout(() => {
      if (document.activeElement !== this.text) this.#close();
    }, 150));
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const item = event.target.closest("li");
      if (item) this.#take([...this.list.children].indexOf(item));
    });
    for (const input of document.querySelectorAll('input[name="language"]')) {
      input.addEventListener("change", () => {
        this.error(null);
        onLanguage();
      });
    }
  }

  get language() {
    return document.querySelector('input[name="language"]:checked').value;
  }

  set language(value) {
    for (const input of document.querySelectorAll('input[name="language"]')) input.checked = input.value === value;
  }

  get value() {
    return this.text.value;
  }

  set value(text) {
    this.text.value = text;
    this.error(null);
  }

  // `fault`: of the server, or null; `isSoft`: of the text while it is typed, which stands there without being called
  // out, and neither hides nor replaces what a run said of the same text; `text`: what was asked, which may have been
  // typed on since: then nothing is selected, which the next key would replace.
  error(fault, isSoft = false, text = this.value) {
    if (isSoft && this.isRunError) return;
    this.isRunError = fault !== null && !isSoft;
    const element = byId("query-error");
    this.text.setAttribute("aria-invalid", String(fault !== null && !isSoft));
    element.setAttribute("role", isSoft ? "note" : "alert");
    if (fault === null) {
      say(element, "");
      return;
    }
    const place = fault.line ? `Line ${fault.line}, column ${fault.column}: ` : "";
    let told = `${place}${fault.message}`;
    const line = fault.line ? text.split("\n")[fault.line - 1] : undefined;
    const column = line === undefined ? fault.column : unitsOf(line, fault.column);
    if (line !== undefined) told += `\n${excerpt(line, column, this.#lineLength(element))}`;
    if (fault.fix) told += `\n${fault.fix}`;
    say(element, told);
    if (fault.line && !isSoft && text === this.value) this.#select(fault.line, column);
  }

  // How many characters of a line the element takes before it breaks it.
  #lineLength(element) {
    return Math.max(16, Math.floor(this.text.clientWidth / (0.62 * Number.parseFloat(getComputedStyle(element).fontSize))) - 4);
  }

  #select(line, column) {
    const lines = this.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    const rest = this.value.slice(start);
    const word = /^\w+/.exec(rest);
    this.text.setSelectionRange(start, start + (word ? word[0].length : Math.min(1, rest.length)));
  }

  #changed() {
    if (this.isRunError) this.error(null);
    this.onChange();
  }

  // Completions of a place that the caret has left would replace whatever lies between.
  #stay() {
    if (this.text.selectionStart !== this.caret) this.#close();
  }

  #typed() {
    this.caret = this.text.selectionStart;
    this.#changed();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#complete(false), TYPED_MS);
  }

  async #complete(isAsked) {
    const before = this.value.slice(0, this.text.selectionStart);
    if (!isAsked && !/[\w.]$/.test(before)) {
      this.#close();
      return;
    }
    this.asking?.abort();
    this.asking = new AbortController();
    this.caret = this.text.selectionStart;
    try {
      const body = { language: this.language, text: this.value, before, table: this.table() };
      const found = await ask("completions", { body, signal: this.asking.signal });
      const isSame = found.candidates.length === 1 && found.candidates[0].text === found.word;
      if ((!isAsked && found.word === "" && !before.endsWith(".")) || isSame) this.#close();
      else this.#open(found, before.length - found.word.length);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#close();
      if (!(error instanceof ApiError) && error.name !== "Error") throw error;
    }
  }

  // `start`: where the word begins. It may grow, and one may be marked, before the next answer is here.
  #open({ candidates }, start) {
    this.start = start;
    const marked = this.isOpen ? this.#text(this.at) : undefined;
    this.list.replaceChildren(...candidates.map(({ text, kind }, at) =>
      make("li", { role: "option", id: `completion-${at}`, "aria-selected": "false" }, text, make("span", {}, kind))));
    this.isOpen = candidates.length > 0;
    show(this.list, this.isOpen);
    const [left, below] = this.#caret();
    this.list.style.top = `${Math.min(below + 4 - this.text.scrollTop, this.text.offsetHeight)}px`;
    this.list.style.left = `${Math.min(left, Math.max(0, this.text.offsetWidth - 220))}px`;
    this.#mark(candidates.findIndex(({ text }) => text === marked));
  }

  #text(at) {
    return this.list.children[at]?.firstChild.textContent;
  }

  // The caret's left and lower edge, found in a copy that breaks its lines as the box does.
  #caret() {
    const { font, padding } = getComputedStyle(this.text);
    const copy = make("div", { class: "mirror", "aria-hidden": "true" }, this.value.slice(0, this.text.selectionStart), make("span", {}, "|"));
    Object.assign(copy.style, { font, padding, width: `${this.text.clientWidth}px` });
    this.text.after(copy);
    const { offsetLeft, offsetTop, offsetHeight } = copy.lastChild;
    copy.remove();
    return [offsetLeft, offsetTop + offsetHeight];
  }

  #close() {
    this.asking?.abort();
    clearTimeout(this.timer);
    this.isOpen = false;
    show(this.list, false);
    this.text.removeAttribute("aria-activedescendant");
  }

  #mark(at) {
    this.at = at;
    [...this.list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
    if (at < 0) this.text.removeAttribute("aria-activedescendant");
    else {
      this.text.setAttribute("aria-activedescendant", `completion-${at}`);
      this.list.children[at].scrollIntoView({ block: "nearest" });
    }
  }

  #take(at) {
    const end = this.text.selectionStart;
    this.text.setRangeText(this.#text(at), Math.min(this.start, end), end, "end");
    this.#close();
    this.#changed();
    this.text.focus();
  }

  #key(event) {
    this.#stay();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#close();
      this.onRun();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      clearTimeout(this.timer); // of the last key, which would close what is asked for here
      this.#complete(true);
    } else if (this.isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const length = this.list.children.length;
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.#mark((this.at + step + length + (this.at < 0 && step < 0 ? 1 : 0)) % length);
    } else if (this.isOpen && (event.key === "Enter" || event.key === "Tab") && this.at >= 0) {
      event.preventDefault();
      this.#take(this.at);
    } else if (this.isOpen && event.key === "Tab" && this.list.children.length === 1) {
      event.preventDefault();
      this.#take(0);
    } else if (event.key === "Escape" && this.isOpen) {
      event.preventDefault();
      event.stopPropagation();
      this.#close();
    }
  }
}

// Columns are counted by characters; JavaScript counts some of them twice.
function unitsOf(line, column) {
  const before = [...line].slice(0, column - 1);
  return before.join("").length + (column - before.length);
}

// The line around a column, with a mark below: below a line that is broken it would point at something else.
function excerpt(line, column, most) {
  const from = line.length <= most ? 0 : Math.max(0, Math.min(column - 1 - Math.floor(most / 2), line.length - most));
  const before = from ? "…" : "";
  const after = from + most < line.length ? "…" : "";
  const shown = line.slice(from, from + most).replaceAll("\t", " ");
  return `${before}${shown}${after}\n${" ".repeat(Math.max(0, before.length + column - 1 - from))}^`;
}
