"""A checksum of a Parquet file's footer, in the file itself: eight bytes in front of the footer.

Why: Arrow may abort the whole process over a footer with a flipped bit, so a footer is checked before Arrow
sees it. Parts are vouched for by their manifest; a file that no manifest names, or whose manifest is lost,
vouches for itself.
Contract: plain Parquet, whose readers find the footer from the end of the file and pages by their offsets:
what lies between the last page and the footer is nobody's.
"""

from __future__ import annotations

import zlib

from lazydelta.sidecar.format.part_encoding import footer_length

SEAL_BYTES = 8
TRAILER_BYTES = 8  # the footer's length and Parquet's mark
_MARK = b"LDFC"
_PARQUET_MARK = b"PAR1"


def sealed(body: bytes) -> bytes:
    """The file with the checksum of its footer in front of it."""
    start = len(body) - footer_length(body)
    return b"".join((body[:start], _seal(memoryview(body)[start:]), body[start:]))


def sealed_length(trailer: bytes | memoryview, size_bytes: int) -> int | None:
    """The bytes of seal and footer, by the file's last bytes; None where they make no sense."""
    length = int.from_bytes(trailer[:4], "little") + TRAILER_BYTES + SEAL_BYTES
    return length if bytes(trailer[4:]) == _PARQUET_MARK and length < size_bytes else None


def is_intact(seal_and_footer: bytes | memoryview) -> bool:
    """Whether the footer is the one that was sealed."""
    view = memoryview(seal_and_footer)
    return bytes(view[:SEAL_BYTES]) == _seal(view[SEAL_BYTES:])


def _seal(footer: memoryview) -> bytes:
    return _MARK + zlib.crc32(footer).to_bytes(4, "little")
