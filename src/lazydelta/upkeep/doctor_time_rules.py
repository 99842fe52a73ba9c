"""How the files lie in time: whether the table tells its event time, and how many files an hour touches."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from lazydelta.protocol.actions import Metadata
from lazydelta.sidecar.format.layout import TIME_COLUMN_DEFAULT, TIME_COLUMN_PROPERTY
from lazydelta.upkeep.doctor_facts import SidecarFacts
from lazydelta.upkeep.doctor_file_rules import sampled
from lazydelta.upkeep.doctor_findings import Finding, Severity, set_properties
from lazydelta.upkeep.doctor_sample import Sample, TimeSample

RANGE_HOURS_MIN = 6  # of times in a sample, below which nothing is said of how they are spread
LAST_HOUR_SHARE_MAX = 0.5
SPAN_HOURS_MAX = 2  # of a file, at the median: a period and what strays into the next


def time_findings(
    url: str, metadata: Metadata, sample: Sample, sidecar: SidecarFacts | None
) -> Iterator[Finding]:
    """What is to be said of time."""
    if sample.files == 0:
        return
    source = None if sidecar is None else sidecar.source
    is_sorted = source is not None and source.manifest.order_column is not None
    tells = (
        metadata.configuration.get(TIME_COLUMN_PROPERTY) or TIME_COLUMN_DEFAULT in metadata.partition_columns
    )
    if not tells and not metadata.partition_columns and not is_sorted:
        yield _no_time_column(url, sample.time)
    if sample.time is not None and _is_spread(sample.time, sample.files):
        yield _not_aligned(sample, sample.time)


def _is_spread(found: TimeSample, files: int) -> bool:
    return (
        files >= 10
        and found.span_hours_median > SPAN_HOURS_MAX
        and found.range_hours >= RANGE_HOURS_MIN
        and found.last_hour_files > LAST_HOUR_SHARE_MAX * found.files_with_bounds
    )


def _no_time_column(url: str, found: TimeSample | None) -> Finding:
    what = "the table has no partition column and no property lazydelta.time.column"
    why = "nothing says which files hold the last hour, other than each file's own statistics"
    if found is None:
        fix = "nothing, unless events have a time; `lazydelta ingest` makes a table by the hour of one"
        return Finding(code="no_time_column", severity=Severity.NOTE, what=what, why=why, fix=fix)
    return Finding(
        code="no_time_column",
        severity=Severity.NOTE,
        what=f"{what}; {found.column} holds times",
        why=why,
        fix=f"name {found.column} as the column that sidecars are sorted by, or partition by the hour, as "
        "`lazydelta ingest` does",
        remedy=set_properties(url, {TIME_COLUMN_PROPERTY: found.column}),
        facts={"time_column": found.column},
    )


def _not_aligned(sample: Sample, found: TimeSample) -> Finding:
    return Finding(
        code="not_aligned",
        severity=Severity.WARNING,
        what=f"of {sampled(sample)}, whose {found.column} covers {found.range_hours:,.0f} hours, "
        f"{found.last_hour_files:,} reach into the newest hour; at the median a file spans "
        f"{found.span_hours_median:,.1f} hours",
        why="a query for one hour opens files that hold mostly other hours",
        fix="write files that hold one period each: `lazydelta ingest --event-time "
        f"{shlex.quote(found.column)}` into a new table does (docs/pipeline.md)",
        facts={
            "time_column": found.column,
            "last_hour_files": found.last_hour_files,
            "span_hours_median": round(found.span_hours_median, 3),
            "range_hours": round(found.range_hours, 3),
            "sampled": sample.files,
        },
    )
