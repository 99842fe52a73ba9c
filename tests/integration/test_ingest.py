"""Batches into the table, read back file by file: periods, late rows, bad times, sizes, exactly once."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.spark import IngestSummary
from tests.support.ingesting import (
    FORMATS,
    assert_one_period_per_file,
    commits_of,
    files_of,
    period_of,
    rejects_of,
    rows_by_period,
    run_ingest,
    write_json,
)
from tests.support.spark import run_command
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NULL_TIME = "event time is null"
BAD_TIME = "event time cannot be read"
FAR_TIME = "event time is outside the years 1 to 9999"
MALFORMED = "malformed record"
Row = dict[str, Any]


def minutes(first: str, count: int, **more: Any) -> list[Row]:
    """One row a minute from `first` on."""
    start = dt.datetime.fromisoformat(first)
    return [
        {"ts": (start + dt.timedelta(minutes=number)).isoformat(), "value": number, **more}
        for number in range(count)
    ]


# --- a table of three runs, which the tests below only read ------------------------

BAD_LINES = {
    '{"ts": null, "value": 1}': NULL_TIME,
    '{"value": 2}': NULL_TIME,
    '{"ts": "soon", "value": 3}': BAD_TIME,
    '{"ts": "2026-02-30", "value": 4}': BAD_TIME,
    '{"ts": "12:30:00", "value": 5}': BAD_TIME,
    '{"ts": "20260': MALFORMED,
    '{"ts": "2026-02-10T12:00:00Z", "value": [1]}': MALFORMED,
}


class Ingested(NamedTuple):
    source: Path
    target: Path
    first: IngestSummary
    again: IngestSummary
    late: IngestSummary
    events: list[tuple[str, dict[str, object]]]  # of the first run
    commits: tuple[int, int]  # of the target and its rejects, after the first run


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    """A batch around midnight with bad lines, the same run again, and a batch with late rows."""
    folder = tmp_path_factory.mktemp("ingested")
    target = folder / "out"
    rows = reversed(minutes("2026-02-10T23:45:00Z", 30))
    source = write_json(folder / "one", [*rows, *BAD_LINES, "", "  "])
    events: list[tuple[str, dict[str, object]]] = []
    settings: dict[str, Any] = {
        "schema": "ts string, value bigint",
        "run_id": "2026-02-10",
        "properties": {"delta.checkpointInterval": "3"},
    }
    first = run_ingest(
        spark, source, target, **settings,
        progress=lambda event, /, **fields: events.append((event, fields)),
    )  # fmt: skip
    commits = commits_of(target), commits_of(f"{target}_rejects")
    again = run_ingest(spark, source, target, **settings)
    settings["run_id"] = "2026-02-11"
    more = [*minutes("2026-02-11T01:00:00Z", 2), *minutes("2026-02-03T07:59:00Z", 2)]
    late = run_ingest(spark, write_json(folder / "two", more), target, **settings)
    return Ingested(source, target, first, again, late, events, commits)


def test_a_batch_over_midnight_and_late_rows_go_to_their_own_periods(ingested: Ingested) -> None:
    assert {period: len(rows) for period, rows in rows_by_period(ingested.target).items()} == {
        "2026021023": 15,
        "2026021100": 15,
        "2026021101": 2,
        "2026020307": 1,
        "2026020308": 1,
    }
    assert assert_one_period_per_file(ingested.target) == 5
    batch = ingested.first.batch
    assert (batch.rows_read, batch.rows_written, batch.rows_rejected) == (37, 30, 7)
    assert (batch.files, batch.periods) == (2, 2)
    assert (batch.period_first, batch.period_last) == ("2026021023", "2026021100")


def test_rows_of_one_file_are_sorted_by_event_time(ingested: Ingested) -> None:
    for table in files_of(ingested.target).values():
        times = table["ts"].to_pylist()
        assert times == sorted(times)


def test_rows_without_a_usable_time_are_kept_with_the_reason(spark: SparkSession, ingested: Ingested) -> None:
    assert rejects_of(spark, ingested.target) == sorted((why, line) for line, why in BAD_LINES.items())
    assert ingested.first.batch.rejected_by_reason == {NULL_TIME: 2, BAD_TIME: 3, MALFORMED: 2}


def test_the_same_run_again_makes_no_commit(ingested: Ingested) -> None:
    first, again, late = ingested.first.batch, ingested.again.batch, ingested.late.batch
    assert (first.is_replay, again.is_replay, late.is_replay) == (False, True, False)
    assert (again.version, again.rejects_version, again.rows_written) == (None, None, 0)
    assert first.version is not None
    assert late.version == first.version + 1
    after = commits_of(ingested.target), commits_of(f"{ingested.target}_rejects")
    assert after == (ingested.commits[0] + 1, ingested.commits[1])


def test_progress_is_reported_in_order(ingested: Ingested) -> None:
    names = [event for event, _ in ingested.events if event != "running"]
    assert names == ["reading", "counted", "rejects", "writing", "committed"]
    fields = dict(ingested.events)
    assert [fields["counted"][name] for name in ("rows", "rejected", "periods")] == [37, 7, 2]
    assert (fields["committed"]["files"], fields["committed"]["version"]) == (2, 1)


def test_readers_find_how_the_time_column_was_derived(spark: SparkSession, ingested: Ingested) -> None:
    assert ld.open(str(ingested.target)).info().partition_columns == ["_event_hour"]
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{ingested.target}`").collect()[0]
    properties = detail["properties"]
    assert {name: value for name, value in properties.items() if "time" in name} == {
        "lazydelta.time.source": "ts",
        "lazydelta.time.column": "_event_hour",
        "lazydelta.time.format": "yyyyMMddHH",
        "lazydelta.time.zone": "UTC",
    }
    assert properties["delta.checkpointInterval"] == "3"
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (1, 2), "no feature was switched on"


def test_a_table_is_not_mixed_with_another_layout(
    spark: SparkSession, ingested: Ingested, tmp_path: Path
) -> None:
    source = write_json(tmp_path / "in", minutes("2026-02-10T12:00:00Z", 4, other="2026-02-10"))
    before = commits_of(ingested.target)
    for settings, word in (
        ({"granularity": "day", "time_column": "_event_hour"}, "yyyyMMddHH"),
        ({"time_zone": "Europe/Berlin"}, "lazydelta.time.zone"),
        ({"event_time": "other"}, "lazydelta.time.source"),
        ({"time_column": "hour_of_event"}, "lazydelta.time.column"),
    ):
        schema = "ts string, value bigint, other string"
        with pytest.raises(InvalidRequestError, match=word) as caught:
            run_ingest(spark, source, ingested.target, schema=schema, merge_schema=True, **settings)
        assert "another target" in caught.value.fix
    assert commits_of(ingested.target) == before


# --- runs that fail, runs without rows, checkpoints --------------------------------


def test_a_run_that_failed_between_rejects_and_rows_is_completed(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", [*minutes("2026-02-10T12:00:00Z", 4), {"ts": "bad", "value": 1}])
    target, log = tmp_path / "out", tmp_path / "out" / "_delta_log"

    def fail(event: str, /, **_: object) -> None:
        if event == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_ingest(spark, source, target, run_id="one", progress=fail)
    assert len(rejects_of(spark, target)) == 1
    assert files_of(target) == {}
    done = run_ingest(spark, source, target, run_id="one", checkpoint=True)
    assert (done.batch.rows_written, done.batch.rejects_version) == (4, None)
    assert len(rejects_of(spark, target)) == 1
    # A checkpoint that is requested needs no sidecar, and the one that is there is not written again.
    assert (done.sidecar.checkpoint_version, done.sidecar.sidecar_version) == (1, None)
    assert done.sidecar.sidecar_error is None
    [checkpoint] = log.glob("*.checkpoint.parquet")
    before = checkpoint.stat()
    empty = write_json(tmp_path / "empty", [])
    assert run_ingest(spark, empty, target, checkpoint=True, format="json").sidecar.checkpoint_version == 1
    assert (checkpoint.stat().st_ino, checkpoint.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not (log / "_lazy").exists()


def test_a_batch_of_bad_rows_only_makes_no_commit_with_data(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    source = write_json(tmp_path / "in", [{"ts": None, "v": 1}])
    summary = run_ingest(spark, source, target, schema="ts string, v int")
    assert (summary.batch.version, summary.batch.is_replay) == (None, False)
    assert rejects_of(spark, target) == [(NULL_TIME, '{"ts": null, "v": 1}')]
    assert files_of(target) == {}


def test_large_periods_are_split_near_the_target_size(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"ts": f"2026-02-10T12:{number % 60:02}:00Z", "value": number, "text": f"{number * 7919:032x}"}
        for number in range(6000)
    ]
    rows += minutes("2026-02-10T15:00:00Z", 5, text="small")
    source = write_json(tmp_path / "in", rows)
    target = tmp_path / "out"
    summary = run_ingest(spark, source, target, target_file_size="40kB")
    files = {path: (target / path).stat().st_size for path in files_of(target)}
    large = [size for path, size in files.items() if "2026021012" in path]
    assert len(large) == summary.batch.files - 1 >= 3
    assert max(large) < 1.5 * 40_000
    assert min(large) > 40_000 / 4, "no crumbs"
    assert_one_period_per_file(target)
    assert sum(map(len, rows_by_period(target).values())) == 6005
    # The next batch learns the size of a row from the files that are there.
    again = run_ingest(spark, write_json(tmp_path / "more", rows[:3000]), target, target_file_size="40kB")
    assert again.batch.files >= 2
    assert max(Path(target / path).stat().st_size for path in files_of(target)) < 1.5 * 40_000


@pytest.mark.long("three first ingests at the same moment, a stress of Delta's optimistic commits")
def test_first_ingests_at_the_same_moment_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    sources = [
        write_json(tmp_path / name, [*minutes("2026-02-10T12:00:00Z", 9, of=name), {"ts": "bad", "of": name}])
        for name in ("one", "two", "three")
    ]

    def ingest_one(source: Path) -> int:
        settings = {"checkpoint": True, "write_sidecar": True}
        return run_ingest(spark.newSession(), source, tmp_path / "out", **settings).batch.rows_written

    with ThreadPoolExecutor(len(sources)) as pool:
        assert list(pool.map(ingest_one, sources)) == [9, 9, 9]
    rows = [(row["of"], row["value"]) for rows in rows_by_period(tmp_path / "out").values() for row in rows]
    assert sorted(rows) == sorted((name, at) for name in ("one", "two", "three") for at in range(9))
    assert len(rejects_of(spark, tmp_path / "out")) == 3
    run_command("sidecar", "verify", tmp_path / "out")


# --- how a time becomes a period ---------------------------------------------------

# Zones, each with a moment at which its clocks change.
CLOCK_CHANGES = {
    "UTC": "2024-02-29T23:50:00Z",
    "Asia/Kathmandu": "1985-12-31T18:00:00Z",
    "Asia/Kolkata": "1945-10-14T17:00:00Z",
    "America/New_York": "2026-11-01T05:30:00Z",
    "America/Sao_Paulo": "2018-11-04T02:30:00Z",  # no midnight on that day
    "Australia/Lord_Howe": "2026-04-04T14:30:00Z",  # half an hour
    "Europe/Berlin": "2026-03-29T00:30:00Z",
    "Pacific/Apia": "2011-12-30T09:00:00Z",  # a whole day
}
USUAL = {
    ("month", "America/New_York"),
    ("day", "Pacific/Apia"),
    ("hour", "Europe/Berlin"),
    ("minute", "Australia/Lord_Howe"),
    ("second", "Asia/Kathmandu"),
}


@pytest.mark.parametrize(
    ("granularity", "zone"),
    [
        pytest.param(
            *pair, marks=() if pair in USUAL else pytest.mark.long("every zone by every granularity")
        )
        for pair in itertools.product(FORMATS, CLOCK_CHANGES)
    ],
)
def test_every_granularity_and_zone_agrees_with_the_calendar(
    spark: SparkSession, tmp_path: Path, granularity: str, zone: str
) -> None:
    starts = ("1969-12-31T23:58:00Z", "2026-10-31T23:59:00Z", *CLOCK_CHANGES.values())
    moments = [
        dt.datetime.fromisoformat(start) + dt.timedelta(minutes=29 * step, microseconds=999_999 * step)
        for start in starts
        for step in range(3)
    ]
    source = write_json(tmp_path / "in", [{"ts": moment.isoformat()} for moment in moments])
    target, column = tmp_path / "out", f"_event_{granularity}"
    run_ingest(spark, source, target, granularity=granularity, time_zone=zone)
    assert_one_period_per_file(target, column=column, granularity=granularity, zone=zone)
    assert set(rows_by_period(target, column)) == {period_of(moment, granularity, zone) for moment in moments}


ISO = {
    "2026-02-10T12:30:15.123456Z": "2026-02-10T12:30:15.123456+00:00",
    "2026-02-10 12:30:15+05:30": "2026-02-10T07:00:15+00:00",
    "2026-02-10T12:30": "2026-02-10T03:30:00+00:00",
    "2026-02-10": "2026-02-09T15:00:00+00:00",
    "2026-02-10T12:30:00 Europe/Berlin": "2026-02-10T11:30:00+00:00",
    "2026-03-29 02:30:00": "2026-03-28T17:30:00+00:00",  # an hour that the session's zone does not have
    "2026": BAD_TIME,
    "2026-02-10T25:00:00Z": BAD_TIME,
    "12:30": BAD_TIME,
    "1770726615": BAD_TIME,
    "now": BAD_TIME,
    "": BAD_TIME,
}
GERMAN = {"10.02.2026 12.30": "2026-02-10T12:30:00+00:00", "10.02.2026": BAD_TIME}
SECONDS = {
    1770726615.0: "2026-02-10T12:30:15+00:00",
    1770726615.25: "2026-02-10T12:30:15.250000+00:00",
    253402300800.0: FAR_TIME,
    -62135596801.0: FAR_TIME,
    float("nan"): BAD_TIME,
}
other_form = pytest.mark.long("another form of the same: text by a pattern, numbers by a unit")


@pytest.mark.parametrize(
    ("kind", "settings", "times"),
    [
        ("string", {"time_zone": "Asia/Tokyo"}, ISO),
        ("string", {"event_time_format": "dd.MM.yyyy HH.mm"}, GERMAN),
        ("double", {"event_time_unit": "s"}, SECONDS),
        ("bigint", {"event_time_unit": "ns"}, {1770726615123456789: "2026-02-10T12:30:15.123456+00:00"}),
        pytest.param(
            "string",
            {"event_time_format": "dd/MMM/yyyy:HH:mm:ss Z"},
            {"10/Feb/2026:12:30:00 -0100": "2026-02-10T13:30:00+00:00"},
            marks=other_form,
        ),
        pytest.param(
            "bigint",
            {"event_time_unit": "s"},
            {1770726615: "2026-02-10T12:30:15+00:00", 2**63 - 1: FAR_TIME},
            marks=other_form,
        ),
        pytest.param(
            "bigint",
            {"event_time_unit": "ms"},
            {1770726615123: "2026-02-10T12:30:15.123000+00:00"},
            marks=other_form,
        ),
        pytest.param(
            "double", {"event_time_unit": "ms"}, {0.0: "1970-01-01", 1e300: FAR_TIME}, marks=other_form
        ),
        pytest.param(
            "bigint",
            {"event_time_unit": "us"},
            {1770726615123456: "2026-02-10T12:30:15.123456+00:00"},
            marks=other_form,
        ),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else ",".join(map(str, value)) if len(value) < 2 else ""
    ),
)
def test_text_and_numbers_become_timestamps_or_get_a_reason(
    spark: SparkSession, tmp_path: Path, kind: str, settings: Row, times: dict[object, str]
) -> None:
    source = write_json(tmp_path / "in", [{"ts": given} for given in times])
    target = tmp_path / "out"
    with configured(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):  # it must not matter
        summary = run_ingest(spark, source, target, schema=f"ts {kind}", **settings)
    reasons = {BAD_TIME, FAR_TIME}
    good = [dt.datetime.fromisoformat(told) for told in times.values() if told not in reasons]
    good = [moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC) for moment in good]
    zone = settings.get("time_zone", "UTC")
    found = [(row["ts"], period) for period, rows in rows_by_period(target).items() for row in rows]
    assert sorted(found) == sorted((moment, period_of(moment, "hour", zone)) for moment in good)
    bad = [reason for reason in times.values() if reason in reasons]
    assert summary.batch.rejected_by_reason == {reason: bad.count(reason) for reason in bad}
    if bad:
        records = [json.loads(record)["ts"] for _, record in rejects_of(spark, target)]
        wanted = [given for given, told in times.items() if told in reasons]
        assert sorted(map(repr, map(_plain, records))) == sorted(map(repr, map(_plain, wanted)))


def _plain(value: object) -> object:
    """NaN as JSON tells it."""
    return "NaN" if value != value else value  # noqa: PLR0124


@pytest.mark.parametrize(
    ("kind", "period"), [(pa.timestamp("us"), "2026021023"), (pa.date32(), "2026021000")], ids=str
)
def test_times_of_other_types_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, period: str
) -> None:
    moment = pa.array(["2026-02-10T23:30:00"]).cast(pa.timestamp("us")).cast(kind, safe=False)
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"ts": moment, "v": [1]}), tmp_path / "in" / "rows.parquet")
    target = tmp_path / "out"
    run_ingest(spark, tmp_path / "in", target, time_zone="Europe/Berlin")
    assert list(rows_by_period(target)) == [period]
    assert ld.open(str(target)).schema.field("ts").type == kind


@pytest.mark.parametrize(
    ("row", "event_time", "kept_as"),
    [
        ({"event time": "2026-02-10T12:00:00Z"}, "event time", "event time"),
        ({"meta": {"At": "2026-02-10T12:00:00Z", "n": 1}}, "meta.at", "meta.At"),
        pytest.param({"event.time": "2026-02-10T12:00:00Z"}, "event.time", "event.time", marks=other_form),
        pytest.param({"EventTime": "2026-02-10T12:00:00Z"}, "eventtime", "EventTime", marks=other_form),
    ],
)
def test_the_event_time_and_the_time_column_may_have_any_name(
    spark: SparkSession, tmp_path: Path, row: Row, event_time: str, kept_as: str
) -> None:
    target = tmp_path / "out"
    properties = {"delta.columnMapping.mode": "name"} if " " in event_time else {}
    names = {"event_time": event_time, "time_column": "the.hour"}
    run_ingest(spark, write_json(tmp_path / "in", [row]), target, properties=properties, **names)
    assert ld.open(str(target)).to_arrow(["the.hour"]).to_pylist() == [{"the.hour": "2026021012"}]
    found = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]["properties"]
    assert found["lazydelta.time.source"] == kept_as
