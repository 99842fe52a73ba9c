"""The files at the checkpoint's version that no newer commit touched: by the sidecar, else by the checkpoint.

Contract: the same files whichever source serves, none twice. A sidecar of an older checkpoint serves with the
commits in between where that is less to read. A sidecar that turns out damaged half way, or that the store
does not give any more, is left where it was: what went out before is masked, the rest comes from the
checkpoint; the same where those commits are cleaned up meanwhile. `scan.checkpoint_rows` says the same of the
checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import msgspec

from lazydelta.errors import CorruptLogError, LazyDeltaError, StorageError
from lazydelta.log.fallback import Fallback, FallbackKind, fell_back, kind_of_loss
from lazydelta.log.file_rows import Batches, deletion_vectors
from lazydelta.log.segment import LogFile
from lazydelta.scan.checkpoint_rows import checkpoint_rows, masked, rows_between
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.known_answers import answered_rows, has_answer
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.sidecar.find.older import bytes_through, checkpoint_bytes
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.order.ordered_rows import OrderedRows
from lazydelta.sidecar.read.reader import SidecarReader
from lazydelta.sidecar.read.reading import Discovery, MetadataSource, MetadataTier
from lazydelta.storage import ObjectReplacedError, is_quick
from lazydelta.storage.at_once import AtOnce
from lazydelta.storage.worker_threads import WorkerThreads


class FloorChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What the files at the checkpoint are read from, and why."""

    source: MetadataSource | None  # None: the checkpoint
    reason: str
    commits: tuple[LogFile, ...] = ()  # between an older sidecar and the checkpoint, ascending
    fallbacks: tuple[Fallback, ...] = ()


class SidecarLostError(Exception):
    """The sidecar cannot be read to its end; what went out of it is masked."""

    def __init__(self, fallback: Fallback) -> None:
        super().__init__(fallback.text)
        self.fallback = fallback


class Floor:
    """The files at the checkpoint of one run. `start` lets a sidecar be read while the tail is walked."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._looking: Future[tuple[FloorChoice, SidecarReader | None]] | None = None
        self._pool: WorkerThreads | None = None

    def start(self) -> None:
        """Begin to look and to read, unless a limit may end the scan within the tail."""
        if (
            not self._replay.may_stop_early
            and self._replay.segment.checkpoint is not None
            and not self._replay.has_quick_tail
            and not is_quick(self._replay.storage)
        ):
            self._pool = WorkerThreads(1, thread_name_prefix="lazydelta-floor")
            self._looking = self._pool.submit(self._looked, is_started=True)

    def rows(self, mask: RemoveSet) -> Batches:
        """The files that the mask does not hold."""
        replay = self._replay
        if replay.segment.checkpoint is None:
            return
        choice, reader = self._found()
        replay.tally.source_reason = choice.reason
        replay.tally.fallbacks.extend(choice.fallbacks)
        if reader is not None:
            try:
                with commits_may_go(replay, reader.source):
                    yield from rows_between(replay, choice.commits, mask)
                yield from _sidecar_rows(replay, reader, mask)
                return  # noqa: TRY300 - an else would read as if the damage were the rule
            except SidecarLostError as lost:
                replay.tally.fallbacks.append(lost.fallback)
                replay.tally.source_reason = "the sidecar could not be read to its end"
        replay.tally.source = f"checkpoint {replay.segment.floor}"
        yield from checkpoint_rows(replay, replay.segment, mask)

    def close(self) -> None:
        """Stop what is under way."""
        if self._looking is not None and self._looking.exception() is None:
            reader = self._looking.result()[1]
            if reader is not None:
                reader.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def _found(self) -> tuple[FloorChoice, SidecarReader | None]:
        if self._looking is None:
            self._looking = AtOnce().submit(self._looked, is_started=False)
        return self._looking.result()

    def _looked(self, *, is_started: bool) -> tuple[FloorChoice, SidecarReader | None]:
        choice = choose_floor(self._replay)
        if choice.source is None:
            return choice, None
        reader = _reader(self._replay, choice.source)
        if is_started and not has_answer(self._replay, choice.source):
            reader.start()
        return choice, reader


def choose_floor(replay: Replay) -> FloorChoice:
    """The sidecar to read, if there is one that serves; asks the store where that is not known yet."""
    if replay.sidecar is None or not replay.sidecar.reading.is_enabled:
        is_new = replay.listings > 1  # nobody has looked for a sidecar of that checkpoint
        reason = "the log was cleaned up under the scan" if is_new else "the sidecar is switched off"
        return FloorChoice(source=None, reason=reason)
    if replay.sidecar_rows is None:
        return FloorChoice(source=None, reason="a sidecar has no statistics as JSON")
    known = replay.sidecar.by_manifest(replay.deadline)
    if known.source is None and _is_any_file_good(replay):
        # The first rows of a checkpoint cost less than the search for a better source.
        return FloorChoice(source=None, reason=known.reason, fallbacks=known.fallbacks)
    found = replay.sidecar.discover(replay.storage, replay.deadline)
    if found.source is not None:
        return _if_it_tells_all(replay, found)
    if found.older is not None:
        return _older_or_checkpoint(replay, found)
    return FloorChoice(source=None, reason=found.reason, fallbacks=found.fallbacks)


def sidecar_lost(root: str, source: MetadataSource, loss: LazyDeltaError) -> Fallback:
    """The fallback from a sidecar that cannot be read to its end."""
    kind = kind_of_loss(loss)
    state = "damaged" if kind is FallbackKind.SIDECAR_DAMAGED else "out of reach"
    return fell_back(root, kind, f"the sidecar of checkpoint {source.version} is {state} ({loss.what})")


@contextmanager
def commits_may_go(replay: Replay, source: MetadataSource) -> Iterator[None]:
    """Around a walk of the commits between an older sidecar and the checkpoint, which needs none of them.

    Log cleanup may take them at any time. What went out of them is in the mask by then.
    """
    try:
        yield
    except (CorruptLogError, StorageError) as loss:
        if replay.memory is not None:
            replay.memory.distrust_sidecars()
        told = f"the sidecar of checkpoint {source.version} lacks a commit after it ({loss.what})"
        raise SidecarLostError(
            fell_back(replay.storage.root, FallbackKind.SIDECAR_OUT_OF_REACH, told)
        ) from loss


def mask_handed_out(reader: SidecarReader | OrderedRows, mask: RemoveSet, loss: LazyDeltaError) -> None:
    """What went out must not come again: those rows are read once more and put into the mask.

    Where that is impossible the scan ends with an error; the store's own errors say best what is wrong.
    """
    try:
        for rows in reader.handed_out():
            mask.remember(FileKeys(rows.column("path"), deletion_vectors(rows)))
    except (DamagedSidecarError, ObjectReplacedError) as gone:
        raise CorruptLogError(
            f"the sidecar was lost while it was read ({loss.what}), after some of its files had gone out",
            gone.where,
            "run the scan again; delta.sidecar.enabled=false leaves the sidecar aside",
        ) from gone


def _is_any_file_good(replay: Replay) -> bool:
    assert replay.sidecar is not None
    return replay.may_stop_early and replay.config.predicate is None and replay.sidecar.reading.uses_manifest


def _if_it_tells_all(replay: Replay, found: Discovery) -> FloorChoice:
    """A plain sidecar may lack columns or statistics that this scan asks for."""
    assert found.source is not None
    assert replay.sidecar_rows is not None
    lacking = sorted(found.source.lacks & set(replay.sidecar_rows.shape.columns))
    if replay.sidecar_rows.gives_statistics and found.source.tier is MetadataTier.PLAIN:
        lacking.append("every statistic")
    if lacking:
        reason = f"the sidecar of checkpoint {found.source.version} does not tell {lacking[0]}"
        fallback = fell_back(replay.storage.root, FallbackKind.SIDECAR_INCOMPLETE, reason)
        return FloorChoice(source=None, reason=reason, fallbacks=(*found.fallbacks, fallback))
    return FloorChoice(source=found.source, reason=found.reason, fallbacks=found.fallbacks)


def _older_or_checkpoint(replay: Replay, found: Discovery) -> FloorChoice:
    """Fewer bytes win: the older sidecar with the commits after it, or the checkpoint."""
    older = found.older
    assert older is not None
    assert replay.sidecar_rows is not None
    through = bytes_through(older, replay.sidecar_rows.pruner)
    instead = checkpoint_bytes(replay.segment)
    count = len(older.commits)
    costs = (
        f"the sidecar of checkpoint {older.source.version} and {count} commit{'' if count == 1 else 's'} "
        f"after it take about {through:,} bytes, checkpoint {replay.segment.floor} {instead:,}"
    )
    if through < instead:
        return FloorChoice(
            source=older.source, reason=costs, commits=older.commits, fallbacks=found.fallbacks
        )
    told = f"the sidecar is older than checkpoint {replay.segment.floor}, and no cheaper: {costs}"
    fallback = fell_back(replay.storage.root, FallbackKind.SIDECAR_OLDER, told)
    return FloorChoice(source=None, reason=costs, fallbacks=(*found.fallbacks, fallback))


def _reader(replay: Replay, source: MetadataSource) -> SidecarReader:
    assert replay.sidecar is not None
    assert replay.sidecar_rows is not None
    reading = replay.sidecar.reading
    memory = replay.sidecar.memory if replay.memory is None else replay.memory
    return SidecarReader(
        replay.storage, source, replay.sidecar_rows, reading=reading, memory=memory, share=replay.share
    )


def _sidecar_rows(replay: Replay, reader: SidecarReader, mask: RemoveSet) -> Batches:
    tally, source = replay.tally, reader.source
    tally.source = f"sidecar {source.version} ({source.tier.value})"
    tally.parts_total = len(source.manifest.parts)
    try:
        yield from masked(replay, answered_rows(replay, reader), mask, reader)
    except (DamagedSidecarError, StorageError) as loss:
        try:
            mask_handed_out(reader, mask, loss)
        finally:
            if replay.memory is not None:
                replay.memory.distrust_sidecars()
        raise SidecarLostError(sidecar_lost(replay.storage.root, source, loss)) from loss
    finally:
        tally.parts_read = len(reader.parts_opened)
