"""Columns of a sidecar's file that are not what they must be, before anything is read of them.

Why: a file can be whole and lie. A path that is a date, or a column that is there twice, would go wrong far
from here, in words that nobody understands.
Contract: pure. Bounds may be of any type: those that do not fit the table's column say nothing.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from lazydelta.sidecar.format.layout import FIXED_FIELDS, field_kind, field_path

_FIXED = {field.name: field.type for field in FIXED_FIELDS} | {
    # Of a delta file.
    "version": pa.int64(),
    "action": pa.string(),
    "protocol": pa.string(),
    "metadata": pa.string(),
}
_BY_KIND = {"null_count": pa.int64(), "raw_partition": pa.string()}


def column_twice(schema: pa.Schema) -> str | None:
    """What is wrong where two columns have one name."""
    twice = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    return None if twice is None else f"it has the column {twice!r} twice"


def odd_column(schema: pa.Schema) -> str | None:
    """What is wrong with a column that has a type of its own; the fields tell their roles."""
    for field in schema:
        is_fixed = field_path(field) is None
        wanted = _FIXED.get(field.name) if is_fixed else _BY_KIND.get(field_kind(field) or "")
        if wanted is not None and not field.type.equals(wanted):
            return f"its column {field.name!r} is of the type {field.type}, not {wanted}"
    return None
