"""What a query did: what reached its scans, what was left to DuckDB, who read the files, and how much.

Contract: it can be asked for at any time and reads nothing. Before the first row was pulled it tells the plan
alone. What DuckDB reads by itself is given by the sizes of the files, since it does not tell how much of them
it read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from lazydelta.engines.handover import Handover
from lazydelta.engines.watch import Begun
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan, ScanReport

_SHOWN_CHARS = 400
_NOT_SHOWN = ("PROJECTION", "DUMMY_SCAN")  # where they say nothing more


class ScanUse(msgspec.Struct, frozen=True, kw_only=True):
    """One scan of a table, through Arrow."""

    columns: list[str] | None  # that DuckDB asked for; None: all
    columns_read: list[str]  # with those that the filter needs
    filter: str | None  # that DuckDB asked for, as Arrow writes it
    pushed: str | None  # what of it decides which files and row groups are read
    filter_is_exact: bool  # whether that is the whole of it; else the rest is applied to the rows by Arrow
    row_limit: int | None  # that ends the scan; None: it ends when nobody pulls any more
    report: ScanReport | None  # None: nothing was pulled


class TableUse(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a query."""

    name: str
    table: str
    version: int
    is_handed_over: bool  # some of its files are read by DuckDB itself
    why_not: str | None  # it is not
    columns_by_duckdb: list[str] = []
    predicate: str | None = None  # what decides which files DuckDB reads, where it is handed over
    files_by_duckdb: int = 0
    bytes_by_duckdb: int = 0  # sizes of those files
    files_by_us: int | None = None  # of a table that is handed over
    found_by: ScanReport | None = None  # how the files of a table that is handed over were found
    windows_by: list[ScanReport] = []  # how windows for the first rows by a column were found
    scans: list[ScanUse] = []

    @property
    def listings(self) -> list[ScanReport]:
        """Scans of the log alone."""
        return [*self.windows_by, *([] if self.found_by is None else [self.found_by])]


class QueryReport(msgspec.Struct, frozen=True, kw_only=True):
    """One query."""

    query: str
    is_finished: bool
    rows_emitted: int
    batches_emitted: int
    memory_limit: str
    left_to_duckdb: list[str]  # its operators, from the top; of a query that is one SELECT
    tables: list[TableUse]
    fallbacks: list[str]
    windows: list[str] = []  # parts of the table that the first rows by a column were looked for in

    def __str__(self) -> str:
        return "\n".join(f"{label:<17} {text}" for label, text in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "query", _short(self.query)
        state = "" if self.is_finished else " (not finished)"
        batches = "1 batch" if self.batches_emitted == 1 else f"{self.batches_emitted:,} batches"
        yield "rows", f"{self.rows_emitted:,} in {batches}{state}"
        shown = [text for text in self.left_to_duckdb if text not in _NOT_SHOWN]
        yield "left to DuckDB", " ← ".join(shown) or "nothing"
        yield "memory limit", f"{self.memory_limit} in DuckDB"
        for window in self.windows:
            yield "window", window
        for fallback in self.fallbacks:
            yield "fallback", fallback
        for table in self.tables:
            yield from _table_lines(table)


def query_report(
    query: str,
    *,
    sources: Mapping[str, RowSource],
    begun: Sequence[Begun],
    handovers: Mapping[str, Handover],
    why_none: str | None,
    looked: Sequence[FileScan],
    **rest: object,
) -> QueryReport:
    """Put together what is known; tables that the query did not touch are left out."""
    touched = dict.fromkeys([*handovers, *(one.asked.table for one in begun)])
    tables = [
        _table_use(name, sources[name], handovers.get(name), why_none, begun=begun, looked=looked)
        for name in touched
        if name in sources
    ]
    return msgspec.convert({"query": query, "tables": tables, **rest}, QueryReport)


def _table_use(
    name: str,
    source: RowSource,
    handover: Handover | None,
    why_none: str | None,
    *,
    begun: Sequence[Begun],
    looked: Sequence[FileScan],
) -> TableUse:
    handed = handover if handover is not None and handover.why_not is None else None
    why_not = why_none if handover is None else handover.why_not
    return TableUse(
        name=name,
        table=source.snapshot.storage.root,
        version=source.snapshot.version,
        is_handed_over=handed is not None,
        why_not=why_not if handed is None else None,
        columns_by_duckdb=[] if handed is None else list(handed.columns),
        predicate=None if handed is None or handed.predicate is None else _short(handed.predicate),
        files_by_duckdb=0 if handed is None else handed.files,
        bytes_by_duckdb=0 if handed is None else handed.bytes,
        files_by_us=None if handed is None else handed.files_of_ours,
        found_by=None if handed is None or handed.listed is None else handed.listed.latest(),
        windows_by=[report for scan in looked if (report := scan.latest()) is not None],
        scans=[_scan_use(one) for one in begun if one.asked.table == name],
    )


def _scan_use(begun: Begun) -> ScanUse:
    asked, plan = begun.asked, begun.scanner.plan
    columns = None if asked.columns is None else list(asked.columns)
    pushed = plan.pushed
    return ScanUse(
        columns=columns,
        columns_read=[] if plan.is_counted else list(plan.reads),
        filter=None if asked.filter is None else _short(str(asked.filter)),
        pushed=None if pushed.condition is None else _short(str(pushed.condition)),
        filter_is_exact=asked.filter is None or pushed.is_exact,
        row_limit=begun.row_limit,
        report=begun.scanner.latest(),
    )


def _table_lines(table: TableUse) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield f"table {table.name}", f"{table.table} @ {table.version:,}"
    if table.is_handed_over:
        ours = f"; {table.files_by_us:,} more by lazydelta" if table.files_by_us else ""
        size = f"{table.files_by_duckdb:,} files of {table.bytes_by_duckdb:,} bytes"
        yield "handed over", f"DuckDB reads {size} by itself, uncounted{ours}"
        yield "columns", f"{', '.join(table.columns_by_duckdb) or 'none'} read"
        if table.predicate is not None:
            yield "filter", f"{table.predicate} decides which files"
        yield from _of_scan(table.found_by)
    elif table.why_not is not None:
        yield "not handed over", table.why_not
    for scan in table.scans:
        yield from _scan_lines(scan)


def _scan_lines(scan: ScanUse) -> Iterator[tuple[str, str]]:
    asked = "all" if scan.columns is None else ", ".join(scan.columns) or "none"
    yield "columns", f"{asked} asked for; {', '.join(scan.columns_read) or 'none'} read"
    if scan.filter is not None:
        reach = "decides the scan" if scan.filter_is_exact else "is applied to its rows"
        if not scan.filter_is_exact and scan.pushed is not None:
            reach = f"is applied to its rows; {scan.pushed} decides what is read"
        yield "filter", f"{scan.filter} {reach}"
    if scan.row_limit is not None:
        yield "limit", f"{scan.row_limit:,} rows end the scan"
    yield from _of_scan(scan.report)


def _of_scan(report: ScanReport | None) -> Iterable[tuple[str, str]]:
    if report is None:
        return [("scan", "nothing read yet")]
    lines = [(line[:17].rstrip(), _short(line[18:])) for line in str(report).splitlines()]
    return [line for line in lines if line[0] not in ("table", "hint")]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
