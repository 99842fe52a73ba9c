"""Sorted streams: keys compare as rows sort, and what is merged comes as if it had been sorted.

A lazy merge reads a source only when the order reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.sidecar.order.lazy_merge import LazyMerge
from lazydelta.sidecar.order.sort_keys import (
    SortKey,
    before_all,
    comparable,
    is_ascending,
    key_at,
    sort_order,
)
from lazydelta.sidecar.order.sorted_merge import merge_sorted
from lazydelta.sidecar.order.sorted_stream import SortedStream

_SCHEMA = pa.schema([("order_value", pa.int64()), ("raw_path", pa.string())])
_KEYS = ("order_value", "raw_path")
Rows = list[tuple[int | None, str]]
_ROWS = st.lists(st.tuples(st.none() | st.integers(0, 5), st.text("ab", max_size=2)), max_size=12)


def batch_of(rows: Rows) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([], [])
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def in_order(rows: Rows, *, descending: bool) -> pa.RecordBatch:
    batch = batch_of(rows)
    return batch.take(sort_order(batch, _KEYS, descending=descending))


def sort_key(row: tuple[int | None, str]) -> tuple[int, str]:
    return -1 if row[0] is None else row[0], row[1]


def rows_of(batches: Iterator[pa.RecordBatch]) -> Rows:
    table = pa.Table.from_batches(list(batches), _SCHEMA)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Told:
    """Sorted rows in blocks, each with the bound of its first row's value; counts what was read."""

    def __init__(
        self, rows: pa.RecordBatch, block_rows: int, *, descending: bool, fails_at: int = -1
    ) -> None:
        self.blocks = [rows.slice(at, block_rows) for at in range(0, rows.num_rows, block_rows)]
        self.read = 0
        self._descending = descending
        self._fails_at = fails_at
        self._last = before_all((), descending=descending)

    @property
    def bound(self) -> SortKey | None:
        if self.read == len(self.blocks):
            return None
        first = comparable(self.blocks[self.read].column("order_value")[0])
        return max(before_all((first,), descending=self._descending), self._last)

    def read_on(self) -> pa.RecordBatch | None:
        if self.read == self._fails_at:
            raise OSError("gone")
        block = self.blocks[self.read]
        self.read += 1
        self._last = key_at(block, block.num_rows - 1, _KEYS, descending=self._descending)
        return block


@given(st.lists(_ROWS, max_size=5), _ROWS, st.integers(1, 5), st.booleans())
def test_merging_gives_what_sorting_gives(
    pieces: list[Rows], streamed: Rows, block_rows: int, descending: bool
) -> None:
    merge = LazyMerge(_KEYS, descending=descending)
    for piece in pieces:
        merge.add(Told(in_order(piece, descending=descending), block_rows, descending=descending))
    stream = in_order(streamed, descending=descending)
    blocks = iter([stream.slice(at, block_rows) for at in range(0, stream.num_rows, block_rows)])
    merge.add(SortedStream(blocks, _KEYS, descending=descending))
    found = rows_of(merge.rows())
    everything = [row for piece in (*pieces, streamed) for row in piece]
    assert list(map(sort_key, found)) == sorted(map(sort_key, everything), reverse=descending)


@given(st.lists(_ROWS, min_size=1, max_size=5), st.integers(1, 5), st.integers(1, 20), st.booleans())
def test_nothing_is_read_whose_bound_lies_behind_the_rows_that_were_asked_for(
    pieces: list[Rows], block_rows: int, wanted: int, descending: bool
) -> None:
    merge = LazyMerge(_KEYS, descending=descending)
    sources = [
        Told(in_order(piece, descending=descending), block_rows, descending=descending) for piece in pieces
    ]
    for source in sources:
        merge.add(source)
    last: SortKey | None = None
    count = 0
    for batch in merge.rows():
        last = key_at(batch, batch.num_rows - 1, _KEYS, descending=descending)
        count += batch.num_rows
        if count >= wanted:
            break
    for source in sources:
        for block in source.blocks[: source.read]:
            value = comparable(block.column("order_value")[0])
            assert last is not None
            assert before_all((value,), descending=descending) <= last


@given(st.lists(_ROWS, min_size=2, max_size=4), st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_a_source_that_fails_can_be_replaced_and_no_other_row_is_lost(
    pieces: list[Rows], block_rows: int, fails_at: int, descending: bool
) -> None:
    merge = LazyMerge(_KEYS, descending=descending)
    broken = Told(in_order(pieces[0], descending=descending), block_rows, descending=descending)
    failing = Told(
        in_order(pieces[0], descending=descending), block_rows, descending=descending, fails_at=fails_at
    )
    for source in (
        failing,
        *(
            Told(in_order(piece, descending=descending), block_rows, descending=descending)
            for piece in pieces[1:]
        ),
    ):
        merge.add(source)
    released: list[SortKey | None] = []
    found: Rows = []
    try:
        for batch in merge.rows(released.append):
            found += rows_of(iter([batch]))
    except OSError:
        merge.remove(failing)
        left = pa.concat_batches([batch_of([]), *broken.blocks])
        up_to = released[-1] if released else None
        kept = [
            at
            for at in range(left.num_rows)
            if up_to is None or up_to < key_at(left, at, _KEYS, descending=descending)
        ]
        rest = left.take(pa.array(kept, pa.int64()))
        merge.add(Told(rest, block_rows, descending=descending))
        found += rows_of(merge.rows())
    everything = [row for piece in pieces for row in piece]
    if len(set(pieces[0])) == len(pieces[0]):  # of equal rows a bound cannot tell which went out
        assert list(map(sort_key, found)) == sorted(map(sort_key, everything), reverse=descending)


@pytest.mark.parametrize("descending", [False, True])
def test_no_sources_give_no_rows(*, descending: bool) -> None:
    merge = LazyMerge(_KEYS, descending=descending)
    merge.add(SortedStream(iter([]), _KEYS, descending=descending))
    assert list(merge.rows()) == []


# --- keys of every kind, and merging without bounds ---------------------------

PLAIN_SCHEMA = pa.schema([("order", pa.float64()), ("path", pa.string()), ("rider", pa.int64())])
PLAIN_KEYS = ("order", "path")
PLAIN_ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from([float("nan"), float("-inf"), -0.0, 0.0, 1.5, 2.0]),
        st.text(st.sampled_from("aü\U0001f600%"), max_size=3),
        st.integers(0, 1000),
    ),
    max_size=40,
)


def plain_batch(rows: list[tuple[float | None, str, int]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, PLAIN_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PLAIN_SCHEMA)


def plain_key(row: tuple[float | None, str, int]) -> tuple[object, ...]:
    """Nulls, then NaN, then values; paths by their bytes."""
    order, path, _ = row
    rank = 0 if order is None else 1 if order != order else 2  # noqa: PLR0124
    return rank, order if rank == 2 else 0, path.encode()


def plain_rows(batches: list[pa.RecordBatch]) -> list[tuple[float | None, str, int]]:
    table = pa.Table.from_batches(batches, PLAIN_SCHEMA)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@given(PLAIN_ROWS)
def test_rows_are_called_sorted_exactly_where_sorting_changes_nothing(
    rows: list[tuple[float | None, str, int]],
) -> None:
    batch = plain_batch(rows)
    keys = [plain_key(row) for row in rows]
    assert is_ascending(batch, PLAIN_KEYS) == (keys == sorted(keys))
    assert is_ascending(batch.take(sort_order(batch, PLAIN_KEYS)), PLAIN_KEYS)


@given(PLAIN_ROWS, st.booleans())
def test_keys_compare_as_rows_sort(rows: list[tuple[float | None, str, int]], descending: bool) -> None:
    batch = plain_batch(rows)
    in_order = batch.take(sort_order(batch, PLAIN_KEYS, descending=descending))
    keys = [key_at(in_order, at, PLAIN_KEYS, descending=descending) for at in range(in_order.num_rows)]
    assert all(left <= right and not right < left for left, right in pairwise(keys))
    for key in keys:
        assert before_all(key[:1], descending=descending) < key
        assert before_all((), descending=descending) < key


@given(st.lists(PLAIN_ROWS, max_size=6), st.integers(1, 5000), st.integers(1, 9), st.booleans())
def test_sorted_streams_merge_to_one_sorted_stream(
    pieces: list[list[tuple[float | None, str, int]]], slice_bytes: int, block_rows: int, descending: bool
) -> None:
    sources = []
    for piece in pieces:
        rows = plain_batch(piece)
        in_order = rows.take(sort_order(rows, PLAIN_KEYS, descending=descending))
        sources.append(
            iter([in_order.slice(at, block_rows) for at in range(0, in_order.num_rows, block_rows)])
        )
    found = plain_rows(
        list(merge_sorted(sources, PLAIN_KEYS, slice_bytes=slice_bytes, descending=descending))
    )
    everything = [row for piece in pieces for row in piece]
    assert [plain_key(row) for row in found] == sorted(map(plain_key, everything), reverse=descending)
    assert sorted(map(repr, found)) == sorted(map(repr, everything))
