"""Files opened into segments, segments loaded into rows."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lazydelta import limits
from lazydelta.errors import CorruptDataError, CorruptLogError, LazyDeltaError
from lazydelta.storage import ObjectReplacedError
from tests.support.data_files import DataFolder, array, field

WIDE = [field(f"c{n}", "long") for n in range(20)]


def numbers(rows: int, columns: int = 20) -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table({f"c{n}": draw.integers(0, 2**62, rows) for n in range(columns)})


# --- requests and bytes --------------------------------------------------------


def test_a_small_file_takes_one_request(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("c0", "long"))
    file = folder.write(numbers(100, 1), row_group_size=30)
    assert file.size < limits.PARQUET_FOOTER_GUESS_BYTES
    assert folder.read(file).num_rows == 100
    assert folder.storage.counters.snapshot().requests == 1


def test_a_large_file_takes_one_round_trip_for_the_footer_and_one_for_each_row_group(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, *WIDE)
    file = folder.write(numbers(40_000), row_group_size=10_000, use_dictionary=False)
    assert file.size > 4 * limits.MIB
    loader = folder.loader(["c3", "c15"])
    segments = loader.segments(file)
    opening = folder.storage.counters.snapshot()
    assert (opening.requests, opening.bytes_read) == (1, limits.PARQUET_FOOTER_GUESS_BYTES)
    for done, segment in enumerate(segments, 1):
        assert sum(rows.num_rows for rows in loader.load(segment)) == 10_000
        now = folder.storage.counters.snapshot()
        assert now.round_trips == 1 + done
        assert now.requests == 1 + 2 * done  # two columns, far apart
    assert folder.storage.counters.snapshot().bytes_read < file.size * 0.15


def test_columns_that_no_file_holds_are_filled_in_without_reading_more_than_the_footer(
    tmp_path: Path,
) -> None:
    folder = DataFolder(
        tmp_path,
        field("p", "date"),
        *WIDE,
        partition_columns=frozenset({"p"}),
        metadata_columns=("_row_index", "_file_path"),
    )
    folder.write(numbers(40_000), use_dictionary=False)
    file = folder.file(partition_values={"p": "2026-11-15"})
    rows = folder.read(file, ["p"], batch_rows=7_000)
    assert rows.column("p").unique().to_pylist() == [dt.date(2026, 11, 15)]
    assert rows.column("_row_index").to_pylist() == list(range(40_000))
    assert rows.column("_file_path").unique().to_pylist() == ["f.parquet"]
    assert folder.storage.counters.snapshot().requests == 1


def test_without_columns_rows_are_counted(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, *WIDE)
    loader = folder.loader([], batch_rows=300)
    (segment,) = loader.segments(folder.write(numbers(1000)))
    assert [rows.num_rows for rows in loader.load(segment)] == [300, 300, 300, 100]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_large_row_group_is_streamed_in_slices_and_never_held_whole(tmp_path: Path, codec: str) -> None:
    folder = DataFolder(tmp_path, *WIDE)
    stored = numbers(300_000)
    file = folder.write(stored, row_group_size=300_000, compression=codec, use_dictionary=False)
    assert file.size > 2 * limits.DATA_PRELOAD_BYTES_MAX
    loader = folder.loader(batch_rows=20_000)
    (segment,) = loader.segments(file)
    before, peak, done = pa.total_allocated_bytes(), 0, 0
    for rows in loader.load(segment):
        assert rows.num_rows <= 20_000
        assert rows.equals(stored.slice(done, rows.num_rows).to_batches()[0].cast(rows.schema))
        done += rows.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
        del rows
    assert done == 300_000
    assert peak < 2 * limits.DATA_PRELOAD_BYTES_MAX
    assert folder.storage.counters.snapshot().bytes_read < file.size * 1.1


def test_slices_are_bounded_by_bytes_too(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("t", "string"))
    rows = pa.table({"t": [str(n) + "x" * 100_000 for n in range(1000)]})
    loader = folder.loader()
    (segment,) = loader.segments(folder.write(rows, compression="zstd"))
    sizes = [batch.nbytes for batch in loader.load(segment)]
    assert max(sizes) <= limits.DATA_BATCH_BYTES * 1.1
    assert len(sizes) > 4


@pytest.mark.parametrize("has_statistics", [True, False])
def test_texts_that_a_dictionary_repeats_do_not_fill_the_memory(tmp_path: Path, has_statistics: bool) -> None:
    folder = DataFolder(tmp_path, field("t", "string"))
    texts = [str(n) + "x" * 5_000 for n in range(10)]
    rows = pa.table({"t": pa.array(np.arange(40_000) % 10).cast(pa.int32())})
    repeated = pa.DictionaryArray.from_arrays(rows.column(0).chunk(0), texts).cast(pa.large_string())
    file = folder.write(pa.table({"t": repeated}), write_statistics=has_statistics)
    assert file.size < limits.MIB
    loader = folder.loader()
    (segment,) = loader.segments(file)
    sizes = [batch.nbytes for batch in loader.load(segment)]
    assert sum(sizes) > 190 * limits.MIB
    assert max(sizes) <= limits.DATA_BATCH_BYTES * 1.1


def test_segments_of_several_files_load_side_by_side(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, *WIDE)
    tables = [numbers(9_000).append_column("f", pa.array([n] * 9_000)) for n in range(4)]
    files = [folder.write(rows, f"{n}.parquet", row_group_size=1_000) for n, rows in enumerate(tables)]
    loader = folder.loader(batch_rows=300)
    started = threading.Barrier(8)

    def load(segment: Any) -> pa.Table:
        if segment.row_group < 2:
            started.wait(120)
        return pa.Table.from_batches(loader.load(segment))

    segments = [segment for file in files for segment in loader.segments(file)]
    segments.sort(key=lambda segment: segment.row_group)
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(load, segments))
    for segment, rows in zip(segments, loaded, strict=True):
        stored = tables[int(segment.file.path[0])].drop_columns("f")
        assert rows.equals(stored.slice(segment.first_row, 1_000))


def test_what_is_not_pulled_is_not_read(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, *WIDE)
    file = folder.write(numbers(300_000), row_group_size=300_000, use_dictionary=False)
    loader = folder.loader(batch_rows=1000)
    (segment,) = loader.segments(file)
    rows = loader.load(segment)
    assert next(rows).num_rows == 1000
    rows.close()
    assert folder.storage.counters.snapshot().bytes_read <= 2.5 * limits.DATA_PRELOAD_BYTES_MAX


# --- what is filled in -----------------------------------------------------------


def test_row_ids_come_from_the_file_where_it_has_them_and_from_the_position_else(tmp_path: Path) -> None:
    folder = DataFolder(
        tmp_path,
        field("c", "long"),
        metadata_columns=("_row_id", "_commit_version"),
        tracked={"_row_id": "_row-id-col-1", "_commit_version": "_row-commit-version-col-1"},
    )
    moved = {"_row-id-col-1": [7, None, 9], "_row-commit-version-col-1": [None, 3, 4]}
    folder.write(pa.table({"c": [1, 2, 3], **moved}))
    file = folder.file(base_row_id=100, default_row_commit_version=12)
    assert folder.read(file).to_pylist() == [
        {"c": 1, "_row_id": 7, "_commit_version": 12},
        {"c": 2, "_row_id": 101, "_commit_version": 3},
        {"c": 3, "_row_id": 9, "_commit_version": 4},
    ]
    folder.write(pa.table({"c": [1, 2]}))
    file = folder.file(base_row_id=100, default_row_commit_version=12)
    assert folder.read(file).column("_row_id").to_pylist() == [100, 101]
    assert folder.read(folder.file()).column("_row_id").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "a b", "a b"),
        ("string", None, None),
        ("integer", "-7", -7),
        ("integer", "", None),
        ("date", "2026-11-15", dt.date(2026, 11, 15)),
        ("timestamp", "2026-11-15 01:02:03.5", dt.datetime(2026, 11, 15, 1, 2, 3, 500_000, dt.UTC)),
        ("timestamp", "2026-11-15T01:02:03.000005Z", dt.datetime(2026, 11, 15, 1, 2, 3, 5, dt.UTC)),
        ("boolean", "true", True),
        ("double", "1.5", 1.5),
    ],
)
def test_partition_values_are_typed(tmp_path: Path, kind: str, text: str | None, value: Any) -> None:
    folder = DataFolder(tmp_path, field("c", "long"), field("p", kind), partition_columns=frozenset({"p"}))
    folder.write(pa.table({"c": [1, 2], "p": ["in the file", "not asked"]}))
    rows = folder.read(folder.file(partition_values={"p": text}))
    assert rows.column("p").to_pylist() == [value, value]


def test_a_partition_value_that_cannot_be_read_is_an_error_not_null(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("p", "date"), partition_columns=frozenset({"p"}))
    folder.write(pa.table({"c": [1]}))
    with pytest.raises(CorruptLogError, match="'tomorrow' of 'p' is no date"):
        folder.read(folder.file(partition_values={"p": "tomorrow"}))


# --- what is wrong ---------------------------------------------------------------


def test_a_null_in_a_column_that_has_none_by_the_schema_is_named(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("c", "long", nullable=False))
    with pytest.raises(CorruptDataError, match="'c' is NOT NULL"):
        folder.read(folder.write(pa.table({"c": [1, None]})))
    with pytest.raises(CorruptDataError, match="'c' is NOT NULL"):
        folder.read(folder.write(pa.table({"other": [1]})))


@pytest.mark.parametrize("body", [b"", b"PAR1", b"not Parquet at all, but long enough", b"PAR1" * 10])
def test_what_is_not_parquet_is_named_with_the_version(tmp_path: Path, body: bytes) -> None:
    folder = DataFolder(tmp_path, field("c", "long"))
    (tmp_path / "f.parquet").write_bytes(body)
    with pytest.raises(CorruptDataError) as told:
        folder.read()
    assert "version 7" in told.value.what
    assert told.value.where == f"{folder.storage.root}/f.parquet"


def test_a_file_that_was_replaced_or_went_missing_after_its_footer_was_read_is_named(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, *WIDE)
    file = folder.write(numbers(40_000), use_dictionary=False)
    loader = folder.loader()
    (segment,) = loader.segments(file)
    place = tmp_path / "f.parquet"
    place.write_bytes(place.read_bytes()[:1000])
    with pytest.raises(ObjectReplacedError, match="was replaced") as told:
        list(loader.load(segment))
    assert told.value.where == f"{folder.storage.root}/f.parquet"
    place.unlink()
    with pytest.raises(CorruptDataError, match="is not there"):
        list(loader.load(segment))


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_flipped_byte_is_the_right_rows_or_an_error(tmp_path: Path, codec: str) -> None:
    """Pages carry checksums, as Spark writes them; the footer has none, but must not break the reader."""
    folder = DataFolder(tmp_path, field("c0", "long"), field("c1", "long"))
    stored = numbers(200, 2)
    file = folder.write(stored, compression=codec, write_page_checksum=True, use_dictionary=False)
    place = tmp_path / "f.parquet"
    body = place.read_bytes()
    footer_start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    errors = 0
    for at in range(4, footer_start, 41):
        place.write_bytes(body[:at] + bytes([body[at] ^ 0x55]) + body[at + 1 :])
        try:
            assert folder.read(file).equals(stored)
        except LazyDeltaError:
            errors += 1
    assert errors > 50


def test_a_footer_with_a_flipped_byte_breaks_nothing(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("c0", "long"), field("c1", "long"))
    file = folder.write(numbers(50, 2))
    place = tmp_path / "f.parquet"
    body = place.read_bytes()
    footer_start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    for at in range(footer_start, len(body)):
        place.write_bytes(body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :])
        try:
            folder.read(file)
        except LazyDeltaError as told:
            assert told.where and told.fix


@pytest.mark.parametrize("name", ["c", "l", "element"])
def test_a_footer_that_contradicts_itself_is_an_error_and_not_the_end_of_the_process(
    tmp_path: Path, name: str
) -> None:
    """A column that may be null becomes one that may not, while its chunks still count levels of nulls."""
    folder = DataFolder(tmp_path, field("c", "string"), field("l", array("long")))
    file = folder.write(pa.table({"c": ["a", None], "l": [[1], None]}))
    optional, required = (bytes([repetition, 0x18, len(name)]) + name.encode() for repetition in (0x02, 0x00))
    place = tmp_path / "f.parquet"
    body = place.read_bytes()
    assert body.count(optional) == 1
    place.write_bytes(body.replace(optional, required))
    with pytest.raises(CorruptDataError, match="level histogram"):
        folder.read(file)
