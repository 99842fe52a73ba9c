"""Dates and times that Spark wrote in the hybrid calendar, Julian until 1582-10-04."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lazydelta.errors import UnsupportedTableError
from lazydelta.predicate import matches
from tests.support.data_files import DataFolder, array, field, struct

EPOCH = dt.date(1970, 1, 1).toordinal()
NEW = {"org.apache.spark.version": "3.5.1"}
SPARK_2 = {"org.apache.spark.version": "2.4.8"}
SPARK_3_0 = {"org.apache.spark.version": "3.0.3"}
DATES = {**NEW, "org.apache.spark.legacyDateTime": ""}
INT96 = {**NEW, "org.apache.spark.legacyINT96": ""}
UTC = {"org.apache.spark.timeZone": "UTC"}
ZURICH = {"org.apache.spark.timeZone": "Europe/Zurich"}
# 1582-10-04 and 0001-01-01 of the hybrid calendar, in days since 1970.
LAST_JULIAN, FIRST_JULIAN = -141_428, -719_164
US = pa.timestamp("us", "UTC")


def julian_dates() -> Iterator[tuple[int, int, int]]:
    """From 0001-01-01 to 1582-10-04, day by day."""
    for year in range(1, 1583):
        for month in range(1, 13):
            is_leap = month == 2 and year % 4 == 0
            length = 29 if is_leap else calendar.monthrange(2001, month)[1]
            yield from (
                (year, month, day) for day in range(1, length + 1) if (year, month, day) < (1582, 10, 5)
            )


def gregorian(year: int, month: int, day: int) -> int:
    """Days since 1970 of the same date; of one that does not exist, of the next."""
    return dt.date(year, month, 1).toordinal() + day - 1 - EPOCH


def us_of(value: dt.datetime) -> int:
    return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def marked(columns: dict[str, pa.Array], marks: dict[str, str]) -> pa.Table:
    return pa.table(columns).replace_schema_metadata(marks)


def days(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32()).view(pa.date32())


def gregorian_days(folder: Path, hybrid: np.ndarray) -> list[int]:
    """Days since 1970 as a table has them, of a file of Spark 2 with these."""
    data = DataFolder(folder, field("d", "date"))
    stored = pa.array(hybrid.astype(np.int32)).view(pa.date32())
    found = data.read(data.write(marked({"d": stored}, SPARK_2))).column("d")
    return list(found.cast(pa.int32()).to_numpy())


def test_every_day_of_the_julian_calendar_becomes_the_same_date(tmp_path: Path) -> None:
    expected = [gregorian(*date) for date in julian_dates()]
    assert gregorian_days(tmp_path, np.arange(FIRST_JULIAN, LAST_JULIAN + 1)) == expected


def test_days_since_1582_stay(tmp_path: Path) -> None:
    modern = np.arange(LAST_JULIAN + 1, 60_000)
    assert gregorian_days(tmp_path, modern) == list(modern)
    assert dt.date.fromordinal(LAST_JULIAN + 1 + EPOCH) == dt.date(1582, 10, 15)


def test_years_before_the_first_are_rebased_alike(tmp_path: Path) -> None:
    # 1 March of the year 0, and the day before: 29 February, which both calendars have in that year.
    assert gregorian_days(tmp_path, np.array([-719_470, -719_471])) == [-719_468, -719_469]


@pytest.mark.parametrize(
    ("marks", "dates", "int96"),
    [
        ({}, False, False),
        (NEW, False, False),
        ({"org.apache.spark.version": "4.0.0"}, False, False),
        ({"org.apache.spark.version": "10.1.0"}, False, False),
        (SPARK_2, True, True),
        (SPARK_3_0, False, True),
        ({"org.apache.spark.version": "3.1.0"}, False, False),
        (DATES, True, False),
        (INT96, False, True),
    ],
)
def test_the_footer_tells_which_values_are_legacy(
    tmp_path: Path, marks: dict[str, str], dates: bool, int96: bool
) -> None:
    folder = DataFolder(tmp_path, field("d", "date"), field("t", "timestamp"))
    columns = {"d": days(LAST_JULIAN), "t": pa.array([OLD_TIME], US)}
    file = folder.write(marked(columns, marks), use_deprecated_int96_timestamps=True)
    (day,) = folder.read(file, ["d"]).column("d").to_pylist()
    assert (day == dt.date(1582, 10, 4)) == dates
    if int96:
        with pytest.raises(UnsupportedTableError, match="times before 1900"):
            folder.read(file, ["t"])
    else:
        assert folder.read(file, ["t"]).num_rows == 1


@pytest.mark.parametrize("marks", [SPARK_2, DATES])
def test_old_dates_are_rebased_at_every_level(tmp_path: Path, marks: dict[str, str]) -> None:
    folder = DataFolder(
        tmp_path,
        field("d", "date"),
        field("n", "timestamp_ntz"),
        field("s", struct(field("d", "date"))),
        field("a", array("date")),
    )
    stored = days(FIRST_JULIAN, None, LAST_JULIAN, 20_000)
    columns = {
        "d": stored,
        "n": stored,  # widened
        "s": pa.StructArray.from_arrays([stored], ["d"]),
        "a": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), stored),
    }
    rows = folder.read(folder.write(marked(columns, marks)))
    expected = [dt.date(1, 1, 1), None, dt.date(1582, 10, 4), dt.date(2024, 10, 4)]
    assert rows.column("d").to_pylist() == expected
    assert [value and value.date() for value in rows.column("n").to_pylist()] == expected
    assert [value["d"] for value in rows.column("s").to_pylist()] == expected
    assert [value[0] for value in rows.column("a").to_pylist()] == expected


def test_files_with_and_without_a_mark_are_told_apart_in_one_scan(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("d", "date"))
    loader = folder.loader()
    found = []
    for at, marks in enumerate([NEW, SPARK_2, {}, SPARK_3_0]):
        file = folder.write(marked({"d": days(LAST_JULIAN)}, marks), f"{at}.parquet")
        (segment,) = loader.segments(file)
        found += [value for rows in loader.load(segment) for value in rows.column("d").to_pylist()]
    read_as_it_is = dt.date.fromordinal(LAST_JULIAN + EPOCH)
    assert found == [read_as_it_is, dt.date(1582, 10, 4), read_as_it_is, read_as_it_is]


OLD_TIME, MODERN_TIME = dt.datetime(1899, 12, 31, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("marks", [SPARK_2, DATES, {**DATES, **ZURICH}])
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_old_times_of_another_or_an_unknown_zone_are_refused(
    tmp_path: Path, marks: dict[str, str], unit: str
) -> None:
    folder = DataFolder(tmp_path, field("s", struct(field("t", "timestamp"))), field("id", "long"))
    times = pa.array([MODERN_TIME, None, OLD_TIME], pa.timestamp(unit, "UTC"))
    table = marked({"s": pa.StructArray.from_arrays([times], ["t"]), "id": pa.array([1, 2, 3])}, marks)
    file = folder.write(table)
    with pytest.raises(UnsupportedTableError, match=r"the column 's\.t' has times before 1900") as caught:
        folder.read(file)
    assert caught.value.where.endswith("f.parquet")
    assert "CORRECTED" in caught.value.fix
    assert folder.read(file, ["id"]).column("id").to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("marks", [SPARK_2, SPARK_3_0, INT96])
def test_old_times_as_int96_are_refused(tmp_path: Path, marks: dict[str, str]) -> None:
    folder = DataFolder(tmp_path, field("t", "timestamp"))
    times = pa.array([OLD_TIME], US)
    file = folder.write(marked({"t": times}, marks), use_deprecated_int96_timestamps=True)
    with pytest.raises(UnsupportedTableError, match="times before 1900"):
        folder.read(file)


@pytest.mark.parametrize(
    ("marks", "options"),
    [
        (NEW, {}),
        ({}, {}),
        (SPARK_3_0, {}),
        (INT96, {}),
        (DATES, {"use_deprecated_int96_timestamps": True}),
    ],
)
def test_old_times_that_the_mark_does_not_speak_of_are_read(
    tmp_path: Path, marks: dict[str, str], options: dict[str, Any]
) -> None:
    folder = DataFolder(tmp_path, field("t", "timestamp"))
    file = folder.write(marked({"t": pa.array([OLD_TIME], US)}, marks), **options)
    assert folder.read(file).column("t").cast(pa.int64()).to_pylist() == [us_of(OLD_TIME)]


def test_times_without_a_zone_are_never_legacy(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("t", "timestamp_ntz"))
    old = OLD_TIME.replace(tzinfo=None)
    file = folder.write(marked({"t": pa.array([old], pa.timestamp("us"))}, {**DATES, **INT96}))
    assert folder.read(file).column("t").to_pylist() == [old]


def test_modern_values_of_marked_files_are_read_as_before(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("d", "date"), field("t", "timestamp"))
    columns = {"d": days(LAST_JULIAN + 1, None, 9), "t": pa.array([MODERN_TIME, None, MODERN_TIME], US)}
    rows = folder.read(folder.write(marked(columns, SPARK_2)))
    assert rows.column("d").chunk(0).equals(columns["d"])
    assert rows.column("t").cast(pa.int64()).to_pylist() == columns["t"].cast(pa.int64()).to_pylist()


def test_old_times_that_were_written_in_utc_are_rebased(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("t", "timestamp"))
    noon = 43_200_000_000
    last = (LAST_JULIAN + 1) * 2 * noon
    ticks = pa.array([LAST_JULIAN * 2 * noon + noon, last - 1, None, last, us_of(OLD_TIME)], pa.int64())
    rows = folder.read(folder.write(marked({"t": ticks.view(US)}, {**DATES, **UTC})))
    assert rows.column("t").to_pylist() == [
        dt.datetime(1582, 10, 4, 12, tzinfo=dt.UTC),
        dt.datetime(1582, 10, 4, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        None,
        dt.datetime(1582, 10, 15, tzinfo=dt.UTC),
        OLD_TIME,
    ]


@pytest.mark.parametrize(
    "where",
    ["d = date '1582-10-04'", "d < date '1582-10-05'", "d >= date '1582-10-04'", "d = date '0001-01-01'"],
)
def test_bounds_in_the_legacy_calendar_hide_no_row(tmp_path: Path, where: str) -> None:
    folder = DataFolder(tmp_path, field("d", "date"))
    table = marked({"d": days(FIRST_JULIAN, LAST_JULIAN, LAST_JULIAN, 5, 6, 7)}, SPARK_2)
    file = folder.write(table, row_group_size=1)
    loader = folder.loader(where=where)
    found = [rows for segment in loader.segments(file) for rows in loader.load(segment)]
    predicate = loader._predicate
    kept = [row for rows in found for row in rows.filter(matches(predicate, rows)).to_pylist()]
    everything = folder.read(file).combine_chunks().to_batches()[0]
    assert kept == everything.filter(matches(predicate, everything)).to_pylist() != []


def test_modern_bounds_of_marked_files_still_rule_row_groups_out(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("t", "timestamp"))
    file = folder.write(marked({"t": pa.array([MODERN_TIME, OLD_TIME], US)}, SPARK_2), row_group_size=1)
    loader = folder.loader(where="t > timestamp '2020-01-01 00:00:00'")
    assert [segment.row_group for segment in loader.segments(file)] == [1]
