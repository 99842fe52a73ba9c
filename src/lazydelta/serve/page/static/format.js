// Numbers, sizes and times as people read them, and JSON whose whole numbers keep all their digits.

const NUMBERS = new Intl.NumberFormat("en");
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
const LONG_NUMBER = /\d{16}/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

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

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

// A whole number that a double cannot hold stays text: a rounded one would be a wrong answer.
export function exactJson(text) {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text.replace(TOKENS, (token) => {
    if (token[0] === '"' || token.length < 16 || /[.eE]/.test(token)) return token;
    return Number.isSafeInteger(Number(token)) ? token : `"${token}"`;
  }));
}
