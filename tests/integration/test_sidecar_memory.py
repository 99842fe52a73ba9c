"""A full build takes the memory of its configuration, not of the table: measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.generate import generate
from bench.spec import TableSpec

_OVER_IMPORT_BYTES_MAX = 300 << 20
_BUILD = """
import json, sys
import pyarrow.compute, pyarrow.dataset, pyarrow.parquet
from lazydelta.settings import build_settings
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

def status(name):
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

storage = open_storage(sys.argv[1], build_settings({}, environment={}))
before = status("VmRSS")
report = build_sidecar(storage, config=SidecarConfig(folder=sys.argv[2]))
taken = status("VmHWM") - before
print(json.dumps({"over_import_bytes": taken, "kind": report.kind, "files": report.num_files}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("stats", ["json", "both"])
def test_a_full_build_stays_within_its_memory(tmp_path: Path, stats: str) -> None:
    files = 400_000  # several sorted runs, and a part near its full size
    generate(tmp_path, TableSpec(files=files, stats=stats))  # type: ignore[arg-type]
    command = [sys.executable, "-W", "error", "-c", _BUILD, str(tmp_path), "_delta_log/_lazy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["kind"], told["files"]) == ("full", files)
    assert told["over_import_bytes"] < _OVER_IMPORT_BYTES_MAX
