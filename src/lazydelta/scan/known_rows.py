"""Rows that are kept between queries, with what makes the next query on them cheap.

Why: a predicate on partition values has one verdict for each combination of values, and there are few of
them; a tail has thousands of files.
Contract: the rows that come out are those that `skipping.possible_rows` would leave, in the same order, and
they are counted alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.file_rows import STATS_PARSED, Mask, deletion_vectors
from lazydelta.predicate import BoundPredicate, FileFacts
from lazydelta.protocol.partition_values import raw_partition_column
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.report import ScanTally

Paths = tuple[tuple[str, ...], ...]


class PartitionIndex(msgspec.Struct, frozen=True, eq=False):
    """Which combination of partition values each row has."""

    codes: npt.NDArray[np.intp]
    raw: dict[str, pa.StringArray]  # physical name → the value in each combination

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return len(next(iter(self.raw.values())))


class KnownRows(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One batch of live adds."""

    rows: pa.RecordBatch
    stats_paths: Paths = ()  # of typed statistics, where the rows have such

    @cached_property
    def keys(self) -> FileKeys:
        """The keys of the files."""
        return FileKeys(self.rows.column("path"), deletion_vectors(self.rows))

    @cached_property
    def partitions(self) -> PartitionIndex | None:
        """None where the files have no partition values, or they were not asked for."""
        if "partition_values" not in self.rows.schema.names:
            return None
        return _index(self.rows.column("partition_values"))

    @property
    def size_bytes(self) -> int:
        """The memory it takes, about."""
        return int(self.rows.get_total_buffer_size()) + 40 * int(self.rows.num_rows)

    def tells(self, columns: Sequence[str], stats_paths: Sequence[tuple[str, ...]]) -> bool:
        """Whether the rows have these columns, and statistics of these."""
        names = {*self.rows.schema.names, "deletion_vector"}
        has_stats = "stats" in names or (STATS_PARSED in names and set(stats_paths) <= set(self.stats_paths))
        return set(columns) <= names and (has_stats or not stats_paths)

    def without(self, dead: Mask) -> KnownRows:
        """The others."""
        if not dead.any():
            return self
        rows = self.rows.filter(pa.array(~dead))
        return KnownRows(rows=rows, stats_paths=self.stats_paths)

    def possible(
        self, request: RowRequest, predicate: BoundPredicate | None, tally: ScanTally
    ) -> pa.RecordBatch:
        """The rows that the request does not rule out, which judges by `predicate`, with what it needs."""
        wanted = {*request.columns, "deletion_vector"}
        if request.stats_paths:
            wanted |= {"stats", STATS_PARSED}
        rows = self.rows.select([name for name in self.rows.schema.names if name in wanted])
        if request.keep_rows is None or rows.num_rows == 0:
            return rows
        index = self.partitions
        if predicate is not None and predicate.partition_columns and index is not None:
            kept = _verdicts(index, predicate)[index.codes]
            tally.skipped("partition", len(kept) - int(kept.sum()))
            rows = rows.filter(pa.array(kept))
            if not predicate.stats_columns or rows.num_rows == 0:
                return rows
        return rows.filter(pa.array(request.keep_rows(rows, None)))


def joined_rows(pieces: Sequence[KnownRows]) -> tuple[KnownRows, ...]:
    """Neighbours with the same columns as one; `deletion_vector` may be missing in some."""
    runs: list[list[KnownRows]] = []
    for piece in pieces:
        if piece.rows.num_rows == 0:
            continue
        if runs and _kind(runs[-1][0]) == _kind(piece):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return tuple(_joined(run) for run in runs)


def _joined(run: Sequence[KnownRows]) -> KnownRows:
    if len(run) == 1:
        return run[0]
    tables = [pa.Table.from_batches([piece.rows]) for piece in run]
    joined = pa.concat_tables(tables, promote_options="default").combine_chunks()
    return KnownRows(rows=joined.to_batches()[0], stats_paths=run[0].stats_paths)


def _kind(piece: KnownRows) -> tuple[object, ...]:
    fields = [(field.name, field.type) for field in piece.rows.schema if field.name != "deletion_vector"]
    return (*fields, piece.stats_paths)


def _index(maps: pa.MapArray) -> PartitionIndex | None:
    names = pc.unique(maps.keys).drop_null().to_pylist()
    if not names:
        return None
    columns = {name: raw_partition_column(maps, name) for name in names}
    codes = np.zeros(len(maps), np.int64)
    for column in columns.values():
        distinct = column.dictionary_encode(null_encoding="encode")
        codes = codes * (len(distinct.dictionary) + 1) + distinct.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(codes, return_inverse=True)  # small again, so that products do not overflow
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    at = pa.array(first, pa.int64())
    return PartitionIndex(codes, {name: column.take(at) for name, column in columns.items()})


def _verdicts(index: PartitionIndex, predicate: BoundPredicate) -> Mask:
    """For each combination, whether its files might match."""
    absent = pa.nulls(index.size, pa.string())
    values = {name: index.raw.get(name, absent) for name in predicate.partition_columns}
    return predicate.might_match_partitions(FileFacts(row_count=index.size, partition_values=values))
