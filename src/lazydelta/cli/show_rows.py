"""Rows of any columns, written as they come: a table, CSV, JSON lines or Parquet.

Contract: each batch is written before the next is asked for. A file appears under its name when it is
complete: until then it has a name of its own beside it, and an error leaves nothing behind.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.cli.show_files import plain_cells
from lazydelta.cli.streams import AlignedRows, is_terminal, write_bytes
from lazydelta.cli.text import one_line
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.scan.values import values_of

FORMATS = ("table", "csv", "jsonl", "parquet")
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_ROW_GROUP_ROWS, _ROW_GROUP_BYTES = 131_072, 32 * limits.MIB  # of Parquet, whichever comes first
_TERMINAL_ROWS = 64  # printed at once
# Sums of whole numbers are decimals here; as JSON numbers they keep their digits.
_ENCODER = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
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
    if output is None:
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
            table.write(list(zip(*(_texts(column) for column in part.columns), strict=True)))


def _write_csv(rows: LazyRecordBatchIterator, write: Write) -> None:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(rows.schema.names)
    write(header.getvalue().encode())
    flat = pa.schema([pa.field(field.name, _flat_type(field.type)) for field in rows.schema])
    options = pyarrow.csv.WriteOptions(include_header=False)
    for batch in rows:
        columns = [_flat(column) for column in batch.columns]
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(pa.RecordBatch.from_arrays(columns, schema=flat), sink, options)
        write(sink.getvalue().to_pybytes())


def _write_jsonl(rows: LazyRecordBatchIterator, write: Write) -> None:
    for batch in rows:
        names = batch.schema.names
        columns = (_json_values(column) for column in batch.columns)
        write(
            _ENCODER.encode_lines([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
        )


def _write_parquet(rows: LazyRecordBatchIterator, write: Write) -> None:
    with pq.ParquetWriter(pa.PythonFile(_Sink(write), mode="w"), rows.schema, compression="zstd") as writer:
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
    """Write to a neighbour, which takes the name at the end."""
    target = Path(output)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as file:
            yield file.write
        partial.replace(target)
    except OSError as problem:
        raise LazyDeltaError(
            f"the file cannot be written: {problem.strerror}", output, "make room, or name another one"
        ) from problem
    finally:
        with suppress(OSError):
            partial.unlink()


def _texts(column: pa.Array) -> list[str]:
    if not pa.types.is_nested(column.type):
        return plain_cells(column.cast(pa.string()) if pa.types.is_temporal(column.type) else column)
    return ["" if value is None else one_line(value) for value in _rendered(column)]


def _json_values(column: pa.Array) -> list[Any]:  # Any: what JSON can hold
    """The values as JSON has them: moments are text, and so is what is no number."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return list(pc.replace_substring(column.cast(pa.string()), " ", "T").to_pylist())
    values = values_of(column)
    return [_number(value) for value in values] if pa.types.is_floating(column.type) else values


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _flat(column: pa.Array) -> pa.Array:
    return pa.array(_rendered(column), pa.string()) if _is_rendered(column.type) else column


def _rendered(column: pa.Array) -> list[str | None]:
    """Nested values as JSON, others as Python writes them."""
    text = (lambda value: _ENCODER.encode(value).decode()) if pa.types.is_nested(column.type) else str
    return [None if value is None else text(value) for value in values_of(column)]


def _is_rendered(kind: pa.DataType) -> bool:
    """What Arrow's CSV cannot write."""
    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_interval(kind)
        or pa.types.is_duration(kind)
        or pa.types.is_dictionary(kind)
        or pa.types.is_null(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def _flat_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if _is_rendered(kind) else kind


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
