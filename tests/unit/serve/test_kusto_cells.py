"""Rows as Kusto writes them: every type, its bounds, nulls, and text that could break out of its cell."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.engines.kql.timespans import read_timespan
from lazydelta.errors import InvalidRequestError
from lazydelta.serve.kusto.row_texts import fitting, joined, row_texts

UTC = pa.timestamp("us", "UTC")


def written(values: list[Any], kind: str, arrow: pa.DataType) -> list[Any]:
    batch = pa.record_batch([pa.array(values, arrow)], ["x"])
    return [row[0] for row in json.loads(b"[" + joined(row_texts(batch, [kind])) + b"]")]


CASES: list[tuple[str, pa.DataType, list[Any], list[Any]]] = [
    ("bool", pa.bool_(), [True, False, None], [True, False, None]),
    ("int", pa.int32(), [0, -(2**31), 2**31 - 1, None], [0, -(2**31), 2**31 - 1, None]),
    ("long", pa.int64(), [-(2**63), 2**63 - 1, None], [-(2**63), 2**63 - 1, None]),
    ("real", pa.float64(), [1.0, 0.1, -0.0, 1e300, None], [1.0, 0.1, -0.0, 1e300, None]),
    ("real", pa.float64(), [math.nan, math.inf, -math.inf], ["NaN", "Infinity", "-Infinity"]),
    ("decimal", pa.decimal128(38, 10), [Decimal("0.0000000001"), None], ["0.0000000001", None]),
    ("decimal", pa.decimal128(5, 0), [Decimal(-12), Decimal(99999)], ["-12", "99999"]),
    ("string", pa.string(), ["", None, "é\u2028😀"], ["", "", "é\u2028😀"]),
    (
        "string",
        pa.string(),
        ['"', "\\", "a\nb\tc\r", "\x00\x1f\x7f"],
        ['"', "\\", "a\nb\tc\r", "\x00\x1f\x7f"],
    ),
    ("guid", pa.string(), ["74be27de-1e4e-49d9-b579-fe0b331d3642", None], []),
    ("dynamic", pa.string(), ['{"a":[1,null]}', "3", '"x"', None], [{"a": [1, None]}, 3, "x", None]),
    ("dynamic", pa.string(), ['{\n"a": 1\n}', "no json", "[1"], [{"a": 1}, "no json", "[1"]),
    (
        "datetime",
        UTC,
        [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC), None],
        ["0001-01-01T00:00:00.0000000Z", "9999-12-31T23:59:59.9999990Z", None],
    ),
    ("datetime", pa.timestamp("ns"), [1_234_567_899], ["1970-01-01T00:00:01.2345678Z"]),
    ("datetime", pa.timestamp("s"), [0], ["1970-01-01T00:00:00.0000000Z"]),
    ("datetime", pa.date32(), [dt.date(2026, 2, 10), None], ["2026-02-10T00:00:00.0000000Z", None]),
    (
        "timespan",
        pa.duration("us"),
        [0, 1, -1, 86_400_000_000, -(90_061 * 10**6 + 5), None],
        ["00:00:00", "00:00:00.0000010", "-00:00:00.0000010", "1.00:00:00", "-1.01:01:01.0000050", None],
    ),
    ("timespan", pa.duration("us"), [-(2**63 // 10)], ["-10675199.02:48:05.4775800"]),
    ("timespan", pa.duration("ns"), [199], ["00:00:00.0000001"]),
]


@pytest.mark.parametrize(("kind", "arrow", "values", "told"), CASES)
def test_a_value_is_written_as_kusto_writes_it(
    kind: str, arrow: pa.DataType, values: list[Any], told: list[Any]
) -> None:
    assert written(values, kind, arrow) == (told or values)


def test_whole_reals_are_no_whole_numbers() -> None:
    """Clients that take a value's own type must not get a mixture."""
    batch = pa.record_batch([pa.array([1.0, -5.0, 0.0, 1234567.0])], ["x"])
    assert joined(row_texts(batch, ["real"])) == b"[1.0],[-5.0],[0.0],[1234567.0]"


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("datetime", pa.array([253_402_300_800_000_000], UTC)),
        ("datetime", pa.array([-62_135_596_800_000_001], UTC)),
        ("timespan", pa.array([2**62], pa.duration("us"))),
    ],
)
def test_a_value_beyond_kustos_range_is_an_error(kind: str, array: pa.Array) -> None:
    with pytest.raises(InvalidRequestError, match="Kusto's"):
        row_texts(pa.record_batch([array], ["x"]), [kind])


@given(st.lists(st.one_of(st.none(), st.text()), min_size=1))
def test_any_text_comes_back(texts: list[str | None]) -> None:
    values = [None if one is None else one.encode("utf-8", "replace").decode() for one in texts]
    assert written(values, "string", pa.string()) == [one or "" for one in values]


@given(st.lists(st.floats(), min_size=1))
def test_any_real_comes_back(values: list[float]) -> None:
    found = [
        float(one.replace("Infinity", "inf")) if isinstance(one, str) else one
        for one in written(values, "real", pa.float64())
    ]
    assert [repr(one) for one in found] == [repr(one) for one in values]


@given(
    st.lists(
        st.one_of(
            st.text('"\\[]{},:\n\t 1aé'), st.sampled_from(['"a', 'b"', "1,2", "1],[2", "{}", "[", "nan"])
        )
    )
)
def test_no_text_of_a_dynamic_breaks_out_of_its_cell(texts: list[str]) -> None:
    batch = pa.record_batch([pa.array(texts, pa.string()), pa.array(range(len(texts)))], ["x", "y"])
    found = json.loads(b"[" + joined(row_texts(batch, ["dynamic", "long"])) + b"]") if texts else []
    assert [row[1] for row in found] == list(range(len(texts)))
    assert all(len(row) == 2 for row in found)
    for text, (value, _) in zip(texts, found, strict=True):
        try:
            told = json.loads(text, parse_constant=lambda _: (_ for _ in ()).throw(ValueError()))
        except ValueError:
            told = text
        assert value == told


@given(st.integers(-(2**63) // 10 + 1, 2**63 // 10 - 1))
def test_any_timespan_reads_back(microseconds: int) -> None:
    (told,) = written([microseconds], "timespan", pa.duration("us"))
    sign, rest = (-1, told[1:]) if told.startswith("-") else (1, told)
    days, clock = rest.split(".", 1) if rest.count(".") == 2 or "." in rest.split(":")[0] else ("0", rest)
    hours, minutes, seconds = clock.split(":")
    whole, _, part = seconds.partition(".")
    total = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(whole)
    assert sign * (total * 10**7 + int(part or 0)) == microseconds * 10


def test_slices_and_empty_batches_are_written() -> None:
    whole = pa.record_batch({"s": ['a"', "b", "c"], "i": [1, 2, 3]})
    assert joined(row_texts(whole.slice(1, 2), ["string", "long"])) == b'["b",2],["c",3]'
    assert joined(row_texts(whole.slice(0, 0), ["string", "long"])) == b""
    assert joined(row_texts(whole.select([]), [])) == b"[],[],[]"


def test_rows_that_fit_are_counted() -> None:
    texts = row_texts(pa.record_batch({"s": ["a", "bb", "ccc"]}), ["string"])
    assert [fitting(texts, most) for most in (4, 5, 10, 11, 18, 100)] == [0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:04:00", 240.0),
        ("0:04:00", 240.0),
        ("1.02:03:04.5", 93784.5),
        ("1 day, 0:00:01", 86401.0),
        ("-00:00:01", -1.0),
        ("4m", 240.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("30", 30.0),
        ("soon", None),
        ("4:00", None),
        ("", None),
    ],
)
def test_timespans_of_clients_are_read(text: str, seconds: float | None) -> None:
    assert read_timespan(text) == seconds
