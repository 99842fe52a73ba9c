"""Scans in order take the memory of their configuration, not of the table: each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.generate import generate
from bench.spec import TableSpec
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

_FILES = 500_000
_ARROW_BYTES_MAX = 48 << 20  # the paths alone are more
_OVER_IMPORT_BYTES_MAX = 200 << 20
_SCAN = """
import json, sys
import pyarrow as pa
import lazydelta as ld
import lazydelta.table

def status(name):
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

before = status("VmRSS")
options = {"delta.sidecar.enabled": sys.argv[3], "delta.cache.bytes": "0"}
scan = ld.open(sys.argv[1], storage_options=options).scan(order=sys.argv[2])
files, most, out_of_order, last = 0, 0, 0, None
for batch in scan.file_batches(["path", "size"]):
    files += batch.num_rows
    most = max(most, pa.total_allocated_bytes())
    paths = batch.column("path").to_pylist()
    steps = zip([last or paths[0], *paths], paths)
    out_of_order += sum((left > right) if sys.argv[2] == "asc" else (left < right) for left, right in steps)
    last = paths[-1]
told = {"files": files, "arrow_bytes": most, "over_import_bytes": status("VmHWM") - before}
print(json.dumps(told | {"out_of_order": out_of_order, "source": scan.explain().source}))
"""


@pytest.fixture(scope="module")
def large_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a million files in no order, and their sidecar; paths begin with the hour: they tell the order."""
    folder = tmp_path_factory.mktemp("ordered")
    spec = TableSpec(files=_FILES, event_hour=True, date_partition=False, order="shuffled", tail_commits=5)
    generate(folder, spec)
    build_sidecar(open_storage(str(folder), Settings()), config=SidecarConfig())
    return folder


OTHER = pytest.mark.long("the other direction of the same scan")


@pytest.mark.parametrize(
    ("order", "is_enabled"),
    [
        ("desc", "true"),
        ("asc", "false"),
        pytest.param("asc", "true", marks=OTHER),
        pytest.param("desc", "false", marks=OTHER),
    ],
)
def test_all_files_come_in_order_in_bounded_memory(large_table: Path, order: str, is_enabled: str) -> None:
    told = _scanned(large_table, order, is_enabled)
    assert told["files"] > _FILES - 1000
    assert told["out_of_order"] == 0
    assert told["source"].startswith("sidecar" if is_enabled == "true" else "checkpoint")
    assert told["arrow_bytes"] < _ARROW_BYTES_MAX
    assert told["over_import_bytes"] < _OVER_IMPORT_BYTES_MAX


def _scanned(table: Path, order: str, is_enabled: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "error", "-c", _SCAN, str(table), order, is_enabled]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
