"""What many files may hold in a column, told by one range: wide enough for each of them.

Why: a part or row group is judged by the same predicate as a file, but a range of files says less. A maximum
that a writer cut off is a prefix, and the greatest of many prefixes need not cover the others.
Contract: one-sided, in the column's type of today; null where the range tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import Mask
from lazydelta.predicate import BoundColumn, BoundPredicate, FileFacts, columns_of
from lazydelta.predicate.periods import GeneratedPeriod
from lazydelta.predicate.ranges import INT64_DIGITS, INT64_MAX, INT64_MIN
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.statistics import ColumnBounds, FileStatistics
from lazydelta.sidecar.format.column_paths import Path
from lazydelta.sidecar.format.conform import widened
from lazydelta.sidecar.format.manifest import Part, ZoneBounds

_WITHOUT_BOUNDS = frozenset({"", "variant", "void"})
_DAY_US = 86_400_000_000
# Ends a text that old writers cut, and sorts below the characters past U+FFFF.
_REPLACEMENT = "\ufffd"


def named_columns(predicate: BoundPredicate) -> list[BoundColumn]:
    """The columns that the predicate names, each once."""
    return list(dict.fromkeys(columns_of(predicate.root)))


def named_periods(predicate: BoundPredicate) -> Iterator[GeneratedPeriod]:
    """The generated time columns that tell of a column that the predicate names, each once."""
    return iter(dict.fromkeys(c.period for c in columns_of(predicate.root) if c.period is not None))


def zone_of(part: Part, path: Path) -> ZoneBounds | None:
    """What the manifest tells of a column over the whole part."""
    return next((zone for zone in part.bounds if zone.path == path), None)


def possible_ranges(
    predicate: BoundPredicate,
    count: int,
    *,
    columns: Mapping[Path, ColumnBounds],
    periods: Mapping[str, ColumnBounds],
    num_files: pa.Array | None = None,
) -> Mask:
    """Which of `count` ranges may hold a file that matches.

    `num_files` makes sense of null counts of partition columns: they count files there, not rows.
    """
    statistics = FileStatistics(row_count=count, num_records=num_files, tight_bounds=None, columns=columns)
    facts = FileFacts(row_count=count, statistics=statistics, period_ranges=periods)
    return predicate.might_match(facts)


def range_bounds(
    column: BoundColumn,
    *,
    low: pa.Array | None,
    high: pa.Array | None,
    least_high: pa.Array | None = None,
    null_count: pa.Array | None = None,
    is_zone_certain: bool = True,
) -> ColumnBounds:
    """Bounds of each range: `low` the least of the files' minima, `high` the greatest of their maxima.

    `least_high` is the least of the maxima, where known. Without `is_zone_certain`, the range was typed under
    another zone than files are read by.
    """
    if column.type_name in _WITHOUT_BOUNDS:
        return ColumnBounds(null_count=null_count)
    wanted = arrow_type(PrimitiveType(column.type_name))
    if high is not None and pa.types.is_string(wanted) and pa.types.is_string(high.type):
        # Partition values are never cut. The maximum of a file is not below its minimum, cut or not.
        least = low if least_high is None else least_high
        high = high if column.is_partition else _covering(high, least)
    low, high = _of_today(column, low, wanted, side="min"), _of_today(column, high, wanted, side="max")
    if pa.types.is_decimal(wanted) and not column.is_partition:
        low, high = _within_integers(low), _within_integers(high)
    if column.is_partition and column.type_name == "timestamp" and not is_zone_certain:
        low, high = _moved(low, -_DAY_US), _moved(high, _DAY_US)
    return ColumnBounds(min=low, max=high, null_count=null_count)


def only_where(values: pa.Array | None, is_sound: Mask) -> pa.Array | None:
    """The values, null where they prove nothing."""
    if values is None or is_sound.all():
        return values
    indices = pa.array(np.arange(len(values)), pa.int64(), mask=~is_sound)
    return values.take(indices)


def _of_today(
    column: BoundColumn, bound: pa.Array | None, wanted: pa.DataType, *, side: str
) -> pa.Array | None:
    if bound is None or bound.type.equals(wanted):
        return bound
    if column.is_partition and pa.types.is_floating(bound.type):
        return None  # the text may have more digits than the narrower type kept of it
    return widened(bound, wanted, side=side)


def _covering(greatest: pa.Array, least: pa.Array | None) -> pa.Array:
    """Of each range the shortest text that some maximum in it may be, and that begins the greatest one.

    A cut maximum stands for every text that begins with it. All maxima but those that begin the greatest one
    lie below it with whatever follows them; of those, the shortest one reaches furthest.
    """
    lows = [""] * len(greatest) if least is None else [text or "" for text in least.to_pylist()]
    pairs = zip(greatest.to_pylist(), lows, strict=True)
    return pa.array(
        [None if text is None else _shortest_start(text, low) for text, low in pairs], pa.string()
    )


def _shortest_start(greatest: str, least: str) -> str:
    """The shortest start of `greatest` that is not below `least`, or that a writer ended with U+FFFD."""
    pairs = enumerate(zip(greatest, least, strict=False))
    shared = next((at for at, (one, other) in pairs if one != other), min(len(greatest), len(least)))
    length = shared if shared == len(least) else shared + 1
    cut = next((at for at, one in enumerate(greatest) if one >= _REPLACEMENT), len(greatest))
    return greatest[: min(length, cut)]


def _within_integers(bound: pa.Array | None) -> pa.Array | None:
    """Past 64-bit integers the last of them: a file beside may have it for more than it says (ranges.py)."""
    if bound is None or bound.type.precision - bound.type.scale < INT64_DIGITS:
        return bound
    last, first = (pa.scalar(Decimal(end), bound.type) for end in (INT64_MAX, INT64_MIN))
    return pc.max_element_wise(pc.min_element_wise(bound, last, skip_nulls=False), first, skip_nulls=False)


def _moved(moments: pa.Array | None, by_us: int) -> pa.Array | None:
    if moments is None:
        return None
    ticks = moments.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    limit = np.iinfo(np.int64)
    moved = np.clip(ticks, limit.min + _DAY_US, limit.max - _DAY_US) + by_us
    mask = moments.is_null().to_numpy(zero_copy_only=False)
    return pa.array(moved, pa.int64(), mask=mask).view(moments.type)
