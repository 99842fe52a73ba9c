"""Which row groups of a checkpoint a filter reads: those that its typed columns cannot rule out."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta import limits
from lazydelta.log.parquet_part import DamagedCheckpointError, ParquetPart
from lazydelta.predicate import bind, parse_where
from lazydelta.protocol.schema import Field, PrimitiveType, StructType, arrow_type
from lazydelta.scan.skipping import matching_row_groups
from lazydelta.storage import ObjectReplacedError
from tests.unit.sidecar.samples import storage_at

PERIODS = {
    "lazydelta.time.source": "ts",
    "lazydelta.time.column": "_event_hour",
    "lazydelta.time.format": "yyyyMMddHH",
    "lazydelta.time.zone": "UTC",
}


def kept(
    folder: Path,
    where: str,
    rows: Sequence[Mapping[str, Any] | None],
    *,
    types: Mapping[str, str],
    partitions: Mapping[str, str] | None = None,
    group: int = 2,
    time_zone: str = "UTC",
) -> list[int]:
    """The row groups that the filter reads. A row is `{"low": …, "high": …, "parts": …}`, or no add."""
    partitions = partitions or {}
    bounds = pa.struct([(name, arrow_type(PrimitiveType(type_))) for name, type_ in types.items()])
    parsed = pa.struct([(name, arrow_type(PrimitiveType(type_))) for name, type_ in partitions.items()])
    stats = pa.struct([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds)])
    fields = [("path", pa.string()), ("stats_parsed", stats)]
    if partitions:
        fields.append(("partitionValues_parsed", parsed))
    adds = [row and _add(f"f{at}", row) for at, row in enumerate(rows)]
    file = folder / "checkpoint.parquet"
    pq.write_table(pa.table({"add": pa.array(adds, pa.struct(fields))}), file, row_group_size=group)
    part = ParquetPart(storage_at(folder), file.name, file.stat().st_size)
    columns = [
        Field(name, PrimitiveType(type_), True, {}) for name, type_ in (types | dict(partitions)).items()
    ]
    predicate = bind(
        parse_where(where),
        StructType(tuple(columns)),
        list(partitions),
        where="memory",
        time_zone=time_zone,
        configuration=PERIODS,
    )
    found = list(matching_row_groups(part, predicate))
    part.close()
    return found


def _add(path: str, row: Mapping[str, Any]) -> dict[str, Any]:
    stats = {"numRecords": 1, "minValues": row.get("low"), "maxValues": row.get("high")}
    return {"path": path, "stats_parsed": stats, "partitionValues_parsed": row.get("parts")}


def x(low: Any, high: Any) -> dict[str, Any]:
    return {"low": {"x": low}, "high": {"x": high}}


def part(**values: Any) -> dict[str, Any]:
    return {"parts": values}


def test_row_groups_are_ruled_out_by_the_bounds_of_all_their_files(tmp_path: Path) -> None:
    rows = [x(1, 2), x(3, 4), x(5, 6), None, x(7, 8), x(None, None)]
    assert kept(tmp_path, "x > 4", rows, types={"x": "long"}) == [1, 2]
    assert kept(tmp_path, "x < 5", rows, types={"x": "long"}) == [0, 2]
    assert kept(tmp_path, "x > 100", rows, types={"x": "long"}) == [2]  # the last file has no bounds


def test_floats_rule_nothing_out_because_nobody_counts_nan(tmp_path: Path) -> None:
    rows = [x(1.0, 2.0), x(float("nan"), float("nan"))]
    assert kept(tmp_path, "x < 0", rows, types={"x": "double"}) == [0]


def test_a_short_cut_maximum_reaches_past_a_greater_long_one(tmp_path: Path) -> None:
    assert kept(tmp_path, "x = 'abx'", [x("aa", "ab"), x("aa", "abd")], types={"x": "string"}) == [0]
    assert kept(tmp_path, "x = 'ac'", [x("aa", "ab"), x("aa", "abd")], types={"x": "string"}) == []


@pytest.mark.parametrize("ticks", [2**60, -(2**60)])
def test_moments_beyond_what_python_can_hold_are_no_error(tmp_path: Path, ticks: int) -> None:
    moment = pa.scalar(ticks, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    rows = [x(moment, moment)]
    beyond = kept(tmp_path, "x > '2026-01-01T00:00:00Z'", rows, types={"x": "timestamp"})
    assert beyond == ([0] if ticks > 0 else [])


def test_decimals_are_judged_by_their_digits(tmp_path: Path) -> None:
    rows = [x(Decimal("1.10"), Decimal("2.20")), x(Decimal("1.10"), Decimal("2.30"))]
    assert kept(tmp_path, "x > 2.25", rows, types={"x": "decimal(9,2)"}, group=1) == [1]


def test_clock_times_that_the_writer_read_in_its_own_zone_keep_a_day_of_slack(tmp_path: Path) -> None:
    rows = [part(p=datetime(2026, 2, 10, 12, tzinfo=UTC))]
    types, parts = {"x": "long"}, {"p": "timestamp"}
    assert kept(tmp_path, "p >= '2026-02-10T20:00:00Z'", rows, types=types, partitions=parts) == [0]
    assert kept(tmp_path, "p >= '2026-02-12T00:00:00Z'", rows, types=types, partitions=parts) == []


def test_a_dot_in_a_name_that_makes_two_columns_sound_alike_rules_nothing_out(tmp_path: Path) -> None:
    """`a.b` and the field `b` of `a` have one dotted path in Parquet."""
    inner = pa.struct([("b", pa.int64())])
    bounds = pa.struct([("a", inner), ("a.b", pa.int64())])
    stats = pa.struct([("minValues", bounds), ("maxValues", bounds)])
    value = {"a": {"b": 100}, "a.b": 1}
    add = {"path": "f", "stats_parsed": {"minValues": value, "maxValues": value}}
    adds = pa.array([add], pa.struct([("path", pa.string()), ("stats_parsed", stats)]))
    file = tmp_path / "c.parquet"
    pq.write_table(pa.table({"add": adds}), file)
    long = PrimitiveType("long")
    schema = StructType(
        (Field("a", StructType((Field("b", long, True, {}),)), True, {}), Field("a.b", long, True, {}))
    )
    for where in ("a.b = 100", "`a.b` = 1"):
        checkpoint = ParquetPart(storage_at(tmp_path), file.name, file.stat().st_size)
        predicate = bind(parse_where(where), schema, [], where="memory")
        assert list(matching_row_groups(checkpoint, predicate)) == [0], where


def test_the_event_time_is_judged_where_all_files_have_one_period(tmp_path: Path) -> None:
    texts = ["2026021001", "2026021001", "2026021001", "2026021002", "2026021005", None]
    rows = [part(_event_hour=text) for text in texts]
    where, parts = "ts > '2030-01-01T00:00:00Z'", {"_event_hour": "string"}
    assert kept(tmp_path, where, rows, types={"ts": "timestamp"}, partitions=parts) == [1, 2]


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [("gone", DamagedCheckpointError, "checkpoint file"), ("cut", ObjectReplacedError, "was replaced")],
)
def test_a_checkpoint_that_is_lost_after_its_footer_was_read_is_told(
    tmp_path: Path, how: str, error: type[Exception], words: str
) -> None:
    """Where it is gone an older one may serve; where it is another one now, the log is listed again."""
    path = tmp_path / "0.checkpoint.parquet"
    size = 2 * limits.PARQUET_FOOTER_GUESS_BYTES  # more than comes with the footer
    pq.write_table(pa.table({"noise": [random.Random(5).randbytes(size)]}), path)
    part = ParquetPart(storage_at(tmp_path), path.name, path.stat().st_size)
    assert part.metadata.num_row_groups == 1
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(b"PAR1")
    with pytest.raises(error, match=words):
        list(part.batches([0], ["noise"], 10))
