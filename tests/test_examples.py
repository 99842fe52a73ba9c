"""The examples run as they are: scripts by themselves, the notebook cell by cell, showing what it says."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.support.notebooks import code_cells, run_cells, shown_in

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOK = EXAMPLES / "first_hour.ipynb"
# What each script must say, besides ending well.
SAID = {
    "first_steps.py": ["version 48 with 96 files", "rows of the last hour 1000"],
    "drifting_sensor.py": ["SQL sensor-042", "KQL sensor-042"],
    "why_is_it_slow.py": ["from the checkpoint 198", "note: no_sidecar", "from the sidecar 198 (manifest)"],
}


def test_every_script_is_run_and_listed() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAID)
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in (*SAID, NOTEBOOK.name) if f"]({name})" not in listed] == []


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_script_says_what_it_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    shown = capsys.readouterr().out
    assert [text for text in SAID[name] if text not in shown] == []


def test_the_notebook_shows_what_its_cells_give(tmp_path: Path) -> None:
    cells = code_cells(NOTEBOOK)
    shown = run_cells(["".join(cell["source"]) for cell in cells], tmp_path)
    assert shown == [shown_in(cell) for cell in cells], "run python -m tests.support.notebooks"
