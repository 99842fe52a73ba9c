"""The newest files of a table, as a sample: sizes, statistics, deletion vectors, times.

Why: what is slow about ten million files must be told without reading their list.
Contract: at most `DOCTOR_SAMPLE_FILES` live files, newest first, read as a scan with a limit reads them; the
facts say how many there were and whether that was the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.file_rows import deletion_vectors
from lazydelta.predicate import BoundPredicate
from lazydelta.predicate.expression import column_sql
from lazydelta.protocol.schema import StructType
from lazydelta.protocol.statistics import StatsColumn
from lazydelta.rows.source import RowSource
from lazydelta.scan.record_counts import COUNTS
from lazydelta.scan.replay import reverse_files
from lazydelta.scan.report import ScanTally
from lazydelta.scan.scanner import FileScan
from lazydelta.scan.skipping import possible_rows
from lazydelta.scan.stat_columns import AskedColumn, bind_columns, stats_of
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.reader import SidecarRequest

_COLUMNS = ("path", "size", "partition_values", "deletion_vector")
# Upper ends of the sizes that are told apart, and their names.
SIZE_CLASSES = (
    (1_000_000, "below 1 MB"),
    (16_000_000, "1 to 16 MB"),
    (128_000_000, "16 to 128 MB"),
    (1_000_000_000, "128 MB to 1 GB"),
)
LARGEST = "over 1 GB"


class ColumnSample(msgspec.Struct, frozen=True, kw_only=True):
    """One column that a filter names."""

    name: str  # as a filter spells it
    names: tuple[str, ...]  # logical
    path: tuple[str, ...]  # physical
    is_partition: bool
    files_with_bounds: int
    type_has_bounds: bool


class TimeSample(msgspec.Struct, frozen=True, kw_only=True):
    """How the sampled files lie in time, by the bounds of one column."""

    column: str  # of the schema's first level, as it is called
    files_with_bounds: int
    span_hours_median: float  # from the least to the greatest time in a file
    range_hours: float  # of all sampled files
    last_hour_files: int  # that reach into the newest hour of them


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What the sampled files have in common."""

    files: int
    is_whole: bool
    size_p10: int
    size_median: int
    size_p90: int
    size_total: int
    sizes: dict[str, int]  # files by size class
    files_with_counts: int  # whose statistics tell the number of rows
    files_with_vectors: int
    rows_deleted: int
    rows_known: int
    columns: tuple[ColumnSample, ...]  # that the filter names
    files_kept: int | None  # by the filter; None without one
    time: TimeSample | None


class _Rows(msgspec.Struct):
    """What is gathered while files come."""

    sizes: list[pa.Array]
    stats: list[pa.RecordBatch]
    vectors: int = 0
    kept: int = 0
    count: int = 0


def take_sample(source: RowSource, predicate: BoundPredicate | None, time_column: str | None) -> Sample:
    """The newest files of the source's version."""
    scan = source.with_config(predicate=None, limit=limits.DOCTOR_SAMPLE_FILES, order=None).files()
    named = _named_columns(source, predicate)
    timed = () if time_column is None else _bound(source, [column_sql((time_column,))])
    columns = tuple({column.name: column for column in (*named.values(), *timed)}.values())
    gathered, is_whole = _gather(scan, columns, predicate)
    sizes = np.concatenate([np.zeros(0, np.int64), *(chunk.to_numpy() for chunk in gathered.sizes)])
    stats = pa.Table.from_batches(gathered.stats) if gathered.stats else None
    p10, median, p90 = np.percentile(sizes, [10, 50, 90]) if len(sizes) else (0, 0, 0)
    return Sample(
        files=gathered.count,
        is_whole=is_whole,
        size_p10=int(p10),
        size_median=int(median),
        size_p90=int(p90),
        size_total=int(sizes.sum()),
        sizes=size_classes(sizes),
        files_with_counts=_valid(stats, "num_records"),
        files_with_vectors=gathered.vectors,
        rows_deleted=_sum(stats, "deleted_rows"),
        rows_known=_sum(stats, "num_records"),
        columns=tuple(_column_sample(column, stats, names) for names, column in named.items()),
        files_kept=None if predicate is None else gathered.kept,
        time=None if time_column is None or stats is None else _time_sample(time_column, timed[0], stats),
    )


def size_classes(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, int]:
    """How many files are of which size."""
    ends = [end for end, _ in SIZE_CLASSES]
    counts = np.bincount(np.searchsorted(ends, sizes, side="right"), minlength=len(ends) + 1)
    names = [*(name for _, name in SIZE_CLASSES), LARGEST]
    return {name: int(count) for name, count in zip(names, counts, strict=True)}


def _gather(
    scan: FileScan, columns: Sequence[AskedColumn], predicate: BoundPredicate | None
) -> tuple[_Rows, bool]:
    wanted = [column.wanted for column in columns if not column.is_partition]
    judged = () if predicate is None else predicate.stats_columns
    statistics: tuple[StatsColumn, ...] = (*judged, *wanted) or (COUNTS,)
    statistics = tuple({column.path: column for column in reversed(statistics)}.values())
    rows = RowRequest(
        columns=_COLUMNS,
        stats_paths=tuple(column.path for column in statistics),
        batch_rows=limits.DOCTOR_SAMPLE_FILES,
        row_groups_per_batch=1,
        read_ahead=False,
    )
    shape = RowShape(columns=_COLUMNS, statistics=statistics)
    from_sidecar = SidecarRequest(shape=shape, gives_statistics=True, is_limited=True)
    tally = ScanTally(strategy="reverse", reason="the newest files are sampled")
    gathered, left = _Rows(sizes=[], stats=[]), limits.DOCTOR_SAMPLE_FILES
    with scan.begun(tally, rows, from_sidecar) as replay, closing(reverse_files(replay)) as live:
        for batch in live:
            taken = batch.slice(0, left)
            left -= taken.num_rows
            _note(gathered, taken, columns, predicate, time_zone=scan.config.time_zone)
            tally.emitted(taken.num_rows)
            if not left:
                return gathered, False
        tally.is_finished = True
    return gathered, True


def _note(
    gathered: _Rows,
    rows: pa.RecordBatch,
    columns: Sequence[AskedColumn],
    predicate: BoundPredicate | None,
    *,
    time_zone: str,
) -> None:
    gathered.count += rows.num_rows
    gathered.sizes.append(rows.column("size"))
    gathered.stats.append(stats_of(rows, columns, time_zone=time_zone))
    vectors = deletion_vectors(rows)
    gathered.vectors += 0 if vectors is None else len(vectors) - vectors.null_count
    if predicate is not None:
        gathered.kept += int(possible_rows(rows, None, predicate=predicate, tally=ScanTally()).sum())


def _named_columns(source: RowSource, predicate: BoundPredicate | None) -> dict[tuple[str, ...], AskedColumn]:
    """The filter's columns by their names, but for structs, which have no statistics of their own."""
    if predicate is None:
        return {}
    leaves = {path for path, _ in source.snapshot.schema.leaves()}
    paths = [path for path in predicate.columns if path in leaves]
    return dict(zip(paths, _bound(source, [column_sql(path) for path in paths]), strict=True))


def _bound(source: RowSource, names: Sequence[str]) -> tuple[AskedColumn, ...]:
    snapshot = source.snapshot
    schema: StructType = snapshot.schema
    partitions = snapshot.state.metadata.partition_columns
    return bind_columns(names, schema, partitions, where=snapshot.storage.root)


def _column_sample(column: AskedColumn, stats: pa.Table | None, names: tuple[str, ...]) -> ColumnSample:
    has_bounds = column.is_partition or column.wanted.has_bounds
    side = f"min.{column.name}" if has_bounds else f"null_count.{column.name}"
    return ColumnSample(
        name=column.name,
        names=names,
        path=column.wanted.path,
        is_partition=column.is_partition,
        files_with_bounds=_valid(stats, side),
        type_has_bounds=has_bounds,
    )


def _time_sample(name: str, column: AskedColumn, stats: pa.Table) -> TimeSample | None:
    low, high = (_micros(stats.column(f"{side}.{column.name}")) for side in ("min", "max"))
    both = pc.and_(low.is_valid(), high.is_valid())
    lows, highs = (side.filter(both).to_numpy() for side in (low, high))
    if not len(lows):
        return None
    hour_us = 3_600_000_000
    newest = int(highs.max())
    return TimeSample(
        column=name,
        files_with_bounds=len(lows),
        span_hours_median=float(np.median(highs - lows)) / hour_us,
        range_hours=(newest - int(lows.min())) / hour_us,
        last_hour_files=int((highs > newest - hour_us).sum()),
    )


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    as_times = times.cast(pa.timestamp("us")) if pa.types.is_date(times.type) else times
    return as_times.cast(pa.int64())


def _valid(stats: pa.Table | None, name: str) -> int:
    return 0 if stats is None else stats.num_rows - stats.column(name).null_count


def _sum(stats: pa.Table | None, name: str) -> int:
    return 0 if stats is None else int(pc.sum(stats.column(name)).as_py() or 0)
