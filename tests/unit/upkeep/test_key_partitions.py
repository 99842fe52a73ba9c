"""Rows split by path: none lost, equal paths meet, memory bounded, nothing left on disk."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lazydelta.errors import StorageError
from lazydelta.upkeep.key_partitions import KeyPartitions, partition_count, path_hashes
from tests.support.handles import handles_of

SCHEMA = pa.schema([pa.field("path", pa.string()), pa.field("number", pa.int64())])


def batch(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.RecordBatch.from_pydict(
        {"path": [f"hour={n % 24}/part-{n:07}.parquet" for n in numbers], "number": list(numbers)}, SCHEMA
    )


@pytest.mark.parametrize("memory_bytes", [1, 20_000, 1 << 30])
def test_every_row_comes_back_once_whether_on_disk_or_not(memory_bytes: int) -> None:
    with closing(KeyPartitions(SCHEMA, count=7, memory_bytes=memory_bytes)) as rows:
        for first in range(0, 5_000, 500):
            rows.add(batch(first, 500))
        found = Counter(n for number in range(7) for n in rows.partition(number)["number"].to_pylist())
        assert rows.is_on_disk is (memory_bytes < 1 << 30)
        assert rows.row_count == 5_000
    assert found == Counter(range(5_000))


def test_equal_paths_meet_in_the_same_partition_of_both_sides() -> None:
    with (
        closing(KeyPartitions(SCHEMA, count=5, memory_bytes=1)) as one,
        closing(KeyPartitions(SCHEMA, count=5, memory_bytes=1 << 30)) as other,
    ):
        one.add(batch(0, 1000))
        other.add(batch(0, 1000).take(pa.array(np.random.default_rng(1).permutation(1000))))
        for number in range(5):
            left, right = (set(side.partition(number)["path"].to_pylist()) for side in (one, other))
            assert left == right
            assert left


def test_partitions_are_about_equal_even_where_names_differ_in_one_place_only() -> None:
    names = pa.array([f"{n:06}{'x' * 60}" for n in range(20_000)])
    counts = np.bincount((path_hashes(names) % np.uint64(20)).astype(np.int64), minlength=20)
    assert counts.min() > 700
    assert counts.max() < 1300


def test_hashes_do_not_depend_on_how_the_column_is_cut() -> None:
    names = pa.array(["", "a", "ab", "ä/ö", "", "x" * 9000])
    assert path_hashes(names).tolist()[2:] == path_hashes(names.slice(2)).tolist()
    assert path_hashes(names.slice(0, 0)).tolist() == []
    assert len(set(path_hashes(names).tolist())) == 5


def test_one_partition_is_enough_for_few_rows_and_many_are_small() -> None:
    assert partition_count(0) == partition_count(1) == 1
    assert 10_000_000 / partition_count(10_000_000) <= 1 << 16
    assert partition_count(1 << 60) < 10_000


def test_rows_on_disk_have_no_name_and_are_gone_after_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(KeyPartitions(SCHEMA, count=3, memory_bytes=1)) as rows:
        rows.add(batch(0, 10))
        assert rows.is_on_disk
        assert list(tmp_path.iterdir()) == []
        assert len(handles_of(tmp_path)) == 1
    gc.collect()
    assert handles_of(tmp_path) == []


def test_a_disk_that_refuses_is_an_error_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with (
        closing(KeyPartitions(SCHEMA, count=1, memory_bytes=1)) as rows,
        pytest.raises(StorageError, match="TMPDIR"),
    ):
        rows.add(batch(0, 10))
