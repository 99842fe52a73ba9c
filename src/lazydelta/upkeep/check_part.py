"""One part of a sidecar against what the manifest, and its own footer, say of it.

Why: readers rule out parts and row groups by these numbers without looking inside: a wrong one loses files.
Contract: rows come in file order, a row group at a time, dead rows too: a part's numbers are of all its rows
as they were written. A bound must hold; it need not be the tightest. The writer's own arithmetic is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lazydelta.predicate.periods import period_format
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.schema import StructType
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.bound_text import bound_text
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.layout import field_kind, field_path, layout_of
from lazydelta.sidecar.format.manifest import Manifest, Part, RowGroup, ZoneBounds
from lazydelta.sidecar.format.names import parse_name
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.format.part_writer import PartFacts, row_group_span
from lazydelta.upkeep.findings import Findings

_SIDES = ("min", "max")
_KINDS = ("min", "max", "null_count", "partition", "raw_partition")
_FIXED: pa.Schema = layout_of(Metadata(), StructType(()), stats_paths=(), time_column=None).schema


class _Span(msgspec.Struct):
    """The least and greatest value of a column so far, and how many rows have none."""

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    lacking: int = 0

    def widen(self, low: pa.Scalar, high: pa.Scalar, lacking: int) -> None:
        self.low = low if self.low is None or not self.low.is_valid else _least(self.low, low)
        self.high = high if self.high is None or not self.high.is_valid else _greatest(self.high, high)
        self.lacking += lacking


class PartCheck:
    """The checks of one part: `footer` first, then `row_group` for each in order, `end` last."""

    def __init__(
        self,
        reader: PartReader,
        row_groups: Sequence[RowGroup],
        *,
        order_type: str | None,
        findings: Findings,
    ) -> None:
        self._reader = reader
        self._part: Part = reader.part
        self._row_groups = dict(enumerate(row_groups[: reader.part.num_row_groups]))
        self._order_type = order_type
        self._findings = findings
        self._schema = _checked_schema(reader)
        self._roles = {(field_kind(f), field_path(f)): f.name for f in self._schema}
        self._order, self._order_max = self._order_columns(reader.facts)
        self._spans = {name: _Span() for name in self._schema.names}
        self._order_lacking = 0
        self._empties: dict[str, int] = {}  # empty text of a partition column that has a typed value
        self._formats: dict[str, set[str | None]] = {}  # of the periods in a partition column
        self._unread: dict[str, int] = {}  # text of a partition column that has none, or is empty
        self._live_bytes = 0
        self._last: tuple[pa.Scalar, pa.Scalar] | None = None

    def footer(self, manifest: Manifest) -> None:
        """What can be told without reading rows."""
        part, facts, metadata = self._part, self._reader.facts, self._reader.metadata
        parsed = parse_name(part.file)
        assert parsed is not None, "a manifest was checked for names of parts"
        claims: list[tuple[str, object, object]] = [
            ("build", part.build, facts.build),
            ("build in its name", parsed.build, facts.build),
            ("number in its name", parsed.number, facts.number),
            ("version in its name", parsed.version, facts.version),
            ("table id", manifest.table_id, facts.table_id),
            ("schema hash", part.schema_hash, facts.schema_hash),
            ("footer length", part.footer_bytes, metadata.serialized_size + 8),
        ]
        if part.build == manifest.build:  # without the manifest, parts of one build are recognised by these
            claims += [
                ("number of files", manifest.num_files, facts.num_files),
                ("binding", manifest.binding, facts.binding),
                ("layout", manifest.schema_hash, facts.schema_hash),
                ("order column", manifest.order_column, facts.order_column),
            ]
        for label, told, found in claims:
            if told != found:
                self._note(f"its {label} is {found!r}, the manifest says {told!r}")
        if part.stats_file is not None:
            found_length = self._reader.stats_metadata.serialized_size + 8
            if found_length != part.stats_footer_bytes:
                self._note(
                    f"the statistics' footer has {found_length:,} bytes, not {part.stats_footer_bytes:,}"
                )
        for index, told_group in self._row_groups.items():
            self._placement(index, told_group, metadata.row_group(index))

    def row_group(self, index: int, rows: pa.Table, live: pa.Table) -> None:
        """The rows of one row group, and those of them that are live."""
        self._live_bytes += pc.sum(live.column("size"), min_count=0).as_py()
        self._order_of_rows(index, rows)
        lacking = self._widen(index, rows)
        self._count_unclear(rows)
        if self._order is None or self._order_max is None:
            return
        self._order_lacking += lacking
        told = self._row_groups.get(index)
        if told is not None:
            self._row_group_range(index, rows, told, lacking)

    def end(self) -> None:
        """What the manifest says of the part as a whole."""
        part = self._part
        if part.total_bytes != self._live_bytes:
            self._note(
                f"its live files have {self._live_bytes:,} bytes, the manifest says {part.total_bytes:,}"
            )
        if self._order is not None and self._order_max is not None:
            low, high = self._spans[self._order].low, self._spans[self._order_max].high
            self._bound("order_min", part.order_min, self._order_type, low, "min")
            self._bound("order_max", part.order_max, self._order_type, high, "max")
            if part.order_nulls != self._order_lacking:
                self._note(f"order_nulls is {part.order_nulls}, but {self._order_lacking} rows have no range")
        for bounds in part.bounds:
            self._zone(bounds)

    def _note(self, what: str, kind: str = "part") -> None:
        self._findings.note(kind, self._part.file, what)

    def _order_columns(self, facts: PartFacts) -> tuple[str | None, str | None]:
        name = facts.order_column
        if name is None:
            return None, None
        if name not in self._schema.names:
            self._note(f"it has no column {name!r} to be sorted by")
            return None, None
        field = self._schema.field(name)
        other = self._roles.get(("max", field_path(field))) if field_kind(field) == "min" else name
        return name, other

    def _placement(self, index: int, told: RowGroup, found: pq.RowGroupMetaData) -> None:
        start, end = row_group_span(found)
        if (told.byte_offset, told.byte_length) != (start, end - start):
            place = f"{told.byte_length:,} bytes at {told.byte_offset:,}"
            self._note_group(index, f"lies in {end - start:,} bytes at {start:,}, the manifest says {place}")
        if told.num_rows != found.num_rows:
            self._note_group(index, f"has {found.num_rows:,} rows, the manifest says {told.num_rows:,}")

    def _note_group(self, index: int, what: str) -> None:
        self._note(f"row group {index} {what}", "row group")

    def _order_of_rows(self, index: int, rows: pa.Table) -> None:
        """Rows ascend by the order column, nulls first, then by path; within and across row groups."""
        paths = _joined(rows.column("path"), None if self._last is None else self._last[1])
        order = None
        if self._order is not None:
            order = _joined(rows.column(self._order), None if self._last is None else self._last[0])
        wrong = np.flatnonzero(~_ascends(order, paths))
        if len(wrong):
            row = int(wrong[0]) + 1
            self._note_group(index, f"is not sorted at {paths[row].as_py()}")
        if rows.num_rows:
            self._last = (pa.scalar(None) if order is None else order[-1], paths[-1])

    def _widen(self, index: int, rows: pa.Table) -> int:
        """Every column's span grows; the rows of this group without an order range are counted."""
        counted = self._reader.nan_counts
        for field in rows.schema:
            column = rows.column(field.name)
            nans = _nan_count(column)
            told = counted.get(field.name, [])
            if nans != (told[index] if index < len(told) else 0):
                self._note_group(index, f"has {nans} NaN in {field.name}, its footer counts otherwise")
            if field_kind(field) in {"min", "max", "partition"}:
                extremes = pc.min_max(column)
                self._spans[field.name].widen(extremes["min"], extremes["max"], column.null_count + nans)
        self._footer_statistics(index, rows)
        return self._lacking_order(rows)

    def _lacking_order(self, rows: pa.Table) -> int:
        if self._order is None or self._order_max is None:
            return 0
        lacks = pc.or_(
            *(pc.is_null(rows.column(n), nan_is_null=True) for n in (self._order, self._order_max))
        )
        return int(pc.sum(lacks, min_count=0).as_py())

    def _footer_statistics(self, index: int, rows: pa.Table) -> None:
        """Parquet's own bounds and null counts, by which readers skip row groups, too."""
        for metadata in {id(m): m for m in (self._reader.metadata, self._reader.stats_metadata)}.values():
            group = metadata.row_group(index)
            for at in range(group.num_columns):
                chunk = group.column(at)
                name = chunk.path_in_schema
                if name not in rows.schema.names or not chunk.is_stats_set:
                    continue
                problem = _statistics_problem(chunk.statistics, rows.column(name))
                if problem is not None:
                    self._note_group(index, f"has a footer that is wrong on {name}: {problem}")

    def _count_unclear(self, rows: pa.Table) -> None:
        for (kind, path), name in self._roles.items():
            if kind != "partition":
                continue
            raw = rows.column(self._roles.get(("raw_partition", path), name))
            if not pa.types.is_string(raw.type):
                continue
            typed = rows.column(name)
            is_empty = pc.fill_null(pc.equal(raw, ""), False)
            is_unread = pc.and_(raw.is_valid(), pc.is_null(typed, nan_is_null=True))
            self._empties[name] = self._empties.get(name, 0) + _count(pc.and_(is_empty, typed.is_valid()))
            self._unread[name] = self._unread.get(name, 0) + _count(pc.or_(is_empty, is_unread))
            texts = pc.unique(raw).drop_null()
            if len(texts):
                self._formats.setdefault(name, set()).add(period_format(texts))

    def _row_group_range(self, index: int, rows: pa.Table, told: RowGroup, lacking: int) -> None:
        assert self._order is not None
        low = pc.min_max(rows.column(self._order))["min"]
        high = pc.min_max(rows.column(self._order_max))["max"]
        for label, text, found, side in (
            ("event_hour_min", told.event_hour_min, low, "min"),
            ("event_hour_max", told.event_hour_max, high, "max"),
        ):
            problem = _bound_problem(text, self._order_type, found, side)
            if problem is not None:
                self._note_group(index, f"{label} {problem}")
        if told.event_hour_nulls != lacking:
            self._note_group(
                index, f"has {lacking} rows without a range, the manifest says {told.event_hour_nulls}"
            )

    def _bound(
        self, label: str, text: str | None, type_name: str | None, found: pa.Scalar | None, side: str
    ) -> None:
        problem = None if found is None else _bound_problem(text, type_name, found, side)
        if problem is not None:
            self._note(f"{label} {problem}")

    def _zone(self, bounds: ZoneBounds) -> None:
        label = ".".join(bounds.path)
        partition = self._roles.get(("partition", bounds.path))
        low_name = partition or self._roles.get(("min", bounds.path))
        high_name = partition or self._roles.get(("max", bounds.path))
        if low_name is None or high_name is None:
            self._note(f"the manifest bounds {label}, which it has no column for")
            return
        low, high = self._spans[low_name], self._spans[high_name]
        self._bound(f"the least {label}", bounds.min, bounds.type, low.low, "min")
        self._bound(f"the greatest {label}", bounds.max, bounds.type, high.high, "max")
        empties = self._empties.get(partition, 0) if partition is not None else 0
        for side, text, told, lacking in (
            ("least", bounds.min, bounds.rows_without_min, low.lacking + empties),
            ("greatest", bounds.max, bounds.rows_without_max, high.lacking + empties),
        ):
            expected = self._part.num_rows if text is None else lacking
            if told != expected:
                self._note(f"{expected} rows have no {side} {label}, the manifest counts {told}")
        if bounds.is_partition and (partition is None or self._unread.get(partition, 0)):
            self._note(f"the manifest takes rows without {label} for nulls, but some are not")
        told_format = bounds.period_format
        if told_format is not None and self._formats.get(partition or "") != {told_format}:
            self._note(f"the manifest takes every {label} for a period as {told_format}, but some are not")


def row_groups_of(reader: PartReader) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    """Every row group: its number, its rows, and its live rows."""
    live = np.ones(reader.part.num_rows, np.bool_)
    for first, count in zip(reader.part.removed[::2], reader.part.removed[1::2], strict=True):
        live[first : first + count] = False
    for group in reader.row_groups():
        batches = list(reader.batches(row_groups=[group.index], live_only=False))
        rows = pa.Table.from_batches(batches, reader.schema)
        if rows.num_rows != group.num_rows:
            where = f"{reader.part.file}, row group {group.index}"
            raise damaged(f"a row group has {rows.num_rows:,} rows instead of {group.num_rows:,}", where)
        mask = live[group.first_row : group.first_row + group.num_rows]
        yield group.index, rows, rows if mask.all() else rows.filter(pa.array(mask))


def _checked_schema(reader: PartReader) -> pa.Schema:
    """The part's columns: the fixed ones as they must be, the others each with what it stands for."""
    schema = reader.schema
    for fixed in _FIXED:
        at = schema.get_field_index(fixed.name)
        if at < 0 or not schema.field(at).type.equals(fixed.type):
            raise damaged(f"a part has no column {fixed.name} of type {fixed.type}", reader.part.file)
    unknown = [f.name for f in schema if f.name not in _FIXED.names and field_kind(f) not in _KINDS]
    if unknown:
        raise damaged(f"the column {unknown[0]} of a part stands for nothing", reader.part.file)
    return schema


def _bound_problem(text: str | None, type_name: str | None, found: pa.Scalar, side: str) -> str | None:
    """Why a bound is not true of the value that lies outermost."""
    if text is None:
        # Null means that no row has a value; only one that has no text may go untold.
        return None if bound_text(found) is None else f"is null, but a row has {found.as_py()!r}"
    try:
        value = values_from_text(pa.array([text], pa.string()), type_name or "")[0]
    except KeyError:
        return f"is of the unknown type {type_name!r}"
    if not value.is_valid:
        return f"is {text!r}, which is no {type_name}"
    if not value.type.equals(found.type):
        return f"is of type {type_name}, the column has {found.type}"
    if not found.is_valid:
        return None
    is_wrong = pc.less(found, value) if side == "min" else pc.greater(found, value)
    return f"is {text!r}, but a row has {found.as_py()!r}" if is_wrong.as_py() else None


def _statistics_problem(told: pq.Statistics, column: pa.ChunkedArray) -> str | None:
    if told.has_null_count and told.null_count != column.null_count:
        return f"{column.null_count} nulls, not {told.null_count}"
    extremes = pc.min_max(column)
    if not told.has_min_max or not extremes["min"].is_valid:
        return None
    try:
        low, high = (_footer_bound(told, side, column.type) for side in _SIDES)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        return "its bounds cannot be read"
    if pc.greater(low, extremes["min"]).as_py() or pc.less(high, extremes["max"]).as_py():
        return "its bounds do not hold"
    return None


def _footer_bound(told: pq.Statistics, side: str, kind: pa.DataType) -> pa.Scalar:
    if not pa.types.is_temporal(kind):
        return pa.scalar(getattr(told, side), kind)
    ticks = pa.int32() if kind.bit_width == 32 else pa.int64()  # Python has not every year
    return pa.array([getattr(told, f"{side}_raw")], ticks).view(kind)[0]


def _ascends(order: pa.Array | None, paths: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Of each row but the first: whether it may follow the row before it."""
    path_order = _flags(pc.less_equal(paths[:-1], paths[1:]))
    if order is None:
        return path_order
    before, after = order[:-1], order[1:]
    both_null = _flags(pc.and_(before.is_null(), after.is_null()))
    is_equal = _flags(pc.fill_null(pc.equal(before, after), False)) | both_null
    # A comparison with NaN is false both ways; NaN stands where the writer's sort put it.
    is_wrong = _flags(pc.fill_null(pc.greater(before, after), False)) | _flags(
        pc.and_(before.is_valid(), after.is_null())
    )
    return ~is_wrong & (~is_equal | path_order)


def _joined(column: pa.ChunkedArray, before: pa.Scalar | None) -> pa.Array:
    """The column as one array, behind the last value of the row group before it."""
    chunks = list(column.chunks)
    if before is not None:
        chunks.insert(0, pa.repeat(before, 1) if before.is_valid else pa.nulls(1, column.type))
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, column.type)


def _nan_count(column: pa.ChunkedArray) -> int:
    return _count(pc.is_nan(column)) if pa.types.is_floating(column.type) else 0


def _count(flags: pa.ChunkedArray) -> int:
    return int(pc.sum(flags, min_count=0).as_py())


def _flags(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)


def _least(one: pa.Scalar, other: pa.Scalar) -> pa.Scalar:
    return other if other.is_valid and pc.less(other, one).as_py() else one


def _greatest(one: pa.Scalar, other: pa.Scalar) -> pa.Scalar:
    return other if other.is_valid and pc.greater(other, one).as_py() else one
