"""What `query_explain` tells of a query: its SQL, what reached the scans, and what they read.

Contract: plain values, by names that do not change within a major version; tables by their names, never by
their addresses.
"""

from __future__ import annotations

from typing import Any

from lazydelta.engines.kql.report import KqlReport
from lazydelta.engines.query_report import ScanUse, TableUse

Told = dict[str, Any]  # Any: as JSON has it


def explained(report: KqlReport) -> Told:
    """A report without addresses."""
    return {
        "Sql": report.sql,
        "PushedPredicates": report.pushed,
        "FilesRead": report.files_read,
        "RowGroupsRead": report.row_groups_read,
        "RowGroupsSkipped": report.row_groups_skipped,
        "DataBytesRead": report.data_bytes_read,
        "LogBytesRead": report.log_bytes_read,
        "LeftToDuckDB": report.run.left_to_duckdb,
        "IsFinished": report.run.is_finished,
        "RowsEmitted": report.run.rows_emitted,
        "MemoryLimit": report.run.memory_limit,
        "Tables": [_table(table) for table in report.run.tables],
    }


def _table(table: TableUse) -> Told:
    return {
        "Name": table.name,
        "Version": table.version,
        "IsHandedOver": table.is_handed_over,
        "HandedOverPredicate": table.predicate,
        "HandedOverFiles": table.files_by_duckdb,
        "HandedOverBytes": table.bytes_by_duckdb,
        "Scans": [_scan(scan) for scan in table.scans],
    }


def _scan(scan: ScanUse) -> Told:
    found: Told = {
        "Columns": scan.columns_read,
        "Filter": scan.filter,
        "PushedPredicate": scan.pushed,
        "IsPushedWhole": scan.filter_is_exact,
        "RowLimit": scan.row_limit,
    }
    report = scan.report
    if report is None:
        return found
    found |= {
        "Source": report.source,
        "FilesEmitted": report.files_emitted,
        "IndexRowGroupsRead": report.row_groups_read,
        "IndexRowGroupsSkipped": report.row_groups_skipped,
        "LogBytesRead": report.bytes_read,
        "Requests": report.requests,
    }
    rows = report.rows
    if rows is not None:
        found |= {
            "FilesOpened": rows.files_opened,
            "RowGroupsRead": rows.row_groups_read,
            "RowGroupsSkipped": rows.row_groups_skipped,
            "RowsRead": rows.rows_read,
            "DataBytesRead": rows.bytes_read,
        }
    return found
