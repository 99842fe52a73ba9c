"""Statistics of files, where the log keeps them: of those that are known by their paths, or of the first.

Why: an engine that has its list of files often needs bounds of one more column, for these files alone.
Contract: one row for each path, in the order given; a path that is not live at the version is told as such,
and nothing else of it. Values are the writer's, in the column's type of today; null says nothing. The tail
is walked newest first; then the sidecar is asked where such paths lie, or the checkpoint is read. Nothing
more is read once every path was met. Where several files of one path are live, the first that is met counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import CorruptLogError, InvalidRequestError
from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.file_rows import Mask
from lazydelta.log.parquet_part import ParquetPart
from lazydelta.protocol.paths import canonical_paths, listed_path
from lazydelta.scan.record_counts import COUNTS
from lazydelta.scan.replay import reverse_files
from lazydelta.scan.report import ScanTally
from lazydelta.scan.run import Replay
from lazydelta.scan.scanner import FileScan
from lazydelta.scan.skipping import matching_row_groups, possible_rows
from lazydelta.scan.stat_columns import AskedColumn, bind_columns, stats_of, stats_schema
from lazydelta.sidecar.read.path_pruner import PathPruner, path_ranges
from lazydelta.sidecar.read.pruner import pruners_of
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.reader import SidecarRequest
from lazydelta.sidecar.read.wanted_paths import WantedPaths

_WHERE = "get_stats_for_files()"


def look_up_stats(
    scan: FileScan, paths: Iterable[str | PurePath], stat_columns: Sequence[str]
) -> pa.RecordBatch:
    """The statistics of these files at the version of the scan; its report tells what that cost."""
    asked = _path_texts(paths)
    snapshot = scan.snapshot
    root = snapshot.storage.root
    partition_columns = snapshot.state.metadata.partition_columns
    columns = bind_columns(stat_columns, snapshot.schema, partition_columns, where=root)
    listed = pa.array([listed_path(path, root) for path in asked], pa.string())
    wanted = WantedPaths(listed.unique(), root)
    rows, sidecar_rows = _requests(scan, columns, wanted)
    tally = ScanTally(strategy="reverse", reason="files are looked up by their paths")
    with scan.begun(tally, rows, sidecar_rows) as replay:
        found = _found(replay, columns, wanted) if wanted.is_missing_any else []
        tally.is_finished = True
    return _answer(pa.array(asked, pa.string()), listed, found, stats_schema(columns))


def first_bounds(scan: FileScan, name: str) -> pa.Table:
    """Statistics of one column for the files of a scan without order, as many as its limit says."""
    snapshot, predicate = scan.snapshot, scan.predicate
    partition_columns = snapshot.state.metadata.partition_columns
    columns = bind_columns([name], snapshot.schema, partition_columns, where=snapshot.storage.root)
    tally = ScanTally(strategy="reverse", reason="bounds of the first files are looked at")
    judged = () if predicate is None else predicate.stats_columns
    wanted = [column.wanted for column in columns if not column.is_partition]
    others = [column for column in judged if column.path not in {one.path for one in wanted}]
    statistics = (*wanted, *others) or (COUNTS,)
    names = ("path", "deletion_vector", "partition_values")
    keep_rows = None if predicate is None else partial(possible_rows, predicate=predicate, tally=tally)
    rows = RowRequest(
        columns=names,
        stats_paths=tuple(column.path for column in statistics),
        keep_row_groups=None if predicate is None else partial(matching_row_groups, predicate=predicate),
        keep_rows=keep_rows,
        batch_rows=scan.config.batch_size,
        row_groups_per_batch=1,
        read_ahead=False,
    )
    sidecar_rows = SidecarRequest(
        shape=RowShape(columns=names, statistics=statistics),
        pruners=pruners_of(predicate),
        keep_rows=keep_rows,
        is_limited=True,
        gives_statistics=True,
    )
    found: list[pa.RecordBatch] = []
    missing = scan.config.limit or 0
    with scan.begun(tally, rows, sidecar_rows) as replay, closing(reverse_files(replay)) as live:
        for batch in live:
            found.append(stats_of(batch.slice(0, missing), columns, time_zone=replay.config.time_zone))
            replay.tally.emitted(found[-1].num_rows)
            missing -= found[-1].num_rows
            if missing <= 0:
                break
        tally.is_finished = True
    return pa.Table.from_batches(found, stats_schema(columns)).combine_chunks()


def _path_texts(paths: Iterable[str | PurePath]) -> list[str]:
    if isinstance(paths, str | bytes | PurePath | Mapping) or not isinstance(paths, Iterable):
        fix = 'give a list, as in ["part-0.parquet"]'
        raise InvalidRequestError(f"paths is {paths!r}"[:200], _WHERE, fix)
    if isinstance(paths, pa.Array | pa.ChunkedArray):
        paths = paths.to_pylist()
    return [_path_text(path) for path in paths]


def _path_text(path: object) -> str:
    text = path.as_posix() if isinstance(path, PurePath) else path
    if not isinstance(text, str) or not _is_text(text):
        fix = "give paths as text, as DeltaFile.path has them"
        raise InvalidRequestError(f"a path is {path!r}"[:200], _WHERE, fix)
    return text


def _is_text(path: str) -> bool:
    """Not with half a character in it (a lone surrogate)."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)


def _requests(
    scan: FileScan, columns: Sequence[AskedColumn], wanted: WantedPaths
) -> tuple[RowRequest, SidecarRequest]:
    has_partitions = any(column.is_partition for column in columns)
    names = ("path", "deletion_vector", *(["partition_values"] if has_partitions else []))
    statistics = tuple(column.wanted for column in columns if not column.is_partition) or (COUNTS,)
    rows = RowRequest(
        columns=names,
        stats_paths=tuple(column.path for column in statistics),
        keep_row_groups=partial(_row_groups_of_checkpoint, wanted=wanted),
        keep_rows=partial(_perhaps_wanted, wanted=wanted),
        batch_rows=scan.config.batch_size,
        row_groups_per_batch=scan.config.checkpoint_row_groups_per_batch,
    )
    sidecar_rows = SidecarRequest(
        shape=RowShape(columns=names, statistics=statistics),
        pruners=tuple(PathPruner(wanted=wanted, is_guess=is_guess) for is_guess in (True, False)),
        keep_rows=partial(_met, wanted=wanted),
        gives_statistics=True,
    )
    return rows, sidecar_rows


def _row_groups_of_checkpoint(part: ParquetPart, *, wanted: WantedPaths) -> Sequence[int]:
    possible = wanted.missing.may_hold(path_ranges(part.metadata, "add.path"))
    return [int(at) for at in np.flatnonzero(possible)]


def _perhaps_wanted(rows: pa.RecordBatch, among: Mask | None, *, wanted: WantedPaths) -> Mask:
    """Rows of a commit or a checkpoint; the latter come with their paths as the log spells them."""
    everything = np.ones(rows.num_rows, np.bool_) if among is None else among
    paths = rows.column("path").fill_null("")
    try:
        spelled: Mask = wanted.missing_among(canonical_paths(paths, wanted.root))
    except CorruptLogError:  # a canonical path that looks like a bad spelling: judged when it comes out
        return everything
    return everything & (spelled | wanted.missing_among(paths))


def _met(rows: pa.RecordBatch, among: Mask | None, *, wanted: WantedPaths) -> Mask:
    """Rows of a sidecar. One that a newer commit has overruled need not be looked for elsewhere, either."""
    flags = wanted.missing_among(rows.column("path"))
    if among is not None:
        flags = flags & among
    wanted.met(rows.column("path").filter(pa.array(flags)))
    return flags


def _found(replay: Replay, columns: Sequence[AskedColumn], wanted: WantedPaths) -> list[pa.RecordBatch]:
    """Path and statistics of those that are live; batches in the order they were met."""
    found: list[pa.RecordBatch] = []
    with closing(reverse_files(replay)) as live:
        for rows in live:
            kept = rows.filter(pa.array(wanted.wanted_among(rows.column("path"))))
            if kept.num_rows == 0:
                continue
            replay.tally.emitted(kept.num_rows)
            stats = stats_of(kept, columns, time_zone=replay.config.time_zone)
            found.append(stats.append_column("path", kept.column("path")))
            wanted.met(kept.column("path"))
            if not wanted.is_missing_any:
                break
    return found


def _answer(
    paths: pa.Array, listed: pa.Array, found: Sequence[pa.RecordBatch], schema: pa.Schema
) -> pa.RecordBatch:
    """One row for each path: where it was met first, or nothing but that it is not live."""
    stats = pa.Table.from_batches(found, schema.append(pa.field("path", pa.string()))).combine_chunks()
    at = pc.index_in(listed, value_set=stats.column("path"))
    rows = stats.drop_columns("path").take(at)
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays([paths, at.is_valid(), *columns], names=["path", "live", *schema.names])
