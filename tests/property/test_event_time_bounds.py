"""No file with a matching row is dropped by its period, wherever its row of the log is read.

Event times are drawn near clock changes; periods are made of them by Python's own zones, one file at a time.
Some files have a period that no pipeline wrote. The same table is read by its commits, its checkpoint and its
sidecar: all give the same files, and every file that has a matching row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support import actions
from tests.support.hypothesis_profile import examples
from tests.support.predicates import Predicate, judge, predicates, to_sql
from tests.support.table_builder import TableBuilder
from tests.unit.sidecar.samples import storage_at

# Moments around which clocks are set forward or back, in one of the zones.
CHANGES = [
    datetime.fromisoformat(text)
    for text in (
        "2026-03-29T01:00",
        "2026-10-25T01:00",
        "2026-04-04T15:00",
        "2026-10-03T15:30",
        "2011-12-30T10:00",
        "2025-03-09T10:00",
        "1999-12-31T23:00",
    )
]
ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/Los_Angeles", "Etc/GMT+5"]
FORMATS = {
    "yyyyMM": "%Y%m",
    "yyyyMMdd": "%Y%m%d",
    "yyyyMMddHH": "%Y%m%d%H",
    "yyyyMMddHHmm": "%Y%m%d%H%M",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
}
ODD = [None, "", "oops", "2026", "2026032999", "202603290", "20260329010", "20261301", "99999999999999"]
SMALL = SidecarConfig(row_group_rows=2, row_groups_max=2)

moments = st.builds(
    lambda change, hours, micros: change + timedelta(hours=hours, microseconds=micros),
    st.sampled_from(CHANGES),
    st.integers(-26, 26),
    st.sampled_from([0, 1, -1, 999, 1_799_999_999, 1_800_000_000, 3_599_999_999]),
)


@st.composite
def written_files(draw: st.DrawFn, kind: str, zone: str, format_: str) -> tuple[str | None, list[Any]]:
    """A period and the times of the rows that have it; or an odd period, and any times."""
    times = [_value(moment, kind) for moment in draw(st.lists(moments, min_size=1, max_size=3))]
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(ODD)), [*times, None]
    period = _period(times[0], zone, format_)
    return period, [time for time in times if _period(time, zone, format_) == period]


@settings(max_examples=examples(15))
@given(data=st.data())
def test_commits_checkpoint_and_sidecar_keep_every_file_with_a_matching_time(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["timestamp", "timestamp_ntz", "date"]))
    zone, format_ = data.draw(st.sampled_from(ZONES)), data.draw(st.sampled_from(sorted(FORMATS)))
    files = data.draw(st.lists(written_files(kind, zone, format_), min_size=1, max_size=9))
    literals = moments.map(lambda moment: _value(moment, kind))
    asked = data.draw(st.lists(predicates({"ts": literals}), min_size=1, max_size=4))
    has_stats = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        in_commits, in_checkpoint, in_sidecar = (
            build(Path(folder) / name, files, (kind, zone, format_), has_stats=has_stats)
            for name in ("commits", "checkpoint", "sidecar")
        )
        in_checkpoint.checkpoint(stats="both")
        in_sidecar.checkpoint()
        build_sidecar(storage_at(in_sidecar.path), config=SMALL)
        for predicate in asked:
            needed = {f"f{at}" for at, (_, times) in enumerate(files) if _has_match(predicate, times)}
            kept = [found(table.path, predicate) for table in (in_commits, in_checkpoint, in_sidecar)]
            assert needed <= kept[0], to_sql(predicate)
            assert kept[0] == kept[1] == kept[2], to_sql(predicate)


def test_the_sidecar_reads_only_the_row_groups_of_the_hours_that_were_asked_for(tmp_path: Path) -> None:
    hours = [datetime.fromisoformat("2026-02-10") + timedelta(hours=at) for at in range(24)]
    files = [(_period(_value(hour, "timestamp"), "UTC", "yyyyMMddHH"), [hour]) for hour in hours]
    table = build(tmp_path, files, ("timestamp", "UTC", "yyyyMMddHH"), has_stats=False).checkpoint()
    build_sidecar(storage_at(table.path), config=SMALL)
    scan = ld.open(str(table.path)).scan(where="ts >= '2026-02-10T22:00:00Z'")
    assert sorted(_name(file.path) for file in scan.files()) == ["f22", "f23"]
    report = scan.explain()
    assert (report.row_groups_read, report.row_groups_skipped) == (1, 11)


def test_one_odd_period_among_others_keeps_its_own_row_group_alone(tmp_path: Path) -> None:
    hours = [f"20260210{hour:02}" for hour in range(8)]
    files: list[tuple[str | None, list[Any]]] = [(hour, []) for hour in [*hours, "2026021003x"]]
    table = build(tmp_path, files, ("timestamp", "UTC", "yyyyMMddHH"), has_stats=False).checkpoint()
    build_sidecar(storage_at(table.path), config=SMALL)
    scan = ld.open(str(table.path)).scan(where="ts >= '2027-01-01T00:00:00Z'")
    assert [_name(file.path) for file in scan.files()] == ["f8"]
    report = scan.explain()
    assert (report.row_groups_read, report.row_groups_skipped) == (1, 5)


@pytest.mark.parametrize("left_out", ["source", "column", "format", "zone"])
def test_without_all_properties_every_file_stays(tmp_path: Path, left_out: str) -> None:
    files: list[tuple[str | None, list[Any]]] = [("2026021003", [])]
    table = build(tmp_path, files, ("timestamp", "UTC", "yyyyMMddHH"), has_stats=False, left_out=left_out)
    assert found(table.path, "ts >= '2027-01-01T00:00:00Z'") == {"f0"}


# --- tables --------------------------------------------------------------------


def build(
    folder: Path,
    files: Sequence[tuple[str | None, list[Any]]],
    made: tuple[str, str, str],
    *,
    has_stats: bool,
    left_out: str | None = None,
) -> TableBuilder:
    kind, zone, format_ = made
    told = {"source": "ts", "column": "_event_hour", "format": format_, "zone": zone}
    table = TableBuilder(
        folder,
        schema={"ts": kind, "_event_hour": "string"},
        partition_columns=["_event_hour"],
        configuration={f"lazydelta.time.{name}": text for name, text in told.items() if name != left_out},
    )
    adds = [
        actions.add(f"f{at}", partition={"_event_hour": period}, stats=_stats(times) if has_stats else None)
        for at, (period, times) in enumerate(files)
    ]
    half = len(adds) // 2
    return table.commit(adds=adds[:half]).commit(adds=adds[half:])


def found(table: Path, where: Predicate | str) -> set[str]:
    text = where if isinstance(where, str) else to_sql(where)
    return {_name(file.path) for file in ld.open(str(table)).scan(where=text).files()}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _has_match(predicate: Predicate, times: Sequence[Any]) -> bool:
    return any(judge(predicate, {"ts": time}) is True for time in times)


def _value(moment: datetime, kind: str) -> Any:
    if kind == "date":
        return moment.date()
    return moment.replace(tzinfo=UTC) if kind == "timestamp" else moment


def _period(value: Any, zone: str, format_: str) -> str:
    if not isinstance(value, datetime):
        value = datetime.fromisoformat(value.isoformat())
    wall = value if value.tzinfo is None else value.astimezone(ZoneInfo(zone))
    return wall.strftime(FORMATS[format_])


def _stats(times: Sequence[Any]) -> dict[str, Any]:
    there = [time for time in times if time is not None]
    bounds = {} if not there else {"low": {"ts": _text(min(there))}, "high": {"ts": _text(max(there))}}
    return actions.stats(len(times), nulls={"ts": len(times) - len(there)}, **bounds)


def _text(value: date | datetime) -> str:
    """As Spark writes statistics: cut to the millisecond."""
    if not isinstance(value, datetime):
        return value.isoformat()
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
