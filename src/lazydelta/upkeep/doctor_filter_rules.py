"""How a query with a certain filter would fare: which of its columns can rule files out, and do."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lazydelta.log.snapshot import Snapshot
from lazydelta.predicate import BoundPredicate
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.schema import StructType
from lazydelta.sidecar.format.layout import configured_stats_paths
from lazydelta.sidecar.read.pruner import PredicatePruner
from lazydelta.sidecar.read.row_group_plan import plan_reads
from lazydelta.upkeep.doctor_facts import SidecarFacts
from lazydelta.upkeep.doctor_file_rules import sampled
from lazydelta.upkeep.doctor_findings import (
    Fact,
    Finding,
    Severity,
    delta_column,
    delta_name,
    set_properties,
    spark_sql,
)
from lazydelta.upkeep.doctor_sample import ColumnSample, Sample

KEPT_SHARE_MAX = 0.9
_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_STATS_COUNT = "delta.dataSkippingNumIndexedCols"


def filter_findings(
    url: str, predicate: BoundPredicate, sample: Sample, snapshot: Snapshot, sidecar: SidecarFacts | None
) -> Iterator[Finding]:
    """What is to be said of the filter."""
    if not sample.files:
        return
    lacking = [column for column in sample.columns if not _is_told(column, sample)]
    for column in lacking:
        yield _no_bounds(url, column, sample, snapshot.state.metadata, snapshot.schema)
    yield _effect(predicate, sample, sidecar, is_lacking=bool(lacking))


def _is_told(column: ColumnSample, sample: Sample) -> bool:
    return column.is_partition or column.files_with_bounds == sample.files


def _no_bounds(
    url: str, column: ColumnSample, sample: Sample, metadata: Metadata, schema: StructType
) -> Finding:
    without = sample.files - column.files_with_bounds
    what = f"{without:,} of {sampled(sample)} have no bounds of {column.name}"
    why = f"a condition on {column.name} cannot rule those files out: they are opened"
    facts: dict[str, Fact] = {"column": column.name, "files_without": without, "sampled": sample.files}
    if not column.type_has_bounds:
        fix = "filter by a column of another type besides: Delta keeps no bounds for values of this one"
        return Finding(
            code="filter_column_without_statistics",
            severity=Severity.NOTE,
            what=what,
            why=why,
            fix=fix,
            facts=facts,
        )
    if column.path in configured_stats_paths(metadata, schema):
        return Finding(
            code="filter_column_without_statistics",
            severity=Severity.WARNING,
            what=f"{what}, though the table asks its writers for them",
            why=f"{why} (a file whose {column.name} is null in every row has none, either)",
            fix="find the writer that leaves them out; files that are rewritten get them",
            remedy=spark_sql(f"OPTIMIZE {delta_name(url)}"),
            facts=facts,
        )
    rule, key, value = _configuration(column, metadata, schema)
    return Finding(
        code="filter_column_without_statistics",
        severity=Severity.WARNING,
        what=f"{what}: {rule}",
        why=why,
        fix="ask writers for statistics on it; files get them as they are written or rewritten",
        remedy=set_properties(url, {key: value}),
        facts=facts,
    )


def _configuration(column: ColumnSample, metadata: Metadata, schema: StructType) -> tuple[str, str, str]:
    """Why writers leave the column out, and the property with the value that makes them take it in."""
    named = metadata.configuration.get(_STATS_COLUMNS)
    if named is not None:
        value = ",".join([*(text for text in [named] if text.strip()), delta_column(column.names)])
        return f"{_STATS_COLUMNS} does not name it", _STATS_COLUMNS, value
    everything = msgspec.structs.replace(metadata, configuration={_STATS_COUNT: "-1"})
    place = configured_stats_paths(everything, schema).index(column.path) + 1
    limit = metadata.configuration.get(_STATS_COUNT) or "32"
    return f"it is column number {place:,}, and the first {limit} have statistics", _STATS_COUNT, str(place)


def _effect(
    predicate: BoundPredicate, sample: Sample, sidecar: SidecarFacts | None, *, is_lacking: bool
) -> Finding:
    kept = sample.files_kept or 0
    facts: dict[str, Fact] = {"files_kept": kept, "sampled": sample.files}
    groups = ""
    source = None if sidecar is None else sidecar.source
    if source is not None:
        total = source.manifest.num_row_groups
        plan = plan_reads(source.manifest, PredicatePruner(predicate))
        left = total - plan.row_groups_skipped
        groups = f"; the manifest of the sidecar leaves {left:,} of {total:,} row groups"
        facts |= {"row_groups_left": left, "row_groups": total}
    is_idle = kept > KEPT_SHARE_MAX * sample.files and sample.files >= 10
    why = "what a filter rules out is never opened"
    fix = "nothing"
    if is_idle:
        why = "the filter's values are in almost every file, so that almost every file is opened"
        fix = (
            "see the columns above"
            if is_lacking
            else "filter by time besides, or cluster the table by the column"
        )
    return Finding(
        code="filter_effect",
        severity=Severity.NOTE,
        what=f"of {sampled(sample)} {kept:,} may hold a match{groups}",
        why=why,
        fix=fix,
        facts=facts,
    )
