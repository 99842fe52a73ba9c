"""pyarrow over a `RangedFile`: only the projected column chunks, in exactly so many requests."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta import limits
from lazydelta.storage import RangedFile, Storage
from tests.support.servers import TableServer

ROWS = 60_000
BLOCK = 128 * limits.KIB


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three row groups of `path`, a fat `stats` nobody asks for, and `size`."""
    random = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("parquet")
    numbers = random.integers(0, 1 << 60, (3, ROWS))
    table = pa.table(
        {
            "path": [f"part-{number:019d}.parquet" for number in numbers[0]],
            "stats": [f'{{"numRecords":{number}}}' * 2 for number in numbers[1]],
            "size": numbers[2],
        }
    )
    # Small pages, so that the first rows of a chunk do not need all of it.
    layout = {"row_group_size": ROWS // 3, "use_dictionary": False, "data_page_size": 16 * limits.KIB}
    pq.write_table(table, folder / "c.parquet", **layout)
    return folder


@pytest.fixture
def storage(table_store: TableServer, parquet: Path) -> Storage:
    url = table_store.url()
    table_store.upload(parquet, url)
    return table_store.open(url).scoped()


def chunks(metadata: pq.FileMetaData, row_group: int, names: set[str]) -> list[tuple[int, int]]:
    columns = [metadata.row_group(row_group).column(at) for at in range(metadata.num_columns)]
    return [
        (column.data_page_offset, column.total_compressed_size)
        for column in columns
        if column.path_in_schema in names
    ]


def test_one_preloaded_row_group_costs_the_footer_and_one_more_round_trip(
    storage: Storage, parquet: Path
) -> None:
    expected = pq.read_table(parquet / "c.parquet")
    file = RangedFile(storage, "c.parquet", (parquet / "c.parquet").stat().st_size)
    reader = pq.ParquetFile(file, pre_buffer=False)
    assert storage.counters.snapshot().requests == 1
    wanted = chunks(reader.metadata, 1, {"path", "size"})
    file.preload(wanted)
    read = reader.read_row_group(1, columns=["path", "size"])
    assert read.equals(expected.slice(ROWS // 3, ROWS // 3).select(["path", "size"]).combine_chunks())
    now = storage.counters.snapshot()
    assert (now.requests, now.round_trips) == (1 + len(wanted), 2)
    assert now.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + sum(length for _, length in wanted)


def test_streamed_chunks_cost_their_blocks_and_no_other_columns(storage: Storage, parquet: Path) -> None:
    expected = pq.read_table(parquet / "c.parquet", columns=["path"])
    file = RangedFile(storage, "c.parquet", (parquet / "c.parquet").stat().st_size)
    reader = pq.ParquetFile(file, pre_buffer=False, buffer_size=BLOCK)
    wanted = [chunk for group in (2, 1, 0) for chunk in chunks(reader.metadata, group, {"path"})]
    file.stream_through(wanted, block_bytes=BLOCK)
    batches = list(reader.iter_batches(4096, row_groups=[0, 1, 2], columns=["path"]))
    assert pa.Table.from_batches(batches).equals(expected)
    now = storage.counters.snapshot()
    assert now.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + sum(length for _, length in wanted)
    assert now.requests == 1 + sum(-(-length // BLOCK) for _, length in wanted)


def test_stopping_early_reads_one_block_and_one_ahead(storage: Storage, parquet: Path) -> None:
    file = RangedFile(storage, "c.parquet", (parquet / "c.parquet").stat().st_size)
    reader = pq.ParquetFile(file, pre_buffer=False, buffer_size=BLOCK)
    file.stream_through(chunks(reader.metadata, 0, {"path"}), block_bytes=BLOCK)
    batch = next(reader.iter_batches(100, row_groups=[0], columns=["path"]))
    assert batch.num_rows == 100
    time.sleep(0.3)
    assert storage.counters.snapshot().bytes_read <= limits.PARQUET_FOOTER_GUESS_BYTES + 2 * BLOCK
    file.close()


def test_without_any_declaration_every_chunk_is_one_request(storage: Storage, parquet: Path) -> None:
    file = RangedFile(storage, "c.parquet", (parquet / "c.parquet").stat().st_size)
    reader = pq.ParquetFile(file, pre_buffer=False)
    reader.read_row_groups([0, 1], columns=["size"])
    now = storage.counters.snapshot()
    assert now.requests == 1 + 2
    wanted = sum(chunks(reader.metadata, group, {"size"})[0][1] for group in (0, 1))
    assert now.bytes_read == limits.PARQUET_FOOTER_GUESS_BYTES + wanted
