"""Commits newest first, fetched side by side, handed out in order, decoded in slices.

Why: the newest commits hold what most queries ask for, and a store answers ten requests in the time of one.
Contract: `slices` yields every slice of a commit before the next older commit; at most `parallelism` commits
and `COMMIT_AHEAD_BYTES_MAX` bytes are fetched ahead, as far as the process has memory for them; a commit that
the consumer never pulls is not read, apart from those already under way. Bytes read to find the table's state
are kept up to `TAIL_BYTES_KEPT_MAX`, so that the scan after it reads nothing twice. Small commits that are
there already may be joined into one slice, no larger than a slice of a large one: nobody waits for the
others, and whoever decides does it once for all of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError, LazyDeltaError
from lazydelta.log.kept_commits import KeptCommits
from lazydelta.log.lines import (
    ACTION_DECODER,
    STATE_DECODER,
    StateLine,
    decoded_lines,
    non_blank,
    pieces,
)
from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.memory_budget import MemoryKind
from lazydelta.memory_share import MemoryShare
from lazydelta.protocol.actions import ActionLine, Add, CommitInfo, Metadata, Protocol, Remove
from lazydelta.protocol.names import LogFileKind
from lazydelta.storage import ObjectNotFoundError, Storage, is_quick, past_end
from lazydelta.storage.background import pool
from lazydelta.storage.worker_threads import WorkerThreads

Result = TypeVar("Result")
_OTHER_FIELDS = {
    "meta_data": "metaData",
    "protocol": "protocol",
    "commit_info": "commitInfo",
    "sidecar": "sidecar",
    "txn": "txn",
    "cdc": "cdc",
    "domain_metadata": "domainMetadata",
    "checkpoint_metadata": "checkpointMetadata",
}
# How many further commits to fetch at once, asked anew each time none is under way. None: keep the pipe full.
Demand = Callable[[], int | None]
_UnderWay = tuple[LogFile, Future[bytes] | None]  # None: its bytes are kept, or come as a stream
_DECODED_GROWTH = 3  # a slice's actions take about that many times the memory of its text


class CommitVanishedError(CorruptLogError):
    """A commit that was listed is not there any more: log cleanup took it, or somebody else.

    Everything newer than `version`, the newest that its file tells of, had been handed out before.
    """

    name = ""
    version = -1


class CommitSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Some consecutive lines of one commit (or of one compacted range of commits), or several whole commits.

    Of those, newer ones stand before older ones and each one's adds before its removes, so that the first
    line of a key decides, as in a compacted range.
    """

    version: int
    oldest: int  # of a range
    is_compacted: bool
    is_first: bool
    is_last: bool
    adds: list[Add]
    removes: list[Remove]
    add_lines: list[int]  # which line of the slice each came from
    remove_lines: list[int]
    others: Counter[str]  # actions that are neither, by their name in the log
    joined: tuple[CommitSlice, ...] = ()  # the whole commits, where there are several


class CommitState(msgspec.Struct, frozen=True, kw_only=True):
    """What one commit says about the table itself."""

    version: int
    metadata: Metadata | None
    protocol: Protocol | None
    info: CommitInfo | None


class ReverseCommitReader:
    """The commits of one segment. Closing it stops what is under way."""

    def __init__(
        self,
        storage: Storage,
        parallelism: int = limits.COMMIT_PARALLELISM,
        kept: Mapping[str, bytes] | None = None,
        share: MemoryShare | None = None,
    ) -> None:
        self._storage = storage
        self._parallelism = parallelism
        self._pool: WorkerThreads | None = None
        self._share = share or MemoryShare()
        self._kept: dict[str, bytes] = {}
        self._kept_bytes = 0
        for name, body in (kept or {}).items():
            self._keep(name, body)

    def close(self) -> None:
        """Drop what is kept and start no further request."""
        self._kept.clear()
        self._share.give(self._kept_bytes)
        self._kept_bytes = 0
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def hand_over(self) -> dict[str, bytes]:
        """The commits kept so far, by name; they are the caller's now."""
        kept = KeptCommits(self._kept, self._share, self._kept_bytes)
        self._kept, self._kept_bytes = {}, 0
        return kept

    def slices(
        self,
        files: Iterable[LogFile],
        *,
        demand: Demand = lambda: None,
        keep: bool = False,
        joins: bool = False,
    ) -> Iterator[CommitSlice]:
        """The adds and removes of these files, in the order given; with `joins`, of small ones together."""
        for group in self._fetched(files, demand, keep=keep, joins=joins):
            parts = (part for file, chunks in group for part in self._slices_of(file, chunks))
            yield from _joined(parts) if len(group) > 1 else parts

    def states(self, files: Iterable[LogFile]) -> Iterator[CommitState]:
        """What these commits say about the table itself, in the order given; their bytes are kept."""
        for ((file, chunks),) in self._fetched(files, lambda: None, keep=True):
            yield _state_of(file, decoded_lines(chunks, STATE_DECODER, self._where(file)))

    def lines(self, files: Iterable[LogFile]) -> Iterator[tuple[int, list[ActionLine], Counter[str]]]:
        """Every action of these files with its version, in the order given, a slice at a time.

        The names of those that are neither add nor remove come with their numbers.
        """
        for ((file, chunks),) in self._fetched(files, lambda: None, keep=False):
            for text, lines in decoded_lines(chunks, ACTION_DECODER, self._where(file)):
                yield file.version, lines, _other_actions(text, lines, self._where(file))

    def submit(self, task: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Run another request of this scan side by side with the commits."""
        if self._pool is None:
            self._pool = WorkerThreads(self._parallelism, thread_name_prefix="lazydelta-commit")
        return self._pool.submit(task, *arguments)

    def _fetched(
        self, files: Iterable[LogFile], demand: Demand, *, keep: bool, joins: bool = False
    ) -> Iterator[list[tuple[LogFile, Iterable[bytes]]]]:
        """The bytes of these files, one by one, or with `joins` in groups of small ones that are there."""
        waiting = deque(files)
        ahead: deque[_UnderWay] = deque()
        ahead_bytes = 0
        held: deque[tuple[int, MemoryKind]] = deque()  # for each of those, and for those being consumed
        burst: int | None = None
        try:
            while waiting or ahead:
                if not ahead:
                    burst = demand()
                # What is read here and now is read some at a time, as far as nobody waits for it.
                is_bursty = burst is not None or self._is_quick
                slots = 0 if ahead and is_bursty else self._parallelism if burst is None else max(burst, 1)
                with self._storage.counters.side_by_side():
                    while waiting and len(ahead) < min(slots, self._parallelism):
                        size = waiting[0].info.size_bytes
                        if ahead and ahead_bytes + size > limits.COMMIT_AHEAD_BYTES_MAX:
                            break
                        if not self._has_memory(waiting[0], held, is_needed=not ahead):
                            break
                        file = waiting.popleft()
                        ahead.append((file, self._start(file)))
                        ahead_bytes += size
                group = self._next_group(ahead) if joins else [ahead.popleft()]
                yield [(file, self._chunks(file, future, keep=keep)) for file, future in group]
                ahead_bytes -= sum(file.info.size_bytes for file, _ in group)
                self._give_back(held, len(group))
        finally:
            self._give_back(held, len(held))
            for _, future in ahead:
                if future is not None:
                    future.cancel()

    def _has_memory(self, file: LogFile, held: deque[tuple[int, MemoryKind]], *, is_needed: bool) -> bool:
        """Whether a commit is fetched: the next one, after a wait if need be, others if there is room."""
        size = file.info.size_bytes
        whole, piece = min(size, limits.COMMIT_WHOLE_BYTES_MAX), min(size, limits.COMMIT_CHUNK_BYTES)
        wanted = whole + _DECODED_GROWTH * piece
        if is_needed:
            held.append((self._share.take(wanted, MemoryKind.LOG), MemoryKind.LOG))
            return True
        if self._share.try_take(wanted):
            held.append((wanted, MemoryKind.AHEAD))
            return True
        return False

    def _give_back(self, held: deque[tuple[int, MemoryKind]], count: int) -> None:
        for _ in range(count):
            self._share.give(*held.popleft())

    @property
    def _is_quick(self) -> bool:
        return is_quick(self._storage)

    def _next_group(self, ahead: deque[_UnderWay]) -> list[_UnderWay]:
        """The next one, when it is there, with those after it that are there and fit into one slice."""
        group = [ahead.popleft()]
        if group[0][1] is not None:
            wait([group[0][1]])
        room = limits.COMMIT_CHUNK_BYTES - self._bytes_to_join(*group[0])
        while ahead and (size := self._bytes_to_join(*ahead[0])) <= room:
            group.append(ahead.popleft())
            room -= size
        return group

    def _bytes_to_join(self, file: LogFile, future: Future[bytes] | None) -> int:
        """The size of a commit that is there; of anything else more than has room in a group."""
        body = self._kept.get(file.name)
        if body is None and future is not None and future.done() and future.exception() is None:
            body = future.result()
        is_commit = file.parsed.kind is LogFileKind.COMMIT
        return len(body) if body is not None and is_commit else limits.COMMIT_CHUNK_BYTES + 1

    def _start(self, file: LogFile) -> Future[bytes] | None:
        """Begin to fetch a commit, unless its bytes are kept or it is too large to hold whole."""
        if file.name in self._kept or file.info.size_bytes > limits.COMMIT_WHOLE_BYTES_MAX:
            return None
        if not self._is_quick or file.info.size_bytes > limits.COMMIT_CHUNK_BYTES:
            return pool().submit(self._read, file)
        done: Future[bytes] = Future()
        try:
            done.set_result(self._read(file))
        except LazyDeltaError as error:  # raised at its place
            done.set_exception(error)
        return done

    def _chunks(self, file: LogFile, future: Future[bytes] | None, *, keep: bool) -> Iterable[bytes]:
        kept = self._kept.get(file.name)
        if kept is not None:
            if not keep:
                del self._kept[file.name]
                self._kept_bytes -= len(kept)
                self._share.give(len(kept))
            return pieces(kept)
        if future is None:
            return self._stream(file)
        body = future.result()
        if keep:
            self._keep(file.name, body)
        return pieces(body)

    def _keep(self, name: str, body: bytes) -> None:
        """Unless it is too much; then it is read again."""
        has_room = self._kept_bytes + len(body) <= limits.TAIL_BYTES_KEPT_MAX
        if has_room and self._share.try_take(len(body)):
            self._kept[name] = body
            self._kept_bytes += len(body)

    def _read(self, file: LogFile) -> bytes:
        try:
            body = self._storage.get(file.name)
        except ObjectNotFoundError as gone:
            raise self._vanished(file) from gone
        if len(body) < file.info.size_bytes:
            raise past_end(self._where(file))
        return body

    def _stream(self, file: LogFile) -> Iterator[bytes]:
        have = 0
        try:
            for chunk in self._storage.get_stream(file.name, limits.COMMIT_CHUNK_BYTES):
                have += len(chunk)
                yield chunk
        except ObjectNotFoundError as gone:
            raise self._vanished(file) from gone
        if have < file.info.size_bytes:
            raise past_end(self._where(file))

    def _slices_of(self, file: LogFile, chunks: Iterable[bytes]) -> Iterator[CommitSlice]:
        where = self._where(file)
        return _slices_of(file, decoded_lines(chunks, ACTION_DECODER, where), where)

    def _vanished(self, file: LogFile) -> CommitVanishedError:
        error = CommitVanishedError(
            f"commit {file.version} vanished after it was listed",
            self._where(file),
            "open the table again: its log was cleaned up or rewritten meanwhile",
        )
        error.name, error.version = file.name, file.parsed.until or file.version
        return error

    def _where(self, file: LogFile) -> str:
        return f"{self._storage.root}/{file.name}"


def read_commit_head(storage: Storage, file: LogFile) -> CommitState:
    """What the head of a commit says if its commitInfo stands there, as most writers put it; else all."""
    where = f"{storage.root}/{file.name}"
    head_bytes = min(file.info.size_bytes, limits.COMMIT_HEAD_BYTES)
    head = storage.get_range(file.name, 0, head_bytes) if head_bytes else b""
    cut = head.rfind(b"\n")
    if cut > 0:
        state = _state_of(file, decoded_lines([head[:cut]], STATE_DECODER, where))
        if state.info is not None:
            return state
    chunks = storage.get_stream(file.name, limits.COMMIT_CHUNK_BYTES)
    return _state_of(file, decoded_lines(chunks, STATE_DECODER, where))


def newest_first(segment: LogSegment, *, use_compacted: bool = False) -> list[LogFile]:
    """The files that hold the tail, newest first: commits, and compacted ranges where they are safe.

    A compacted range may have dropped tombstones, so that older adds would come back to life below it; it
    is safe when it begins at version 0, or when the caller vouches for its writer (`use_compacted`).
    """
    ranges: dict[int, LogFile] = {}
    for file in segment.compactions:  # sorted by first version: the widest range that ends at a version stays
        if file.parsed.until is not None and (file.version == 0 or use_compacted):
            ranges.setdefault(file.parsed.until, file)
    commits = {file.version: file for file in segment.commits}
    chosen: list[LogFile] = []
    version = segment.version
    while version > segment.floor:
        file = ranges.get(version, commits[version])
        chosen.append(file)
        version = file.version - 1
    return chosen


def _slices_of(
    file: LogFile, slices: Iterator[tuple[bytes, list[ActionLine]]], where: str
) -> Iterator[CommitSlice]:
    """Slices with the last one marked, which needs a look one slice ahead."""
    current = next(slices, None)
    is_first = True
    while current is not None:
        following = next(slices, None)
        text, lines = current
        adds = [(n, line.add) for n, line in enumerate(lines) if line.add is not None]
        removes = [(n, line.remove) for n, line in enumerate(lines) if line.remove is not None]
        yield CommitSlice(
            version=file.parsed.until or file.version,
            oldest=file.version,
            is_compacted=file.parsed.kind is LogFileKind.COMPACTED,
            is_first=is_first,
            is_last=following is None,
            adds=[add for _, add in adds],
            removes=[remove for _, remove in removes],
            add_lines=[number for number, _ in adds],
            remove_lines=[number for number, _ in removes],
            others=_other_actions(text, lines, where) if len(adds) + len(removes) < len(lines) else Counter(),
        )
        current, is_first = following, False


def _joined(parts: Iterator[CommitSlice]) -> Iterator[CommitSlice]:
    """Whole commits, newest first, as one slice; what is newer than damage goes out before its error."""
    whole: list[CommitSlice] = []
    damage: CorruptLogError | None = None
    try:
        whole.extend(parts)
    except CorruptLogError as error:
        damage = error
    if whole:
        yield _as_one(whole)
    if damage is not None:
        raise damage


def _as_one(commits: Sequence[CommitSlice]) -> CommitSlice:
    add_lines: list[int] = []
    remove_lines: list[int] = []
    line = 0
    for commit in commits:
        add_lines.extend(range(line, line + len(commit.adds)))
        line += len(commit.adds)
        remove_lines.extend(range(line, line + len(commit.removes)))
        line += len(commit.removes)
    return CommitSlice(
        version=commits[0].version,
        oldest=commits[-1].oldest,
        is_compacted=True,
        is_first=True,
        is_last=True,
        adds=[add for commit in commits for add in commit.adds],
        removes=[remove for commit in commits for remove in commit.removes],
        add_lines=add_lines,
        remove_lines=remove_lines,
        others=sum((commit.others for commit in commits), Counter()),
        joined=tuple(commits),
    )


def _other_actions(text: bytes, lines: Sequence[ActionLine], where: str) -> Counter[str]:
    """The names of actions that are neither add nor remove."""
    others: Counter[str] = Counter()
    texts: list[bytes] = []
    for index, line in enumerate(lines):
        if line.add is not None or line.remove is not None:
            continue
        known = [name for field, name in _OTHER_FIELDS.items() if _is_set(getattr(line, field))]
        if not known:
            texts = texts or non_blank(text)
            if len(texts) != len(lines):
                raise CorruptLogError("a line holds more than one action", where, "restore the file")
            unknown = _names_of(texts[index], where)
            known = sorted(name for name in unknown if name not in _OTHER_FIELDS.values()) or ["(none)"]
        others.update(known)
    return others


def _names_of(line: bytes, where: str) -> Iterable[str]:
    try:
        return msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
    ) as damage:  # a name that is no text is passed over before
        raise CorruptLogError(
            f"a line is not a Delta action: {damage}", where, "restore the file"
        ) from damage


def _is_set(value: object) -> bool:
    return value is not None and value is not msgspec.UNSET


def _state_of(file: LogFile, slices: Iterator[tuple[bytes, list[StateLine]]]) -> CommitState:
    metadata = protocol = info = None
    for _, lines in slices:
        for line in lines:
            metadata = line.meta_data or metadata
            protocol = line.protocol or protocol
            info = info or line.commit_info
    return CommitState(version=file.version, metadata=metadata, protocol=protocol, info=info)
