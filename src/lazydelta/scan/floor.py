"""The files at the checkpoint's version that no newer commit touched: by the sidecar, else by the checkpoint.

Contract: the same files whichever source serves, none twice. A sidecar that turns out damaged half way is
left where it was: what went out before is masked, the rest comes from the checkpoint. A damaged checkpoint
is left for an older one with the commits in between, as long as nothing of it went out.
"""

from __future__ import annotations

from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta.log.checkpoint import CheckpointReader
from lazydelta.log.file_rows import Batches, deletion_vectors
from lazydelta.log.parquet_part import DamagedCheckpointError
from lazydelta.log.segment import LogSegment
from lazydelta.log.snapshot import segment_without
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.tail import walk_tail
from lazydelta.sidecar.damage import DamagedSidecarError
from lazydelta.sidecar.reader import SidecarReader
from lazydelta.sidecar.reading import MetadataSource
from lazydelta.telemetry import log_event


class Floor:
    """The files at the checkpoint of one run. `start` lets a sidecar be read while the tail is walked."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._sidecar: SidecarReader | None = None

    def start(self) -> None:
        """Begin to read, unless a limit may end the scan within the tail."""
        if self._replay.config.limit is None:
            self._find()
        if self._sidecar is not None:
            self._sidecar.start()

    def rows(self, mask: RemoveSet) -> Batches:
        """The files that the mask does not hold."""
        replay = self._replay
        if replay.segment.checkpoint is None:
            return
        self._find()
        if self._sidecar is not None:
            version = self._sidecar.source.version
            try:
                yield from _sidecar_rows(replay, self._sidecar, mask)
                return  # noqa: TRY300 - an else would read as if the damage were the rule
            except DamagedSidecarError as damage:
                _note_fallback(replay, f"the sidecar of checkpoint {version} is damaged ({damage.what})")
        replay.tally.source = f"checkpoint {replay.segment.floor}"
        yield from _checkpoint_rows(replay, replay.segment, mask)

    def close(self) -> None:
        """Stop what is under way."""
        if self._sidecar is not None:
            self._sidecar.close()

    def _find(self) -> None:
        if self._sidecar is None and self._replay.segment.checkpoint is not None:
            source = _sidecar_of(self._replay)
            self._sidecar = None if source is None else _reader(self._replay, source)


def _sidecar_of(replay: Replay) -> MetadataSource | None:
    """The sidecar to read, if there is one that serves."""
    if replay.sidecar is None or not replay.sidecar.reading.is_enabled:
        replay.tally.source_reason = "the sidecar is switched off"
        return None
    if replay.sidecar_rows is None:
        replay.tally.source_reason = "a sidecar has no statistics as JSON"
        return None
    found = replay.sidecar.discover()
    replay.tally.source_reason = found.reason
    replay.tally.fallbacks.extend(found.fallbacks)
    return found.source


def _reader(replay: Replay, source: MetadataSource) -> SidecarReader:
    assert replay.sidecar is not None
    assert replay.sidecar_rows is not None
    reading, memory = replay.sidecar.reading, replay.sidecar.memory
    return SidecarReader(replay.storage, source, replay.sidecar_rows, reading=reading, memory=memory)


def _sidecar_rows(replay: Replay, reader: SidecarReader, mask: RemoveSet) -> Batches:
    tally, source = replay.tally, reader.source
    tally.source = f"sidecar {source.version} ({source.tier.value})"
    tally.parts_total = len(source.manifest.parts)
    try:
        yield from _masked(replay, reader.rows(), mask, reader)
    except DamagedSidecarError:
        # What went out must not come again: those rows are read once more and put into the mask.
        for rows in reader.handed_out():
            mask.remember(FileKeys(rows.column("path"), deletion_vectors(rows)))
        raise
    finally:
        tally.parts_read = len(reader.parts_opened)


def _checkpoint_rows(replay: Replay, segment: LogSegment, mask: RemoveSet) -> Batches:
    """The checkpoint's adds that no commit touched; an older checkpoint where this one is damaged."""
    if segment.checkpoint is None:
        return
    is_untouched = True
    with closing(CheckpointReader(replay.storage, segment.checkpoint)) as reader:
        try:
            for rows in _masked(replay, reader.rows(replay.rows), mask, reader):
                is_untouched = False
                yield rows
            return  # noqa: TRY300 - an else would read as if the damage were the rule
        except DamagedCheckpointError as damage:
            if not (is_untouched and replay.config.enable_fallback):
                raise
            damaged = replay.damaged | {segment.checkpoint.name}
            older = segment_without(replay.storage, segment, damaged, damage)
            reason = (
                f"checkpoint {segment.floor} is damaged ({damage.what}); used {_floor_text(older)} instead"
            )
            replay.tally.fallbacks.append(reason)
            log_event("fallback", table=replay.storage.root, reason=reason)
    between = [file for file in reversed(older.commits) if file.version <= segment.floor]
    yield from walk_tail(replay, between, mask, may_trip=False)
    deeper = msgspec.structs.replace(replay, damaged=damaged)
    yield from _checkpoint_rows(deeper, older, mask)


def _masked(
    replay: Replay, rows_below: Batches, mask: RemoveSet, reader: CheckpointReader | SidecarReader
) -> Batches:
    with closing(rows_below) as stream:
        for rows in stream:
            dead = mask.holds(FileKeys(rows.column("path"), deletion_vectors(rows)))
            _count_row_groups(replay, reader)
            live = rows.filter(pa.array(~dead)) if dead.any() else rows
            replay.tally.skipped("newer action", rows.num_rows - live.num_rows)
            if live.num_rows:
                yield live
    _count_row_groups(replay, reader)


def _count_row_groups(replay: Replay, reader: CheckpointReader | SidecarReader) -> None:
    replay.tally.row_groups_read = reader.row_groups_read
    replay.tally.row_groups_skipped = reader.row_groups_skipped


def _note_fallback(replay: Replay, reason: str) -> None:
    replay.tally.fallbacks.append(reason)
    log_event("fallback", table=replay.storage.root, reason=reason)


def _floor_text(segment: LogSegment) -> str:
    return "the log from version 0" if segment.checkpoint is None else f"checkpoint {segment.floor}"
