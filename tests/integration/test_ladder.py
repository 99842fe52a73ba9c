"""The ladder runs as a whole on a small table: every process, the server, the page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.ladder import main
from bench.ladder_cells import cells, find
from bench.ladder_page import Results

TWO = ("L6", "L7")
ALL = ("L0", "L1", "L3", "L6", "L7", "L8", "L8s")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(TWO, id="two levels"),
        pytest.param(ALL, id="all levels", marks=pytest.mark.long("forty processes")),
    ],
)
def levels(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    return found


@pytest.fixture(scope="module")
def results(levels: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("ladder")
    asked = [word for name in levels for word in ("--level", name)]
    queries = ("take",) if levels == TWO else ("hour", "take")
    asked += [word for name in queries for word in ("--query", name)]
    asked += ["--files", "30000", "--wide-files", "20000"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAZYDELTA_CACHE", str(out / "cache"))
        assert main([*asked, "--rounds", "1", "--no-peers", "--out", str(out)]) == 0
    assert (out / "ladder-small.md").read_text().startswith("# The ladder")
    assert (out / "ladder-small.png").exists()
    return msgspec.json.decode((Path(out) / "ladder-small.json").read_bytes(), type=Results)


def test_every_level_answers_in_both_places(results: Results, levels: tuple[str, ...]) -> None:
    failures = [(run.place, run.level, run.query, run.failure) for run in results.runs if run.failure]
    assert failures == []
    oddities = [(run.place, run.level, run.query, run.note) for run in results.runs if run.note]
    assert oddities == []
    met = {(run.place, run.level) for run in results.runs}
    assert met >= {(place, level) for place in ("disk", "store") for level in levels}


def test_latency_shows_in_the_time_of_every_round_trip(results: Results, levels: tuple[str, ...]) -> None:
    for level in {"L1", "L3", "L6", "L7"}.intersection(levels):
        cell = find(cells(results.runs), level=level, place="store", query="take")
        assert cell is not None
        assert cell.figures["all_s"].median >= cell.figures["round_trips"].median * 0.030


def test_the_wide_pair_is_read_at_the_last_level(results: Results) -> None:
    for table in ("narrow", "wide"):
        assert find(cells(results.runs), level="L7", table=table) is not None


def test_a_limit_stops_early_only_from_its_level_on(results: Results) -> None:
    found = {level: find(cells(results.runs), level=level, query="take") for level in ("L6", "L7")}
    read = {level: cell.figures["bytes_read"].median for level, cell in found.items() if cell is not None}
    assert read["L7"] < read["L6"] / 5
