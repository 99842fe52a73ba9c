"""`lazydelta explain`, `info`, `history`, `--version` and `--help`."""

from __future__ import annotations

import json
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

import lazydelta as ld
from bench.generate import generate
from bench.spec import TableSpec
from lazydelta.log import CommitRecord
from tests.support.actions import metadata
from tests.support.command_line import Run, ended_process
from tests.support.table_builder import TableBuilder

NESTED = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {}},
            {
                "name": "payload",
                "type": {
                    "type": "struct",
                    "fields": [{"name": "a b", "type": "decimal(10,2)", "nullable": True, "metadata": {}}],
                },
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "tags",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "array", "elementType": "string", "containsNull": True},
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
            {"name": "[bold]", "type": "date", "nullable": True, "metadata": {}},
        ],
    }
)


def test_explain_prints_the_report_on_stdout(run: Run, table: TableBuilder) -> None:
    ended = run("explain", table.path, "--where", "date = '2026-02-09'")
    assert (ended.exit_code, ended.err) == (0, "")
    labels = [line[:17].strip() for line in ended.lines]
    assert labels[:3] == ["table", "strategy", "predicate"]
    assert f"{ld.open(table.path).url} @ 2" in ended.lines[0]
    assert "files             1 emitted; skipped: 3 by " in ended.out


def test_explain_as_json_is_the_report_s_struct(run: Run, table: TableBuilder) -> None:
    report = json.loads(run("explain", table.path, "--json", "--limit", "1").out)
    assert list(report) == list(ld.ScanReport.__struct_fields__)
    assert report["files_emitted"] == 1
    assert report["limit"] == 1


def test_explaining_statistics_reads_more(run: Run, tmp_path: Path) -> None:
    generate(tmp_path / "t", TableSpec(files=20_000, tail_commits=0, tail_dv_updates=0))
    plain = json.loads(run("explain", tmp_path / "t", "--json", "--columns", "path").out)
    with_stats = json.loads(run("explain", tmp_path / "t", "--json", "--with-stats").out)
    assert with_stats["files_emitted"] == plain["files_emitted"]
    assert with_stats["bytes_read"] > 1.5 * plain["bytes_read"]


def test_info_tells_version_counts_checkpoint_and_tail(run: Run, table: TableBuilder) -> None:
    text = run("info", table.path).out
    for line in (
        "partitioned by    date",
        "protocol          reader 3, writer 7",
        "reader features   deletionVectors, v2Checkpoint",
        "files             4",
        "size              4.0 KB",
        "tail              1 commit, ",
        "└── date: date  (partition)",
    ):
        assert line in text, text
    assert "checkpoint        version 1, " in text


def test_info_does_not_guess_counts(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path).commit(adds=["a"])
    assert "files             not known without reading the file list" in run("info", builder.path).out
    assert json.loads(run("info", builder.path, "--json").out)["num_files"] is None


def test_info_draws_nested_schemas_as_a_tree(run: Run, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, partition_columns=())
    builder.commit(metadata=metadata(NESTED, partition_columns=()))
    tree = run("info", builder.path).out.partition("schema\n")[2]
    assert tree.splitlines() == [
        "├── id: long  (not null)",
        "├── payload: struct",
        "│   └── a b: decimal(10,2)",
        "├── tags: map<string, array<string>>",
        "└── [bold]: date",
    ]


def test_info_as_json_is_the_struct_and_delta_s_own_schema(run: Run, table: TableBuilder) -> None:
    info = json.loads(run("info", table.path, "--json").out)
    assert list(info) == [*ld.TableInfo.__struct_fields__, "schema"]
    assert info["schema"]["fields"][0] == {
        "name": "device_id",
        "type": "string",
        "nullable": True,
        "metadata": {},
    }
    assert (info["version"], info["num_files"], info["checkpoint_version"]) == (2, 4, 1)


def test_history_is_newest_first(run: Run, table: TableBuilder) -> None:
    rows = [line.split("\t") for line in run("history", table.path).lines]
    assert [row[0] for row in rows] == ["2", "1", "0"]
    assert rows[1][1:3] + rows[1][4:] == ["2026-02-02T02:41:00.000+00:00", "DELETE", "yes", "E", ""]


def test_history_as_json_is_the_commit_s_struct(run: Run, table: TableBuilder) -> None:
    rows = [json.loads(line) for line in run("history", table.path, "--json", "--limit", "2").lines]
    assert [list(row) for row in rows] == [list(CommitRecord.__struct_fields__)] * 2
    assert [row["version"] for row in rows] == [2, 1]


def test_history_ends_at_the_version_asked_for(run: Run, table: TableBuilder) -> None:
    assert [line[0] for line in run("history", table.path, "--version", "1").lines] == ["1", "0"]


def test_a_sample_is_as_large_as_it_is_told_to_be_and_follows_its_seed(run: Run, tmp_path: Path) -> None:
    size = ("--files", "6", "--hours", "3", "--rows", "7", "--json")
    one, other = (json.loads(run("sample", tmp_path / s, *size, "--seed", s).out) for s in ("5", "6"))
    assert (one["files"], one["hours"], one["rows"], one["first_hour"]) == (6, 3, 42, "2026021021")
    values = [ld.open(told["table"]).scan().to_arrow(["value"]) for told in (one, other)]
    assert values[0].num_rows == values[1].num_rows == 42
    assert not values[0].equals(values[1])


def test_the_version_is_the_installed_one(run: Run) -> None:
    ended = run("--version")
    assert (ended.exit_code, ended.out) == (0, f"lazydelta {version('lazydelta')}\n")


def test_the_installed_command_is_this_one() -> None:
    (entry,) = entry_points(group="console_scripts", name="lazydelta")
    assert entry.value == "lazydelta.cli:main"
    script = Path(sys.executable).with_name("lazydelta")
    assert ended_process([str(script), "--version"]).out.startswith("lazydelta ")


@pytest.mark.parametrize("arguments", [["files", "--help"], ["files", "--nonsense"]])
def test_help_and_usage_do_not_import_arrow(arguments: list[str]) -> None:
    code = (
        "import sys, atexit\n"
        "def heavy():\n"
        "    found = {'pyarrow', 'numpy', 'obstore', 'sqlglot', 'rich'} & set(sys.modules)\n"
        "    sys.__stderr__.write(f'HEAVY {sorted(found)}')\n"
        "atexit.register(heavy)\n"
        "from lazydelta.cli import main\n"
        f"sys.argv = ['lazydelta', *{arguments!r}]\n"
        "main()"
    )
    assert ended_process([sys.executable, "-c", code]).err.endswith("HEAVY []")


def test_explain_says_what_counts_as_one_after_the_other_on_a_disk(run: Run, table: TableBuilder) -> None:
    ended = run("explain", table.path)
    told = (
        "hint              on a disk, a read that ended before the next began counts as one after the other"
    )
    assert ended.lines[-1] == told


def test_the_package_itself_runs_as_the_command() -> None:
    ended = ended_process([sys.executable, "-m", "lazydelta", "--help"])
    assert (ended.exit_code, "explain" in ended.out) == (0, True)


def test_help_lists_commands_as_a_newcomer_needs_them(run: Run) -> None:
    told = run("--help", COLUMNS="80").out.partition("Commands:")[2].partition("\n\n")[0]
    lines = [line for line in told.splitlines() if line.strip()]
    names = [line.split()[0] for line in lines]
    assert names[:2] == ["info", "files"]
    assert names.index("sql") < names.index("serve") < names.index("vacuum")
    assert [line for line in lines if line.endswith("...")] == []
