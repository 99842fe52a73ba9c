"""What a query did, for the explain panel: what reached the scans, what they read, how long it took.

Contract: plain values, no addresses: tables by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazydelta.engines.query_report import QueryReport, ScanUse, TableUse
from lazydelta.serve.page.scan_facts import scan_facts

Told = dict[str, Any]  # Any: as JSON has it


def explained(report: QueryReport, *, sql: str | None = None, pushed: Sequence[str] = ()) -> Told:
    """The report; `sql` and `pushed` are of a query in KQL."""
    tables = [_table(table) for table in report.tables]
    scans = [scan for table in tables for scan in table["scans"] if scan["log"] is not None]
    logs = [scan["log"] for scan in scans]
    data = [scan["data"] for scan in scans if scan["data"] is not None]
    return {
        "is_finished": report.is_finished,
        "requests": sum(log["requests"] for log in logs) + sum(one["requests"] for one in data),
        "log_bytes": sum(log["bytes_read"] for log in logs),
        "data_bytes": sum(one["bytes_read"] for one in data),
        "round_trips": max((log["round_trips"] for log in logs), default=0),
        "sql": sql,
        "pushed": list(pushed) or [scan["pushed"] for scan in scans if scan["pushed"]],
        "left_to_duckdb": report.left_to_duckdb,
        "memory_limit": report.memory_limit,
        "fallbacks": len(report.fallbacks),
        "tables": tables,
    }


def _table(table: TableUse) -> Told:
    scans = [_scan(scan) for scan in table.scans]
    for listing in table.listings:
        found = {"columns": table.columns_by_duckdb, "pushed": table.predicate, "data": None}
        scans.append(found | {"log": scan_facts(listing)})
    return {
        "name": table.name.rpartition(".")[2],
        "version": table.version,
        "files_by_duckdb": table.files_by_duckdb,
        "bytes_by_duckdb": table.bytes_by_duckdb,
        "scans": scans,
    }


def _scan(scan: ScanUse) -> Told:
    report = scan.report
    rows = None if report is None else report.rows
    return {
        "columns": scan.columns_read,
        "pushed": scan.pushed,
        "log": None if report is None else scan_facts(report),
        "data": None
        if rows is None
        else {
            "files_opened": rows.files_opened,
            "row_groups_read": rows.row_groups_read,
            "row_groups_skipped": rows.row_groups_skipped,
            "rows_read": rows.rows_read,
            "bytes_read": rows.bytes_read,
            "requests": rows.requests,
        },
    }
