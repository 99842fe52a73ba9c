"""Filters meet a schema: columns are found or suggested, literals take the column's type exactly."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.predicate import bind, col, matches, parse_where
from lazydelta.protocol.schema import ArrayType, Field, PrimitiveType, StructType, arrow_schema


def primitive(name: str, type_name: str, **metadata: Any) -> Field:
    return Field(name, PrimitiveType(type_name), True, metadata)


SCHEMA = StructType(
    (
        primitive("truth", "boolean"),
        primitive("tiny", "byte"),
        primitive("count", "long"),
        primitive("price", "decimal(6,2)"),
        primitive("single", "float"),
        primitive("value", "double"),
        primitive("device_id", "string"),
        primitive("blob", "binary"),
        primitive("day", "date"),
        primitive("at", "timestamp"),
        primitive("clock", "timestamp_ntz"),
        primitive("nothing", "void"),
        primitive("a.b", "long"),
        primitive("collated", "string", __COLLATIONS={"collated": "icu.de"}),
        Field("tags", ArrayType(PrimitiveType("string"), True), True, {}),
        Field("reading", StructType((primitive("celsius", "double"),)), True, {}),
    )
)


def bound_root(where: Any, **how: Any) -> Any:
    return bind(parse_where(where), SCHEMA, [], where="s3://lake/t", **how).root


def refused(where: Any) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as raised:
        bound_root(where)
    assert raised.value.where == "s3://lake/t"
    return raised.value


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("devise_id = 'a'", "device_id"),
        ("celsius > 1", "reading.celsius"),
        ("reading.celcius > 1", "reading.celsius"),
        ("VALU > 1", "value"),
        ("zzzzzz = 1", "the columns are truth, tiny"),
        ("count.x = 1", "count"),
    ],
)
def test_an_unknown_column_is_an_error_that_suggests_one(where: str, hint: str) -> None:
    error = refused(where)
    assert "there is no column" in error.what
    assert hint in error.fix


def test_columns_are_found_without_regard_to_case_and_spelled_as_the_schema_does() -> None:
    predicate = bind(parse_where("Device_ID = 'a' and READING.Celsius > 1"), SCHEMA, [], where="t")
    assert predicate.columns == (("device_id",), ("reading", "celsius"))


def test_a_dotted_name_is_a_nested_field_or_a_column_with_a_dot() -> None:
    assert bound_root("a.b = 1").column.path == ("a.b",)
    assert bound_root("`a.b` = 1").column.path == ("a.b",)
    assert bound_root(col("reading", "celsius") > 1).column.path == ("reading", "celsius")


@pytest.mark.parametrize(
    ("where", "type_name", "value"),
    [
        ("count = 'many'", "long", "'many'"),
        ("count = true", "long", "TRUE"),
        ("count = double 'NaN'", "long", "nan"),
        ("device_id = 5", "string", "5"),
        ("truth = 1", "boolean", "1"),
        ("day = '2026-02-30'", "date", "'2026-02-30'"),
        ("day = '2026-02-08T10:00:00'", "date", "10:00"),
        ("day = 20260208", "date", "20260208"),
        ("at = 'yesterday'", "timestamp", "yesterday"),
        ("at = '2026-02-08T10:00:00.1234567'", "timestamp", ".1234567"),
        ("clock = '2026-02-08T10:00:00Z'", "timestamp_ntz", "Z"),
        ("price = 'NaN'", "decimal(6,2)", "NaN"),
        ("value = 'warm'", "double", "warm"),
        ("blob = 5", "binary", "5"),
        ("count in (1, 'two')", "long", "two"),
    ],
)
def test_a_value_that_cannot_be_of_the_type_is_an_error_that_names_all_three(
    where: str, type_name: str, value: str
) -> None:
    error = refused(where)
    assert where.split(maxsplit=1)[0] in error.what
    assert type_name in error.what
    assert value in error.what


@pytest.mark.parametrize(
    "where", ["tags = 'a'", "reading = 1", "nothing = 1", "tags in ('a')", "tags like 'a%'"]
)
def test_only_null_tests_work_on_what_has_no_values_to_compare(where: str) -> None:
    assert "is null" in refused(where).fix
    bound_root(f"{where.split(maxsplit=1)[0]} is null")


def test_like_compares_text_only() -> None:
    assert "like" in refused("count like '5%'").what
    assert "backslash" in refused(r"device_id like 'C:\temp%'").what


def test_a_time_zone_must_exist() -> None:
    with pytest.raises(InvalidRequestError, match="Mars"):
        bound_root("at = '2026-02-08'", time_zone="Mars/Base")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("at = '2026-02-08'", "2026-02-07T23:00:00+00:00"),
        ("at = '2026-02-08 10:00'", "2026-02-08T09:00:00+00:00"),
        ("at = '2026-02-08T10:00:00.123456'", "2026-02-08T09:00:00.123456+00:00"),
        ("at = '2026-02-08T10:00:00Z'", "2026-02-08T10:00:00+00:00"),
        ("at = '2026-02-08T10:00:00-0230'", "2026-02-08T12:30:00+00:00"),
        ("at = date '2026-02-08'", "2026-02-07T23:00:00+00:00"),
        ("at = timestamp '2026-02-08 10:00:00'", "2026-02-08T09:00:00+00:00"),
        ("clock = '2026-02-08 10:00:00'", "2026-02-08T10:00:00"),
        ("clock = date '2026-02-08'", "2026-02-08T00:00:00"),
        ("day = '2026-2-8'", "2026-02-08"),
    ],
)
def test_moments_without_a_zone_are_taken_in_the_configured_one(where: str, expected: str) -> None:
    assert bound_root(where, time_zone="Europe/Berlin").value.as_py().isoformat() == expected


@pytest.mark.parametrize(
    ("where", "operator", "value"),
    [
        ("count > 1.5", ">", 1),
        ("count >= 1.5", ">", 1),
        ("count < 1.5", "<=", 1),
        ("count <= -1.5", "<=", -2),
        ("count > '7'", ">", 7),
        ("price < 1.005", "<=", "1.00"),
        ("price = 1", "=", "1.00"),
        ("value > 9007199254740993", ">", 9007199254740992.0),
        ("value < 9007199254740993", "<=", 9007199254740992.0),
        ("value = 1e300", "=", 1e300),
        ("value > 1e400", ">", 1.7976931348623157e308),
        ("value < -1e400", "<=", float("-inf")),
        ("single = 0.1", "=", 0.10000000149011612),
        # Of the greatest float the shortest digits, which lie above it.
        ("single = 3.4028235e38", "=", 3.4028234663852886e38),
        ("single > 3.5e38", ">", 3.4028234663852886e38),
        ("truth = 'True'", "=", True),
        ("blob = 'ab'", "=", b"ab"),
    ],
)
def test_a_literal_takes_its_place_among_the_values_of_the_type(
    where: str, operator: str, value: Any
) -> None:
    root = bound_root(where)
    assert root.operator == operator
    assert str(root.value.as_py()) == str(value)


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        ("count = 1.5", False),
        ("count <> 1.5", True),
        ("tiny < 128", True),
        ("tiny >= 128", False),
        ("tiny > -129", True),
        ("tiny = 1000", False),
        ("count < 1e99999", True),
        ("price <= -1e6", False),
        ("value = 9007199254740993", False),
    ],
)
def test_what_no_value_or_every_value_satisfies_depends_on_null_alone(where: str, answer: bool) -> None:
    root = bound_root(where)
    assert root.value is answer


def test_a_null_test_asks_for_null_counts() -> None:
    predicate = bind(parse_where("not (count is null) or value > 1"), SCHEMA, [], where="t")
    assert [column.is_null_tested for column in predicate.stats_columns] == [True, False]


def test_zero_with_an_exponent_is_zero() -> None:
    assert bound_root("count = 0e500").value.as_py() == 0


@pytest.mark.parametrize("zero", ["-0", "-0.", "-0e0", "-0.0", "-0e5"])
def test_a_zero_below_zero_is_written_as_it_is_read(zero: str) -> None:
    written = str(parse_where(f"count = {zero}"))
    assert str(parse_where(written)) == written


def test_a_list_keeps_only_values_that_the_type_has() -> None:
    root = bound_root("tiny in (5, 1.5, 3, 1000, 5, null)")
    assert root.values.to_pylist() == [3, 5]
    assert root.has_null


def test_a_pattern_without_wildcards_is_an_equality() -> None:
    root = bound_root(r"device_id like '10\%'")
    assert root.value.as_py() == "10%"


def test_rows_are_judged_in_three_values() -> None:
    batch = pa.RecordBatch.from_pylist(
        [
            {"count": 1, "device_id": "a", "reading": {"celsius": 5.0}, "day": date(2026, 2, 8)},
            {"count": None, "device_id": "a\nb", "reading": None, "at": datetime(2026, 2, 8)},  # noqa: DTZ001
        ],
        arrow_schema(SCHEMA),
    )

    def judged(where: str) -> list[bool | None]:
        return matches(bind(parse_where(where), SCHEMA, [], where="t"), batch).to_pylist()

    assert judged("count = 1") == [True, None]
    assert judged("count = 1 or device_id like 'a%'") == [True, True]
    assert judged("not (count = 2 and device_id = 'a')") == [True, True]
    assert judged("device_id like 'a_b'") == [False, True]
    assert judged("reading.celsius < 6") == [True, None]
    assert judged("reading is null") == [False, True]
    assert judged("count is null and at = '2026-02-08'") == [False, True]
    assert judged("count = null") == [None, None]
    assert judged("true") == [True, True]
    assert judged("tiny < 1000") == [None, None]


def test_rows_of_a_collated_column_are_not_compared() -> None:
    predicate = bind(parse_where("collated = 'a'"), SCHEMA, [], where="t")
    batch = pa.RecordBatch.from_pylist([{"collated": "A"}], arrow_schema(SCHEMA))
    with pytest.raises(UnsupportedTableError, match="collation"):
        matches(predicate, batch)


@pytest.mark.parametrize(("moment", "hours"), [(datetime(9999, 12, 31, 23), -5), (datetime(1, 1, 1), 5)])  # noqa: DTZ001
def test_a_time_that_utc_has_no_year_for_is_refused(moment: datetime, hours: int) -> None:
    placed = moment.replace(tzinfo=timezone(timedelta(hours=hours)))
    with pytest.raises(InvalidRequestError, match="is not of the years 1 to 9999 in UTC"):
        bind(parse_where([("at", "<", placed)]), SCHEMA, [], where="t")
