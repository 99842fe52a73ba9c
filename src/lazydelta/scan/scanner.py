"""One scan of one pinned version, from snapshot to batches of live files.

The flow: replay (which files are live, of those that might match) → limit → projection. Each stage is a
generator that pulls from the one below; whoever stops pulling stops the reads. Rows of a checkpoint are
judged by the predicate as they are decoded, before anything else is done with them: most end there.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import InvalidRequestError
from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.commits import ReverseCommitReader
from lazydelta.log.file_rows import DEFAULT_COLUMNS, FILE_COLUMNS, RAW_PATH, Batches
from lazydelta.log.snapshot import Snapshot
from lazydelta.memory_share import MemoryShare
from lazydelta.predicate import BoundPredicate, Expression, bind, parse_where
from lazydelta.protocol.statistics import StatsColumn
from lazydelta.scan.config import LazyScanConfig, ScanStrategy
from lazydelta.scan.files import logical_names, public_rows
from lazydelta.scan.ordered import ordered_files
from lazydelta.scan.record_counts import COUNTS, NUM_RECORDS, with_record_counts
from lazydelta.scan.replay import forward_files, reverse_files
from lazydelta.scan.report import NO_SOURCE, ScanReport, ScanTally, add_io, milliseconds
from lazydelta.scan.run import Replay
from lazydelta.scan.skipping import matching_row_groups, possible_rows
from lazydelta.scan.strategy import choose_strategy
from lazydelta.scan.table_memory import TableMemory
from lazydelta.scan.tripwire import FeatureTripwire
from lazydelta.sidecar.find.discover import SidecarAwareProvider
from lazydelta.sidecar.order.anchor import Anchor
from lazydelta.sidecar.read.pruner import pruners_of
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.reader import SidecarRequest
from lazydelta.sidecar.read.traversal import ORDER_VALUE, Traversal
from lazydelta.storage import Deadline, IoCounters
from lazydelta.telemetry import log_event, record_scan

_COLUMNS = (*FILE_COLUMNS, NUM_RECORDS)
_KEPT_FILTER_CHARS = 4096  # of a filter's text that is parsed only once


class FileScan:
    """A scan that can be run again; each run pulls from the log anew. `report` tells of the latest run."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: LazyScanConfig,
        sidecar: SidecarAwareProvider | None = None,
        memory: TableMemory | None = None,
        *,
        is_hurried: bool = False,
        anchor: Anchor | None = None,
    ) -> None:
        """`is_hurried`: whoever pulls may stop after a few files, so little is read ahead.

        `anchor`: an ordered scan begins there.
        """
        assert anchor is None or config.order is not None
        self._anchor = anchor
        self.snapshot = snapshot
        self.sidecar = sidecar
        self.memory = memory
        self.config = config.checked()
        self._is_hurried = is_hurried
        self._reads_little = is_hurried or config.limit is not None
        self.predicate = _bound(snapshot, self.config)
        self._tally: ScanTally | None = None
        self._deadline: Deadline | None = None  # of the latest run
        self._io = IoCounters()
        self._check_floor()

    def batches(
        self,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        with_keys: bool = False,
        share: MemoryShare | None = None,
    ) -> Batches:
        """Live files as Arrow, `columns` of `FILE_COLUMNS` and `num_records`, at most `batch_size` a batch.

        `with_keys` adds what an ordered scan goes by: `order_value`, unless that is the path, and `raw_path`.
        By `share`, a new one, another thread may end the run's waits for memory.
        """
        _check_columns(columns)
        return self._run(tuple(columns), share or MemoryShare(), with_keys=with_keys)

    def stop(self) -> None:
        """End the latest run, from any thread: it asks no more of the store, and a pull is a `StoppedError`.

        A run that is being pulled cannot be closed, and may go through many files before it gives one.
        """
        if self._deadline is not None and self._tally is not None:
            self._deadline.end()
            self._tally.share.stop_waiting()

    def report(self) -> ScanReport:
        """What the latest run did; runs the scan once, for its numbers alone, if none has begun."""
        if self._tally is None:
            for _ in self.batches(("path", "size")):
                pass
        assert self._tally is not None
        if self.sidecar is not None and self._tally.ended is not None:
            self.sidecar.settle()
        return self._report(self._tally)

    def latest(self) -> ScanReport | None:
        """What the latest run did so far; None before the first."""
        return None if self._tally is None else self._report(self._tally)

    @property
    def traversal(self) -> Traversal | None:
        """The order of the latest run, once its first file came; None of a run without order."""
        return None if self._tally is None else self._tally.traversal

    @property
    def last_file(self) -> pa.RecordBatch | None:
        """The last file that the latest run gave out, with its keys, where it was asked for them."""
        return None if self._tally is None else self._tally.last_file

    @property
    def files_emitted(self) -> int:
        """By the latest run, so far."""
        return 0 if self._tally is None else self._tally.files_emitted

    @contextmanager
    def begun(
        self,
        tally: ScanTally,
        rows: RowRequest,
        sidecar_rows: SidecarRequest | None,
        deadline: Deadline | None = None,
    ) -> Iterator[Replay]:
        """One run, to be counted in `tally`: what it read is recorded when it ends, however it does."""
        config, snapshot = self.config, self.snapshot
        tally.fallbacks.extend(snapshot.fallbacks)
        deadline = deadline or _deadline(config)
        self._tally, self._deadline = tally, deadline
        storage = snapshot.storage.scoped(deadline)
        self._io = storage.counters
        tripwire = FeatureTripwire(strict=config.strict)
        kept, share = snapshot.hand_over(), tally.share
        share.wait_until(deadline.at, timeout_seconds=deadline.after_seconds, where=storage.root)
        share.begin()
        memory = None if self.memory is None else self.memory.for_run()
        if memory is not None:
            tally.cache = memory.use
        log_event(
            "scan",
            table=storage.root,
            version=snapshot.version,
            strategy=tally.strategy,
            reason=tally.reason,
        )
        parallelism = config.commit_read_parallelism
        with (
            closing(share),
            closing(ReverseCommitReader(storage, parallelism, kept, share)) as commits,
        ):
            try:
                yield Replay(
                    storage=storage,
                    segment=snapshot.segment,
                    damaged=snapshot.damaged,
                    commits=commits,
                    rows=rows,
                    config=config,
                    tally=tally,
                    tripwire=tripwire,
                    deadline=deadline,
                    predicate=self.predicate,
                    table_id=snapshot.state.metadata.id,
                    demand=lambda: _commits_needed(config.limit, tally, is_hurried=self._is_hurried),
                    is_hurried=self._is_hurried,
                    sidecar=self.sidecar,
                    sidecar_rows=sidecar_rows,
                    memory=memory,
                    share=share,
                )
            finally:
                tally.ended = time.perf_counter()
                if memory is not None:
                    memory.finish()
                tally.unknown_actions = tripwire.unknown
                self._record(tally)

    def _run(self, columns: tuple[str, ...], share: MemoryShare, *, with_keys: bool) -> Batches:
        tally, snapshot, sidecar = ScanTally(share=share), self.snapshot, self.sidecar
        deadline = _deadline(self.config)
        strategy, reason = choose_strategy(
            snapshot.segment,
            self.config,
            self.predicate,
            snapshot.state.checksum,
            is_hurried=self._is_hurried,
            has_sidecar=lambda: sidecar is not None and sidecar.by_manifest(deadline).source is not None,
        )
        tally.strategy, tally.reason = strategy.value, reason
        rows, sidecar_rows = self._row_request(columns, tally), self._sidecar_request(columns, tally)
        with self.begun(tally, rows, sidecar_rows, deadline) as replay:
            yield from self._stages(replay, strategy, columns, with_keys=with_keys)
            tally.is_finished = True

    def _stages(
        self, replay: Replay, strategy: ScanStrategy, columns: tuple[str, ...], *, with_keys: bool
    ) -> Batches:
        if replay.config.limit == 0:
            return
        if replay.config.order is not None:
            live = ordered_files(replay, self.snapshot, columns, self._anchor)
        else:
            live = reverse_files(replay) if strategy is ScanStrategy.REVERSE else forward_files(replay)
        names = logical_names(self.snapshot.schema)
        with closing(live):
            for rows in _limited(live, replay.config.limit):
                replay.tally.files_kept += rows.num_rows
                public = public_rows(_counted(rows, columns), columns, names)
                for key in (ORDER_VALUE, RAW_PATH) if with_keys and replay.config.order is not None else ():
                    if key in rows.schema.names:
                        public = public.append_column(key, rows.column(key))
                for start in range(0, rows.num_rows, replay.config.batch_size):
                    batch = public.slice(start, replay.config.batch_size)
                    if with_keys:
                        replay.tally.last_file = batch.slice(batch.num_rows - 1)
                    replay.tally.emitted(batch.num_rows)
                    if "size" in columns:
                        replay.tally.sized(pc.sum(batch.column("size")).as_py() or 0)
                    yield batch

    def _row_request(self, columns: tuple[str, ...], tally: ScanTally) -> RowRequest:
        wanted = [*(name for name in columns if name != NUM_RECORDS), "deletion_vector"]
        predicate = self.predicate
        statistics = self._statistics(columns)
        if predicate is not None and predicate.partition_columns:
            wanted.append("partition_values")
        is_limited = self._reads_little
        return RowRequest(
            columns=tuple(dict.fromkeys(wanted)),
            stats_paths=tuple(column.path for column in statistics),
            takes_json_stats=statistics != (COUNTS,) or not is_limited,
            keep_row_groups=None if predicate is None else partial(matching_row_groups, predicate=predicate),
            keep_rows=None if predicate is None else partial(possible_rows, predicate=predicate, tally=tally),
            batch_rows=self.config.batch_size,
            row_groups_per_batch=1 if is_limited else self.config.checkpoint_row_groups_per_batch,
            read_ahead=not is_limited,
        )

    def _sidecar_request(self, columns: tuple[str, ...], tally: ScanTally) -> SidecarRequest | None:
        """The same of a sidecar; None where it lacks what is asked for."""
        wanted = self._row_request(columns, tally)
        if "stats" in wanted.columns:
            return None
        return SidecarRequest(
            shape=RowShape(columns=wanted.columns, statistics=self._statistics(columns)),
            pruners=pruners_of(self.predicate),
            keep_rows=wanted.keep_rows,
            is_limited=self._reads_little,
        )

    def _statistics(self, columns: tuple[str, ...]) -> tuple[StatsColumn, ...]:
        """What is asked of the files' statistics: what the predicate judges by, and counts, if wanted."""
        judged = () if self.predicate is None else self.predicate.stats_columns
        return judged or ((COUNTS,) if NUM_RECORDS in columns else ())

    def _check_floor(self) -> None:
        guard, floor = self.config.retention_guard, max(self.snapshot.segment.floor, 0)
        if guard is not None and not guard(floor):
            raise InvalidRequestError(
                f"the retention guard refuses the floor version {floor}",
                self.snapshot.storage.root,
                "read a version whose checkpoint lies within the retention, or loosen the guard",
            )

    def _record(self, tally: ScanTally) -> None:
        report = self._report(tally)
        record_scan(
            {
                "commits_scanned": report.commits_read,
                "files_emitted": report.files_emitted,
                "fallback_triggered": len(report.fallbacks),
                "files_skipped": sum(report.files_skipped.values()),
                "row_groups_read": report.row_groups_read,
                "row_groups_skipped": report.row_groups_skipped,
                "unknown_actions": sum(report.unknown_actions.values()),
                "requests": report.requests,
                "bytes_read": report.bytes_read,
                "round_trips": report.round_trips,
                "remove_set_size": report.remove_set_peak,
                "time_to_first_file_ms": report.time_to_first_file_ms,
                "floors_read": float(report.source != NO_SOURCE),
                "sidecar_hits": float(report.source.startswith("sidecar")),
                "memory_waits": report.memory_waits,
                "memory_wait_ms": report.memory_wait_ms,
            },
            fallbacks=report.fallbacks_by_kind,
        )
        log_event("scan ended", files=report.files_emitted, requests=report.requests, bytes=report.bytes_read)

    def _report(self, tally: ScanTally) -> ScanReport:
        segment = self.snapshot.segment
        io = add_io(
            self.snapshot.opening.snapshot(),
            self._io.snapshot(),
            opening_round_trips=self.snapshot.opening_round_trips,
        )
        cache = tally.cache if self.memory is None else tally.cache.added_to(self.memory.use)
        elapsed = milliseconds(tally.started, tally.ended or time.perf_counter())
        assert elapsed is not None
        return ScanReport(
            table=segment.root,
            version=segment.version,
            checkpoint_version=None if segment.checkpoint is None else segment.floor,
            strategy=tally.strategy,
            reason=tally.reason,
            predicate=None if self.predicate is None else str(self.predicate.expression),
            limit=self.config.limit,
            is_finished=tally.is_finished,
            state_source=self.snapshot.state.source,
            # A damaged checkpoint or an older sidecar brings in commits from below the checkpoint.
            commits_total=len(tally.commits.union(commit.version for commit in segment.commits)),
            commits_read=len(tally.commits),
            commits_by_delta=len(tally.commits_by_delta - tally.commits),
            delta_files=len(tally.delta_files),
            source=tally.source,
            source_reason=tally.source_reason,
            parts_read=tally.parts_read,
            parts_total=tally.parts_total,
            row_groups_read=tally.row_groups_read,
            row_groups_skipped=tally.row_groups_skipped,
            files_kept=tally.files_kept,
            files_emitted=tally.files_emitted,
            file_bytes=tally.file_bytes,
            files_skipped=dict(tally.files_skipped),
            unknown_actions=dict(tally.unknown_actions),
            requests=io.requests,
            requests_by_kind=io.requests_by_kind,
            bytes_read=io.bytes_read,
            round_trips=io.round_trips,
            retries=io.retries,
            cache_hits=dict(cache.hits),
            cache_bytes=cache.bytes,
            memory_waits=tally.share.waits,
            memory_wait_ms=tally.share.wait_seconds * 1000,
            remove_set_peak=tally.remove_set_peak,
            remove_set_on_disk=tally.remove_set_on_disk,
            time_to_first_file_ms=milliseconds(tally.started, tally.first_file),
            elapsed_ms=elapsed,
            fallbacks=tuple(fallback.text for fallback in tally.fallbacks),
            fallbacks_by_kind=dict(Counter(fallback.kind.value for fallback in tally.fallbacks)),
        )


def _limited(batches: Batches, limit: int | None) -> Batches:
    """At most `limit` rows; the stage below is not pulled once they are there."""
    if limit is None:
        yield from batches
        return
    missing = limit
    for rows in batches:
        yield rows.slice(0, missing)
        missing -= rows.num_rows
        if missing <= 0:
            return


def _counted(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    return with_record_counts(rows) if NUM_RECORDS in columns else rows


def _commits_needed(limit: int | None, tally: ScanTally, *, is_hurried: bool) -> int | None:
    """How many further commits a limit still needs, by what those read so far have given."""
    if limit is None and not is_hurried:
        return None
    if limit is None or tally.files_emitted == 0:
        return max(1, 2 * len(tally.commits))
    return math.ceil((limit - tally.files_emitted) * len(tally.commits) / tally.files_emitted)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Expression:
    """Services ask the same again and again, and SQL takes longer to parse than a cached query to run."""
    return parse_where(text)


def _deadline(config: LazyScanConfig) -> Deadline:
    """Of one run, which can be ended."""
    return Deadline.after(config.scan_timeout_seconds) if config.scan_timeout_seconds > 0 else Deadline()


def _bound(snapshot: Snapshot, config: LazyScanConfig) -> BoundPredicate | None:
    if config.predicate is None:
        return None
    where = config.predicate
    is_short = isinstance(where, str) and len(where) <= _KEPT_FILTER_CHARS
    return bind(
        _parsed(where) if is_short else parse_where(where),
        snapshot.schema,
        snapshot.state.metadata.partition_columns,
        where=snapshot.storage.root,
        time_zone=config.time_zone,
        configuration=snapshot.state.metadata.configuration,
    )


def _check_columns(columns: Sequence[str]) -> None:
    if isinstance(columns, str) or not columns:
        raise InvalidRequestError(
            f"columns is {columns!r}", "file_batches()", f"give a list of some of {', '.join(_COLUMNS)}"
        )
    for name in columns:
        if name not in _COLUMNS:
            close = get_close_matches(name, _COLUMNS, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InvalidRequestError(
                f"files have no column {name!r}", "columns", f"{hint}there are: {', '.join(_COLUMNS)}"
            )
