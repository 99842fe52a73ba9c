"""One run of a scan as plain data: what to read, with what, and where to count."""

from __future__ import annotations

import msgspec

from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.commits import Demand, ReverseCommitReader, newest_first
from lazydelta.log.file_rows import FILE_COLUMNS, RAW_PATH
from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.memory_share import MemoryShare
from lazydelta.predicate import BoundPredicate
from lazydelta.scan.config import LazyScanConfig
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.report import ScanTally
from lazydelta.scan.table_memory import TableMemory
from lazydelta.scan.tripwire import FeatureTripwire
from lazydelta.sidecar.find.discover import SidecarAwareProvider
from lazydelta.sidecar.read.reader import SidecarRequest
from lazydelta.storage import Deadline, Storage
from lazydelta.storage.deadline import NEVER


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what to read, with what, and where to count."""

    storage: Storage
    segment: LogSegment
    damaged: frozenset[str]  # names of checkpoints that were passed over
    commits: ReverseCommitReader
    rows: RowRequest
    config: LazyScanConfig
    tally: ScanTally
    tripwire: FeatureTripwire
    deadline: Deadline = NEVER  # that of `storage`, for what others have asked for
    predicate: BoundPredicate | None = None  # that `rows` judges by, and by nothing else
    table_id: str | None = None  # of the metadata in force, where known
    demand: Demand = lambda: None
    sidecar: SidecarAwareProvider | None = None  # where files at the checkpoint may be read cheaper
    sidecar_rows: SidecarRequest | None = None  # None: what is asked for is not in a sidecar
    memory: TableMemory | None = None  # what earlier queries have left
    share: MemoryShare = msgspec.field(default_factory=MemoryShare)  # of the process's memory
    listings: int = 1  # of the log, for this run
    is_hurried: bool = False  # whoever pulls counts something else than files, and may stop after a few

    @property
    def may_stop_early(self) -> bool:
        """Whether the scan may end after a few files, so that little should be read ahead."""
        return self.is_hurried or self.config.limit is not None

    @property
    def tail_memory(self) -> TableMemory | None:
        """The same for the tail: a strict scan must watch every commit itself."""
        is_usual = not self.config.strict and set(self.rows.columns) <= {*FILE_COLUMNS, RAW_PATH}
        return self.memory if is_usual else None

    @property
    def has_quick_tail(self) -> bool:
        """Whether no commit must be read, so that nothing is gained by reading beside them."""
        memory, flag = self.tail_memory, self.config.use_log_compaction
        return not self.segment.commits or (
            memory is not None and memory.knows_tail(self.segment, use_compacted=flag)
        )

    def key_set(self) -> RemoveSet:
        """An empty set of keys, within the scan's limit and its share; close it."""
        return RemoveSet(self.config.remove_set_memory_limit, self.share)

    @property
    def tail(self) -> list[LogFile]:
        """The files of the tail, newest first."""
        return newest_first(self.segment, use_compacted=self.config.use_log_compaction)
