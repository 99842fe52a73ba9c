"""Parts of the sidecar: sorted rows in, one Parquet file (or its two halves) and its manifest entry out.

Why: the local builder and the Spark feeder write through here, so that their parts are the same.
Contract: rows arrive sorted by `layout.sort_keys`, nulls first. Memory is one row group of Arrow and the
compressed part. A part of `PartShape.rows` rows keeps its footer within the configured budget; a table so
wide that fewer than `limits.SIDECAR_ROW_GROUPS_MIN` row groups would fit is split into index and statistics.
Design: docs/adr/0011-removed-rows-by-number.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.footer_seal import sealed
from lazydelta.sidecar.format.layout import SidecarLayout, sort_keys
from lazydelta.sidecar.format.manifest import FORMAT, Binding, Part, RowGroup
from lazydelta.sidecar.format.names import Tier, part_name
from lazydelta.sidecar.format.part_encoding import (
    NAN_KEY,
    footer_crc32,
    footer_length,
    open_writer,
    row_groups_of,
)
from lazydelta.sidecar.format.zones import OrderRange, ZoneGatherer
from lazydelta.storage import Storage

FACTS_KEY = b"lazydelta.sidecar"
_FACTS_BYTES = 4 * limits.KIB  # of the footer, kept free for the facts and counts of NaN
# Numbers late in a part take more bytes in the footer than the sample's do; more so after a small sample.
_CHUNK_GROWTH_BYTES, _CHUNK_GROWTH_BYTES_SMALL = 3, 10
_NAN_COUNT_BYTES = 6  # of one row group and column, in the footer's own keys
_GROWTH = 1.05  # texts among a row group's bounds may be longer than the sample's


class PartFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a part says of itself, in its footer: enough to tell the parts of one build from others."""

    version: int  # of the checkpoint it was made for
    build: str
    number: int
    num_files: int  # live files of the table at the version
    table_id: str
    binding: Binding
    parts: int | None = None  # of the build, where known when the part was written
    is_whole_build: bool = False  # no part of an earlier build is needed beside this build's
    format: int = FORMAT
    schema_hash: str = ""
    order_column: str | None = None


class PartShape(msgspec.Struct, frozen=True, kw_only=True):
    """How large a part may be."""

    row_groups: int
    rows: int
    is_tiered: bool


class WrittenPart(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A part in memory, and its entry for the manifest; `row_groups` count from 0 with `part` 0."""

    part: Part
    row_groups: list[RowGroup]
    body: bytes
    stats_body: bytes | None = None


def rows_per_part(layout: SidecarLayout, sample: pa.RecordBatch, config: SidecarConfig) -> PartShape:
    """The shape that keeps footers within the budget, measured by writing the sample (typed rows)."""
    rows = pa.Table.from_batches([sample.slice(0, config.row_group_rows)])
    groups = _groups_within(rows.select(layout.schema.names), layout, config)
    is_tiered = groups < limits.SIDECAR_ROW_GROUPS_MIN and bool(layout.stats_columns)
    if is_tiered:
        halves = (layout.index_columns, layout.stats_columns)
        groups = min(_groups_within(rows.select(names), layout, config) for names in halves)
        groups = max(groups, limits.SIDECAR_ROW_GROUPS_MIN)
    groups = max(1, min(groups, config.row_groups_max))
    return PartShape(row_groups=groups, rows=groups * config.row_group_rows, is_tiered=is_tiered)


def write_part(
    batches: Iterable[pa.RecordBatch],
    *,
    layout: SidecarLayout,
    facts: PartFacts,
    config: SidecarConfig,
    shape: PartShape,
) -> WrittenPart:
    """One part of these rows, at most `shape.rows` of them and at least one."""
    zones = ZoneGatherer(layout)
    tiers = _tiers(layout, is_tiered=shape.is_tiered)
    sinks = [pa.BufferOutputStream() for _ in tiers]
    writers = [
        open_writer(sink, _selected(layout.schema, names))
        for sink, names in zip(sinks, tiers.values(), strict=True)
    ]
    total_bytes = 0
    last: pa.Table | None = None
    for rows in row_groups_of(batches, config.row_group_rows):
        assert _is_sorted(rows, last, layout), "rows come sorted by layout.sort_keys, nulls first"
        last = rows.slice(rows.num_rows - 1)
        zones.add(rows)
        total_bytes += pc.sum(rows.column("size"), min_count=0).as_py()
        for writer, names in zip(writers, tiers.values(), strict=True):
            writer.write_table(rows.select(names), row_group_size=rows.num_rows)
    assert 0 < zones.row_count <= shape.rows, f"{zones.row_count} rows for a part of up to {shape.rows}"
    for writer in writers:
        writer.add_key_value_metadata(
            {FACTS_KEY: _facts_json(facts, layout), NAN_KEY: msgspec.json.encode(zones.nan_counts)}
        )
        writer.close()
    bodies = [sealed(sink.getvalue().to_pybytes()) for sink in sinks]
    names = [part_name(facts.version, facts.build, facts.number, tier) for tier in tiers]
    return written_part(names, bodies, facts=facts, layout=layout, zones=zones, total_bytes=total_bytes)


def store_part(storage: Storage, config: SidecarConfig, written: WrittenPart) -> None:
    """Put the part's file or files, each only if absent; one that is there already must be the same."""
    part = written.part
    files = [(part.file, written.body)]
    if part.stats_file is not None and written.stats_body is not None:
        files.append((part.stats_file, written.stats_body))
    for name, body in files:
        target = f"{config.folder}/{name}"
        if not storage.put_if_absent(target, body) and storage.get(target) != body:
            raise damaged(
                "another file has the name of a part that was to be written", f"{storage.root}/{target}"
            )


def written_part(
    names: list[str],
    bodies: list[bytes],
    *,
    facts: PartFacts,
    layout: SidecarLayout,
    zones: ZoneGatherer,
    total_bytes: int,
) -> WrittenPart:
    """A part and its entry, of the bytes of its files and what was gathered of its rows."""
    whole = zones.part_range()
    is_tiered = len(names) > 1
    part = Part(
        file=names[0],
        build=facts.build,
        size_bytes=len(bodies[0]),
        footer_bytes=footer_length(bodies[0]),
        footer_crc32=footer_crc32(bodies[0]),
        schema_hash=layout.schema_hash,
        num_rows=zones.row_count,
        num_row_groups=len(zones.order_ranges),
        order_min=whole.min,
        order_max=whole.max,
        order_nulls=whole.nulls,
        bounds=zones.zone_bounds(),
        stats_file=names[1] if is_tiered else None,
        stats_size_bytes=len(bodies[1]) if is_tiered else 0,
        stats_footer_bytes=footer_length(bodies[1]) if is_tiered else 0,
        stats_footer_crc32=footer_crc32(bodies[1]) if is_tiered else None,
        total_bytes=total_bytes,
    )
    row_groups = row_group_entries(pq.read_metadata(pa.BufferReader(bodies[0])), zones.order_ranges)
    return WrittenPart(
        part=part, row_groups=row_groups, body=bodies[0], stats_body=bodies[1] if is_tiered else None
    )


def row_group_entries(footer: pq.FileMetaData, ranges: Iterable[OrderRange]) -> list[RowGroup]:
    """The row groups with their place in the file: from their first chunk's start to their last one's end."""
    entries = []
    for index, of_order in enumerate(ranges):
        group = footer.row_group(index)
        start, end = row_group_span(group)
        entries.append(
            RowGroup(
                index=index,
                byte_offset=start,
                byte_length=end - start,
                num_rows=group.num_rows,
                event_hour_min=of_order.min,
                event_hour_max=of_order.max,
                event_hour_nulls=of_order.nulls,
            )
        )
    return entries


def row_group_span(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Where a row group's bytes begin and end."""
    spans = []
    for at in range(group.num_columns):
        chunk = group.column(at)
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset:
            start = min(start, chunk.dictionary_page_offset)
        spans.append((start, start + chunk.total_compressed_size))
    return min(start for start, _ in spans), max(end for _, end in spans)


def _is_sorted(rows: pa.Table, before: pa.Table | None, layout: SidecarLayout) -> bool:
    """Whether the rows are in a part's order, the last one of the row group before included.

    Engines place NaN differently; an order column that can hold it is not judged.
    """
    names = [name for name, _ in sort_keys(layout)]
    columns = rows.select(names) if before is None else pa.concat_tables([before, rows]).select(names)
    if any(_is_floating(column) for column in columns):
        return True
    is_before = is_after = None
    for column in columns:
        one, next_one = column.slice(0, len(column) - 1), column.slice(1)
        less, greater = _less(one, next_one), _less(next_one, one)
        if is_before is None:
            is_before, is_after = less, greater
        else:
            is_after = pc.or_(is_after, pc.and_(pc.invert(is_before), greater))
    return not pc.any(is_after).as_py()


def _less(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether one value comes before the other; nulls come first."""
    null_first = pc.and_(left.is_null(), right.is_valid())
    return pc.or_(null_first, pc.fill_null(pc.less(left, right), False))


def _facts_json(facts: PartFacts, layout: SidecarLayout) -> bytes:
    return msgspec.json.encode(
        msgspec.structs.replace(facts, schema_hash=layout.schema_hash, order_column=layout.order_column)
    )


def _tiers(layout: SidecarLayout, *, is_tiered: bool) -> dict[Tier | None, list[str]]:
    if not is_tiered:
        return {None: layout.schema.names}
    return {Tier.INDEX: list(layout.index_columns), Tier.STATS: list(layout.stats_columns)}


def _selected(schema: pa.Schema, names: list[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _groups_within(rows: pa.Table, layout: SidecarLayout, config: SidecarConfig) -> int:
    """How many row groups like this one the footer's budget holds."""
    schema = _selected(layout.schema, rows.schema.names)
    one, two = (_footer_bytes(rows, schema, times) for times in (1, 2))
    is_small = 2 * rows.num_rows < config.row_group_rows
    growth = _CHUNK_GROWTH_BYTES_SMALL if is_small else _CHUNK_GROWTH_BYTES
    counted = sum(pc.any(pc.is_nan(column)).as_py() or False for column in rows if _is_floating(column))
    each = (two - one + growth * len(rows.schema.names) + _NAN_COUNT_BYTES * counted) * _GROWTH
    fixed = one - (two - one) + _FACTS_BYTES
    return int((config.footer_bytes_max - fixed) // each)


def _is_floating(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_floating(column.type))


def _footer_bytes(rows: pa.Table, schema: pa.Schema, times: int) -> int:
    sink = pa.BufferOutputStream()
    with open_writer(sink, schema) as writer:
        for _ in range(times):
            writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
    return footer_length(sink.getvalue().to_pybytes())
