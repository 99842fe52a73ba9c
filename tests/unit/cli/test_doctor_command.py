"""`lazydelta doctor`: findings for people and for scripts, and an exit code to go by."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.actions import add, stats
from tests.support.command_line import Run, on_terminal
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import built


def small_files(folder: Path) -> TableBuilder:
    return TableBuilder(folder).commit([add(f"f{n}") for n in range(150)]).checkpoint().crc()


def test_findings_end_with_exit_code_10_and_notes_with_0(run: Run, tmp_path: Path) -> None:
    ended = run("doctor", small_files(tmp_path).path)
    assert (ended.exit_code, ended.err) == (10, "")
    assert "warning: small files" in ended.lines
    assert any(line.strip().startswith("$ lazydelta sidecar build") for line in ended.lines)
    clean = (
        TableBuilder(tmp_path / "clean")
        .commit([add("f", size=200_000_000, stats=stats(5))])
        .checkpoint()
        .crc()
    )
    built(clean)
    assert run("doctor", clean.path).exit_code == 0


def test_json_is_one_object_with_everything(run: Run, tmp_path: Path) -> None:
    ended = run("doctor", small_files(tmp_path).path, "--where", "value > 3", "--json")
    assert ended.exit_code == 10
    [line] = ended.lines
    told = json.loads(line)
    assert set(told) == {"table", "version", "predicate", "findings", "examined"}
    for finding in told["findings"]:
        assert set(finding) == {"code", "severity", "what", "why", "fix", "remedy", "facts"}
    assert told["examined"]["files_sampled"] == 150


def test_a_refused_table_is_told_by_the_name_of_its_feature(run: Run, tmp_path: Path) -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timeMachine"],
        "writerFeatures": ["timeMachine"],
    }
    table = TableBuilder(tmp_path, protocol=protocol).commit(["a"])
    ended = run("doctor", table.path, "--json")
    assert ended.exit_code == 6
    [finding] = json.loads(ended.out)["findings"]
    assert (finding["code"], finding["severity"]) == ("unsupported", "problem")
    assert "timeMachine" in finding["what"]
    assert "timeMachine" in ended.err


def test_no_table_is_the_usual_error(run: Run, tmp_path: Path) -> None:
    assert run("doctor", tmp_path / "nothing").exit_code == 3


def test_paragraphs_fit_the_terminal_and_commands_stay_whole(tmp_path: Path) -> None:
    lines = on_terminal("doctor", small_files(tmp_path).path, exit_code=10, COLUMNS="60")
    prose = [line for line in lines if not line.strip().startswith(("$", "spark-sql>", "file:"))]
    assert max(map(len, prose)) <= 60
    [command] = [line for line in lines if line.strip().startswith("$")]
    assert command.strip() == f"$ lazydelta sidecar build file://{tmp_path}"
