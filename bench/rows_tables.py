"""Tables of real rows for the benchmark of rows: files of a given size, groups of a given number.

Columns are what telemetry has, and hard to compress: a table of so many bytes must be decoded in full.
Contract: a table is made once and kept in the cache; its description lies beside it, written last. A table
with deletion vectors is a second log over links to the same files: of each file the first rows are deleted.
"""

from __future__ import annotations

import os
import shutil
import struct
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.actions import line
from bench.data import dv_bytes
from bench.fixed_text import uuid_bytes, uuid_z85
from bench.spec import TODAY_US, compact
from bench.tables import alone_at, cache_folder

ROW_BYTES = 27.5  # of a Parquet file, about
FEW_GROUPS = 200
ROWS_DELETED = 4  # of each file of a table with deletion vectors
_COLUMNS = (
    ("site", "string"),
    ("device", "long"),
    ("event_time", "timestamp"),
    ("value", "double"),
    ("reading", "integer"),
)


class RowsSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One table."""

    files: int
    file_bytes: int
    devices: int  # distinct values of `device`; `site` has `FEW_GROUPS`
    row_group_rows: int = 1_048_576  # 0: one row group a file
    seed: int = 1

    @property
    def rows_per_file(self) -> int:
        """What fills a file."""
        return int(self.file_bytes / ROW_BYTES)

    @property
    def name(self) -> str:
        """A name that differs wherever two specs do."""
        parts = (self.files, self.file_bytes, self.devices, self.row_group_rows, self.seed)
        return "rows-" + "-".join(map(str, parts))


class RowsTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table on disk and what a reader must find in it."""

    location: str
    rows: int
    devices: int
    data_bytes: int
    files: list[str]  # data files, by name

    @property
    def path(self) -> Path:
        """The table's folder."""
        return Path(self.location)

    @property
    def data_paths(self) -> list[str]:
        """Data files as a Parquet reader takes them."""
        return [str(self.path / name) for name in self.files]


def rows_table(spec: RowsSpec, *, folder: Path | None = None) -> RowsTable:
    """The table of a spec, made if it is not there yet."""
    path = (folder or cache_folder() / "bench") / spec.name
    about = path.with_name(path.name + ".json")
    with alone_at(path):
        if not about.exists():
            shutil.rmtree(path, ignore_errors=True)
            about.write_bytes(msgspec.json.encode(_make(spec, path)))
    made = msgspec.json.decode(about.read_bytes(), type=RowsTable)
    return msgspec.structs.replace(made, location=str(path))  # the cache may have moved since


def with_deletion_vectors(table: RowsTable) -> RowsTable:
    """The same files under a log that deletes the first rows of each."""
    path = table.path.with_name(table.path.name + "-deleted")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name in table.files:
        os.link(table.path / name, path / name)
    vectors = {name: _write_vector(path, number) for number, name in enumerate(table.files)}
    _write_log(path, table.files, vectors)
    deleted = ROWS_DELETED * len(table.files)
    return msgspec.structs.replace(table, location=str(path), rows=table.rows - deleted)


def warm_up(table: RowsTable) -> None:
    """Bring the data into the page cache, so that the first reader does not pay for all."""
    for path in table.data_paths:
        with Path(path).open("rb") as file:
            while file.read(1 << 24):
                pass


def _make(spec: RowsSpec, path: Path) -> RowsTable:
    path.mkdir(parents=True)
    seen = np.zeros(spec.devices, np.bool_)
    names = []
    for number in range(spec.files):
        rows = _rows(spec, number)
        seen[rows.column("device").to_numpy()] = True
        names.append(f"part-{number:05d}.parquet")
        group_rows = spec.row_group_rows or spec.rows_per_file
        pq.write_table(rows, path / names[-1], compression="snappy", row_group_size=group_rows)
    _write_log(path, names, {})
    return RowsTable(
        location=str(path),
        rows=spec.files * spec.rows_per_file,
        devices=int(np.count_nonzero(seen)),
        data_bytes=sum((path / name).stat().st_size for name in names),
        files=names,
    )


def _rows(spec: RowsSpec, number: int) -> pa.Table:
    random, count = np.random.default_rng([spec.seed, number]), spec.rows_per_file
    sites = pa.array([f"site-{site:03d}" for site in range(FEW_GROUPS)])
    steps = random.integers(0, 2_000_000, count)
    moments = TODAY_US + number * 1_000_000 + np.cumsum(steps)
    return pa.table(
        {
            "site": sites.take(pa.array(random.integers(0, FEW_GROUPS, count))),
            "device": pa.array(random.integers(0, spec.devices, count)),
            "event_time": pa.array(moments).cast(pa.timestamp("us", tz="UTC")),
            "value": pa.array(random.random(count) * 1_000),
            "reading": pa.array(random.integers(0, 1 << 30, count, dtype=np.int32)),
        }
    )


def _write_log(path: Path, names: list[str], vectors: dict[str, dict[str, Any]]) -> None:
    log = path / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / f"{0:020d}.json").write_bytes(b"".join(_actions(path, names, vectors)))


def _actions(path: Path, names: list[str], vectors: dict[str, dict[str, Any]]) -> Iterator[bytes]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _COLUMNS]
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    plain = {"minReaderVersion": 1, "minWriterVersion": 2}
    yield line("protocol", {"minReaderVersion": 3, "minWriterVersion": 7, **features} if vectors else plain)
    metadata = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, path.name)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": compact({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.enableDeletionVectors": "true"} if vectors else {},
        "createdTime": TODAY_US // 1000,
    }
    yield line("metaData", metadata)
    for name in names:
        file = path / name
        count = pq.read_metadata(file).num_rows
        add: dict[str, Any] = {
            "path": name,
            "partitionValues": {},
            "size": file.stat().st_size,
            "modificationTime": TODAY_US // 1000,
            "dataChange": True,
            "stats": compact({"numRecords": count}),
        }
        yield line("add", add | ({"deletionVector": vectors[name]} if vectors else {}))


def _write_vector(path: Path, number: int) -> dict[str, Any]:
    """A file of its own for each vector: format version, then size, bitmap and checksum."""
    words = np.array([0], np.uint64), np.array([number], np.uint64)
    unique = uuid.UUID(bytes=uuid_bytes(*words).tobytes())
    body = dv_bytes(ROWS_DELETED)
    content = b"\x01" + struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    (path / f"deletion_vector_{unique}.bin").write_bytes(content)
    return {
        "storageType": "u",
        "pathOrInlineDv": uuid_z85(*words).tobytes().decode(),
        "offset": 1,
        "sizeInBytes": len(body),
        "cardinality": ROWS_DELETED,
    }
