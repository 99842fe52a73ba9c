"""The heads of a Parquet column chunk's pages, as its bytes go by: how large each page says it will be.

Why: a page of a few kilobytes may decompress to two gigabytes, and the footer need not tell.
Contract: pure. `seen` takes the bytes of the chunk in order, in pieces of any size; a page that is larger
than `limits.PARQUET_PAGE_BYTES_MAX` is a `PageDamageError`. Heads as most writers write them are matched by a
pattern, in a few microseconds; others are taken apart. Behind something that is no head of a page
nothing is looked at: Arrow reads no page there, either, and some writers leave a gap behind the last one.
Nothing is kept but a head that a piece cuts off.
Spec: parquet.thrift, "PageHeader".
"""

from __future__ import annotations

import re
from typing import Any

from lazydelta import limits
from lazydelta.protocol.parquet_footer import FooterDamageError, NotThriftError, thrift_struct

_HEAD_BYTES_MAX = 64 * limits.KIB  # a head may hold bounds of its page
_NUMBER = 5  # Thrift's kind

# A page of data or a dictionary as most writers have it: its type, both sizes, perhaps a checksum, a struct.
# Ids only grow in it and every length is told, so that it ends where Thrift ends it. It needs no possessive
# quantifiers: see the patterns of parquet_footer.py.
_INT32 = rb"(?:[\x80-\xff]{0,3}[\x00-\x7f]|[\x80-\xff]{4}[\x00-\x0f])"
_INT64 = rb"[\x80-\xff]{0,8}[\x00-\x7f]"
_TEXT = b"(?:%s)" % b"|".join(b"\\x%02x.{%d}" % (size, size) for size in range(33))
_BOUNDS = b"(?:[\\x18\\x28\\x38\\x48\\x58\\x68]%s|[\\x16\\x26\\x36]%s|[\\x11\\x12]){0,16}" % (_TEXT, _INT64)
_DATA = b"(?:\\x2c|\\x15%s\\x1c)(?:\\x15%s){4}(?:\\x1c%s\\x00)?\\x00" % (_INT32, _INT32, _BOUNDS)
_DICTIONARY = b"(?:\\x4c|\\x15%s\\x3c)(?:\\x15%s){2}[\\x11\\x12]?\\x00" % (_INT32, _INT32)
_USUAL_HEAD = re.compile(
    b"\\x15%s\\x15(%s)\\x15(%s)(?:%s|%s)\\x00" % (_INT32, _INT32, _INT32, _DATA, _DICTIONARY), re.DOTALL
)


class PageDamageError(ValueError):
    """A page that is too large, or whose head is made to hide that."""


class PageHeads:
    """One column chunk, front to back."""

    def __init__(self) -> None:
        self._left = 0  # bytes of the current page that are still to come
        self._cut = b""  # a head that goes on in the next piece
        self._is_over = False

    @property
    def to_skip(self) -> int:
        """How many bytes come before the next head: those of a page, which need not be seen."""
        return self._left

    @property
    def is_over(self) -> bool:
        """There are no more heads."""
        return self._is_over

    def skip(self, count: int) -> None:
        """So many of the bytes that come before the next head go by unseen."""
        assert 0 <= count <= self._left
        self._left -= count

    def seen(self, piece: bytes | memoryview) -> None:
        """The next bytes."""
        position = 0
        while position < len(piece) and not self._is_over:
            if self._left:
                step = min(self._left, len(piece) - position)
                self._left -= step
                position += step
                continue
            if not self._cut and (usual := _USUAL_HEAD.match(piece, position)) is not None:
                self._enter(_integer(usual[1]), _integer(usual[2]))
                position = usual.end()
                continue
            window = self._cut + bytes(piece[position : position + _HEAD_BYTES_MAX])
            head_bytes = self._head(window)
            if head_bytes is None:
                self._cut = window
                return
            position += head_bytes - len(self._cut)
            self._cut = b""

    def _head(self, window: bytes) -> int | None:
        """The length of the head that the window begins with; None where it does not end there."""
        try:
            head, end = thrift_struct(window, 0)
        except IndexError:
            if len(window) >= _HEAD_BYTES_MAX:
                raise PageDamageError("the head of a page is too long") from None
            return None
        except NotThriftError:
            self._is_over = True
            return len(window)
        except FooterDamageError as damage:
            raise PageDamageError("the head of a page cannot be read") from damage
        self._enter(_number(head, 2), _number(head, 3))
        return end

    def _enter(self, decoded: int | None, stored: int | None) -> None:
        """A page begins, of so many bytes."""
        if decoded is None or stored is None or stored < 0:
            self._is_over = True
            return
        if not 0 <= decoded <= limits.PARQUET_PAGE_BYTES_MAX:
            raise PageDamageError(
                f"a page would have {decoded:,} bytes, and {limits.PARQUET_PAGE_BYTES_MAX:,} are the most"
            )
        self._left = stored


def _number(struct: dict[int, tuple[int, Any]], field: int) -> int | None:  # Any: as Thrift has it
    kind, value = struct.get(field, (0, None))
    return int(value) if kind == _NUMBER else None


def _integer(digits: bytes) -> int:
    """A number of Thrift's: seven bits a byte, the lowest first, the sign in the lowest of all."""
    raw = 0
    for byte in reversed(digits):
        raw = raw << 7 | byte & 0x7F
    return (raw >> 1) ^ -(raw & 1)
