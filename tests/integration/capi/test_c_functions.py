"""The functions of delta_lazy.h, called by a program in C; what it is given is what Python is given."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.capi.build import SOURCES
from tests.support.capi_library import EXAMPLES, Run, c_environment, library_folder
from tests.support.compiled_once import c_program
from tests.support.elf import exported_names
from tests.support.table_builder import TableBuilder


def test_paths_and_sizes_are_those_of_the_scan_in_python(probe: Run, mixed_table: Path) -> None:
    done = probe("lazy", mixed_table, "-", 0, -1)
    expected = [f"{file.path}\t{file.size}" for file in ld.open(mixed_table).scan().files()]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:-1] == expected
    assert len(expected) == 14


@pytest.mark.parametrize("predicate", ['{"kind": "plain"}', "kind = 'plain'"])
def test_a_predicate_and_a_limit_reach_the_scan(probe: Run, mixed_table: Path, predicate: str) -> None:
    done = probe("lazy", mixed_table, predicate, 3, -1)
    expected = [file.path for file in ld.open(mixed_table).scan({"kind": "plain"}, limit=3).files()]
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == expected
    assert len(expected) == 3


def test_false_of_the_callback_stops_the_scan(probe: Run, mixed_table: Path) -> None:
    done = probe("lazy", mixed_table, "-", 0, 2)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")


def test_everything_that_is_known_of_a_file_arrives(probe: Run, mixed_table: Path) -> None:
    done = probe("files", mixed_table, json.dumps({"with_stats": True, "strategy": "forward"}))
    assert done.returncode == 0, done.stderr
    found = {line[2]: line for line in (_line(text) for text in done.stdout.splitlines())}
    expected = {file.path: _shown(file) for file in ld.open(mixed_table).scan().files(with_stats=True)}
    assert found == expected
    values = [line[5] for line in found.values()]
    assert {"kind": "a\0b"} in values and {"kind": None} in values and {"kind": ""} in values
    assert sum(line[4] is not None for line in found.values()) == 2


def test_a_version_can_be_asked_for(probe: Run, mixed_table: Path) -> None:
    done = probe("files", mixed_table, json.dumps({"version": 0}))
    paths = {_line(text)[2] for text in done.stdout.splitlines()}
    assert paths == {file.path for file in ld.open(mixed_table, version=0).scan().files()}
    assert len(paths) == 6


def test_every_error_has_the_exit_code_of_its_kind(probe: Run, tmp_path: Path, mixed_table: Path) -> None:
    damaged = TableBuilder(tmp_path / "damaged").commit(["a"]).commit(["b"]).truncate("*1.json", -9).path
    foreign = TableBuilder(tmp_path / "foreign").commit(
        ["a"],
        protocol={
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["telepathy"],
            "writerFeatures": ["telepathy"],
        },
    )
    away = {
        "endpoint": "http://127.0.0.1:9",
        "allow_http": "true",
        "access_key_id": "a",
        "secret_access_key": "b",
        "region": "us-east-1",
        "delta.request.attempts_max": "1",
    }
    asked = [
        (mixed_table, "{", 2, "the options are wrong"),
        (mixed_table, '{"limmit": 3}', 2, "limmit"),
        (mixed_table, '{"limit": -1}', 2, "limit"),
        (mixed_table, '{"strategy": "sideways"}', 2, "sideways"),
        (mixed_table, '{"predicate": {"nope": 1}}', 2, "nope"),
        (mixed_table, '{"columns": ["path"]}', 2, "columns"),
        (tmp_path / "nothing", "{}", 3, "no Delta table"),
        (mixed_table, '{"version": 99}', 4, "99"),
        (damaged, "{}", 5, ""),
        (foreign.path, "{}", 6, "telepathy"),
        ("s3://bucket/table", json.dumps({"storage_options": away}), 7, ""),
        (mixed_table, "{}", 0, ""),
    ]
    done = probe("codes", *(word for table, options, _, _ in asked for word in (table, options)))
    found = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [int(code) for code, _, _ in found] == [code for _, _, code, _ in asked], done.stdout
    for (_, _, code, words), (_, _, text) in zip(asked, found, strict=True):
        assert words in text
        assert bool(text) == (code != 0)


def test_calls_that_lack_something_are_refused(probe: Run, mixed_table: Path) -> None:
    done = probe("wrong", mixed_table)
    assert (done.returncode, done.stdout.splitlines()[:6]) == (0, ["2"] * 6)
    assert "not UTF-8" in done.stdout and "fix:" in done.stdout


def test_the_example_lists_files(mixed_table: Path) -> None:
    program = c_program([EXAMPLES / "list_files.c"])
    done = subprocess.run(
        [program, mixed_table, "3"], capture_output=True, text=True, check=False, env=c_environment()
    )
    expected = [file.path for file in ld.open(mixed_table).scan(limit=3).files()]
    assert (done.returncode, [line.split("\t")[0] for line in done.stdout.splitlines()]) == (0, expected)


def test_only_the_functions_of_the_header_are_exported() -> None:
    exported = exported_names((library_folder() / "libdelta_lazy.so").read_bytes())
    header = (SOURCES / "delta_lazy.h").read_text("utf-8")
    declared = {
        "delta_scan_lazy",
        "delta_scan_files",
        "delta_files_stream",
        "delta_rows_stream",
        "delta_last_error",
        "delta_version",
    }
    assert exported == declared
    assert all(f"{name}(" in header for name in declared)


def test_the_codes_of_the_header_are_those_of_the_package() -> None:
    header = (SOURCES / "delta_lazy.h").read_text("utf-8")
    for name, kind in vars(ld.errors).items():
        if isinstance(kind, type) and issubclass(kind, ld.errors.LazyDeltaError):
            code = "DELTA_ERROR" if kind is ld.errors.LazyDeltaError else _constant(name)
            assert f"{code} = {kind.exit_code}," in header


def _constant(name: str) -> str:
    words = "".join(f"_{letter}" if letter.isupper() else letter for letter in name.removesuffix("Error"))
    return f"DELTA{words}".upper()


def _shown(file: ld.DeltaFile) -> tuple[object, ...]:
    vector = file.deletion_vector
    shown = None
    if vector is not None:
        offset = -1 if vector.offset is None else vector.offset
        shown = (
            f"{vector.storage_type}:{vector.path_or_inline_dv}:{offset}:{vector.size_in_bytes}"
            f":{vector.cardinality}"
        )
    return (file.size, file.modification_time, file.path, file.stats, shown, file.partition_values)


def _line(text: str) -> tuple[object, ...]:
    size, modified, path, stats, vector, *pairs = text.split("\t")
    values = {_text(name): _text(value) for name, value in zip(pairs[::2], pairs[1::2], strict=True)}
    return (
        int(size),
        int(modified),
        _text(path),
        _text(stats),
        None if vector == "-" else vector,
        values,
    )


def _text(field: str) -> str | None:
    return None if field == "-" else bytes.fromhex(field[1:]).decode()
