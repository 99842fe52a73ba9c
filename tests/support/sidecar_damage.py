"""Damage to sidecars, made for real on disk, and tables to make it on.

Contract: `rewrite_part` leaves a part that any reader takes for whole: its sizes, footer and row groups are
put right in the manifest, so that only what the caller changed is wrong.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig, row_group_span
from lazydelta.storage import Storage, open_storage
from tests.support.actions import add, stats
from tests.support.keys import Action
from tests.support.table_builder import TableBuilder

CONFIG = SidecarConfig(row_group_rows=8)


def numbered_file(number: int, **more: Any) -> Action:
    """A file whose partition and statistics follow from its number."""
    told = stats(
        10 + number,
        low={"value": number * 0.5, "count": number, "device_id": f"d{number:04}"},
        high={"value": number * 0.5 + 1, "count": number + 9, "device_id": f"e{number:04}"},
        nulls={"value": 0, "count": number % 3},
    )
    given = {"partition": {"date": f"2026-02-{1 + number % 20:02}"}, "stats": told, "size": 1000 + number}
    return add(f"part-{number:05}.parquet", **(given | more))


def numbered_files(numbers: Sequence[int]) -> list[Action]:
    """Several of them."""
    return [numbered_file(number) for number in numbers]


def storage_of(table: TableBuilder | Path) -> Storage:
    """The store of a table in a folder."""
    return open_storage(str(table if isinstance(table, Path) else table.path), Settings())


def lazy_folder(table: TableBuilder) -> Path:
    """Where its sidecars lie."""
    return table.path / "_delta_log" / "_lazy"


def only(table: TableBuilder, pattern: str) -> Path:
    """The one file of the sidecar's folder that matches."""
    found = sorted(lazy_folder(table).glob(pattern))
    assert len(found) == 1, f"{pattern} matches {found}"
    return found[0]


def edit_manifest(
    table: TableBuilder, change: Callable[[Any], object], *, version: int | None = None
) -> None:
    """Change the manifest's JSON in place."""
    pattern = "*.manifest.json" if version is None else f"v{version:020}.manifest.json"
    path = only(table, pattern)
    body = json.loads(path.read_text("utf-8"))
    change(body)
    path.write_bytes(with_checksum(body))


def with_checksum(manifest: Mapping[str, Any]) -> bytes:
    """The manifest's JSON as text that ends with its checksum, whatever it says."""
    rest = {name: value for name, value in manifest.items() if name != "crc32"}
    text = json.dumps(rest, separators=(",", ":")).removesuffix("}").encode()
    return b'%s,"crc32":%d}' % (text, zlib.crc32(text))


def footer_length(body: bytes) -> int:
    """The bytes of a Parquet file from where its footer begins to its end."""
    return int.from_bytes(body[-8:-4], "little") + 8


def sealed(body: bytes) -> bytes:
    """The Parquet file with a checksum of its footer in front of the footer, as the format has it."""
    footer = body[-footer_length(body) :]
    return body[: -len(footer)] + b"LDFC" + zlib.crc32(footer).to_bytes(4, "little") + footer


def rewrite_part(table: TableBuilder, change: Callable[[pa.Table], pa.Table], *, part: int = 0) -> str:
    """Write a part anew with other rows, and put the manifest right about everything but them."""
    manifest = json.loads(only(table, "*.manifest.json").read_text("utf-8"))
    entry = manifest["parts"][part]
    path = lazy_folder(table) / entry["file"]
    with pq.ParquetFile(path) as file:
        keys = dict(file.metadata.metadata)
        groups = [file.read_row_group(index) for index in range(file.num_row_groups)]
    plain = pa.schema([field.remove_metadata() for field in groups[0].schema])
    rows = change(pa.concat_tables(groups)).cast(plain)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, plain, compression="zstd", write_page_checksum=True, store_schema=False
    ) as writer:
        writer.add_key_value_metadata(keys)
        for start in range(0, rows.num_rows, groups[0].num_rows):
            writer.write_table(rows.slice(start, groups[0].num_rows))
    body = sealed(sink.getvalue().to_pybytes())
    path.write_bytes(body)
    footer = pq.read_metadata(pa.BufferReader(body))

    def put_right(manifest: Any) -> None:
        entry = manifest["parts"][part]
        manifest["sidecar_size_bytes"] += len(body) - entry["size_bytes"]
        entry |= {"size_bytes": len(body), "footer_bytes": footer_length(body)}
        entry["footer_crc32"] = zlib.crc32(body[-footer_length(body) :])
        own = [group for group in manifest["row_groups"] if group.get("part", 0) == part]
        for index, group in enumerate(own):
            start, end = row_group_span(footer.row_group(index))
            group |= {"byte_offset": start, "byte_length": end - start}

    edit_manifest(table, put_right)
    return str(entry["file"])


def with_value(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    """A change that puts one value into one row."""

    def change(rows: pa.Table) -> pa.Table:
        column = rows.column(name).to_pylist()
        column[row] = value
        at = rows.schema.get_field_index(name)
        return rows.set_column(at, rows.schema.field(at), pa.array(column, rows.schema.field(at).type))

    return change
