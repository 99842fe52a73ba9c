// Elements, made and found. Texts are always texts: nothing that a table holds can become markup.

export const byId = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.className = value;
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export function show(element, isShown) {
  element.hidden = !isShown;
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
  show(element, text !== "");
}

export function pairs(list, entries) {
  list.replaceChildren(...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
}

export function rows(table, heads, lines) {
  const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
  const body = make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((value) =>
    make("td", typeof value === "number" ? { class: "number" } : {}, String(value))))));
  table.replaceChildren(head, body);
}

export function font(size) {
  return `${size}px ${getComputedStyle(document.body).fontFamily}`;
}

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A canvas that has as many pixels as it is shown with; `draw(context, width, height)` draws it anew.
export function canvas(parent, label, draw) {
  const element = make("canvas", { role: "img", "aria-label": label });
  parent.replaceChildren(element);
  let isAsked = false;
  const redraw = () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      const { width, height } = parent.getBoundingClientRect();
      if (!width) return;
      const ratio = window.devicePixelRatio || 1;
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
      const context = element.getContext("2d");
      context.scale(ratio, ratio);
      context.clearRect(0, 0, width, height);
      draw(context, width, height);
    });
  };
  new ResizeObserver(redraw).observe(parent);
  element.addEventListener("theme", redraw); // its own: the document's would hold every canvas there ever was
  return { element, redraw };
}
