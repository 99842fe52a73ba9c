"""Parts that a killed build left behind: which are taken over; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lazydelta.sidecar import Part, SidecarConfig
from lazydelta.spark.sidecar_ranges import Boundary
from lazydelta.spark.sidecar_resume import checked_part, parts_left_behind, whole_ranges, work_id
from lazydelta.spark.sidecar_task import PartReport, PartTask
from lazydelta.storage import LocalStorage
from lazydelta.upkeep.build_plan import plan_build
from tests.support.table_builder import TableBuilder
from tests.unit.spark.test_sidecar_task import CONFIG, reports, table, task_of

__all__ = ["table"]


def storage_of(table: TableBuilder) -> LocalStorage:
    return LocalStorage(str(table.path), f"file://{table.path}")


@pytest.mark.parametrize("is_tiered", [False, True])
def test_a_part_is_read_back_as_its_writer_reported_it(table: TableBuilder, is_tiered: bool) -> None:
    task = task_of(table)
    task = msgspec.structs.replace(task, shape=msgspec.structs.replace(task.shape, is_tiered=is_tiered))
    (told,) = reports(task, ["a", "b", "c"])
    (number,) = parts_left_behind(storage_of(table), task)
    assert checked_part(storage_of(table), task, number) == told


def _flipped(body: bytes) -> bytes:
    return body[:40] + bytes([body[40] ^ 1]) + body[41:]


@pytest.mark.parametrize(
    "damage", [_flipped, lambda body: body[:-1], lambda body: body[:0], lambda body: body + b"x"]
)
def test_a_damaged_part_is_not_taken_over(table: TableBuilder, damage: Callable[[bytes], bytes]) -> None:
    task = task_of(table)
    (told,) = reports(task, ["a", "b", "c"])
    file = table.path / CONFIG.folder / told.part.file
    file.write_bytes(damage(file.read_bytes()))
    assert checked_part(storage_of(table), task, 0) is None


def test_a_part_of_another_plan_is_not_taken_over(table: TableBuilder) -> None:
    task = task_of(table)
    reports(task, ["a"])
    other = msgspec.structs.replace(task, facts=msgspec.structs.replace(task.facts, num_files=7))
    assert checked_part(storage_of(table), other, 0) is None
    assert checked_part(storage_of(table), task, 1) is None


def test_half_a_part_and_an_old_one_are_not_looked_at(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(table)
    task = msgspec.structs.replace(task, shape=msgspec.structs.replace(task.shape, is_tiered=True))
    first, second = (reports(task, ["a"])[0].part for _ in range(2))
    assert len(parts_left_behind(storage_of(table), task)) == 2
    (table.path / CONFIG.folder / str(second.stats_file)).unlink()
    assert parts_left_behind(storage_of(table), task) == [0]
    assert first.file.endswith("00000.index.parquet")
    monkeypatch.setattr("lazydelta.spark.sidecar_resume._AGE_MAX_MS", -1000)
    assert parts_left_behind(storage_of(table), task) == []


def report(number: int, rows: int, size: int) -> PartReport:
    part = Part(
        file=f"{number}", build="b", size_bytes=1, footer_bytes=1, schema_hash="", num_rows=rows,
        num_row_groups=1, order_min=None, order_max=None, order_nulls=0, total_bytes=size,
    )  # fmt: skip
    return PartReport(part=part, row_groups=())


def test_a_range_counts_where_one_part_has_all_of_its_rows_and_bytes() -> None:
    found = {
        0: report(0, 5, 50),
        1: report(1, 4, 50),
        2: report(2, 5, 49),
        4: report(4, 5, 50),
        9: report(9, 1, 1),
    }
    wanted = {0: (5, 50), 1: (5, 50), 2: (5, 50)}
    assert {key: one.part.file for key, one in whole_ranges(found, wanted, 3).items()} == {0: "0", 1: "4"}


def test_the_id_of_the_parts_follows_from_the_plan(table: TableBuilder) -> None:
    def id_of(task: PartTask, *firsts: Boundary, stale: str | None = None) -> str:
        plan = msgspec.structs.replace(plan_build(storage_of(table), CONFIG), stale_build=stale)
        return work_id(plan, task, firsts)

    task, again = task_of(table), task_of(table)
    assert task.facts.build != again.facts.build
    usual = id_of(task)
    assert id_of(again) == usual
    others = {
        id_of(task, Boundary(None, "a")),
        id_of(task, stale="before"),
        id_of(msgspec.structs.replace(task, config=SidecarConfig(row_group_rows=3))),
        id_of(msgspec.structs.replace(task, facts=msgspec.structs.replace(task.facts, version=9))),
    }
    assert len(others | {usual}) == 5


def test_the_folder_need_not_be_there(tmp_path: Path) -> None:
    empty = TableBuilder(tmp_path).commit([]).checkpoint()
    assert parts_left_behind(storage_of(empty), task_of(empty)) == []
