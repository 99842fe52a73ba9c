"""Text columns of fixed width, made as byte matrices: one row per value, one column per character.

Why: ten million paths and JSON lines in seconds. A matrix is filled column by column and becomes Arrow
strings, or the bytes of a whole commit file, without a Python object per row.
Contract: pure; every part of a row has the same width in all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# The alphabet of Z85, in which Delta writes the id of a deletion vector file.
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

Text = NDArray[np.uint8]  # shape (rows, width)
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint8).reshape(256, 2)
_Z85 = np.frombuffer(Z85, dtype=np.uint8)


def digits(values: Ints, width: int) -> Text:
    """Decimal digits, padded with zeros to `width`; larger values would lose their first digits."""
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return (values.astype(np.int64)[:, None] // powers % 10 + ord("0")).astype(np.uint8)


def looked_up(codes: Ints, words: Sequence[str]) -> Text:
    """The word of each code; all words have one width."""
    table = np.frombuffer("".join(words).encode(), dtype=np.uint8).reshape(len(words), -1)
    return table[codes]


def uuid_text(high: Words, low: Words) -> Text:
    """A version 4 UUID of two 64-bit words, 36 characters."""
    octets = uuid_bytes(high, low)
    text = _HEX[octets].reshape(len(octets), 32)
    cuts = (slice(0, 8), slice(8, 12), slice(12, 16), slice(16, 20), slice(20, 32))
    groups = [text[:, cut] for cut in cuts]
    dash = np.full((len(octets), 1), ord("-"), dtype=np.uint8)
    return np.hstack([groups[0], dash, groups[1], dash, groups[2], dash, groups[3], dash, groups[4]])


def uuid_z85(high: Words, low: Words) -> Text:
    """The same UUID in Z85, 20 characters."""
    words: Ints = uuid_bytes(high, low).view(">u4").astype(np.int64)
    powers = 85 ** np.arange(4, -1, -1, dtype=np.int64)
    codes: Ints = words[:, :, None] // powers % 85
    return _Z85[codes].reshape(len(words), 20)


def uuid_bytes(high: Words, low: Words) -> Text:
    """Sixteen bytes a row, big end first, with the version and variant bits of a random UUID."""
    octets = np.ascontiguousarray(np.stack([high, low], axis=1).astype(">u8")).view(np.uint8)
    octets = octets.reshape(len(high), 16)
    octets[:, 6] = (octets[:, 6] & 0x0F) | 0x40
    octets[:, 8] = (octets[:, 8] & 0x3F) | 0x80
    return octets


def joined(parts: Sequence[Text | bytes], row_count: int) -> Text:
    """Rows glued from matrices and constants, in order."""
    widths = [len(part) if isinstance(part, bytes) else part.shape[1] for part in parts]
    rows = np.empty((row_count, sum(widths)), dtype=np.uint8)
    start = 0
    for part, width in zip(parts, widths, strict=True):
        rows[:, start : start + width] = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
        start += width
    return rows


def strings(rows: Text) -> pa.StringArray:
    """An Arrow string column of the rows."""
    row_count, width = rows.shape
    assert row_count * width < 2**31, "chunks are cut so that 32-bit offsets suffice"
    offsets = np.arange(row_count + 1, dtype=np.int32) * np.int32(width)
    data = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.StringArray.from_buffers(row_count, pa.py_buffer(offsets), data)
