"""Which plans are left to Spark's own Parquet reader; without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lazydelta import limits
from lazydelta.spark.reading.options import ReadOptions
from lazydelta.spark.reading.plain_plan import FileList, NotPlainError, check_table, file_list
from lazydelta.spark.reading.table_read import TableRead, open_read
from tests.support.actions import add, inline_dv
from tests.support.table_builder import TableBuilder

ROOT = "file:///a%20table"


def opened(table: TableBuilder, **options: Any) -> TableRead:
    return open_read(ReadOptions(path=str(table.path), **options))


def listed(table: TableBuilder, **options: Any) -> FileList:
    read = opened(table, **options)
    check_table(read)
    return file_list(read, ROOT)


def schema_of(kind: Any, **metadata: Any) -> str:
    field = {"name": "c", "type": kind, "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


def flat(folder: Path, *files: Any, schema: str | None = None, **how: Any) -> TableBuilder:
    table = TableBuilder(folder, partition_columns=(), **how)
    if schema is not None:
        table.metadata["schemaString"] = schema
    return table.commit([add(file, partition={}) if isinstance(file, str) else file for file in files])


def partitioned(folder: Path, *paths: tuple[str, str | None], column: str = "date") -> TableBuilder:
    files = [add(path, partition={column: value}) for path, value in paths]
    return TableBuilder(folder, partition_columns=(column,)).commit(files)


def test_the_list_names_files_by_address_size_and_version(tmp_path: Path) -> None:
    files = [add("a%20b%23.parquet", size=7, partition={}), add("deep/c.parquet", size=8, partition={})]
    found = listed(flat(tmp_path, *files))
    first, *lines = found.body.decode().split("\n")
    files = {line["path"]: line for line in map(json.loads, lines)}
    assert first == "v1"
    assert files.keys() == {f"{ROOT}/a%20b%23.parquet#version=0", f"{ROOT}/deep/c.parquet#version=0"}
    assert files[f"{ROOT}/deep/c.parquet#version=0"]["size"] == 8
    assert found.file_count == 2
    assert found.first in {path.partition("#")[0] for path in files}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (add("file:///elsewhere/a.parquet"), "not below the table's folder"),
        (add("a/../b.parquet"), "not below the table's folder"),
        (add("_hidden.parquet"), "a name that Spark passes over"),
        (add("a/.hidden.parquet"), "a name that Spark passes over"),
        (add("a.parquet", deletion_vector=inline_dv()), "deletion vector"),
        (add("a.parquet", size=0), "size"),
    ],
)
def test_a_file_that_is_not_plain_keeps_the_plan(tmp_path: Path, file: Any, why: str) -> None:
    with pytest.raises(NotPlainError, match=why):
        listed(flat(tmp_path, "plain.parquet", file))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("date=2026-02-08/a", "2026-02-08"),
        ("date=__HIVE_DEFAULT_PARTITION__/a", None),
    ],
)
def test_folders_that_spell_the_values_are_plain(tmp_path: Path, path: str, value: str | None) -> None:
    assert listed(partitioned(tmp_path, (path, value))).file_count == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", "2026-02-08"),
        ("date=2026-02-09/a", "2026-02-08"),
        ("day=2026-02-08/a", "2026-02-08"),
        ("x/date=2026-02-08/a", "2026-02-08"),
        ("date=2026-2-8/a", "2026-2-8"),
        ("date=__HIVE_DEFAULT_PARTITION__/a", "__HIVE_DEFAULT_PARTITION__"),
        ("date=/a", ""),
        ("date=2026-02-08/a", None),
    ],
)
def test_folders_that_say_something_else_are_not(tmp_path: Path, path: str, value: str | None) -> None:
    with pytest.raises(NotPlainError, match="spell the partition values"):
        listed(partitioned(tmp_path, ("date=2026-02-08/b", "2026-02-08"), (path, value)))


def test_texts_are_compared_as_hive_escapes_them(tmp_path: Path) -> None:
    table = partitioned(tmp_path, ("device_id=a%253Ab%2520c/a", "a:b c"), column="device_id")
    assert listed(table).file_count == 1
    with pytest.raises(NotPlainError, match="spell"):
        listed(partitioned(tmp_path / "b", ("device_id=a%253Ac/a", "a:b"), column="device_id"))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (schema_of("variant"), "type variant"),
        (schema_of({"type": "array", "elementType": "void", "containsNull": True}), "type void"),
        (schema_of("double", **{"delta.typeChanges": []}), "delta.typeChanges"),
        (schema_of("string", __CHAR_VARCHAR_TYPE_STRING="char(5)"), "__CHAR_VARCHAR_TYPE_STRING"),
        (schema_of("string", __COLLATIONS={"c": "icu.UNICODE_CI"}), "__COLLATIONS"),
        (
            schema_of(
                {"type": "struct", "fields": json.loads(schema_of("long", EXISTS_DEFAULT="1"))["fields"]}
            ),
            "EXISTS_DEFAULT",
        ),
    ],
)
def test_a_column_that_parquet_alone_does_not_tell_keeps_the_plan(
    tmp_path: Path, schema: str, why: str
) -> None:
    table = flat(tmp_path, "a", schema=schema)
    with pytest.raises(NotPlainError, match=why):
        listed(table)


def test_a_partition_by_what_has_several_spellings_keeps_the_plan(tmp_path: Path) -> None:
    with pytest.raises(NotPlainError, match="several spellings"):
        listed(partitioned(tmp_path, ("value=1.5/a", "1.5"), column="value"))


def test_metadata_columns_and_mapped_ones_keep_the_plan(tmp_path: Path) -> None:
    with pytest.raises(NotPlainError, match="metadata columns"):
        listed(flat(tmp_path, "a"), columns=("_file_path",))
    with pytest.raises(NotPlainError, match="mapped"):
        listed(flat(tmp_path / "m", "a", column_mapping="name"))


def test_a_folder_that_looks_like_a_partition_keeps_the_plan(tmp_path: Path) -> None:
    table = partitioned(tmp_path / "env=prod", ("date=2026-02-08/a", "2026-02-08"))
    with pytest.raises(NotPlainError, match="spelled like a partition"):
        listed(table)


def test_a_longer_list_than_memory_may_hold_keeps_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SPARK_NATIVE_FILES_MAX", 2)
    assert listed(flat(tmp_path / "a", "a", "b")).file_count == 2
    with pytest.raises(NotPlainError, match="more than 2 files"):
        listed(flat(tmp_path / "b", "a", "b", "c"))
