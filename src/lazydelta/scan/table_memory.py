"""What is kept of one table between queries: a view of the process's cache, which counts for one account.

Contract: everything here proves itself against the log as it is listed now. A listing is used again only
within the staleness that the caller allows; states, proven sidecars and tails are found only by the very
files that they came from; footers and rows by names that are never written twice.
`SidecarMemory` for the readers of parts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.log.relisting import contradicts
from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.log.snapshot import Snapshot, count_adds
from lazydelta.scan.cache import ByteCache, CacheKind, CacheUse, Entry, Owner
from lazydelta.scan.known_tail import KnownTail
from lazydelta.sidecar.format.memory import RowGroupKey, TakenOnce
from lazydelta.sidecar.format.names import parse_name
from lazydelta.sidecar.read.reading import Discovery, MetadataTier, SidecarReading

_FILE_BYTES = 700  # of one listed file, about
_FOOTER_GROWTH = 10  # a decoded footer takes that many times the memory of its bytes (measured)
_ROW_GROUP_BYTES = 600  # of one entry of a manifest, about
_PART_BYTES = 4000
_COUNTED_TAIL_BYTES = 64 * limits.KIB


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A segment, and when its listing began (monotonic seconds)."""

    segment: LogSegment
    at: float


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What discovery found, and when."""

    discovery: Discovery
    at: float


class TableMemory:
    """The cache as one opening or one run of a scan sees it. `for_run` begins another account."""

    def __init__(
        self, cache: ByteCache, owner: Owner, *, budget_bytes: int, max_staleness_seconds: float
    ) -> None:
        self.use = CacheUse()
        self.budget_bytes = budget_bytes
        self._cache = cache
        self._owner = owner
        self._max_staleness = max_staleness_seconds
        self._lock = threading.Lock()
        self._rows_room = budget_bytes // 2  # one run must not throw out what it has just put in
        self._once = TakenOnce()  # for files that may be written again
        self._ahead: set[str] = set()  # footers that were read before anybody asked: no hits, the first time
        self._later: list[Callable[[], None]] = []

    def for_run(self) -> TableMemory:
        """The same for one run of a scan."""
        run = TableMemory(
            self._cache,
            self._owner,
            budget_bytes=self.budget_bytes,
            max_staleness_seconds=self._max_staleness,
        )
        run._once, run._ahead = self._once, self._ahead
        return run

    def later(self, keep: Callable[[], None]) -> None:
        """Keep something when the run has ended: nobody should wait for it."""
        self._later.append(keep)

    def finish(self) -> None:
        """The run has ended."""
        while self._later:
            self._later.pop()()

    # --- listings ---

    def fresh_segment(self, version: int | None) -> LogSegment | None:
        """The segment of a version (None: the newest), if it was listed as recently as the caller asks."""
        found = self._take(CacheKind.LISTING, version, lambda listed: self._is_fresh(listed.at))
        return None if found is None else found.segment

    def known_segment(self, version: int | None) -> LogSegment | None:
        """A segment that was listed at some time, to list the log from."""
        for key in (version, None):
            listed = self._cache.peek(self._owner, CacheKind.LISTING, key)
            segment: LogSegment | None = None if listed is None else listed.segment
            if segment is not None and (version is None or segment.floor <= version):
                return segment
        return None

    def keep_segment(self, version: int | None, segment: LogSegment, *, began: float) -> None:
        """A log was listed; whatever that contradicts is forgotten."""
        known = self._cache.peek(self._owner, CacheKind.LISTING, None)
        if known is not None and known.at > began:
            return  # another thread has listed later
        if known is not None:
            went_back = version is None and segment.version < known.segment.version
            if went_back or contradicts(known.segment, segment):
                self.forget()
            elif version is None and known.segment.checkpoint != segment.checkpoint:
                self._forget_below()
        size = _FILE_BYTES * (len(segment.commits) + len(segment.crcs) + 4)
        self._put(CacheKind.LISTING, version, Listed(segment=segment, at=began), size)

    def forget(self) -> None:
        """Nothing of this table is kept any more."""
        self._cache.drop(self._owner)

    def _forget_below(self) -> None:
        """A new checkpoint: what hung on the old one is not asked for again, parts may well be."""
        stale = {CacheKind.LISTING, CacheKind.STATE, CacheKind.TAIL, CacheKind.SIDECAR, CacheKind.ANSWER}
        self._cache.drop(self._owner, lambda kind, _: kind in stale)

    # --- states ---

    def snapshot(self, segment: LogSegment) -> Snapshot | None:
        """The snapshot of this very segment."""
        found: Snapshot | None = self._take(
            CacheKind.STATE, segment.version, lambda known: known.segment == segment
        )
        return found

    def known_snapshot(self, version: int) -> Snapshot | None:
        """The snapshot of a version as it once was."""
        found: Snapshot | None = self._cache.peek(self._owner, CacheKind.STATE, version)
        return found

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """A version's protocol and metadata were read."""
        if snapshot.damaged:
            return
        size = 8 * len(snapshot.state.metadata.schema_string or "") + _FILE_BYTES * len(
            snapshot.segment.commits
        )
        kept = msgspec.structs.replace(snapshot, commits_kept={}, tail_adds=_few_adds(snapshot))
        self._put(CacheKind.STATE, snapshot.version, kept, size)

    # --- tails ---

    def tail(
        self,
        segment: LogSegment,
        *,
        use_compacted: bool,
        columns: Sequence[str],
        stats_paths: Sequence[tuple[str, ...]],
    ) -> KnownTail | None:
        """The tail as far as it was walked at this version, or else at the newest version before it.

        Only one that tells these columns, and statistics of these.
        """
        basis = _tail_basis(segment, use_compacted=use_compacted)
        versions = [segment.version]
        if self._cache.peek(self._owner, CacheKind.TAIL, (basis, segment.version)) is None:
            kept: list[Any] = self._cache.keys(self._owner, CacheKind.TAIL)
            versions = [key[1] for key in kept if key[0] == basis and key[1] < segment.version]
        newest = max(versions, default=segment.version)
        found: KnownTail | None = self._take(
            CacheKind.TAIL,
            (basis, newest),
            lambda state: state.is_part_of(segment) and state.tells(columns, stats_paths),
        )
        return found

    def knows_tail(self, segment: LogSegment, *, use_compacted: bool) -> bool:
        """Whether the tail of this very segment was walked to its end."""
        basis = _tail_basis(segment, use_compacted=use_compacted)
        known: KnownTail | None = self._cache.peek(self._owner, CacheKind.TAIL, (basis, segment.version))
        return known is not None and known.below == segment.floor and known.is_part_of(segment)

    def keep_tail(self, segment: LogSegment, state: KnownTail, *, use_compacted: bool) -> None:
        """A tail was walked, in whole or down to some commit."""
        basis = _tail_basis(segment, use_compacted=use_compacted)
        known: KnownTail | None = self._cache.peek(self._owner, CacheKind.TAIL, (basis, state.version))
        if known is not None and known.is_part_of(segment) and known.below < state.below:
            return
        self._put(CacheKind.TAIL, (basis, state.version), state, state.size_bytes)
        # Older ones would hold the same rows once more.
        self._cache.drop(
            self._owner,
            lambda kind, key: kind is CacheKind.TAIL and _is_older_tail(key, basis, state.version),
        )

    # --- sidecars ---

    def discovery(self, segment: LogSegment, reading: SidecarReading, place: str) -> Discovery | None:
        """What was found beside this very checkpoint. That there is nothing holds only while it is fresh."""
        key = _sidecar_key(segment, reading, place)
        found = self._take(
            CacheKind.SIDECAR, key, lambda f: _never_changes(f.discovery) or self._is_fresh(f.at)
        )
        return None if found is None else found.discovery

    def has_discovery(self, segment: LogSegment, reading: SidecarReading, place: str) -> bool:
        """Whether `discovery` would know."""
        key = _sidecar_key(segment, reading, place)
        found = self._cache.peek(self._owner, CacheKind.SIDECAR, key)
        return found is not None and (_never_changes(found.discovery) or self._is_fresh(found.at))

    def keep_discovery(
        self, segment: LogSegment, reading: SidecarReading, place: str, discovery: Discovery, *, began: float
    ) -> None:
        """A sidecar was looked for, in some place."""
        manifest = None if discovery.source is None else discovery.source.manifest
        size = 0
        if manifest is not None:
            size = _ROW_GROUP_BYTES * len(manifest.row_groups) + _PART_BYTES * len(manifest.parts)
            size += 8 * len(manifest.metadata.schema_string or "")
        found = Found(discovery=discovery, at=began)
        self._put(CacheKind.SIDECAR, _sidecar_key(segment, reading, place), found, size)

    def distrust_sidecars(self) -> None:
        """A part turned out damaged: what is kept of this table's sidecars is looked for anew."""
        stale = {CacheKind.SIDECAR, CacheKind.FOOTER, CacheKind.ROWS, CacheKind.ANSWER}
        self._cache.drop(self._owner, lambda kind, _: kind in stale)

    # --- parts: SidecarMemory ---

    def footer(self, file: str) -> pq.FileMetaData | None:
        """The footer of a part."""
        if not _is_written_once(file):
            return self._once.footer(file)
        if file in self._ahead:
            self._ahead.discard(file)
            return self._cache.peek(self._owner, CacheKind.FOOTER, file)
        return self._take(CacheKind.FOOTER, file)

    def keep_footer(
        self, file: str, footer: pq.FileMetaData, size_bytes: int, *, is_ahead: bool = False
    ) -> None:
        """A part's footer was read."""
        if _is_written_once(file):
            if is_ahead:
                self._ahead.add(file)
            self._put(CacheKind.FOOTER, file, footer, _FOOTER_GROWTH * size_bytes)
        else:
            self._once.keep_footer(file, footer, size_bytes, is_ahead=is_ahead)

    def rows(self, key: RowGroupKey) -> pa.RecordBatch | None:
        """The rows of a part's row group, if all these columns of it are known."""
        wanted = set(key.columns)
        found = self._take(
            CacheKind.ROWS, (key.file, key.row_group), lambda rows: wanted <= set(rows.schema.names)
        )
        return None if found is None else found.select(list(key.columns))

    def has_rows(self, file: str, row_group: int) -> bool:
        """Whether some columns of a row group are known."""
        return self._cache.peek(self._owner, CacheKind.ROWS, (file, row_group)) is not None

    def keep_rows(self, key: RowGroupKey, rows: pa.RecordBatch) -> None:
        """A row group was decoded. The first ones of a run stay: they are the newest."""
        at = (key.file, key.row_group)
        rows = _side_by_side(rows, self._cache.peek(self._owner, CacheKind.ROWS, at))
        size = rows.get_total_buffer_size()
        with self._lock:
            if size > self._rows_room or not _is_written_once(key.file):
                return
            self._rows_room -= size
        self._put(CacheKind.ROWS, at, rows, size)

    # --- answers ---

    def answer(self, key: Hashable) -> Any:  # Any: the room above knows what it has put in
        """What was kept under the key."""
        return self._take(CacheKind.ANSWER, key)

    def has_answer(self, key: Hashable) -> bool:
        """Whether `answer` would know."""
        return self._cache.peek(self._owner, CacheKind.ANSWER, key) is not None

    def keep_answer(self, key: Hashable, answer: object, size_bytes: int) -> None:
        """A sidecar was asked."""
        self._put(CacheKind.ANSWER, key, answer, size_bytes)

    # --- all of them ---

    def _is_fresh(self, at: float) -> bool:
        return self._max_staleness > 0 and time.monotonic() - at <= self._max_staleness

    def _take(self, kind: CacheKind, key: Hashable, is_valid: Callable[[Any], bool] = lambda _: True) -> Any:
        entry: Entry | None = self._cache.get(self._owner, kind, key, is_valid=is_valid)
        if entry is None:
            return None
        with self._lock:
            self.use.hits[kind.value] += 1
            self.use.bytes += entry.size_bytes
        return entry.value

    def _put(self, kind: CacheKind, key: Hashable, value: object, size_bytes: int) -> None:
        self._cache.put(self._owner, kind, key, value, size_bytes=size_bytes, budget_bytes=self.budget_bytes)


def _side_by_side(rows: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
    """The same rows with the columns of both."""
    if known is None:
        return rows
    names = set(rows.schema.names)
    others = [field for field in known.schema if field.name not in names]
    schema = pa.schema([*rows.schema, *others])
    return pa.RecordBatch.from_arrays(
        [*rows.columns, *(known.column(field.name) for field in others)], schema=schema
    )


def _never_changes(discovery: Discovery) -> bool:
    """Whether what was found stays as it is: parts are never written twice, a plain file may be."""
    return discovery.source is not None and discovery.source.tier is not MetadataTier.PLAIN


def _few_adds(snapshot: Snapshot) -> int | None:
    """How many files a small tail adds, if all of it was read: its size tells too little of few files."""
    read = snapshot.commits_kept.values()
    size = snapshot.segment.tail_bytes
    is_known = size <= _COUNTED_TAIL_BYTES and size == sum(map(len, read))
    return sum(map(count_adds, read)) if is_known else None


def _tail_basis(segment: LogSegment, *, use_compacted: bool) -> Hashable:
    return (None if segment.checkpoint is None else segment.checkpoint.name, segment.floor, use_compacted)


def _is_older_tail(key: Any, basis: Hashable, version: int) -> bool:  # Any: a key of a tail, as made above
    return bool(key[0] == basis and key[1] < version)


def _is_written_once(file: str) -> bool:
    name = parse_name(file.rpartition("/")[2])
    return name is not None and name.build is not None


def _sidecar_key(segment: LogSegment, reading: SidecarReading, place: str) -> Hashable:
    """Everything that a sidecar is proven by."""
    files: list[LogFile | None] = [segment.checkpoint_commit]
    files.extend(segment.checkpoint.files if segment.checkpoint is not None else ())
    files.append(next((crc for crc in segment.crcs if crc.version == segment.floor), None))
    infos = tuple(None if file is None else file.info for file in files)
    return (place, segment.floor, infos, reading.folder, reading.is_enabled, reading.uses_manifest)
