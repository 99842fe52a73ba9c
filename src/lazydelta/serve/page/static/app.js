// The page: signs in, chooses a table, and keeps its parts together.

import { ApiError, GoneError, ask, canStream, stream, token } from "./api.js";
import { Chart } from "./chart.js";
import { byId, make, rows, say, show } from "./dom.js";
import { Editor } from "./editor.js";
import * as facts from "./facts.js";
import { FileMap } from "./file_map.js";
import { bytes, plural, time } from "./format.js";
import { Grid } from "./grid.js";
import { News } from "./news.js";
import { RowGroups } from "./row_groups.js";
import { Runner } from "./runner.js";
import * as state from "./state.js";
import * as theme from "./theme.js";
import { Timeline } from "./timeline.js";

const TYPED_MS = 350; // after the last key, before the server is asked what the query would read
const REDRAWN_MS = 30000; // a map of a table that changes all the time is drawn anew no more often
const NEWEST_MAX = 100;
const AGAIN_MS = 2000; // before the server is asked again whether it is there
const TYPED_FAULTS = new Set([400, 403, 404, 501]); // of the text, not of the server

const now = { table: null, version: null, tables: [], facts: null, newest: [], shown: null, reading: null };
const drafts = new Map(); // what was typed of a table, while another is looked at
const fileMap = new FileMap();
const rowGroups = new RowGroups();
const grid = new Grid();
const chart = new Chart((kind) => state.write({ chart: kind === "auto" ? null : kind }));
const timeline = new Timeline((version) => open(now.table, version), lost);
const editor = new Editor({ onChange: typed, onLanguage: languageChosen, onRun: () => runner.run(), table: () => now.table });
const runner = new Runner({ editor, grid, chart, onView: (view) => state.write({ view: view === "grid" ? null : view }),
  onLost: lost });
const news = new News({ onNews: arrived, onLost: lost, onBack: () => open(now.table, now.version) });

theme.start(byId("theme"));
byId("table").addEventListener("change", (event) => {
  drafts.set(now.table, { language: editor.language, text: editor.value });
  const draft = drafts.get(event.target.value);
  editor.language = draft?.language ?? editor.language;
  editor.value = draft?.text ?? "";
  runner.clear();
  open(event.target.value, null);
});
byId("share").addEventListener("click", share);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address would replace what the page shows
  byId("query-text").focus();
});
byId("sign-out").addEventListener("click", () => {
  token.clear();
  location.reload();
});
byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = byId("token").value.trim();
  byId("token").value = "";
  if (/[^\x21-\x7e]/.test(given)) {
    say(byId("sign-in-error"), "A token holds letters, digits and plain signs only; this one holds something else. Copy it again.");
    byId("token").focus();
    return;
  }
  token.set(given);
  start();
});
window.addEventListener("hashchange", () => {
  runner.clear();
  start();
});
calm();
start();

async function start() {
  let found;
  try {
    found = await ask("tables");
  } catch (error) {
    lost(error);
    if (error instanceof GoneError) setTimeout(start, AGAIN_MS);
    return;
  }
  signedIn(true);
  show(byId("sign-out"), token.get() !== null);
  calm();
  if (!found.tables.length) {
    say(byId("notice"), "There is no table that this client may read.");
    return;
  }
  now.tables = found.tables;
  byId("table").replaceChildren(...found.tables.map((one) => make("option", { value: one.name }, one.name)));
  const asked = state.read();
  editor.language = asked.language === "kql" ? "kql" : "sql";
  if (asked.query) editor.value = asked.query;
  chart.setKind(asked.chart);
  runner.show(asked.view);
  const version = /^\d+$/.test(asked.version ?? "") ? Number(asked.version) : null;
  await open(asked.table ?? found.tables[0].name, version);
}

// Everything that is shown of a table, at a version; null: the newest, and what comes.
async function open(table, version) {
  now.shown?.abort();
  now.reading?.abort();
  const shown = new AbortController();
  const signal = shown.signal;
  Object.assign(now, { shown, table, version, facts: null, newest: [] });
  const isKnown = [...byId("table").options].some((option) => option.value === table);
  byId("table").value = isKnown ? table : "";
  document.title = `${table} · lazydelta`;
  if (!editor.value) editor.value = firstQuery(); // now: later it would come between what somebody types
  byId("main").classList.remove("unopened");
  fileMap.clear();
  rowGroups.unknown("being looked for");
  const at = version === null ? "" : `?version=${version}`;
  const path = `tables/${encodeURIComponent(table)}`;
  try {
    now.facts = await ask(path + at, { signal });
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    unopened(version);
    lost(error);
    if (error instanceof GoneError) setTimeout(() => signal.aborted || open(table, version), AGAIN_MS);
    return;
  }
  try {
    calm();
    news.found();
    remember();
    facts.show(now.facts);
    say(byId("query-version"), version === null ? "" : `The page shows version ${version}; queries read the newest.`);
    rowGroups.show(now.facts, null);
    const follows = news.follow(table, version === null ? now.facts.version : null, signal);
    await Promise.all([timeline.load(table, version, signal), drawMap(signal), look(), follows]);
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) lost(error);
  }
}

// Nothing is known of a table that cannot be opened: nothing of it, or of the one before, is shown.
function unopened(version) {
  byId("main").classList.add("unopened");
  fileMap.fail("not known: the table cannot be opened");
  rowGroups.unknown("not known: the table cannot be opened");
  facts.clear();
  timeline.fail("not known: the table cannot be opened", version);
  addNewest([], false);
  say(byId("query-version"), "");
  byId("connection").textContent = "";
}

async function drawMap(signal) {
  now.drawnAt = performance.now();
  now.isDrawing = true;
  const { version } = now.facts;
  fileMap.clear(version);
  now.newest = [];
  try {
    const path = `tables/${encodeURIComponent(now.table)}/files?version=${version}`;
    for await (const { name, value } of stream(path, { signal })) {
      if (name === "map") fileMap.takeAll(value);
      if (name === "newest") addNewest(value, false);
      if (name === "end") fileMap.end();
    }
    if (now.facts.version === version) facts.show({ ...now.facts, ...fileMap.counts() });
  } catch (error) {
    if (!signal.aborted) fileMap.fail("not known: reading the list of files broke off");
    throw error;
  } finally {
    now.isDrawing = false;
  }
}

// What the query that is typed would read.
async function look() {
  now.reading?.abort();
  const reading = new AbortController();
  now.reading = reading;
  const text = editor.value.trim();
  if (!text || !now.facts) {
    editor.error(null, true);
    unread();
    return;
  }
  const body = { language: editor.language, text: editor.value, version: now.facts.version };
  try {
    for await (const { name, value } of stream(`tables/${encodeURIComponent(now.table)}/reads`, { body, signal: reading.signal })) {
      if (name === "plan") planned(value);
      if (name === "map") fileMap.takeRead(value);
      if (name === "end") fileMap.endRead();
    }
    editor.error(null, true);
  } catch (error) {
    if (error.name === "AbortError" || reading.signal.aborted) return;
    unread();
    if (error instanceof ApiError && TYPED_FAULTS.has(error.status)) editor.error(error.fault, true, body.text);
    else if (error instanceof ApiError && error.status !== 401) fileMap.noRead(`what the query reads is not known: ${error.message}`);
    else lost(error);
  }
}

function planned(plan) {
  if (!plan.is_read || plan.predicate === null) {
    fileMap.noRead(plan.is_read ? "the query may read all of them" : plan.is_known ? "the query does not read this table"
      : "what the query reads shows when it runs", plan.is_read);
    rowGroups.show(now.facts, plan.is_read ? plan : null);
    return;
  }
  fileMap.beginRead();
  rowGroups.show(now.facts, plan);
}

function unread() {
  fileMap.noRead();
  if (now.facts) rowGroups.show(now.facts, null);
}

let typedTimer;
let redrawTimer;

function typed() {
  clearTimeout(typedTimer);
  typedTimer = setTimeout(() => {
    remember();
    look();
  }, TYPED_MS);
}

function languageChosen() {
  const isUntouched = ["", firstQuery("sql"), firstQuery("kql")].includes(editor.value);
  if (isUntouched) editor.value = firstQuery();
  clearTimeout(typedTimer);
  remember();
  look();
}

// Later versions came while the page was open.
async function arrived({ version, versions, files }, after) {
  timeline.add(versions);
  addNewest(files, true);
  fileMap.addFresh(files, changedBy(versions, version - after, "adds"), changedBy(versions, version - after, "removes"));
  const { signal } = now.shown;
  try {
    const found = await ask(`tables/${encodeURIComponent(now.table)}?version=${version}`, { signal });
    if (signal.aborted || found.version < now.facts.version) return; // a later answer was quicker
    now.facts = found;
    facts.show(found);
    await redrawn(signal);
  } catch (error) {
    if (error.name !== "AbortError" && !(error instanceof GoneError)) lost(error);
  }
}

// The map as it is now, though not all the time: until then its line says of which version it is.
async function redrawn(signal) {
  clearTimeout(redrawTimer);
  const left = now.isDrawing ? REDRAWN_MS : REDRAWN_MS - (performance.now() - now.drawnAt);
  if (left > 0) {
    redrawTimer = setTimeout(() => signal.aborted || redrawn(signal).catch((error) => signal.aborted || lost(error)), left);
    return;
  }
  now.reading?.abort(); // it colours the map that goes
  await drawMap(signal);
  await look();
}

// How many files versions added or removed, and whether that is all: versions may be too many, or too large, to be counted.
function changedBy(versions, count, what) {
  const isAll = versions.length === count && versions.every((one) => one[what] !== null);
  return { files: versions.reduce((sum, one) => sum + (one[what] ?? 0), 0), isAll };
}

function addNewest(files, isAhead) {
  now.newest = (isAhead ? [...files, ...now.newest] : [...now.newest, ...files]).slice(0, NEWEST_MAX);
  rows(byId("newest-files"), ["time (UTC)", "size", "path"], now.newest.map(([path, size, at]) => [time(at), bytes(size), path]));
  byId("newest").querySelector("summary").textContent = `Newest ${plural(now.newest.length, "file")}`;
}

// Who is not signed in has no table to choose, and nothing to share.
function signedIn(isIn) {
  show(byId("sign-in"), !isIn);
  for (const part of [byId("main"), byId("table").parentElement, byId("version"), byId("share")]) show(part, isIn);
}

// Nothing keeps it from that.
function calm() {
  say(byId("notice"), canStream() ? "" : "This browser cannot read streams: maps and rows appear when they are whole.");
}

// What keeps the page from showing anything.
function lost(error) {
  if (error instanceof ApiError && error.status === 401 || error.fault?.code === "Unauthenticated") {
    now.shown?.abort();
    signedIn(false);
    say(byId("sign-in-error"), token.get() ? `The server does not know this token: ${error.message}.` : "");
    token.clear();
    byId("token").focus();
  } else if (error instanceof GoneError) {
    news.lose();
    say(byId("notice"), "The server does not answer; trying again.");
  } else if (error instanceof ApiError) {
    const fix = error.fault.fix ? ` (${error.fault.fix})` : "";
    say(byId("notice"), `${error.message}${fix}`);
  } else throw error;
}

function remember() {
  state.write({
    table: now.table,
    version: now.version,
    language: editor.language === "sql" ? null : editor.language,
    query: editor.value,
  });
}

async function share() {
  remember();
  const button = byId("share");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copy it from the address bar";
  }
  setTimeout(() => { button.textContent = "Copy link"; }, 2000);
}

function firstQuery(language = editor.language) {
  const names = now.tables.find((one) => one.name === now.table);
  if (!names) return "";
  return language === "sql" ? `select * from ${names.sql_name} limit 100` : `${names.kql_name} | take 100`;
}
