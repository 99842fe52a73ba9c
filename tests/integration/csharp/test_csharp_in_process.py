"""The C# client over the C ABI, run by mono: what it is given is what Python is given."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from tests.support.csharp import Driver
from tests.support.table_builder import TableBuilder


def test_files_are_those_of_the_scan_in_python(driver: Driver, shared_table: str) -> None:
    done = driver("list", "native", shared_table)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == _shown(ld.open(shared_table).scan())


def test_every_option_reaches_the_scan(driver: Driver, shared_table: str) -> None:
    options = ['predicate={"kind": "plain"}', "limit=2", "strategy=Forward", "version=1"]
    done = driver("list", "native", shared_table, *options)
    scan = ld.open(shared_table, version=1).scan({"kind": "plain"}, limit=2, strategy="forward")
    assert [json.loads(line) for line in done.stdout.splitlines()] == _shown(scan)
    assert len(done.stdout.splitlines()) == 2


def test_an_enumeration_can_be_left_and_begun_again(driver: Driver, shared_table: str) -> None:
    done = driver("twice", "native", shared_table)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1 + 18), done.stderr


def test_cancelling_ends_the_scan_whichever_token_it_was(driver: Driver, shared_table: str) -> None:
    done = driver("cancel", "native", shared_table)
    assert done.stdout.split() == ["OperationCanceledException"] * 2, done.stderr


def test_disposing_the_scanner_ends_its_scans(driver: Driver, shared_table: str) -> None:
    done = driver.alone("dispose", "native", shared_table, given="\n")
    assert (done.returncode, done.stdout.split()) == (0, ["ObjectDisposedException"] * 2), done.stderr


def test_scans_run_side_by_side(driver: Driver, shared_table: str) -> None:
    done = driver("many", "native", shared_table)
    assert done.stdout.split() == ["18"] * 8, done.stderr


def test_a_caller_who_rests_holds_the_scan_back_and_loses_nothing(driver: Driver, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    for commit in range(3):
        builder.commit([f"f-{commit}-{number}.parquet" for number in range(2000)])
    with driver.start("stall", "native", tmp_path) as running:
        assert running.stdout.readline() == "stalled\n"
        running.stdin.write("\n")
        running.stdin.flush()
        assert running.stdout.readline() == "6000\n"
        assert running.wait(120) == 0


def test_a_scan_that_was_forgotten_ends_when_it_is_collected(driver: Driver, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    builder.commit([f"f-{number}.parquet" for number in range(5000)])
    done = driver("forget", tmp_path)
    assert done.stdout.split("\n")[:2] == ["scanning", "ended"], done.stdout + done.stderr


@pytest.mark.parametrize(
    "milliseconds", [600, pytest.param(1500, marks=pytest.mark.long("another moment of the same end"))]
)
def test_a_program_may_end_while_scans_run(driver: Driver, tmp_path: Path, milliseconds: int) -> None:
    builder = TableBuilder(tmp_path)
    builder.commit([f"f-{number}.parquet" for number in range(50_000)])
    done = driver.alone("leave", tmp_path, milliseconds)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_has_its_code_and_its_words(driver: Driver, tmp_path: Path, shared_table: str) -> None:
    missing = driver("list", "native", tmp_path / "nothing")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "no Delta table" in missing.stderr and "fix:" in missing.stderr
    wrong = driver("list", "native", shared_table, 'predicate={"nope": 1}')
    assert wrong.returncode == 2 and "nope" in wrong.stderr


def test_without_the_library_the_error_says_where_to_put_it(driver: Driver, shared_table: str) -> None:
    for words in (["list", "native", shared_table], ["callback", shared_table, "-", 0, 1]):
        done = driver.alone(*words, LD_LIBRARY_PATH="/nowhere")
        assert done.returncode == 20 and "LD_LIBRARY_PATH" in done.stderr


def test_the_callback_gets_paths_and_its_false_stops(driver: Driver, shared_table: str) -> None:
    done = driver("callback", shared_table, '{"kind": "plain"}', 0, 3)
    expected = [f"{file.path}\t{file.size}" for file in ld.open(shared_table).scan({"kind": "plain"}).files()]
    assert done.stdout.splitlines()[:-1] == expected[:3], done.stderr


def test_what_a_callback_throws_is_thrown_to_its_caller(driver: Driver, shared_table: str) -> None:
    done = driver("throw", shared_table)
    assert (done.returncode, done.stdout) == (0, "thrown within\n"), done.stderr


def test_wrong_arguments_are_refused_at_once(driver: Driver) -> None:
    done = driver("arguments")
    found = dict(line.split(": ") for line in done.stdout.splitlines())
    assert found == {
        "null table": "ArgumentNullException",
        "zero in table": "ArgumentException",
        "limit": "ArgumentOutOfRangeException",
        "version": "ArgumentOutOfRangeException",
        "strategy": "ArgumentOutOfRangeException",
        "null share": "ArgumentNullException",
        "two names": "ArgumentException",
        "dots": "ArgumentException",
        "predicate": "ArgumentException",
        "not JSON": "ArgumentException",
        "scheme": "ArgumentException",
        "line break": "ArgumentException",
        "profile": "FormatException",
        "callback": "ArgumentNullException",
    }


def test_everything_public_is_documented(client: Path) -> None:
    members = ET.parse(client.with_suffix(".xml")).iter("member")
    # What an interface says is not said again.
    written = [member for member in members if member.find("inheritdoc") is None]
    documented = {member.get("name", ""): "".join(member.find("summary").itertext()) for member in written}
    for name in (
        "T:LazyDelta.ILazyDeltaScanner",
        "T:LazyDelta.DeltaFile",
        "P:LazyDelta.ScanOptions.PredicateJson",
    ):
        assert documented[name]
    assert all(documented.values()), [name for name, text in documented.items() if not text]


def _shown(scan: ld.Scan) -> list[dict[str, Any]]:
    """As the driver prints files."""
    shown = []
    for file in scan.files():
        line: dict[str, Any] = {
            "path": file.path,
            "size": file.size,
            "modified": file.modification_time,
            "partitions": file.partition_values,
        }
        vector = file.deletion_vector
        if vector is not None:
            offset = None if vector.offset is None else str(vector.offset)
            counts = [str(vector.size_in_bytes), str(vector.cardinality)]
            line["vector"] = [vector.storage_type, vector.path_or_inline_dv, offset, *counts]
        shown.append(line)
    return shown
