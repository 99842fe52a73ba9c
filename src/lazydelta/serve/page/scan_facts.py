"""What a scan of the log did, for the page: no addresses, the numbers that people ask about."""

from __future__ import annotations

from typing import Any

from lazydelta.scan import ScanReport


def scan_facts(report: ScanReport) -> dict[str, Any]:  # Any: as JSON has it
    """The numbers of one scan; opening the table is in them."""
    return {
        "version": report.version,
        "source": report.source,
        "strategy": report.strategy,
        "files": report.files_emitted,
        "files_skipped": sum(report.files_skipped.values()),
        "row_groups_read": report.row_groups_read,
        "row_groups_skipped": report.row_groups_skipped,
        "requests": report.requests,
        "bytes_read": report.bytes_read,
        "round_trips": report.round_trips,
        "first_file_ms": report.time_to_first_file_ms,
        "elapsed_ms": report.elapsed_ms,
        "fallbacks": len(report.fallbacks),
    }
