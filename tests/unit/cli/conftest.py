"""`lazydelta` as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.generate import generate
from bench.spec import TableSpec
from tests.support.actions import add, inline_dv, stats
from tests.support.table_builder import TableBuilder

COMMAND = (sys.executable, "-m", "lazydelta.cli")
Run = Callable[..., "Ended"]


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(**more: str) -> dict[str, str]:
    """The caller's environment without what would change an answer; warnings are errors here, too.

    Python's own buffering stays on: a test of flushing means nothing without it.
    """
    strangers = ("DELTA_", "LAZYDELTA_", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strangers)}
    return {**kept, "PYTHONWARNINGS": "error", **more}


@pytest.fixture
def run() -> Run:
    """Run `lazydelta ARGUMENTS…` with its output on pipes."""

    def run_command(*arguments: str | Path, **more: str) -> Ended:
        command = [*COMMAND, *map(str, arguments)]
        done = subprocess.run(
            command,
            capture_output=True,
            env=environment(**more),
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run_command


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Four live files: one with a deletion vector and statistics, one with a line end in its name."""
    with_vector = add("d", deletion_vector=inline_dv(), stats=stats(10, low={"value": 1}, high={"value": 2}))
    builder = TableBuilder(tmp_path / "table").commit(adds=["a", "b c"])
    builder.commit(adds=[with_vector], removes=["a"], commit_info={"operation": "DELETE", "engineInfo": "E"})
    return builder.checkpoint().commit(adds=["x%0Ay", add("e", partition={"date": "2026-02-09"})]).crc()


@pytest.fixture(scope="session")
def large_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred thousand files in a checkpoint: far more than a pipe holds."""
    folder = tmp_path_factory.mktemp("large") / "table"
    generate(folder, TableSpec(files=200_000, tail_commits=5))
    return folder
