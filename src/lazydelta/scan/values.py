"""Arrow columns as Python values, a column at a time.

Why: a table of millions of files is printed row by row, and `to_pylist` makes an object of Arrow's for each
value first, which is several times slower for maps and structs.
Contract: the same values as `to_pylist(maps_as_pydicts="strict")` gives.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.errors import CorruptLogError


def values_of(column: pa.Array) -> list[Any]:  # Any: whatever the column holds
    """The values of a column; maps become dictionaries. Text that is not UTF-8 is a `CorruptLogError`."""
    try:
        return _values(column)
    except (UnicodeDecodeError, pa.ArrowException, KeyError) as damage:  # the last: a key comes twice
        raise CorruptLogError(
            f"the files of the table cannot be told: {damage}",
            "a path, a partition value or a tag of the log or the checkpoint",
            "restore the commit or the checkpoint that holds it: its text is not UTF-8, or a key comes twice",
        ) from damage


def _values(column: pa.Array) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_map(column.type):
        return _dictionaries(column)
    if pa.types.is_string(column.type) or (pa.types.is_integer(column.type) and not column.null_count):
        column = column.to_numpy(zero_copy_only=False)
        return list(column.tolist())
    return list(column.to_pylist(maps_as_pydicts="strict"))


def rows_of(batch: pa.RecordBatch) -> list[msgspec.Struct]:
    """The rows of a batch as structs with a field per column: msgspec makes and encodes them fastest."""
    row = _row_type(tuple(batch.schema.names))
    return list(map(row, *(values_of(column) for column in batch.columns)))


@cache
def _row_type(names: tuple[str, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Row", names, gc=False)


def _dictionaries(maps: pa.MapArray) -> list[dict[Any, Any] | None]:  # Any: keys and items of any type
    offsets = maps.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    keys = values_of(maps.keys.slice(first, last - first))
    items = values_of(maps.items.slice(first, last - first))
    bounds = (offsets - first).tolist()
    found: list[dict[Any, Any] | None] = [
        dict(zip(keys[start:stop], items[start:stop], strict=True)) for start, stop in pairwise(bounds)
    ]
    if maps.null_count:
        is_there = maps.is_valid().to_pylist()
        return [value if there else None for value, there in zip(found, is_there, strict=True)]
    return found
