"""What a Spark task does with its rows, without Spark."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lazydelta.settings import Settings
from lazydelta.sidecar import PartShape, SidecarConfig, list_sidecars
from lazydelta.spark.sidecar_task import (
    HAS_TAGS,
    PartReport,
    PartTask,
    UnsortedRowsError,
    is_in_order,
    public_rows,
    write_parts,
)
from lazydelta.storage import LocalStorage
from lazydelta.upkeep.build_plan import plan_build
from tests.support.actions import add
from tests.support.table_builder import TableBuilder

CONFIG = SidecarConfig(row_group_rows=2)


def task_of(table: TableBuilder, *, rows: int = 4) -> PartTask:
    plan = plan_build(LocalStorage(str(table.path), f"file://{table.path}"), CONFIG)
    return PartTask(
        url=str(table.path),
        settings=Settings(),
        config=CONFIG,
        layout=plan.layout,
        facts=plan.facts(0, plan.binding(1000), parts=1, is_whole_build=True),
        shape=PartShape(row_groups=2, rows=rows, is_tiered=False),
        task_count=3,
    )


def rows_of(names: list[str]) -> pa.RecordBatch:
    days = pa.array([[("date", "2026-02-08")]] * len(names), pa.map_(pa.string(), pa.string()))
    sizes = pa.array([1] * len(names), pa.int64())
    return pa.RecordBatch.from_arrays(
        [pa.array(names, pa.string()), sizes, sizes, days],
        names=["raw_path", "size", "modification_time", "partition_values"],
    )


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path).commit([add("a", partition={"date": "2026-02-08"})]).checkpoint()


def reports(task: PartTask, *batches: list[str]) -> list[PartReport]:
    told = write_parts(iter([rows_of(names) for names in batches]), task)
    return [msgspec.json.decode(batch.column(0)[0].as_py(), type=PartReport) for batch in told]


def test_a_task_writes_one_part_and_reports_it(table: TableBuilder) -> None:
    task = task_of(table)
    (told,) = reports(task, ["a", "b"], [], ["c"])
    assert (told.part.num_rows, len(told.row_groups)) == (3, 2)
    stored = table.path / CONFIG.folder / told.part.file
    assert stored.stat().st_size == told.part.size_bytes


def test_a_range_that_came_out_too_large_becomes_several_parts(table: TableBuilder) -> None:
    told = reports(task_of(table), ["a", "b", "c"], ["d", "e", "f", "g", "h", "i"])
    assert [report.part.num_rows for report in told] == [4, 4, 1]
    assert len({report.part.file for report in told}) == 3


def test_a_second_attempt_never_takes_the_name_of_the_first(table: TableBuilder) -> None:
    task = task_of(table)
    first, second = (reports(task, ["a", "b"]) for _ in range(2))
    assert first[0].part.file != second[0].part.file
    storage = LocalStorage(str(table.path), f"file://{table.path}")
    assert len(list_sidecars(storage, CONFIG.folder).parts) == 2


def test_a_task_without_rows_writes_nothing(table: TableBuilder) -> None:
    assert reports(task_of(table), []) == []
    assert not (table.path / CONFIG.folder).exists()


@pytest.mark.parametrize("batches", [(["b", "a"],), (["a", "c"], ["b"])])
def test_rows_in_another_order_are_an_error(table: TableBuilder, batches: tuple[list[str], ...]) -> None:
    with pytest.raises(UnsortedRowsError):
        reports(task_of(table), *batches)


@pytest.mark.parametrize(
    ("orders", "paths", "wanted"),
    [
        ([None, None, 1, 1, 2], ["a", "b", "a", "b", "a"], True),
        ([None, 1, None], ["a", "b", "c"], False),
        ([1, None], ["a", "b"], False),
        ([None, None], ["b", "a"], False),
        ([2, 1], ["a", "b"], False),
        ([1, 1], ["b", "a"], False),
        ([1], ["a"], True),
    ],
)
def test_order_is_by_value_with_nulls_first_then_by_path(
    orders: list[int | None], paths: list[str], wanted: bool
) -> None:
    keys = pa.RecordBatch.from_pydict({"hour": pa.array(orders, pa.int32()), "path": paths})
    assert is_in_order(keys) == wanted


def test_paths_are_ordered_by_their_bytes() -> None:
    paths = sorted(["ä", "z", "Z", "\U0001f600", "\ufb00"], key=str.encode)
    assert is_in_order(pa.RecordBatch.from_pydict({"path": paths}))
    assert not is_in_order(pa.RecordBatch.from_pydict({"path": paths[::-1]}))


def test_tags_that_were_filled_in_for_spark_are_null_again() -> None:
    tags = pa.array([[("k", "v")], [], []], pa.map_(pa.string(), pa.string()))
    rows = pa.RecordBatch.from_pydict({"tags": tags, HAS_TAGS: [True, True, False]})
    assert public_rows(rows).column("tags").to_pylist() == [[("k", "v")], [], None]
