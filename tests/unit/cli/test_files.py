"""`lazydelta files`: what stands on stdout, on a pipe and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import lazydelta as ld
from tests.support.actions import add
from tests.support.command_line import Run, run_process
from tests.support.table_builder import TableBuilder

FILE_KEYS = ["path", "size", "modification_time", "partition_values", "deletion_vector"]


def test_a_pipe_gets_one_path_per_line_and_nothing_else(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path)
    assert (ended.exit_code, ended.err) == (0, "")
    assert sorted(ended.lines) == ["b c", "d", "e", "x\\ny"]


def test_columns_are_separated_by_tabs_in_the_order_asked_for(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path, "--columns", "size, path,partition_values,base_row_id,size")
    cells = [line.split("\t") for line in ended.lines]
    assert ["1000", "e", '{"date":"2026-02-09"}', ""] in cells
    assert {len(row) for row in cells} == {4}


def test_statistics_come_as_one_more_column(run: Run, table: TableBuilder) -> None:
    lines = run("files", table.path, "--with-stats").lines
    assert 'd\t{"numRecords":10,"minValues":{"value":1},"maxValues":{"value":2}}' in lines
    assert "e\t" in lines


def test_json_is_one_object_per_line_of_a_stable_shape(run: Run, table: TableBuilder) -> None:
    rows = [json.loads(line) for line in run("files", table.path, "--json").lines]
    assert [list(row) for row in rows] == [FILE_KEYS] * 4
    by_path = {row["path"]: row for row in rows}
    assert set(by_path) == {"x\ny", "e", "b c", "d"}
    assert by_path["e"] == {
        "path": "e",
        "size": 1000,
        "modification_time": 1_770_000_000_000,
        "partition_values": {"date": "2026-02-09"},
        "deletion_vector": None,
    }
    assert list(by_path["d"]["deletion_vector"]) == [
        "storage_type",
        "path_or_inline_dv",
        "offset",
        "size_in_bytes",
        "cardinality",
    ]


def test_json_says_what_the_library_says(run: Run, table: TableBuilder) -> None:
    rows = [json.loads(line) for line in run("files", table.path, "--json", "--with-stats").lines]
    expected = [
        (file.path, file.size, file.partition_values, file.stats, file.deletion_vector is None)
        for file in ld.open(table.path).scan().files(with_stats=True)
    ]
    assert expected == [
        (row["path"], row["size"], row["partition_values"], row["stats"], row["deletion_vector"] is None)
        for row in rows
    ]


def test_where_limit_and_version_select(run: Run, table: TableBuilder) -> None:
    assert run("files", table.path, "--where", "date = '2026-02-09'").lines == ["e"]
    assert len(run("files", table.path, "--limit", "2").lines) == 2
    assert run("files", table.path, "--limit", "0").lines == []
    assert sorted(run("files", table.path, "--version", "0").lines) == ["a", "b c"]
    assert sorted(run("files", table.path, "--timestamp", "2026-02-02T02:40:30Z").lines) == ["a", "b c"]


def test_every_strategy_gives_the_same_files(run: Run, table: TableBuilder) -> None:
    outputs = {
        strategy: sorted(run("files", table.path, "--strategy", strategy).lines)
        for strategy in ld.ScanStrategy
    }
    assert len(outputs) == 3
    assert set(map(tuple, outputs.values())) == {("b c", "d", "e", "x\\ny")}


def test_the_help_names_every_strategy(run: Run) -> None:
    text = run("files", "--help").out
    assert [strategy for strategy in ld.ScanStrategy if strategy not in text] == []


def test_explain_tells_on_stderr_and_leaves_stdout_alone(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path, "--limit", "1", "--explain")
    assert len(ended.lines) == 1
    assert "files             1 emitted" in ended.err


def test_a_table_without_files_prints_nothing(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit()
    for form in ((), ("--json",)):
        assert run("files", builder.path, *form).out == ""


def test_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit(adds=["größe-数"])
    ended = run_process("files", builder.path, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert ended.lines == ["größe-数"]


def test_control_characters_cannot_break_a_line(run: Run, tmp_path: Path) -> None:
    odd = add("a%1Bb", partition={"date": None, "note\t": "x\ny"})
    builder = TableBuilder(tmp_path).commit(adds=[odd])
    ended = run("files", builder.path, "--columns", "path,partition_values")
    assert ended.lines == ['a\\x1bb\t{"date":null,"note\\t":"x\\ny"}']


def test_lazydelta_s_own_options_may_be_given_as_storage_options(run: Run, table: TableBuilder) -> None:
    ended = run(
        "files", table.path, "--storage-option", "delta.batch_size=1", "--storage-option=delta.batch_size=2"
    )
    assert len(ended.lines) == 4
    refused = run("files", table.path, "--storage-option", "delta.batch_size=none")
    assert refused.exit_code == 2


def test_debug_logs_are_json_lines_on_stderr(run: Run, table: TableBuilder) -> None:
    ended = run("files", table.path, "--debug")
    events = [json.loads(line) for line in ended.err.splitlines()]
    assert [event["event"] for event in events] == ["opened", "scan", "scan ended"]
    assert events[0]["version"] == 2
    assert events[2]["files"] == 4
    assert len(ended.lines) == 4
