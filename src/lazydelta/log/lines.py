"""Bytes of a log file into decoded lines, a bounded slice at a time.

Contract: `chunks` are consecutive bytes of one file; what comes out is every line in order, in lists whose
text is about `COMMIT_CHUNK_BYTES`, so that a commit of a million adds takes the memory of one slice. A
line that does not decode is an error that names the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.protocol.actions import ActionLine, CommitInfo, Metadata, Protocol

Line = TypeVar("Line")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last: it nests too deeply


class StateLine(msgspec.Struct, rename="camel"):
    """What decides how files are read, without the files."""

    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    commit_info: CommitInfo | None = None


ACTION_DECODER = msgspec.json.Decoder(ActionLine)
STATE_DECODER = msgspec.json.Decoder(StateLine)


def pieces(body: bytes) -> Iterator[bytes]:
    """A body in memory as chunks, so that it is decoded a slice at a time too."""
    piece_bytes = limits.COMMIT_CHUNK_BYTES
    if len(body) <= piece_bytes:
        yield body
        return
    view = memoryview(body)
    for start in range(0, len(body), piece_bytes):
        yield bytes(view[start : start + piece_bytes])


def decoded_lines(
    chunks: Iterable[bytes], decoder: msgspec.json.Decoder[Line], where: str
) -> Iterator[tuple[bytes, list[Line]]]:
    """The lines of a file, decoded, with the text they came from."""
    line_number = 1
    is_empty = True
    for text in whole_lines(chunks, where):
        lines = _decode(text, decoder, where=where, first_line=line_number)
        line_count = text.count(b"\n") + 1
        if len(lines) > line_count:
            raise CorruptLogError("a line holds more than one action", where, "restore the file")
        line_number += line_count
        is_empty = is_empty and not lines
        yield text, lines
    if is_empty:
        raise CorruptLogError("the file is empty", where, "restore it: a commit holds at least one action")


def whole_lines(chunks: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Chunks cut anew at line ends; the last newline of each is left off."""
    rest: list[bytes] = []  # of a line that goes on
    for chunk in chunks:
        cut = chunk.rfind(b"\n")
        if cut < 0:
            rest.append(chunk)
            if sum(map(len, rest)) > limits.LOG_LINE_BYTES_MAX:
                raise CorruptLogError(
                    f"a line is longer than {limits.LOG_LINE_BYTES_MAX >> 20} MiB", where, "restore the file"
                )
            continue
        yield b"".join([*rest, chunk[:cut]]) if rest else chunk[:cut]
        rest = [chunk[cut + 1 :]] if cut + 1 < len(chunk) else []
    if rest:
        yield b"".join(rest)


def non_blank(text: bytes) -> list[bytes]:
    """The lines of a text as the decoder counts them: blank ones do not count."""
    return [line for line in text.split(b"\n") if line.strip()]


def _decode(text: bytes, decoder: msgspec.json.Decoder[Line], *, where: str, first_line: int) -> list[Line]:
    try:
        return decoder.decode_lines(text)
    except _UNREADABLE as damage:
        for number, line in enumerate(text.split(b"\n"), first_line):
            if not line.strip():
                continue
            try:
                decoder.decode(line)
            except _UNREADABLE as reason:
                raise CorruptLogError(
                    f"line {number} is not a Delta action: {reason}",
                    f"{where}, line {number}",
                    "restore the file",
                ) from reason
        raise CorruptLogError(f"lines cannot be decoded: {damage}", where, "restore the file") from damage
