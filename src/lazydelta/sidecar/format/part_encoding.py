"""How the columns of a part lie in Parquet: encodings, compression, statistics, the footer's own keys.

Why: one place decides what keeps files and footers small, for parts and for delta files alike.
Contract: plain Parquet that DuckDB, Polars, pyarrow and Spark open; timestamps are microseconds, decimals
decimals. Row-group statistics only where a filter can use them. Page checksums, so that damage is met.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.sidecar.format.layout import UNCOMPARED_COLUMNS, described, field_kind, field_path

COLUMNS_KEY = b"lazydelta.columns"  # JSON: name → [kind, *path], for columns that stand for the table's
NAN_KEY = b"lazydelta.nan_counts"  # JSON: name → NaNs per row group, for columns that have any
_ZSTD_LEVEL = 3


def open_writer(sink: pa.BufferOutputStream, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer for these columns."""
    plain = pa.schema([field.remove_metadata() for field in schema])
    writer = pq.ParquetWriter(
        sink, plain, compression="zstd", compression_level=_ZSTD_LEVEL, **_options(schema)
    )
    # Not as the schema's metadata: pyarrow keeps that only together with a copy of the whole Arrow schema.
    writer.add_key_value_metadata({COLUMNS_KEY: columns_key(schema)})
    return writer


def row_groups_of(batches: Iterable[pa.RecordBatch], row_group_rows: int) -> Iterator[pa.Table]:
    """The rows again, in tables of exactly that many rows; the last one may have fewer."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        rest = batch
        while count + rest.num_rows >= row_group_rows:
            taken = row_group_rows - count
            yield pa.Table.from_batches([*waiting, rest.slice(0, taken)])
            waiting, count, rest = [], 0, rest.slice(taken)
        if rest.num_rows:
            waiting.append(rest)
            count += rest.num_rows
    if count:
        yield pa.Table.from_batches(waiting)


def columns_key(schema: pa.Schema) -> bytes:
    """What each column stands for, as the footer keeps it."""
    found = {field.name: [field_kind(field), *path] for field in schema if (path := field_path(field))}
    return msgspec.json.encode(found)


def described_schema(schema: pa.Schema, keys: dict[bytes, bytes]) -> pa.Schema:
    """A file's schema with the roles and paths that its footer tells; `msgspec.DecodeError` if garbled."""
    roles = msgspec.json.decode(keys.get(COLUMNS_KEY, b"{}"), type=dict[str, list[str]])
    fields = []
    for field in schema:
        kind, *path = roles.get(field.name, [""])
        if pa.types.is_map(field.type):  # Parquet names the entries its own way
            plain = pa.field(field.name, pa.map_(field.type.key_type, field.type.item_type))
        else:
            plain = field.remove_metadata()
        fields.append(described(plain, kind, path) if path else plain)
    return pa.schema(fields)


def footer_length(body: bytes) -> int:
    """The bytes of a Parquet file from where its footer begins to its end."""
    return int.from_bytes(body[-8:-4], "little") + 8


def footer_crc32(body: bytes) -> int:
    """The checksum of those bytes."""
    return zlib.crc32(memoryview(body)[len(body) - footer_length(body) :])


def _options(schema: pa.Schema) -> dict[str, Any]:  # Any: keyword arguments of pyarrow's
    return {
        # A row group's values hardly repeat, and where they do zstd finds them: dictionaries only cost.
        "use_dictionary": False,
        "column_encoding": {leaf: encoding for field in schema for leaf, encoding in _encodings(field)},
        "write_statistics": [field.name for field in schema if _is_compared(field)],
        "write_page_checksum": True,
        "store_schema": False,
        "version": "2.6",
        "data_page_version": "1.0",
    }


def _encodings(field: pa.Field) -> list[tuple[str, str]]:
    """Sorted rows have near neighbours: numbers and texts are told by their difference to the one before."""
    if pa.types.is_map(field.type):
        return [(f"{field.name}.key_value.{leaf}", "DELTA_BYTE_ARRAY") for leaf in ("key", "value")]
    if pa.types.is_string(field.type) or pa.types.is_binary(field.type):
        return [(field.name, "DELTA_BYTE_ARRAY")]
    is_whole = pa.types.is_integer(field.type) or pa.types.is_temporal(field.type)
    return [(field.name, "DELTA_BINARY_PACKED" if is_whole else "PLAIN")]


def _is_compared(field: pa.Field) -> bool:
    return field.name not in UNCOMPARED_COLUMNS and field_kind(field) != "raw_partition"
