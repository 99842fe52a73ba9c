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
from lazydelta.log.footer_bounds import Side, chunk_bounds, chunk_null_counts
from lazydelta.log.parquet_part import ParquetPart
from lazydelta.predicate import BoundColumn, BoundPredicate, FileFacts
from lazydelta.protocol.partition_values import raw_partition_column
from lazydelta.protocol.statistics import (
    ColumnBounds,
    FileStatistics,
    StatsColumn,
    statistics_from_json,
    statistics_from_struct,
)
from lazydelta.scan.report import ScanTally
from lazydelta.sidecar.read.range_facts import (
    named_columns,
    named_periods,
    only_where,
    possible_ranges,
    range_bounds,
)

_PARTITIONS = "add.partitionValues_parsed"
_SIDES: tuple[Side, Side] = ("min", "max")


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
    columns = {column.physical_path: _envelope(part, column) for column in named_columns(predicate)}
    periods = {
        period.physical_name: _one_period(part, period.physical_name) for period in named_periods(predicate)
    }
    if not any((*columns.values(), *periods.values())):
        return range(count)
    possible = possible_ranges(
        predicate,
        count,
        columns={path: bounds for path, bounds in columns.items() if bounds is not None},
        periods={name: bounds for name, bounds in periods.items() if bounds is not None},
    )
    return [int(index) for index in np.flatnonzero(possible)]


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


def _envelope(part: ParquetPart, column: BoundColumn) -> ColumnBounds | None:
    """The least minimum and greatest maximum of each row group, where every file in it has both."""
    if column.type_name in ("float", "double"):
        return None  # NaN is left out of Parquet's bounds without being counted
    low, high = _leaf_names(column)
    low_leaf, high_leaf = _leaf(part, low), _leaf(part, high)
    if low_leaf is None or high_leaf is None:
        return None
    return range_bounds(
        column,
        low=only_where(chunk_bounds(part.metadata, low_leaf, "min"), _is_whole(part, low_leaf)),
        high=only_where(chunk_bounds(part.metadata, high_leaf, "max"), _is_whole(part, high_leaf)),
        least_high=chunk_bounds(part.metadata, high_leaf, "min"),
        is_zone_certain=False,  # the writer typed partition values by a zone of its own
    )


def _one_period(part: ParquetPart, name: str) -> ColumnBounds | None:
    """The period of each row group whose files all have the same; between two there may be any text."""
    leaf = _leaf(part, f"{_PARTITIONS}.{name}")
    if leaf is None:
        return None
    low, high = (chunk_bounds(part.metadata, leaf, side) for side in _SIDES)
    if not pa.types.is_string(low.type):
        return None
    is_one = pc.fill_null(pc.equal(low, high), False).to_numpy(zero_copy_only=False)
    texts = only_where(low, is_one & _is_whole(part, leaf))
    return ColumnBounds(min=texts, max=texts)


def _leaf_names(column: BoundColumn) -> tuple[str, str]:
    dotted = ".".join(column.physical_path)
    if column.is_partition:
        return f"{_PARTITIONS}.{dotted}", f"{_PARTITIONS}.{dotted}"
    return f"add.{STATS_PARSED}.minValues.{dotted}", f"add.{STATS_PARSED}.maxValues.{dotted}"


def _leaf(part: ParquetPart, name: str) -> int | None:
    """The position of a column; None also where a dot in a name makes two columns sound alike."""
    is_clear = len(part.leaves) == part.metadata.num_columns and "add.path" in part.leaves
    return part.leaves.get(name) if is_clear else None


def _is_whole(part: ParquetPart, leaf: int) -> Mask:
    """Row groups in which every file has a value there: Parquet's bounds pass over nulls."""
    others = chunk_null_counts(part.metadata, part.leaves["add.path"])
    nulls = chunk_null_counts(part.metadata, leaf)
    is_whole: Mask = (nulls >= 0) & (nulls == others)
    return is_whole
