"""Columns of a large checkpoint behind a slow store: blocks overlap, and no byte more is read."""

from __future__ import annotations

import os
from contextlib import closing
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta import limits
from lazydelta.log import CheckpointReader, RowRequest, find_segment
from lazydelta.memory_budget import MemoryBudget
from lazydelta.memory_share import MemoryShare
from lazydelta.settings import Settings
from lazydelta.storage import IoSnapshot, Storage, open_storage
from tests.support.proxy import HttpProxy
from tests.support.servers import TableServer
from tests.support.settling import settled

ROWS = 160_000
PATH_CHARS = 128
TRIES = 6
NAME = f"{0:020}.checkpoint.parquet"


@pytest.fixture(scope="module", params=[1, 4], ids=["one row group", "four row groups"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 20 MiB of paths that do not compress, and a column of sizes."""
    text = os.urandom(ROWS * PATH_CHARS // 2).hex()
    paths = [text[at : at + PATH_CHARS] for at in range(0, len(text), PATH_CHARS)]
    adds = pa.StructArray.from_arrays([pa.array(paths), pa.array(range(ROWS), pa.int64())], ["path", "size"])
    folder = tmp_path_factory.mktemp("checkpoint") / "_delta_log"
    folder.mkdir()
    groups = ROWS // request.param
    pq.write_table(pa.table({"add": adds}), folder / NAME, row_group_size=groups, use_dictionary=False)
    return folder.parent


@pytest.fixture
def storage(remote_store: TableServer, remote_proxy: HttpProxy, checkpoint: Path) -> Storage:
    url = remote_store.url()
    remote_store.upload(checkpoint, url)
    remote_proxy.latency_ms = 30
    settings = Settings(storage_options=remote_store.through(remote_proxy))
    return open_storage(url, settings).scoped()


class Reading:
    """A read of the checkpoint's rows, and what it asks of the store."""

    def __init__(self, storage: Storage, share: MemoryShare) -> None:
        checkpoint = find_segment(storage).checkpoint
        assert checkpoint is not None
        self._storage = storage.scoped()
        self._reader = CheckpointReader(self._storage, checkpoint, share)

    def rows(self, batches_max: int = 1_000_000) -> int:
        """How many the first batches have, last row group first; the rest is not read."""
        request = RowRequest(columns=("path", "size"), batch_rows=8192, row_groups_per_batch=4)
        with closing(self._reader), closing(self._reader.rows(request)) as stream:
            return sum(batch.num_rows for batch in islice(stream, batches_max))

    @property
    def io(self) -> IoSnapshot:
        return self._storage.counters.snapshot()


def chunks_of(checkpoint: Path) -> list[int]:
    """The lengths of all column chunks."""
    metadata = pq.read_metadata(checkpoint / "_delta_log" / NAME)
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return [group.column(at).total_compressed_size for group in groups for at in range(group.num_columns)]


def test_blocks_overlap_and_are_asked_for_once(
    storage: Storage, remote_proxy: HttpProxy, checkpoint: Path
) -> None:
    remote_proxy.latency_ms = 100  # so that the store is slow, not a reader that is held back
    chunks = chunks_of(checkpoint)
    blocks = sum(-(-length // limits.READ_BLOCK_BYTES) for length in chunks)
    assert blocks > 20
    trips: list[int] = []
    # The footer, the first blocks, then 1, 2, 4 and 8 at once; a busy machine may still hold one back.
    while not trips or trips[-1] > 9:
        assert len(trips) < TRIES, trips
        budget = MemoryBudget(256 * limits.MIB)
        share = MemoryShare(budget)
        reading = Reading(storage, share)
        assert reading.rows() == ROWS
        assert reading.io.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + sum(chunks)
        assert reading.io.requests == 1 + blocks
        assert share.held_bytes == budget.use().held_bytes == 0
        assert budget.use().peak_bytes <= (limits.READ_AHEAD_BLOCKS_MAX + 12) * limits.MIB
        trips.append(reading.io.round_trips)


def test_whoever_stops_early_has_fetched_little(storage: Storage, checkpoint: Path) -> None:
    share = MemoryShare(MemoryBudget(256 * limits.MIB))
    reading = Reading(storage, share)
    assert 0 < reading.rows(batches_max=1) <= 8192
    few = 8 * limits.READ_BLOCK_BYTES
    assert settled(lambda: reading.io.bytes_read) <= few < sum(chunks_of(checkpoint)) / 2
    assert share.held_bytes == 0


def test_without_memory_to_spare_one_block_is_ahead_as_ever(storage: Storage, checkpoint: Path) -> None:
    budget = MemoryBudget(64 * limits.MIB)
    budget.hold(40 * limits.MIB)
    reading = Reading(storage, MemoryShare(budget))
    assert reading.rows() == ROWS
    assert reading.io.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + sum(chunks_of(checkpoint))
    assert reading.io.round_trips >= 15
    assert budget.use().held_bytes == 40 * limits.MIB
