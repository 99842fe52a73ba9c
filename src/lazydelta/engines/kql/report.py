"""What a query in KQL became and did: its SQL, what reached the scans, and how much was read.

Contract: as `QueryReport`: it can be asked for at any time and reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lazydelta.engines.kql.translate import Translated
from lazydelta.engines.query_report import QueryReport
from lazydelta.scan import ScanReport


class KqlReport(msgspec.Struct, frozen=True, kw_only=True):
    """One query."""

    query: str
    sql: str
    pushed: list[str]  # `table: condition`, that decides which files and row groups are read
    files_read: int  # by our scans; row groups and bytes likewise
    row_groups_read: int
    row_groups_skipped: int
    data_bytes_read: int
    log_bytes_read: int
    files_by_duckdb: int  # that it reads by itself, without telling how much of them
    bytes_by_duckdb: int  # sizes of those files
    run: QueryReport  # everything else, table by table

    def __str__(self) -> str:
        own = "\n".join(f"{label:<17} {text}" for label, text in self._lines())
        rest = str(self.run).split("\n", 1)
        return f"{own}\n{rest[1] if len(rest) > 1 else ''}"

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "query", " ".join(self.query.split())
        for at, line in enumerate(self.sql.splitlines()):
            yield "" if at else "SQL", line
        for condition in self.pushed or ["nothing"]:
            yield "pushed", condition
        skipped = f", {self.row_groups_skipped:,} skipped" if self.row_groups_skipped else ""
        yield "read", f"{self.row_groups_read:,} row groups of {self.files_read:,} files{skipped}"
        if self.files_by_duckdb:
            yield "read by DuckDB", f"{self.files_by_duckdb:,} files of {self.bytes_by_duckdb:,} bytes"
        yield "bytes", f"{self.data_bytes_read:,} of data, {self.log_bytes_read:,} of the log"


def kql_report(translated: Translated, run: QueryReport) -> KqlReport:
    """Put together what is known."""
    scans = list(_scans(run))
    rows = [scan.rows for scan in scans if scan.rows is not None]
    return KqlReport(
        query=translated.text,
        sql=translated.sql,
        pushed=list(translated.conditions),
        files_read=sum(one.files_opened for one in rows),
        row_groups_read=sum(one.row_groups_read for one in rows),
        row_groups_skipped=sum(one.row_groups_skipped for one in rows),
        data_bytes_read=sum(one.bytes_read for one in rows),
        log_bytes_read=sum(scan.bytes_read for scan in scans),
        files_by_duckdb=sum(table.files_by_duckdb for table in run.tables),
        bytes_by_duckdb=sum(table.bytes_by_duckdb for table in run.tables),
        run=run,
    )


def _scans(run: QueryReport) -> Iterator[ScanReport]:
    for table in run.tables:
        for scan in table.scans:
            if scan.report is not None:
                yield scan.report
        yield from table.listings
