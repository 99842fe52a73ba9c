"""`lazydelta files --order`: the same files, sorted, and what explain says of it."""

from __future__ import annotations

from tests.support.command_line import Run
from tests.support.table_builder import TableBuilder


def test_files_come_by_partition_then_path(run: Run, table: TableBuilder) -> None:
    upwards = run("files", table.path, "--order", "asc")
    assert (upwards.exit_code, upwards.err) == (0, "")
    assert upwards.lines == ["b c", "d", "x\\ny", "e"]
    assert run("files", table.path, "--order", "desc").lines == upwards.lines[::-1]
    assert run("files", table.path, "--order", "desc", "--limit", "2").lines == upwards.lines[::-1][:2]


def test_explain_names_the_order(run: Run, table: TableBuilder) -> None:
    told = run("explain", table.path, "--order", "desc").out
    assert "ordered: by date, then path, descending" in told


def test_an_order_that_there_is_not_is_a_mistake_of_the_caller(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path, "--order", "up")
    assert ended.exit_code == 2
    assert "there is no order 'up'" in ended.err
