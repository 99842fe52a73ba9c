"""The stream reader without Spark: offsets, limits, what ends a stream."""

from __future__ import annotations

import json
import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxFiles

from lazydelta.errors import (
    CorruptDataError,
    InvalidRequestError,
    LazyDeltaError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lazydelta.protocol.names import commit_name
from lazydelta.spark.reading.options import parse_options
from lazydelta.spark.reading.source import LazyDeltaSource
from lazydelta.spark.reading.stream_reader import LazyDeltaStreamReader

ALL = ReadAllAvailable()


def append(table: Path, first: int, *, days: int = 1) -> None:
    """One version with a file for each day, of two rows."""
    ids = list(range(first, first + 2 * days))
    rows = pa.table({"id": pa.array(ids, pa.int64()), "day": [f"d{(at - first) // 2}" for at in ids]})
    write_deltalake(str(table), rows, mode="append", partition_by=["day"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 to 2: a file, three files, a file; ids from 0 on."""
    append(tmp_path / "t", 0)
    append(tmp_path / "t", 2, days=3)
    append(tmp_path / "t", 8)
    return tmp_path / "t"


def stream(table: Path, **options: str) -> LazyDeltaStreamReader:
    source = LazyDeltaSource({"path": str(table), **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, LazyDeltaStreamReader)
    return reader


def ids(reader: LazyDeltaStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """What a batch has, read as executors do."""
    afar = pickle.loads(pickle.dumps(reader))
    batches = [rows for partition in reader.partitions(start, end) for rows in afar.read(partition)]
    return sorted(value for rows in batches for value in rows.column("id").to_pylist())


def batches(reader: LazyDeltaStreamReader, limit: ReadLimit) -> list[list[int]]:
    """All that there is, a batch at a time."""
    found, start = [], reader.initialOffset()
    while (end := reader.latestOffset(start, limit)) != start:
        found.append(ids(reader, start, end))
        start = end
    return found


def together(found: list[list[int]]) -> list[int]:
    """The ids of all batches; the files of a version come in any order."""
    return sorted(chain.from_iterable(found))


def test_the_table_comes_first_and_then_each_version(table: Path) -> None:
    reader = stream(table)
    first = reader.latestOffset(reader.initialOffset(), ALL)
    append(table, 100)
    append(table, 200)
    assert ids(reader, reader.initialOffset(), first) == list(range(10))
    last = reader.latestOffset(first, ALL)
    assert ids(reader, first, last) == [100, 101, 200, 201]
    assert reader.latestOffset(last, ALL) == last
    assert reader.partitions(last, last) == []


def test_a_stream_begins_at_a_version_or_after_the_newest(table: Path) -> None:
    assert batches(stream(table, startingVersion="1"), ALL) == [[2, 3, 4, 5, 6, 7, 8, 9]]
    latest = stream(table, startingVersion="latest")
    start = latest.initialOffset()
    assert latest.latestOffset(start, ALL) == start
    append(table, 100)
    assert ids(latest, start, latest.latestOffset(start, ALL)) == [100, 101]
    with pytest.raises(VersionNotFoundError, match="no version 99 yet"):
        stream(table, startingVersion="99").initialOffset()


@pytest.mark.parametrize("files", [1, 2, 3, 4, 5])
def test_a_batch_has_no_more_files_than_it_may_and_all_come_once(table: Path, files: int) -> None:
    found = batches(stream(table, startingVersion="0"), ReadMaxFiles(files))
    assert together(found) == list(range(10))
    assert all(len(batch) <= 2 * files for batch in found)
    assert len(found) == -(-5 // files)


def test_a_batch_keeps_to_bytes_and_has_one_file_at_least(table: Path) -> None:
    reader = stream(table, startingVersion="0", maxBytesPerTrigger="1")
    assert reader.getDefaultReadLimit() == ReadMaxBytes(1)
    assert sorted(batches(reader, ReadMaxBytes(1))) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert batches(reader, ReadMaxBytes(1 << 30)) == [list(range(10))]


def test_the_limit_of_the_options_is_sparks_to_ask_for(table: Path) -> None:
    assert stream(table).getDefaultReadLimit() == ReadMaxFiles(1000)
    assert stream(table, maxFilesPerTrigger="7").getDefaultReadLimit() == ReadMaxFiles(7)
    with pytest.raises(InvalidRequestError, match="both given"):
        stream(table, maxFilesPerTrigger="7", maxBytesPerTrigger="7").getDefaultReadLimit()


def test_what_comes_after_available_now_is_for_the_next_run(table: Path) -> None:
    reader = stream(table, startingVersion="0")
    append(table, 100)
    reader.prepareForTriggerAvailableNow()
    append(table, 200)
    assert together(batches(reader, ReadMaxFiles(2))) == [*range(10), 100, 101]


def test_filter_and_columns_hold_for_a_stream(table: Path) -> None:
    reader = stream(table, startingVersion="0", where="id >= 5 and day = 'd0'", columns="id")
    assert batches(reader, ALL) == [[8, 9]]
    assert batches(stream(table, where="id >= 5 and day = 'd0'"), ALL) == [[8, 9]]


def test_deletes_and_rewrites_end_a_stream_after_what_came_before(table: Path) -> None:
    append(table, 100)
    DeltaTable(str(table)).delete("day = 'd1'")  # a whole file
    append(table, 200)
    DeltaTable(str(table)).delete("id = 200")  # a file is written again
    append(table, 300)
    reader = stream(table, startingVersion="2")
    start = reader.initialOffset()
    before = reader.latestOffset(start, ALL)
    assert ids(reader, start, before) == [8, 9, 100, 101]
    with pytest.raises(InvalidRequestError, match="version 4 deletes rows"):
        reader.latestOffset(before, ALL)
    patient = stream(table, startingVersion="2", ignoreDeletes="true")
    passed = patient.latestOffset(before, ALL)
    assert ids(patient, before, passed) == [200, 201]
    with pytest.raises(InvalidRequestError, match="version 6 rewrites rows"):
        patient.latestOffset(passed, ALL)
    skipping = stream(table, startingVersion="2", skipChangeCommits="true")
    assert together(batches(skipping, ReadMaxFiles(1))) == [8, 9, 100, 101, 200, 201, 300, 301]
    again = stream(table, startingVersion="2", ignoreChanges="true")
    assert together(batches(again, ALL)) == [8, 9, 100, 101, 200, 201, 201, 300, 301]


def test_compaction_changes_nothing(table: Path) -> None:
    append(table, 100)
    DeltaTable(str(table)).optimize.compact()
    append(table, 200)
    assert batches(stream(table, startingVersion="3"), ALL) == [[100, 101, 200, 201]]


def test_another_schema_ends_a_stream_until_it_is_started_again(table: Path) -> None:
    reader = stream(table, startingVersion="2")
    wider = pa.table({"id": pa.array([500], pa.int64()), "day": ["d0"], "more": ["x"]})
    write_deltalake(str(table), wider, mode="append", schema_mode="merge")
    start = reader.initialOffset()
    before = reader.latestOffset(start, ALL)
    assert ids(reader, start, before) == [8, 9]
    with pytest.raises(UnsupportedTableError, match="version 3 changes the table's schema"):
        reader.latestOffset(before, ALL)
    anew = stream(table, startingVersion="2")
    assert ids(anew, before, anew.latestOffset(before, ALL)) == [500]


def test_files_that_were_written_under_other_partition_columns_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["d0", "d1"]})
    write_deltalake(str(tmp_path), rows)
    write_deltalake(str(tmp_path), rows, mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    reader = stream(tmp_path, startingVersion="0", skipChangeCommits="true")
    with pytest.raises(UnsupportedTableError, match="version 0 tells no value of the partition column 'day'"):
        batches(reader, ALL)
    assert together(batches(stream(tmp_path, startingVersion="1", ignoreChanges="true"), ALL)) == [1, 2]


def test_a_checkpoint_of_another_table_or_of_none_is_refused(table: Path, tmp_path: Path) -> None:
    reader = stream(table)
    append(tmp_path / "other", 0)
    with pytest.raises(InvalidRequestError, match="of another table"):
        reader.latestOffset(stream(tmp_path / "other").initialOffset(), ALL)
    with pytest.raises(InvalidRequestError, match="none of lazydelta's"):
        reader.latestOffset({"reservoirVersion": 3}, ALL)
    with pytest.raises(VersionNotFoundError, match="the table was put back"):
        reader.latestOffset({**reader.initialOffset(), "version": 9, "isSnapshot": False}, ALL)


def test_commits_that_were_cleaned_up_are_not_passed_by_in_silence(table: Path) -> None:
    reader = stream(table, startingVersion="0")
    DeltaTable(str(table)).create_checkpoint()
    (table / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(
        VersionNotFoundError, match=r"(?s)commit 0 is not there any more.*version 1 is the oldest"
    ):
        reader.latestOffset(reader.initialOffset(), ALL)


@pytest.mark.parametrize("option", ["limit", "version", "timestamp"])
def test_what_a_stream_cannot_have_is_refused(table: Path, option: str) -> None:
    value = "2026-01-01" if option == "timestamp" else "1"
    source = LazyDeltaSource({"path": str(table), option: value})
    assert parse_options(source.options)
    schema = LazyDeltaSource({"path": str(table)}).schema()
    with pytest.raises(LazyDeltaError, match="not for streams"):
        source.streamReader(schema)


def test_a_file_that_is_gone_is_told_with_the_version_of_its_batch(table: Path) -> None:
    reader = stream(table, startingVersion="1")
    start = reader.initialOffset()
    append(table, 100)
    next((table / "day=d1").glob("*.parquet")).unlink()
    with pytest.raises(CorruptDataError, match="data file of version 3 is not there"):
        ids(reader, start, reader.latestOffset(start, ALL))


def test_files_that_told_the_value_of_a_column_that_is_no_partition_now_are_refused(tmp_path: Path) -> None:
    append(tmp_path, 0)
    begun = stream(tmp_path).initialOffset()
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "day": ["d0", "d1"]})
    write_deltalake(str(tmp_path), rows, mode="overwrite", schema_mode="overwrite", partition_by=[])
    with pytest.raises(
        UnsupportedTableError, match="version 0 has 'day' for a partition column, which it is"
    ):
        batches(stream(tmp_path, startingVersion="0", skipChangeCommits="true"), ALL)
    reader = stream(tmp_path)
    with pytest.raises(
        UnsupportedTableError, match="version 0 has 'day' for a partition column, which it is"
    ):
        ids(reader, begun, reader.latestOffset(begun, ALL))


def test_a_first_batch_that_comes_late_knows_partition_columns_by_their_new_names(tmp_path: Path) -> None:
    append(tmp_path, 0, days=2)
    log = tmp_path / "_delta_log"
    actions = [json.loads(line) for line in (log / commit_name(0)).read_text().splitlines()]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        elif "metaData" in action:
            action["metaData"] = _mapped(metadata, day="day")
    (log / commit_name(0)).write_text("\n".join(map(json.dumps, actions)))
    begun = stream(tmp_path).initialOffset()
    (log / commit_name(1)).write_text(json.dumps({"metaData": _mapped(metadata, day="date")}))
    reader = stream(tmp_path, where="date = 'd1'")
    assert ids(reader, begun, reader.latestOffset(begun, ALL)) == [2, 3]


def _mapped(metadata: dict[str, Any], *, day: str) -> dict[str, Any]:
    """The metadata with columns by name, the partition column under another one than in files."""
    schema = json.loads(metadata["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": field["name"],
        }
        field["name"] = day if field["name"] == "day" else field["name"]
    return {
        **metadata,
        "schemaString": json.dumps(schema),
        "partitionColumns": [day],
        "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
    }


@pytest.mark.parametrize(
    ("said", "is_passed"),
    [
        ({"delta.identity.highWaterMark": 7, "delta.identity.start": 1}, True),  # as every insert says anew
        ({"comment": "what it is", "delta.generationExpression": "a + 1", "CURRENT_DEFAULT": "3"}, True),
        ({"EXISTS_DEFAULT": "3"}, False),
        ({"delta.typeChanges": []}, False),
    ],
)
def test_what_only_writers_need_to_know_of_a_column_does_not_end_a_stream(
    table: Path, said: dict[str, Any], is_passed: bool
) -> None:
    reader = stream(table, startingVersion="2")
    log = table / "_delta_log"
    actions = [json.loads(line) for line in (log / commit_name(0)).read_text().splitlines()]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][0]["metadata"] = said
    changed = {**metadata, "schemaString": json.dumps(schema)}
    (log / commit_name(3)).write_text(json.dumps({"metaData": changed}))
    append(table, 100)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert ids(reader, start, end) == ([8, 9, 100, 101] if is_passed else [8, 9])
    if not is_passed:
        with pytest.raises(UnsupportedTableError, match="version 3 changes the table's schema"):
            reader.latestOffset(end, ALL)
