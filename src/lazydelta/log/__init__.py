"""The log of one version: segment, commits newest first, checkpoints, protocol and metadata."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.log.checkpoint import CheckpointReader, RowRequest
    from lazydelta.log.commits import CommitSlice, ReverseCommitReader, newest_first
    from lazydelta.log.file_rows import DEFAULT_COLUMNS, DELETION_VECTOR_TYPE, RAW_PATH, rows_from_adds
    from lazydelta.log.history import CommitRecord
    from lazydelta.log.segment import LogSegment, find_segment
    from lazydelta.log.snapshot import open_snapshot

__all__ = [
    "DEFAULT_COLUMNS",
    "DELETION_VECTOR_TYPE",
    "RAW_PATH",
    "CheckpointReader",
    "CommitRecord",
    "CommitSlice",
    "LogSegment",
    "ReverseCommitReader",
    "RowRequest",
    "find_segment",
    "newest_first",
    "open_snapshot",
    "rows_from_adds",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_exports(
        __name__,
        {
            "checkpoint": "CheckpointReader RowRequest",
            "commits": "CommitSlice ReverseCommitReader newest_first",
            "file_rows": "DEFAULT_COLUMNS DELETION_VECTOR_TYPE RAW_PATH rows_from_adds",
            "history": "CommitRecord",
            "segment": "LogSegment find_segment",
            "snapshot": "open_snapshot",
        },
    )
