"""Files that somebody replaces under a scan: an error that names them, or the right answer; no mixture."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.storage import ObjectReplacedError
from tests.support.reading import keys
from tests.support.servers import TableServer
from tests.support.stored_rows import PATHS, ROWS_A_FILE, ROWS_A_GROUP, hour_of, stored_table
from tests.support.table_builder import TableBuilder

DATA = f"_event_hour={hour_of(7)}/part-7.parquet"  # the newest, which comes first


def other_rows(path: Path, folder: Path) -> Path:
    """A file of the same length and shape with other values."""
    rows = pq.read_table(path, partitioning=None)
    other = rows.set_column(0, "id", pa.array([-1] * rows.num_rows, pa.int64()))
    target = folder / "other.parquet"
    pq.write_table(other, target, row_group_size=ROWS_A_GROUP, compression="none", use_dictionary=False)
    return target


def test_a_data_file_that_is_replaced_between_two_row_groups_ends_the_rows(
    table_store: TableServer, tmp_path: Path
) -> None:
    url = stored_table(table_store, tmp_path / "table")
    other = other_rows(tmp_path / "table" / DATA, tmp_path)
    scan = ld.open(url, storage_options=table_store.storage_options).scan(batch_size=500)
    batches = scan.batches(["id"], prefetch_size=0)
    found = next(batches)["id"].to_pylist()
    time.sleep(0.02)  # the clock of a file system is coarse
    table_store.put_all(url, {DATA: other})
    with pytest.raises(ObjectReplacedError, match="was replaced") as caught:
        for batch in batches:
            found += batch["id"].to_pylist()
    assert caught.value.where.endswith(DATA)
    assert "read again" in caught.value.fix
    assert -1 not in found
    assert len(found) < ROWS_A_FILE


def test_a_checkpoint_that_is_replaced_under_a_scan_ends_it(table_store: TableServer, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "a", partition_columns=()).commit(names("a"))
    table.checkpoint(row_group_rows=400).commit(["new"]).crc()
    other = (
        TableBuilder(tmp_path / "b", partition_columns=()).commit(names("b")).checkpoint(row_group_rows=400)
    )
    url = table_store.url()
    table_store.upload(table.path, url)
    checkpoint = f"_delta_log/{0:020}.checkpoint.parquet"
    scan = ld.open(url, storage_options=table_store.storage_options).scan(batch_size=100)
    files = scan.files()
    found = keys([next(files) for _ in range(150)])
    time.sleep(0.02)
    table_store.put_all(url, {checkpoint: other.path / checkpoint})
    with pytest.raises(ObjectReplacedError) as caught:
        found += keys(files)
    assert caught.value.where.endswith(checkpoint)
    assert len(set(found)) == len(found)
    assert set(found) <= table.live()


def names(letter: str) -> list[str]:
    """Long enough that the columns of a checkpoint do not fit what is read of its end."""
    dice = random.Random(letter)
    return [f"{letter}-{number:06}-{dice.getrandbits(256):064x}.parquet" for number in range(6_000)]


def test_a_part_of_the_sidecar_that_is_replaced_is_not_used(table_store: TableServer, tmp_path: Path) -> None:
    url = stored_table(table_store, tmp_path)
    storage = table_store.open(url)
    parts = [info.name for info in storage.list_from("_delta_log/_lazy") if info.name.endswith(".parquet")]
    table = ld.open(url, storage_options=table_store.storage_options)
    warm = table.scan()
    assert sorted(file.path for file in warm.files()) == PATHS
    assert warm.explain().fallbacks == ()  # and what opening asked for has come
    time.sleep(0.02)
    table_store.put_all(url, {part: storage.get(part)[::-1] for part in parts})
    scan = table.scan()
    assert sorted(file.path for file in scan.files()) == PATHS
    assert any("is damaged (the object was replaced" in fallback for fallback in scan.explain().fallbacks)
