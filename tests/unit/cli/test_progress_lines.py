"""Progress on stderr: plain lines for people, and on a terminal a bar that leaves nothing behind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bench.generate import generate
from bench.spec import TableSpec
from lazydelta.cli.progress_bar import ProgressBar
from lazydelta.cli.progress_lines import ProgressLines
from tests.support.command_line import Run, on_terminal
from tests.support.table_builder import TableBuilder


def test_a_line_tells_what_is_known_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLines()("part_read", batch_id=None, rows=12_000, elapsed_ms=221.8797, file="a")
    assert capsys.readouterr().err == "part read: rows 12,000, elapsed ms 222, file a\n"


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLines() as progress:
        progress("reading", rows=5, total=10)
    assert capsys.readouterr().err == "reading: rows 5, total 10\n"
    with ProgressLines(only_bar=True) as progress:
        progress("scanning", files=5, total=10)
    assert capsys.readouterr().err == ""


def drawn(*events: tuple[float, str, dict[str, object]]) -> list[str]:
    """What a bar shows, one text for each time it is drawn."""
    times = iter([seconds for seconds, _, _ in events])
    stream = io.StringIO()
    bar = ProgressBar(stream, clock=lambda: next(times))
    for _, event, facts in events:
        bar.draw(event, facts)
    return stream.getvalue().split("\r\x1b[K")[1:]


def test_a_bar_tells_share_count_rate_rest_and_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    first, second = drawn(
        (100.0, "reading", {"rows": 0, "total": 4_000_000}),
        (102.0, "reading", {"rows": 1_000_000, "total": 4_000_000}),
    )
    assert first == "reading  ░░░░░░░░░░    0%  0 of 4,000,000 rows; then writing parts"
    assert second == (
        "reading  ██░░░░░░░░   25%  1,000,000 of 4,000,000 rows  500,000/s  0:06 left; then writing parts"
    )


def test_a_bar_is_drawn_a_few_times_a_second_and_no_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    texts = drawn(*((100 + n / 1000, "reading_log", {"rows": n * 1000}) for n in range(1001)))
    assert 8 <= len(texts) <= 11
    assert max(map(len, texts)) <= 39


def test_parts_of_a_sidecar_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    texts = drawn(
        (1.0, "writing", {"rows": 100, "parts": 4}),
        (2.0, "part_written", {"file": "a", "rows": 25}),
        (3.0, "part_written", {"file": "b", "rows": 25}),
    )
    assert "2 of 4 parts" in texts[-1]
    assert texts[-1].endswith("then the manifest")


def test_an_event_without_a_count_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    assert not ProgressBar(stream).draw("reading", {"source": "s3://bucket"})
    assert not ProgressBar(stream).draw("writing", {"files": 3, "tasks": 2})
    assert stream.getvalue() == ""


@pytest.fixture(scope="module")
def long_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files for more than one report of progress."""
    folder = tmp_path_factory.mktemp("progress") / "table"
    generate(folder, TableSpec(files=50_000, tail_commits=0, tail_dv_updates=0))
    return folder


def test_explain_shows_a_bar_on_a_terminal_alone(long_table: Path, run: Run) -> None:
    shown = run("explain", long_table, terminal="err", COLUMNS="120").err
    assert "of 50,000 files" in shown
    assert last_line(shown) == ""
    assert run("explain", long_table).err == ""


def test_a_build_shows_a_bar_on_a_terminal_and_its_result_alone_on_stdout(long_table: Path, run: Run) -> None:
    ended = run("sidecar", "build", long_table, terminal="err", COLUMNS="120")
    assert ended.out.startswith("sidecar           version 1,000, full")
    assert "█" in ended.err
    assert "of 50,000 rows" in ended.err
    assert "then writing parts" in ended.err and "then the manifest" in ended.err
    assert last_line(ended.err) == "" or "█" not in last_line(ended.err)


def test_an_error_is_not_written_into_the_bar(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=["a"])
    lines = on_terminal("sidecar", "build", table.path, exit_code=2)
    assert any(line.startswith("error:") for line in lines)


def last_line(shown: str) -> str:
    """What is left on the last line of a terminal."""
    return shown.replace("\r\n", "\n").rpartition("\n")[2].rpartition("\r\x1b[K")[2]
