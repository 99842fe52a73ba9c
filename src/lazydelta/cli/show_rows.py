"""Rows of any columns, written as they come: a table, CSV, JSON lines or Parquet.

What values look like is told in `plain_values`, for all formats but Parquet.
Contract: each batch is written before the next is asked for. A file appears under its name when it is
complete: until then it has a name of its own beside it, and an error leaves nothing behind.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyarrow import types as kinds

from lazydelta import limits
from lazydelta.cli.plain_values import (
    ENCODER,
    checked_texts,
    is_in_calendar,
    json_text,
    json_values,
    moment_texts,
    stored,
)
from lazydelta.cli.show_files import plain_cells
from lazydelta.cli.streams import AlignedRows, is_terminal, write_bytes, write_lines
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.rows.iterator import LazyRecordBatchIterator

FORMATS = ("table", "csv", "jsonl", "parquet")
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_ROW_GROUP_ROWS, _ROW_GROUP_BYTES = 131_072, 32 * limits.MIB  # of Parquet, whichever comes first
_TERMINAL_ROWS = 64  # printed at once
Write = Callable[[bytes], object]


def chosen_format(asked: str | None, output: str | None) -> str:
    """The format asked for, or that of the file's name, or what suits the reader of stdout."""
    if asked is not None:
        if asked not in FORMATS:
            raise InvalidRequestError(
                f"there is no format {asked!r}", "--format", f"use one of {', '.join(FORMATS)}"
            )
        chosen = asked
    elif output is not None:
        chosen = _SUFFIXES.get(Path(output).suffix.lower(), "csv")
    else:
        chosen = "table" if is_terminal() else "csv"
    if chosen == "parquet" and output is None and is_terminal():
        raise InvalidRequestError(
            "Parquet on a terminal is unreadable", "--format", "name a file with --output, or pipe it"
        )
    if chosen == "table" and output is not None:
        raise InvalidRequestError("a table is for the terminal", "--format", "write csv, jsonl or parquet")
    return chosen


def show_rows(rows: LazyRecordBatchIterator, *, format_: str, output: str | None) -> None:
    """Write every batch as it comes."""
    if format_ == "table":
        _show_table(rows)
        return
    writers = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}
    if output is None or output == "-":
        writers[format_](rows, write_bytes)
        return
    with _complete_file(output) as write:
        writers[format_](rows, write)


def _show_table(rows: LazyRecordBatchIterator) -> None:
    is_right = {field.name for field in rows.schema if _is_number(field.type)}
    table = AlignedRows(rows.schema.names, right=is_right)
    for batch in rows:
        for start in range(0, batch.num_rows, _TERMINAL_ROWS):
            part = batch.slice(start, _TERMINAL_ROWS)
            table.write(list(zip(*(_cells(column) for column in part.columns), strict=True)))
    if not rows.current_index and rows.schema.names:
        table.write_header()
        write_lines(["0 rows"])


def _write_csv(rows: LazyRecordBatchIterator, write: Write) -> None:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(rows.schema.names)
    write(header.getvalue().encode())
    options = pyarrow.csv.WriteOptions(include_header=False)
    for batch in rows:
        flat = pa.RecordBatch.from_arrays([_flat(column) for column in batch.columns], batch.schema.names)
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(flat, sink, options)
        write(sink.getvalue().to_pybytes())


def _write_jsonl(rows: LazyRecordBatchIterator, write: Write) -> None:
    for batch in rows:
        names = batch.schema.names
        columns = (json_values(column) for column in batch.columns)
        write(
            ENCODER.encode_lines([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
        )


def _write_parquet(rows: LazyRecordBatchIterator, write: Write) -> None:
    with _parquet_writer(rows.schema, write) as writer:
        gathered: list[pa.RecordBatch] = []
        for batch in rows:
            gathered.append(batch)
            if (
                sum(part.num_rows for part in gathered) >= _ROW_GROUP_ROWS
                or _bytes(gathered) >= _ROW_GROUP_BYTES
            ):
                writer.write_table(pa.Table.from_batches(gathered))
                gathered.clear()
        if gathered:
            writer.write_table(pa.Table.from_batches(gathered))


def _parquet_writer(schema: pa.Schema, write: Write) -> pq.ParquetWriter:
    try:
        return pq.ParquetWriter(pa.PythonFile(_Sink(write), mode="w"), schema, compression="zstd")
    except pa.ArrowException as problem:
        raise InvalidRequestError(
            f"the rows cannot be written as Parquet: {problem}",
            "--format",
            "cast that column in the query, as in cast(x as varchar), or write another format",
        ) from problem


def _bytes(batches: list[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


class _Sink:
    """A file that can only be appended to."""

    closed = False

    def __init__(self, write: Write) -> None:
        self._write = write
        self._at = 0

    def write(self, data: Any) -> int:  # Any: a buffer of Arrow
        body = bytes(data)
        self._write(body)
        self._at += len(body)
        return len(body)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@contextmanager
def _complete_file(output: str) -> Iterator[Write]:
    """Write to a neighbour, which takes the name at the end; a pipe or a device is written to as it is."""
    target = Path(output)
    if target.exists() and not target.is_file() and not target.is_dir():
        with _told(output), target.open("wb") as file:
            yield file.write
        return
    if target.is_symlink():
        target = Path(os.path.realpath(target))
        if target.is_symlink():
            raise LazyDeltaError("the link leads to itself", output, "name another file")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with _told(output):
            with partial.open("xb") as file:
                if target.exists():
                    partial.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file.write
            partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _told(output: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise LazyDeltaError(
            f"the file cannot be written: {problem.strerror}", output, "make room, or name another one"
        ) from problem


def _cells(column: pa.Array) -> list[str]:
    flat = _flat(column)
    return plain_cells(flat.cast(pa.string()) if kinds.is_temporal(flat.type) else flat)


def _flat(column: pa.Array) -> pa.Array:
    """The column as Arrow's CSV can write it, by `plain_values` where Arrow cannot by itself."""
    column = stored(column)
    kind = column.type
    if kinds.is_nested(kind):
        texts = [None if value is None else json_text(value) for value in json_values(column)]
        return pa.array(texts, pa.string())
    if kinds.is_date(kind) or kinds.is_time(kind) or kinds.is_timestamp(kind):
        return column if is_in_calendar(column) else moment_texts(column)
    if kinds.is_string(kind):
        return checked_texts(column)
    if kinds.is_boolean(kind) or _is_number(kind):
        return column
    return pa.array(json_values(column), pa.string())  # bytes, intervals, nothing but nulls


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
