"""`lazydelta sidecar build|verify|show|clean` on tables of all kinds."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Run, on_terminal
from tests.support.sidecar_damage import (
    edit_manifest,
    lazy_folder,
    numbered_files,
    only,
    rewrite_part,
    with_value,
)
from tests.support.table_builder import TableBuilder
from tests.unit.cli.test_errors import told

COMMANDS = ("build", "verify", "show", "clean")


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Forty files in a checkpoint, and a commit after it; no sidecar yet."""
    builder = TableBuilder(tmp_path / "table").commit(adds=numbered_files(range(40))).checkpoint()
    return builder.commit(adds=numbered_files(range(40, 42)))


@pytest.fixture
def built(table: TableBuilder, run: Run) -> TableBuilder:
    assert run("sidecar", "build", table.path, "--row-group-rows", "8").exit_code == 0
    return table


# --- build ---------------------------------------------------------------------


def test_build_writes_a_sidecar_and_tells_what_it_did(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "build", table.path, "--row-group-rows", "8")
    assert ended.exit_code == 0
    assert ended.lines[0] == "sidecar           version 0, full: no earlier sidecar"
    assert ended.lines[1] == "files             40 in 1 part, 5 row groups"
    assert "planned: version 0, files 40" in ended.err
    assert only(table, "*.manifest.json").exists()


def test_build_upon_an_earlier_sidecar_counts_its_commits(run: Run, built: TableBuilder) -> None:
    built.checkpoint()
    ended = run("sidecar", "build", built.path)
    assert ended.lines[0].endswith("incremental: 1 commit after the sidecar of version 0")


def test_build_as_json_is_one_object(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "build", table.path, "--json")
    report = json.loads(ended.out)
    assert (report["version"], report["kind"], report["num_files"]) == (0, "full", 40)
    assert report["delta_files"] == []
    again = json.loads(run("sidecar", "build", table.path, "--json").out)
    assert (again["kind"], again["bytes_written"]) == ("present", 0)


def test_build_full_replaces_what_is_there(run: Run, built: TableBuilder) -> None:
    before = only(built, "*.manifest.json").read_bytes()
    report = json.loads(run("sidecar", "build", built.path, "--full", "--json").out)
    assert report["kind"] == "full"
    assert only(built, "*.manifest.json").read_bytes() != before


def test_build_takes_an_older_version_another_column_and_another_folder(
    run: Run, table: TableBuilder
) -> None:
    table.checkpoint()
    folder = "_delta_log/elsewhere"
    options = ("--version", "0", "--time-column", "count", "--directory", f"{folder}/")
    ended = run("sidecar", "build", table.path, *options)
    assert ended.exit_code == 0
    [manifest] = (table.path / folder).glob("*.manifest.json")
    assert json.loads(manifest.read_text())["order_column"] == "min.count"
    assert run("sidecar", "verify", table.path, "--directory", folder).exit_code == 0
    assert run("sidecar", "verify", table.path).exit_code == 4


@pytest.mark.parametrize("how", ["option", "variable"])
def test_sidecars_are_written_and_looked_for_where_readers_look(
    run: Run, table: TableBuilder, how: str
) -> None:
    option = ["--storage-option", "delta.sidecar.directory=elsewhere"] if how == "option" else []
    variables = {} if option else {"DELTA_SIDECAR_DIRECTORY": "elsewhere"}
    for command in ("build", "verify", "show", "clean"):
        ended = run("sidecar", command, table.path, *option, **variables)
        assert ended.exit_code == 0, ended.err
    assert list((table.path / "_delta_log/elsewhere").glob("*.manifest.json"))
    assert not lazy_folder(table).exists()
    explained = run("explain", table.path, "--json", *option, **variables)
    assert json.loads(explained.out)["source"] == "sidecar 0 (manifest)"


def test_build_gathers_commits_in_delta_files_once_there_are_many(run: Run, table: TableBuilder) -> None:
    for number in range(100, 160):
        table.commit(adds=numbered_files([number]))
    report = json.loads(run("sidecar", "build", table.path, "--json").out)
    assert report["delta_files"] == [f"_delta_log/_lazy/v{0:020}_{61:020}.delta.parquet"]
    assert run("sidecar", "verify", table.path, "--json").exit_code == 0


def test_a_table_without_a_checkpoint_is_told_how_to_get_one(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").commit(adds=["a"])
    ended = run("sidecar", "build", builder.path)
    assert ended.exit_code == 2
    assert "--checkpoint" in told(ended)[2]


def test_a_column_that_is_not_there_is_told(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "build", table.path, "--time-column", "nothing")
    assert ended.exit_code == 2
    assert "nothing" in told(ended)[0]


@pytest.mark.parametrize(
    ("command", "folder"),
    [("build", "/absolute"), ("verify", "../x"), ("show", "a//b"), ("clean", "."), ("clean", "s3://x/y")],
)
def test_a_folder_that_is_not_below_the_table_is_refused(
    run: Run, table: TableBuilder, command: str, folder: str
) -> None:
    ended = run("sidecar", command, table.path, "--directory", folder)
    assert (ended.exit_code, ended.out) == (2, "")
    assert told(ended)[1] == "--directory"


@pytest.mark.parametrize("option", [["--spark"], ["--checkpoint"], ["--spark-conf", "spark.master=local[1]"]])
def test_without_pyspark_the_extra_is_named(
    run: Run, table: TableBuilder, option: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    ended = run("sidecar", "build", table.path, *option)
    assert ended.exit_code == 1
    assert told(ended)[0] == "PySpark is not installed"
    assert told(ended)[2] == "pip install 'lazydelta[spark]'"
    assert sys.executable in told(ended)[1]


def test_a_version_does_not_go_with_spark(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "build", table.path, "--spark", "--version", "0")
    assert ended.exit_code == 2
    assert "--version" in told(ended)[0]


# --- verify --------------------------------------------------------------------


def test_verify_of_a_right_sidecar_is_exit_code_0(run: Run, built: TableBuilder) -> None:
    ended = run("sidecar", "verify", built.path)
    assert ended.exit_code == 0
    assert ended.lines[-1] == "result            no difference"
    assert "40 live in the log, 40 live rows in the sidecar" in ended.out


def test_verify_names_the_file_and_is_exit_code_5(run: Run, built: TableBuilder) -> None:
    rewrite_part(built, with_value("size", 11, 1))
    ended = run("sidecar", "verify", built.path)
    assert ended.exit_code == 5
    [line] = [line for line in ended.lines if line.startswith("differs")]
    assert "size is 1 and in the log " in line
    error = ended.err[ended.err.index("error:") :].splitlines()
    assert "1 differs" in error[0]
    assert "sidecar build --full" in error[2]


def test_verify_counts_one_difference_as_one(run: Run, built: TableBuilder) -> None:
    edit_manifest(built, lambda body: body.update(sidecar_size_bytes=1))
    ended = run("sidecar", "verify", built.path)
    assert ended.exit_code == 5
    assert ended.lines[-1] == "result            1 difference"


def test_verify_as_json_is_one_object_whatever_the_verdict(run: Run, built: TableBuilder) -> None:
    right = run("sidecar", "verify", built.path, "--json")
    rewrite_part(built, with_value("size", 11, 1))
    wrong = run("sidecar", "verify", built.path, "--json")
    one, other = json.loads(right.out), json.loads(wrong.out)
    assert (right.exit_code, one["is_ok"], wrong.exit_code, other["is_ok"]) == (0, True, 5, False)
    assert one.keys() == other.keys()
    assert [found["kind"] for found in other["differences"]] == ["part", "differs"]


def test_verify_of_a_version_without_one_says_which_have_one(run: Run, built: TableBuilder) -> None:
    ended = run("sidecar", "verify", built.path, "--version", "1")
    assert ended.exit_code == 4
    assert told(ended)[0] == "version 1 has no stats sidecar"
    assert told(ended)[2] == "there are sidecars of the versions 0"


def test_verify_without_any_sidecar_says_how_to_build_one(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "verify", table.path)
    assert ended.exit_code == 4
    assert "lazydelta sidecar build" in told(ended)[2]


# --- show ----------------------------------------------------------------------


def test_show_on_a_pipe_is_separated_by_tabs(run: Run, built: TableBuilder) -> None:
    ended = run("sidecar", "show", built.path)
    assert (ended.exit_code, ended.err) == (0, "")
    sidecar, part = (line.split("\t") for line in ended.lines)
    assert sidecar[:6] == ["0", "sidecar", "", "40", "0", "5"]
    assert sidecar[7:] == ["2026-02-01", "2026-02-20", f"v{0:020}.manifest.json", "valid"]
    assert part[:6] == ["0", "part", part[2], "40", "0", "5"]
    assert (part[6], part[9]) == (str(only(built, "*.parquet").stat().st_size), only(built, "*.parquet").name)


def test_show_on_a_terminal_is_a_table(built: TableBuilder) -> None:
    lines = on_terminal("sidecar", "show", built.path)
    assert lines[0].split()[:5] == ["version", "kind", "state", "rows", "size"]
    assert lines[1].split()[1:3] == ["sidecar", "valid"]


def test_show_as_json_is_one_object_per_sidecar(run: Run, built: TableBuilder) -> None:
    [line] = run("sidecar", "show", built.path, "--json").lines
    shown = json.loads(line)
    assert (shown["kind"], shown["version"], shown["is_valid"], len(shown["parts"])) == (
        "sidecar",
        0,
        True,
        1,
    )


def test_show_says_where_a_sidecar_is_of_no_use(run: Run, built: TableBuilder) -> None:
    built.append_to_commit(0, "\n")
    assert "is not the commit it was built from" in run("sidecar", "show", built.path).out


def test_show_without_sidecars_is_no_data_and_a_word(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "show", table.path)
    assert (ended.exit_code, ended.out) == (0, "")
    assert "there is no stats sidecar in _delta_log/_lazy" in ended.err


# --- clean ---------------------------------------------------------------------


def outdated(table: TableBuilder, run: Run) -> None:
    """A second sidecar; everything is a year old."""
    table.checkpoint()
    assert run("sidecar", "build", table.path, "--full").exit_code == 0
    for path in lazy_folder(table).iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_clean_deletes_and_tells_what_went_and_why(run: Run, built: TableBuilder) -> None:
    outdated(built, run)
    (lazy_folder(built) / "notes.txt").write_text("mine")
    dry = run("sidecar", "clean", built.path, "--dry-run")
    assert dry.exit_code == 0
    assert len(list(lazy_folder(built).iterdir())) == 5
    assert "2 files would go" in dry.err
    ended = run("sidecar", "clean", built.path)
    assert ended.out == dry.out
    assert [line.split("\t")[1] for line in ended.lines] == ["manifest", "part"]
    assert "sidecars kept: 1" in ended.err
    assert "not touched: _delta_log/_lazy/notes.txt" in ended.err
    assert len(list(lazy_folder(built).iterdir())) == 3
    assert run("sidecar", "verify", built.path).exit_code == 0


def test_clean_as_json_is_one_object(run: Run, built: TableBuilder) -> None:
    outdated(built, run)
    report = json.loads(run("sidecar", "clean", built.path, "--json", "--dry-run").out)
    assert report["is_dry_run"] is True
    assert [removal["kind"] for removal in report["removed"]] == ["manifest", "part"]
    assert report["versions_kept"] == [1]


def test_clean_on_a_terminal_is_a_table(run: Run, built: TableBuilder) -> None:
    outdated(built, run)
    lines = on_terminal("sidecar", "clean", built.path, "--dry-run")
    assert lines[0].split() == ["size", "kind", "file", "reason"]


@pytest.mark.parametrize("hours", ["-1", "nan", "inf", "-0.5"])
def test_a_negative_retention_is_refused(run: Run, built: TableBuilder, hours: str) -> None:
    ended = run("sidecar", "clean", built.path, "--retention-hours", hours)
    assert (ended.exit_code, ended.out) == (2, "")
    assert "retention" in told(ended)[0]


# --- every command -------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_no_table_is_exit_code_3(run: Run, tmp_path: Path, command: str) -> None:
    ended = run("sidecar", command, tmp_path / "nothing")
    assert (ended.exit_code, ended.out) == (3, "")
    assert str(tmp_path) in told(ended)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_flag_is_exit_code_2(run: Run, table: TableBuilder, command: str) -> None:
    ended = run("sidecar", command, table.path, "--colour")
    assert (ended.exit_code, ended.out) == (2, "")
    assert "--colour" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_loads_nothing_heavy(run: Run, command: str) -> None:
    ended = run("sidecar", command, "--help")
    assert (ended.exit_code, ended.err) == (0, "")
    assert f"lazydelta sidecar {command} " in ended.out.partition("Examples:")[2]


def test_the_group_alone_is_its_help(run: Run) -> None:
    ended = run("sidecar")
    assert all(f"  {command}" in ended.out + ended.err for command in COMMANDS)


def test_a_storage_option_that_is_none_is_refused_without_repeating_it(run: Run, table: TableBuilder) -> None:
    ended = run("sidecar", "show", table.path, "--storage-option", "secret")
    assert ended.exit_code == 2
    assert "secret" not in ended.err


def test_a_folder_that_cannot_be_written_is_told(run: Run, table: TableBuilder) -> None:
    (table.log / "_lazy").write_text("a file where the folder should be")
    ended = run("sidecar", "build", table.path)
    assert ended.exit_code == 7
    assert "_lazy" in ended.err
