"""Columns as lines of JSON: the same values as Arrow's own conversion gives."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lazydelta.cli.show_files import show_files
from lazydelta.log import DELETION_VECTOR_TYPE

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
def test_values_are_those_of_arrow(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    column = COLUMNS[name]
    show_files(iter([pa.RecordBatch.from_arrays([column], names=["c"])]), as_json=True)
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown == [{"c": value} for value in column.to_pylist(maps_as_pydicts="strict")]


def test_rows_hold_every_column_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["p", "q"]), pa.array([1, None])], names=["path", "size"])
    show_files(iter([batch]), as_json=True)
    assert capsys.readouterr().out == '{"path":"p","size":1}\n{"path":"q","size":null}\n'
