"""Arrow columns as objects of Python and pandas, or an error where those have no such value.

Why: Python's calendar ends with the years 1 and 9999 and its day at 23:59, Delta's and DuckDB's do not;
pyarrow fails with an `OverflowError`, or makes 00:00 of 24:00. Contract: no value is changed; what cannot be
told is a `LazyDeltaError` that says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from lazydelta.errors import CorruptDataError, LazyDeltaError

Row = tuple[object, ...]
_UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def python_rows(batch: pa.RecordBatch, where: str) -> list[Row]:
    """The rows as tuples."""
    with told_beyond(where):
        for column in batch.columns:
            _check_day_times(column)
        return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@contextmanager
def told_beyond(where: str) -> Iterator[None]:
    """Turn what a conversion says of values that Python does not have into our errors."""
    try:
        yield
    except UnicodeDecodeError as damage:
        raise CorruptDataError(
            f"a text is not UTF-8: {damage}", where, "write the rows of its data file again"
        ) from damage
    except (OverflowError, ValueError) as beyond:  # pyarrow's errors of values are ValueErrors, too
        raise LazyDeltaError(
            f"a value is none of Python's: {beyond}",
            where,
            "dates and times outside of the years 1 to 9999, infinite ones and 24:00 come as Arrow only: "
            "take the batches, or cast the column to text in SQL",
        ) from beyond


def _check_day_times(column: pa.Array) -> None:
    kind = column.type
    if kinds.is_time(kind):
        counts = column.cast(pa.int32() if kinds.is_time32(kind) else pa.int64())
        if pc.any(pc.greater_equal(counts, _UNITS_A_DAY[kind.unit])).as_py():
            raise ValueError("the time of the day is 24:00")
    elif kinds.is_struct(kind):
        for child in column.flatten():
            _check_day_times(child)
    elif kinds.is_map(kind):
        _check_day_times(column.keys)
        _check_day_times(column.items)
    elif kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        _check_day_times(column.flatten())
