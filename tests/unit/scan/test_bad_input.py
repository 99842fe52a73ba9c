"""Bad input gets an error of the right kind that says what, where and how to mend it; and nothing partial."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import (
    CorruptLogError,
    InvalidRequestError,
    LazyDeltaError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from tests.support.actions import add
from tests.support.reading import STRATEGIES, keys, live_keys
from tests.support.table_builder import TableBuilder

EVERY_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES)


def failing(
    table: TableBuilder | Path, error: type[LazyDeltaError], *words: str, **scan: Any
) -> LazyDeltaError:
    """Open and scan; the error that must come, with these words in it, before the first file."""
    path = table.path if isinstance(table, TableBuilder) else table
    emitted = []
    with pytest.raises(error) as caught:
        for file in ld.open(str(path)).scan(**scan).files():
            emitted.append(file.path)
    assert emitted == [], "files came out before the error"
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} is not in: {caught.value}"
    assert caught.value.what
    assert caught.value.where
    assert caught.value.fix
    return caught.value


def test_a_folder_that_does_not_exist_is_no_table(tmp_path: Path) -> None:
    failing(tmp_path / "nowhere", TableNotFoundError, "nowhere", "no Delta table")


def test_a_folder_without_a_log_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"")
    failing(tmp_path, TableNotFoundError, "_delta_log")


def test_an_empty_log_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    failing(tmp_path, TableNotFoundError, "_delta_log")


def test_a_log_that_holds_only_strange_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text('{"version": 3, "size": 1}')
    (tmp_path / "_delta_log" / "README").write_text("hello")
    failing(tmp_path, TableNotFoundError)


def test_a_file_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    failing(tmp_path / "file", TableNotFoundError, "file")


@EVERY_STRATEGY
def test_a_truncated_line_names_version_and_line(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b", "c"]).truncate(f"{1:020}.json", -30)
    failing(table, CorruptLogError, f"{1:020}.json", "line 3", strategy=strategy)


@EVERY_STRATEGY
@pytest.mark.parametrize("text", ["not json\n", "[1, 2]\n", '"text"\n', "7\n", '{"add": {"path"}}\n'])
def test_a_line_that_is_not_an_action_names_version_and_line(
    tmp_path: Path, text: str, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).append_to_commit(1, text).commit(["c"])
    failing(table, CorruptLogError, f"{1:020}.json", "line 3", strategy=strategy)


@pytest.mark.parametrize(
    "line",
    [
        '{"add": {"size": 3}}',
        '{"add": {"path": 5, "size": 3}}',
        '{"add": "a"}',
        '{"remove": {}}',
        '{"metaData": 3}',
        '{"protocol": {"minReaderVersion": "three"}}',
    ],
)
def test_an_action_of_another_shape_is_an_error_and_not_a_file_less(tmp_path: Path, line: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).append_to_commit(0, line + "\n")
    failing(table, CorruptLogError, f"{0:020}.json", "line 5")


def test_bytes_that_are_not_utf_8_are_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    path = table.log / f"{1:020}.json"
    path.write_bytes(path.read_bytes() + b'{"add":{"path":"\xff\xfe","size":1,"partitionValues":{}}}\n')
    failing(table, CorruptLogError, f"{1:020}.json", "line 3")


def test_an_empty_commit_file_is_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).corrupt(f"{1:020}.json", b"")
    failing(table, CorruptLogError, f"{1:020}.json")


def test_blank_lines_and_a_missing_last_newline_are_no_damage(tmp_path: Path) -> None:
    table = (
        TableBuilder(tmp_path)
        .commit(["a"])
        .commit(["b"])
        .append_to_commit(0, "\n\n")
        .truncate(f"{1:020}.json", -1)
    )
    assert live_keys(tmp_path) == table.live()


def test_windows_line_ends_are_no_damage(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    path = table.log / f"{1:020}.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert live_keys(tmp_path) == table.live()


def test_a_field_that_newer_writers_add_is_no_damage(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([add("a", newField={"x": [1]}, stats_parsed=None)]).commit(["b"])
    assert live_keys(tmp_path) == table.live()


@EVERY_STRATEGY
@pytest.mark.parametrize("gap", [1, 2])
def test_a_missing_commit_between_two_others_is_named(tmp_path: Path, gap: int, strategy: str) -> None:
    table = TableBuilder(tmp_path)
    for version in range(4):
        table.commit([f"v{version}"])
    table.delete_commit(gap)
    failing(
        table, CorruptLogError, f"commit {gap} is missing between {gap - 1} and {gap + 1}", strategy=strategy
    )


DAMAGE = {
    "garbage": b"PAR1 this is no Parquet file PAR1",
    "empty magic": b"PAR1PAR1",
    "one byte": b"P",
}


@EVERY_STRATEGY
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("has_older", [True, False])
def test_a_corrupt_checkpoint_is_passed_over_when_the_log_reaches_behind_it(
    tmp_path: Path, damage: str, has_older: bool, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).commit(["c"], ["a"])
    if has_older:
        table.checkpoint()
    table.commit(["d"], ["b"]).commit(["e"]).checkpoint().commit(["f"], ["d"])
    table.corrupt("*3.checkpoint.parquet", DAMAGE[damage])
    scan = ld.open(str(tmp_path)).scan(strategy=strategy)
    assert sorted(keys(scan.files())) == sorted(table.live())
    report = scan.explain()
    assert len(report.fallbacks) == 1
    assert "3" in report.fallbacks[0]
    assert "checkpoint" in str(report)


@EVERY_STRATEGY
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("has_crc", [True, False])
def test_a_checkpoint_found_corrupt_only_by_the_scan_is_passed_over_too(
    tmp_path: Path, strict: bool, has_crc: bool, strategy: str
) -> None:
    # The `.crc` spares the opening a look at the checkpoint: the scan is the first to open it.
    table = TableBuilder(tmp_path).commit(["a", "b"]).commit(["c"], ["a"]).commit(["d"], ["b"]).checkpoint()
    table.commit(["e"], ["c"])
    if has_crc:
        table.crc()
    table.corrupt("*.checkpoint.parquet")
    scan = ld.open(str(tmp_path)).scan(strategy=strategy, strict=strict)
    assert sorted(keys(scan.files())) == sorted(table.live())
    assert any("checkpoint 2" in fallback for fallback in scan.explain().fallbacks)


@EVERY_STRATEGY
def test_a_corrupt_checkpoint_is_an_error_that_names_it_when_the_log_was_cleaned_up(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"]).checkpoint().commit(["d"])
    table.clean_up(before=2).corrupt("*.checkpoint.parquet")
    failing(table, CorruptLogError, f"{2:020}.checkpoint.parquet", strategy=strategy)


@EVERY_STRATEGY
@pytest.mark.parametrize("kind", ["v2-parquet", "v2-json", "classic-named-v2"])
@pytest.mark.parametrize("damage", ["missing", "shorter", "garbage"])
def test_a_v2_checkpoint_whose_sidecar_is_gone_or_corrupt_is_passed_over(
    tmp_path: Path, kind: str, damage: str, strategy: str
) -> None:
    table = (
        TableBuilder(tmp_path)
        .commit(["a", "b"])
        .commit(["c"], ["a"])
        .commit(["d"])
        .checkpoint(kind, sidecars=2)
    )
    table.commit(["e"])
    sidecar = sorted((table.log / "_sidecars").iterdir())[0]
    if damage == "missing":
        sidecar.unlink()
    elif damage == "shorter":
        sidecar.write_bytes(b"PAR1 garbage PAR1")
    else:
        sidecar.write_bytes(b"?" * sidecar.stat().st_size)
    found = []
    try:
        for file in ld.open(str(tmp_path)).scan(strategy=strategy).files():
            found.append((file.path, file.dv_id))
    except CorruptLogError as error:
        # Files of the other sidecar were out already: nothing may come twice, so this is the end.
        assert "_sidecars" in str(error)
        assert len(found) == len(set(found))
        assert set(found) <= table.live()
    else:
        assert sorted(found) == sorted(table.live())


@EVERY_STRATEGY
def test_a_corrupt_v2_top_level_json_is_passed_over(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint("v2-json").commit(["c"])
    table.corrupt("*.checkpoint.*.json", b'{"checkpointMetadata": {"ver')
    scan = ld.open(str(tmp_path)).scan(strategy=strategy)
    assert sorted(keys(scan.files())) == sorted(table.live())
    assert scan.explain().fallbacks


def test_without_fallback_a_corrupt_checkpoint_is_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"]).crc()
    table.corrupt("*.checkpoint.parquet")
    with pytest.raises(CorruptLogError, match="checkpoint"):
        list(ld.open(str(tmp_path)).scan(enable_fallback=False).files())


@pytest.mark.parametrize("version", [3, 4711])
def test_a_version_that_is_too_new_names_the_newest(tmp_path: Path, version: int) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"])
    with pytest.raises(VersionNotFoundError, match=f"version {version} does not exist, the newest is 2"):
        ld.open(str(table.path), version=version)


@pytest.mark.parametrize("version", [-1, 1.5, "1", True])
def test_a_version_that_is_none_is_an_invalid_request(tmp_path: Path, version: Any) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    with pytest.raises(InvalidRequestError, match="version"):
        ld.open(str(table.path), version=version)


@pytest.mark.parametrize("timestamp", ["yesterday", "", 17])
def test_a_timestamp_that_is_none_is_an_invalid_request(tmp_path: Path, timestamp: Any) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    with pytest.raises(InvalidRequestError, match="timestamp"):
        ld.open(str(table.path), timestamp=timestamp)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("limit", -1),
        ("batch_size", 0),
        ("commit_read_parallelism", 0),
        ("checkpoint_row_groups_per_batch", 0),
        ("remove_set_memory_limit", -1),
        ("strategy", "sideways"),
        ("colour", "blue"),
    ],
)
def test_a_scan_option_that_makes_no_sense_is_named(tmp_path: Path, option: str, value: Any) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(InvalidRequestError, match=option):
        ld.open(str(table.path)).scan(**{option: value})


@pytest.mark.parametrize(
    ("where", "word"),
    [
        ("valeu > 3", "value"),
        ("value > ", "value"),
        ("date = 'soon'", "date"),
        ("count = 'many'", "count"),
    ],
)
def test_a_predicate_that_does_not_fit_the_table_says_what_would(
    tmp_path: Path, where: str, word: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(InvalidRequestError, match=word):
        list(ld.open(str(table.path)).scan(where=where).files())


def test_a_column_that_files_do_not_have_is_refused_with_a_hint(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(InvalidRequestError, match="path"):
        list(ld.open(str(table.path)).scan().file_batches(columns=["paht"]))


@EVERY_STRATEGY
@pytest.mark.parametrize("where", ["tail", "checkpoint"])
def test_a_path_with_a_broken_escape_is_read_or_refused_but_never_crashes(
    tmp_path: Path, where: str, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["100%.parquet", "a%zz", "fine%20one"])
    if where == "checkpoint":
        table.checkpoint().commit()
    assert live_keys(tmp_path, strategy=strategy) == {
        ("100%.parquet", None),
        ("a%zz", None),
        ("fine one", None),
    }


@EVERY_STRATEGY
@pytest.mark.parametrize("where", ["tail", "checkpoint"])
def test_a_path_whose_escapes_are_not_utf_8_is_read_or_refused_but_never_crashes(
    tmp_path: Path, where: str, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a%FF.parquet", "b"])
    if where == "checkpoint":
        table.checkpoint().commit()
    try:
        found = live_keys(tmp_path, strategy=strategy)
    except LazyDeltaError as error:
        assert "%FF" in str(error)
    else:
        assert ("b", None) in found
        assert len(found) == 2


def test_a_schema_with_a_type_of_the_future_names_it(tmp_path: Path) -> None:
    TableBuilder(tmp_path, schema={"id": "quaternion", "date": "date"}).commit(["a"])
    failing(tmp_path, UnsupportedTableError, "quaternion")


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "array"}', '{"type":"struct"}', "3"])
def test_a_schema_that_cannot_be_read_is_a_lazydelta_error(tmp_path: Path, text: str) -> None:
    metadata = TableBuilder(tmp_path / "x").metadata | {"schemaString": text}
    TableBuilder(tmp_path).commit(["a"], metadata=metadata)
    failing(tmp_path, LazyDeltaError)


@pytest.mark.parametrize("limit", [2**62, 2**70, 10**400])
def test_a_limit_that_is_too_large_is_told_how_large_it_may_be(tmp_path: Path, limit: int) -> None:
    failing(TableBuilder(tmp_path).commit(["a"]), InvalidRequestError, "below 4,611,686,018,427", limit=limit)


def test_a_limit_that_is_negative_is_told_the_least(tmp_path: Path) -> None:
    error = failing(TableBuilder(tmp_path).commit(["a"]), InvalidRequestError, limit=-1)
    assert error.fix == "give a whole number of at least 0"
