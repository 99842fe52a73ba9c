"""Every command that tells facts tells them to scripts, too: with --json each line of it is JSON."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from bench.generate import generate
from bench.spec import TableSpec
from lazydelta.cli.app import app
from tests.support.command_line import COMMAND, Run, environment

# How each command is asked on the generated table; {T} is its folder, {F} one of its files, {N} a new folder.
ASKED: dict[str, tuple[str, ...]] = {
    "files": ("{T}", "--limit", "3"),
    "explain": ("{T}", "--limit", "3"),
    "info": ("{T}",),
    "history": ("{T}",),
    "stats": ("{T}", "{F}", "--columns", "value"),
    "sql": ("{T}", "select count(*) as n from t"),
    "kql": ("{T}", "t | count"),
    "doctor": ("{T}",),
    "bench": ("{T}", "--seconds", "1"),
    "sidecar build": ("{T}",),
    "sidecar verify": ("{T}",),
    "sidecar show": ("{T}",),
    "sidecar clean": ("{T}", "--dry-run"),
    "sample": ("{N}", "--files", "8", "--hours", "2"),
}
# These start Spark: their JSON is read in tests/integration/test_ingest_command.py and test_maintenance.py.
ON_SPARK = {"ingest", "optimize", "vacuum"}
ON_UNTIL_TOLD = {"ui"}
ENDS = {"doctor": {0, 10}}


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command of the command line with its name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


ALL = dict(commands(typer.main.get_command(app)))
WITH_OPTION = {name for name, command in ALL.items() if any("--json" in p.opts for p in command.params)}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json") / "table"
    generate(folder, TableSpec(files=50, tail_commits=1, tail_adds=2, tail_removes=1, data="all"))
    return folder


def test_a_command_has_the_option_or_says_that_it_always_writes_json() -> None:
    others = {name: ALL[name].help + (ALL[name].epilog or "") for name in set(ALL) - WITH_OPTION}
    assert {name for name, text in others.items() if "JSON" not in text} == set()


def test_no_command_with_the_option_is_left_out_here() -> None:
    assert set(ASKED) | ON_SPARK | ON_UNTIL_TOLD == WITH_OPTION


@pytest.mark.parametrize("name", sorted(ASKED))
def test_every_line_of_json_is_an_object(name: str, run: Run, table: Path, tmp_path: Path) -> None:
    if name in ("sidecar verify", "sidecar show"):
        assert run("sidecar", "build", table).exit_code == 0
    file = run("files", table, "--limit", "1").lines[0]
    words = [word.format(T=table, F=file, N=tmp_path / "new") for word in ASKED[name]]
    ended = run(*name.split(), *words, "--json")
    assert ended.exit_code in ENDS.get(name, {0}), ended.err
    assert ended.lines
    assert all(isinstance(json.loads(line), dict) for line in ended.lines)


def test_a_page_that_is_served_tells_its_address_as_json(table: Path) -> None:
    command = [*COMMAND, "ui", str(table), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert any("http://127.0.0.1" in str(value) for value in told.values())


def test_a_token_is_told_as_json(run: Run) -> None:
    assert set(json.loads(run("serve-token").out)) == {"token", "token_sha256"}
