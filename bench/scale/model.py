"""The arithmetic to a billion files: what queries and checkpoints cost, derived from ten million.

Contract: pure. Requests do not depend on the number of files. Bytes do through the manifest alone, whose
length follows from the number of parts; everything else is as measured at the size that it is derived from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from bench.pages import table_head, table_line
from bench.scale.report import Figures
from lazydelta import limits

# A packed entry of the part list: mostly the digits that differ from those of the entry before.
PACKED_PART_BYTES = 36
PLAIN_PART_BYTES, ZONE_BYTES = 300, 105  # of an entry, and of each column that it tells bounds of
ROW_GROUP_BYTES = 145  # of an entry, where row groups are listed
ROWS_A_GROUP, ROWS_A_PART = 10_000, 570_000  # with six columns of statistics
ZONE_COLUMNS = 3
_HEAD_BYTES = 2_500  # schema, protocol, binding


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """A query at one size, by the model."""

    files: int
    query: str
    requests: float
    bytes_read: float


def part_count(files: int) -> int:
    """Parts of a sidecar that was built at once."""
    return math.ceil(files / ROWS_A_PART)


def manifest_bytes(files: int) -> int:
    """The length of the manifest as it is stored."""
    parts, groups = part_count(files), math.ceil(files / ROWS_A_GROUP)
    zones = max(1, min(ZONE_COLUMNS, limits.SIDECAR_ZONE_ENTRIES_MAX // parts))
    listed = groups if groups <= limits.MANIFEST_ROW_GROUPS_MAX else 0
    plain = _HEAD_BYTES + parts * (PLAIN_PART_BYTES + zones * ZONE_BYTES) + listed * ROW_GROUP_BYTES
    return plain if plain <= limits.MANIFEST_PLAIN_BYTES_MAX else _HEAD_BYTES + parts * PACKED_PART_BYTES


def derived(figures: Sequence[Figures], *, base: int) -> list[Derived]:
    """What the figures at the base say of every larger size that was measured, too."""
    known = {one.query: one for one in figures if one.files == base and one.failure is None}
    return [
        Derived(
            files=one.files,
            query=one.query,
            requests=known[one.query].requests,
            bytes_read=known[one.query].bytes_read - manifest_bytes(base) + manifest_bytes(one.files),
        )
        for one in figures
        if one.files > base and one.query in known
    ]


def derived_page(figures: Sequence[Figures], *, base: int) -> str:
    """The model beside the measurements; nothing where the base was not measured."""
    measured = {(one.files, one.query): one for one in figures}
    rows = derived(figures, base=base)
    if not rows:
        return ""
    columns = ("files", "query", "requests derived", "measured", "bytes derived", "measured", "by each other")
    lines = [
        "## The model beside the measurements",
        "",
        f"Derived from {base:,} files.",
        "",
        *table_head(columns),
    ]
    for one in rows:
        found = measured[one.files, one.query]
        ratio = one.bytes_read / max(found.bytes_read, 1)
        cells = [f"{one.files:,}", one.query, f"{one.requests:.0f}", f"{found.requests:.0f}"]
        lines.append(
            table_line([*cells, f"{one.bytes_read:,.0f}", f"{found.bytes_read:,.0f}", f"{ratio:.2f}"])
        )
    return "\n".join(lines) + "\n"
