"""`lazydelta stats`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.actions import add, inline_dv, stats
from tests.support.command_line import Run
from tests.support.table_builder import TableBuilder

SCHEMA = {"value": "double", "at": "timestamp", "price": "decimal(10,2)", "a,b": "long", "date": "date"}


@pytest.fixture
def measured(tmp_path: Path) -> TableBuilder:
    """Two files with statistics, one of them with a deletion vector and NaN; one was removed."""
    low = {"value": -1.5, "at": "2026-02-08T10:00:00.000Z", "price": 1.5, "a,b": 1}
    high = {"value": "NaN", "at": "2026-02-08T11:00:00.000Z", "price": 2.5, "a,b": 2}
    first = add("a", stats=stats(10, low=low, high=high, nulls={"value": 1}), deletion_vector=inline_dv())
    table = TableBuilder(tmp_path / "table", schema=SCHEMA).commit(
        [first, "gone", add("b c", stats=stats(3))]
    )
    return table.checkpoint().commit([], ["gone"])


def test_a_pipe_gets_a_line_for_each_path_with_tabs_between(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path, "b c", "a", "--columns", "value,date")
    assert (ended.exit_code, ended.err) == (0, "")
    day = "2026-02-08"
    assert ended.lines == [
        "\t".join(["b c", "true", "3", "", "0", "", "", "", day, day, "0"]),
        "\t".join(["a", "true", "10", "", "2", "-1.5", "NaN", "1", day, day, "0"]),
    ]


def test_json_gives_one_object_a_path(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path, "a", "--columns", "value, at,price,`a,b`", "--json")
    assert ended.exit_code == 0
    assert json.loads(ended.out) == {
        "path": "a",
        "live": True,
        "num_records": 10,
        "tight_bounds": None,
        "deleted_rows": 2,
        "min.value": -1.5,
        "max.value": "NaN",
        "null_count.value": 1,
        "min.at": "2026-02-08T10:00:00.000000Z",
        "max.at": "2026-02-08T11:00:00.000000Z",
        "null_count.at": None,
        "min.price": "1.50",
        "max.price": "2.50",
        "null_count.price": None,
        "min.`a,b`": 1,
        "max.`a,b`": 2,
        "null_count.`a,b`": None,
    }


def test_a_path_that_is_not_live_is_told_and_ends_with_exit_code_1(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path, "a", "gone", "nobody", "gone")
    assert ended.exit_code == 1
    assert ended.lines == [
        "a\ttrue\t10\t\t2",
        "gone\tfalse\t\t\t",
        "nobody\tfalse\t\t\t",
        "gone\tfalse\t\t\t",
    ]
    assert "2 of 3 paths are not live at version 1: gone, nobody" in ended.err
    assert "Traceback" not in ended.err
    before = run("stats", measured.path, "gone", "--version", "0")
    assert (before.exit_code, before.lines) == (0, ["gone\ttrue\t\t\t0"])


def test_a_dash_reads_paths_from_stdin(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path, "a", "-", stdin=b"b c\na\n")
    assert [line.split("\t")[0] for line in ended.lines] == ["a", "b c", "a"]


def test_stdin_without_paths_is_no_error(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path, "-")
    assert (ended.exit_code, ended.out, ended.err) == (0, "", "")


def test_a_column_that_is_not_there_is_a_wrong_request(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path, "a", "--columns", "valeu")
    assert (ended.exit_code, ended.out) == (2, "")
    assert "did you mean value?" in ended.err


def test_a_path_is_missing(run: Run, measured: TableBuilder) -> None:
    ended = run("stats", measured.path)
    assert ended.exit_code == 2
    assert "PATH" in ended.err
