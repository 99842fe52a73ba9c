"""Killed, refused or overtaken anywhere, a build leaves the sidecar before it or none; the next repairs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.storage import Storage
from lazydelta.upkeep.build import BuildReport, build_sidecar
from tests.support.faulty_storage import Kind, fail_at, faulty
from tests.support.sidecar_twin import LAZY, manifest_of, part_files, referenced_files
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import (
    CONFIG,
    assert_exact,
    built,
    file_at,
    forty_files,
    removed,
    storage_of,
    telemetry,
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return forty_files(tmp_path / "table")


def log_bytes(table: TableBuilder) -> dict[str, bytes]:
    """Everything of the table that a sidecar's builder must not touch."""
    return {path.name: path.read_bytes() for path in table.log.iterdir() if path.is_file()}


# --- two builders at once ------------------------------------------------------


Put = Callable[[Storage, str, bytes], bool]


class PuttingStorage:
    """A storage that puts by a function of the test's."""

    def __init__(self, inner: Storage, put: Put) -> None:
        self._inner = inner
        self._put = put

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def scoped(self, deadline: Any = None) -> PuttingStorage:
        return PuttingStorage(self._inner.scoped(deadline), self._put)

    def put_if_absent(self, name: str, body: bytes) -> bool:
        return self._put(self._inner, name, body)


@pytest.mark.parametrize("is_incremental", [False, True])
def test_of_two_builders_one_commits_and_the_other_cleans_up(
    table: TableBuilder, *, is_incremental: bool
) -> None:
    table.commit([file_at(30, "a")], [removed(1, "f2")]).checkpoint()
    before = part_files(table.path)
    barrier = threading.Barrier(3)
    reports: list[BuildReport] = []

    def put_together(inner: Storage, name: str, body: bytes) -> bool:
        if name.endswith(".manifest.json"):
            barrier.wait(timeout=120)
        return inner.put_if_absent(name, body)

    def build() -> None:
        storage = PuttingStorage(storage_of(table), put_together)
        reports.append(build_sidecar(storage, config=CONFIG, full=not is_incremental))

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kind = "incremental" if is_incremental else "full"
    assert sorted(report.kind for report in reports) == sorted([kind, "lost race", "lost race"])
    manifest = manifest_of(table.path, 1)
    assert {report.build for report in reports} == {manifest["build"]}
    assert part_files(table.path) == before | referenced_files(manifest)
    assert_exact(table, 1)


def test_a_manifest_that_was_put_twice_is_the_builders_own(tmp_path: Path) -> None:
    """As after a put whose answer got lost, so that the storage put it again."""
    table = telemetry(tmp_path).commit([file_at(1, "a")]).checkpoint()

    def put_twice(inner: Storage, name: str, body: bytes) -> bool:
        return inner.put_if_absent(name, body) and not name.endswith(".manifest.json")

    assert build_sidecar(PuttingStorage(storage_of(table), put_twice), config=CONFIG).kind == "full"
    assert_exact(table, 0)


# --- a store that fails --------------------------------------------------------


def calls_of_a_build(table: TableBuilder, *, full: bool) -> int:
    """How many calls to the store a build makes."""
    counting = faulty(storage_of(table), lambda _: None)
    report = build_sidecar(counting, config=CONFIG, full=full)
    assert report.kind == ("full" if full else "incremental")
    (table.path / LAZY / f"v{table.version:020}.manifest.json").unlink()
    return len(counting.log.calls)


@pytest.mark.parametrize("kind", ["permanent", "cut", "not_found"])
@pytest.mark.parametrize("full", [False, True])
def test_whichever_call_fails_the_table_and_the_previous_sidecar_stay(
    table: TableBuilder, kind: Kind, *, full: bool
) -> None:
    table.commit([file_at(30, "a"), file_at(2, "late")], [removed(1, "f2")]).checkpoint()
    before = log_bytes(table)
    calls = calls_of_a_build(table, full=full)
    manifest = table.path / LAZY / f"v{1:020}.manifest.json"
    outcomes = set()
    for number in range(1, calls + 1):
        parts = part_files(table.path)
        broken = faulty(storage_of(table), fail_at(number, kind))
        try:
            outcomes.add(build_sidecar(broken, config=CONFIG, full=full).kind)
        except LazyDeltaError as error:
            outcomes.add(type(error).__name__)
            assert isinstance(error, StorageError) or kind == "not_found", f"call {number}: {error}"
            assert not manifest.exists()
            assert part_files(table.path) <= parts | _being_committed(table, broken.log.calls[number - 1])
        assert log_bytes(table) == before
        assert_exact(table, 0)
        if manifest.exists():
            assert_exact(table, 1)
            manifest.unlink()
    assert "StorageError" in outcomes or kind == "not_found"
    assert built(table).kind == "incremental"
    assert_exact(table, 1)


def _being_committed(table: TableBuilder, failed: tuple[str, str]) -> set[str]:
    """Parts that stay when the commit itself failed, because it may have arrived."""
    is_commit = failed[0] == "put_if_absent" and failed[1].endswith(".manifest.json")
    return part_files(table.path) if is_commit else set()


def test_a_folder_that_refuses_writes_is_an_error_and_the_log_is_untouched(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit([file_at(1, "a")]).checkpoint()
    before = log_bytes(table)
    (table.log / "_lazy").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(LazyDeltaError):
        built(table)
    assert {name: body for name, body in log_bytes(table).items() if name != "_lazy"} == before


# --- a process that is killed --------------------------------------------------

_KILLED_BUILD = """
import os, signal, sys, threading
from lazydelta.settings import build_settings
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.faulty_storage import faulty
from tests.support.telemetry_table import CONFIG

table, deadly, full = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"

def plan(call):
    if call == deadly:
        os.kill(os.getpid(), signal.SIGKILL)

storage = faulty(open_storage(table, build_settings({}, environment={})), plan)
build_sidecar(storage, config=CONFIG, full=full)
"""


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_a_build_that_is_killed_at_any_call_is_repaired_by_the_next(
    table: TableBuilder, tmp_path: Path, *, full: bool
) -> None:
    table.commit([file_at(30, "a"), file_at(2, "late")], [removed(1, "f2")]).checkpoint()
    before = log_bytes(table)
    calls = calls_of_a_build(table, full=full)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    manifest = table.path / LAZY / f"v{1:020}.manifest.json"
    for number in sorted({1, 4, calls // 2, *range(calls - 6, calls + 1)}):
        command = [sys.executable, "-c", _KILLED_BUILD, str(table.path), str(number), str(full)]
        environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not manifest.exists()
        assert log_bytes(table) == before
        assert list(scratch.iterdir()) == []
        assert_exact(table, 0)
        assert built(table).kind == "incremental"
        assert_exact(table, 1)
        assert referenced_files(manifest_of(table.path, 1)) <= part_files(table.path)
        manifest.unlink()
