"""Sort more rows than fit in memory: sorted runs on disk, merged a slice at a time, never a row at a time.

Why: a checkpoint lists files in any order, a sidecar lists them by time, and ten million rows are gigabytes.
Contract: ascending, nulls first, strings by their bytes; memory stays within about `memory_bytes` however
many rows come (a row alone may be larger); the runs lie in a temporary folder that is gone after `close`,
also when something fails.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from lazydelta.errors import StorageError
from lazydelta.log.file_rows import Batches
from lazydelta.upkeep.sorted_merge import cut, merge_sorted, sort_order

_RUNS_MAX = 128  # merged at once; more are merged to one run first
_BLOCKS_PER_MEMORY = 512  # a run is read back in blocks of this share of the memory


class ExternalSorter:
    """Takes batches in any order, gives them back sorted, once. A context manager."""

    def __init__(
        self, schema: pa.Schema, keys: Sequence[str], memory_bytes: int, folder: str | None = None
    ) -> None:
        self.row_count = 0
        self._schema = schema
        self._keys = tuple(keys)
        self._memory_bytes = memory_bytes
        self._parent = folder
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._runs: list[Path] = []
        self._runs_made = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        if self._waiting_bytes > self._memory_bytes // 2:
            self._spill()

    def sorted_batches(self, batch_rows: int) -> Batches:
        """All rows in order, at most `batch_rows` at a time; nothing can be added any more."""
        if self._runs:
            self._spill()
            while len(self._runs) > _RUNS_MAX:
                self._merge_runs()
            sources = [_run_blocks(path) for path in self._runs]
            slice_bytes = self._memory_bytes // 4
            with closing(merge_sorted(sources, self._keys, slice_bytes=slice_bytes)) as merged:
                for rows in merged:
                    yield from cut(rows, batch_rows)
        elif self._waiting:
            rows, self._waiting = pa.concat_batches(self._waiting), []
            yield from _taken(rows, sort_order(rows, self._keys), batch_rows)

    def close(self) -> None:
        """Forget the rows and delete the runs."""
        self._waiting, self._runs = [], []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _spill(self) -> None:
        if not self._waiting:
            return
        rows = pa.concat_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        block_rows = _rows_of(rows, self._memory_bytes // _BLOCKS_PER_MEMORY)
        self._write_run(_taken(rows, sort_order(rows, self._keys), block_rows))

    def _merge_runs(self) -> None:
        """The oldest runs become one, the newest in line."""
        bunch, self._runs = self._runs[:_RUNS_MAX], self._runs[_RUNS_MAX:]
        block_bytes = self._memory_bytes // _BLOCKS_PER_MEMORY
        merged = merge_sorted(
            [_run_blocks(path) for path in bunch], self._keys, slice_bytes=self._memory_bytes // 4
        )
        self._write_run(piece for rows in merged for piece in cut(rows, _rows_of(rows, block_bytes)))
        for path in bunch:
            path.unlink()

    def _write_run(self, blocks: Iterable[pa.RecordBatch]) -> None:
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="lazydelta-sort-", dir=self._parent)
            self._runs_made += 1
            path = Path(self._folder.name) / f"run-{self._runs_made:06d}.arrow"
            options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
            with (
                pa.OSFile(str(path), "wb") as sink,
                pa.ipc.new_stream(sink, self._schema, options=options) as writer,
            ):
                for block in blocks:
                    writer.write_batch(block)
        except OSError as trouble:
            raise StorageError(
                f"a sorted run could not be written to disk: {trouble}",
                self._parent or tempfile.gettempdir(),
                "free some space there, or name another folder by TMPDIR",
            ) from trouble
        self._runs.append(path)


def _taken(rows: pa.RecordBatch, order: pa.UInt64Array, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows in that order, copied a piece at a time: a whole copy would double the memory."""
    for start in range(0, len(order), batch_rows):
        yield rows.take(order.slice(start, batch_rows))


def _rows_of(rows: pa.RecordBatch, size_bytes: int) -> int:
    row_bytes: int = max(int(rows.nbytes) // rows.num_rows, 1)
    return max(1, size_bytes // row_bytes)


def _run_blocks(path: Path) -> Batches:
    options = pa.ipc.IpcReadOptions(use_threads=False)
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source, options=options) as reader:
        yield from reader
