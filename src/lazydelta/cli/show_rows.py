"""Rows of any columns, written as they come: a table, CSV, JSON, JSON lines or Parquet.

What values look like is told in `engines/json_values.py`, for all formats but Parquet.
Contract: each batch is written before the next is asked for. A file appears under its name when it is
complete: until then it has none, or where the disk cannot do that one of its own beside it. An error leaves
nothing behind; of a process that is killed only a file with a name stays.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyarrow import types as kinds

from lazydelta import limits
from lazydelta.cli.progress_lines import ProgressLines
from lazydelta.cli.show_files import plain_cells
from lazydelta.cli.sql_command import FORMATS
from lazydelta.cli.streams import AlignedRows, is_terminal, write_bytes, write_lines
from lazydelta.engines.json_values import (
    ENCODER,
    checked_texts,
    is_in_calendar,
    json_text,
    json_values,
    moment_texts,
    stored,
)
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.storage.nameless_file import name_file, nameless_in

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
        raise InvalidRequestError(
            "a table is for the terminal", "--format", "write csv, json, jsonl or parquet"
        )
    return chosen


def show_rows(
    rows: LazyRecordBatchIterator,
    *,
    format_: str,
    output: str | None,
    json_columns: frozenset[str] = frozenset(),
) -> None:
    """Write every batch as it comes; texts of `json_columns` are JSON, and stay so in JSON."""
    if format_ == "table":
        _show_table(rows)
        return
    writers: dict[str, Callable[[LazyRecordBatchIterator, Write], None]] = {
        "csv": _write_csv,
        "json": partial(_write_json, json_columns=json_columns),
        "jsonl": partial(_write_jsonl, json_columns=json_columns),
        "parquet": _write_parquet,
    }
    if output is None or output == "-":
        writers[format_](rows, write_bytes)
        return
    with ProgressLines(only_bar=True) as progress, _complete_file(output) as write:
        written = 0

        def write_and_tell(data: bytes) -> None:
            nonlocal written
            write(data)
            written += len(data)
            progress("writing_rows", rows=rows.current_index, bytes=written)

        writers[format_](rows, write_and_tell)


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


def _write_jsonl(rows: LazyRecordBatchIterator, write: Write, *, json_columns: frozenset[str]) -> None:
    for batch in rows:
        write(ENCODER.encode_lines(_objects(batch, json_columns)))


def _write_json(rows: LazyRecordBatchIterator, write: Write, *, json_columns: frozenset[str]) -> None:
    """One array, whose members come as the rows do, each on a line."""
    before = b"[\n"
    for batch in rows:
        objects = _objects(batch, json_columns)
        if objects:
            write(before + b",\n".join(map(ENCODER.encode, objects)))
            before = b",\n"
    write(b"[]\n" if before == b"[\n" else b"\n]\n")


def _objects(batch: pa.RecordBatch, json_columns: frozenset[str]) -> list[dict[str, Any]]:  # Any: JSON
    names = batch.schema.names
    columns = (
        _raw_json(column) if name in json_columns else json_values(column)
        for name, column in zip(names, batch.columns, strict=True)
    )
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _raw_json(column: pa.Array) -> list[msgspec.Raw | None]:
    return [None if text is None else msgspec.Raw(text.encode()) for text in column.to_pylist()]


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
            nameless = nameless_in(target.parent)
            with nameless or partial.open("xb") as file:
                if target.exists():
                    os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
                yield file.write
                if nameless is not None:
                    name_file(nameless, partial)
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
    """The column as Arrow's CSV can write it, by `engines/json_values.py` where Arrow cannot by itself."""
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
