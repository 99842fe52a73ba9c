"""Sort more rows than fit in memory: sorted runs on disk, merged a slice at a time, never a row at a time.

Why: a checkpoint lists files in any order, a sidecar lists them by time, and ten million rows are gigabytes.
Contract: sorted as sort_keys.py says, in either direction; memory stays within about `memory_bytes` however
many rows come (a row alone may be larger). With `rows_max` rows that come behind so many others may be
dropped, never one of two that are equal. The runs are temporary files without a name, so that nothing leaves
them behind: no error, no kill.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import IO

import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.sidecar.order.sort_keys import key_at, sort_order
from lazydelta.sidecar.order.sorted_merge import cut, merge_sorted
from lazydelta.storage.nameless_file import arrow_file, disk_trouble_named, nameless_file

_RUNS_MAX = 128  # of like length; with more they are merged to one longer run
_BLOCKS_PER_MEMORY = 512  # a run is read back in blocks of this share of the memory
_WRITE_BUFFER_BYTES = 1 * limits.MIB
_READ_BUFFER_BYTES = 64 * limits.KIB


class ExternalSorter:
    """Takes batches in any order, gives them back sorted, once; then it must be closed."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        memory_bytes: int,
        *,
        descending: bool = False,
        rows_max: int | None = None,
    ) -> None:
        assert rows_max is None or rows_max > 0
        self.row_count = 0
        self._schema = schema
        self._keys = tuple(keys)
        self._memory_bytes = memory_bytes
        self._descending = descending
        self._rows_max = rows_max
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._runs: list[list[IO[bytes]]] = []  # by length, the shortest first

    @property
    def is_on_disk(self) -> bool:
        """Whether some rows went to disk."""
        return bool(self._runs)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        if batch.num_rows == 0:
            return
        self.row_count += batch.num_rows
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        # Half: joining them for the sort needs them twice.
        if self._waiting_bytes > self._memory_bytes // 2 and not self._shrunk():
            self._spill()

    def sorted_batches(self, batch_rows: int) -> Batches:
        """All rows in order, at most `batch_rows` at a time; nothing can be added any more."""
        if self._runs:
            self._spill()
            runs = [run for of_length in self._runs for run in of_length]
            with closing(self._merged(runs)) as merged:
                for rows in merged:
                    yield from cut(rows, batch_rows)
        elif self._waiting:
            rows, self._waiting = pa.concat_batches(self._waiting), []
            yield from _taken(rows, self._order(rows), batch_rows)

    def close(self) -> None:
        """Forget the rows; what is on disk goes."""
        self._waiting = []
        while self._runs:
            for run in self._runs.pop():
                run.close()

    def _order(self, rows: pa.RecordBatch) -> pa.UInt64Array:
        order = sort_order(rows, self._keys, descending=self._descending)
        if self._rows_max is None or len(order) <= self._rows_max:
            return order
        count = self._rows_max
        last = key_at(rows, order[count - 1].as_py(), self._keys)
        while count < len(order) and key_at(rows, order[count].as_py(), self._keys) == last:
            count += 1
        return order.slice(0, count)

    def _shrunk(self) -> bool:
        """Drop waiting rows that more than `rows_max` others precede; whether that made enough room."""
        if self._rows_max is None or sum(rows.num_rows for rows in self._waiting) <= self._rows_max:
            return False
        rows = pa.concat_batches(self._waiting)
        rows = rows.take(self._order(rows))
        self._waiting, self._waiting_bytes = [rows], rows.nbytes
        return bool(self._waiting_bytes < self._memory_bytes // 4)

    def _spill(self) -> None:
        if not self._waiting:
            return
        rows = pa.concat_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        block_rows = _rows_of(rows, self._memory_bytes // _BLOCKS_PER_MEMORY)
        self._put(0, self._written(_taken(rows, self._order(rows), block_rows)))

    def _put(self, length: int, run: IO[bytes]) -> None:
        """Keep a run; too many of one length become one of the next."""
        while len(self._runs) <= length:
            self._runs.append([])
        self._runs[length].append(run)
        if len(self._runs[length]) < _RUNS_MAX:
            return
        block_bytes = self._memory_bytes // _BLOCKS_PER_MEMORY
        merged = self._merged(self._runs[length])
        longer = self._written(piece for rows in merged for piece in cut(rows, _rows_of(rows, block_bytes)))
        for old in self._runs[length]:
            old.close()
        self._runs[length] = []
        self._put(length + 1, longer)

    def _merged(self, runs: Sequence[IO[bytes]]) -> Batches:
        blocks = [_run_blocks(run) for run in runs]
        return merge_sorted(
            blocks, self._keys, slice_bytes=self._memory_bytes // 4, descending=self._descending
        )

    def _written(self, blocks: Iterable[pa.RecordBatch]) -> IO[bytes]:
        with disk_trouble_named("sorted rows"):
            run = nameless_file("lazydelta-sort-")  # see `close`
            try:
                _write_blocks(run, self._schema, blocks)
            except BaseException:
                run.close()
                raise
            return run


def _taken(rows: pa.RecordBatch, order: pa.UInt64Array, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows in that order, copied a piece at a time: a whole copy would double the memory."""
    for start in range(0, len(order), batch_rows):
        yield rows.take(order.slice(start, batch_rows))


def _rows_of(rows: pa.RecordBatch, size_bytes: int) -> int:
    row_bytes: int = max(int(rows.nbytes) // rows.num_rows, 1)
    return max(1, size_bytes // row_bytes)


def _write_blocks(run: IO[bytes], schema: pa.Schema, blocks: Iterable[pa.RecordBatch]) -> None:
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with (
        pa.BufferedOutputStream(arrow_file(run, "w"), _WRITE_BUFFER_BYTES) as sink,
        pa.ipc.new_stream(sink, schema, options=options) as writer,
    ):
        for block in blocks:
            writer.write_batch(block)


def _run_blocks(run: IO[bytes]) -> Batches:
    run.seek(0)
    source = pa.BufferedInputStream(arrow_file(run, "r"), _READ_BUFFER_BYTES)
    options = pa.ipc.IpcReadOptions(use_threads=False)
    with pa.ipc.open_stream(source, options=options) as reader:
        yield from reader
