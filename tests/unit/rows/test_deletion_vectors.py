"""Deletion vectors of every storage type, read once, checked, and told apart from damage."""

from __future__ import annotations

import shutil
import struct
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.errors import CorruptDataError, LazyDeltaError, StorageError, UnsupportedTableError
from lazydelta.protocol.actions import DeletionVector
from lazydelta.rows import DataFile, DeletionVectors
from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage
from tests.support.actions import add
from tests.support.deletion_vector_writer import (
    always,
    bitmap_array,
    encode_z85,
    inline_vector,
    snake_case,
    stored_vectors,
)
from tests.support.faulty_storage import Kind, fail_at, faulty
from tests.support.table_builder import TableBuilder

ROWS = [0, 3, 4, 5, 70_000, 131_072]


def storage_at(folder: Path) -> Storage:
    return open_storage(str(folder), Settings(allowed_roots="*"))


def file_with(descriptor: dict[str, Any] | None, **changes: Any) -> DataFile:
    vector = None if descriptor is None else DeletionVector(**snake_case({**descriptor, **changes}))
    return DataFile(path="d=1/a b.parquet", size=10, partition_values={}, deletion_vector=vector)


def rows_of(folder: Path, descriptor: dict[str, Any], **changes: Any) -> list[int]:
    found = DeletionVectors(storage_at(folder)).positions(file_with(descriptor, **changes))
    return [int(row) for row in found]


# --- where vectors are -------------------------------------------------------


def test_a_file_without_a_vector_has_no_deleted_rows(tmp_path: Path) -> None:
    vectors = DeletionVectors(storage_at(tmp_path))
    assert vectors.positions(file_with(None)).tolist() == []
    vectors.check_rows(file_with(None), 0)


def test_an_inline_vector_is_in_the_log_and_asks_nothing_of_the_store(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    vectors = DeletionVectors(storage)
    assert vectors.positions(file_with(inline_vector(ROWS))).tolist() == ROWS
    assert storage.counters.snapshot().requests == 0


@pytest.mark.parametrize("row_count", [1, 2, 3, 4])
def test_the_padding_of_an_inline_vector_is_not_part_of_it(tmp_path: Path, row_count: int) -> None:
    rows = list(range(0, 10 * row_count, 10))
    for form in ({}, {"as_runs": always}, {"is_native": True}):
        assert rows_of(tmp_path, inline_vector(rows, **form)) == rows


def test_the_empty_vector_of_delta_has_neither_bytes_nor_rows(tmp_path: Path) -> None:
    empty = {"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": 0, "cardinality": 0}
    assert rows_of(tmp_path, empty) == []


@pytest.mark.parametrize("prefix", ["", "ab", "x/y"])
@pytest.mark.parametrize("is_absolute", [False, True])
def test_vectors_that_share_a_file_are_told_apart_by_their_offset(
    tmp_path: Path, prefix: str, is_absolute: bool
) -> None:
    wanted = [ROWS, [1], list(range(10_000))]
    found = stored_vectors(tmp_path, wanted, prefix=prefix, is_absolute=is_absolute)
    assert [rows_of(tmp_path, descriptor) for descriptor in found] == wanted


def test_a_vector_without_an_offset_is_the_first_of_its_file(tmp_path: Path) -> None:
    first, _ = stored_vectors(tmp_path, [ROWS, [1]])
    assert rows_of(tmp_path, first, offset=None) == ROWS


@pytest.mark.parametrize("name", ["other", "with space", "ü%41"])
def test_an_absolute_vector_may_lie_outside_the_table(tmp_path: Path, name: str) -> None:
    (descriptor,) = stored_vectors(tmp_path / name, [ROWS], is_absolute=True)
    assert rows_of(tmp_path / "table", descriptor) == ROWS


def test_an_absolute_vector_of_another_store_is_refused_by_name(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS], is_absolute=True)
    with pytest.raises(UnsupportedTableError) as told:
        rows_of(tmp_path, descriptor, pathOrInlineDv="s3://bucket/dv.bin")
    assert "s3://bucket/dv.bin" in told.value.where


def test_a_relative_vector_does_not_lead_out_of_the_table(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS], prefix="")
    (tmp_path / "t").mkdir()
    with pytest.raises(StorageError, match="not a name inside the table"):
        rows_of(tmp_path / "t", descriptor, pathOrInlineDv=".." + descriptor["pathOrInlineDv"])


def test_an_unknown_storage_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match="unknown storage type 'x'"):
        rows_of(tmp_path, inline_vector(ROWS), storageType="x")


def test_the_file_of_an_unknown_vector_is_named(tmp_path: Path) -> None:
    unknown = inline_vector(ROWS) | {"storageType": "x"}
    vectors = {"a": None, "b": inline_vector(ROWS), "c": unknown}
    adds = [add(f"{name}.parquet", deletion_vector=vector) for name, vector in vectors.items()]
    TableBuilder(tmp_path).commit(adds)
    with pytest.raises(UnsupportedTableError) as told:
        list(ld.open(str(tmp_path)).scan().files())
    assert told.value.where == "c.parquet"


# --- how often they are read -------------------------------------------------


def test_a_window_of_a_file_has_its_own_rows(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS])
    vectors, file = DeletionVectors(storage_at(tmp_path)), file_with(descriptor)
    assert vectors.positions(file, 4, 70_000).tolist() == [4, 5]
    assert vectors.positions(file, 70_000, 70_001).tolist() == [70_000]


def test_the_segments_of_a_file_read_its_vector_once(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS])
    storage = storage_at(tmp_path)
    vectors = DeletionVectors(storage)
    for first in range(0, 200_000, 1000):
        vectors.positions(file_with(descriptor), first, first + 1000)
    assert storage.counters.snapshot().requests == 1


def test_threads_that_ask_at_once_share_one_read(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [range(50_000)])
    storage = storage_at(tmp_path)
    vectors, start = DeletionVectors(storage), threading.Barrier(8)

    def ask() -> list[int]:
        start.wait()
        return [int(row) for row in vectors.positions(file_with(descriptor), 100, 105)]

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask) for _ in range(8)]
    assert [answer.result() for answer in answers] == [[100, 101, 102, 103, 104]] * 8
    assert storage.counters.snapshot().requests == 1


def test_a_read_that_failed_is_tried_again(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS])
    vectors = DeletionVectors(faulty(storage_at(tmp_path), fail_at(1)))
    with pytest.raises(StorageError):
        vectors.positions(file_with(descriptor))
    assert vectors.positions(file_with(descriptor)).tolist() == ROWS


@pytest.mark.parametrize("kind", ["transient", "permanent", "not_found", "denied", "cut"])
def test_a_store_that_fails_never_makes_deleted_rows_come_back(tmp_path: Path, kind: Kind) -> None:
    found = stored_vectors(tmp_path, [ROWS, [1], range(10_000)])
    for number in (1, 2, 3):
        vectors, answers = DeletionVectors(faulty(storage_at(tmp_path), fail_at(number, kind))), []
        for descriptor in found:
            try:
                answers.append(len(vectors.positions(file_with(descriptor))))
            except LazyDeltaError:
                answers.append(-1)
        assert answers == [
            -1 if at == number else count for at, count in zip((1, 2, 3), (6, 1, 10_000), strict=True)
        ]


def test_no_more_is_kept_than_the_limit_allows_and_the_last_used_stays(tmp_path: Path) -> None:
    found = stored_vectors(tmp_path, [range(at, at + 100) for at in range(6)])
    storage = storage_at(tmp_path)
    one = found[0]["sizeInBytes"] + 25
    vectors = DeletionVectors(storage, bytes_max=2 * one)
    for at in (0, 1, 0, 2, 0):  # 1 is dropped for 2; 0 was used since
        vectors.positions(file_with(found[at]))
    assert storage.counters.snapshot().requests == 3
    vectors.positions(file_with(found[1]))
    assert storage.counters.snapshot().requests == 4


def test_a_vector_larger_than_the_limit_is_kept_until_the_next_one(tmp_path: Path) -> None:
    first, second = stored_vectors(tmp_path, [ROWS, [1]])
    storage = storage_at(tmp_path)
    vectors = DeletionVectors(storage, bytes_max=0)
    for descriptor, requests in ((first, 1), (first, 1), (second, 2), (first, 3)):
        vectors.positions(file_with(descriptor))
        assert storage.counters.snapshot().requests == requests


# --- damage ------------------------------------------------------------------


def test_a_row_that_the_data_file_does_not_have_is_damage(tmp_path: Path) -> None:
    vectors = DeletionVectors(storage_at(tmp_path))
    vectors.check_rows(file_with(inline_vector(ROWS)), 131_073)
    with pytest.raises(CorruptDataError, match="row 131072, but the data file has 131072 rows"):
        vectors.check_rows(file_with(inline_vector(ROWS)), 131_072)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cardinality": 5}, "lists 6 rows, but the log says 5"),
        ({"cardinality": 0}, "lists 6 rows, but the log says 0"),
        ({"cardinality": None}, "lists 6 rows, but the log says None"),
        ({"sizeInBytes": None}, "the log says that it has 0 bytes"),
        ({"sizeInBytes": 0}, "the log says that it has 0 bytes"),
        ({"sizeInBytes": -5}, "the log says that it has -5 bytes"),
        ({"sizeInBytes": 1 << 40}, "the log says that it has 1099511627776 bytes"),
        ({"sizeInBytes": 20}, "bytes, the log says 20"),
        ({"sizeInBytes": 5000}, "ends before it does"),
        ({"offset": -1}, "begins at byte -1"),
        ({"offset": 2}, "bytes, the log says"),
        ({"offset": 1 << 50}, "ends before it does"),
        ({"pathOrInlineDv": "short"}, "too short"),
        ({"pathOrInlineDv": "ab" + "~" * 20}, "not Z85"),
        ({"pathOrInlineDv": "0" * 20}, "not there"),
        ({"storageType": "p", "pathOrInlineDv": "file:///nowhere/dv.bin"}, "not there"),
        ({"storageType": "p", "pathOrInlineDv": ""}, "too short"),
    ],
)
def test_a_log_that_contradicts_the_vector_is_told_with_the_data_file(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    descriptor, _ = stored_vectors(tmp_path, [ROWS, [1]])
    with pytest.raises(CorruptDataError) as error:
        rows_of(tmp_path, descriptor, **changes)
    assert told in error.value.what
    assert error.value.where == f"file://{tmp_path}/d=1/a b.parquet"


@pytest.mark.parametrize("size", [1, -4, 5])
def test_an_inline_vector_of_another_size_is_told(tmp_path: Path, size: int) -> None:
    descriptor = inline_vector(ROWS)
    with pytest.raises(CorruptDataError, match="of it and says that it has"):
        rows_of(tmp_path, descriptor, sizeInBytes=descriptor["sizeInBytes"] + size)


def test_an_error_names_the_file_of_the_vector_and_its_place(tmp_path: Path) -> None:
    _, descriptor = stored_vectors(tmp_path, [[1], ROWS], prefix="ab")
    (path,) = (tmp_path / "ab").iterdir()
    path.unlink()
    with pytest.raises(CorruptDataError) as told:
        rows_of(tmp_path, descriptor)
    assert f"ab/{path.name} at byte {descriptor['offset']}" in told.value.what
    assert "VACUUM" in told.value.what


def test_a_file_of_a_later_format_is_told_and_stays_unread(tmp_path: Path) -> None:
    descriptors = stored_vectors(tmp_path, [ROWS, [1]])
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"\x02" + path.read_bytes()[1:])
    vectors = DeletionVectors(storage_at(tmp_path))
    for descriptor in [*descriptors, *descriptors]:
        with pytest.raises(CorruptDataError, match="format version 2"):
            vectors.positions(file_with(descriptor))


@pytest.mark.parametrize("form", [{}, {"as_runs": always}, {"is_native": True}])
def test_a_changed_byte_anywhere_in_the_file_never_gives_other_rows(
    tmp_path: Path, form: dict[str, Any]
) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS], **form)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for at in range(len(whole)):
        for mask in (0x01, 0x80, 0xFF):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            with pytest.raises(CorruptDataError):
                rows_of(tmp_path, descriptor)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptDataError):
            rows_of(tmp_path, descriptor)


@given(data=st.data())
def test_a_changed_inline_vector_gives_as_many_rows_as_the_log_says_or_an_error(data: st.DataObject) -> None:
    form: dict[str, Callable[[int], bool]] = data.draw(st.sampled_from([{}, {"as_runs": always}]))
    descriptor = inline_vector(ROWS, **form)
    text = list(descriptor["pathOrInlineDv"])
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.characters(max_codepoint=300))
    try:
        rows = rows_of(Path("/nowhere"), descriptor, pathOrInlineDv="".join(text))
    except LazyDeltaError as told:
        assert isinstance(told, CorruptDataError)
        assert "in the log" in told.what
        return
    assert len(rows) == len(ROWS)
    assert rows == sorted(set(rows))


@given(st.binary(max_size=80))
def test_bytes_with_a_right_checksum_that_are_no_bitmap_are_told(body: bytes) -> None:
    text = encode_z85(bitmap_array(ROWS)[:12] + body)
    descriptor = {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": 12 + len(body),
        "cardinality": len(ROWS),
    }
    with pytest.raises(CorruptDataError):
        rows_of(Path("/nowhere"), descriptor)


def test_rows_that_only_unpacking_shows_to_be_wrong_are_told(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [[1, 2, 3]])
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()[5:-4]
    data = data[:-4] + data[-2:] + data[-4:-2]  # 1, 3, 2
    path.write_bytes(
        b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)),
    )
    with pytest.raises(CorruptDataError, match="do not ascend"):
        rows_of(tmp_path, descriptor)


def test_a_vector_survives_a_move_of_the_table_unless_it_is_absolute(tmp_path: Path) -> None:
    (relative,) = stored_vectors(tmp_path / "a", [ROWS])
    (absolute,) = stored_vectors(tmp_path / "a", [ROWS], is_absolute=True)
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert rows_of(tmp_path / "b", relative) == ROWS
    with pytest.raises(CorruptDataError):
        rows_of(tmp_path / "b", absolute)


def test_a_vector_as_the_log_spells_it_is_read(tmp_path: Path) -> None:
    (descriptor,) = stored_vectors(tmp_path, [ROWS], prefix="p")
    vector = msgspec.json.decode(msgspec.json.encode(descriptor), type=DeletionVector)
    file = DataFile(path="a", size=1, partition_values={}, deletion_vector=vector)
    assert DeletionVectors(storage_at(tmp_path)).positions(file).tolist() == ROWS
