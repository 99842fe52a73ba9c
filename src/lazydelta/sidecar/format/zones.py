"""Bounds of the zone-map columns while a part is written: per row group and over the part.

Why: Parquet's own minima and maxima pass over nulls and NaN, so a row group or part may be ruled out by them
only where no row lacks the bound. Somebody must count those rows; the writer sees them all.
Contract: `add` once per row group, in order; then the results.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.predicate.periods import period_format
from lazydelta.sidecar.format.bound_text import bound_text
from lazydelta.sidecar.format.layout import SidecarLayout, ZoneColumn
from lazydelta.sidecar.format.manifest import ZoneBounds


class OrderRange(msgspec.Struct, frozen=True, kw_only=True):
    """What a row group or part holds of the order column."""

    min: str | None = None
    max: str | None = None
    nulls: int = 0  # rows without one of the two


class ZoneGatherer:
    """Watches the row groups of one part go by."""

    def __init__(self, layout: SidecarLayout) -> None:
        self.order_ranges: list[OrderRange] = []
        self.nan_counts: dict[str, list[int]] = {}
        self.row_count = 0
        self._layout = layout
        self._bounds: dict[str, list[pa.Scalar]] = defaultdict(list)  # "min:<column>" → one per row group
        self._lacking: dict[str, int] = defaultdict(int)  # column → rows without a bound
        self._unclear: set[str] = set()  # partition columns with rows that lack a bound but are not null
        self._formats: dict[str, set[str | None]] = defaultdict(set)  # of periods, by partition column
        self._order_nulls = 0

    def add(self, rows: pa.Table) -> None:
        """The next row group."""
        self._count_nans(rows)
        self.row_count += rows.num_rows
        for zone in self._layout.zone_columns:
            self._add_side(rows, zone.min_column, "min")
            self._add_side(rows, zone.max_column, "max")
            for column in {zone.min_column, zone.max_column}:
                self._lacking[column] += rows.column(column).null_count + self._last_nans(column)
            if zone.is_partition:
                self._note_unclear(rows, zone)
        self.order_ranges.append(self._order_range(rows))

    def part_range(self) -> OrderRange:
        """The range of the whole part."""
        low, high = self._layout.order_column, self._layout.order_max_column
        if low is None or high is None:
            return OrderRange()
        return OrderRange(
            min=self._extreme(low, "min"), max=self._extreme(high, "max"), nulls=self._order_nulls
        )

    def zone_bounds(self) -> tuple[ZoneBounds, ...]:
        """Bounds of every zone column over the part."""
        return tuple(self._zone_bounds(zone) for zone in self._layout.zone_columns)

    def _zone_bounds(self, zone: ZoneColumn) -> ZoneBounds:
        low, high = self._extreme(zone.min_column, "min"), self._extreme(zone.max_column, "max")
        lacking = self._lacking[zone.min_column], self._lacking[zone.max_column]
        # A bound that has no text bounds nothing: then every row is without one.
        without = [
            self.row_count if text is None else count
            for text, count in zip((low, high), lacking, strict=True)
        ]
        is_clear = zone.min_column not in self._unclear and without == [*lacking]
        return ZoneBounds(
            path=zone.path,
            type=zone.type_name,
            min=low,
            max=high,
            rows_without_min=without[0],
            rows_without_max=without[1],
            is_partition=zone.is_partition and is_clear,
            period_format=self._period_format(zone.min_column),
        )

    def _period_format(self, column: str) -> str | None:
        """The one format of the periods in all row groups; None where some text is none."""
        formats = self._formats[column]
        return next(iter(formats)) if len(formats) == 1 else None

    def _order_range(self, rows: pa.Table) -> OrderRange:
        low, high = self._layout.order_column, self._layout.order_max_column
        if low is None or high is None:
            return OrderRange()
        lacks = _lacks(rows.column(low))
        if high != low:
            lacks = pc.or_(lacks, _lacks(rows.column(high)))
        nulls = _true_count(lacks)
        self._order_nulls += nulls
        return OrderRange(
            min=bound_text(self._bounds[f"min:{low}"][-1]),
            max=bound_text(self._bounds[f"max:{high}"][-1]),
            nulls=nulls,
        )

    def _add_side(self, rows: pa.Table, column: str, side: str) -> None:
        self._bounds[f"{side}:{column}"].append(pc.min_max(rows.column(column))[side])

    def _extreme(self, column: str, side: str) -> str | None:
        found = self._bounds[f"{side}:{column}"]
        if not found:
            return None
        return bound_text(pc.min_max(pa.array(found, found[0].type))[side])

    def _count_nans(self, rows: pa.Table) -> None:
        groups = len(self.order_ranges)
        for field in rows.schema:
            if not pa.types.is_floating(field.type):
                continue
            count = pc.sum(pc.is_nan(rows.column(field.name)), min_count=0).as_py()
            if count or field.name in self.nan_counts:
                self.nan_counts.setdefault(field.name, [0] * groups).append(count)

    def _note_unclear(self, rows: pa.Table, zone: ZoneColumn) -> None:
        """Empty text may be meant as null, other text may not parse: neither is a null, nor bounded.

        Text may also be a period, which bounds the time that it was made from.
        """
        raw, typed = rows.column(zone.raw_column), rows.column(zone.min_column)
        texts = pc.unique(typed).drop_null()
        if zone.type_name == "string" and len(texts):
            self._formats[zone.min_column].add(period_format(texts))
        is_empty = pc.fill_null(pc.equal(raw, ""), False)
        is_unread = pc.and_(raw.is_valid(), _lacks(typed))
        self._lacking[zone.min_column] += _true_count(pc.and_(is_empty, typed.is_valid()))
        if _true_count(pc.or_(is_empty, is_unread)):
            self._unclear.add(zone.min_column)

    def _last_nans(self, column: str) -> int:
        counts = self.nan_counts.get(column)
        return counts[-1] if counts else 0


def _lacks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_null(column, nan_is_null=True)


def _true_count(flags: pa.ChunkedArray) -> int:
    return int(pc.sum(flags, min_count=0).as_py())
