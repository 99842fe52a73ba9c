"""What is slow about a table, and what to do about it.

Contract: memory and requests do not grow with the table: the opening, two listings (bounded), the search for
a sidecar, a manifest, and a sample of the newest files. Nothing is written. What was looked at stands in the
report, so that nobody takes a sample for the whole.
"""

from __future__ import annotations

import time
from typing import Any

from lazydelta.errors import UnsupportedTableError
from lazydelta.predicate import BoundPredicate
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.rows.source import RowSource
from lazydelta.upkeep.doctor_facts import log_facts, sidecar_facts, table_facts
from lazydelta.upkeep.doctor_file_rules import file_findings
from lazydelta.upkeep.doctor_filter_rules import filter_findings
from lazydelta.upkeep.doctor_findings import DoctorReport, Examined, Finding, Severity, in_order
from lazydelta.upkeep.doctor_log_rules import log_findings
from lazydelta.upkeep.doctor_sample import take_sample
from lazydelta.upkeep.doctor_sidecar_rules import sidecar_findings
from lazydelta.upkeep.doctor_time_rules import time_findings

_TIME_SOURCE = "lazydelta.time.source"
_TIMES = ("timestamp", "timestamp_ntz", "date")


def examine(source: RowSource, where: Any = None) -> DoctorReport:  # Any: SQL text, mapping or expression
    """Look at the source's version; with `where` also at how a query with that filter would fare."""
    started = time.perf_counter()
    snapshot = source.snapshot
    before = snapshot.storage.counters.snapshot()
    predicate = _predicate(source, where)
    storage = snapshot.storage.scoped()
    log, sidecar = log_facts(snapshot, storage), sidecar_facts(source, storage)
    table = table_facts(snapshot, sidecar)
    sample = take_sample(source, predicate, _time_column(source))
    url = snapshot.storage.root
    metadata = snapshot.state.metadata
    findings = [
        *log_findings(url, log, snapshot.fallbacks, sidecar),
        *sidecar_findings(
            url, log, sidecar, table, time_column=None if sample.time is None else sample.time.column
        ),
        *file_findings(url, table, sample, metadata),
        *time_findings(url, metadata, sample, sidecar),
        *(filter_findings(url, predicate, sample, snapshot, sidecar) if predicate is not None else ()),
    ]
    opening, after = snapshot.opening.snapshot(), snapshot.storage.counters.snapshot()
    return DoctorReport(
        table=url,
        version=snapshot.version,
        predicate=None if predicate is None else str(predicate.expression),
        findings=in_order(findings),
        examined=Examined(
            files_known=table.files,
            files_known_from=table.told_by,
            files_sampled=sample.files,
            is_sample_whole=sample.is_whole,
            log_files_listed=log.files_listed,
            is_log_listed_whole=log.is_listed_whole,
            requests=opening.requests + after.requests - before.requests,
            bytes_read=opening.bytes_read + after.bytes_read - before.bytes_read,
            elapsed_ms=(time.perf_counter() - started) * 1000,
        ),
    )


def refused(url: str, refusal: UnsupportedTableError) -> DoctorReport:
    """The report on a table that this reader does not open: it says what stands in the way, by name."""
    finding = Finding(
        code="unsupported",
        severity=Severity.PROBLEM,
        what=refusal.what,
        why="lazydelta opens nothing that it might read wrong, so every query of this table fails",
        fix=refusal.fix,
    )
    return DoctorReport(table=url, version=None, predicate=None, findings=(finding,), examined=None)


def _predicate(source: RowSource, where: Any) -> BoundPredicate | None:  # Any: as `examine` takes it
    return None if where is None else source.with_config(predicate=where).files().predicate


def _time_column(source: RowSource) -> str | None:
    """The column that tells when an event was: the source of the table's periods, else the first of times."""
    metadata, schema = source.snapshot.state.metadata, source.snapshot.schema
    told = metadata.configuration.get(_TIME_SOURCE)
    named = [field for field in schema.fields if field.name not in metadata.partition_columns]
    times = [
        field.name for field in named if isinstance(field.type, PrimitiveType) and field.type.name in _TIMES
    ]
    if not times:
        return None
    return told if told is not None and told in times else times[0]
