"""Slices of the tail out of the sidecar's delta files, and out of commits where no delta file serves.

Why: a delta file is a few requests where its commits are hundreds.
Contract: the same actions as the commits have, newest version first. A file is judged before any of its rows
goes out. Where its rows turn out damaged half way, the commits of what is not out yet are read instead; a
version that is partly out goes on as the same version, so that whoever decides drops what came before.
Several whole versions come as one slice in which adds stand before removes, newer versions before older ones:
then the first line of a key decides, as in a compacted range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.log.commits import Demand
from lazydelta.log.file_rows import Mask
from lazydelta.log.segment import LogFile
from lazydelta.protocol.names import LogFileKind
from lazydelta.scan.run import Replay
from lazydelta.scan.tail_slices import TailSlice, commit_slices
from lazydelta.sidecar.find.delta_chain import DeltaChain
from lazydelta.sidecar.format.damage import DamagedSidecarError, odd_rows_named
from lazydelta.sidecar.read.delta_rows import ACTION, VERSION, DeltaPiece, DeltaRows, DeltaSpan
from lazydelta.sidecar.read.public_rows import PartColumns, RowShape

_REMOVE_SHAPE = RowShape(columns=("path", "deletion_vector"))
_Slices = Generator[TailSlice, None, None]


def tail_slices(
    replay: Replay, files: Sequence[LogFile], *, demand: Demand = lambda: None, keep: bool = False
) -> _Slices:
    """The slices of these files, newest first: by delta files as far as they serve, else by commits."""
    chain = _chain_for(replay, files)
    if chain is None:
        yield from commit_slices(replay, files, demand=demand, keep=keep)
        return
    commits = {file.version: file for file in files}
    newest, oldest = files[0].version, files[-1].version
    # The newest commits are in no delta file yet: they are read while the files are looked for.
    first = list(files[: replay.config.commit_read_parallelism])
    looking = None if replay.may_stop_early else _begin(replay, chain)
    yield from commit_slices(replay, first, demand=demand, keep=keep)
    newest -= len(first)
    with closing(_spans(replay, chain, looking)) as spans:
        for span in spans:
            if not oldest - 1 <= span.after < newest:
                continue
            rows = _rows_of(replay, chain, span, newest)
            with closing(rows):
                rows.start()
                above = _between(commits, span.until, newest)
                yield from commit_slices(replay, above, demand=demand, keep=keep)
                below = _between(commits, span.after, min(span.until, newest))
                yield from _span_slices(replay, chain, span, rows, below)
            newest = span.after
    yield from commit_slices(replay, _between(commits, oldest - 1, newest), demand=demand, keep=keep)


def _chain_for(replay: Replay, files: Sequence[LogFile]) -> DeltaChain | None:
    """The delta files beside the checkpoint, where these files are a long stretch of its tail."""
    if (
        len(files) < limits.SIDECAR_DELTA_COMMITS
        or files[-1].version <= replay.segment.floor
        or replay.config.strict  # it must watch every commit
        or replay.sidecar is None
        or replay.sidecar_rows is None
        or any(file.parsed.kind is not LogFileKind.COMMIT for file in files)
    ):
        return None
    return replay.sidecar.deltas(replay.segment)


def _begin(replay: Replay, chain: DeltaChain) -> Future[None]:
    """Look for the files and judge the newest beside the first commits."""

    def look() -> None:
        next(chain.spans(replay.storage, table_id=replay.table_id), None)

    return replay.commits.submit(look)


def _spans(
    replay: Replay, chain: DeltaChain, looking: Future[None] | None
) -> Generator[DeltaSpan, None, None]:
    if looking is not None:
        looking.result()
    try:
        yield from chain.spans(replay.storage, table_id=replay.table_id)
    finally:
        told = set(replay.tally.fallbacks)
        replay.tally.fallbacks.extend(reason for reason in chain.fallbacks if reason not in told)


def _between(commits: dict[int, LogFile], after: int, until: int) -> list[LogFile]:
    """Commits after < v <= until, newest first."""
    return [commits[version] for version in range(until, after, -1) if version in commits]


def _rows_of(replay: Replay, chain: DeltaChain, span: DeltaSpan, newest: int) -> DeltaRows:
    assert replay.sidecar is not None
    is_limited = replay.may_stop_early
    reading = replay.sidecar.reading
    return DeltaRows(
        replay.storage,
        span,
        footers=chain.memory,
        memory=replay.sidecar.memory,
        columns=_Columns(replay, span).names,
        newest=newest,
        groups_at_once=1 if is_limited else reading.row_groups_per_batch,
        reads_ahead=not is_limited,
    )


def _span_slices(
    replay: Replay, chain: DeltaChain, span: DeltaSpan, rows: DeltaRows, commits: Sequence[LogFile]
) -> _Slices:
    """The versions of these commits out of the file, as far as it can be read."""
    columns = _Columns(replay, span)
    others = Counter(span.other_actions)
    replay.tally.delta_files.add(span.name)
    pending = commits[0].version  # the newest version that is not wholly out
    is_begun = False
    try:
        with closing(rows.pieces()) as pieces:
            for piece in pieces:
                replay.tally.commits_by_delta.update(range(piece.step.low, piece.step.high + 1))
                with odd_rows_named(f"{replay.storage.root}/{span.name}"):
                    part = columns.slice_of(piece, others)
                yield part
                others = Counter()
                is_begun = not piece.step.is_last
                pending = piece.step.low - (0 if is_begun else 1)
    except (DamagedSidecarError, StorageError) as trouble:
        chain.leave(span.name, trouble.what)
        if pending == commits[0].version and not is_begun:
            replay.tally.delta_files.discard(span.name)
        rest = [file for file in commits if file.version <= pending]
        slices = commit_slices(replay, rest, joins=not is_begun)
        yield from _continued(slices, is_begun=is_begun)
        return
    replay.tally.commits_by_delta.update(file.version for file in commits)


def _continued(slices: Iterator[TailSlice], *, is_begun: bool) -> Iterator[TailSlice]:
    """The same slices; the first belongs to a version that has begun already."""
    for part in slices:
        yield msgspec.structs.replace(part, is_first=False) if is_begun else part
        is_begun = False


class _Columns:
    """The columns of one delta file, and its rows as a slice of the tail."""

    def __init__(self, replay: Replay, span: DeltaSpan) -> None:
        assert replay.sidecar_rows is not None
        self._root = replay.storage.root
        self._adds = PartColumns(span.schema, replay.sidecar_rows.shape)
        self._removes = PartColumns(span.schema, _REMOVE_SHAPE)

    @property
    def names(self) -> list[str]:
        """What to read of the file."""
        return list(dict.fromkeys((*self._adds.names, *self._removes.names)))

    def slice_of(self, piece: DeltaPiece, others: Counter[str]) -> TailSlice:
        """The piece as a slice; `others` are counted with it."""
        rows = _newest_first(piece.rows)
        is_add, is_remove = (_is_action(rows, action) for action in ("add", "remove"))
        return TailSlice(
            version=piece.step.high,
            oldest=piece.step.low,
            is_compacted=piece.step.low < piece.step.high,
            is_first=piece.step.is_first,
            is_last=piece.step.is_last,
            adds=self._adds.public(rows.filter(pa.array(is_add)), self._root),
            add_lines=np.flatnonzero(is_add),
            removes=self._removes.public(rows.filter(pa.array(is_remove)), self._root),
            remove_lines=np.flatnonzero(is_remove),
            others=others,
        )


def _is_action(rows: pa.RecordBatch, action: str) -> Mask:
    flags: Mask = pc.equal(rows.column(ACTION), action).to_numpy(zero_copy_only=False)
    return flags


def _newest_first(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Newer versions first, in one version adds first, else as the file has them."""
    versions = rows.column(VERSION).to_numpy()
    order = np.lexsort((np.arange(len(versions)), _is_action(rows, "remove"), -versions))
    return rows if (np.diff(order) == 1).all() else rows.take(pa.array(order))
