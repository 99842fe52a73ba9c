"""Live files on stdout, from Arrow batches.

Which attributes are shown where none were asked for: the path alone on a pipe (for `xargs` and `cut`), what
people look for on a terminal, everything a `DeltaFile` has in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.cli.streams import AlignedRows, is_terminal, write_json_lines, write_lines
from lazydelta.cli.text import human_bytes, human_time, one_line
from lazydelta.scan.values import rows_of, values_of

PIPE_COLUMNS = ("path",)
TERMINAL_COLUMNS = ("size", "modification_time", "partition_values", "deletion_vector", "path")
JSON_COLUMNS = ("path", "size", "modification_time", "partition_values", "deletion_vector")
_TERMINAL_ROWS = 64  # printed at once; formatting more would hold up the first line
_CONTROL_CHARACTERS = r"[\x00-\x1f\x7f-\x{9f}]"


def usual_columns(*, as_json: bool) -> tuple[str, ...]:
    """The attributes to read where the user names none."""
    if as_json:
        return JSON_COLUMNS
    return TERMINAL_COLUMNS if is_terminal() else PIPE_COLUMNS


def show_files(batches: Iterator[pa.RecordBatch], *, as_json: bool) -> None:
    """Write every batch as it comes."""
    if as_json:
        for batch in batches:
            write_json_lines(rows_of(batch))
    elif is_terminal():
        _show_table(batches)
    else:
        for batch in batches:
            columns = [plain_cells(column) for column in batch.columns]
            write_lines(columns[0] if len(columns) == 1 else map("\t".join, zip(*columns, strict=True)))


def plain_cells(column: pa.Array) -> list[str]:
    """A column as text without tabs or line ends: nothing for null, JSON for nested values."""
    if pa.types.is_string(column.type):
        texts: list[str] = values_of(column.fill_null(""))
        has_control = pc.any(pc.match_substring_regex(column, _CONTROL_CHARACTERS)).as_py()
        return [one_line(text) for text in texts] if has_control else texts
    if pa.types.is_nested(column.type):
        return [_cell(value, _json) for value in values_of(column)]
    return [_cell(value, str) for value in values_of(column)]


def _show_table(batches: Iterator[pa.RecordBatch]) -> None:
    table: AlignedRows | None = None
    for batch in batches:
        if table is None:
            table = AlignedRows(
                batch.schema.names, right={"size"}, whole={"modification_time"}, needed={"path"}
            )
        for start in range(0, batch.num_rows, _TERMINAL_ROWS):
            part = batch.slice(start, _TERMINAL_ROWS)
            cells = [_terminal_cells(name, part.column(name)) for name in part.schema.names]
            table.write(list(zip(*cells, strict=True)))


def _terminal_cells(name: str, column: pa.Array) -> list[str]:
    human = _HUMAN.get(name)
    if human is None:
        return plain_cells(column)
    return [_cell(value, human) for value in values_of(column)]


def _cell(value: object, text_of: Callable[[Any], str]) -> str:  # Any: whatever the column holds
    return "" if value is None else text_of(value)


def _json(value: object) -> str:
    return one_line(msgspec.json.encode(value).decode())


def _partition_text(values: dict[str, str | None]) -> str:
    return one_line(
        " ".join(f"{name}={'null' if value is None else value}" for name, value in values.items())
    )


def _vector_text(vector: dict[str, Any]) -> str:  # Any: the fields of a deletion vector
    return f"{vector['cardinality']:,} rows deleted"


# Any: each takes the values of its own column.
_HUMAN: dict[str, Callable[[Any], str]] = {
    "size": human_bytes,
    "modification_time": human_time,
    "partition_values": _partition_text,
    "deletion_vector": _vector_text,
}
