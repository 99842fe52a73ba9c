// Numbers, sizes and times as people read them, and JSON whose whole numbers keep all their digits.

const NUMBERS = new Intl.NumberFormat("en");
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
const LONG_NUMBER = /\d{16}/;
const DIGITS = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function count(value) {
  return value === null || value === undefined ? "unknown" : NUMBERS.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "unknown";
  let unit = 0;
  let left = Number(value);
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${unit && left < 100 ? left.toFixed(1) : Math.round(left)} ${UNITS[unit]}`;
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "unknown";
  return value < 10 ? `${value.toFixed(1)} ms` : value < 10000 ? `${NUMBERS.format(Math.round(value))} ms`
    : `${(value / 1000).toFixed(1)} s`;
}

export function time(value) {
  const found = new Date(value);
  return Number.isNaN(found.getTime()) ? "" : found.toISOString().slice(0, 19).replace("T", " ");
}

// Read by people, who cannot know the zone otherwise.
export function moment(value) {
  const text = time(value);
  return text && `${text} UTC`;
}

// A value of a result, whatever it is.
export function shown(value) {
  return value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

// A whole number that a double cannot hold stays text: a rounded one would be a wrong answer.
export function exactJson(text) {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  const parts = [];
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    const start = quote < 0 ? text.length : quote;
    parts.push(text.slice(at, start).replace(DIGITS, exact));
    at = quote < 0 ? text.length : afterText(text, quote);
    parts.push(text.slice(start, at));
  }
  return JSON.parse(parts.join(""));
}

function exact(token) {
  if (token.length < 16 || /[.eE]/.test(token)) return token;
  return Number.isSafeInteger(Number(token)) ? token : `"${token}"`;
}

// Where the text that begins there has ended. No pattern: one runs out of its stack within a long text.
function afterText(text, quote) {
  for (let at = text.indexOf('"', quote + 1); at > 0; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text[before - 1] === "\\") before -= 1;
    if ((at - before) % 2 === 0) return at + 1;
  }
  return text.length;
}
