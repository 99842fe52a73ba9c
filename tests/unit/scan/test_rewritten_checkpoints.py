"""A checkpoint that another writer puts anew, under the same name, between opening a table and reading it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.log import open_snapshot
from lazydelta.memory_budget import MemoryBudget
from lazydelta.memory_share import MemoryShare
from lazydelta.scan import FileScan, LazyScanConfig
from lazydelta.scan.handed_out import HandedOut
from lazydelta.settings import Settings
from lazydelta.storage import ObjectReplacedError, open_storage
from tests.support.cached import CACHED, UNCACHED
from tests.support.faulty_storage import faulty
from tests.support.reading import keys
from tests.support.table_builder import TableBuilder

FILES = 1_500
ROW_GROUP_ROWS = 500


def built(folder: Path, *, seed: int = 1, table_id: str | None = None, kind: str = "v1") -> TableBuilder:
    """Names so long that the footer's read does not bring the columns along; protocol and metadata last."""
    dice = random.Random(seed)
    names = [f"{number:06}-{dice.getrandbits(512):0128x}.parquet" for number in range(FILES)]
    table = TableBuilder(folder, partition_columns=())
    if table_id is not None:
        table.metadata["id"] = table_id
    table.commit(names)
    return table.checkpoint(kind, row_group_rows=ROW_GROUP_ROWS, table_state_at="end").commit(["new"])


def write_anew(
    table: TableBuilder, kind: str = "v1", *, is_turned_round: bool = False, **axes: object
) -> None:
    """Another writer's checkpoint of the same version."""
    time.sleep(0.02)  # the clock of a file system is coarse
    if is_turned_round:
        live = table.states[0].live
        turned = dict(reversed(live.items()))
        live.clear()
        live.update(turned)
    table.checkpoint(kind, version=0, hint=False, table_state_at="end", **axes)


@pytest.mark.parametrize("options", [CACHED, UNCACHED], ids=["cached", "uncached"])
@pytest.mark.parametrize("rows", [ROW_GROUP_ROWS, 700, 10_000])
def test_a_checkpoint_written_anew_before_the_scan_is_read_as_it_is_now(
    tmp_path: Path, options: dict[str, str], rows: int
) -> None:
    table = built(tmp_path)
    opened = ld.open(tmp_path, storage_options=options)
    write_anew(table, row_group_rows=rows, stats="both")
    scan = opened.scan()
    found = keys(scan.files())
    assert len(found) == len(set(found))
    assert set(found) == table.live()
    assert scan.explain().fallbacks_by_kind == {"checkpoint_damaged": 1}
    assert "checkpoint 0 was written anew meanwhile" in scan.explain().fallbacks[0]


@pytest.mark.parametrize("predicate", [None, "count >= 0"])
@pytest.mark.parametrize("kind", ["v1", "v1-multipart"])
@pytest.mark.parametrize("options", [CACHED, UNCACHED], ids=["cached", "uncached"])
def test_a_checkpoint_written_anew_half_way_gives_the_rest_and_nothing_twice(
    tmp_path: Path, options: dict[str, str], kind: str, predicate: str | None
) -> None:
    table = built(tmp_path, kind=kind)
    scan = ld.open(tmp_path, storage_options=options).scan(predicate, checkpoint_row_groups_per_batch=1)
    files = scan.files()
    found = keys([next(files) for _ in range(20)])
    write_anew(table, kind, row_group_rows=700, stats="both", is_turned_round=True)
    found += keys(files)
    assert len(found) == len(set(found))
    assert set(found) == table.live()
    assert scan.explain().fallbacks_by_kind == {"checkpoint_damaged": 1}
    assert "was written anew meanwhile" in scan.explain().fallbacks[0]


@pytest.mark.parametrize("call", range(3, 8))
def test_files_in_order_are_whole_though_their_checkpoint_is_written_anew(tmp_path: Path, call: int) -> None:
    table = built(tmp_path)

    def plan(number: int) -> None:
        if number == call:
            write_anew(table, row_group_rows=700, is_turned_round=True)

    storage = faulty(open_storage(str(tmp_path), Settings()), plan)
    snapshot = open_snapshot(storage, parallelism=2)
    config = LazyScanConfig(order="asc", checkpoint_row_groups_per_batch=1)
    found = [path for rows in FileScan(snapshot, config).batches() for path in rows["path"].to_pylist()]
    assert found == sorted(path for path, _ in table.live())


def test_past_the_limit_a_checkpoint_written_anew_half_way_ends_the_scan_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_KEYS_KEPT_BYTES", 1000)
    table = built(tmp_path)
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    files = opened.scan(checkpoint_row_groups_per_batch=1).files()
    found = keys([next(files) for _ in range(20)])
    write_anew(table, row_group_rows=700, stats="both")
    with pytest.raises(ObjectReplacedError, match="run the scan again"):
        found += keys(files)
    assert set(found) < table.live()
    assert len(found) == len(set(found))
    again = opened.scan()
    assert sorted(keys(again.files())) == sorted(table.live())
    assert "was written anew meanwhile" in again.explain().fallbacks[0]


def test_no_file_comes_of_a_checkpoint_that_lacks_what_went_out(tmp_path: Path) -> None:
    table = built(tmp_path / "one")
    other = built(tmp_path / "other", seed=2)  # its id is the same
    files = (
        ld.open(tmp_path / "one", storage_options=UNCACHED).scan(checkpoint_row_groups_per_batch=1).files()
    )
    found = keys([next(files) for _ in range(20)])
    name = f"_delta_log/{0:020}.checkpoint.parquet"
    time.sleep(0.02)
    (tmp_path / "one" / name).write_bytes((other.path / name).read_bytes())
    with pytest.raises(ObjectReplacedError, match="run the scan again"):
        found += keys(files)
    assert set(found) < table.live()


def test_keys_that_went_out_are_memory_of_the_scan_and_are_dropped_past_the_limit_or_without_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = pa.record_batch({"path": [f"{number:0128}" for number in range(100)]})
    monkeypatch.setattr(limits, "CHECKPOINT_KEYS_KEPT_BYTES", 30_000)
    budget = MemoryBudget(10**6)
    handed_out = HandedOut(MemoryShare(budget))
    for count in (100, 200):
        handed_out.add(rows)
        assert handed_out.count == sum(len(keys) for keys in handed_out.all_keys()) == count
        assert count * 128 <= budget.use().held_bytes <= 30_000
    handed_out.add(rows)
    assert (handed_out.count, handed_out.is_whole, budget.use().held_bytes) == (300, False, 0)
    scarce = HandedOut(MemoryShare(MemoryBudget(10_000)))
    scarce.add(rows)
    assert (scarce.count, scarce.is_whole) == (100, False)
    again = HandedOut(MemoryShare(budget))
    again.add(rows)
    again.close()
    assert budget.use().held_bytes == 0


def test_a_checkpoint_that_nobody_read_yet_may_be_written_anew_with_another_size(tmp_path: Path) -> None:
    table = built(tmp_path).crc()
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    write_anew(table, row_group_rows=100, stats="both")
    scan = opened.scan()
    assert sorted(keys(scan.files())) == sorted(table.live())
    assert "was written anew meanwhile" in scan.explain().fallbacks[0]


def test_a_checkpoint_of_another_table_under_the_same_name_ends_the_scan(tmp_path: Path) -> None:
    built(tmp_path / "one")
    other = built(tmp_path / "other", seed=2, table_id="another")
    opened = ld.open(tmp_path / "one", storage_options=UNCACHED)
    name = f"_delta_log/{0:020}.checkpoint.parquet"
    time.sleep(0.02)
    (tmp_path / "one" / name).write_bytes((other.path / name).read_bytes())
    with pytest.raises(ObjectReplacedError):
        list(opened.scan().files())


@pytest.mark.parametrize("call", [4, 5])
def test_a_checkpoint_written_anew_while_a_table_is_opened_is_read_as_it_is_now(
    tmp_path: Path, call: int
) -> None:
    table = built(tmp_path)
    table.checkpoint(version=0, row_group_rows=ROW_GROUP_ROWS, table_state_at="start")

    def plan(number: int) -> None:
        if number == call:
            write_anew(table, row_group_rows=700, stats="both")

    storage = faulty(open_storage(str(tmp_path), Settings()), plan)
    snapshot = open_snapshot(storage, parallelism=2)
    assert snapshot.version == 1
    assert snapshot.state.metadata.id == ld.open(tmp_path).metadata.id


def test_every_part_of_a_checkpoint_may_be_written_anew(tmp_path: Path) -> None:
    table = built(tmp_path, kind="v1-multipart")
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    write_anew(table, "v1-multipart", row_group_rows=200, stats="both")
    found = keys(opened.scan().files())
    assert len(found) == len(set(found))
    assert set(found) == table.live()


def test_the_hint_may_change_as_well(tmp_path: Path) -> None:
    table = built(tmp_path)
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    write_anew(table, row_group_rows=700)
    live = table.live()
    table.commit(["newer"]).checkpoint()
    assert set(keys(opened.scan().files())) == live
