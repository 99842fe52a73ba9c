"""Where an ordered scan begins, so that the next page seeks to its place instead of reading up to it.

Contract: files are in one total order: order value, path as the log spells it, dvId (none is the empty text);
an anchor is a place in it. What lies before the anchor is left out, exactly; row groups and parts that end
before it are not read. The value is plain, so that a token can carry it: times and dates as numbers, decimals
as text.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import RAW_PATH, Mask
from lazydelta.protocol.actions import dv_id
from lazydelta.sidecar.order.sort_keys import SortKey, key_of, positions_of
from lazydelta.sidecar.read.traversal import ORDER_VALUE, Traversal

_DELETION_VECTOR = "deletion_vector"


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """One file's place in the order."""

    column: tuple[str, ...] | None  # that the order goes by, physical; None: by path alone
    type_name: str | None  # of the column
    value: Any  # plain; Any: of the column's type
    raw_path: str
    dv_id: str = ""
    is_included: bool = False  # whether the file itself comes, too

    def scalars(self, traversal: Traversal) -> list[pa.Scalar]:
        """The keys of the traversal; `ValueError` where the value is not one of its column."""
        path = pa.scalar(self.raw_path, pa.string())
        if traversal.column is None:
            return [path]
        kind = next(field.type for field in traversal.key_fields if field.name == ORDER_VALUE)
        return [_scalar(self.value, kind), path]

    def key(self, traversal: Traversal) -> SortKey:
        """To compare with bounds and with keys of rows of that traversal."""
        return key_of(self.scalars(traversal), descending=traversal.descending)


def plain_values(column: pa.Array) -> list[Any]:  # Any: as the column's type
    """The values as Python has them; times and dates as numbers, since Python's end at the year 9999."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return list(column.to_pylist())


def from_anchor_on(rows: pa.RecordBatch, anchor: Anchor, traversal: Traversal) -> pa.RecordBatch:
    """The rows that do not lie before the anchor; they have its keys and `deletion_vector`."""
    places = positions_of(rows, traversal.keys, anchor.scalars(traversal))
    if traversal.descending:
        places = -places
    kept: Mask = places > 0
    for row in np.flatnonzero(places == 0).tolist():  # one path, several deletion vectors: a few at most
        own = dv_ids(rows.slice(row, 1))[0]
        is_after = own < anchor.dv_id if traversal.descending else own > anchor.dv_id
        kept[row] = is_after or (anchor.is_included and own == anchor.dv_id)
    return rows if kept.all() else rows.filter(pa.array(kept))


def with_ties_in_order(rows: pa.RecordBatch, traversal: Traversal) -> pa.RecordBatch:
    """Sorted rows with those of one key by their deletion vectors."""
    first, second = rows.slice(0, max(0, rows.num_rows - 1)), rows.slice(1)
    if rows.num_rows < 2 or not _equal_paths(first, second).any():
        return rows
    ids = dv_ids(rows)
    keys = [key_of([rows.column(key)[row] for key in traversal.keys]) for row in range(rows.num_rows)]
    order = list(range(rows.num_rows))
    start = 0
    for end in range(1, rows.num_rows + 1):
        if end == rows.num_rows or keys[end] != keys[start]:
            order[start:end] = sorted(
                range(start, end), key=lambda row: ids[row], reverse=traversal.descending
            )
            start = end
    return rows.take(pa.array(order))


def dv_ids(rows: pa.RecordBatch) -> list[str]:
    """What tells rows of one path apart."""
    if _DELETION_VECTOR not in rows.schema.names:
        return [""] * rows.num_rows
    return [
        "" if one is None else dv_id(one["storage_type"], one["path_or_inline_dv"], one["offset"])
        for one in rows.column(_DELETION_VECTOR).to_pylist()
    ]


def _equal_paths(first: pa.RecordBatch, second: pa.RecordBatch) -> Mask:
    left, right = first.column(RAW_PATH), second.column(RAW_PATH)
    found: Mask = np.asarray(pc.equal(left, right).fill_null(False))
    return found


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:  # Any: as a token has it
    try:
        if value is None:
            return pa.scalar(None, kind)
        if pa.types.is_temporal(kind):
            return pa.scalar(value, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(str(value)), kind)
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, OverflowError, InvalidOperation) as problem:
        raise ValueError(f"{value!r} is no {kind}") from problem
