"""Which plans Spark's own Parquet reader may read, and the file list that it takes.

Why: rows that come out of Python cost more on their way into the JVM than all of their reading there.
Contract: a plan is handed over only where the rows of the table are those of its files as they lie there: no
column mapping, no deletion vector, no type that was changed or that Parquet does not have, folders that spell
the partition values of the log. What is not certain is `NotPlainError`. The list is bounded.
The list is that of Spark's file sink (`_spark_metadata`): Spark takes the files that it names, and looks for
no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.spark.reading.spark_condition import is_comparable
from lazydelta.spark.reading.table_read import TableRead

FILE_LIST = "_spark_metadata/0"
_FIRST_LINE = b"v1"
_PLAIN_TYPES = re.compile(
    r"(boolean|byte|short|integer|long|float|double|string|binary|date|timestamp|timestamp_ntz|decimal\(.*\))\Z"
)
# What folders spell in one way only.
_SPELLED = {
    "string": re.compile(r".+", re.DOTALL),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    **dict.fromkeys(("byte", "short", "integer", "long"), re.compile(r"0|-?[1-9]\d*")),
}
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
# Files elsewhere, dots that lead there, and names that Spark takes for its own.
_ODD_PATH = r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.{0,2}(/|$)|(^|/)[_.][^/]*$"
_WRITERS_OWN = frozenset({"comment"})  # of a field's metadata what says nothing of its type
_IGNORED_METADATA = re.compile(r"delta\.(generationExpression|identity\.|invariants|constraints)")


class NotPlainError(Exception):
    """Why lazydelta reads the rows itself."""


class FileList(msgspec.Struct, frozen=True, kw_only=True):
    """The list for Spark."""

    body: bytes
    first: str | None  # the address of one of its files, without what is behind #
    file_count: int


def check_table(table: TableRead) -> None:
    """Raise where some file of the table may need more than a Parquet reader."""
    selection, predicate = table.rows.selection, table.rows.files.predicate
    if selection.metadata_columns:
        raise NotPlainError("metadata columns are asked for")
    if selection.mapping_mode != "none":
        raise NotPlainError("columns are mapped")
    if predicate is not None and not is_comparable(predicate.root):
        raise NotPlainError("the filter compares a column by a collation")
    stored = {field["name"]: field for field in msgspec.json.decode(table.schema_string)["fields"]}
    partitions = table.source.snapshot.state.metadata.partition_columns
    for name in {*(field.name for field in selection.fields), *partitions}:
        _check_field(stored[name])
        if name in partitions and stored[name]["type"] not in _SPELLED:
            raise NotPlainError(f"the partition column {name!r} is of a type that has several spellings")
    if partitions and "=" in table.root.rstrip("/").rpartition("/")[2]:
        raise NotPlainError("the table's own folder is spelled like a partition")


def file_list(table: TableRead, root: str) -> FileList:
    """The planned files below `root`, which is the table's address as Spark has it, encoded."""
    partitions = table.source.snapshot.state.metadata.partition_columns
    types = {field.name: getattr(field.type, "name", "") for field in table.source.snapshot.schema.fields}
    lines, first = [_FIRST_LINE], None
    is_spelled: dict[tuple[object, ...], bool] = {}
    for batch in table.file_batches():
        _check_files(batch, len(lines) - 1)
        for path, size, values in _rows(batch):
            folders = path.split("/")[:-1]
            key = (*folders, None, *(values.get(name) for name in partitions))
            if key not in is_spelled:
                is_spelled[key] = not partitions or _spell(folders, values, types, partitions)
            if not is_spelled[key]:
                raise NotPlainError("folders do not spell the partition values")
            address = f"{root}/{quote(path, safe='/=')}"
            first = first or address
            lines.append(_line(address, size, table.pin.version))
    return FileList(body=b"\n".join(lines), first=first, file_count=len(lines) - 1)


def _check_field(stored: Mapping[str, Any]) -> None:  # Any: the table's JSON
    metadata = set(stored.get("metadata") or {}) - _WRITERS_OWN
    odd = sorted(name for name in metadata if not _IGNORED_METADATA.match(name))
    if odd:
        raise NotPlainError(f"the column {stored['name']!r} has {odd[0]}")
    for kind in _leaves(stored["type"]):
        if isinstance(kind, str) and not _PLAIN_TYPES.match(kind):
            raise NotPlainError(f"the column {stored['name']!r} is of type {kind}")
        if not isinstance(kind, str):
            _check_field(kind)


def _leaves(kind: Any) -> Iterator[Any]:  # Any: the table's JSON
    """Names of types, and fields of structs."""
    if isinstance(kind, str):
        yield kind
    elif kind["type"] == "struct":
        yield from kind["fields"]
    else:
        for part in ("elementType", "keyType", "valueType"):
            if part in kind:
                yield from _leaves(kind[part])


def _check_files(batch: pa.RecordBatch, before: int) -> None:
    if before + batch.num_rows > limits.SPARK_NATIVE_FILES_MAX:
        raise NotPlainError(f"more than {limits.SPARK_NATIVE_FILES_MAX:,} files are planned")
    if batch.column("deletion_vector").null_count < batch.num_rows:
        raise NotPlainError("a file has a deletion vector")
    if pc.any(pc.match_substring_regex(batch.column("path"), _ODD_PATH)).as_py():
        raise NotPlainError("a file is not below the table's folder, or has a name that Spark passes over")
    if pc.any(pc.less_equal(batch.column("size"), 0)).as_py():
        raise NotPlainError("the log does not tell a file's size")


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[str, int, dict[str, str | None]]]:
    columns = [batch.column(name).to_pylist() for name in ("path", "size", "partition_values")]
    for path, size, values in zip(*columns, strict=True):
        yield path, size, dict(values or ())


def _spell(
    folders: list[str], values: Mapping[str, str | None], types: Mapping[str, str], partitions: list[str]
) -> bool:
    """Whether these folders are, in order, how Spark writes these values."""
    return len(folders) == len(partitions) and all(
        _spells(folder, name, values.get(name), types[name])
        for folder, name in zip(folders, partitions, strict=True)
    )


def _spells(folder: str, name: str, value: str | None, kind: str) -> bool:
    told_name, _, told = folder.partition("=")
    if _unescaped(told_name) != name:
        return False
    if value is None:
        return told == _NULL_FOLDER
    return told != _NULL_FOLDER and _unescaped(told) == value and bool(_SPELLED[kind].fullmatch(value))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _line(address: str, size: int, version: int) -> bytes:
    return msgspec.json.encode(
        {
            # File systems pass over what is behind #, and errors show it.
            "path": f"{address}#version={version}",
            "size": size,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": limits.SPARK_PARTITION_BYTES,
            "action": "add",
        }
    )
