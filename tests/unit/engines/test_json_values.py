"""Values as the command line writes them: nothing but null is null, and nothing is made up."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lazydelta.engines.json_values import is_in_calendar, json_text, json_values, moment_texts
from lazydelta.errors import CorruptDataError, LazyDeltaError

FAR = {
    "timestamp '294000-01-02 03:04:05'": "294000-01-02T03:04:05.000000",
    "timestamp '0044-03-15 (BC)'": "-0043-03-15T00:00:00.000000",
    "timestamptz '20000-01-01 00:00:00Z'": "20000-01-01T00:00:00.000000Z",
    "timestamp_s '20000-01-01'": "20000-01-01T00:00:00",
    "timestamp_ns '2026-02-08 01:02:03.000000004'": "2026-02-08T01:02:03.000000004",
    "'infinity'::timestamp_ns": "infinity",
    "'infinity'::timestamp": "infinity",
    "'-infinity'::timestamptz": "-infinity",
    "'infinity'::date": "infinity",
    "'-infinity'::date": "-infinity",
    "date '10000-01-01'": "10000-01-01",
    "time '24:00:00'": "24:00:00.000000",
    "time '23:59:59.5'": "23:59:59.500000",
    "timestamp '2026-02-08'": "2026-02-08T00:00:00.000000",
}
ODD = {
    "'NaN'::double": "NaN",
    "'-Infinity'::float": "-Infinity",
    "1.5::double": 1.5,
    "'\\xFF\\x00'::blob": "/wA=",
    "interval '14 months 3 days -4.5 seconds'": "P14M3DT-4.5S",
    "interval 0 day": "PT0S",
    "'x'::enum('x', 'y')": "x",
    "union_value(n := 5)": 5,
    "union_value(s := 'a')": "a",
    "map {1: 'a', 2: null}": {"1": "a", "2": None},
    "map {date '2026-02-08': 1}": {"2026-02-08": 1},
    "map {{'a': 1}: 1}": {'{"a":1}': 1},
    "map {[1, 2]: map {1.5: 2}}": {"[1,2]": {"1.5": 2}},
    "map {'NaN'::double: 1}": {"NaN": 1},
    "[1, 2]::int[2]": [1, 2],
    "{'a': null, 'b': [null]}": {"a": None, "b": [None]},
    "null": None,
    "99999999999999999999::hugeint": 99999999999999999999,
}


@pytest.fixture(scope="module")
def session() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("expression", [*FAR, *ODD])
def test_a_value_is_the_same_at_the_top_and_inside(
    session: duckdb.DuckDBPyConnection, expression: str
) -> None:
    value: Any = (FAR | ODD)[expression]
    shapes = {
        "{}": value,
        "[{}]": [value],
        "{{'a': {}}}": {"a": value},
        "[{{'a': [{}, {}]}}]": [{"a": [value, value]}],
        "map {{'k': {}}}": {"k": value},
    }
    for shape, wanted in shapes.items():
        query = f"select {shape.format(expression, expression)} as x"
        (found,) = json_values(session.sql(query).to_arrow_table()["x"].combine_chunks())
        assert found == wanted
        assert json.loads(json_text(found)) == wanted


def test_text_of_moments_is_that_of_arrow_where_arrow_knows_it() -> None:
    days = [(1, 1, 2), (2026, 2, 8, 12, 0, 0, 7), (9999, 12, 30)]
    moments = [None, *(dt.datetime(*parts, tzinfo=dt.UTC) for parts in days)]
    for kind in (pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin"), pa.date32()):
        column = pa.array(moments, pa.timestamp("us")).cast(kind, safe=False)
        assert is_in_calendar(column)
        assert moment_texts(column) == column.cast(pa.string())


def test_only_far_moments_are_told_otherwise() -> None:
    column = pa.array([0, None, 2**63 - 1, -(2**62)], pa.timestamp("us", "Europe/Berlin"))
    assert not is_in_calendar(column)
    near, null, infinity, far = moment_texts(column).to_pylist()
    assert (near, null, infinity) == ("1970-01-01 01:00:00.000000+0100", None, "infinity")
    assert far == "-144169-06-28 09:59:32.612096Z"


@pytest.mark.parametrize(
    "column",
    [
        pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1], pa.int8()), [pa.array(["a", "b", "c", None]), pa.array([1, 2, 3, None])]
        ),
        pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1], pa.int8()),
            pa.array([0, 0, 1, 1], pa.int32()),
            [pa.array(["a", "c"]), pa.array([2, None])],
        ),
        pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int32(), 2)),
        pa.array([[1, 2], None, [], [4]], pa.list_(pa.int32())),
        pa.array([{"a": 1}, None, {"a": None}, {"a": 4}]),
        pa.array([[("a", 1)], None, [], [("b", 2), ("c", 3)]], pa.map_(pa.string(), pa.int8())),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_a_slice_has_the_values_of_its_rows(column: pa.Array) -> None:
    whole = json_values(column)
    assert whole == column.to_pylist(maps_as_pydicts="strict")
    for first in range(4):
        for count in range(5 - first):
            assert json_values(column.slice(first, count)) == whole[first : first + count]


def test_text_that_is_not_utf8_is_told() -> None:
    raw = pa.array([b"\xff", b"ok"], pa.binary())
    with pytest.raises(CorruptDataError, match="not UTF-8"):
        json_values(pa.Array.from_buffers(pa.string(), 2, raw.buffers()))


def test_a_map_with_a_key_twice_is_told() -> None:
    with pytest.raises(LazyDeltaError, match="a key twice"):
        json_values(pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())))
