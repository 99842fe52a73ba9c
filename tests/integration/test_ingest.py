"""Batches into the table, read back file by file: periods, late rows, bad times, sizes, exactly once."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark import IngestConfig
from lazydelta.spark.record_columns import RAW_TEXT, REASON
from lazydelta.spark.time_column import BAD_TIME, FAR_TIME, NULL_TIME, PERIODS, with_period
from lazydelta.storage import open_storage
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.ingesting import (
    assert_one_period_per_file,
    commits_of,
    files_of,
    period_of,
    rejects_of,
    rows_by_period,
    run_ingest,
    write_json,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def minutes(first: str, count: int, **more: Any) -> list[dict[str, Any]]:
    """One row a minute from `first` on."""
    start = dt.datetime.fromisoformat(first)
    return [
        {"ts": (start + dt.timedelta(minutes=number)).isoformat(), "value": number, **more}
        for number in range(count)
    ]


def test_a_batch_that_spans_midnight_gives_files_on_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", minutes("2026-02-10T23:45:00Z", 30))
    target = tmp_path / "out"
    summary = run_ingest(spark, source, target)
    assert {period: len(rows) for period, rows in rows_by_period(target).items()} == {
        "2026021023": 15,
        "2026021100": 15,
    }
    assert assert_one_period_per_file(target) == 2
    assert (summary.batch.rows_written, summary.batch.files, summary.batch.periods) == (30, 2, 2)
    assert (summary.batch.period_first, summary.batch.period_last) == ("2026021023", "2026021100")


def test_a_checkpoint_that_is_asked_for_needs_no_sidecar(spark: SparkSession, tmp_path: Path) -> None:
    source, target = write_json(tmp_path / "in", minutes("2026-02-10T23:45:00Z", 3)), tmp_path / "out"
    log = target / "_delta_log"
    assert run_ingest(spark, source, target).sidecar.checkpoint_version is None
    summary = run_ingest(spark, source, target, checkpoint=True)
    assert (summary.sidecar.checkpoint_version, summary.sidecar.sidecar_version) == (2, None)
    assert summary.sidecar.sidecar_error is None
    [checkpoint] = log.glob("*.checkpoint.parquet")
    before = checkpoint.stat()
    empty = write_json(tmp_path / "empty", [])
    assert run_ingest(spark, empty, target, checkpoint=True, format="json").sidecar.checkpoint_version == 2
    assert (checkpoint.stat().st_ino, checkpoint.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not (log / "_lazy").exists()


def test_readers_find_how_the_time_column_was_derived(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", minutes("2026-02-10T23:45:00Z", 3))
    target = tmp_path / "out"
    run_ingest(spark, source, target, properties={"delta.checkpointInterval": "3"})
    info = ld.open(str(target)).info()
    assert info.partition_columns == ["_event_hour"]
    properties = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]["properties"]
    assert {name: value for name, value in properties.items() if "time" in name} == {
        "lazydelta.time.source": "ts",
        "lazydelta.time.column": "_event_hour",
        "lazydelta.time.format": "yyyyMMddHH",
        "lazydelta.time.zone": "UTC",
    }
    assert properties["delta.checkpointInterval"] == "3"
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (1, 2), "no feature was switched on"


def test_late_rows_go_to_their_own_period(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_json(tmp_path / "one", minutes("2026-02-10T12:00:00Z", 5)), target)
    late = [*minutes("2026-02-10T13:00:00Z", 2), *minutes("2026-02-03T07:59:00Z", 2)]
    run_ingest(spark, write_json(tmp_path / "two", late), target)
    assert {period: len(rows) for period, rows in rows_by_period(target).items()} == {
        "2026021012": 5,
        "2026021013": 2,
        "2026020307": 1,
        "2026020308": 1,
    }
    assert_one_period_per_file(target)


def test_rows_without_a_usable_time_are_kept_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    bad = [
        '{"ts": null, "value": 1}',
        '{"value": 2}',
        '{"ts": "soon", "value": 3}',
        '{"ts": "2026-02-30", "value": 4}',
    ]
    bad += ['{"ts": "12:30:00", "value": 5}', '{"ts": "20260', '{"ts": "2026-02-10T12:00:00Z", "value": [1]}']
    source = write_json(tmp_path / "in", [*minutes("2026-02-10T12:00:00Z", 4), *bad, "", "  "])
    target = tmp_path / "out"
    schema = "ts string, value bigint"
    summary = run_ingest(spark, source, target, schema=schema)
    assert rejects_of(spark, target) == sorted(
        [
            (NULL_TIME, bad[0]),
            (NULL_TIME, bad[1]),
            (BAD_TIME, bad[2]),
            (BAD_TIME, bad[3]),
            (BAD_TIME, bad[4]),
            ("malformed record", bad[5]),
            ("malformed record", bad[6]),
        ]
    )
    assert summary.batch.rows_read == 11
    assert summary.batch.rows_rejected == 7
    assert summary.batch.rejected_by_reason == {NULL_TIME: 2, BAD_TIME: 3, "malformed record": 2}
    assert sum(map(len, rows_by_period(target).values())) == 4


def test_a_time_outside_the_calendar_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"ts": 253402300800, "value": 1},
        {"ts": -62135596801, "value": 2},
        {"ts": 1770724800, "value": 3},
    ]
    target = tmp_path / "out"
    summary = run_ingest(spark, write_json(tmp_path / "in", rows), target, event_time_unit="s")
    assert summary.batch.rejected_by_reason == {FAR_TIME: 2}
    assert list(rows_by_period(target)) == ["2026021012"]


def test_a_batch_of_bad_rows_only_makes_no_commit_with_data(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    summary = run_ingest(
        spark, write_json(tmp_path / "in", [{"ts": None, "v": 1}]), target, schema="ts string, v int"
    )
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


def test_rows_of_one_file_are_sorted_by_event_time(spark: SparkSession, tmp_path: Path) -> None:
    rows = minutes("2026-02-10T12:00:00Z", 50)
    run_ingest(spark, write_json(tmp_path / "in", reversed(rows)), tmp_path / "out")
    (table,) = files_of(tmp_path / "out").values()
    times = table["ts"].to_pylist()
    assert times == sorted(times)


@pytest.mark.parametrize("granularity", PERIODS)
def test_every_granularity_gives_files_of_one_period(
    spark: SparkSession, tmp_path: Path, granularity: str
) -> None:
    # The last of October, and the night when New York's clocks go back.
    rows = [*minutes("2026-10-31T23:59:00Z", 3), *minutes("2026-11-01T05:58:00Z", 4)]
    target, column, zone = tmp_path / "out", f"_event_{granularity}", "America/New_York"
    run_ingest(spark, write_json(tmp_path / "in", rows), target, granularity=granularity, time_zone=zone)
    assert_one_period_per_file(target, column=column, granularity=granularity, zone=zone)
    wanted = {period_of(dt.datetime.fromisoformat(row["ts"]), granularity, zone) for row in rows}
    assert set(rows_by_period(target, column)) == wanted


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


@pytest.mark.parametrize("zone", CLOCK_CHANGES)
def test_every_granularity_and_zone_agrees_with_the_calendar(spark: SparkSession, zone: str) -> None:
    starts = ("1969-12-31T23:58:00Z", "2026-10-25T00:00:00Z", *CLOCK_CHANGES.values())
    moments = [
        dt.datetime.fromisoformat(start) + dt.timedelta(minutes=7 * step, microseconds=999_999 * step)
        for start in starts
        for step in range(20)
    ]
    frame = spark.createDataFrame([(moment,) for moment in moments], "ts timestamp")
    for granularity in PERIODS:
        config = IngestConfig(target="t", event_time="ts", granularity=granularity, time_zone=zone)
        dated = with_period(frame, config)
        found = [row[0] for row in dated.frame.select(dated.period).collect()]
        assert found == [period_of(moment, granularity, zone) for moment in moments]


def test_the_sessions_own_zone_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": "2026-03-29 02:30:00", "v": 1}, {"ts": "2026-03-29T00:30:00Z", "v": 2}]
    found = []
    for zone in ("UTC", "Europe/Berlin"):  # Berlin has no 02:30 on that day
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            target = tmp_path / zone.replace("/", "-")
            run_ingest(spark, write_json(tmp_path / "in", rows), target, time_zone="Asia/Tokyo")
            found.append(rows_by_period(target))
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found[0] == found[1]
    assert set(found[0]) == {"2026032902", "2026032909"}


@pytest.mark.parametrize(
    ("text", "settings", "moment"),
    [
        ("2026-02-10T12:30:15.123456Z", {}, "2026-02-10T12:30:15.123456+00:00"),
        ("2026-02-10 12:30:15+05:30", {}, "2026-02-10T07:00:15+00:00"),
        ("2026-02-10T12:30", {"time_zone": "Europe/Berlin"}, "2026-02-10T11:30:00+00:00"),
        ("2026-02-10", {"time_zone": "Europe/Berlin"}, "2026-02-09T23:00:00+00:00"),
        ("2026-02-10T12:30:00 Europe/Berlin", {}, "2026-02-10T11:30:00+00:00"),
        ("10.02.2026 12.30", {"event_time_format": "dd.MM.yyyy HH.mm"}, "2026-02-10T12:30:00+00:00"),
        (
            "10/Feb/2026:12:30:00 -0100",
            {"event_time_format": "dd/MMM/yyyy:HH:mm:ss Z"},
            "2026-02-10T13:30:00+00:00",
        ),
        (1770726615, {"event_time_unit": "s"}, "2026-02-10T12:30:15+00:00"),
        (1770726615.25, {"event_time_unit": "s"}, "2026-02-10T12:30:15.250000+00:00"),
        (1770726615123, {"event_time_unit": "ms"}, "2026-02-10T12:30:15.123000+00:00"),
        (1770726615123456, {"event_time_unit": "us"}, "2026-02-10T12:30:15.123456+00:00"),
        (1770726615123456789, {"event_time_unit": "ns"}, "2026-02-10T12:30:15.123456+00:00"),
    ],
)
def test_text_and_numbers_become_timestamps(
    spark: SparkSession, text: object, settings: dict[str, Any], moment: str
) -> None:
    kind = {str: "string", int: "bigint", float: "double"}[type(text)]
    frame = spark.createDataFrame([(text,)], f"ts {kind}")
    config = IngestConfig(target="t", event_time="ts", **settings)
    dated = with_period(frame, config)
    row = dated.frame.selectExpr("unix_micros(ts) AS micros", dated.period, REASON).collect()[0]
    wanted = dt.datetime.fromisoformat(moment)
    assert row[REASON] is None
    assert dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=row["micros"]) == wanted
    assert row[dated.period] == period_of(wanted, "hour", config.time_zone)


@pytest.mark.parametrize(
    ("value", "kind", "settings"),
    [
        ("2026", "string", {}),
        ("2026-02-10T25:00:00Z", "string", {}),
        ("12:30", "string", {}),
        ("1770726615", "string", {}),
        ("now", "string", {}),
        ("", "string", {}),
        ("10.02.2026", "string", {"event_time_format": "dd.MM.yyyy HH.mm"}),
        (float("nan"), "double", {"event_time_unit": "s"}),
        (1e300, "double", {"event_time_unit": "ms"}),
        (2**63 - 1, "bigint", {"event_time_unit": "s"}),
    ],
)
def test_what_is_no_time_gets_a_reason(
    spark: SparkSession, value: object, kind: str, settings: dict[str, Any]
) -> None:
    frame = spark.createDataFrame([(value,)], f"ts {kind}")
    config = IngestConfig(target="t", event_time="ts", **settings)
    dated = with_period(frame, config)
    row = dated.frame.select(dated.period, REASON, RAW_TEXT).collect()[0]
    assert row[dated.period] is None
    assert row[REASON] in (BAD_TIME, FAR_TIME)
    assert row[RAW_TEXT].startswith('{"ts":')


@pytest.mark.parametrize(
    ("sql", "period"),
    [
        ("TIMESTAMP_NTZ '2026-02-10 23:30:00'", "2026021023"),
        ("TIMESTAMP '2026-02-10 23:30:00Z'", "2026021100"),
        ("DATE '2026-02-10'", "2026021000"),
    ],
)
def test_times_of_other_types_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, sql: str, period: str
) -> None:
    frame = spark.sql(f"SELECT {sql} AS ts, 1 AS v")
    frame.write.parquet(str(tmp_path / "in"))
    target = tmp_path / "out"
    run_ingest(spark, tmp_path / "in", target, time_zone="Europe/Berlin")
    assert list(rows_by_period(target)) == [period]
    assert spark.read.format("delta").load(str(target)).schema["ts"].dataType == frame.schema["ts"].dataType


@pytest.mark.parametrize(
    ("row", "event_time", "kept_as"),
    [
        ({"event.time": "2026-02-10T12:00:00Z"}, "event.time", "event.time"),
        ({"event time": "2026-02-10T12:00:00Z"}, "event time", "event time"),
        ({"EventTime": "2026-02-10T12:00:00Z"}, "eventtime", "EventTime"),
        ({"meta": {"at": "2026-02-10T12:00:00Z", "n": 1}}, "meta.at", "meta.at"),
    ],
)
def test_the_event_time_and_the_time_column_may_have_any_name(
    spark: SparkSession, tmp_path: Path, row: dict[str, Any], event_time: str, kept_as: str
) -> None:
    target = tmp_path / "out"
    properties = {"delta.columnMapping.mode": "name"} if " " in event_time else {}
    names = {"event_time": event_time, "time_column": "the.hour"}
    run_ingest(spark, write_json(tmp_path / "in", [row]), target, properties=properties, **names)
    back = spark.read.format("delta").load(str(target))
    assert [value["the.hour"] for value in back.collect()] == ["2026021012"]
    found = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]["properties"]
    assert found["lazydelta.time.source"] == kept_as


def test_the_same_run_again_makes_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", [*minutes("2026-02-10T12:00:00Z", 4), {"ts": "bad", "value": 1}])
    target = tmp_path / "out"
    first = run_ingest(spark, source, target, run_id="2026-02-10")
    commits = commits_of(target), commits_of(f"{target}_rejects")
    again = run_ingest(spark, source, target, run_id="2026-02-10")
    assert (first.batch.is_replay, again.batch.is_replay) == (False, True)
    assert (again.batch.version, again.batch.rejects_version, again.batch.rows_written) == (None, None, 0)
    assert (commits_of(target), commits_of(f"{target}_rejects")) == commits
    other = run_ingest(spark, source, target, run_id="2026-02-11")
    assert other.batch.version == first.batch.version + 1
    assert sum(map(len, rows_by_period(target).values())) == 8
    assert len(rejects_of(spark, target)) == 2


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
    assert verify_sidecar(open_storage(str(tmp_path / "out"), Settings()), config=SidecarConfig()).is_ok


def test_a_run_that_failed_between_rejects_and_rows_is_completed(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", [*minutes("2026-02-10T12:00:00Z", 4), {"ts": "bad", "value": 1}])
    target = tmp_path / "out"

    def fail(event: str, /, **fields: object) -> None:
        if event == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_ingest(spark, source, target, run_id="one", progress=fail)
    assert len(rejects_of(spark, target)) == 1
    assert files_of(target) == {}
    done = run_ingest(spark, source, target, run_id="one")
    assert (done.batch.rows_written, done.batch.rejects_version) == (4, None)
    assert len(rejects_of(spark, target)) == 1


def test_progress_is_told_in_order(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", [*minutes("2026-02-10T12:50:00Z", 20), {"ts": "bad", "value": 1}])
    heard: list[tuple[str, dict[str, object]]] = []
    run_ingest(
        spark, source, tmp_path / "out", progress=lambda event, /, **fields: heard.append((event, fields))
    )
    events = [event for event, _ in heard if event != "running"]
    assert events == ["reading", "counted", "rejects", "writing", "committed"]
    told = dict(heard)
    assert (told["counted"]["rows"], told["counted"]["rejected"], told["counted"]["periods"]) == (21, 1, 2)
    assert told["committed"]["files"] == 2
    assert told["committed"]["version"] == 1


def test_a_table_is_not_mixed_with_another_layout(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", minutes("2026-02-10T12:00:00Z", 4, other="2026-02-10"))
    target = tmp_path / "out"
    run_ingest(spark, source, target)
    before = commits_of(target)
    for settings, word in (
        ({"granularity": "day", "time_column": "_event_hour"}, "yyyyMMddHH"),
        ({"time_zone": "Europe/Berlin"}, "lazydelta.time.zone"),
        ({"event_time": "other"}, "lazydelta.time.source"),
        ({"time_column": "hour_of_event"}, "lazydelta.time.column"),
    ):
        with pytest.raises(InvalidRequestError, match=word) as caught:
            run_ingest(spark, source, target, **settings)
        assert "another target" in caught.value.fix
    assert commits_of(target) == before
