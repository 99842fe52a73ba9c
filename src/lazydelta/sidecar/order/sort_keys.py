"""How rows of a sidecar compare: nulls, then NaN, then values; strings by their bytes; or all of it reversed.

Contract: keys of rows compare in Python as Arrow sorts the rows. A key may begin like that of a row and end
early: `before_all` makes one that no row with these values comes before, in the direction of the sort.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import Mask

_NULL, _NAN, _VALUE, _ABOVE = range(4)  # what a part of a key begins with; the last is above every value
Comparable = tuple[object, ...]
NAN_KEY: Comparable = (_NAN,)  # above null, below every value


class SortKey(tuple[Comparable, ...]):
    """The key of a row: a comparable for each key column."""

    __slots__ = ()


class _Downwards(SortKey):
    """The same for a descending sort: what is greater comes first."""

    __slots__ = ()

    def __lt__(self, other: tuple[Comparable, ...]) -> bool:
        return tuple.__gt__(self, other)

    def __le__(self, other: tuple[Comparable, ...]) -> bool:
        return tuple.__ge__(self, other)

    def __gt__(self, other: tuple[Comparable, ...]) -> bool:
        return tuple.__lt__(self, other)

    def __ge__(self, other: tuple[Comparable, ...]) -> bool:
        return tuple.__le__(self, other)


def key_at(rows: pa.RecordBatch, row: int, keys: Sequence[str], *, descending: bool = False) -> SortKey:
    """The key of one row."""
    found = (comparable(rows.column(key)[row]) for key in keys)
    return _Downwards(found) if descending else SortKey(found)


def key_of(scalars: Sequence[pa.Scalar], *, descending: bool = False) -> SortKey:
    """The key that a row with these values has."""
    found = map(comparable, scalars)
    return _Downwards(found) if descending else SortKey(found)


def before_all(values: Sequence[Comparable], *, descending: bool = False) -> SortKey:
    """A key that comes before those of all rows that begin with these values."""
    return _Downwards((*values, (_ABOVE,))) if descending else SortKey(values)


def comparable(scalar: pa.Scalar) -> Comparable:
    """One value of a key."""
    if not scalar.is_valid:
        return (_NULL,)
    is_temporal = pa.types.is_temporal(scalar.type)  # years past 9999 have no datetime
    value = scalar.value if is_temporal else scalar.as_py()
    return NAN_KEY if value != value else (_VALUE, value)  # noqa: PLR0124 - NaN alone differs from itself


def sort_order(rows: pa.RecordBatch, keys: Sequence[str], *, descending: bool = False) -> pa.UInt64Array:
    """The order that sorts these rows."""
    how = ("descending", "at_end") if descending else ("ascending", "at_start")
    return pc.sort_indices(rows, sort_keys=[(key, *how) for key in keys])


def backwards(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, the last one first."""
    return rows.take(pa.array(np.arange(rows.num_rows - 1, -1, -1)))


def is_ascending(rows: pa.RecordBatch, keys: Sequence[str]) -> bool:
    """Whether the rows are sorted already."""
    if rows.num_rows < 2:
        return True
    is_equal = np.ones(rows.num_rows - 1, np.bool_)
    for key in keys:
        column = rows.column(key)
        ranks = _ranks(column)
        left, right = column.slice(0, len(column) - 1), column.slice(1)
        is_above = (ranks[:-1] > ranks[1:]) | ((ranks[:-1] == ranks[1:]) & _mask(pc.greater(left, right)))
        if (is_equal & is_above).any():
            return False
        is_same = (ranks[:-1] == ranks[1:]) & ((ranks[1:] < _VALUE) | _mask(pc.equal(left, right)))
        is_equal &= is_same
    return True


def positions_of(
    rows: pa.RecordBatch, keys: Sequence[str], scalars: Sequence[pa.Scalar]
) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Of each row, in ascending order: -1 where it comes before a row with these values, 1 behind, else 0."""
    places = np.zeros(rows.num_rows, np.int8)
    for key, scalar in zip(keys, scalars, strict=True):
        column, rank = rows.column(key), comparable(scalar)[0]
        assert isinstance(rank, int)
        ranks = _ranks(column)
        above, below = ranks > rank, ranks < rank
        if rank == _VALUE:
            are_values = ranks == _VALUE
            above |= are_values & _mask(pc.greater(column, scalar))
            below |= are_values & _mask(pc.less(column, scalar))
        places[(places == 0) & above] = 1
        places[(places == 0) & below] = -1
    return places


def _ranks(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    ranks = np.full(len(column), _VALUE, np.int8)
    if pa.types.is_floating(column.type):
        ranks[_mask(pc.is_nan(column))] = _NAN
    if column.null_count:
        ranks[_mask(column.is_null())] = _NULL
    return ranks


def _mask(flags: pa.BooleanArray) -> Mask:
    found: Mask = flags.fill_null(False).to_numpy(zero_copy_only=False)
    return found
