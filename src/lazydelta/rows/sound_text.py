"""Whether the texts of rows are UTF-8: Parquet and Arrow take them on trust, and engines crash or guess.

Contract: the error names the first column with a text that is none; rows are not changed.
Texts of plain ASCII, which most are, cost one look at their bytes and none at each text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_OFFSETS = {pa.string(): np.int32, pa.large_string(): np.int64}
_ASCII_END = 0x80


class BrokenTextError(Exception):
    """A text that is not UTF-8; its text is the column's name."""


def check_texts(rows: pa.RecordBatch) -> None:
    """Raise where a text, nested ones included, is not UTF-8."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not _holds_text(field.type) or _is_ascii(column):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as problem:
            raise BrokenTextError(repr(field.name)) from problem


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_holds_text(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_ascii(column: pa.Array) -> bool:
    """Whether this is proven at a glance; nested texts and those in dictionaries are not looked at."""
    width = _OFFSETS.get(column.type)
    if width is None:
        return False
    _, offsets, body = column.buffers()
    if body is None or offsets is None:
        return True
    ends = np.frombuffer(offsets, width)[[column.offset, column.offset + len(column)]]
    texts = np.frombuffer(body, np.uint8)[slice(*ends)]
    return not texts.size or bool(texts.max() < _ASCII_END)
