"""What a stream has done so far, in numbers that do not grow with it."""

from __future__ import annotations

import msgspec

from lazydelta.spark.after_commit import SidecarOutcome
from lazydelta.spark.ingest import BatchResult


class StreamTotals(msgspec.Struct, kw_only=True):
    """What the batches of one run came to; `replayed` ones had been written by an earlier run."""

    batches: int = 0
    replayed: int = 0
    files_read: int = 0
    rows_read: int = 0
    rows_written: int = 0
    rows_rejected: int = 0
    commits: int = 0
    files: int = 0
    bytes_written: int = 0
    period_first: str | None = None
    period_last: str | None = None
    sidecars: int = 0  # written by this run
    checkpoint_version: int | None = None  # the newest
    sidecar_version: int | None = None  # the newest that this run wrote or found
    sidecar_error: str | None = None  # of the newest batch
    batch_first: int | None = None
    batch_last: int | None = None

    def add_sidecar(self, sidecar: SidecarOutcome) -> None:
        """Note what there is after a commit."""
        self.sidecars += sidecar.sidecar_kind in ("full", "incremental")
        self.checkpoint_version = sidecar.checkpoint_version
        if sidecar.sidecar_version is not None:
            self.sidecar_version = sidecar.sidecar_version
        self.sidecar_error = sidecar.sidecar_error

    def add(self, result: BatchResult) -> None:
        """Count one more batch."""
        self.replayed += result.is_replay
        self.rows_read += result.rows_read
        self.rows_written += result.rows_written
        self.rows_rejected += result.rows_rejected
        self.commits += result.version is not None
        self.files += result.files
        self.bytes_written += result.bytes_written
        firsts = [period for period in (self.period_first, result.period_first) if period]
        lasts = [period for period in (self.period_last, result.period_last) if period]
        self.period_first = min(firsts, default=None)
        self.period_last = max(lasts, default=None)
