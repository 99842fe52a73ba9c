"""A commit of very many adds takes the memory of a slice and of its keys, by JSON and by a delta file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import file_at, storage_of, telemetry

# How many adds, and the memory that a scan of them may take over the import, by JSON and by a delta file:
# a key is 16 bytes, held four times while runs are merged; slices and row groups are a few MB.
SIZES = [
    (250_000, 64 << 20, 110 << 20),
    pytest.param((1_000_000, 150 << 20, 150 << 20), marks=pytest.mark.long("a commit of a million adds")),
]
_SCAN = """
import json, sys
import lazydelta as ld
from lazydelta import limits, table
from lazydelta.settings import build_settings

def status(name):
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

limits.SIDECAR_DELTA_COMMITS = int(sys.argv[2])
before = status("VmRSS")
opened = ld.open(sys.argv[1], settings=build_settings({"delta.cache.bytes": "0"}, environment={}))
scan = opened.scan(strategy="reverse", commit_read_parallelism=1)
files = sum(batch.num_rows for batch in scan.file_batches(["path", "size"]))
report = scan.explain()
taken = status("VmHWM") - before
told = {"files": files, "over_import_bytes": taken}
print(json.dumps(told | {"delta_files": report.delta_files, "bytes": report.bytes_read}))
"""


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"{size[0]} adds")
def size(request: pytest.FixtureRequest) -> tuple[int, int, int]:
    found: tuple[int, int, int] = request.param
    return found


@pytest.fixture(scope="module")
def table(size: tuple[int, int, int], tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """A checkpoint of one file, a large commit that a delta file covers, and a small commit."""
    made = telemetry(tmp_path_factory.mktemp("large")).commit([file_at(0, "first")]).checkpoint()
    made.commit([file_at(1, "pattern")])
    commit = made.log / f"{1:020}.json"
    *head, pattern = commit.read_text(encoding="utf-8").splitlines(keepends=True)
    with commit.open("w", encoding="utf-8") as out:
        out.writelines(head)
        for start in range(0, size[0], 10_000):
            numbers = range(start, start + 10_000)
            out.write("".join(pattern.replace("pattern", f"part-{n:08}-{n * 7:032x}") for n in numbers))
    write_delta_files(storage_of(made), config=SidecarConfig(delta_commits_min=1))
    return made.commit([file_at(2, "last")]).crc()


def scanned(table: TableBuilder, *, delta_commits_min: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "error", "-c", _SCAN, str(table.path), str(delta_commits_min)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_large_commit_is_read_in_bounded_memory(table: TableBuilder, size: tuple[int, int, int]) -> None:
    adds, bytes_max, _ = size
    told = scanned(table, delta_commits_min=50)
    assert (told["files"], told["delta_files"]) == (adds + 2, 0)
    assert told["over_import_bytes"] < bytes_max < Path(table.log / f"{1:020}.json").stat().st_size


def test_a_delta_file_of_a_large_commit_is_read_in_bounded_memory(
    table: TableBuilder, size: tuple[int, int, int]
) -> None:
    adds, _, bytes_max = size
    told = scanned(table, delta_commits_min=1)
    assert (told["files"], told["delta_files"]) == (adds + 2, 1)
    assert told["over_import_bytes"] < bytes_max
    assert told["bytes"] < (table.log / f"{1:020}.json").stat().st_size / 4
