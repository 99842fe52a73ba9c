"""Scans in order over a store that fails at any call: the right files in order, or an error, never less."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from lazydelta.errors import CorruptLogError, LazyDeltaError, StorageError
from lazydelta.log import open_snapshot
from lazydelta.scan import DeltaFile, FileScan, LazyScanConfig, files_of
from lazydelta.sidecar import SidecarAwareProvider, SidecarConfig, SidecarReading, TakenOnce
from lazydelta.storage import Storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.eager_twin import replay
from tests.support.faulty_storage import Kind, fail_at, faulty
from tests.support.ordered_twin import is_in_order, order_keys
from tests.support.reading import keys
from tests.support.sidecar_damage import lazy_folder, numbered_files, storage_of
from tests.support.table_builder import TableBuilder
from tests.unit.sidecar.test_discovery_faults import refusing

DENIED = pytest.mark.long("another fault, which takes the path of a permanent one")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Overlapping parts, removed rows, and a tail."""
    table = TableBuilder(tmp_path_factory.mktemp("faults")).commit(numbered_files(range(40))).checkpoint()
    config = SidecarConfig(row_group_rows=4, row_groups_max=3)
    build_sidecar(storage_of(table), config=config)
    table.commit(numbered_files(range(40, 46)), ["part-00003.parquet"]).checkpoint()
    build_sidecar(storage_of(table), config=config)
    return table.commit(numbered_files(range(46, 50)), ["part-00010.parquet"])


def run_of(storage: Storage, order: str, *, limit: int | None = None) -> FileScan:
    provider = SidecarAwareProvider(storage, SidecarReading(), TakenOnce())
    snapshot = open_snapshot(storage, parallelism=2, companion=provider)
    provider.opened(snapshot.state.metadata)
    return FileScan(snapshot, LazyScanConfig(order=order, batch_size=3, limit=limit), provider)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("kind", ["permanent", "not_found", pytest.param("denied", marks=DENIED)])
def test_a_fault_at_any_call_is_an_error_or_changes_nothing(
    table: TableBuilder, order: str, kind: Kind
) -> None:
    told = order_keys(replay(table.path).live, "date", kind="date")
    outcomes = set()
    for number in itertools.count(1):
        storage = faulty(storage_of(table), fail_at(number, kind))
        try:
            run = run_of(storage, order)
            found = keys(file for batch in run.batches() for file in files_of(batch))
        except LazyDeltaError:
            outcomes.add("error")
        else:
            assert is_in_order(found, told, descending=order == "desc"), f"call {number}"
            outcomes.add("fallback" if run.report().fallbacks else "whole")
        if storage.log.faults == 0:
            break
    assert {"fallback", "whole"} <= outcomes


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("went_out", [0, 1, 10, 30])
def test_a_part_that_goes_out_of_reach_half_way_loses_no_file_and_repeats_none(
    table: TableBuilder, order: str, went_out: int
) -> None:
    told = order_keys(replay(table.path).live, "date", kind="date")
    outcomes = set()
    for part in sorted(path.name for path in lazy_folder(table).glob("*.parquet")):
        down: set[str] = set()
        storage = refusing(table, lambda _, name, down=down: name.rpartition("/")[2] in down, "permanent")
        run = run_of(storage, order)
        stream = run.batches()
        found: list[DeltaFile] = []
        while len(found) < went_out:
            found += files_of(next(stream))
        down.add(part)
        try:
            found += [file for batch in stream for file in files_of(batch)]
        except (CorruptLogError, StorageError) as lost:
            # What went out cannot be read again: the store's own words, or those of the scan.
            assert isinstance(lost, StorageError) or "after some of its files had gone out" in lost.what
            assert went_out
            outcomes.add("error")
        else:
            assert is_in_order(keys(found), told, descending=order == "desc")
            outcomes.add("fallback" if run.report().fallbacks else "whole")
    assert "fallback" in outcomes


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_ten_files_in_order_take_one_footer_and_one_row_group(tmp_path: Path, order: str) -> None:
    table = TableBuilder(tmp_path).commit(numbered_files(range(120))).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=10, row_groups_max=4))
    storage = faulty(storage_of(table), lambda _: None)
    run = run_of(storage, order, limit=10)
    assert sum(batch.num_rows for batch in run.batches()) == 10
    parts = sorted(path.name for path in lazy_folder(table).glob("*.parquet"))
    calls = Counter(name.rpartition("/")[2] for _, name in storage.log.calls)
    # The newest footer was read while the table was opened, whatever the order.
    expected = [2, 0, 1] if order == "asc" else [0, 0, 2]
    assert [calls[part] for part in parts] == expected


def test_the_table_of_these_tests_has_overlapping_parts(table: TableBuilder) -> None:
    run = run_of(storage_of(table), "asc")
    for _ in run.batches():
        pass
    assert run.report().parts_total > 3
