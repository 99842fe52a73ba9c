"""The tail as slices of Arrow rows, newest first, whatever holds them: a commit, or what stands for commits.

Why: who decides which files are live need not know how an action was stored.
Contract: every slice of a version comes before those of older versions. The rows of `adds` have `path`
(canonical), the columns that the scan asked for (others may ride along) and, where some row has one,
`deletion_vector`; those of `removes` have `path` and, likewise, `deletion_vector`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lazydelta.errors import CorruptLogError, LazyDeltaError
from lazydelta.log.commits import CommitSlice, Demand
from lazydelta.log.file_rows import FILE_COLUMNS, RAW_PATH, deletion_vectors, rows_from_adds, vector_structs
from lazydelta.log.segment import LogFile
from lazydelta.protocol.actions import Remove
from lazydelta.protocol.paths import canonical_paths
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.run import Replay

Lines = npt.NDArray[np.int64]


class TailSlice(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Some consecutive actions of one version, or of a range of versions that ends at it."""

    version: int
    oldest: int  # of the range
    is_compacted: bool  # a range: of the actions for a key the one with the lowest line decides
    is_first: bool  # of its version or range
    is_last: bool
    adds: pa.RecordBatch
    add_lines: Lines  # orders adds and removes of the slice among each other
    removes: pa.RecordBatch
    remove_lines: Lines
    others: Counter[str]  # actions that are neither, by their name in the log

    @cached_property
    def add_keys(self) -> FileKeys:
        """The keys of the adds, in their order."""
        return FileKeys(self.adds.column("path"), deletion_vectors(self.adds))

    @cached_property
    def remove_keys(self) -> FileKeys:
        """The keys of the removes, in their order."""
        return FileKeys(self.removes.column("path"), deletion_vectors(self.removes))

    @property
    def vector_count(self) -> int:
        """How many of the actions have a deletion vector."""
        columns = (keys.vectors for keys in (self.add_keys, self.remove_keys))
        return sum(len(column) - column.null_count for column in columns if column is not None)


def commit_slices(
    replay: Replay,
    files: Sequence[LogFile],
    *,
    demand: Demand = lambda: None,
    keep: bool = False,
    joins: bool = True,
) -> Iterator[TailSlice]:
    """The slices of these files of the log, in the order given; `keep` holds their bytes for another time.

    Small commits come together, unless each must be watched or a limit may end the scan between two.
    """
    columns = slice_columns(replay)
    joins = joins and not replay.may_stop_early and not replay.config.strict
    for part in replay.commits.slices(files, demand=demand, keep=keep, joins=joins):
        replay.tally.commits.update(commit.version for commit in part.joined or (part,))
        yield from _at_once_or_singly(part, columns, replay.storage.root)


def slice_columns(replay: Replay) -> tuple[str, ...]:
    """What is wanted of an add: statistics of a commit are JSON, whatever asks for them."""
    columns = replay.rows.columns
    if replay.tail_memory is not None:
        # The next query may ask for others; few ask for the log's own spelling.
        return (*FILE_COLUMNS, RAW_PATH) if RAW_PATH in columns else tuple(FILE_COLUMNS)
    return (*columns, "stats") if replay.rows.stats_paths and "stats" not in columns else columns


def slice_of(part: CommitSlice, columns: Sequence[str], root: str) -> TailSlice:
    """Decoded lines of a commit as Arrow."""
    try:
        adds = rows_from_adds(part.adds, columns, root)
        removes = _rows_from_removes(part.removes, root)
    except (OverflowError, pa.ArrowInvalid) as damage:
        raise CorruptLogError(
            f"commit {part.version} has a number that fits no column: {damage}", root, "restore the commit"
        ) from damage
    return TailSlice(
        version=part.version,
        oldest=part.oldest,
        is_compacted=part.is_compacted,
        is_first=part.is_first,
        is_last=part.is_last,
        adds=adds,
        add_lines=np.array(part.add_lines, np.int64),
        removes=removes,
        remove_lines=np.array(part.remove_lines, np.int64),
        others=part.others,
    )


def _at_once_or_singly(part: CommitSlice, columns: Sequence[str], root: str) -> Iterator[TailSlice]:
    """Joined commits as one slice; where one has damage, what is newer goes out before it is met."""
    try:
        whole = slice_of(part, columns, root)
        _ = whole.add_keys, whole.remove_keys
    except LazyDeltaError:
        if not part.joined:
            raise
        for commit in part.joined:
            yield slice_of(commit, columns, root)
    else:
        yield whole


def _rows_from_removes(removes: Sequence[Remove], root: str) -> pa.RecordBatch:
    arrays = {"path": canonical_paths(pa.array([remove.path for remove in removes], pa.string()), root)}
    vectors = vector_structs(remove.deletion_vector for remove in removes)
    if vectors is not None:
        arrays["deletion_vector"] = vectors
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
