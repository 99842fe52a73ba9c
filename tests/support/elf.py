"""The names that a shared library of Linux exports, as `nm -D --defined-only` lists them."""

from __future__ import annotations

import struct

_DYNAMIC_SYMBOLS = 11  # the type of the section


def exported_names(library: bytes) -> set[str]:
    """64 bits, little-endian."""
    assert library[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, table + size * i) for i in range(count)]
    symbols = next(section for section in sections if section[1] == _DYNAMIC_SYMBOLS)
    place, length, names_at = symbols[4], symbols[5], sections[symbols[6]][4]
    found = set()
    for at in range(place, place + length, symbols[9]):
        name, _, _, section = struct.unpack_from("<IBBH", library, at)
        if section:  # 0: defined elsewhere
            start = names_at + name
            found.add(library[start : library.index(b"\0", start)].decode())
    return found
