"""The delta files that stand for commits of a tail: found by one listing, judged by their footers.

Why: a tail of hundreds of commits is hundreds of requests.
Contract: a file serves if its name, its footer and the log agree: the versions lie in the tail, `V.json` is
provably the bound one, and it is of the same table. Files are judged a few at a time, newest first, and only
as far as somebody asks; no two that serve overlap. What does not serve, for whatever reason, is left for the
commits themselves and told in `fallbacks`: never an error. Safe to call from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import msgspec

from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.log.companion import TailState
from lazydelta.log.fallback import Fallback, FallbackKind, fell_back
from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar.format.binding import delta_mismatch
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.delta_file import DeltaFacts, DeltaFileReader
from lazydelta.sidecar.format.memory import TakenOnce
from lazydelta.sidecar.format.names import SidecarFileKind, parse_name
from lazydelta.sidecar.read.delta_rows import DeltaSpan, version_ranges
from lazydelta.storage import ObjectInfo, Storage
from lazydelta.storage.worker_threads import WorkerThreads

_JUDGED_AT_ONCE = 4
_ROW_GROUP_ROWS_MAX = 8 * limits.SIDECAR_ROW_GROUP_ROWS  # a larger one would not fit the memory of a scan


class DeltaChain:
    """The delta files of one segment. Nothing is asked of the store before it is needed."""

    def __init__(self, segment: LogSegment, folder: str) -> None:
        self.memory = TakenOnce()  # footers of files that were judged, until their rows are read
        self.segment = segment
        self._folder = folder
        self._lock = threading.RLock()
        self._candidates: list[ObjectInfo] | None = None  # newest first
        self._verdicts: dict[str, DeltaSpan | str] = {}  # by name: the span, or why there is none
        self._fallbacks: dict[str, Fallback] = {}  # by their texts

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """What was there and does not serve, each once."""
        with self._lock:
            return tuple(self._fallbacks.values())

    def spans(self, storage: Storage, *, table_id: str | None = None) -> Iterator[DeltaSpan]:
        """The files that serve, newest first, none overlapping; judged as they are pulled."""
        below = self.segment.version  # commits above are told for already
        candidates = self._listed(storage)
        for at, info in enumerate(candidates):
            if _until(info) > below:
                continue
            span = self._verdict(storage, candidates[at : at + _JUDGED_AT_ONCE])
            if isinstance(span, DeltaSpan) and table_id not in {None, span.table_id}:
                self.leave(span.name, f"it is of the table {span.table_id}")
            elif isinstance(span, DeltaSpan):
                below = span.after
                yield span

    def states(self, storage: Storage) -> list[TailState]:
        """What the files that serve say of protocol and metadata, newest first."""
        found = []
        for span in self.spans(storage):
            try:
                found.append(_state_in(storage, span))
            except LazyDeltaError as trouble:
                self.leave(span.name, trouble.what)
        return found

    def leave(self, name: str, reason: str) -> None:
        """A file turned out not to serve: it is not offered again."""
        with self._lock:
            self._verdicts[name] = reason
            self._tell(f"{name.rpartition('/')[2]} does not serve: {reason}")

    def _listed(self, storage: Storage) -> list[ObjectInfo]:
        with self._lock:
            if self._candidates is None:
                try:
                    self._candidates = _deltas_of(storage, self._folder, self.segment)
                except LazyDeltaError as trouble:
                    self._candidates = []
                    self._tell(f"delta files cannot be listed: {trouble.what}")
            return self._candidates

    def _verdict(self, storage: Storage, infos: Sequence[ObjectInfo]) -> DeltaSpan | str:
        """On the first of these; the others are judged beside it."""
        with self._lock:
            if infos[0].name not in self._verdicts:
                waiting = [info for info in infos if info.name not in self._verdicts]
                for info, verdict in zip(waiting, self._judged(storage, waiting), strict=True):
                    self._verdicts[info.name] = verdict
            verdict = self._verdicts[infos[0].name]
            if isinstance(verdict, str):
                self.leave(infos[0].name, verdict)
            return verdict

    def _judged(self, storage: Storage, infos: Sequence[ObjectInfo]) -> list[DeltaSpan | str]:
        with WorkerThreads(len(infos), thread_name_prefix="lazydelta-delta") as pool:
            return list(pool.map(lambda info: self._judge(storage, info), infos))

    def _judge(self, storage: Storage, info: ObjectInfo) -> DeltaSpan | str:
        try:
            with closing(DeltaFileReader(storage, info.name, info.size_bytes)) as reader:
                facts, footer, schema = reader.facts, reader.metadata, reader.schema
            ranges = version_ranges(footer)
            problem = _mismatch(storage, facts, info, self.segment)
        except LazyDeltaError as trouble:
            return trouble.what
        if problem is not None:
            return problem
        if ranges is None or any(not facts.after < r.low <= r.high <= facts.until for r in ranges):
            return "its footer does not tell which versions its rows are of"
        groups = range(footer.num_row_groups)
        if any(footer.row_group(group).num_rows > _ROW_GROUP_ROWS_MAX for group in groups):
            return f"it has row groups of more than {_ROW_GROUP_ROWS_MAX:,} rows"
        self.memory.keep_footer(info.name, footer, footer.serialized_size, is_ahead=True)
        return DeltaSpan(
            name=info.name,
            size_bytes=info.size_bytes,
            content=f"{info.size_bytes}-{facts.schema_hash}-{facts.commit.head_sha256}",
            after=facts.after,
            until=facts.until,
            table_id=facts.table_id,
            schema=schema,
            ranges=tuple(ranges),
            other_actions=facts.other_actions,
        )

    def _tell(self, reason: str) -> None:
        if reason not in self._fallbacks:
            self._fallbacks[reason] = fell_back(self.segment.root, FallbackKind.DELTA_FILE_UNUSABLE, reason)


def _deltas_of(storage: Storage, folder: str, segment: LogSegment) -> list[ObjectInfo]:
    """The delta files of the segment's checkpoint that end within its tail, newest first."""
    found = []
    for info in storage.list_from(folder, f"v{segment.floor:020d}_"):
        parsed = parse_name(info.name.rpartition("/")[2])
        if (
            parsed is not None
            and parsed.kind is SidecarFileKind.DELTA
            and parsed.version == segment.floor
            and parsed.until is not None
            and segment.floor < parsed.until <= segment.version
        ):
            found.append(info)
    return sorted(found, key=_until, reverse=True)


def _until(info: ObjectInfo) -> int:
    parsed = parse_name(info.name.rpartition("/")[2])
    assert parsed is not None
    assert parsed.until is not None
    return parsed.until


def _mismatch(storage: Storage, facts: DeltaFacts, info: ObjectInfo, segment: LogSegment) -> str | None:
    """Why the file does not stand for commits of this tail; None if it does."""
    if (facts.checkpoint_version, facts.until) != (segment.floor, _until(info)):
        return "it is not of the versions that its name tells"
    if not segment.floor <= facts.after < facts.until:
        return "its versions do not lie in the tail"
    commits: Mapping[int, LogFile] = {commit.version: commit for commit in segment.commits}
    return delta_mismatch(storage, facts, commits)


def _state_in(storage: Storage, span: DeltaSpan) -> TailState:
    """The newest protocol and metadata of a file; both columns are nearly empty."""
    found: dict[str, str] = {}
    with closing(DeltaFileReader(storage, span.name, span.size_bytes)) as reader:
        for rows in reader.batches(("protocol", "metadata")):
            for name in ("protocol", "metadata"):
                texts = rows.column(name).drop_null()
                if len(texts):
                    found[name] = texts[-1].as_py()
    try:
        protocol, metadata = found.get("protocol"), found.get("metadata")
        return TailState(
            after=span.after,
            until=span.until,
            protocol=None if protocol is None else msgspec.json.decode(protocol, type=Protocol),
            metadata=None if metadata is None else msgspec.json.decode(metadata, type=Metadata),
        )
    except msgspec.DecodeError as damage:
        where = f"{storage.root}/{span.name}"
        raise damaged(f"its protocol or metadata cannot be read: {damage}", where) from damage
