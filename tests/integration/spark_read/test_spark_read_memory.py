"""A plan of a large table takes the memory of its bounds, not of the file list; it needs no session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.generate import generate
from bench.spec import TableSpec

_SMALL, _LARGE = 100_000, 1_000_000
_GROWTH_BYTES_MAX = 64 << 20  # the packed lists of the large table alone are more
_PLAN = """
import json, sys
from lazydelta import limits
from lazydelta.spark.reading.source import LazyDeltaSource

limits.SPARK_PLAN_INLINE_BYTES = 4 << 20

def status(name):
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

before = status("VmRSS")
source = LazyDeltaSource({"path": sys.argv[1], "spill": sys.argv[2], "storage.delta.cache.bytes": "0"})
partitions = source.reader(source.schema()).partitions()
files = sum(chunk.file_count for partition in partitions for chunk in partition.chunks)
print(json.dumps({"files": files, "partitions": len(partitions), "bytes": status("VmHWM") - before}))
"""


def plan(folder: Path, files: int) -> dict[str, Any]:
    """A plan of every file of a generated table, in a process of its own."""
    made = generate(folder / "t", TableSpec(files=files, tail_commits=2, checkpoint_dv_every=0))
    (folder / "spill").mkdir()
    command = [sys.executable, "-c", _PLAN, str(folder / "t"), str(folder / "spill")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["files"] == made.live_files
    return told | {"spilled": sum(path.stat().st_size for path in (folder / "spill").rglob("*.files"))}


@pytest.mark.long("a table of a million files")
def test_a_plan_of_ten_times_the_files_takes_hardly_more_memory(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "large").mkdir()
    small, large = plan(tmp_path / "small", _SMALL), plan(tmp_path / "large", _LARGE)
    assert large["spilled"] > _GROWTH_BYTES_MAX // 2
    assert large["bytes"] - small["bytes"] < _GROWTH_BYTES_MAX
    assert large["partitions"] > 5 * small["partitions"]
