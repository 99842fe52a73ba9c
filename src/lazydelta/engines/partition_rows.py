"""The partition values of many files at once, typed, and what a filter on them says of each file.

Contract: a value that cannot be read as its column's type is no value: `is_told` is false there, and nothing
may be concluded for the file.
Spec: PROTOCOL.md, "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import Mask
from lazydelta.predicate import BoundPredicate
from lazydelta.predicate.rows import matches
from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.rows.source import RowSource


class PartitionRows(msgspec.Struct, frozen=True, eq=False):
    """One row for each file."""

    values: dict[str, pa.Array]  # by column
    is_told: Mask


def partition_rows(source: RowSource, files: pa.RecordBatch, names: Iterable[str]) -> PartitionRows:
    """The values of these partition columns; the batch has `partition_values`."""
    values, is_told = {}, np.ones(files.num_rows, np.bool_)
    for name in names:
        field = source.snapshot.schema.field(name)
        assert field is not None, "Delta partitions by columns of the schema"
        assert isinstance(field.type, PrimitiveType), "Delta partitions by primitive columns alone"
        raw = raw_partition_column(files.column("partition_values"), field.name)
        typed = parse_partition_column(raw, field.type, time_zone=source.config.time_zone)
        is_read = pc.or_(typed.is_valid(), pc.equal(pc.fill_null(raw, ""), ""))
        is_told &= is_read.to_numpy(zero_copy_only=False)
        values[name] = typed
    return PartitionRows(values, is_told)


def all_rows_match(source: RowSource, files: pa.RecordBatch, predicate: BoundPredicate) -> pa.Array:
    """For each file whether its rows match, all or none; null where that cannot be told.

    The filter is one that partition values decide.
    """
    assert predicate.decided_by_partitions
    found = partition_rows(source, files, {path[0] for path in predicate.columns})
    # A filter that names no column is the same for every file: any batch of as many rows will do.
    rows = pa.RecordBatch.from_pydict(found.values) if found.values else files
    match = pc.fill_null(matches(predicate, rows), False)
    return pc.if_else(pa.array(found.is_told), match, pa.scalar(None, pa.bool_()))
