"""A table at a glance: version, features, counts from hints, checkpoint, tail, and its schema as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text
from rich.tree import Tree

from lazydelta.cli.streams import terminal, write_json_lines, write_told, written_at_once
from lazydelta.cli.text import human_bytes, one_line
from lazydelta.protocol.schema import ArrayType, DeltaType, MapType, StructType, table_schema, type_text

if TYPE_CHECKING:
    from lazydelta.table import Table, TableInfo

UNKNOWN = "not known without reading the file list"


def show_info(table: Table, *, as_json: bool) -> None:
    """Write what is known of the table."""
    info = table.info()
    if as_json:
        schema = msgspec.json.decode(table.metadata.schema_string or "null")
        write_json_lines([{**msgspec.to_builtins(info), "schema": schema}])
        return
    tree = Tree("schema")
    _grow(tree, table_schema(table.metadata, table.url), frozenset(info.partition_columns))
    write_told("\n".join(f"{label:<17} {one_line(text)}" for label, text in _lines(info)))
    console = terminal()
    with written_at_once(console):
        console.print(tree)


def _lines(info: TableInfo) -> Iterator[tuple[str, str]]:
    yield "table", f"{info.url} @ {info.version:,}"
    yield "id", info.id
    if info.name:
        yield "name", info.name
    if info.description:
        yield "description", info.description
    yield "partitioned by", ", ".join(info.partition_columns) or "nothing"
    yield "protocol", f"reader {info.reader_version}, writer {info.writer_version}"
    yield "reader features", ", ".join(info.reader_features) or "none"
    yield "writer features", ", ".join(info.writer_features) or "none"
    yield "files", UNKNOWN if info.num_files is None else f"{info.num_files:,}"
    yield "size", UNKNOWN if info.size_bytes is None else human_bytes(info.size_bytes)
    yield "checkpoint", _checkpoint_text(info)
    commits = (
        "1 commit" if info.commits_since_checkpoint == 1 else f"{info.commits_since_checkpoint:,} commits"
    )
    yield "tail", f"{commits}, {human_bytes(info.tail_bytes)}"
    for key, value in sorted(info.configuration.items()):
        yield "configuration", f"{key}={value}"
    for note in info.notes:
        yield "note", note


def _checkpoint_text(info: TableInfo) -> str:
    if info.checkpoint_version is None:
        return "none"
    size = "" if info.checkpoint_bytes is None else f", {human_bytes(info.checkpoint_bytes)}"
    files = "" if info.checkpoint_files is None else f", {info.checkpoint_files:,} files"
    return f"version {info.checkpoint_version:,}{size}{files}"


def _grow(tree: Tree, delta_type: DeltaType, partition_columns: frozenset[str] = frozenset()) -> None:
    """Add the fields below a type; structs inside arrays and maps are opened, too."""
    match delta_type:
        case StructType(fields):
            for field in fields:
                marks = [] if field.nullable else ["not null"]
                marks += ["partition"] if field.name in partition_columns else []
                suffix = f"  ({', '.join(marks)})" if marks else ""
                told = type_text(field.type, with_fields=False)
                branch = tree.add(Text(f"{one_line(field.name)}: {told}{suffix}"))
                _grow(branch, field.type)
        case ArrayType(element):
            _grow(tree, element)
        case MapType(_, value):
            _grow(tree, value)
