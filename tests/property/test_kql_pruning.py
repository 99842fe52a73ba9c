"""What a query in KQL prunes changes no answer: pruned, unpruned, plain SQL and plain Python agree."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.engines.kql.run import run_kql
from lazydelta.engines.sql import run_sql
from lazydelta.rows import RowSource
from tests.support.hypothesis_profile import examples
from tests.support.kql_tables import HOURS, START, all_rows, telemetry_table

NOW = START + dt.timedelta(hours=HOURS - 3)
# In KQL and in SQL: pairs that mean the same.
Pair = tuple[str, str]
minutes = st.integers(-90, HOURS * 60 + 90)
operators = st.sampled_from([("==", "="), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">=")])


def _moment(minute: int) -> dt.datetime:
    return (START + dt.timedelta(minutes=minute)).replace(tzinfo=None)


@st.composite
def moments(draw: st.DrawFn) -> Pair:
    """A constant of time."""
    at = _moment(draw(minutes))
    ago = (NOW.replace(tzinfo=None) - at) // dt.timedelta(minutes=1)
    spelled = draw(
        st.sampled_from(
            [
                f"datetime({at.isoformat()})",
                f"datetime({at.isoformat()}Z)",
                f"todatetime('{at.isoformat(' ')}')",
                f"ago({ago}m)" if ago >= 0 else f"now({-ago}m)",
                f"(now() - {ago}m)" if ago >= 0 else f"(now() + {-ago}m)",
            ]
        )
    )
    return spelled, f"timestamptz '{at.isoformat(' ')}Z'"


@st.composite
def times(draw: st.DrawFn) -> Pair:
    """The event time, or what a step makes of it."""
    return draw(
        st.sampled_from(
            [
                ("timestamp", "timestamp"),
                ("bin(timestamp, 1h)", "date_trunc('hour', timestamp)"),
                ("bin(timestamp, 1d)", "date_trunc('day', timestamp)"),
                ("bin(timestamp, 30m)", "time_bucket(interval '30 minutes', timestamp)"),
                ("startofday(timestamp)", "date_trunc('day', timestamp)"),
                ("startofmonth(timestamp)", "date_trunc('month', timestamp)"),
                ("(timestamp + 90m)", "(timestamp + interval '90 minutes')"),
                ("(timestamp - 1d)", "(timestamp - interval '1 day')"),
            ]
        )
    )


@st.composite
def leaves(draw: st.DrawFn) -> Pair:  # noqa: PLR0911  # one case per kind
    kind = draw(st.sampled_from(["time", "between", "number", "value", "text", "hour", "list"]))
    kql, sql = draw(operators)
    if kind == "time":
        (left, left_sql), (right, right_sql) = draw(times()), draw(moments())
        if draw(st.booleans()):
            return f"{left} {kql} {right}", f"{left_sql} {sql} {right_sql}"
        turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
        return f"{right} {turned.get(kql, kql)} {left}", f"{left_sql} {sql} {right_sql}"
    if kind == "between":
        (left, left_sql), (low, low_sql), (high, high_sql) = draw(times()), draw(moments()), draw(moments())
        return f"{left} between ({low} .. {high})", f"{left_sql} between {low_sql} and {high_sql}"
    if kind in ("number", "value"):
        constant = draw(st.sampled_from(["0", "59", "60", "719.5", "720", "-1", "1500"]))
        return f"{kind} {kql} {constant}", f"{kind} {sql} {constant}"
    if kind == "text":
        constant = draw(st.sampled_from(["", "sensor-40", "sensor-42", "sensor-9", "a"]))
        return f"device_id {kql} '{constant}'", f"coalesce(device_id, '') {sql} '{constant}'"
    hours = draw(st.lists(st.sampled_from(["2026021000", "2026021011", "2026021023", "x"]), min_size=1))
    listed = ", ".join(f"'{hour}'" for hour in hours)
    if kind == "list":
        return f"_event_hour in ({listed})", f"_event_hour in ({listed})"
    return f"_event_hour {kql} '{hours[0]}'", f"_event_hour {sql} '{hours[0]}'"


@st.composite
def joined(draw: st.DrawFn, parts: st.SearchStrategy[Pair]) -> Pair:
    (left, left_sql), (right, right_sql) = draw(parts), draw(parts)
    word = draw(st.sampled_from(["and", "or"]))
    return f"({left} {word} {right})", f"(({left_sql}) {word} ({right_sql}))"


predicates = st.recursive(leaves(), joined, max_leaves=5)
shapes = st.sampled_from(
    [
        "T | where {0} | project number",
        "T | extend x = value | where {0} | project number",
        "T | project number, timestamp, value, device_id, _event_hour | where {0} | project number",
        "let X = T; X | where {0} | project number",
    ]
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RowSource:
    folder: Path = telemetry_table(tmp_path_factory.mktemp("kql") / "t")
    return ld.open(folder).scan().source


def assert_same_answers(source: RowSource, query: str, sql: str) -> None:
    """Pruned, unpruned and in plain SQL; `sql` is the condition."""
    with run_kql(query, {"T": source}, now=NOW) as found:
        pruned = sorted(found.fetchall())
    unpushed = patch("lazydelta.engines.kql.translate.needed_rows", all_rows)
    with unpushed, run_kql(query, {"T": source}, now=NOW) as found:
        assert found.report().pushed == []
        unpruned = sorted(found.fetchall())
    assert pruned == unpruned, query
    with run_sql(f"select number from t where {sql}", {"t": source}) as plain:
        assert pruned == sorted(plain.fetchall()), query


@settings(max_examples=examples(10))
@given(predicate=predicates, shape=shapes)
def test_what_is_pruned_changes_no_answer(source: RowSource, predicate: Pair, shape: str) -> None:
    kql, sql = predicate
    assert_same_answers(source, shape.format(kql), sql)


@pytest.mark.parametrize(
    ("operator", "constant"), [("==", ""), ("<", "sensor-42"), ("<=", ""), (">", "sensor-42"), (">=", "")]
)
def test_texts_that_are_null_are_empty(source: RowSource, operator: str, constant: str) -> None:
    sql = f"coalesce(device_id, '') {operator.replace('==', '=')} '{constant}'"
    assert_same_answers(source, f"T | where device_id {operator} '{constant}' | project number", sql)
