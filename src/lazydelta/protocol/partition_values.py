"""Partition values: one column out of the map of strings, and its strings as typed values.

Contract: `raw_partition_column` keeps what the writer wrote, so that a caller can tell null, the empty string
and a text that does not parse apart; `parse_partition_column` gives the typed reading alone.
Spec: PROTOCOL.md, "Partition Value Serialization".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.schema import PrimitiveType
from lazydelta.protocol.value_text import values_from_text


def raw_partition_column(partition_values: pa.MapArray, physical_name: str) -> pa.StringArray:
    """The strings of one partition column, null where a file's map has no such key or a null value."""
    row_count = len(partition_values)
    keys, items = partition_values.keys, partition_values.items
    offsets = np.asarray(partition_values.offsets)
    is_wanted = pc.fill_null(pc.equal(keys, pa.scalar(physical_name, keys.type)), False)
    entries = np.flatnonzero(is_wanted.to_numpy(zero_copy_only=False))
    rows = np.searchsorted(offsets, entries, side="right") - 1
    is_inside = (entries >= offsets[0]) & (entries < offsets[-1]) if row_count else np.zeros(0, bool)
    positions = np.full(row_count, -1, np.int64)
    positions[rows[is_inside]] = entries[is_inside]
    absent = (positions < 0) | ~partition_values.is_valid().to_numpy(zero_copy_only=False)
    taken = items.take(pa.array(positions, mask=absent))
    return taken if pa.types.is_string(taken.type) else taken.cast(pa.string())


def parse_partition_column(
    raw: pa.StringArray,
    type: PrimitiveType,  # noqa: A002  # as everywhere in this room
    *,
    time_zone: str = "UTC",
    prefer_latest: bool = False,
) -> pa.Array:
    """Typed values; null for null, for the empty string (but not of a string or binary), for the unparseable.

    Timestamps without a zone are taken in `time_zone` (PROTOCOL.md: the zone of the system that wrote them).
    """
    distinct = raw.dictionary_encode()  # a partition value repeats over many files: parse it once
    values = values_from_text(
        distinct.dictionary, type.name, time_zone=time_zone, prefer_latest=prefer_latest
    )
    return values.take(distinct.indices)
