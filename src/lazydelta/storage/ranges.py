"""Which requests to make for many byte ranges of one object: near ones become one.

Why: a round trip costs about as much as reading a few hundred KiB more. Pure, so local and remote
storage ask for the same requests and a test can count them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lazydelta import limits


class Span(msgspec.Struct, kw_only=True):
    """One request, and which of the ranges asked for lie in it (by position in the question)."""

    start: int
    end: int
    members: list[int]


def coalesce(
    ranges: Sequence[tuple[int, int]], *, gap_bytes_max: int = limits.RANGE_COALESCE_BYTES
) -> list[Span]:
    """Spans that cover every (start, length) of `ranges`; empty ranges need none."""
    spans: list[Span] = []
    for position in sorted(range(len(ranges)), key=lambda at: ranges[at]):
        start, length = ranges[position]
        if start < 0 or length < 0:
            raise ValueError(f"no such range: start {start}, length {length}")
        if length == 0:
            continue
        last = spans[-1] if spans else None
        if last is not None and start - last.end < gap_bytes_max:
            last.end = max(last.end, start + length)
            last.members.append(position)
        else:
            spans.append(Span(start=start, end=start + length, members=[position]))
    return spans


def cut(ranges: Sequence[tuple[int, int]], spans: Sequence[Span], bodies: Sequence[bytes]) -> list[bytes]:
    """The bytes of each range, in the order of the question, out of the spans' bodies."""
    found = [b""] * len(ranges)
    for span, body in zip(spans, bodies, strict=True):
        for position in span.members:
            start, length = ranges[position]
            offset = start - span.start
            # A span with one member is handed through: bytes[0:n] of its own length makes no copy.
            found[position] = body[offset : offset + length]
    return found
