"""What of a query in KQL reaches the lazy scan, counted in files and bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.engines.kql.run import run_kql
from tests.support.kql_session import KqlSession, kql_session
from tests.support.kql_tables import HOURS, START, telemetry_rows, telemetry_table
from tests.unit.engines.kql.conftest import Ask

NOW = START + dt.timedelta(hours=HOURS)
# Predicates over the event time, and how many of the 24 files, one an hour, they leave.
EVENT_TIME = {
    "timestamp > ago(1h)": 1,
    "timestamp >= now() - 2h": 2,
    "timestamp >= now(-2h)": 2,
    "now() - timestamp < 90m": 2,
    "timestamp + 1h > now()": 1,
    "timestamp > datetime(2026-02-10T20:30:00Z)": 4,
    "timestamp between (datetime(2026-02-10 03:00) .. datetime(2026-02-10 04:59))": 2,
    "timestamp between (datetime(2026-02-10 03:00) .. 59m)": 1,
    "bin(timestamp, 1h) == datetime(2026-02-10 07:00)": 1,
    "bin(timestamp, 4h) == datetime(2026-02-10 08:00)": 4,
    "bin(timestamp, 1h) >= datetime(2026-02-10 22:00)": 2,
    "bin(timestamp, 1h) < datetime(2026-02-10 02:00)": 2,
    "bin(timestamp, 1h) <= datetime(2026-02-10 02:00)": 3,
    "bin(timestamp, 7d) == datetime(2026-02-09)": 24,
    "startofday(timestamp) == datetime(2026-02-11)": 0,
    "startofday(timestamp) == datetime(2026-02-10)": 24,
    "startofmonth(timestamp) == datetime(2026-03-01)": 0,
    "startofyear(timestamp) < datetime(2026-01-01)": 0,
    "startofweek(timestamp) == datetime(2026-02-08)": 24,
    "timestamp > endofday(datetime(2026-02-09))": 24,
    "timestamp <= endofday(datetime(2026-02-09))": 1,
    "timestamp > todatetime('2026-02-10 22:00')": 2,
    "timestamp >= bin(now(), 1d) - 1h": 1,
    "datetime(2026-02-10 22:00) <= timestamp and value > 0": 2,
    "timestamp < datetime(2026-02-10 01:00) or timestamp >= datetime(2026-02-10 23:00)": 2,
    "timestamp < datetime(2026-02-10 01:00) or value > 1e9": 24,
    "_event_hour in ('2026021003', '2026021004')": 2,
    "_event_hour in (dynamic(['2026021003', '2026021004']))": 2,
    "_event_hour startswith_cs '202602101'": 10,
    "_event_hour == '2026021003' and device_id has 'sensor'": 1,
    "number between (60 .. 119)": 1,
    "number >= 1380.5": 1,
    "number == -1": 0,
    "value < 15.0": 1,
    "value > 345.0": 24,  # no statistics rule NaN out, and DuckDB takes it for the greatest
    "value == 345.0": 1,
    "device_id =~ 'SENSOR-41'": 24,
    "not(timestamp > ago(1h))": 24,
    # Ends of Kusto's time, past which there is no moment to count with.
    "timestamp <= datetime(9999-12-31 23:59:59.9999999)": 24,
    "timestamp < endofyear(datetime(9999-05-05))": 24,
    "startofyear(timestamp) <= datetime(9999-06-01)": 24,
}


@pytest.fixture(scope="module")
def in_memory() -> Iterator[KqlSession]:
    """The same rows without a scan."""
    with kql_session(NOW) as session:
        session.give({"T": telemetry_rows()})
        yield session


@pytest.fixture(scope="module")
def scan(telemetry: Path) -> ld.Scan:
    return ld.open(telemetry).scan()


def as_texts(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows in one order; the two sessions have classes of their own for UTC."""
    plain = ([v.isoformat() if isinstance(v, dt.datetime) else v for v in row] for row in rows)
    return sorted(map(str, plain))


@pytest.mark.parametrize(("predicate", "files"), EVENT_TIME.items())
def test_a_predicate_leaves_these_files(
    scan: ld.Scan, in_memory: KqlSession, predicate: str, files: int
) -> None:
    query = f"T | where {predicate} | project number, value, device_id"
    with run_kql(query, {"T": scan.source}, now=NOW) as found:
        rows = found.fetchall()
        assert found.report().files_read == files
    assert as_texts(rows) == as_texts(in_memory.kql(query))


@pytest.mark.parametrize(
    "null",
    [
        "todatetime('2026-02-10Z')",
        "todatetime('2026-02-10 22:00 Z')",
        "todatetime('\\t2026-02-10')",
        "now() - totimespan('1h')",
        "now() - totimespan('1')",
        "now() - totimespan('00:00:90')",
    ],
)
def test_text_that_reads_as_no_time_is_null_in_what_is_pushed_too(ask: Ask, null: str) -> None:
    assert ask(f"print isnull({null})").fetchall() == [(True,)]
    assert ask(f"T | where timestamp > {null}").fetchall() == []


def test_whole_numbers_that_are_one_real_are_all_found(tmp_path: Path) -> None:
    longs = [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1]
    write_deltalake(tmp_path / "t", pa.table({"x": longs}))
    table = ld.open(tmp_path / "t")
    for predicate in ("x == 9007199254740992.0", "x <= 9007199254740992.0", "x >= -9007199254740992.0"):
        pushed = table.kql(f"t | where {predicate} | project x").fetchall()
        whole = table.kql(f"t | take 10 | where {predicate} | project x").fetchall()
        assert sorted(pushed) == sorted(whole) != []


def test_the_rows_of_a_predicate_are_those_of_sql(ask: Ask, telemetry: Path) -> None:
    found = ask("T | where timestamp >= datetime(2026-02-10 20:30) and value < 340 | project number")
    expected = ld.open(telemetry).sql(
        "select number from t where timestamp >= timestamptz '2026-02-10 20:30Z' and value < 340"
    )
    assert sorted(found.fetchall()) == sorted(expected.fetchall()) != []


def test_without_the_properties_of_the_time_column_statistics_still_prune(tmp_path: Path) -> None:
    table = ld.open(telemetry_table(tmp_path / "t", has_periods=False))
    with table.kql("t | where timestamp >= datetime(2026-02-10 22:00) | count") as found:
        assert found.fetchall() == [(120,)]
        assert found.report().files_read <= 2


def test_columns_that_are_not_asked_for_are_not_read(ask: Ask) -> None:
    with ask("T | where number < 60 | project device_id") as found:
        found.read_all()
        (table,) = found.report().run.tables
        assert sorted(table.scans[0].columns_read) == ["device_id"]


def test_rows_are_counted_by_the_log(ask: Ask) -> None:
    with ask("T | count") as found:
        assert found.fetchall() == [(1440,)]
        assert found.report().data_bytes_read == 0


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("T | extend h = bin(timestamp, 1h) | where h == datetime(2026-02-10 07:00)", 1),
        ("T | project ts = timestamp, number | where ts >= datetime(2026-02-10 23:00)", 1),
        ("T | project-rename ts = timestamp | where ts >= datetime(2026-02-10 23:00)", 1),
        ("T | sort by number | where timestamp >= datetime(2026-02-10 23:00)", 1),
        ("let from = datetime(2026-02-10 23:00); T | where timestamp >= from", 1),
        ("let X = T | where number > 0; X | where timestamp >= datetime(2026-02-10 23:00)", 1),
        ("T | where timestamp >= datetime(2026-02-10 23:00) | summarize count() by device_id", 1),
        ("T | join kind=inner (T | where number == 5) on number | where number > 3", 25),
        ("T | summarize n = count() by _event_hour | where _event_hour == '2026021003'", 1),
        ("T | summarize count() by bin(timestamp, 1h) | where timestamp >= datetime(2026-02-10 23:00)", 1),
        ("T | summarize number = count() by device_id | where number < 60", 24),
        ("T | summarize count() | where count_ > 0", 0),
        ("let count_ = 5; T | summarize count() by number | where number == count_", 24),
        ("T | distinct _event_hour, device_id | where _event_hour == '2026021003'", 1),
        ("T | project-keep number, timestamp | where timestamp >= datetime(2026-02-10 23:00)", 1),
        ("T | project-away val* | where timestamp >= datetime(2026-02-10 23:00)", 1),
        ("T | project-reorder value | as X | where timestamp >= datetime(2026-02-10 23:00)", 1),
        ("T | serialize r = row_number() | where timestamp >= datetime(2026-02-10 23:00)", 24),
        ("T | serialize p = prev(number) | where timestamp >= datetime(2026-02-10 23:00)", 24),
        (
            "T | where timestamp >= datetime(2026-02-10 12:00) | serialize | where prev(number) > 1400",
            12,
        ),
        ("T | take 2000 | where timestamp >= datetime(2026-02-10 23:00)", 24),
        ("T | top 2000 by number | where timestamp >= datetime(2026-02-10 23:00)", 24),
        ("T | extend timestamp = timestamp + 1d | where timestamp >= datetime(2026-02-11 23:00)", 1),
        ("T | extend number = 5 | where number == 5", 24),
    ],
)
def test_predicates_are_pushed_through_operators_that_keep_rows(
    scan: ld.Scan, in_memory: KqlSession, query: str, files: int
) -> None:
    with run_kql(query, {"T": scan.source}, now=NOW) as found:
        rows = found.fetchall()
        assert found.report().files_read == files
    if "serialize" in query:  # which rows are beside each other is a matter of the scan
        unpushed = query.replace("T |", "T | take 100000 |", 1)
        with run_kql(unpushed, {"T": scan.source}, now=NOW) as found:
            assert as_texts(rows) == as_texts(found.fetchall())
    else:
        assert as_texts(rows) == as_texts(in_memory.kql(query))


def test_row_numbers_count_rows_that_are_dropped_later(ask: Ask) -> None:
    query = "T | sort by number asc | extend r = row_number(), p = prev(number) | where number == 1439"
    assert ask(f"{query} | project r, p").fetchall() == [(1440, 1438)]


def test_a_column_hides_a_let_of_its_name(ask: Ask) -> None:
    assert ask("let number = 5; T | where number == 7 | project value").fetchall() == [(1.75,)]
    hidden = "let number = 5; T | project-away number | where value == 1.0 and number == 5 | project value"
    assert ask(hidden).fetchall() == [(1.0,)]


def test_top_and_take_agree_with_the_rows_in_order(ask: Ask) -> None:
    assert ask("T | top 3 by number desc | project number").fetchall() == [(1439,), (1438,), (1437,)]
    assert ask("T | where number < 60 | top 2 by timestamp asc | project number").fetchall() == [(0,), (1,)]
    assert ask("T | limit 7").read_all().num_rows == 7


def test_text_that_is_null_is_empty(ask: Ask) -> None:
    (nulls,) = ask("T | where device_id == '' | count").fetchall()[0]
    assert nulls == sum(number % 7 == 6 for number in range(1440))
    assert ask("T | where device_id <= 'sensor-40' | summarize dcount(device_id)").fetchall() == [(2,)]
    assert ask("T | where isempty(device_id) | count").fetchall() == [(nulls,)]
