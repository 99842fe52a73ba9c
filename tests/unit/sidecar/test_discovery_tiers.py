"""The tiers of discovery: which source serves, what each costs in requests, and when nothing is asked for."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lazydelta.log import open_snapshot
from lazydelta.scan import FileScan, LazyScanConfig
from lazydelta.sidecar import SidecarAwareProvider, SidecarConfig, SidecarReading, TakenOnce
from lazydelta.storage import Storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add
from tests.support.faulty_storage import faulty
from tests.support.plain_sidecar import write_plain
from tests.support.sidecar_damage import lazy_folder, numbered_file, numbered_files, storage_of
from tests.support.sidecar_states import (
    CHECKPOINT,
    part_paths,
    scanned,
    table_with_sidecar,
    without_manifest,
    without_sidecar,
)
from tests.support.table_builder import TableBuilder

LAST_DAY = "date = '2026-02-20'"
Calls = Counter[tuple[str, str]]


def calls_of(
    table: TableBuilder, where: str | None = None, *, reading: SidecarReading | None = None, **scan: Any
) -> tuple[Calls, FileScan]:
    """Every call that opening and one scan make, by method and file; parts and footers by their folder."""
    storage = faulty(storage_of(table), lambda _: None)
    run = scan_of(storage, where, reading=reading, **scan)
    for _ in run.batches():
        pass
    return Counter((method, _place(name)) for method, name in storage.log.calls), run


def scan_of(
    storage: Storage, where: str | None = None, *, reading: SidecarReading | None = None, **scan: Any
) -> FileScan:
    provider = SidecarAwareProvider(storage, reading or SidecarReading(), TakenOnce())
    snapshot = open_snapshot(storage, parallelism=4, companion=provider)
    provider.opened(snapshot.state.metadata)
    return FileScan(snapshot, LazyScanConfig(predicate=where, **scan), provider)


def _place(name: str) -> str:
    base = name.rpartition("/")[2]
    if "/_lazy/" in name:
        return "manifest" if base.endswith(".manifest.json") else "part"
    if "/_sidecars/" in name:
        return "plain"
    return "checkpoint" if ".checkpoint." in base else base.lstrip("0")


def test_a_manifest_costs_its_own_request_and_no_listing(tmp_path: Path) -> None:
    calls, run = calls_of(table_with_sidecar(tmp_path), LAST_DAY)
    assert run.report().source == "sidecar 3 (manifest)"
    assert calls["get_stream", "manifest"] == 1
    assert calls["list_from", "_delta_log"] == sum(
        n for (method, _), n in calls.items() if method == "list_from"
    )
    assert not [call for call in calls if call[1] == "checkpoint"]
    # The e-tag tells that the commit is the bound one; the `.crc` of its version looks at its head.
    assert calls["get_range", "3.json"] == 1


def test_a_table_without_a_sidecar_is_asked_for_one_file_as_long_as_the_tail_suffices(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_sidecar(table)
    calls, run = calls_of(table, limit=2)
    assert run.report().source == "none"
    assert calls["get_stream", "manifest"] == 1
    assert [place for method, place in calls if method == "list_from"] == ["_delta_log"]


def test_any_files_of_a_checkpoint_are_not_worth_a_search(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_manifest(table)
    calls, run = calls_of(table, limit=30)
    assert run.report().source == "checkpoint 3"
    assert [place for method, place in calls if method == "list_from"] == ["_delta_log"]


def test_certain_files_are_worth_a_search_once_the_tail_does_not_suffice(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_manifest(table)
    _, run = calls_of(table, "count >= 0", limit=30)
    assert run.report().source == "sidecar 3 (footers)"
    assert run.report().files_emitted == 30


def test_without_a_sidecar_a_full_scan_lists_two_folders_and_reads_nothing_more(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_sidecar(table)
    calls, run = calls_of(table)
    off, _ = calls_of(table, reading=SidecarReading(is_enabled=False))
    assert run.report().source == "checkpoint 3"
    extra = calls - off
    assert extra == Counter(
        {("get_stream", "manifest"): 1, ("list_from", "_lazy"): 1, ("list_from", "_sidecars"): 1}
    )


def test_switched_off_nothing_of_a_sidecar_is_touched(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    write_plain(table, version=CHECKPOINT)
    calls, run = calls_of(table, reading=SidecarReading(is_enabled=False))
    assert run.report().source_reason == "the sidecar is switched off"
    assert not {place for _, place in calls} & {"manifest", "part", "plain", "_lazy", "_sidecars"}


def test_the_footers_of_a_whole_build_serve_without_its_manifest(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    whole = scanned(table, LAST_DAY)
    without_manifest(table)
    calls, run = calls_of(table, LAST_DAY)
    report = run.report()
    assert report.source == "sidecar 3 (footers)"
    assert report.fallbacks == ()
    assert (report.row_groups_read, report.row_groups_skipped) == (
        whole.row_groups_read,
        whole.row_groups_skipped,
    )
    # Footers are told by the listing; of parts that cannot match nothing else is read.
    assert calls["get_stream", "manifest"] == 1
    assert calls["get_range", "part"] + calls["get_ranges", "part"] <= len(part_paths(table)) + 3


def test_the_manifest_can_be_left_aside_for_comparison(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    calls, run = calls_of(table, reading=SidecarReading(uses_manifest=False))
    assert run.report().source == "sidecar 3 (footers)"
    assert calls["get_stream", "manifest"] == 0
    _, limited = calls_of(table, reading=SidecarReading(uses_manifest=False), limit=30)
    assert limited.report().source == "sidecar 3 (footers)"


def test_footers_serve_parts_that_are_split(tmp_path: Path) -> None:
    config = SidecarConfig(row_group_rows=4, row_groups_max=2, footer_bytes_max=5000)
    table = table_with_sidecar(tmp_path, config=config)
    assert list(lazy_folder(table).glob("*.index.parquet")), "the parts are split"
    without_manifest(table)
    assert scanned(table).source == "sidecar 3 (footers)"
    assert scanned(table, "count < 3").row_groups_read <= 6
    next(lazy_folder(table).glob("*.stats.parquet")).unlink()
    report = scanned(table)
    assert report.source == "checkpoint 3"
    assert "lacks a half" in report.fallbacks[0]


def test_of_two_builds_without_a_manifest_the_one_that_is_whole_serves(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    first = part_paths(table)
    without_manifest(table)
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=8, row_groups_max=2), full=True)
    without_manifest(table)
    second = [path for path in part_paths(table) if path not in first]
    assert len(second) == 3
    second[0].unlink()
    report = scanned(table)
    assert report.source == "sidecar 3 (footers)"
    assert report.parts_total == len(first)
    assert "lacks a part" in report.fallbacks[0]


def test_parts_that_need_those_of_an_earlier_build_do_not_serve_alone(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    table.checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=4, row_groups_max=2))
    (lazy_folder(table) / f"v{table.version:020}.manifest.json").unlink()
    (lazy_folder(table) / f"v{CHECKPOINT:020}.manifest.json").unlink()
    report = scanned(table)
    assert report.source == f"checkpoint {table.version}"
    assert "needs parts of earlier builds" in report.fallbacks[0]


def test_a_build_of_too_many_parts_is_not_opened_without_its_manifest(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(numbered_files(range(260))).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=1, row_groups_max=1))
    assert scanned(table).source == "sidecar 0 (manifest)"
    without_manifest(table)
    calls, run = calls_of(table)
    assert run.report().source == "checkpoint 0"
    assert "has 260 parts, too many to open all" in run.report().fallbacks[0]
    assert not [call for call in calls if call[1] == "part"]


def test_scans_side_by_side_search_once(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_manifest(table)
    storage = faulty(storage_of(table), lambda _: None)
    first = scan_of(storage)

    def run(_: int) -> int:
        again = FileScan(first.snapshot, first.config, first.sidecar)
        return sum(batch.num_rows for batch in again.batches())

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(run, range(16)))
    assert counts == [len(table.live())] * 16
    listed = [name for method, name in storage.log.calls if method == "list_from"]
    assert sorted(listed) == ["_delta_log", "_delta_log/_lazy", "_delta_log/_sidecars"]


def test_a_table_without_files_is_served_by_any_tier(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(removes=["a"]).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig())
    table.commit(["b"])
    assert scanned(table).source == "sidecar 1 (manifest)"
    without_sidecar(table)
    write_plain(table, version=1)
    assert scanned(table).source == "sidecar 1 (plain)"


def test_footers_tell_nulls_and_empty_texts_apart_from_values(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={"v": "long", "p": "string"}, partition_columns=("p",))
    values = [None, "", "a", "b", "c", None, "", "z"]
    table.commit([add(f"f{n}", partition={"p": value}) for n, value in enumerate(values)]).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=2, row_groups_max=2))
    filters = ["p = 'a'", "p is null", "p = ''", "p <> 'z'", "not (p > 'a')", "p in ('b', '')", "p > 'y'"]
    by_manifest = {where: scanned(table, where).files_emitted for where in filters}
    without_manifest(table)
    for where in filters:
        report = scanned(table, where)
        assert report.source == "sidecar 0 (footers)"
        assert report.files_emitted == by_manifest[where]


@pytest.mark.parametrize("limit", [None, 12])
def test_a_later_id_of_the_table_is_no_reason_to_fall_back(tmp_path: Path, limit: int | None) -> None:
    table = table_with_sidecar(tmp_path)
    table.commit([numbered_file(60)], metadata=table.metadata | {"id": "replaced"}).crc()
    report = scanned(table, limit=limit) if limit is not None else scanned(table)
    assert report.source == "sidecar 3 (manifest)"
    assert report.fallbacks == ()


def test_the_folder_of_sidecars_is_configured(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    lazy_folder(table).rename(table.log / "elsewhere")
    _, run = calls_of(table, reading=SidecarReading(folder="_delta_log/elsewhere"))
    assert run.report().source == "sidecar 3 (manifest)"
    assert scanned(table).source == "checkpoint 3"
