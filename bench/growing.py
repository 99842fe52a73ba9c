"""A table that grows under a benchmark: commits, late files, one OPTIMIZE, and a real checkpoint each time.

Why: what a sidecar costs over time shows only on a table that lives. Delta on Spark would need hours for it.
Contract: history and growth have one pace, `files_per_hour`; some of the added files hold an older hour.
Checkpoints are V1, with every live file, the tombstones of the OPTIMIZE, and rows in the order Spark leaves
them (by the hash of the path, then by age). Live files stay in memory as Arrow.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.actions import ENGINE, add_lines, line, remove_lines, txn_id
from bench.checkpoint import SPARK_PARTITIONS, write_row_groups
from bench.checkpoint_rows import add_array, remove_array, rows_with, table_rows
from bench.checkpoint_types import schema
from bench.checksum import checksum
from bench.files import Files
from bench.fixed_text import Ints
from bench.spec import CHECKPOINT_VERSION, DAY_US, TODAY_US, TableSpec, compact, metadata, protocol
from bench.totals import FileTotals

# Files that the OPTIMIZE writes: this number and the hour that they hold.
_OPTIMIZED_FROM = 1 << 41
_HOUR_MS = 3_600_000
# Everything must lie within the days that the generator knows.
_END_MS = (TODAY_US + DAY_US) // 1000
_CHUNKS_MAX = 16


class GrowingSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How large the table is at first, and how it grows."""

    files: int
    checkpoints: int
    commits_per_checkpoint: int = 10
    adds_per_commit: int = 200
    commits_per_hour: int = 12
    late_every: int = 50  # one added file in so many holds an older hour
    optimized_hours: int = 24  # rewritten by the one OPTIMIZE, half way
    stats: str = "both"  # what Delta on Spark writes by default

    @property
    def table(self) -> TableSpec:
        """The same as the generator knows it."""
        return TableSpec(
            files=self.files,
            event_hour=True,
            date_partition=False,
            stats=self.stats,  # type: ignore[arg-type]
            tail_adds=self.adds_per_commit,
            tail_dv_updates=0,
            tail_removes=0,
            tail_readds=0,
        )

    @property
    def files_per_hour(self) -> int:
        """The pace of history and growth alike."""
        return self.commits_per_hour * self.adds_per_commit

    @property
    def files_added(self) -> int:
        """By all commits of the run."""
        return self.checkpoints * self.commits_per_checkpoint * self.adds_per_commit


class GrowingFiles(Files):
    """Files whose event times follow from their number at a steady pace, except for the late ones."""

    def __init__(self, growing: GrowingSpec, numbers: Ints) -> None:
        super().__init__(growing.table, numbers)
        self._growing = growing
        self._start_ms = start_ms(growing)

    @property
    def event_min_ms(self) -> Ints:
        """The first `event_time`; of a late file somewhere in the past, of an optimized one its hour."""
        pace = self._growing.files_per_hour
        optimized = self.numbers >= _OPTIMIZED_FROM
        since_start = np.where(optimized, 0, self.numbers) * _HOUR_MS // pace
        past = (self._word(30) % np.maximum(since_start, 1).astype(np.uint64)).astype(np.int64)
        at = np.where(self.is_late, past, since_start)
        hours = (self.numbers - _OPTIMIZED_FROM) * _HOUR_MS
        chosen: Ints = self._start_ms + np.where(optimized, hours, at)
        return chosen

    @property
    def modified_ms(self) -> Ints:
        """When the file was written, however old its events are."""
        since_start = np.where(self.numbers >= _OPTIMIZED_FROM, 0, self.numbers) * _HOUR_MS
        written: Ints = self._start_ms + since_start // self._growing.files_per_hour + 60_000
        return written

    @property
    def is_late(self) -> NDArray[np.bool_]:
        """Whether a file that was added holds an hour of the past."""
        added = (self.numbers >= self._growing.files) & (self.numbers < _OPTIMIZED_FROM)
        late: NDArray[np.bool_] = added & (self._hash(31, self._growing.late_every) == 0)
        return late

    @property
    def hour_index(self) -> Ints:
        """Hours since the table's first one."""
        return (self.event_min_ms - self._start_ms) // _HOUR_MS

    @property
    def bucket(self) -> Ints:
        """The partition of Spark's state that the path falls into."""
        return self._hash(32, SPARK_PARTITIONS)


class GrowingTable:
    """The table on disk, and its live files in memory."""

    def __init__(self, spec: GrowingSpec, out: Path) -> None:
        self.spec, self.path = spec, out
        self.version = CHECKPOINT_VERSION
        self._log = out / "_delta_log"
        self._next = spec.files
        self._totals = FileTotals()
        self._tombstones = np.array([], dtype=np.int64)
        # Per bucket: numbers and `add` structs, chunk by chunk.
        self._numbers: list[list[Ints]] = [[] for _ in range(SPARK_PARTITIONS)]
        self._adds: list[list[pa.StructArray]] = [[] for _ in range(SPARK_PARTITIONS)]

    @property
    def live_files(self) -> int:
        """At the newest version."""
        return self._totals.files

    @property
    def newest_ms(self) -> int:
        """The event time that the table has reached."""
        return start_ms(self.spec) + self._next * _HOUR_MS // self.spec.files_per_hour

    def start(self) -> None:
        """Write the first checkpoint, replacing what is there."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._log.mkdir(parents=True)
        for start in range(0, self.spec.files, 65_536):
            self._keep(np.arange(start, min(start + 65_536, self.spec.files)))
        self._put_commit(self.version, self._info("WRITE"))
        self._write_checkpoint()

    def grow(self, *, optimize: bool = False) -> int:
        """The commits up to the next checkpoint, and that checkpoint; returns its version."""
        last = self.spec.commits_per_checkpoint - 1
        for number in range(self.spec.commits_per_checkpoint):
            self.version += 1
            if optimize and number == last:
                self._optimize()
                continue
            numbers = np.arange(self._next, self._next + self.spec.adds_per_commit)
            self._next += len(numbers)
            self._keep(numbers)
            self._put_commit(self.version, self._info("WRITE") + add_lines(self._files(numbers)))
        self._write_checkpoint()
        return self.version

    def drop_checkpoint(self, version: int) -> None:
        """Delete a checkpoint that nobody needs any more, as Delta's log cleanup does."""
        (self._log / f"{version:020d}.checkpoint.parquet").unlink()

    def _optimize(self) -> None:
        """One commit that puts a file in the place of all files of some hours in the middle of the table."""
        first = self.spec.files // self.spec.files_per_hour // 2
        hours = np.arange(first, first + self.spec.optimized_hours)
        gone = np.concatenate([self._take_out(bucket, hours) for bucket in range(SPARK_PARTITIONS)])
        self._totals.files -= len(gone)
        self._totals.weigh(self._files(gone), sign=-1)
        self._tombstones = np.concatenate([self._tombstones, gone])
        made = _OPTIMIZED_FROM + hours
        self._keep(made)
        removes = remove_lines(self._files(gone), deleted_ms=_END_MS)
        adds = add_lines(self._files(made), data_change=False)
        self._put_commit(self.version, self._info("OPTIMIZE") + removes + adds)

    def _take_out(self, bucket: int, hours: Ints) -> Ints:
        """Forget the files of these hours; returns their numbers."""
        numbers, adds = np.concatenate(self._numbers[bucket]), pa.concat_arrays(self._adds[bucket])
        is_gone = np.isin(self._files(numbers).hour_index, hours)
        self._numbers[bucket] = [numbers[~is_gone]]
        self._adds[bucket] = [adds.filter(pa.array(~is_gone))]
        gone: Ints = numbers[is_gone]
        return gone

    def _keep(self, numbers: Ints) -> None:
        """Take in new live files."""
        self._totals.count(self._files(numbers))
        buckets = self._files(numbers).bucket
        order = np.argsort(buckets, kind="stable")
        adds = add_array(self._files(numbers[order]))
        ends = np.searchsorted(buckets[order], np.arange(SPARK_PARTITIONS + 1))
        for bucket, (start, stop) in enumerate(itertools.pairwise(ends.tolist())):
            self._numbers[bucket].append(numbers[order][start:stop])
            self._adds[bucket].append(adds.slice(start, stop - start))
            if len(self._adds[bucket]) > _CHUNKS_MAX:
                self._numbers[bucket] = [np.concatenate(self._numbers[bucket])]
                self._adds[bucket] = [pa.concat_arrays(self._adds[bucket])]

    def _write_checkpoint(self) -> None:
        path = self._log / f"{self.version:020d}.checkpoint.parquet"
        rows = write_row_groups(path, self._checkpoint_rows(), schema(self.spec.table))
        known = {"version": self.version, "size": rows, "sizeInBytes": path.stat().st_size}
        hint = known | {"numOfAddFiles": self._totals.files}
        (self._log / "_last_checkpoint").write_text(compact(hint))

    def _checkpoint_rows(self) -> Iterator[pa.Table]:
        kind = schema(self.spec.table)
        yield table_rows(self.spec.table, kind)
        for adds in self._adds:
            yield rows_with(kind, add=pa.concat_arrays(adds))
        if len(self._tombstones):
            yield rows_with(kind, remove=remove_array(self._files(self._tombstones)))

    def _put_commit(self, version: int, content: bytes) -> None:
        (self._log / f"{version:020d}.json").write_bytes(content)
        (self._log / f"{version:020d}.crc").write_bytes(checksum(self.spec.table, version, self._totals))

    def _info(self, operation: str) -> bytes:
        shared = {"timestamp": self.newest_ms, "operation": operation, "operationParameters": {}}
        body = shared | {"engineInfo": ENGINE, "txnId": txn_id(self.spec.table, self.version)}
        if self.version > CHECKPOINT_VERSION:
            return line("commitInfo", body)
        table = self.spec.table
        return b"".join(
            [line("commitInfo", body), line("metaData", metadata(table)), line("protocol", protocol(table))]
        )

    def _files(self, numbers: Ints) -> GrowingFiles:
        return GrowingFiles(self.spec, numbers)


def start_ms(spec: GrowingSpec) -> int:
    """The table's first event, on a full hour; its last one is before the generator's last day ends."""
    hours = -(-(spec.files + spec.files_added) // spec.files_per_hour)
    return _END_MS - (hours + 1) * _HOUR_MS


def hour_text(time_ms: int) -> str:
    """`2026021022`."""
    text = str(np.datetime64(time_ms, "ms"))
    return text[:13].replace("-", "").replace("T", "")
