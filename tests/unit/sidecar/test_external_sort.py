"""Sorting on disk gives what sorting in memory gives, in bounded memory, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.errors import StorageError
from lazydelta.sidecar import ExternalSorter

_SCHEMA = pa.schema([("order", pa.float64()), ("path", pa.string()), ("rider", pa.int64())])
_KEYS = ("order", "path")
_ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from([float("nan"), float("-inf"), -0.0, 0.0, 1.5, 2.0]),
        st.text(st.sampled_from("aü\U0001f600%"), max_size=3),
        st.integers(0, 1000),
    ),
    max_size=40,
)


def _batch(rows: list[tuple[float | None, str, int]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _sort_key(row: tuple[float | None, str, int]) -> tuple[object, ...]:
    """Nulls, then NaN, then values; paths by their bytes."""
    order, path, _ = row
    rank = 0 if order is None else 1 if order != order else 2  # noqa: PLR0124
    return rank, order if rank == 2 else 0, path.encode()


def _rows(batches: list[pa.RecordBatch]) -> list[tuple[float | None, str, int]]:
    table = pa.Table.from_batches(batches, _SCHEMA)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@given(st.lists(_ROWS, max_size=8), st.integers(0, 4000), st.integers(1, 7), st.booleans())
def test_sorting_gives_what_sorting_in_memory_gives(
    pieces: list[list[tuple[float | None, str, int]]], memory_bytes: int, batch_rows: int, descending: bool
) -> None:
    with closing(ExternalSorter(_SCHEMA, _KEYS, memory_bytes, descending=descending)) as sorter:
        for piece in pieces:
            sorter.add(_batch(piece))
        batches = list(sorter.sorted_batches(batch_rows))
    found = _rows(batches)
    everything = [row for piece in pieces for row in piece]
    assert sorter.row_count == len(everything)
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert [_sort_key(row) for row in found] == sorted(map(_sort_key, everything), reverse=descending)
    assert sorted(map(repr, found)) == sorted(map(repr, everything))


@given(st.lists(_ROWS, max_size=8), st.integers(0, 4000), st.integers(1, 12), st.booleans())
def test_the_first_rows_are_right_where_only_so_many_are_kept(
    pieces: list[list[tuple[float | None, str, int]]], memory_bytes: int, rows_max: int, descending: bool
) -> None:
    with closing(
        ExternalSorter(_SCHEMA, _KEYS, memory_bytes, descending=descending, rows_max=rows_max)
    ) as sorter:
        for piece in pieces:
            sorter.add(_batch(piece))
        found = _rows(list(sorter.sorted_batches(5)))
    everything = sorted((_sort_key(row) for piece in pieces for row in piece), reverse=descending)
    assert [_sort_key(row) for row in found][:rows_max] == everything[:rows_max]


def test_more_runs_than_are_merged_at_once_are_merged_in_two_steps() -> None:
    rng = np.random.default_rng(7)
    with closing(ExternalSorter(_SCHEMA, _KEYS, 1)) as sorter:
        for _ in range(300):
            values = rng.integers(0, 100, 5)
            sorter.add(_batch([(float(value), f"p{value}", int(value)) for value in values]))
        assert sorter.is_on_disk
        found = _rows(list(sorter.sorted_batches(64)))
    assert len(found) == 1500
    assert found == sorted(found)


def test_times_past_the_year_9999_sort_too() -> None:
    schema = pa.schema([("order", pa.timestamp("us", tz="UTC"))])
    far = [2**62, 5, -(2**62), None]
    with closing(ExternalSorter(schema, ("order",), 1)) as sorter:
        for value in far:
            column = pa.array([value], pa.int64()).cast(schema.field("order").type)
            sorter.add(pa.RecordBatch.from_arrays([column], schema=schema))
        table = pa.Table.from_batches(list(sorter.sorted_batches(10)))
    assert table.column(0).cast(pa.int64()).to_pylist() == [None, -(2**62), 5, 2**62]


def test_memory_stays_within_the_limit_while_rows_go_to_disk() -> None:
    memory_bytes = 4 << 20
    rng = np.random.default_rng(1)
    started = pa.total_allocated_bytes()
    most = 0
    with closing(ExternalSorter(_SCHEMA, _KEYS, memory_bytes)) as sorter:
        for _ in range(60):
            values = rng.random(10_000)
            texts = pc.binary_join_element_wise("part-", pc.cast(pa.array(values), pa.string()), "")
            columns = [pa.array(values), texts, pa.array(rng.integers(0, 9, 10_000))]
            sorter.add(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
            most = max(most, pa.total_allocated_bytes() - started)
        total_bytes, last = 0, -1.0
        for batch in sorter.sorted_batches(4096):
            most = max(most, pa.total_allocated_bytes() - started)
            total_bytes += batch.nbytes
            assert batch.column("order")[0].as_py() >= last
            last = batch.column("order")[batch.num_rows - 1].as_py()
    assert total_bytes > 4 * memory_bytes
    assert most < 2 * memory_bytes


@pytest.mark.parametrize("is_read", [False, True])
def test_nothing_is_left_on_disk_after_an_error_or_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_read: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def sort_and_fail() -> None:
        with closing(ExternalSorter(_SCHEMA, _KEYS, 1)) as sorter:
            for number in range(5):
                sorter.add(_batch([(float(number), "p", 1)]))
            assert sorter.is_on_disk
            assert list(tmp_path.iterdir()) == []  # nameless from the start: a kill leaves nothing either
            if is_read:
                next(sorter.sorted_batches(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sort_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    monkeypatch.setattr(tempfile, "tempdir", str(missing))
    sorter = ExternalSorter(_SCHEMA, _KEYS, 1)
    with pytest.raises(StorageError, match="sorted rows could not be moved to disk") as caught:
        sorter.add(_batch([(1.0, "p", 1)]))
    assert caught.value.where == str(missing)


def test_a_disk_that_takes_no_more_is_told_as_such() -> None:
    """In a process of its own, whose files may not grow past a few kilobytes."""
    program = """
import resource, signal
from contextlib import closing
import pyarrow as pa
from lazydelta.errors import StorageError
from lazydelta.sidecar import ExternalSorter

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
schema = pa.schema([("path", pa.string())])
with closing(ExternalSorter(schema, ("path",), 1)) as sorter:
    try:
        sorter.add(pa.record_batch([pa.array([str(n * n) for n in range(200_000)])], schema=schema))
    except StorageError as error:
        print(error.what)
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "sorted rows could not be moved to disk" in done.stdout
    assert done.stderr == ""
