"""The ranges of a build by Spark: where each task's rows begin, the same whenever the build is made again.

Why: Spark's own ranges differ from run to run, so that nothing of a build that was killed would fit into the
next one. Contract: boundaries follow from the checkpoint alone. They are taken from a sample that is chosen
by the hash of the path, bounded in size, sorted by Spark; a row's range is told by the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lazydelta import limits
from lazydelta.log.file_rows import RAW_PATH

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORDER = "order_key"
RANGE = "range"


class Boundary(msgspec.Struct, frozen=True, array_like=True):
    """The first key of a range."""

    order: str | None  # the order column's value as Spark writes it
    path: str  # as the log spells it


def sort_columns() -> list[Column]:
    """What rows are sorted by."""
    from pyspark.sql import functions as fn

    return [fn.col(ORDER).asc_nulls_first(), fn.col(RAW_PATH).asc()]


def boundaries(rows: DataFrame, num_files: int, part_count: int) -> list[Boundary]:
    """The first keys of all ranges but the first; `rows` have both keys."""
    from pyspark.sql import functions as fn

    wanted = min(limits.SPARK_SAMPLE_ROWS_MAX, limits.SPARK_SAMPLE_ROWS_PER_PART * part_count)
    step = max(1, num_files // wanted)
    chosen = rows.select(ORDER, RAW_PATH).where(fn.pmod(fn.xxhash64(RAW_PATH), fn.lit(step)) == 0)
    told = chosen.sort(*sort_columns()).select(fn.col(ORDER).cast("string"), RAW_PATH).toArrow()
    places = [number * told.num_rows // part_count for number in range(1, part_count)]
    found = [Boundary(told[0][at].as_py(), told[1][at].as_py()) for at in places if 0 < at < told.num_rows]
    return list(dict.fromkeys(found))


def with_range(rows: DataFrame, firsts: Sequence[Boundary]) -> DataFrame:
    """The rows with the number of their range."""
    from pyspark.sql import functions as fn

    kind = rows.schema[ORDER].dataType

    def is_before(first: Boundary) -> Column:
        order, path = fn.col(ORDER), fn.col(RAW_PATH)
        if first.order is None:
            return order.isNull() & (path < first.path)
        key = fn.lit(first.order).cast(kind)
        return order.isNull() | (order < key) | ((order == key) & (path < first.path))

    def place(low: int, high: int) -> Column:
        if low == high:
            return fn.lit(low)
        middle = (low + high) // 2
        return fn.when(is_before(firsts[middle]), place(low, middle)).otherwise(place(middle + 1, high))

    return rows.withColumn(RANGE, place(0, len(firsts)))
