"""Parts: what is written is read back, in its place, within its footer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.sidecar import (
    DamagedSidecarError,
    Part,
    PartReader,
    PartShape,
    SidecarConfig,
    SidecarLayout,
    WrittenPart,
    rows_per_part,
    store_part,
    write_part,
)
from lazydelta.storage import Storage
from tests.support import actions
from tests.support.actions import Action
from tests.unit.sidecar.adds import PARTITIONS, adds_of
from tests.unit.sidecar.samples import (
    EVERY_TYPE,
    layout_for,
    part_facts,
    rows_in_slices,
    rows_of,
    sorted_rows,
    storage_at,
    written,
)

CONFIG = SidecarConfig()
LAYOUT = layout_for({**EVERY_TYPE, **PARTITIONS}, partition_columns=list(PARTITIONS))
PLAIN = layout_for({"_event_hour": "string", "v": "double"}, partition_columns=["_event_hour"])


def stored(storage: Storage, part: WrittenPart) -> PartReader:
    store_part(storage, CONFIG, part)
    return PartReader(storage, CONFIG.folder, part.part)


def same(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    """By value, NaN included."""
    return left.schema.equals(right.schema, check_metadata=True) and repr(left.to_pylist()) == repr(
        right.to_pylist()
    )


def together(batches: Any, schema: pa.Schema) -> pa.RecordBatch:
    table = pa.Table.from_batches(list(batches), schema).combine_chunks()
    return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema)


def hours(count: int, per_hour: int = 10) -> list[Action]:
    """Files of successive hours."""
    return [
        actions.add(
            f"_event_hour={at // per_hour:010}/part-{at:05}",
            partition={"_event_hour": f"{at // per_hour:010}"},
            size=at,
            stats=actions.stats(at, low={"v": at}, high={"v": at + 0.5}, nulls={"v": 0}),
        )
        for at in range(count)
    ]


# --- round trip ------------------------------------------------------------------


# Twenty: with a row group for each row, footers of so many columns leave room for 26.
@given(adds=adds_of(EVERY_TYPE, max_size=20), group=st.integers(1, 9), is_tiered=st.booleans())
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, adds: list[Action], group: int, is_tiered: bool
) -> None:
    rows = sorted_rows(rows_of(adds or [actions.add("only", partition={})], LAYOUT), LAYOUT)
    part = written(rows, LAYOUT, row_group_rows=group, is_tiered=is_tiered)
    reader = stored(storage_at(tmp_path_factory.mktemp("table")), part)
    back = together(reader.batches(LAYOUT.schema.names, batch_rows=4), LAYOUT.schema)
    assert same(back, rows)
    assert [found.num_rows for found in reader.row_groups()] == [g.num_rows for g in part.row_groups]
    assert all(g.num_rows == group for g in part.row_groups[:-1])
    assert {field.name for field in reader.schema} == {*LAYOUT.schema.names}


def test_columns_and_row_groups_are_read_as_asked_for(tmp_path: Path) -> None:
    rows = rows_of(hours(95), PLAIN)
    storage = storage_at(tmp_path)
    reader = stored(storage, written(rows, PLAIN, row_group_rows=10))
    found = list(reader.batches(["min.v", "path"], [4, 1], batch_rows=100))
    assert found[0].schema.names == ["min.v", "path"]
    assert [value for batch in found for value in batch.column(0).to_pylist()] == [
        *map(float, range(40, 50)),
        *map(float, range(10, 20)),
    ]


def test_removed_rows_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    rows = rows_of(hours(95), PLAIN)
    part = written(rows, PLAIN, row_group_rows=10)
    reader = stored(storage_at(tmp_path), part)
    reader.part = msgspec.structs.replace(part.part, removed=(0, 1, 8, 4, 20, 10, 94, 1))
    live = [p for batch in reader.batches(["size"], batch_rows=7) for p in batch.column(0).to_pylist()]
    gone = {0, 8, 9, 10, 11, *range(20, 30), 94}
    assert live == [at for at in range(95) if at not in gone]
    assert [p for b in reader.batches(["size"], [1]) for p in b.column(0).to_pylist()] == [*range(12, 20)]
    assert list(reader.batches(["size"], [2])) == []
    everything = list(reader.batches(["size"], live_only=False))
    assert sum(batch.num_rows for batch in everything) == 95


def test_only_the_half_that_holds_the_columns_is_opened(tmp_path: Path) -> None:
    part = written(rows_of(hours(25), PLAIN), PLAIN, row_group_rows=10, is_tiered=True)
    storage = storage_at(tmp_path)
    reader = stored(storage, part)
    assert part.part.file.endswith(".index.parquet")
    assert part.part.stats_file is not None
    assert part.part.stats_file.endswith(".stats.parquet")
    storage.delete(f"{CONFIG.folder}/{part.part.stats_file}")
    found = list(reader.batches(["path", "_event_hour", "num_records"]))
    assert sum(batch.num_rows for batch in found) == 25
    with pytest.raises(DamagedSidecarError, match="not there"):
        list(reader.batches(["path", "min.v"]))


# --- the footer --------------------------------------------------------------------


def wide_rows(columns: int, rows: int, text_bytes: int) -> tuple[SidecarLayout, pa.RecordBatch]:
    layout = layout_for(
        {"_event_hour": "string", **{f"column_{n}": "string" if n % 2 else "long" for n in range(columns)}},
        partition_columns=["_event_hour"],
        configuration={"delta.dataSkippingNumIndexedCols": "-1"},
    )
    dice = random.Random(columns)

    def value(number: int) -> Any:
        return dice.randbytes(text_bytes // 2).hex() if number % 2 else dice.getrandbits(60)

    adds = []
    for at in range(rows):
        side = {f"column_{n}": value(n) for n in range(columns)}
        stats = actions.stats(at, low=side, high=side, nulls=dict.fromkeys(side, 0))
        adds.append(
            actions.add(
                f"_event_hour=2026020110/part-{at:05}-{dice.randbytes(16).hex()}.snappy.parquet",
                partition={"_event_hour": "2026020110"},
                stats=stats,
            )
        )
    return layout, rows_of(adds, layout)


@pytest.mark.parametrize(("columns", "is_tiered"), [(1, False), (6, False), (30, False), (80, True)])
def test_a_full_part_keeps_its_footers_within_the_budget(columns: int, is_tiered: bool) -> None:
    layout, rows = wide_rows(columns, 30, text_bytes=32)
    config = SidecarConfig(row_group_rows=30)
    shape = rows_per_part(layout, rows, config)
    assert shape.is_tiered == is_tiered
    assert limits.SIDECAR_ROW_GROUPS_MIN <= shape.row_groups <= limits.SIDECAR_ROW_GROUPS_MAX
    at = rows.schema.get_field_index("_event_hour")
    hour_field = rows.schema.field(at)
    full = [
        rows.set_column(at, hour_field, pa.array([f"{hour:010}"] * 30)) for hour in range(shape.row_groups)
    ]
    part = write_part(full, layout=layout, facts=part_facts(), config=config, shape=shape)
    budget = limits.SIDECAR_FOOTER_BYTES_MAX
    footers = [part.part.footer_bytes, part.part.stats_footer_bytes]
    assert max(footers) <= budget or shape.row_groups == limits.SIDECAR_ROW_GROUPS_MIN
    assert max(footers) >= 0.75 * budget or shape.row_groups == limits.SIDECAR_ROW_GROUPS_MAX


def test_a_budget_that_leaves_too_few_row_groups_splits_the_part() -> None:
    rows = rows_of(hours(30), PLAIN)
    roomy = rows_per_part(PLAIN, rows, SidecarConfig(row_group_rows=30))
    tight = rows_per_part(PLAIN, rows, SidecarConfig(row_group_rows=30, footer_bytes_max=16 * limits.KIB))
    assert not roomy.is_tiered
    assert tight.is_tiered
    assert limits.SIDECAR_ROW_GROUPS_MIN <= tight.row_groups < roomy.row_groups
    assert tight.rows == tight.row_groups * 30


def test_a_part_of_an_empty_table_can_be_shaped_too() -> None:
    assert rows_per_part(PLAIN, rows_of([], PLAIN), CONFIG).rows > 0


def test_the_footer_says_what_the_part_is_and_what_its_columns_stand_for(tmp_path: Path) -> None:
    part = written(rows_of(hours(5), PLAIN), PLAIN)
    reader = stored(storage_at(tmp_path), part)
    facts = msgspec.structs.replace(
        part_facts(num_files=5), schema_hash=PLAIN.schema_hash, order_column="_event_hour"
    )
    assert reader.facts == facts
    keys = pq.read_metadata(pa.BufferReader(part.body)).metadata
    assert json.loads(keys[b"lazydelta.columns"])["min.v"] == ["min", "v"]
    assert json.loads(keys[b"lazydelta.sidecar"])["build"] == facts.build
    assert b"ARROW:schema" not in keys


def test_statistics_are_kept_only_where_a_filter_can_use_them() -> None:
    group = pq.read_metadata(pa.BufferReader(written(rows_of(hours(5), PLAIN), PLAIN).body)).row_group(0)
    has = {group.column(at).path_in_schema: group.column(at).is_stats_set for at in range(group.num_columns)}
    assert {name for name, is_set in has.items() if is_set} == {
        "path",
        "size",
        "_event_hour",
        "num_records",
        "min.v",
        "max.v",
        "null_count.v",
    }


def test_pages_are_zstd_and_have_checksums() -> None:
    part = written(rows_of(hours(500), PLAIN), PLAIN)
    group = pq.read_metadata(pa.BufferReader(part.body)).row_group(0)
    assert {group.column(at).compression for at in range(group.num_columns)} == {"ZSTD"}
    paths = group.column(0)
    at = paths.data_page_offset + paths.total_compressed_size - 5
    torn = part.body[:at] + bytes([part.body[at] ^ 1]) + part.body[at + 1 :]
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(pa.BufferReader(torn), page_checksum_verification=True).read()


def test_more_rows_than_the_shape_allows_are_our_own_mistake() -> None:
    rows = rows_of(hours(30), PLAIN)
    config = SidecarConfig(row_group_rows=1, row_groups_max=8)
    shape = rows_per_part(PLAIN, rows, config)
    with pytest.raises(AssertionError, match="30 rows for a part of up to 8"):
        write_part(rows_in_slices(rows), layout=PLAIN, facts=part_facts(), config=config, shape=shape)


@pytest.mark.parametrize("swap", [(0, 1), (9, 10), (93, 94)])
def test_rows_that_are_not_sorted_are_our_own_mistake(swap: tuple[int, int]) -> None:
    order = list(range(95))
    for at in (0, 1):
        order[swap[at]] = swap[1 - at]
    rows = rows_of(hours(95), PLAIN).take(pa.array(order))
    with pytest.raises(AssertionError, match="sorted"):
        written(rows, PLAIN, row_group_rows=10)


# --- where row groups lie ------------------------------------------------------------


@pytest.mark.parametrize("is_tiered", [False, True])
def test_a_row_group_is_readable_from_the_bytes_the_manifest_points_at(is_tiered: bool) -> None:
    rows = rows_of(hours(95), PLAIN)
    part = written(rows, PLAIN, row_group_rows=10, is_tiered=is_tiered)
    footer = part.body[-part.part.footer_bytes :]
    for group in part.row_groups:
        place = slice(group.byte_offset, group.byte_offset + group.byte_length)
        alone = bytearray(len(part.body) - len(footer)) + footer
        alone[place] = part.body[place]
        read = pq.ParquetFile(pa.BufferReader(bytes(alone)), page_checksum_verification=True)
        found = read.read_row_group(group.index)
        assert found.column("size").to_pylist() == [*range(group.index * 10, min(group.index * 10 + 10, 95))]


def test_row_groups_lie_one_after_the_other_and_fill_the_file() -> None:
    part = written(rows_of(hours(95), PLAIN), PLAIN, row_group_rows=10)
    end = 4  # the magic bytes
    for group in part.row_groups:
        assert group.byte_offset == end
        end += group.byte_length
    assert end + len("LDFC") + 4 == len(part.body) - part.part.footer_bytes
    assert part.part.size_bytes == len(part.body)


# --- storing, and damage -------------------------------------------------------------


def test_storing_a_part_again_is_fine_unless_another_file_has_its_name(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    part = written(rows_of(hours(5), PLAIN), PLAIN)
    store_part(storage, CONFIG, part)
    store_part(storage, CONFIG, part)
    other = written(rows_of(hours(6), PLAIN), PLAIN)
    with pytest.raises(DamagedSidecarError, match="another file"):
        store_part(storage, CONFIG, other)


def damaged_reader(tmp_path: Path, body: bytes, part: Part) -> PartReader:
    target = tmp_path / CONFIG.folder / part.file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(body)
    return PartReader(storage_at(tmp_path), CONFIG.folder, part)


@pytest.mark.parametrize("cut", [0, 3, 100, -1, -200])
def test_a_torn_part_is_damage_and_says_where(tmp_path: Path, cut: int) -> None:
    part = written(rows_of(hours(50), PLAIN), PLAIN)
    reader = damaged_reader(tmp_path, part.body[:cut], part.part)
    with pytest.raises(DamagedSidecarError) as damage:
        list(reader.batches())
    assert part.part.file in damage.value.where


def test_a_flipped_bit_is_damage(tmp_path: Path) -> None:
    part = written(rows_of(hours(500), PLAIN), PLAIN)
    paths = pq.read_metadata(pa.BufferReader(part.body)).row_group(0).column(0)
    at = paths.data_page_offset + paths.total_compressed_size - 5  # a value, not the page's header
    body = part.body[:at] + bytes([part.body[at] ^ 4]) + part.body[at + 1 :]
    with pytest.raises(DamagedSidecarError):
        list(damaged_reader(tmp_path, body, part.part).batches())


@pytest.mark.parametrize("is_tiered", [False, True])
def test_a_flipped_bit_anywhere_in_a_footer_is_damage(tmp_path: Path, is_tiered: bool) -> None:
    part = written(rows_of(hours(20), PLAIN), PLAIN, is_tiered=is_tiered)
    start = len(part.body) - part.part.footer_bytes
    for at in range(start, len(part.body), 37):
        body = part.body[:at] + bytes([part.body[at] ^ 1]) + part.body[at + 1 :]
        with pytest.raises(DamagedSidecarError, match="not the one"):
            _ = damaged_reader(tmp_path, body, part.part).metadata


def test_a_column_that_a_part_lacks_is_named(tmp_path: Path) -> None:
    part = written(rows_of(hours(5), PLAIN), PLAIN)
    with pytest.raises(DamagedSidecarError, match=r"no column 'min\.w'"):
        list(stored(storage_at(tmp_path), part).batches(["path", "min.w"]))


def test_a_missing_part_is_damage(tmp_path: Path) -> None:
    part = written(rows_of(hours(5), PLAIN), PLAIN)
    with pytest.raises(DamagedSidecarError, match="not there"):
        list(PartReader(storage_at(tmp_path), CONFIG.folder, part.part).batches())


def test_a_part_with_other_rows_than_the_manifest_tells_is_damage(tmp_path: Path) -> None:
    part = written(rows_of(hours(5), PLAIN), PLAIN)
    other = msgspec.structs.replace(part.part, num_rows=6)
    with pytest.raises(DamagedSidecarError, match="rows"):
        list(damaged_reader(tmp_path, part.body, other).batches())


def test_a_parquet_file_that_is_no_part_has_no_facts(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    body = sink.getvalue().to_pybytes()
    part = written(rows_of(hours(1), PLAIN), PLAIN).part
    told = msgspec.structs.replace(part, size_bytes=len(body), footer_crc32=None)
    reader = damaged_reader(tmp_path, body, told)
    with pytest.raises(DamagedSidecarError, match="no part"):
        _ = reader.facts


# --- what a read costs -----------------------------------------------------------------


def requests(storage: Storage, reader: PartReader, columns: list[str], row_groups: list[int] | None) -> int:
    before = storage.counters.snapshot().requests
    assert list(reader.batches(columns, row_groups))
    return storage.counters.snapshot().requests - before


def test_a_read_costs_the_footer_and_one_request_for_neighbouring_row_groups(tmp_path: Path) -> None:
    layout, rows = wide_rows(6, 4_000, text_bytes=32)
    part = written(sorted_rows(rows, layout), layout, row_group_rows=500)
    assert len(part.body) > 4 * limits.PARQUET_FOOTER_GUESS_BYTES
    storage = storage_at(tmp_path)
    store_part(storage, CONFIG, part)
    assert requests(storage, PartReader(storage, CONFIG.folder, part.part), ["path"], [0]) == 2
    assert requests(storage, PartReader(storage, CONFIG.folder, part.part), layout.schema.names, None) == 2


def test_a_footer_longer_than_the_guess_is_one_request_where_the_manifest_tells_its_length(
    tmp_path: Path,
) -> None:
    layout, rows = wide_rows(30, 10, text_bytes=32)
    config = SidecarConfig(row_group_rows=1)
    shape = PartShape(row_groups=10, rows=10, is_tiered=False)
    rows = sorted_rows(rows, layout)
    part = write_part([rows], layout=layout, facts=part_facts(), config=config, shape=shape)
    assert part.part.footer_bytes > limits.PARQUET_FOOTER_GUESS_BYTES
    storage = storage_at(tmp_path)
    store_part(storage, CONFIG, part)
    _ = PartReader(storage, CONFIG.folder, part.part).metadata
    assert storage.counters.snapshot().requests_by_kind["get_range"] == 1
