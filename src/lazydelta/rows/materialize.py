"""Materializer: rows held until all of them are there, so that the last can come first.

Why: Parquet decodes forwards. The rows of a segment go out backwards only after its last row was decoded.
Contract: gives the rows of a stream in reverse, batch by batch; up to `limits.MATERIALIZE_BYTES` are held in
memory, as far as the process has it, further ones in a file without a name that is gone when the stream is
done, closed or dropped, and with the process.
"""

from __future__ import annotations

import mmap
from contextlib import ExitStack, closing

import numpy as np
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.memory_share import MemoryShare
from lazydelta.storage.nameless_file import arrow_file, disk_trouble_named, nameless_file

_WRITE_BUFFER_BYTES = 1 * limits.MIB


def backwards(batches: Batches, share: MemoryShare | None = None) -> Batches:
    """The same rows, last first; those held in memory are taken from the share."""
    share = share or MemoryShare()
    taken = 0
    with ExitStack() as stack:
        stack.enter_context(closing(batches))
        stack.callback(lambda: share.give(taken))
        held: list[pa.RecordBatch] = []
        spilled: list[pa.RecordBatch] = []
        held_bytes = 0
        for rows in batches:
            held.append(rows)
            held_bytes += rows.nbytes
            has_room = share.try_take(rows.nbytes)
            taken += rows.nbytes if has_room else 0
            if held_bytes > limits.MATERIALIZE_BYTES or not has_room:
                spilled = _written(held, batches)
                held = []
                break
        for rows in (*reversed(spilled), *reversed(held)):
            yield _reversed(rows)


def _written(held: list[pa.RecordBatch], more: Batches) -> list[pa.RecordBatch]:
    """These batches and those to come, in a file; what is returned is mapped, not in memory."""
    with disk_trouble_named("rows"), nameless_file("lazydelta-rows-") as file:
        with (
            pa.BufferedOutputStream(arrow_file(file, "w"), _WRITE_BUFFER_BYTES) as sink,
            pa.ipc.new_file(sink, held[0].schema) as writer,
        ):
            while held:
                writer.write_batch(held.pop(0))
            for rows in more:
                writer.write_batch(rows)
        # The mapping keeps the file, and the batches keep the mapping.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
    return [reader.get_batch(at) for at in range(reader.num_record_batches)]


def _reversed(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.take(pa.array(np.arange(rows.num_rows - 1, -1, -1)))
