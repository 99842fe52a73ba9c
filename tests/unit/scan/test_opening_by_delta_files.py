"""Protocol and metadata of a long tail without a `.crc`: commits, delta files and the floor, newest first."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from tests.support import actions
from tests.support.cached import Asked
from tests.support.long_tail import UNCACHED, changed, delta_files, grow, long_tail, scanned
from tests.support.telemetry_table import SCHEMA, file_at, storage_of, telemetry


def described(text: str) -> dict[str, object]:
    return actions.metadata(SCHEMA, partition_columns=("_event_hour",)) | {"description": text}


def description(folder: Path) -> str | None:
    return ld.open(str(folder), settings=UNCACHED).metadata.description


def test_opening_reads_the_delta_files_and_the_commits_that_they_lack(tmp_path: Path) -> None:
    table = long_tail(tmp_path)
    found, report = scanned(table)
    assert set(found) == table.live()
    assert report.requests - report.requests_by_kind["list"] < 40


@pytest.mark.parametrize("at", ["before", "within", "after"])
def test_the_newest_metadata_wins_wherever_it_stands(tmp_path: Path, at: str) -> None:
    table = telemetry(tmp_path).commit([file_at(0, "first")]).checkpoint()
    grow(table, 20)
    table.commit([file_at(30, "x")], metadata=described("old"))
    grow(table, 20)
    if at != "before":
        table.commit([file_at(31, "y")], metadata=described("within"))
    grow(table, 20)
    write_delta_files(storage_of(table), config=SidecarConfig(delta_commits_min=1))
    if at == "after":
        table.commit([file_at(32, "z")], metadata=described("after"))
    grow(table, 3)
    assert description(table.path) == {"before": "old"}.get(at, at)
    for path in delta_files(table):  # the same by the commits themselves
        changed(path, lambda body: body.__setitem__(-40, body[-40] ^ 1))
    assert description(table.path) == {"before": "old"}.get(at, at)


def test_a_sidecar_that_the_cache_knows_leaves_the_tail_to_the_delta_files(tmp_path: Path) -> None:
    table = long_tail(tmp_path, stretches=(60,), rest=4)
    build_sidecar(storage_of(table), config=SidecarConfig())
    ld.cache.clear()
    assert (
        len(Asked(table.path, limit=1).files) == 1
    )  # the sidecar is known by now, of the tail one commit is
    second = Asked(table.path)
    assert second.live == table.live()
    assert "sidecar" in second.report.cache_hits
    assert (second.report.delta_files, second.report.commits_read <= 14) == (1, True)
    ld.cache.clear()
