"""A server of lazydelta beside a benchmark, and the memory that a process holds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def http_server(tables: Mapping[str, Path]) -> Iterator[tuple[int, int]]:
    """`lazydelta serve` of these tables over HTTP: its process and its port."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "serve.toml"
        named = "".join(f"[tables.{name}]\nurl = {json.dumps(str(path))}\n" for name, path in tables.items())
        config.write_text(f"[server]\nhttp_port = 0\ndrain_seconds = 1\n{named}", "utf-8")
        command = [sys.executable, "-m", "lazydelta", "serve", "--config", str(config)]
        with running(command) as (process_id, line):
            yield process_id, json.loads(line)["http"]


@contextmanager
def running(command: Sequence[str]) -> Iterator[tuple[int, str]]:
    """A process that is ended with the block: its id, and the first line that it prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline()
        finally:
            process.terminate()


def forget_peak(process_id: int) -> None:
    """Set the high-water mark of a process's memory back."""
    Path(f"/proc/{process_id}/clear_refs").write_text("5", "ascii")


def status_mb(process_id: int, name: str) -> float:
    """A figure of a process by its name in `/proc`: `VmRSS` now, `VmHWM` at its peak."""
    told = Path(f"/proc/{process_id}/status").read_text("ascii").partition(f"{name}:")[2]
    return int(told.split(None, 1)[0]) / 1024
