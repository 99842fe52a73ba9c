"""RoaringBitmapArray: the row positions of a deletion vector, from its bytes.

Why: the bytes are small where the positions are not (a run of 65,536 rows takes six bytes), so they are kept
as they are and only the containers of the rows at hand are unpacked.
Contract: pure. Both of Delta's forms are read, told apart by the magic number: portable (a key before every
32-bit bitmap) and native (a length before it). `parse_bitmap_array` checks every byte: bytes that contradict
themselves are a `ValueError` that says how, and what it returns can be unpacked.
Spec: PROTOCOL.md, "Deletion Vector Format"; github.com/RoaringBitmap/RoaringFormatSpec.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

PORTABLE_MAGIC = 1681511377
NATIVE_MAGIC = 1681511376
COOKIE_WITHOUT_RUNS = 12346
COOKIE_WITH_RUNS = 12347  # in the low 16 bits; the number of containers less one is in the high ones
NO_OFFSETS_BELOW = 4  # containers, in a bitmap with runs
ARRAY_VALUES_MAX = 4096
CONTAINER_ROWS = 1 << 16
BITMAP_BYTES = CONTAINER_ROWS // 8
KEY_MAX = (1 << 31) - 1  # of the upper 32 bits: Java reads them signed

ARRAY, BITMAP, RUNS = 0, 1, 2

EMPTY_BITMAP_ARRAY = struct.pack("<iq", PORTABLE_MAGIC, 0)

Positions = NDArray[np.int64]


class Containers(msgspec.Struct, frozen=True, eq=False):
    """Where the containers are and what they hold, in ascending order of rows."""

    first_rows: Positions  # that the container could hold
    counts: Positions  # of rows that it holds
    kinds: NDArray[np.uint8]
    starts: Positions  # of its data, in the bytes


class RoaringBitmapArray:
    """A set of row positions; immutable, so that threads may share it."""

    def __init__(self, data: bytes, containers: Containers) -> None:
        self._data = data
        self._containers = containers
        self.cardinality = int(containers.counts.sum())

    @property
    def size_bytes(self) -> int:
        """Of memory, about."""
        return len(self._data) + 25 * len(self._containers.starts)

    def last(self) -> int | None:
        """The greatest position; None in an empty set."""
        count = len(self._containers.starts)
        return int(self._unpacked(count - 1, 0, CONTAINER_ROWS)[-1]) if count else None

    def between(self, first_row: int = 0, end_row: int | None = None) -> Positions:
        """The positions from `first_row` to before `end_row`, or to the last; ascending."""
        first_rows = self._containers.first_rows
        low = int(np.searchsorted(first_rows, first_row - CONTAINER_ROWS, side="right"))
        high = len(first_rows) if end_row is None else int(np.searchsorted(first_rows, end_row))
        found = [np.zeros(0, np.int64)]
        for at in range(low, high):
            base = int(first_rows[at])
            end = CONTAINER_ROWS if end_row is None else min(end_row - base, CONTAINER_ROWS)
            found.append(self._unpacked(at, max(first_row - base, 0), end))
        return found[1] if len(found) == 2 else np.concatenate(found)

    def _unpacked(self, at: int, low: int, high: int) -> Positions:
        containers = self._containers
        unpack = (_array_rows, _bitmap_rows, _run_rows)[containers.kinds[at]]
        rows = unpack(self._data, int(containers.starts[at]), int(containers.counts[at]), low, high)
        rows += containers.first_rows[at]
        return rows


def parse_bitmap_array(data: bytes) -> RoaringBitmapArray:
    """The set that the bytes of a deletion vector hold, from its magic number on."""
    (magic,) = _words(data, 0, "<i")
    if magic == PORTABLE_MAGIC:
        found = list(_portable(data))
    elif magic == NATIVE_MAGIC:
        found = list(_native(data, "<"))
    elif _words(data, 0, ">i") == (NATIVE_MAGIC,):  # as the inline example of PROTOCOL.md
        found = list(_native(data, ">"))
    else:
        raise ValueError(f"its magic number is {magic}, not {PORTABLE_MAGIC}")
    containers = _joined(found)
    checks = (_check_array, _check_bitmap, _check_runs)
    for kind, start, count in zip(containers.kinds, containers.starts, containers.counts, strict=True):
        checks[kind](data, int(start), int(count))
    return RoaringBitmapArray(data, containers)


def _portable(data: bytes) -> Iterator[Containers]:
    (count,) = _words(data, 4, "<q")
    position, previous = 12, -1
    _check_room(data, position, count, bytes_min=12)
    for _ in range(count):
        (key,) = _words(data, position, "<I")
        if not previous < key <= KEY_MAX:
            raise ValueError(f"the key {key} follows the key {previous}")
        containers, position = _containers(data, position + 4, key)
        previous = key
        yield containers
    _check_end(data, position)


def _native(data: bytes, byte_order: str) -> Iterator[Containers]:
    (count,) = _words(data, 4, f"{byte_order}i")
    position = 8
    _check_room(data, position, count, bytes_min=12)
    for key in range(count):
        (length,) = _words(data, position, f"{byte_order}i")
        containers, end = _containers(data, position + 4, key)
        if end != position + 4 + length:
            raise ValueError(f"a bitmap of {length} bytes takes {end - position - 4}")
        position = end
        yield containers
    _check_end(data, position)


def _containers(data: bytes, start: int, key: int) -> tuple[Containers, int]:
    """The containers of the 32-bit bitmap at `start`, and where it ends."""
    count, is_run, has_offsets, position = _cookie(data, start)
    pairs = _numbers(data, position, 2 * count).reshape(-1, 2).astype(np.int64)
    keys, counts = pairs[:, 0], pairs[:, 1] + 1
    if (keys[1:] <= keys[:-1]).any():
        raise ValueError("the keys of its containers do not ascend")
    position += 4 * count
    told = None
    if has_offsets:
        _check_bytes(data, position, 4 * count)
        told = np.frombuffer(data, "<u4", count, position).astype(np.int64) + start
        position += 4 * count
    kinds = np.where(is_run, RUNS, np.where(counts > ARRAY_VALUES_MAX, BITMAP, ARRAY)).astype(np.uint8)
    starts, end = _starts(data, position, kinds, counts)
    if told is not None and (told != starts).any():
        raise ValueError("a container is not where its header says")
    return Containers((key << 32) + (keys << 16), counts, kinds, starts), end


def _cookie(data: bytes, start: int) -> tuple[int, NDArray[np.bool_], bool, int]:
    """How many containers, which of them are runs, whether offsets follow, and where the header goes on."""
    (cookie,) = _words(data, start, "<I")
    if cookie == COOKIE_WITHOUT_RUNS:
        (count,) = _words(data, start + 4, "<I")
        if count > CONTAINER_ROWS:
            raise ValueError(f"a bitmap of 32 bits has {count} containers")
        return count, np.zeros(count, np.bool_), True, start + 8
    if cookie & 0xFFFF != COOKIE_WITH_RUNS:
        raise ValueError(f"a bitmap begins with {cookie}, which is no cookie of a Roaring bitmap")
    count = (cookie >> 16) + 1
    flags_bytes = (count + 7) // 8
    _check_bytes(data, start + 4, flags_bytes)
    flags = np.frombuffer(data, np.uint8, flags_bytes, start + 4)
    is_run = np.unpackbits(flags, bitorder="little", count=count).astype(np.bool_)
    return count, is_run, count >= NO_OFFSETS_BELOW, start + 4 + flags_bytes


def _starts(data: bytes, start: int, kinds: NDArray[np.uint8], counts: Positions) -> tuple[Positions, int]:
    """Where the data of each container begins, and where that of the last ends."""
    sizes = np.where(kinds == ARRAY, 2 * counts, BITMAP_BYTES)
    shift = 0  # the containers of runs come one by one: each tells its own size
    before = np.concatenate([[0], np.cumsum(np.where(kinds == RUNS, 0, sizes))])
    for at in np.flatnonzero(kinds == RUNS):
        (runs,) = _words(data, start + shift + int(before[at]), "<H")
        sizes[at] = 2 + 4 * runs
        shift += 2 + 4 * runs
    ends = start + np.cumsum(sizes)
    end = int(ends[-1]) if len(ends) else start
    _check_bytes(data, start, end - start)
    return ends - sizes, end


def _check_array(data: bytes, start: int, count: int) -> None:
    rows = _numbers(data, start, count)
    if (rows[1:] <= rows[:-1]).any():
        raise ValueError("the rows of a container do not ascend")


def _check_bitmap(data: bytes, start: int, count: int) -> None:
    found = int.from_bytes(data[start : start + BITMAP_BYTES], "little").bit_count()
    if found != count:
        raise ValueError(f"a container of {count} rows has {found}")


def _check_runs(data: bytes, start: int, count: int) -> None:
    firsts, ends = _runs(data, start)
    if (firsts[1:] < ends[:-1]).any() or (ends > CONTAINER_ROWS).any():
        raise ValueError("the runs of a container overlap or leave it")
    found = int((ends - firsts).sum())
    if found != count:
        raise ValueError(f"a container of {count} rows has {found}")


def _array_rows(data: bytes, start: int, count: int, low: int, high: int) -> Positions:
    rows = _numbers(data, start, count)
    first, end = np.searchsorted(rows, low), np.searchsorted(rows, high)
    return rows[first:end].astype(np.int64)


def _bitmap_rows(data: bytes, start: int, count: int, low: int, high: int) -> Positions:
    assert count > ARRAY_VALUES_MAX
    first, end = low // 8, (high + 7) // 8
    bits = np.unpackbits(np.frombuffer(data, np.uint8, end - first, start + first), bitorder="little")
    return np.flatnonzero(bits[low - 8 * first : high - 8 * first]) + low


def _run_rows(data: bytes, start: int, count: int, low: int, high: int) -> Positions:
    firsts, ends = _runs(data, start)
    assert len(firsts) <= count
    firsts, ends = np.maximum(firsts, low), np.minimum(ends, high)
    lengths = np.maximum(ends - firsts, 0)
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(lengths.sum()))


def _runs(data: bytes, start: int) -> tuple[Positions, Positions]:
    """First rows of the runs, and where they end."""
    (count,) = _words(data, start, "<H")
    pairs = _numbers(data, start + 2, 2 * count).reshape(-1, 2).astype(np.int64)
    return pairs[:, 0], pairs[:, 0] + pairs[:, 1] + 1


def _joined(found: list[Containers]) -> Containers:
    if len(found) == 1:
        return found[0]
    empty = np.zeros(0, np.int64)
    return Containers(
        np.concatenate([empty, *(each.first_rows for each in found)]),
        np.concatenate([empty, *(each.counts for each in found)]),
        np.concatenate([empty.astype(np.uint8), *(each.kinds for each in found)]),
        np.concatenate([empty, *(each.starts for each in found)]),
    )


def _words(data: bytes, start: int, form: str) -> tuple[int, ...]:
    _check_bytes(data, start, struct.calcsize(form))
    return struct.unpack_from(form, data, start)


def _numbers(data: bytes, start: int, count: int) -> NDArray[np.uint16]:
    _check_bytes(data, start, 2 * count)
    return np.frombuffer(data, "<u2", count, start)


def _check_bytes(data: bytes, start: int, length: int) -> None:
    if start + length > len(data):
        raise ValueError(f"it ends after {len(data)} bytes, before {start + length}")


def _check_room(data: bytes, start: int, count: int, *, bytes_min: int) -> None:
    """A count that the bytes cannot hold is not looped over."""
    if not 0 <= count * bytes_min <= len(data) - start:
        raise ValueError(f"it has {count} bitmaps in {len(data)} bytes")


def _check_end(data: bytes, end: int) -> None:
    if end != len(data):
        raise ValueError(f"its bitmaps end after {end} of {len(data)} bytes")
