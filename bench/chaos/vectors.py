"""Deletion vectors, decoded a second time: which rows of a file are gone.

Why: the rows that a reader gave are compared with those that this file leaves. It is written from the
specifications and shares no line with lazydelta.
Spec: PROTOCOL.md, "Deletion Vectors"; github.com/RoaringBitmap/RoaringFormatSpec.
"""

from __future__ import annotations

import struct
from pathlib import Path
from uuid import UUID

import numpy as np

from tests.support.deletion_vector_writer import ALPHABET
from tests.support.keys import Action

_PLACES = {letter: place for place, letter in enumerate(ALPHABET)}


def deleted_rows(vector: Action, root: Path) -> set[int]:
    """The indices that the vector lists."""
    if vector["storageType"] == "i":
        data = decode_z85(vector["pathOrInlineDv"])
    else:
        assert vector["storageType"] == "u", vector
        body = (root / vector_file(vector)).read_bytes()
        at = vector.get("offset") or 0
        (size,) = struct.unpack_from(">I", body, at)
        data = body[at + 4 : at + 4 + size]
    rows = _bitmap_array(data)
    assert len(rows) == vector["cardinality"], vector
    return rows


def vector_file(vector: Action) -> str:
    """Its file's name below the table."""
    text = vector["pathOrInlineDv"]
    prefix, encoded = text[:-20], text[-20:]
    name = f"deletion_vector_{UUID(bytes=decode_z85(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def decode_z85(text: str) -> bytes:
    """Five characters for four bytes."""
    words = []
    for at in range(0, len(text), 5):
        number = 0
        for letter in text[at : at + 5]:
            number = number * 85 + _PLACES[letter]
        words.append(number.to_bytes(4, "big"))
    return b"".join(words)


def _bitmap_array(data: bytes) -> set[int]:
    magic, count = struct.unpack_from("<iq", data, 0)
    assert magic == 1681511377, magic
    rows: set[int] = set()
    at = 12
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, at)
        low, at = _bitmap_32(data, at + 4)
        rows.update((high << 32) | row for row in low)
    return rows


def _bitmap_32(data: bytes, at: int) -> tuple[list[int], int]:
    """The rows of one Roaring bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    is_run = [False] * 65536
    if cookie & 0xFFFF == 12347:
        count = (cookie >> 16) + 1
        flags = data[at + 4 : at + 4 + (count + 7) // 8]
        is_run = [bool(flags[number // 8] >> number % 8 & 1) for number in range(count)]
        at += 4 + len(flags)
    else:
        assert cookie == 12346, cookie
        (count,) = struct.unpack_from("<I", data, at + 4)
        at += 8
    keys = [struct.unpack_from("<HH", data, at + 4 * number) for number in range(count)]
    at += 4 * count
    if cookie == 12346 or count >= 4:
        at += 4 * count  # where each container begins
    rows: list[int] = []
    for number, (key, less_one) in enumerate(keys):
        low, at = _container(data, at, less_one + 1, is_run=is_run[number])
        rows += [(key << 16) | row for row in low]
    return rows, at


def _container(data: bytes, at: int, count: int, *, is_run: bool) -> tuple[list[int], int]:
    if is_run:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = np.frombuffer(data, "<u2", 2 * runs, at + 2).reshape(-1, 2).astype(int)
        return [row for first, more in pairs for row in range(first, first + more + 1)], at + 2 + 4 * runs
    if count <= 4096:
        return np.frombuffer(data, "<u2", count, at).astype(int).tolist(), at + 2 * count
    bits = np.unpackbits(np.frombuffer(data, "u1", 8192, at), bitorder="little")
    return np.flatnonzero(bits).tolist(), at + 8192
