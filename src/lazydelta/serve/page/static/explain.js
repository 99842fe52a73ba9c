// What a query did: requests, bytes, round trips, time to the first row, what was pushed down.

import { byId, make, pairs } from "./dom.js";
import { bytes, count, milliseconds, plural } from "./format.js";

export function clear() {
  byId("panel-explain").replaceChildren(make("p", { class: "hint" }, "It is told when the query has ended."));
}

export function show(end) {
  const told = end.explain;
  const list = make("dl", { class: "facts" });
  const entries = [
    ["rows", count(end.rows)],
    ["first row", end.first_row_ms === null ? "none" : milliseconds(end.first_row_ms)],
    ["elapsed", milliseconds(end.elapsed_ms)],
  ];
  if (!told) {
    pairs(list, entries);
    byId("panel-explain").replaceChildren(list);
    return;
  }
  entries.push(
    ["requests", count(told.requests)],
    ["round trips", told.round_trips === 1 ? "1, for the log" : `${count(told.round_trips)} one after the other, for the log`],
    ["bytes", `${bytes(told.log_bytes)} of the log, ${bytes(told.data_bytes)} of data`],
    ["pushed down", told.pushed.join("\n") || "nothing: every file may be read"],
    ["left to DuckDB", told.left_to_duckdb.join(" ← ") || "nothing"],
    ["memory at most", told.memory_limit],
  );
  if (told.fallbacks) entries.push(["fallbacks", count(told.fallbacks)]);
  pairs(list, entries);
  const parts = [list];
  for (const table of told.tables) parts.push(make("h3", {}, `${table.name} at version ${count(table.version)}`), ofTable(table));
  if (told.sql) parts.push(make("h3", {}, "As SQL"), make("pre", {}, told.sql));
  byId("panel-explain").replaceChildren(...parts);
}

function ofTable(table) {
  const list = make("dl", { class: "facts" });
  const entries = [];
  if (table.files_by_duckdb) {
    entries.push(["DuckDB reads", `${plural(table.files_by_duckdb, "file")} of ${bytes(table.bytes_by_duckdb)} by itself`]);
  }
  for (const scan of table.scans) {
    if (scan.columns) entries.push(["columns", scan.columns.join(", ") || "none"]);
    if (scan.pushed) entries.push(["filter", scan.pushed]);
    if (scan.log) {
      entries.push(
        ["files from", scan.log.source],
        ["files", `${count(scan.log.files)} found, ${count(scan.log.files_skipped)} skipped`],
        ["index", `${plural(scan.log.row_groups_read, "row group")} fetched${isAtHand(scan.log) ? " (what was needed was at hand)" : ""}, ` +
          `${count(scan.log.row_groups_skipped)} skipped`],
      );
    }
    if (scan.data) {
      entries.push(["data", `${plural(scan.data.files_opened, "file")} opened, ${plural(scan.data.row_groups_read, "row group")} read, ` +
        `${count(scan.data.row_groups_skipped)} skipped, ${plural(scan.data.rows_read, "row")}`]);
    }
  }
  pairs(list, entries);
  return list;
}

// Row groups of the sidecar that another scan has fetched are kept.
function isAtHand(log) {
  return log.source.startsWith("sidecar") && !log.row_groups_read && log.files > 0;
}
