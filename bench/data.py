"""Real data files and deletion vectors behind a generated log, for readers that open them.

Why: some readers tell of files only by reading rows. Contract: a file has the size, the row count and the
bounds that the log says; the bytes between its column chunks and its footer are a hole, so a declared
megabyte costs a few kilobytes of disk. One Python step per file: for small tables, or the newest commit.
Spec: PROTOCOL.md, "Deletion Vector Format".
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.files import Files, as_double
from bench.fixed_text import Ints, uuid_bytes
from bench.history import CommitPlan, History, Key
from bench.spec import TableSpec

_DV_MAGIC = 1681511377
_ROARING_NO_RUNS = 12346


def write_data(spec: TableSpec, out: Path, history: History) -> None:
    """Write the data the spec asks for: none, of the newest commit, or all; deletion vectors with either."""
    numbers, deleted = _wanted(spec, history)
    for number in sorted(numbers):
        _write_file(spec, out, number)
    for number, generation in sorted(deleted):
        _write_dv(spec, out, number, generation)


def write_numbered(spec: TableSpec, out: Path, numbers: Iterable[int], generations: Iterable[int]) -> None:
    """Write these files, where they are not there, and the deletion vectors of those that have one."""
    for number, generation in zip(numbers, generations, strict=True):
        path = out / Files(spec, np.array([number])).path_text().tobytes().decode()
        if not path.exists():
            _write_file(spec, out, number)
        if generation:
            _write_dv(spec, out, number, generation)


def dv_bytes(row_count: int) -> bytes:
    """The serialised set of the rows 0 to `row_count` - 1: one 64-bit bitmap with one array container."""
    rows = struct.pack(f"<{row_count}H", *range(row_count))
    container = struct.pack("<IIHHI", _ROARING_NO_RUNS, 1, 0, row_count - 1, 16) + rows
    return struct.pack("<IQI", _DV_MAGIC, 1, 0) + container


def _wanted(spec: TableSpec, history: History) -> tuple[set[int], set[Key]]:
    if spec.data == "none":
        return set(), set()
    commits = history.commits if spec.data == "all" else history.commits[-1:]
    numbers = {number for commit in commits for number in _named_by(commit)}
    # Some readers load every deletion vector before they tell of the first file.
    deleted = {(number, after) for commit in history.commits for number, _, after in commit.dv_updates}
    if spec.data == "all":
        numbers |= set(range(spec.files))
    if spec.checkpoint_dv_every:
        everything = np.arange(spec.files)
        with_dv = everything[Files(spec, everything).base_generation > 0]
        deleted |= {(number, 1) for number in with_dv.tolist()}
    return numbers, deleted


def _named_by(commit: CommitPlan) -> list[int]:
    again = [number for number, _ in commit.readds] + [number for number, *_ in commit.dv_updates]
    return [*commit.adds.tolist(), *again]


def _write_file(spec: TableSpec, out: Path, number: int) -> None:
    files = Files(spec, np.array([number]))
    path = out / files.path_text().tobytes().decode()
    path.parent.mkdir(parents=True, exist_ok=True)
    sink = pa.BufferOutputStream()
    pq.write_table(_rows(files), sink, compression="snappy")
    content = sink.getvalue().to_pybytes()
    tail = int.from_bytes(content[-8:-4], "little") + 8
    size = int(files.size[0])
    assert len(content) <= size, "a data file outgrew the size its log entry declares"
    with path.open("wb") as file:
        file.write(content[:-tail])
        file.seek(size - tail)
        file.write(content[-tail:])


def _rows(files: Files) -> pa.Table:
    """The file's rows: the first has the smallest values, the last the greatest."""
    spec, count = files.spec, int(files.num_records[0])

    def spread(low: Ints, high: Ints) -> Ints:
        steps = np.arange(count) * (int(high[0]) - int(low[0])) // max(count - 1, 1)
        return int(low[0]) + steps

    device = spread(files.device_min, files.device_max)
    time_ms = spread(files.event_min_ms, files.event_max_ms)
    columns: dict[str, pa.Array] = {
        "device_id": pa.array([f"sensor-{number:05d}" for number in device.tolist()]),
        "event_time": pa.array(time_ms * 1000).cast(pa.timestamp("us", tz="UTC")),
        "value": pa.array(as_double(spread(files.value_min, files.value_max))),
        "status": pa.array(np.arange(count, dtype=np.int32) % 5),
        "message": pa.array(["ok"] * count),
    }
    if "date" not in spec.partition_columns:
        columns["date"] = pa.array(np.full(count, files.days[0], dtype=np.int32)).cast(pa.date32())
    return pa.table(columns)


def _write_dv(spec: TableSpec, out: Path, number: int, generation: int) -> None:
    files = Files(spec, np.array([number]))
    unique = uuid.UUID(bytes=uuid_bytes(*files.dv_words(np.array([generation]))).tobytes())
    body = dv_bytes(generation)
    # Format version, then size, bitmap and checksum, these two big end first.
    content = b"\x01" + struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    (out / f"deletion_vector_{unique}.bin").write_bytes(content)
