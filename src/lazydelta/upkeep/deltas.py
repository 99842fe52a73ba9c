"""Delta files of the sidecar: the commits since a checkpoint in one file instead of many.

Contract: files follow one another without a gap from the checkpoint on, each bound to the last commit in it
and put only if absent. A file that does not belong to this log, cannot be read or leaves a gap is ours and
stale: it is deleted, with those after it, and written anew. Fewer than `delta_commits_min` commits since the
last file are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.log.commits import ReverseCommitReader
from lazydelta.log.segment import LogFile
from lazydelta.log.snapshot import Snapshot, open_snapshot
from lazydelta.protocol.actions import ActionLine
from lazydelta.protocol.names import LOG_FOLDER
from lazydelta.sidecar.format.binding import bound_file, delta_mismatch
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.format.delta_file import (
    DeltaFacts,
    DeltaFileReader,
    delta_rows,
    store_delta_file,
    write_delta_file,
)
from lazydelta.sidecar.format.folder import ListedFile, list_sidecars
from lazydelta.sidecar.format.layout import SidecarLayout, configured_stats_paths, layout_of
from lazydelta.sidecar.format.names import delta_name
from lazydelta.storage import Storage
from lazydelta.upkeep.json_paths import json_stats_paths
from lazydelta.upkeep.progress import Progress, silent

_COMMIT_BYTES_MAX = 64 * limits.MIB  # of JSON in one file; what is more goes to the next
_STATE_ACTIONS = ("protocol", "metaData")


def write_delta_files(
    storage: Storage,
    *,
    config: SidecarConfig,
    version: int | None = None,
    anew: bool = False,
    progress: Progress | None = None,
) -> list[str]:
    """Write the delta files that are due up to `version`; the names of those written, below the table.

    `anew` takes none that is there for good: damage of equal size cannot be seen from outside.
    """
    tell = progress or silent
    snapshot = open_snapshot(storage.scoped(), version=version, parallelism=limits.COMMIT_PARALLELISM)
    if snapshot.segment.checkpoint is None:
        raise InvalidRequestError(
            "the table has no checkpoint, and delta files of a sidecar follow one",
            f"{storage.root}/{LOG_FOLDER}",
            "let the writer make a checkpoint, or run `lazydelta sidecar build --checkpoint`",
        )
    if anew:
        _delete_chain(snapshot, config)
    done = _last_version_in_files(snapshot, config)
    waiting = [commit for commit in snapshot.segment.commits if commit.version > done]
    if len(waiting) < max(config.delta_commits_min, 1):
        return []
    layout = _layout(snapshot, config, waiting)
    written = []
    for bunch in _bunches(waiting):
        name = _write(snapshot, config, layout, after=done, commits=bunch)
        done = bunch[-1].version
        if name is not None:
            written.append(name)
            tell("delta_written", file=name, commits=len(bunch))
    return written


def _delete_chain(snapshot: Snapshot, config: SidecarConfig) -> None:
    for file in reversed(list_sidecars(snapshot.storage, config.folder).deltas):
        if file.parsed.version == snapshot.segment.floor:
            snapshot.storage.delete(file.info.name)


def _last_version_in_files(snapshot: Snapshot, config: SidecarConfig) -> int:
    """Up to where the files that are there reach; those that are no use are deleted."""
    floor = snapshot.segment.floor
    done = floor
    listing = list_sidecars(snapshot.storage, config.folder)
    chain = [file for file in listing.deltas if file.parsed.version == floor]
    commits = {commit.version: commit for commit in snapshot.segment.commits}
    for at, file in enumerate(chain):
        if (file.parsed.until or 0) > snapshot.version:
            return snapshot.version  # the files reach further already than was asked for
        if not _follows(snapshot, file, done, commits):
            for stale in chain[at:]:
                snapshot.storage.delete(stale.info.name)
            break
        done = file.parsed.until or done
    return done


def _follows(snapshot: Snapshot, file: ListedFile, after: int, commits: dict[int, LogFile]) -> bool:
    """Whether the file begins where the last one ended and belongs to this log."""
    try:
        with closing(DeltaFileReader(snapshot.storage, file.info.name, file.info.size_bytes)) as reader:
            facts = reader.facts
    except DamagedSidecarError:
        return False
    return (
        (facts.checkpoint_version, facts.after, facts.until)
        == (snapshot.segment.floor, after, file.parsed.until)
        and facts.table_id == snapshot.state.metadata.id
        and delta_mismatch(snapshot.storage, facts, commits) is None
    )


def _layout(snapshot: Snapshot, config: SidecarConfig, commits: Sequence[LogFile]) -> SidecarLayout:
    """The layout at the last version; statistics as configured and as the newest commit has them."""
    metadata = snapshot.state.metadata
    paths = configured_stats_paths(metadata, snapshot.schema)
    with closing(ReverseCommitReader(snapshot.storage)) as reader:
        _, lines, _ = next(reader.lines(commits[-1:]))
    for line in lines:
        if line.add is not None and line.add.stats is not None:
            paths += json_stats_paths(line.add.stats)
    return layout_of(metadata, snapshot.schema, stats_paths=paths, time_column=config.time_column)


def _bunches(commits: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Commits for one file each."""
    bunch: list[LogFile] = []
    bunch_bytes = 0
    for commit in commits:
        if bunch and bunch_bytes + commit.info.size_bytes > _COMMIT_BYTES_MAX:
            yield bunch
            bunch, bunch_bytes = [], 0
        bunch.append(commit)
        bunch_bytes += commit.info.size_bytes
    yield bunch


def _write(
    snapshot: Snapshot, config: SidecarConfig, layout: SidecarLayout, *, after: int, commits: list[LogFile]
) -> str | None:
    """One file of these commits; None where another writer was first."""
    others: Counter[str] = Counter()
    facts = DeltaFacts(
        checkpoint_version=snapshot.segment.floor,
        after=after,
        until=commits[-1].version,
        table_id=snapshot.state.metadata.id,
        commit=bound_file(snapshot.storage, commits[-1], with_head=True),
        commit_sizes=tuple(commit.info.size_bytes for commit in commits),
    )
    body = write_delta_file(
        _rows(snapshot, layout, commits, others),
        layout=layout,
        # Encoded once the rows are written: by then the counts are complete.
        facts=msgspec.structs.replace(facts, other_actions=others),
        row_group_rows=config.row_group_rows,
    )
    if not store_delta_file(snapshot.storage, config, facts, body):
        return None
    return f"{config.folder}/{delta_name(facts.checkpoint_version, facts.until)}"


def _rows(
    snapshot: Snapshot, layout: SidecarLayout, commits: Sequence[LogFile], others: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Rows in batches of about a row group: commits are small, and row groups must not be."""
    waiting: list[tuple[int, ActionLine]] = []
    with closing(ReverseCommitReader(snapshot.storage)) as reader:
        for version, lines, other in reader.lines(commits):
            others.update({name: count for name, count in other.items() if name not in _STATE_ACTIONS})
            waiting += [(version, line) for line in lines]
            if len(waiting) >= limits.SIDECAR_ROW_GROUP_ROWS:
                yield delta_rows(waiting, layout, snapshot.storage.root)
                waiting = []
    if waiting:
        yield delta_rows(waiting, layout, snapshot.storage.root)
