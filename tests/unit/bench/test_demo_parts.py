"""What the demo judges and shows, without Spark."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.demo_checks import ListedFile, listed_files, stray_files
from bench.demo_layout import show_layout
from bench.growing import GrowingSpec, GrowingTable, hour_text
from bench.terminal import show_command
from lazydelta.settings import build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.config import IngestConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

FILE = ListedFile(
    path="a",
    size=1,
    hour="2026021022",
    num_records=3,
    first_event="2026-02-10T22:00:00.000Z",
    last_event="2026-02-10T22:59:59.999Z",
)


@pytest.mark.parametrize(
    ("changed", "is_stray"),
    [
        ({}, False),
        ({"hour": "2026021021"}, True),
        ({"first_event": "2026-02-10T21:59:59.999Z"}, True),
        ({"last_event": "2026-02-10T23:00:00.000Z"}, True),
    ],
)
def test_a_file_strays_when_it_holds_another_hour(changed: dict[str, str], is_stray: bool) -> None:
    assert stray_files([msgspec.structs.replace(FILE, **changed)]) == (["a"] if is_stray else [])


@pytest.fixture
def table(tmp_path: Path) -> GrowingTable:
    growing = GrowingTable(GrowingSpec(files=500, checkpoints=1, adds_per_commit=10), tmp_path / "growing")
    growing.start()
    return growing


def test_the_layout_tells_hours_files_checkpoint_and_sidecar(
    table: GrowingTable, capsys: pytest.CaptureFixture[str]
) -> None:
    config = IngestConfig(
        target=str(table.path), event_time="event_time", sidecar=SidecarConfig(row_group_rows=50)
    )
    hour = hour_text(table.newest_ms)
    show_layout(config, hour)
    assert "no sidecar was written" in capsys.readouterr().out
    build_sidecar(open_storage(config.target, build_settings({}, environment={})), config=config.sidecar)
    show_layout(config, hour)
    told = capsys.readouterr().out
    files = listed_files(config.target, "_event_hour", event_time="event_time")
    assert f"500 files in {len({file.hour for file in files})} hours" in told
    assert "checkpoint of version 1000" in told
    assert "1 part with 10 row groups" in told
    assert "can be in 1 of 10 row groups" in told


def test_a_command_shows_what_a_terminal_would_see(table: GrowingTable) -> None:
    code, shown = show_command("lazydelta files growing --limit 2 --columns size,path", table.path.parent)
    assert code == 0
    header, *lines = shown.splitlines()
    assert header.split() == ["size", "path"]
    assert len(lines) == 2 and all("_event_hour=" in line for line in lines)
    assert show_command("lazydelta files growing --where nonsense", table.path.parent)[0] != 0
