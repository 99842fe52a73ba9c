"""Parquet files of a size that is known before they are made.

Why: the manifest of a simulated table tells the size of every part, and parts are made when they are asked
for. Contract: the rows and their pages are as the writer wrote them. What is missing to the size lies between
the last page and the footer, where no reader looks; what is missing to the footer's length is a field of the
footer that no reader knows, so that each passes over it, as Thrift has it.
"""

from __future__ import annotations

from lazydelta.sidecar.format.part_encoding import footer_length

_TRAILER_BYTES = 8  # the footer's length and Parquet's mark
_STOP = b"\x00"
# Thrift's compact protocol: a field of bytes with an id of its own, far from those of Parquet.
_UNKNOWN_FIELD = b"\x08" + b"\x80\x7d"  # bytes; id 8000 as zigzag varint
_LEAST_PAD = len(_UNKNOWN_FIELD) + 4  # and a length of up to four bytes


def padded(body: bytes, *, size: int, footer_bytes: int) -> bytes:
    """The file with exactly this size, its footer (with its trailer) of exactly that length."""
    length = footer_length(body)
    footer = body[-length:-_TRAILER_BYTES]
    missing = footer_bytes - length
    assert missing >= _LEAST_PAD, f"a footer of {length:,} bytes is to have {footer_bytes:,}"
    assert footer.endswith(_STOP), "a footer is one structure"
    fill = missing - len(_UNKNOWN_FIELD) - 4
    footer = b"".join((footer[:-1], _UNKNOWN_FIELD, _four_bytes(fill), bytes(fill), _STOP))
    trailer = len(footer).to_bytes(4, "little") + body[-4:]
    gap = size - (len(body) - length) - len(footer) - _TRAILER_BYTES
    assert gap >= 0, f"a file of {len(body):,} bytes is to have {size:,}"
    return b"".join((body[:-length], bytes(gap), footer, trailer))


def _four_bytes(number: int) -> bytes:
    """A varint of four bytes, whatever the number."""
    assert number < 1 << 28
    low = [number >> shift & 0x7F for shift in (0, 7, 14, 21)]
    return bytes([low[0] | 0x80, low[1] | 0x80, low[2] | 0x80, low[3]])
