"""Columns as Python values: the same as Arrow's own conversion, faster."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lazydelta.log import DELETION_VECTOR_TYPE
from lazydelta.scan.values import rows_of, values_of

MAP = pa.map_(pa.string(), pa.string())
MAPS = [[("a", "1"), ("b", None)], None, [], [("c", "3")], [("a", "9"), ("d", "")]]
COLUMNS = {
    "strings": pa.array(["x", None, "", "ü"]),
    "no nulls": pa.array([1, 2, 3], pa.int64()),
    "integers with nulls": pa.array([2**53 + 1, None, 3], pa.int64()),
    "all null": pa.nulls(3, MAP),
    "empty": pa.array([], MAP),
    "maps": pa.array(MAPS, MAP),
    "a slice of maps": pa.array(MAPS, MAP).slice(2, 2),
    "a slice of maps with nulls": pa.array(MAPS, MAP).slice(1, 4),
    "structs": pa.array([None, ("u", "p", 1, 2, 3)], DELETION_VECTOR_TYPE),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_those_of_arrow(name: str) -> None:
    column = COLUMNS[name]
    assert values_of(column) == column.to_pylist(maps_as_pydicts="strict")
    assert list(map(type, values_of(column))) == list(map(type, column.to_pylist(maps_as_pydicts="strict")))


def test_rows_hold_every_column_by_name() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["p", "q"]), pa.array([1, None])], names=["path", "size"])
    assert [(row.path, row.size) for row in rows_of(batch)] == [("p", 1), ("q", None)]
