"""Requests and logs at the edge: an error that says what to do, or the right rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptDataError, InvalidRequestError
from tests.support.row_tables import readings_table

EAST, WEST = dt.timezone(dt.timedelta(hours=2)), dt.timezone(dt.timedelta(hours=-2))


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    return Path(readings_table(tmp_path, hours=2))


def change_adds(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write other `add` actions into the log."""
    for commit in table.glob("_delta_log/*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                change(action["add"])
        commit.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    "date_range",
    [(dt.datetime.min.replace(tzinfo=EAST), None), (None, dt.datetime.max.replace(tzinfo=WEST))],
)
def test_a_bound_past_the_calendar_is_told(readings: Path, date_range: Any) -> None:
    with pytest.raises(InvalidRequestError, match="outside of the years") as told:
        ld.open(readings).scan().batches(date_range=date_range)
    assert "None" in told.value.fix


@pytest.mark.parametrize(
    "date_range", [(dt.date.min, dt.date.max), (dt.datetime(50, 1, 1, tzinfo=dt.UTC), None)]
)
def test_the_first_and_the_last_day_are_bounds_like_others(readings: Path, date_range: Any) -> None:
    assert ld.open(readings).scan().batches(date_range=date_range).read_all().num_rows == 60


@pytest.mark.parametrize("lazy", ["no", 0, None])
def test_lazy_is_true_or_false(readings: Path, lazy: Any) -> None:
    with pytest.raises(InvalidRequestError, match="lazy is"):
        ld.open(readings).scan().batches(lazy=lazy)


def test_a_file_of_less_than_no_bytes_is_told(readings: Path) -> None:
    change_adds(readings, lambda add: add.update(size=-1))
    with pytest.raises(CorruptDataError, match="-1 bytes by the log") as told:
        ld.open(readings).scan().to_arrow()
    assert ".parquet" in told.value.where


def test_a_file_with_other_rows_than_the_log_counts_is_told_where_the_count_matters(readings: Path) -> None:
    def lie(add: dict[str, Any]) -> None:
        add["stats"] = json.dumps({**json.loads(add["stats"]), "numRecords": 31})

    change_adds(readings, lie)
    table = ld.open(readings)
    with pytest.raises(CorruptDataError, match=r"has 30 rows, and 31 by numRecords") as told:
        table.scan(limit=40).to_arrow()
    assert ".parquet" in told.value.where
    with pytest.raises(CorruptDataError, match="31 by numRecords"):
        table.scan("id >= 0").to_arrow()  # files are judged by statistics, and the count comes with them
    assert table.scan("_event_hour > '2026'").to_arrow().num_rows == 60  # statistics are not read for it
    assert table.scan().to_arrow().num_rows == 60
