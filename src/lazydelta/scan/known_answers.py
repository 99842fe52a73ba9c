"""What a sidecar answered to a predicate, kept: the few rows of many row groups that might match.

Why: the same question comes again and again, and the parts it was asked of never change.
Contract: an answer is kept only when it was read to its end, under everything that it depends on: the build
of the sidecar, the predicate as it was bound, and the columns asked for. What newer commits did to the rows
is not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import msgspec
import pyarrow as pa

from lazydelta.log.file_rows import STATS_PARSED, Batches
from lazydelta.predicate import columns_of
from lazydelta.scan.run import Replay
from lazydelta.sidecar.read.reader import SidecarReader
from lazydelta.sidecar.read.reading import MetadataSource, MetadataTier

_PREDICATE_CHARS_MAX = 4096
_BUDGET_SHARE = 16  # an answer takes at most this part of the cache


class Answer(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The rows, and how many were ruled out by what."""

    rows: pa.RecordBatch | None  # None: no row might match
    skipped: Counter[str]

    @property
    def size_bytes(self) -> int:
        """The memory it takes, about."""
        return 0 if self.rows is None else int(self.rows.get_total_buffer_size())


def has_answer(replay: Replay, source: MetadataSource) -> bool:
    """Whether the sidecar need not be asked."""
    key = _key(replay, source)
    return key is not None and replay.memory is not None and replay.memory.has_answer(key)


def answered_rows(replay: Replay, reader: SidecarReader) -> Batches:
    """The rows that the reader gives, or gave when it was asked the same before."""
    key = _key(replay, reader.source)
    if key is None or replay.memory is None:
        yield from reader.rows()
        return
    known: Answer | None = replay.memory.answer(key)
    if known is not None:
        for rule, count in known.skipped.items():
            replay.tally.skipped(rule, count)
        if known.rows is not None:
            yield known.rows
        return
    yield from _recorded(replay, reader, key)


def _recorded(replay: Replay, reader: SidecarReader, key: Hashable) -> Batches:
    assert replay.memory is not None
    room = replay.memory.budget_bytes // _BUDGET_SHARE
    before = _ruled_out(replay)
    kept: list[pa.RecordBatch] = []
    held = 0  # of the process's memory; given back when the run ends
    for rows in reader.rows():
        if room >= 0:
            size = int(rows.nbytes)
            room = room - size if replay.share.try_take(size) else -1
            held += size if room >= 0 else 0
            kept.append(rows.select([name for name in rows.schema.names if name != STATS_PARSED]))
        if room < 0:
            kept.clear()
            replay.share.give(held)
            held = 0
        yield rows
    if room >= 0:
        answer = Answer(rows=_joined(kept), skipped=_ruled_out(replay) - before)
        replay.memory.keep_answer(key, answer, answer.size_bytes)


def _ruled_out(replay: Replay) -> Counter[str]:
    """Files that the predicate ruled out so far; those with a newer action are another matter."""
    skipped = Counter(replay.tally.files_skipped)
    skipped.pop("newer action", None)
    return skipped


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    if not batches:
        return None
    tables = [pa.Table.from_batches([rows]) for rows in batches]
    return pa.concat_tables(tables, promote_options="default").combine_chunks().to_batches()[0]


def _key(replay: Replay, source: MetadataSource) -> Hashable | None:
    """Everything that the answer depends on; None where it is not worth keeping, or may change."""
    predicate, request = replay.predicate, replay.sidecar_rows
    if predicate is None or request is None or source.tier is MetadataTier.PLAIN:
        return None
    text = str(predicate.expression)
    if len(text) > _PREDICATE_CHARS_MAX:
        return None
    manifest = source.manifest
    return (
        (source.folder, manifest.version, manifest.build, source.tier),
        (text, predicate.time_zone, tuple(columns_of(predicate.root))),
        tuple(request.shape.columns),
    )
