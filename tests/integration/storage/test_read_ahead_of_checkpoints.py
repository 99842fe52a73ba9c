"""Columns of a large checkpoint behind a slow store: blocks overlap, and no byte more is read."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta import limits
from lazydelta.log.parquet_part import ParquetPart
from lazydelta.memory_budget import MemoryBudget
from lazydelta.memory_share import MemoryShare
from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage
from tests.support.proxy import HttpProxy
from tests.support.servers import TableServer

ROWS = 160_000
PATH_CHARS = 128
NAME = "c.checkpoint.parquet"


@pytest.fixture(scope="module", params=[1, 4], ids=["one row group", "four row groups"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 20 MiB of paths that do not compress, and a column of sizes."""
    text = os.urandom(ROWS * PATH_CHARS // 2).hex()
    paths = [text[at : at + PATH_CHARS] for at in range(0, len(text), PATH_CHARS)]
    adds = pa.StructArray.from_arrays([pa.array(paths), pa.array(range(ROWS), pa.int64())], ["path", "size"])
    folder = tmp_path_factory.mktemp("checkpoint")
    groups = ROWS // request.param
    pq.write_table(pa.table({"add": adds}), folder / NAME, row_group_size=groups, use_dictionary=False)
    return folder


@pytest.fixture
def storage(remote_store: TableServer, remote_proxy: HttpProxy, checkpoint: Path) -> Storage:
    url = remote_store.url()
    remote_store.upload(checkpoint, url)
    remote_proxy.latency_ms = 30
    settings = Settings(storage_options=remote_store.through(remote_proxy))
    return open_storage(url, settings).scoped()


def part_of(storage: Storage, checkpoint: Path, share: MemoryShare) -> ParquetPart:
    return ParquetPart(storage, NAME, (checkpoint / NAME).stat().st_size, share)


def chunks_of(part: ParquetPart) -> list[int]:
    """The lengths of all column chunks."""
    groups = [part.metadata.row_group(at) for at in range(part.metadata.num_row_groups)]
    return [group.column(at).total_compressed_size for group in groups for at in range(group.num_columns)]


def read(part: ParquetPart, batches_max: int = 1_000_000) -> int:
    """Rows of the first batches, last row group first."""
    groups = list(reversed(range(part.metadata.num_row_groups)))
    rows = 0
    with closing(part.batches(groups, ["add"], 8192, read_ahead=True)) as stream:
        for number, batch in enumerate(stream, 1):
            rows += batch.num_rows
            if number == batches_max:
                break
    return rows


def test_blocks_overlap_and_are_asked_for_once(
    storage: Storage, remote_proxy: HttpProxy, checkpoint: Path
) -> None:
    remote_proxy.latency_ms = 100  # so that the store is slow, not a reader that is held back
    trips = []
    for _ in range(3):  # a busy machine may still hold one back
        budget, scan = MemoryBudget(256 * limits.MIB), storage.scoped()
        share = MemoryShare(budget)
        with closing(part_of(scan, checkpoint, share)) as part:
            chunks = chunks_of(part)
            assert read(part) == ROWS
        io = scan.counters.snapshot()
        blocks = sum(-(-length // limits.READ_BLOCK_BYTES) for length in chunks)
        assert io.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + sum(chunks)
        assert io.requests == 1 + blocks
        assert blocks > 20
        assert share.held_bytes == budget.use().held_bytes == 0
        assert budget.use().peak_bytes <= (limits.READ_AHEAD_BLOCKS_MAX + 12) * limits.MIB
        trips.append(io.round_trips)
    # The footer, the first blocks, then 1, 2, 4 and 8 at once.
    assert min(trips) <= 9, trips


def test_whoever_stops_early_has_fetched_little(storage: Storage, checkpoint: Path) -> None:
    share = MemoryShare(MemoryBudget(256 * limits.MIB))
    with closing(part_of(storage, checkpoint, share)) as part:
        read(part, batches_max=1)
    time.sleep(0.3)
    # Two blocks of paths and one of sizes were read; as many of each are on their way.
    assert storage.counters.snapshot().bytes_read <= 6 * limits.READ_BLOCK_BYTES
    assert share.held_bytes == 0


def test_without_memory_to_spare_one_block_is_ahead_as_ever(storage: Storage, checkpoint: Path) -> None:
    budget = MemoryBudget(64 * limits.MIB)
    budget.hold(40 * limits.MIB)
    with closing(part_of(storage, checkpoint, MemoryShare(budget))) as part:
        assert read(part) == ROWS
        chunks = chunks_of(part)
    io = storage.counters.snapshot()
    assert io.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + sum(chunks)
    assert io.round_trips >= 15
    assert budget.use().held_bytes == 40 * limits.MIB
