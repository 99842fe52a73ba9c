"""Delta's types as Kusto's, and Kusto's as Arrow's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.engines.kql.columns import ARROW_TYPES, KqlColumn, table_columns
from tests.unit.engines.kql.conftest import Ask

_AT = dt.datetime(2026, 2, 10, 12, 0, 0, 123456, tzinfo=dt.UTC)
COLUMNS = {
    "tiny": (pa.int8(), -1, "int", -1),
    "small": (pa.int16(), -300, "int", -300),
    "whole": (pa.int32(), 70_000, "int", 70_000),
    "large": (pa.int64(), 2**62, "long", 2**62),
    "single": (pa.float32(), 1.5, "real", 1.5),
    "double": (pa.float64(), float("inf"), "real", float("inf")),
    "exact": (pa.decimal128(20, 4), Decimal("1.2345"), "decimal", Decimal("1.2345")),
    "text": (pa.string(), "ä", "string", "ä"),
    "flag": (pa.bool_(), True, "bool", True),
    "day": (pa.date32(), dt.date(2026, 2, 10), "datetime", dt.datetime(2026, 2, 10, tzinfo=dt.UTC)),
    "at": (pa.timestamp("us", "UTC"), _AT, "datetime", _AT),
    "raw": (pa.binary(), b"\x00\xff", "string", "AP8="),
    "list": (pa.list_(pa.int64()), [1, 2], "dynamic", "[1,2]"),
    "struct": (pa.struct([("a", pa.int64())]), {"a": 1}, "dynamic", '{"a":1}'),
    "map": (pa.map_(pa.string(), pa.int64()), [("k", 1)], "dynamic", '{"k":1}'),
}
NULLS = {"text": "", "raw": ""}  # text is never null


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    folder = tmp_path_factory.mktemp("typed") / "t"
    schema = pa.schema([pa.field(name, kind) for name, (kind, *_) in COLUMNS.items()])
    rows = [{name: value for name, (_, value, *_) in COLUMNS.items()}, dict.fromkeys(COLUMNS)]
    write_deltalake(folder, pa.Table.from_pylist(rows, schema))
    return ld.open(folder)


def test_columns_of_a_table_have_these_types(typed: ld.Table) -> None:
    expected = tuple(KqlColumn(name, kind) for name, (_, _, kind, _) in COLUMNS.items())
    assert table_columns(typed.schema) == expected
    with typed.kql("t") as found:
        assert found.columns == expected
        for column, field in zip(found.columns, found.schema, strict=True):
            assert field.type == ARROW_TYPES.get(column.type, field.type), column


def test_values_and_nulls_come_out_as_they_are(typed: ld.Table) -> None:
    rows = typed.kql("t | sort by large asc nulls last").read_all().to_pylist()
    assert rows[0] == {name: value for name, (*_, value) in COLUMNS.items()}
    assert rows[1] == dict.fromkeys(COLUMNS) | NULLS


def test_an_empty_result_has_the_same_types(typed: ld.Table) -> None:
    with typed.kql("t | where large == 1") as found, typed.kql("t") as whole:
        assert found.columns == whole.columns
        assert found.schema == whole.schema
        assert found.read_all().num_rows == 0


def test_getschema_tells_the_same_types(typed: ld.Table) -> None:
    told = typed.kql("t | getschema | project ColumnName, ColumnType").fetchall()
    assert dict(told) == {name: kind for name, (_, _, kind, _) in COLUMNS.items()}


def test_parts_of_nested_values_are_reached(typed: ld.Table) -> None:
    query = (
        "t | where isnotnull(large) | project a = struct.a, b = list[1], c = tostring(map.k), d = map['k']"
    )
    assert typed.kql(query).fetchall() == [("1", "2", "1", "1")]


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("1", "long", 1),
        ("int(1)", "int", 1),
        ("1.5", "real", 1.5),
        ("real(nan) == real(nan)", "bool", None),
        ("true", "bool", True),
        ("'a'", "string", "a"),
        ("1h", "timespan", dt.timedelta(hours=1)),
        ("datetime(2026-02-10) - datetime(2026-02-09)", "timespan", dt.timedelta(days=1)),
        ("datetime(2026-02-10)", "datetime", dt.datetime(2026, 2, 10, tzinfo=dt.UTC)),
        ("guid(74be27de-1e4e-49d9-b579-fe0b331d3642)", "guid", "74be27de-1e4e-49d9-b579-fe0b331d3642"),
        ("dynamic({'a': [1, null]})", "dynamic", '{"a":[1,null]}'),
        ("long(null)", "long", None),
        ("datetime(null)", "datetime", None),
    ],
)
def test_values_of_a_query_have_these_types(ask: Ask, expression: str, kind: str, value: object) -> None:
    with ask(f"print x = {expression}") as found:
        assert found.columns == (KqlColumn("x", kind),)
        ((given,),) = found.fetchall()
    if kind != "bool" or value is not None:
        assert given == value
