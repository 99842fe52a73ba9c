"""Drop files that cannot match: partition values first, statistics only for what is left.

Contract: a file goes only when its partition values or statistics prove that no row matches; what is
missing, unparseable or of an unknown kind says nothing. Each stage counts what it dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import STATS_PARSED, Mask
from lazydelta.log.parquet_part import ParquetPart
from lazydelta.predicate import BoundPredicate, FileFacts, columns_of
from lazydelta.protocol.partition_values import raw_partition_column
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.statistics import (
    ColumnBounds,
    FileStatistics,
    StatsColumn,
    statistics_from_json,
    statistics_from_struct,
)
from lazydelta.scan.report import ScanTally


def possible_rows(
    rows: pa.RecordBatch, among: Mask | None, *, predicate: BoundPredicate, tally: ScanTally
) -> Mask:
    """Which of the rows `among` (None: all) might hold a match; the others are counted by their reason."""
    kept = np.ones(rows.num_rows, np.bool_) if among is None else among.copy()
    if predicate.partition_columns:
        _keep(kept, predicate.might_match_partitions(_facts(rows, predicate)), "partition", tally)
    if not predicate.stats_columns:
        if not predicate.partition_columns:  # the filter names no column: it is true or false of every row
            _keep(kept, predicate.might_match(_facts(rows, predicate)), "filter", tally)
        return kept
    left = np.flatnonzero(kept)
    judged = rows if 2 * len(left) >= len(kept) else rows.take(pa.array(left))
    facts = _facts(judged, predicate, statistics=_statistics(judged, predicate.stats_columns))
    might_match = predicate.might_match(facts)
    if judged is not rows:
        spread = np.zeros(len(kept), np.bool_)
        spread[left] = might_match
        might_match = spread
    _keep(kept, might_match, "statistics", tally)
    return kept


def matching_row_groups(part: ParquetPart, predicate: BoundPredicate) -> Sequence[int]:
    """Row groups of a checkpoint whose typed columns do not rule out every file in them."""
    count = part.metadata.num_row_groups
    bounds: dict[tuple[str, ...], ColumnBounds] = {}
    for column in dict.fromkeys(columns_of(predicate.root)):
        dotted = ".".join(column.physical_path)
        if column.is_partition:
            low = high = f"add.partitionValues_parsed.{dotted}"
        else:
            low, high = (f"add.{STATS_PARSED}.{kind}.{dotted}" for kind in ("minValues", "maxValues"))
        if low in part.leaves and high in part.leaves:
            bounds[column.physical_path] = _envelope(part, low, high, PrimitiveType(column.type_name))
    if not bounds:
        return range(count)
    statistics = FileStatistics(row_count=count, num_records=None, tight_bounds=None, columns=bounds)
    facts = FileFacts(row_count=count, partition_values={}, statistics=statistics, dv_cardinality=None)
    return [int(index) for index in np.flatnonzero(predicate.might_match(facts))]


def _keep(kept: Mask, wanted: Mask, rule: str, tally: ScanTally) -> None:
    """Narrow `kept` in place."""
    before = int(kept.sum())
    kept &= wanted
    tally.skipped(rule, before - int(kept.sum()))


def _facts(
    rows: pa.RecordBatch, predicate: BoundPredicate, statistics: FileStatistics | None = None
) -> FileFacts:
    partitions = {}
    if predicate.partition_columns:
        values = rows.column("partition_values")
        partitions = {name: raw_partition_column(values, name) for name in predicate.partition_columns}
    vectors = rows.column("deletion_vector") if "deletion_vector" in rows.schema.names else None
    return FileFacts(
        row_count=rows.num_rows,
        partition_values=partitions,
        statistics=statistics,
        dv_cardinality=None if vectors is None else pc.struct_field(vectors, "cardinality"),
    )


def _statistics(rows: pa.RecordBatch, columns: Sequence[StatsColumn]) -> FileStatistics | None:
    if STATS_PARSED in rows.schema.names:
        return statistics_from_struct(rows.column(STATS_PARSED), columns)
    if "stats" in rows.schema.names:
        return statistics_from_json(rows.column("stats"), columns, lean=True)
    return None


def _envelope(part: ParquetPart, low: str, high: str, type_: PrimitiveType) -> ColumnBounds:
    """The least minimum and greatest maximum of each row group, where every file in it has both."""
    wanted = arrow_type(type_)
    lows = pa.array([_bound(part, group, low, "min") for group in range(part.metadata.num_row_groups)])
    highs = pa.array([_bound(part, group, high, "max") for group in range(part.metadata.num_row_groups)])
    return ColumnBounds(min=_typed(lows, wanted), max=_typed(highs, wanted), null_count=None)


def _bound(part: ParquetPart, row_group: int, leaf: str, side: str) -> object:
    """Parquet's own bound, unless a file lacks the value: Parquet ignores nulls, so they must be counted."""
    index = part.leaves.get(leaf)
    nulls = part.null_count(row_group, leaf)
    if index is None or nulls is None or nulls != part.null_count(row_group, "add.path"):
        return None
    statistics = part.metadata.row_group(row_group).column(index).statistics
    return getattr(statistics, side) if statistics is not None and statistics.has_min_max else None


def _typed(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    # NaN is left out of Parquet's bounds without being counted, so floats cannot rule a row group out.
    if pa.types.is_floating(wanted):
        return pa.nulls(len(values), wanted)
    try:
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(values), wanted)
