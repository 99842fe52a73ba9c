"""Deletion vectors as writers make them: bitmaps of every container kind, files of several, descriptors.

Why: the reader's twin. It is written from the specifications, a row at a time, and shares no code with it.
Spec: PROTOCOL.md, "Deletion Vector Format"; github.com/RoaringBitmap/RoaringFormatSpec.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

# Which containers are written as runs, by their number in the 32-bit bitmap.
AsRuns = Callable[[int], bool]


def never(_: int) -> bool:
    """No container is written as runs."""
    return False


def always(_: int) -> bool:
    """Every container is written as runs."""
    return True


def bitmap_array(rows: Iterable[int], *, as_runs: AsRuns = never, is_native: bool = False) -> bytes:
    """The data of a deletion vector that lists these rows."""
    buckets = {key: list(group) for key, group in groupby(sorted(set(rows)), lambda row: row >> 32)}
    if is_native:
        bitmaps = [bitmap_32(buckets.get(key, []), as_runs) for key in range(max(buckets, default=-1) + 1)]
        sized = (struct.pack("<i", len(bitmap)) + bitmap for bitmap in bitmaps)
        return struct.pack("<ii", 1681511376, len(bitmaps)) + b"".join(sized)
    keyed = (struct.pack("<I", key) + bitmap_32(members, as_runs) for key, members in buckets.items())
    return struct.pack("<iq", 1681511377, len(buckets)) + b"".join(keyed)


def bitmap_32(rows: Sequence[int], as_runs: AsRuns) -> bytes:
    """A Roaring bitmap of the lower 32 bits."""
    low = [row & 0xFFFF_FFFF for row in rows]
    containers = [
        (key, [row & 0xFFFF for row in group]) for key, group in groupby(low, lambda row: row >> 16)
    ]
    flags = [as_runs(at) for at in range(len(containers))]
    bodies = [
        runs_body(members) if is_run else plain_body(members)
        for (_, members), is_run in zip(containers, flags, strict=True)
    ]
    if any(flags):
        packed = bytearray((len(flags) + 7) // 8)
        for at, is_run in enumerate(flags):
            packed[at // 8] |= is_run << (at % 8)
        header = struct.pack("<HH", 12347, len(containers) - 1) + bytes(packed)
    else:
        header = struct.pack("<II", 12346, len(containers))
    header += b"".join(struct.pack("<HH", key, len(members) - 1) for key, members in containers)
    if not any(flags) or len(containers) >= 4:
        position = len(header) + 4 * len(bodies)
        for body in bodies:
            header += struct.pack("<I", position)
            position += len(body)
    return header + b"".join(bodies)


def plain_body(members: Sequence[int]) -> bytes:
    """An array up to 4096 rows, bits beyond: the reader tells them apart by their number alone."""
    if len(members) <= 4096:
        return struct.pack(f"<{len(members)}H", *members)
    bits = bytearray(8192)
    for row in members:
        bits[row // 8] |= 1 << (row % 8)
    return bytes(bits)


def runs_body(members: Sequence[int]) -> bytes:
    """First rows of runs, each with the number of rows that follow it."""
    runs: list[list[int]] = []
    for row in members:
        if runs and row == runs[-1][0] + runs[-1][1] + 1:
            runs[-1][1] += 1
        else:
            runs.append([row, 0])
    return struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)


def encode_z85(data: bytes, *, like_rust: bool = False) -> str:
    """Z85; the last bytes are padded to a word with zeros behind them or, as in Rust, told by `#` before."""
    text, tail = "", len(data) - len(data) % 4 if like_rust else len(data)
    for at in range(0, tail, 4):
        text += _five_characters(data[at : at + 4].ljust(4, b"\0"))
    missing = -len(data[tail:]) % 4
    return text + ("#" * missing + _five_characters(data[tail:].rjust(4, b"\0"))[missing:] if missing else "")


def _five_characters(word: bytes) -> str:
    number = int.from_bytes(word, "big")
    return "".join(ALPHABET[number // 85**power % 85] for power in (4, 3, 2, 1, 0))


def inline_vector(rows: Iterable[int], **form: Any) -> dict[str, Any]:
    """The descriptor of a vector in the log itself."""
    data = bitmap_array(members := set(rows), **form)
    return {
        "storageType": "i",
        "pathOrInlineDv": encode_z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(members),
    }


def stored_vectors(
    folder: Path,
    vectors: Sequence[Iterable[int]],
    *,
    prefix: str = "",
    is_absolute: bool = False,
    **form: Any,
) -> list[dict[str, Any]]:
    """One file below `folder` with these vectors; their descriptors."""
    uuid = uuid4()
    path = vector_path(folder, uuid, prefix)
    path.parent.mkdir(parents=True, exist_ok=True)
    place = {
        "storageType": "p" if is_absolute else "u",
        "pathOrInlineDv": path.as_uri() if is_absolute else prefix + encode_z85(uuid.bytes),
    }
    body, descriptors = b"\x01", []
    for rows in vectors:
        data = bitmap_array(members := set(rows), **form)
        where = {"offset": len(body), "sizeInBytes": len(data), "cardinality": len(members)}
        descriptors.append({**place, **where})
        body += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    path.write_bytes(body)
    return descriptors


def vector_path(folder: Path, uuid: UUID, prefix: str = "") -> Path:
    """Where the protocol puts the file of a relative vector."""
    return folder / prefix / f"deletion_vector_{uuid}.bin"


def snake_case(descriptor: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a descriptor by their Python names."""
    names = {
        "storageType": "storage_type",
        "pathOrInlineDv": "path_or_inline_dv",
        "sizeInBytes": "size_in_bytes",
    }
    return {names.get(name, name): value for name, value in descriptor.items()}
