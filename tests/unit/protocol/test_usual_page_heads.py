"""Heads of pages that a pattern matches are taken exactly as Thrift takes them apart."""

from __future__ import annotations

import io
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol import parquet_pages
from lazydelta.protocol.parquet_pages import PageDamageError, PageHeads

NEVER = re.compile(b"(?!)")
ROWS = 3_000


def test_pages_of_every_kind_of_column_are_matched_and_end_where_thrift_ends_them() -> None:
    chunks = [*_chunks(write_page_checksum=True), *_chunks(use_dictionary=False, compression="none")]
    for chunk in chunks:
        assert _pages(chunk) == _pages(chunk, by_thrift=True)
        assert _matched(chunk) == len(_pages(chunk))
    assert sum(map(_matched, chunks)) > 50


def test_pages_of_the_second_version_are_taken_apart() -> None:
    for chunk in _chunks(use_dictionary=False, data_page_version="2.0"):
        assert _pages(chunk) == _pages(chunk, by_thrift=True)
        assert (_matched(chunk), len(_pages(chunk)) > 0) == (0, True)


@given(data=st.data())
def test_whatever_becomes_of_a_head_both_ways_say_the_same(data: st.DataObject) -> None:
    chunk = bytearray(data.draw(st.sampled_from(CHUNKS)))
    for _ in range(data.draw(st.integers(1, 4))):
        chunk[data.draw(st.integers(0, 40))] = data.draw(st.integers(0, 255))
    assert _pages(bytes(chunk)) == _pages(bytes(chunk), by_thrift=True)


def test_a_page_that_is_too_large_is_refused_by_the_pattern_too() -> None:
    head = b"\x15\x00\x15%s\x15\x08\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00" % b"\xfe\xff\xff\xff\x0f"
    assert parquet_pages._USUAL_HEAD.match(head) is not None
    with pytest.raises(PageDamageError, match="a page would have"):
        PageHeads().seen(head)


def _chunks(**options: Any) -> list[bytes]:
    """The bytes of each column of a file with columns of many types."""
    numbers = pa.array(range(ROWS))
    table = pa.table(
        {
            "long": numbers,
            "text": pa.array([f"text {number % 50}" for number in range(ROWS)]),
            "nulls": pa.array([None if number % 3 else float(number) for number in range(ROWS)]),
            "list": pa.array([[number, number] for number in range(ROWS)]),
            "truth": pa.array([number % 2 == 0 for number in range(ROWS)]),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"data_page_size": 1_000, "write_batch_size": 100} | options)
    group, found = pq.read_metadata(sink).row_group(0), []
    for at in range(group.num_columns):
        chunk = group.column(at)
        start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        found.append(sink.getvalue()[start : start + chunk.total_compressed_size])
    return found


def _pages(chunk: bytes, *, by_thrift: bool = False) -> list[int] | str:
    """The bytes of each page as the heads tell them, or what is wrong with one."""
    with pytest.MonkeyPatch.context() as patch:
        found: list[int] = []
        enter = PageHeads._enter

        def entered(heads: PageHeads, decoded: int | None, stored: int | None) -> None:
            found.append(-1 if stored is None else stored)
            enter(heads, decoded, stored)

        patch.setattr(PageHeads, "_enter", entered)
        if by_thrift:
            patch.setattr(parquet_pages, "_USUAL_HEAD", NEVER)
        try:
            PageHeads().seen(memoryview(chunk))
        except PageDamageError as damage:
            return str(damage)
    return found


def _matched(chunk: bytes) -> int:
    """How many heads the pattern matches."""
    count = position = 0
    sizes = _pages(chunk)
    assert not isinstance(sizes, str)
    for size in sizes:
        found = parquet_pages._USUAL_HEAD.match(chunk, position)
        if found is None:
            break
        count, position = count + 1, found.end() + size
    return count


CHUNKS = [*_chunks(), *_chunks(use_dictionary=False), *_chunks(write_page_checksum=True)]
