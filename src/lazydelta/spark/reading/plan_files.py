"""Files into partitions: lazily, in order, each partition about as large as Spark's own would be.

Why: Spark makes a task of each partition; one that is too large starves the others, one too small costs
more to start than to run. Contract: files keep their order, so that neighbours in time stay together; a
file's weight is its size and what it costs to open, as Spark counts. No more than one batch of files and the
packed chunks are held; see `spill` for how much of those.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.spark.reading.file_chunks import CHUNK_SCHEMA, Chunk, chunk_columns, packed
from lazydelta.spark.reading.spill import ChunkKeeper

_CHUNKS_PER_PARTITION = 32  # of a small plan: partitions are put together once the whole is known


class PartitionSizing(msgspec.Struct, frozen=True, kw_only=True):
    """How large partitions may be."""

    partition_bytes: int
    open_cost_bytes: int
    partitions_min: int  # where there is enough to share

    def share_of(self, total_weight: int) -> int:
        """The weight of a partition: as Spark computes it, less so that every core gets as many."""
        cores = max(1, self.partitions_min)
        waves = max(1, -(-total_weight // (self.partition_bytes * cores)))
        share = -(-total_weight // (waves * cores))
        return min(self.partition_bytes, max(self.open_cost_bytes, share))


def plan_partitions(
    batches: Iterator[pa.RecordBatch], sizing: PartitionSizing, keeper: ChunkKeeper
) -> list[tuple[Chunk, ...]]:
    """The chunks of each partition."""
    weights = _kept_chunks(batches, sizing, keeper)
    keeper.finish()
    share = sizing.share_of(sum(weights))  # about which partitions come out, some above and some below
    partitions: list[tuple[Chunk, ...]] = []
    group: list[Chunk] = []
    group_weight = 0
    for chunk, weight in zip(keeper.chunks, weights, strict=True):
        is_full = group_weight + weight > sizing.partition_bytes or group_weight + weight / 2 > share
        if group and is_full:
            partitions.append(tuple(group))
            group, group_weight = [], 0
        group.append(chunk)
        group_weight += weight
    if group:
        partitions.append(tuple(group))
    return partitions


def _kept_chunks(
    batches: Iterator[pa.RecordBatch], sizing: PartitionSizing, keeper: ChunkKeeper
) -> list[int]:
    """Put all files into the keeper; the weight of each chunk."""
    weights: list[int] = []
    held: list[pa.RecordBatch] = []  # pieces of the chunk that is being filled
    held_weight = total = 0

    def close() -> None:
        nonlocal held, held_weight
        whole = held[0] if len(held) == 1 else pa.Table.from_batches(held, CHUNK_SCHEMA).combine_chunks()
        batch = whole if isinstance(whole, pa.RecordBatch) else whole.to_batches()[0]
        keeper.keep(packed(batch))
        weights.append(held_weight)
        held, held_weight = [], 0

    for files in batches:
        rows = chunk_columns(files)
        size = rows.column("size").to_numpy() + sizing.open_cost_bytes
        ends = np.cumsum(size)
        start = done = 0
        while start < rows.num_rows:
            # Large plans need no fine pieces: what was put together so far is balanced already.
            room = max(sizing.partition_bytes // _CHUNKS_PER_PARTITION, sizing.open_cost_bytes)
            room = max(room, min(sizing.partition_bytes, total // (4 * sizing.partitions_min)))
            end = int(np.searchsorted(ends, done + room - held_weight, side="right"))
            if end > start:
                held.append(rows.slice(start, end - start))
                weight = int(ends[end - 1]) - done
                held_weight, total, done, start = held_weight + weight, total + weight, done + weight, end
            elif not held:  # one file that is larger than a piece
                end = start + 1
                held.append(rows.slice(start, 1))
                weight = int(size[start])
                held_weight, total, done, start = weight, total + weight, done + weight, end
            if start < rows.num_rows:
                close()
    if held:
        close()
    return weights
