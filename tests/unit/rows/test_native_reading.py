"""A row group through memory, off a disk and through Python: the same rows, guard and errors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.errors import CorruptDataError
from lazydelta.log.parquet_guard import guard_pages
from lazydelta.rows.parquet_file import OpenedFile, open_parquet, slices
from lazydelta.settings import Settings
from lazydelta.storage import ObjectReplacedError, ObjectTooShortError, open_storage
from tests.support.data_files import DataFolder, field
from tests.support.hypothesis_profile import BUSY_AND_SHARED, examples

ROWS = 60_000
WAYS = ["in memory", "off the disk", "through Python"]


def table(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(3)
    values = random.integers(0, 1 << 60, rows)
    return pa.table({"id": values, "text": [f"t{value % 977}" for value in values], "x": random.random(rows)})


def opened_by(way: str, folder: Path) -> OpenedFile:
    size = (folder / "f.parquet").stat().st_size
    assert size > 2 * limits.PARQUET_FOOTER_GUESS_BYTES
    return open_parquet(open_storage(str(folder), Settings()), "f.parquet", size, is_whole=way == "in memory")


def read(way: str, opened: OpenedFile, leaves: list[int], rows_max: int = 7_000) -> pa.Table:
    found = [
        batch
        for group in range(opened.metadata.num_row_groups)
        for batch in slices(opened, group, leaves, rows_max, is_hurried=way == "through Python")
    ]
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("leaves", [[0, 1, 2], [1]])
def test_every_way_gives_the_same_rows(tmp_path: Path, way: str, leaves: list[int]) -> None:
    pq.write_table(table(), tmp_path / "f.parquet", row_group_size=25_000)
    assert read(way, opened_by(way, tmp_path), leaves).equals(table().select(leaves))


@pytest.mark.parametrize("way", WAYS)
@tried(max_examples=examples(6), suppress_health_check=BUSY_AND_SHARED)
@given(
    how=st.fixed_dictionaries(
        {
            "data_page_size": st.sampled_from([300, 5_000, 1 << 20]),
            "compression": st.sampled_from(["none", "snappy", "zstd"]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "write_page_checksum": st.booleans(),
            "use_dictionary": st.booleans(),
            "write_batch_size": st.sampled_from([16, 1024]),
        }
    )
)
def test_every_way_finds_a_page_that_is_too_large(tmp_path: Path, way: str, how: dict[str, Any]) -> None:
    """However the pages lie: the last is found, whatever comes before it."""
    rows = table(20_000)
    pq.write_table(rows, tmp_path / "f.parquet", **how)
    opened = opened_by(way, tmp_path)
    assert read(way, opened, [0, 1, 2]).equals(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PARQUET_PAGE_BYTES_MAX", 40)
        with pytest.raises(pa.ArrowInvalid, match="a page would have"):
            read(way, opened, [2])


def test_only_the_heads_of_pages_are_looked_at(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "f.parquet", use_dictionary=False, compression="none")
    body = (tmp_path / "f.parquet").read_bytes()
    chunk = pq.read_metadata(tmp_path / "f.parquet").row_group(0).column(0)
    looked = []

    def read_at(start: int, length: int) -> bytes:
        looked.append(length)
        return body[start : start + length]

    guard_pages(read_at, [(chunk.data_page_offset, chunk.total_compressed_size)])
    assert 0 < sum(looked) < chunk.total_compressed_size / 50


def test_what_a_disk_gives_is_counted_by_the_share_that_was_read(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "f.parquet", row_group_size=ROWS)
    opened = opened_by("off the disk", tmp_path)
    chunks = [opened.metadata.row_group(0).column(leaf).total_compressed_size for leaf in range(3)]
    counters = opened.storage.counters
    before = counters.snapshot()
    read("off the disk", opened, [0, 1, 2])
    whole = counters.snapshot()
    assert whole.bytes_read - before.bytes_read == sum(chunks)
    assert whole.requests - before.requests == 1
    some = slices(opened, 0, [0, 1, 2], ROWS // 10)
    next(some)
    some.close()
    assert counters.snapshot().bytes_read - whole.bytes_read == pytest.approx(sum(chunks) / 10, rel=0.01)


@pytest.mark.parametrize("way", ["in its place", "over it"])
def test_a_file_that_changes_while_the_disk_is_read_is_noticed(tmp_path: Path, way: str) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path)
    opened = opened_by("off the disk", tmp_path)
    body = path.read_bytes()
    rows = slices(opened, 0, [0, 1, 2], 1_000)
    next(rows)
    time.sleep(0.02)  # the clock of a file system is coarse
    if way == "over it":
        with path.open("r+b") as file:
            file.write(body[:100])
        with pytest.raises(ObjectReplacedError):
            list(rows)
        return
    (tmp_path / "new").write_bytes(body)
    (tmp_path / "new").replace(path)
    assert sum(batch.num_rows for batch in rows) == ROWS - 1_000  # of the file as it was: it is still open
    with pytest.raises(ObjectReplacedError):
        next(slices(opened, 0, [0, 1, 2], 1_000))


def test_a_file_that_is_replaced_while_it_is_open_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(b"abc")
    storage: Any = open_storage(str(tmp_path), Settings())
    with storage.reading("f.parquet", [(0, 3)]) as file:
        (tmp_path / "new").write_bytes(b"xyz")
        (tmp_path / "new").replace(path)
        file.check_path()
        assert Path(file.path).read_bytes() == b"abc"
    with pytest.raises(ObjectReplacedError), storage.reading("f.parquet", [(0, 3)]):
        raise AssertionError("not reached")


def test_a_file_that_is_replaced_between_two_openings_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no name for a file that is open."""
    monkeypatch.setattr("lazydelta.storage.local_files._DESCRIPTORS", str(tmp_path / "none"))
    path = tmp_path / "f.parquet"
    path.write_bytes(b"abc")
    storage = open_storage(str(tmp_path), Settings())
    with storage.reading("f.parquet", [(0, 3)]) as file:  # type: ignore[attr-defined]  # of a folder
        file.check_path()
        (tmp_path / "new").write_bytes(b"abc")
        (tmp_path / "new").replace(path)
        with pytest.raises(ObjectReplacedError):
            file.check_path()
        path.unlink()
        with pytest.raises(ObjectReplacedError):
            file.check_path()


def test_a_file_that_was_cut_is_told(tmp_path: Path) -> None:
    (tmp_path / "f.parquet").write_bytes(b"abc")
    storage: Any = open_storage(str(tmp_path), Settings())
    with pytest.raises(ObjectTooShortError), storage.reading("f.parquet", [(0, 4)]):
        raise AssertionError("not reached")


@pytest.mark.parametrize("way", WAYS)
def test_bytes_that_are_no_page_are_the_error_that_names_the_file(tmp_path: Path, way: str) -> None:
    folder = DataFolder(
        tmp_path, field("id", "long"), field("text", "string"), field("x", "double"),
        is_all=way == "in memory",
    )  # fmt: skip
    file = folder.write(table(25_000))
    path = tmp_path / "f.parquet"
    chunk = pq.read_metadata(path).row_group(0).column(2)
    with path.open("r+b") as damaged:
        damaged.seek(chunk.data_page_offset)
        damaged.write(bytes(range(1, 200)))
    loader = folder.loader(is_hurried=way == "through Python")
    (segment,) = loader.segments(file)
    assert (segment.opened.body is not None) == (way == "in memory")
    with pytest.raises(CorruptDataError, match="version 7 cannot be read") as caught:
        list(loader.load(segment))
    assert caught.value.where.endswith("f.parquet")


def test_a_small_file_of_which_all_is_wanted_takes_one_request(tmp_path: Path) -> None:
    fields = field("id", "long"), field("text", "string"), field("x", "double")
    for is_all, requests in ((True, 1), (False, 2)):
        folder = DataFolder(tmp_path, *fields, is_all=is_all)
        file = folder.write(table(25_000))
        assert limits.PARQUET_FOOTER_GUESS_BYTES < file.size < limits.DATA_WHOLE_BYTES_MAX
        assert folder.read(file).equals(table(25_000))
        assert folder.storage.counters.snapshot().requests == requests
