"""Checkpoints on disk, in every layout Delta on Spark writes, a row group at a time.

Why the care about row groups: what a reader pays for the first hundred files depends on the size of a row
group, its pages, its codec and its encodings. All are those of Spark's Parquet writer.
Contract: holds one row group in memory, whatever the number of files; sums up sizes while it passes.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bench.actions import line
from bench.checkpoint_rows import file_rows, table_rows
from bench.checkpoint_types import schema, sidecar_schema, top_level_schema
from bench.files import Files
from bench.fixed_text import Ints
from bench.spec import CHECKPOINT_VERSION, TODAY_US, TableSpec, compact, metadata, protocol
from bench.totals import FileTotals

# Spark's `parquet.block.size`, which counts bytes after encoding and compression.
ROW_GROUP_BYTES = 128 * 1024 * 1024
_CHUNK_FILES = 65_536
_MODIFIED_MS = TODAY_US // 1000
# Spark distributes its state over 50 partitions by the hash of the path; rows without a path fall into
# the 43rd, so protocol and metadata lie deep inside the checkpoint.
SPARK_PARTITIONS, _PARTITION_OF_NULL = 50, 42
# Columns whose values repeat; Spark's writer gives up a dictionary that does not pay.
DICTIONARY_COLUMNS = (
    "add.partitionValues.key_value.key",
    "add.partitionValues.key_value.value",
    "add.deletionVector.storageType",
    "add.deletionVector.offset",
    "add.deletionVector.sizeInBytes",
    "add.deletionVector.cardinality",
    "add.partitionValues_parsed.date",
    "add.partitionValues_parsed._event_hour",
    "add.stats_parsed.numRecords",
    "add.stats_parsed.minValues.device_id",
    "add.stats_parsed.minValues.event_time",
    "add.stats_parsed.maxValues.device_id",
    "add.stats_parsed.maxValues.event_time",
    "add.stats_parsed.nullCount.device_id",
    "add.stats_parsed.nullCount.event_time",
    "add.stats_parsed.nullCount.value",
    "remove.deletionTimestamp",
    "remove.partitionValues.key_value.key",
    "remove.partitionValues.key_value.value",
    "metaData.configuration.key_value.value",
)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of file actions."""

    path: Path
    row_count: int

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size


def write_checkpoint(spec: TableSpec, log: Path, order: Ints, totals: FileTotals) -> None:
    """Write the checkpoint of `spec` with files in `order`, and `_last_checkpoint`."""
    stem = f"{CHECKPOINT_VERSION:020d}.checkpoint"
    hint: dict[str, Any] = {}
    if spec.is_v2:
        (log / "_sidecars").mkdir()
        names = [sidecar_name(spec, part) for part in range(spec.checkpoint_parts)]
        parts = _write_parts(spec, log / "_sidecars", names, order, totals)
        listed = [listed_sidecar(part.path.name, part.size_bytes) for part in parts]
        rows = sum(part.row_count for part in parts)
        hint["v2Checkpoint"] = write_top_level(spec, log, listed, actions=rows)
        size, rows = sum(p.size_bytes for p in parts) + hint["v2Checkpoint"]["sizeInBytes"], len(parts) + 3
    else:
        count = spec.checkpoint_parts if spec.checkpoint == "v1-multipart" else 1
        numbered = [f"{stem}.{part + 1:010d}.{count:010d}.parquet" for part in range(count)]
        names = numbered if spec.checkpoint == "v1-multipart" else [f"{stem}.parquet"]
        parts = _write_parts(spec, log, names, order, totals)
        hint |= {"parts": count} if spec.checkpoint == "v1-multipart" else {}
        size, rows = sum(p.size_bytes for p in parts), 0
    rows += sum(p.row_count for p in parts)
    known = {"version": CHECKPOINT_VERSION, "size": rows, "sizeInBytes": size, "numOfAddFiles": spec.files}
    (log / "_last_checkpoint").write_text(compact(_in_order(known | hint)))


def write_row_groups(path: Path, chunks: Iterator[pa.Table], kind: pa.Schema) -> int:
    """Write chunks as row groups of Spark's size; returns the number of rows."""
    rows_max, waiting, rows_written = 0, [], 0
    with open_writer(path, kind) as writer:
        for chunk in chunks:
            rows_max = rows_max or _rows_in_row_group(chunk)
            waiting.append(chunk)
            table = pa.concat_tables(waiting)
            while table.num_rows >= rows_max:
                writer.write_table(table.slice(0, rows_max), row_group_size=rows_max)
                rows_written += rows_max
                table = table.slice(rows_max)
            waiting = [table]
        rest = pa.concat_tables(waiting) if waiting else kind.empty_table()
        if rest.num_rows:
            writer.write_table(rest, row_group_size=rest.num_rows)
    return rows_written + int(rest.num_rows)


def open_writer(where: Path | pa.NativeFile, kind: pa.Schema) -> pq.ParquetWriter:
    """A Parquet writer with the settings of Spark's."""
    return pq.ParquetWriter(
        where,
        kind,
        version="1.0",
        compression="snappy",
        use_dictionary=[*(name for name in DICTIONARY_COLUMNS if _has(kind, name)), *_readings(kind)],
        use_deprecated_int96_timestamps=True,
        data_page_version="1.0",
        write_page_index=True,
        store_schema=False,
    )


def _write_parts(
    spec: TableSpec, folder: Path, names: list[str], order: Ints, totals: FileTotals
) -> list[Part]:
    """The file actions, cut into as many Parquet files as there are names."""
    kind = sidecar_schema(spec) if spec.is_v2 else schema(spec)
    home = spec.files * _PARTITION_OF_NULL // SPARK_PARTITIONS
    parts = []
    for number, name in enumerate(names):
        start, stop = (spec.files * at // len(names) for at in (number, number + 1))
        table_at = home - start if start <= home < stop and not spec.is_v2 else None
        chunks = _chunks(spec, order[start:stop], kind, totals, table_at=table_at)
        parts.append(Part(path=folder / name, row_count=write_row_groups(folder / name, chunks, kind)))
    return parts


def _chunks(
    spec: TableSpec, numbers: Ints, kind: pa.Schema, totals: FileTotals, *, table_at: int | None
) -> Iterator[pa.Table]:
    """Rows of these files in order, and before the file at `table_at` those of the table itself."""
    extra_cut = [] if table_at is None else [table_at]
    cuts = sorted({*range(0, len(numbers), _CHUNK_FILES), len(numbers), *extra_cut})
    for start, stop in itertools.pairwise(cuts):
        if start == table_at:
            yield table_rows(spec, kind)
        totals.count(Files(spec, numbers[start:stop]))
        yield file_rows(spec, numbers[start:stop], kind)


def _rows_in_row_group(sample: pa.Table) -> int:
    """Rows that fill a row group, judged by the first chunk."""
    sink = pa.BufferOutputStream()
    with open_writer(sink, sample.schema) as writer:
        writer.write_table(sample)
    group = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata.row_group(0)
    size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
    return max(1, int(ROW_GROUP_BYTES * sample.num_rows // max(size, 1)))


def _has(kind: pa.Schema, dotted: str) -> bool:
    top, below, *_ = dotted.split(".")
    return top in kind.names and kind.field(top).type.get_field_index(below) >= 0


def _readings(kind: pa.Schema) -> list[str]:
    """Dotted names of the statistics that a wide table has on top."""
    if "add" not in kind.names or kind.field("add").type.get_field_index("stats_parsed") < 0:
        return []
    sides = [
        side for side in kind.field("add").type.field("stats_parsed").type if pa.types.is_struct(side.type)
    ]
    return [
        f"add.stats_parsed.{side.name}.{column.name}"
        for side in sides
        for column in side.type
        if column.name.startswith("reading_")
    ]


def listed_sidecar(name: str, size_bytes: int) -> dict[str, Any]:
    """What a V2 checkpoint says of one of its files."""
    return {"path": name, "sizeInBytes": size_bytes, "modificationTime": _MODIFIED_MS}


def write_top_level(
    spec: TableSpec,
    log: Path,
    listed: list[dict[str, Any]],
    *,
    actions: int,
    version: int = CHECKPOINT_VERSION,
) -> dict[str, Any]:
    """The V2 checkpoint's own file; returns what `_last_checkpoint` says of it."""
    stem = log / f"{version:020d}.checkpoint.{_unique(spec, 0)}"
    tags = {"sidecarNumActions": str(actions), "numOfAddFiles": str(spec.files)}
    about = {"version": version, "tags": tags}
    state = [("protocol", protocol(spec)), ("metaData", metadata(spec))]
    if spec.checkpoint == "v2-json":
        path = stem.with_name(stem.name + ".json")
        told = [("checkpointMetadata", about), *(("sidecar", sidecar) for sidecar in listed), *state]
        path.write_bytes(b"".join(line(kind, action) for kind, action in told))
    else:
        path = stem.with_name(stem.name + ".parquet")
        kind = top_level_schema()
        tagged = {"version": version, "tags": list(tags.items())}
        rows = [
            {"checkpointMetadata": tagged},
            *({"sidecar": sidecar | {"tags": None}} for sidecar in listed),
        ]
        tables = [pa.Table.from_pylist(rows, schema=kind), table_rows(spec, kind)]
        with open_writer(path, kind) as writer:
            writer.write_table(pa.concat_tables(tables))
    actions_of_table = [{kind: action} for kind, action in state]
    size = {"sizeInBytes": path.stat().st_size, "modificationTime": _MODIFIED_MS}
    return {"path": path.name, **size, "nonFileActions": actions_of_table, "sidecarFiles": listed}


def sidecar_name(spec: TableSpec, part: int, version: int = CHECKPOINT_VERSION) -> str:
    """Of one of the files of a V2 checkpoint."""
    place = f"{part + 1:010d}.{spec.checkpoint_parts:010d}"
    return f"{version:020d}.checkpoint.{place}.{_unique(spec, part + 1)}.parquet"


def _unique(spec: TableSpec, number: int) -> str:
    return str(uuid.UUID(int=(spec.seed << 70) + number, version=4))


def _in_order(hint: dict[str, Any]) -> dict[str, Any]:
    # Spark writes `parts` before the byte count.
    first = [key for key in ("version", "size", "parts") if key in hint]
    return {key: hint[key] for key in first} | hint
