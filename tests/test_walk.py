"""What the code passes through for an open, a scan, SQL and KQL does not grow unseen.

The figures stand in `docs/architecture.md`. After a change that moves them: `make walk`, and say why.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lazydelta.sample.make import SampleSpec, make_sample

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
WALKS = {
    "open": "`ld.open(url)`",
    "files": '`next(table.scan("value > 20", limit=100).files())`',
    "sql": '`table.sql("select count(*) from t where value > 20").fetchall()`',
    "kql": '`table.kql("t \\| where value > 20 \\| count").fetchall()`',
}
FIGURES = ("functions", "files", "depth", "modules")
BY_CHANCE = {"sql": 3, "kql": 3}  # functions that threads reach in one run and not in the next
SHRUNK = 0.9

Figures = dict[str, int]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_table(tmp_path_factory.mktemp("walk") / "table")


@pytest.mark.parametrize("walk", WALKS)
def test_the_walk_is_as_long_as_recorded(walk: str, table: Path) -> None:
    assert complaints(walked(walk, table), recorded()[walk], BY_CHANCE.get(walk, 0)) == []


def test_a_walk_that_grew_or_shrank_has_to_be_recorded() -> None:
    before = {"functions": 100, "files": 30, "depth": 20, "modules": 50}
    assert complaints(before, before) == []
    assert complaints(before | {"functions": 103, "modules": 46}, before, by_chance=3) == []
    assert complaints(before | {"functions": 104, "modules": 44}, before, by_chance=3) == [
        "functions: 104, recorded are 100; the walk grew: record it with `make walk` and say why",
        "modules: 44, recorded are 50; the walk shrank: record it with `make walk`",
    ]
    assert len(complaints({name: value + 1 for name, value in before.items()}, before)) == len(FIGURES)


def complaints(found: Figures, before: Figures, by_chance: int = 0) -> list[str]:
    """What is wrong with the figures of a walk, beside those that are recorded."""
    lines = []
    for name in FIGURES:
        told = f"{name}: {found[name]}, recorded are {before[name]}; the walk"
        if found[name] > before[name] + (by_chance if name == "functions" else 0):
            lines.append(f"{told} grew: record it with `make walk` and say why")
        elif found[name] < before[name] * SHRUNK:
            lines.append(f"{told} shrank: record it with `make walk`")
    return lines


def walked(walk: str, table: Path) -> Figures:
    """The figures of today."""
    ours = ("DELTA_", "LAZYDELTA_")  # the tests' own options
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-m", "tests.support.walk_process", walk, str(table)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: Figures = json.loads(done.stdout)
    return figures


def made_table(folder: Path) -> Path:
    """Six commits of two files each, a checkpoint with its sidecar, and two commits more."""
    make_sample(folder, SampleSpec(files=12, hours=6, rows=50))
    return folder


def recorded() -> dict[str, Figures]:
    """The table of the page."""
    rows = {}
    for walk, call in WALKS.items():
        row = re.search(rf"^\| {re.escape(call)} ((?:\| \d+ )+)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
        assert row is not None, f"{PAGE.name} has no row for {call}"
        rows[walk] = dict(zip(FIGURES, map(int, re.findall(r"\d+", row[1])), strict=True))
    return rows


def record() -> None:
    """Write the figures of today into the page."""
    text = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        table = made_table(Path(folder) / "table")
        for walk, call in WALKS.items():
            figures = walked(walk, table)
            row = f"| {call} | " + " | ".join(str(figures[name]) for name in FIGURES) + " |"
            print(row)
            text = re.sub(rf"^\| {re.escape(call)} \|.*$", lambda _, row=row: row, text, flags=re.MULTILINE)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    record()
