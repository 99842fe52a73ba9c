// Schema, features, properties, counts.

import { byId, make, pairs, rows } from "./dom.js";
import { bytes, count, plural } from "./format.js";

export function clear() {
  byId("version").textContent = "";
  for (const id of ["facts", "schema", "features", "properties"]) byId(id).replaceChildren();
}

export function show(facts) {
  byId("version").textContent = `version ${count(facts.version)}`;
  const sidecar = facts.sidecar;
  pairs(byId("facts"), [
    ["table", [facts.name, facts.comment, facts.description].filter(Boolean).join(": ")],
    ["files", facts.num_files === null ? "being counted on the map" : `${count(facts.num_files)}, ${bytes(facts.size_bytes)}`],
    ["checkpoint", facts.checkpoint_version === null ? "none"
      : `version ${count(facts.checkpoint_version)}, ${bytes(facts.checkpoint_bytes)}`],
    ["since then", `${plural(facts.commits_since_checkpoint, "commit")}, ${bytes(facts.tail_bytes)}`],
    ["sidecar", sidecar === null ? (facts.sidecar_reason === "no sidecar" ? "none" : `none that serves: ${facts.sidecar_reason}`)
      : `of checkpoint ${count(sidecar.version)}: ${plural(sidecar.row_groups, "row group")} in ` +
        `${plural(sidecar.parts, "part")}, ${bytes(sidecar.bytes)}, by ${sidecar.order_column ?? "path"}`],
    ["protocol", `reader ${facts.reader_version}, writer ${facts.writer_version}`],
  ]);
  const parts = new Set(facts.partition_columns);
  rows(byId("schema"), ["column", "type", "notes"], facts.columns.map((column) => [
    column.name, column.type, [parts.has(column.name) ? "partition" : "", column.is_nullable ? "" : "not null"]
      .filter(Boolean).join(", ")]));
  const features = [...new Set([...facts.reader_features, ...facts.writer_features])].sort();
  byId("features").replaceChildren(...(features.length ? features : ["none"]).map((name) => make("li", {}, name)));
  const properties = Object.entries(facts.properties);
  rows(byId("properties"), ["property", "value"], properties.length ? properties : [["none", ""]]);
}
