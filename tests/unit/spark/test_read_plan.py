"""Files into partitions: none lost, in order, balanced, within the bounds of a plan."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.rows import DataFile
from lazydelta.settings import Settings
from lazydelta.spark.reading.file_chunks import CHUNK_SCHEMA, PackedFiles, SpilledFiles, packed, unpacked
from lazydelta.spark.reading.plan_files import PartitionSizing, plan_partitions
from lazydelta.spark.reading.spill import ChunkKeeper

SIZING = PartitionSizing(partition_bytes=1000, open_cost_bytes=10, partitions_min=4)


def files(sizes: list[int], first: int = 0) -> pa.RecordBatch:
    rows = [
        {
            "path": f"day={at}/part-{at:08}.parquet",
            "size": size,
            "partition_values": [("day", None if at % 3 else str(at))],
            "deletion_vector": {
                "storage_type": "i",
                "path_or_inline_dv": "x",
                "cardinality": at,
                "size_in_bytes": 1,
            }
            if at % 5 == 0
            else None,
            "num_records": at,
        }
        for at, size in enumerate(sizes, first)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=CHUNK_SCHEMA)


def keeper(spill: Path | None = None) -> ChunkKeeper:
    return ChunkKeeper(None if spill is None else str(spill), Settings(), where="the table")


@given(st.lists(st.lists(st.integers(0, 3000), max_size=40), max_size=6), st.integers(1, 9))
def test_every_file_is_in_one_partition_in_order_and_none_is_too_large(
    batches: list[list[int]], partitions_min: int
) -> None:
    sizing = msgspec.structs.replace(SIZING, partitions_min=partitions_min)
    made, first = [], 0
    for sizes in batches:
        made.append(files(sizes, first))
        first += len(sizes)
    plan = plan_partitions(iter(made), sizing, keeper())
    found = [list(unpacked(chunks, None, Settings())) for chunks in plan]
    assert all(found)
    assert [file.num_records for partition in found for file in partition] == list(range(first))
    for partition in found:
        weight = sum(file.size + sizing.open_cost_bytes for file in partition)
        assert weight <= sizing.partition_bytes or len(partition) == 1


def test_a_few_files_are_shared_among_the_cores() -> None:
    plan = plan_partitions(iter([files([100] * 8)]), SIZING, keeper())
    assert [len(list(unpacked(chunks, None, Settings()))) for chunks in plan] == [2, 2, 2, 2]


def test_more_than_a_round_of_tasks_leaves_no_core_idle() -> None:
    sizing = PartitionSizing(partition_bytes=128, open_cost_bytes=4, partitions_min=2)
    plan = plan_partitions(iter([files([48, 47, 49, 48, 48, 49, 47, 48])]), sizing, keeper())
    assert [len(list(unpacked(chunks, None, Settings()))) for chunks in plan] == [2, 2, 2, 2]


def test_what_is_packed_comes_out_as_it_was() -> None:
    chunk = packed(files([5, 6], first=5).slice(0, 2))
    found = list(unpacked((chunk,), None, Settings()))
    assert [(file.path, file.size, file.num_records) for file in found] == [
        ("day=5/part-00000005.parquet", 5, 5),
        ("day=6/part-00000006.parquet", 6, 6),
    ]
    assert found[0].deletion_vector is not None and found[0].deletion_vector.cardinality == 5
    assert isinstance(found[1], DataFile) and found[1].partition_values == {"day": "6"}


def test_a_long_list_goes_to_the_spill_folder_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SPARK_PLAN_INLINE_BYTES", 2000)
    monkeypatch.setattr(limits, "SPARK_SPILL_FILE_BYTES", 1000)
    plan = plan_partitions(iter([files([500] * 200)]), SIZING, keeper(tmp_path))
    kinds = {type(chunk) for chunks in plan for chunk in chunks}
    assert kinds == {PackedFiles, SpilledFiles}
    found = [file.num_records for chunks in plan for file in unpacked(chunks, str(tmp_path), Settings())]
    assert found == list(range(200))
    assert len(list(tmp_path.rglob("*.files"))) > 3


def test_a_long_list_without_a_spill_folder_says_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SPARK_PLAN_INLINE_BYTES", 2000)
    with pytest.raises(InvalidRequestError, match="option spill"):
        plan_partitions(iter([files([500] * 200)]), SIZING, keeper())


def test_a_plan_of_many_files_holds_a_bounded_part_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SPARK_PLAN_INLINE_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "SPARK_SPILL_FILE_BYTES", 1 << 18)
    batch = files([1 << 20] * 2048)
    sizing = PartitionSizing(partition_bytes=128 << 20, open_cost_bytes=4 << 20, partitions_min=2)

    def many() -> Iterator[pa.RecordBatch]:
        for _ in range(100):
            yield batch

    tracemalloc.start()
    plan = plan_partitions(many(), sizing, keeper(tmp_path))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(chunk.file_count for chunks in plan for chunk in chunks) == 204_800
    assert held < 8 << 20
