"""Rows split by a hash of their path, on disk where they do not fit: the two sides of a comparison.

Why: to compare ten million rows with ten million others in any order, only rows of equal paths have to meet.
Split by the same hash, partition n of one side meets partition n of the other, and each fits memory.
Contract: rows of one `KeyPartitions` have one schema with a column `path` without nulls; memory is about
`memory_bytes` while rows are added, and one partition when one is read. What is on disk has no name, and is
gone with `close`, or with the process.
"""

from __future__ import annotations

from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lazydelta.protocol.paths import string_parts
from lazydelta.storage.nameless_file import arrow_file, disk_trouble_named, nameless_file

_ROWS_PER_PARTITION = 1 << 16
_PARTITIONS_MAX = 4096
_MULTIPLIERS = np.random.default_rng(seed=7).integers(0, 1 << 63, 4096, np.uint64) * np.uint64(2) + np.uint64(
    1
)
_HASH_SHIFT = np.uint64(32)  # the high bits of a product are the well mixed ones
_WHAT = "rows"
_WRITE_BUFFER_BYTES = 1 << 20
_WRITE = pa.ipc.IpcWriteOptions(compression="lz4")


class KeyPartitions:
    """One side of a comparison."""

    def __init__(self, schema: pa.Schema, *, count: int, memory_bytes: int) -> None:
        self.row_count = 0
        self._schema = schema
        self._count = count
        self._memory_bytes = memory_bytes
        self._held: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
        self._held_bytes = 0
        self._runs: list[IO[bytes]] = []  # each holds one batch per partition, in order

    @property
    def is_on_disk(self) -> bool:
        """Whether the rows outgrew the memory."""
        return bool(self._runs)

    def add(self, rows: pa.RecordBatch) -> None:
        """Put these rows where their paths belong."""
        if rows.num_rows == 0:
            return
        self.row_count += rows.num_rows
        self._held_bytes += rows.nbytes
        if self._count == 1:
            self._held[0].append(rows)
        else:
            numbers = path_hashes(rows.column("path")) % np.uint64(self._count)
            order = np.argsort(numbers, kind="stable")
            sorted_rows = rows.take(pa.array(order))
            ends = np.searchsorted(numbers[order], np.arange(self._count + 1, dtype=np.uint64))
            for number in np.flatnonzero(np.diff(ends)):
                start = int(ends[number])
                self._held[number].append(sorted_rows.slice(start, int(ends[number + 1]) - start))
        if self._held_bytes > self._memory_bytes:
            self._spill()

    def partition(self, number: int) -> pa.Table:
        """The rows of one partition."""
        batches = list(self._held[number])
        for run in self._runs:
            with disk_trouble_named(_WHAT), arrow_file(run, "r") as file:
                batches.append(pa.ipc.open_file(file).get_batch(number))
        return pa.Table.from_batches(batches, self._schema)

    def close(self) -> None:
        """Forget the rows and delete the files."""
        self._held = [[] for _ in range(self._count)]
        runs, self._runs = self._runs, []
        for run in runs:
            run.close()

    def _spill(self) -> None:
        with disk_trouble_named(_WHAT):
            run = nameless_file("lazydelta-keys-")
            self._runs.append(run)  # closed with the others, whatever happens
            with (
                pa.BufferedOutputStream(arrow_file(run, "w"), _WRITE_BUFFER_BYTES) as sink,
                pa.ipc.new_file(sink, self._schema, options=_WRITE) as writer,
            ):
                for batches in self._held:
                    writer.write_batch(_one_batch(batches, self._schema))
        self._held = [[] for _ in range(self._count)]
        self._held_bytes = 0


def partition_count(rows: int) -> int:
    """How many partitions keep each of them small."""
    return min(max(1, -(-rows // _ROWS_PER_PARTITION)), _PARTITIONS_MAX)


def path_hashes(paths: pa.Array) -> npt.NDArray[np.uint64]:
    """A hash over every byte of each path: a sum of bytes, each times the random number of its place."""
    offsets, data = string_parts(paths)
    text = data[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)
    offsets = offsets - offsets[0]
    places = np.arange(len(text)) - np.repeat(offsets[:-1], np.diff(offsets))
    sums = np.zeros(len(text) + 1, np.uint64)
    np.cumsum(text * _MULTIPLIERS[places % len(_MULTIPLIERS)], out=sums[1:])
    hashes: npt.NDArray[np.uint64] = (sums[offsets[1:]] - sums[offsets[:-1]]) >> _HASH_SHIFT
    return hashes


def _one_batch(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    merged = table.to_batches()
    return merged[0] if merged else pa.RecordBatch.from_pylist([], schema=schema)
