"""On a terminal: aligned rows under a header, as they come, as wide as it is."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from lazydelta.cli.streams import fitted_widths
from lazydelta.cli.text import cells, cut, folded, human_bytes, human_time, one_line
from tests.support.command_line import COMMAND, Run, environment, on_terminal
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import built


def test_files_are_a_table_on_a_terminal(table: TableBuilder) -> None:
    lines = on_terminal("files", table.path)
    assert lines[0].split() == ["size", "modification_time", "partition_values", "deletion_vector", "path"]
    rows = {line.split()[-1]: line for line in lines[1:]}
    at = lines[0].index("path")
    assert rows["e"] == f"{'1.0 KB  2026-02-02 02:40:00  date=2026-02-09':<{at}}e"
    assert "2 rows deleted" in rows["d"]
    assert "x\\ny" in rows


def test_columns_and_json_work_on_a_terminal_too(table: TableBuilder) -> None:
    lines = on_terminal("files", table.path, "--columns", "path,size")
    assert lines[0].split() == ["path", "size"]
    assert on_terminal("files", table.path, "--json", "--limit", "1")[0].startswith('{"path":')


@pytest.mark.parametrize(("columns", "left_out"), [(60, 2), (40, 3), (24, 4)])
def test_on_a_narrow_terminal_the_path_stays_and_others_go(
    tmp_path: Path, columns: int, left_out: int
) -> None:
    builder = TableBuilder(tmp_path).commit(adds=["part-" + "x" * 80 + "-the-end.parquet"])
    for command in (["files", builder.path], ["stats", builder.path, "gone.parquet"]):
        header, line, *_ = on_terminal(*command, COLUMNS=str(columns), exit_code=int("stats" in command))
        assert "path" in header.split()
        assert max(len(header), len(line)) <= columns
        assert line.endswith(".parquet")
    assert on_terminal("files", builder.path, COLUMNS=str(columns))[0].endswith(f"… {left_out} more")


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_table_fits_the_terminal_and_a_pipe_gets_everything(tmp_path: Path, run: Run, columns: int) -> None:
    path = "part=" + "x" * 300 + "/the-end.parquet"
    builder = TableBuilder(tmp_path).commit(adds=[path, "short"])
    header, *lines = on_terminal("files", builder.path, COLUMNS=str(columns))
    assert max(len(line) for line in (header, *lines)) <= columns
    [long] = [line for line in lines if "…" in line]
    assert long.endswith(".parquet")
    assert "2026-02-02 02:40:00" in long
    assert header.split()[-1] == "path"
    assert path in run("files", builder.path).lines


def test_columns_without_room_are_counted(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit(adds=["a"])
    names = "path,size,modification_time,partition_values,deletion_vector,stats,tags,base_row_id"
    header, line = on_terminal("files", builder.path, "--columns", names, COLUMNS="50")
    assert header.endswith("more")
    assert len(header) <= 50
    assert len(line) <= 50


def test_history_and_sidecars_fit_the_terminal(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit(
        adds=["a"], commit_info={"operation": "CREATE TABLE AS SELECT", "engineInfo": "Engine/" + "9" * 80}
    )
    built(builder.checkpoint())
    for command in (("history",), ("sidecar", "show")):
        for columns in (80, 120):
            lines = on_terminal(*command, builder.path, COLUMNS=str(columns))
            assert max(map(len, lines)) <= columns, command


def test_a_wide_letter_takes_two_columns() -> None:
    assert [cut("東京都千代田区", width) for width in (14, 13, 6, 1)] == [
        "東京都千代田区",
        "東京都千代田…",
        "東京…",
        "…",
    ]
    assert cut("abcdefghij", 6, in_middle=True) == "ab…hij"
    assert cells("東京") == 4


def test_widths_fit_whatever_is_wanted() -> None:
    for wanted in ([5, 30, 200], [200, 200], [20] * 10, [3], [80] * 3, [9, 1, 1]):
        for room in (20, 40, 80, 200):
            no = [False] * len(wanted)
            widths = fitted_widths(wanted, room, is_fixed=no, is_needed=no)
            note = 0 if len(widths) == len(wanted) else len(f"  … {len(wanted)} more")
            assert sum(widths.values()) + 2 * (len(widths) - 1) + note <= room, (wanted, room)
    assert fitted_widths([50, 50], 60, is_fixed=[True, False], is_needed=[False, False]) == {0: 50, 1: 8}


def test_rows_use_the_room_of_the_note_that_stands_in_the_header(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit(adds=["part-" + "x" * 80 + "-the-end.parquet"])
    header, line = on_terminal("files", builder.path, COLUMNS="60")
    assert header.endswith("more")
    assert len(line) == 60


@pytest.mark.parametrize("columns", [60, 80])
def test_texts_that_are_too_long_go_on_below_their_beginning(
    table: TableBuilder, tmp_path: Path, columns: int
) -> None:
    told = on_terminal("explain", table.path, COLUMNS=str(columns))
    [at] = [number for number, line in enumerate(told) if line.startswith("log bytes read")]
    assert told[at + 1].startswith(" " * 18)
    assert " one after the other," in " ".join(line.strip() for line in told[at : at + 3])
    assert [line for line in told if len(line) > columns and "file:///" not in line] == []
    piped = folded("label  a text", 5), folded("no label at all", 5), folded("a  one two three", 40)
    assert piped == ("label  a text", "no label at all", "a  one two three")
    assert (
        folded("label  " + "word " * 10, 40)
        == "label  word word word word word word\n       word word word word"
    )
    assert folded("label  s3://" + "x" * 50, 40) == "label  s3://" + "x" * 50  # can be copied


def test_what_was_not_measured_is_told_in_full_below_the_table(table: TableBuilder) -> None:
    lines = on_terminal("bench", table.path, "--seconds", "1", COLUMNS="60")
    assert "not run  every file: the time was up" in lines
    [took] = [line for line in lines if line.startswith("took")]
    assert took.endswith("each question once; the time was up")


def test_history_is_a_table_on_a_terminal(table: TableBuilder) -> None:
    lines = on_terminal("history", table.path, COLUMNS="120")
    assert lines[0].split()[:3] == ["version", "timestamp", "operation"]
    assert [line.split()[0] for line in lines[1:]] == ["2", "1", "0"]
    assert lines[2].index("yes") == lines[0].index("checkpoint")


def test_info_keeps_its_words_on_a_terminal(table: TableBuilder) -> None:
    assert "files             4" in on_terminal("info", table.path)


def test_the_first_rows_show_before_the_scan_ends(large_table: Path) -> None:
    """A terminal holds a few KiB, so that nobody who collects first gets past the first screen."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "files", str(large_table)],
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment(TERM="xterm"),
    ) as process:
        os.close(child)
        shown = b""
        while b"modification_time" not in shown and (piece := os.read(parent, 4096)):
            shown += piece
        process.send_signal(signal.SIGINT)
        while _read(parent):
            pass
        assert process.wait(60) == 130
    os.close(parent)


def test_sizes_and_times_are_for_people() -> None:
    assert [human_bytes(count) for count in (0, 999, 1000, 999_949, 999_950, 3_100_000, 10**18, 10**21)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "999.9 KB",
        "1.0 MB",
        "3.1 MB",
        "1.0 EB",
        "1,000.0 EB",
    ]
    assert human_time(1_770_000_000_000) == "2026-02-02 02:40:00"
    assert human_time(10**18) == "1000000000000000000"
    assert one_line("a\tb\x1b\x7f\x9bc\\") == "a\\tb\\x1b\\x7f\\x9bc\\"


def _read(terminal: int) -> bytes:
    """Nothing once the other side is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
