"""What a scan of rows read of data files, as `explain` tells it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class RowsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run read of data files; requests and bytes are of those alone."""

    limit: int | None
    limit_ends_traversal: bool  # rows are counted by the log: files past the limit are not looked for
    is_finished: bool
    files_opened: int
    row_groups_read: int
    row_groups_skipped: int  # by the statistics in the files' footers
    row_groups_turned: int  # held until their last row was decoded, to go out backwards
    rows_read: int  # without deleted ones
    rows_filtered: int  # read, and no match
    rows_emitted: int
    batches_emitted: int
    requests: int
    bytes_read: int
    retries: int
    memory_waits: int  # for memory that other scans held
    memory_wait_ms: float
    time_to_first_row_ms: float | None
    elapsed_ms: float

    def lines(self) -> Iterable[tuple[str, str]]:
        """For people."""
        if self.limit is not None:
            how = "counted by the log" if self.limit_ends_traversal else "counted as they come"
            yield "row limit", f"{self.limit:,} row{'' if self.limit == 1 else 's'}, {how}"
        turned = f", {self.row_groups_turned:,} held to go out backwards" if self.row_groups_turned else ""
        groups = f"{self.row_groups_read:,} row groups read, {self.row_groups_skipped:,} skipped{turned}"
        yield "data files", f"{self.files_opened:,} opened; {groups}"
        yield (
            "rows",
            f"{self.rows_emitted:,} emitted of {self.rows_read:,} read; filtered: {self.rows_filtered:,}",
        )
        yield "data bytes read", f"{self.bytes_read:,} in {self.requests:,} requests"
        if self.retries:
            yield "data retries", f"{self.retries:,}"
        if self.memory_waits:
            times = f"{self.memory_waits:,} time{'' if self.memory_waits == 1 else 's'}"
            yield "rows waited", f"{times}, {self.memory_wait_ms:,.1f} ms, for memory that other scans held"
        if self.time_to_first_row_ms is not None:
            yield "first row", f"after {self.time_to_first_row_ms:,.1f} ms"
        state = "" if self.is_finished else " (not finished)"
        yield "rows elapsed", f"{self.elapsed_ms:,.1f} ms since the first pull{state}"
