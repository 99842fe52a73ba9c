"""Rows with the place they came from: what a page needs to go on after the last of them."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.rows.data_file import DataFile

FileKey = tuple[int, Any, str, str]  # comparable: rank and order value, raw path, dv id; Any: of one type


class RowPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A row of an ordered scan: its file's place in the order, and its index in the file.

    Order, path and deletion vector are as `DataFile` has them; the index counts deleted rows, too.
    """

    order_value: Any  # a plain value: text, number, truth, bytes, a decimal, None; times and dates as numbers
    raw_path: str
    dv_id: str | None
    row_index: int

    @property
    def file_key(self) -> FileKey:
        """Where its file stands in the order."""
        return _key(self.order_value, self.raw_path, self.dv_id)


class LocatedRows(msgspec.Struct, frozen=True, eq=False):
    """Consecutive rows of one file that go out, and where they lie in it."""

    file: DataFile
    rows: pa.RecordBatch
    row_index: pa.Int64Array | None = None  # of each row in the file; None where it was not asked for

    @property
    def num_rows(self) -> int:
        """How many."""
        return int(self.rows.num_rows)

    def slice(self, offset: int = 0, length: int | None = None) -> LocatedRows:
        """Some of them, without copying."""
        index = None if self.row_index is None else self.row_index.slice(offset, length)
        return LocatedRows(self.file, self.rows.slice(offset, length), index)

    @property
    def last_position(self) -> RowPosition:
        """Of the last row; only of an ordered scan that was asked for positions."""
        assert self.row_index is not None
        assert self.file.raw_path is not None
        return RowPosition(
            order_value=self.file.order_value,
            raw_path=self.file.raw_path,
            dv_id=self.file.dv_id,
            row_index=self.row_index[-1].as_py(),
        )


def file_key(file: DataFile) -> FileKey:
    """Where a file stands in an ordered scan: without an order value first, then NaN, then by value."""
    assert file.raw_path is not None, "only an ordered scan has keys"
    return _key(file.order_value, file.raw_path, file.dv_id)


def _key(order_value: Any, raw_path: str, dv_id: str | None) -> FileKey:  # Any: of the order column's type
    is_nan = isinstance(order_value, float) and math.isnan(order_value)
    rank = 0 if order_value is None else 1 if is_nan else 2
    return (rank, order_value if rank == 2 else 0, raw_path, dv_id or "")
