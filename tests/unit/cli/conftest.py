"""`lazydelta` and the tables that its tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.generate import generate
from bench.spec import TableSpec
from tests.support.actions import add, inline_dv, stats
from tests.support.command_line import Run, run_inside
from tests.support.table_builder import TableBuilder


@pytest.fixture
def run() -> Run:
    """Run `lazydelta ARGUMENTS…` in this process, with its output on pipes."""
    return run_inside


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
