"""What a scan read, skipped and decided: counted while it runs, told by `explain`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import msgspec
import pyarrow as pa

from lazydelta.log.fallback import Fallback
from lazydelta.memory_share import MemoryShare
from lazydelta.scan.cache import CacheUse
from lazydelta.scan.rows_report import RowsReport
from lazydelta.sidecar.read.traversal import Traversal
from lazydelta.storage import IoSnapshot

NO_SOURCE = "none"  # nothing below the tail was needed


class ScanReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a scan. Requests, bytes and round trips include opening the table; times do not."""

    table: str
    version: int
    checkpoint_version: int | None
    strategy: str
    reason: str
    predicate: str | None
    limit: int | None
    is_finished: bool
    state_source: str
    commits_total: int
    commits_read: int
    commits_by_delta: int  # told by delta files of the sidecar instead
    delta_files: int
    source: str  # of the files at the checkpoint
    source_reason: str
    parts_read: int  # of a sidecar
    parts_total: int
    row_groups_read: int
    row_groups_skipped: int
    files_kept: int  # found to be live and a possible match; some may not have been emitted
    files_emitted: int
    file_bytes: int | None  # sizes of the data files emitted, where they were asked for
    files_skipped: dict[str, int]
    unknown_actions: dict[str, int]
    requests: int
    requests_by_kind: dict[str, int]
    bytes_read: int
    round_trips: int
    retries: int
    cache_hits: dict[str, int]  # by kind, opening included
    cache_bytes: int  # of what was taken from the cache, as it takes memory
    memory_waits: int  # for memory that other scans held
    memory_wait_ms: float
    remove_set_peak: int
    remove_set_on_disk: bool
    time_to_first_file_ms: float | None
    elapsed_ms: float
    fallbacks: tuple[str, ...]
    fallbacks_by_kind: dict[str, int]
    rows: RowsReport | None = None  # where rows were asked for, not files alone

    def __str__(self) -> str:
        return "\n".join(f"{label:<17} {text}" for label, text in self._lines())

    def _lines(self) -> Iterable[tuple[str, str]]:
        floor = (
            "no checkpoint" if self.checkpoint_version is None else f"checkpoint {self.checkpoint_version:,}"
        )
        yield "table", f"{self.table} @ {self.version:,}"
        yield "strategy", f"{self.strategy}: {self.reason}"
        if self.predicate is not None:
            yield "predicate", self.predicate
        if self.limit is not None:
            yield "limit", f"{self.limit:,} file{'' if self.limit == 1 else 's'}"
        by_delta = ""
        if self.delta_files:
            files = f"{self.delta_files:,} delta file{'' if self.delta_files == 1 else 's'}"
            by_delta = f", {self.commits_by_delta:,} by {files}"
        yield "log", f"{floor}, then {self.commits_read:,} of {self.commits_total:,} commits read{by_delta}"
        yield "protocol from", self.state_source
        reason = f": {self.source_reason}" if self.source_reason else ""
        yield "files below from", f"{self.source}{reason}"
        if self.parts_total:
            yield "parts", f"{self.parts_read:,} of {self.parts_total:,} opened"
        yield "row groups", f"{self.row_groups_read:,} read, {self.row_groups_skipped:,} skipped"
        skipped = ", ".join(f"{count:,} by {rule}" for rule, count in sorted(self.files_skipped.items()))
        yield "files", f"{self.files_emitted:,} emitted; skipped: {skipped or 'none'}"
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.requests_by_kind.items()))
        requests = f"{self.requests:,} requests ({kinds}), {self.round_trips:,} one after the other"
        yield "log bytes read", f"{self.bytes_read:,} in {requests}, opening included"
        if self.retries:
            yield "retries", f"{self.retries:,}"
        if self.cache_hits:
            hits = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.cache_hits.items()))
            yield "from the cache", f"{hits}: {self.cache_bytes:,} bytes of memory"
        if self.memory_waits:
            waits = f"{self.memory_waits:,} time{'' if self.memory_waits == 1 else 's'}"
            told = "for memory that other scans held; delta.memory.bytes raises it"
            yield "waited", f"{waits}, {self.memory_wait_ms:,.1f} ms, {told}"
        place = ", moved to disk" if self.remove_set_on_disk else ""
        yield "remove set", f"{self.remove_set_peak:,} keys at its peak{place}"
        if self.time_to_first_file_ms is not None:
            yield "first file", f"after {self.time_to_first_file_ms:,.1f} ms"
        state = "" if self.is_finished else " (not finished)"
        yield "elapsed", f"{self.elapsed_ms:,.1f} ms since the first pull{state}"
        if self.rows is not None:
            yield from self.rows.lines()
        if self.unknown_actions:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self.unknown_actions.items()))
            yield "unknown actions", f"{names}: ignored"
        for fallback in self.fallbacks:
            yield "fallback", fallback
        if self.round_trips > 1 and self.table.startswith("file:"):
            yield "hint", "on a disk, a read that ended before the next began counts as one after the other"


class ScanTally(msgspec.Struct, kw_only=True):
    """The numbers of a run while it runs."""

    started: float = msgspec.field(default_factory=time.perf_counter)
    strategy: str = ""
    reason: str = ""
    commits: set[int] = msgspec.field(default_factory=set)  # read so far, each counted once
    commits_by_delta: set[int] = msgspec.field(default_factory=set)  # told by these files instead
    delta_files: set[str] = msgspec.field(default_factory=set)
    source: str = NO_SOURCE
    source_reason: str = ""
    parts_read: int = 0
    parts_total: int = 0
    row_groups_read: int = 0
    row_groups_skipped: int = 0
    files_kept: int = 0
    files_emitted: int = 0
    file_bytes: int | None = None
    files_skipped: Counter[str] = msgspec.field(default_factory=Counter)
    unknown_actions: Counter[str] = msgspec.field(default_factory=Counter)
    remove_set_peak: int = 0
    remove_set_on_disk: bool = False
    cache: CacheUse = msgspec.field(default_factory=CacheUse)
    share: MemoryShare = msgspec.field(default_factory=MemoryShare)
    traversal: Traversal | None = None  # of an ordered run
    last_file: pa.RecordBatch | None = None  # that went out, where its keys do
    first_file: float | None = None
    ended: float | None = None
    is_finished: bool = False
    fallbacks: list[Fallback] = msgspec.field(default_factory=list)

    def skipped(self, rule: str, count: int) -> None:
        """Count files that a rule kept out."""
        if count:
            self.files_skipped[rule] += count

    def emitted(self, count: int) -> None:
        """Count files that went out."""
        if self.first_file is None and count:
            self.first_file = time.perf_counter()
        self.files_emitted += count

    def sized(self, file_bytes: int) -> None:
        """Count the sizes of files that went out."""
        self.file_bytes = (self.file_bytes or 0) + file_bytes


def milliseconds(since: float, until: float | None) -> float | None:
    """The time between two readings of the clock."""
    return None if until is None else (until - since) * 1000


def add_io(opening: IoSnapshot, scan: IoSnapshot, *, opening_round_trips: int) -> IoSnapshot:
    """Opening and scanning as one account: the scan comes after the round trips that opening waited for."""
    return IoSnapshot(
        requests=opening.requests + scan.requests,
        bytes_read=opening.bytes_read + scan.bytes_read,
        bytes_written=opening.bytes_written + scan.bytes_written,
        round_trips=opening_round_trips + scan.round_trips,
        retries=opening.retries + scan.retries,
        requests_by_kind=dict(Counter(opening.requests_by_kind) + Counter(scan.requests_by_kind)),
    )
