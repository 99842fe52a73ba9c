"""Tables with a long tail and delta files beside it, read without a cache, so that every read is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lazydelta as ld
from lazydelta.settings import build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.keys import FileKey
from tests.support.reading import keys
from tests.support.sidecar_twin import LAZY
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import file_at, removed, storage_of, telemetry

UNCACHED = build_settings({"delta.cache.bytes": "0"}, environment={})


def long_tail(folder: Path, *, stretches: tuple[int, ...] = (60, 70, 58), rest: int = 12) -> TableBuilder:
    """A checkpoint, then commits with a delta file after each stretch, then some that are in none."""
    table = telemetry(folder).commit([file_at(0, "first")]).checkpoint()
    for commits in stretches:
        grow(table, commits)
        assert len(write_delta_files(storage_of(table), config=SidecarConfig(delta_commits_min=1))) == 1
    return grow(table, rest)


def grow(table: TableBuilder, commits: int) -> TableBuilder:
    """Commits that add two files each and remove one of the commit before."""
    for _ in range(commits):
        number = table.version + 1
        added = [file_at(number, f"f{number}"), file_at(number, f"g{number}")]
        table.commit(added, [removed(number - 1, f"f{number - 1}")])
    return table


def delta_files(table: TableBuilder) -> list[Path]:
    """The delta files, oldest first."""
    return sorted((table.path / LAZY).glob("*.delta.parquet"))


def scanned(
    table: TableBuilder, *, version: int | None = None, **scan: Any
) -> tuple[list[FileKey], ld.ScanReport]:
    """The keys that came, in their order, and the report."""
    run = ld.open(str(table.path), version=version, settings=UNCACHED).scan(**scan)
    return keys(run.files()), run.explain()


def changed(path: Path, change: Callable[[bytearray], object]) -> None:
    """Change the bytes of a file in place."""
    body = bytearray(path.read_bytes())
    change(body)
    path.write_bytes(body)
