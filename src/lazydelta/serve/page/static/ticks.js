// Where marks stand on an axis of time: at whole seconds, minutes, hours, days or months (UTC), as many as there is room for.

import { time } from "./format.js";

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60000, 3600000, 86400000];
const STEPS = [...[1, 5, 15, 30].map((by) => by * SECOND), ...[1, 5, 15, 30].map((by) => by * MINUTE),
  ...[1, 3, 6, 12].map((by) => by * HOUR), ...[1, 2, 7, 14].map((by) => by * DAY)];
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 600, 1200, 6000, 12000];

export function timeTicks(first, last, most) {
  const step = STEPS.find((one) => (last - first) / one <= Math.max(1, most));
  const found = step ? steps(first, last, step) : months(first, last, Math.max(1, most));
  return found.length ? found : [{ at: first, text: time(first).slice(0, 16) }];
}

function steps(first, last, step) {
  const cut = step < MINUTE ? [11, 19] : step < DAY ? [5, 16] : [0, 10];
  const found = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push({ at, text: time(at).slice(...cut) });
  return found;
}

function months(first, last, most) {
  const monthOf = (at) => new Date(at).getUTCFullYear() * 12 + new Date(at).getUTCMonth();
  const [from, to] = [monthOf(first), monthOf(last)];
  const by = MONTHS.find((one) => (to - from) / one <= most) ?? MONTHS.at(-1);
  const found = [];
  for (let month = Math.ceil(from / by) * by; month <= to; month += by) {
    const at = new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    if (at >= first) found.push({ at, text: time(at).slice(0, 7) });
  }
  return found;
}
