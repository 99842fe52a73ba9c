"""Dates and times that Spark wrote in the hybrid calendar: Julian up to 1582-10-04, then Gregorian.

Why: Spark 2, and later ones whose rebase mode for writing is LEGACY, say so in the footer of a file. Read
as Gregorian such values are silently off by days, times before 1900 by the minutes of a local mean time.
Contract: dates are rebased exactly, as Spark rebases them: 29 February of a year that has none is 1 March.
So are times where the footer says that they were written in UTC; other times before 1900, from when on no
zone differs, are an `OldTimeError`. Times without a zone were never written so. Files without a mark cost
nothing; without a version of Spark, and without a mark, a file is Gregorian, as it is to Spark 4.
Spec: Spark's `DataSourceUtils.datetimeRebaseSpec` and `int96RebaseSpec`, `RebaseDateTime`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as kinds

from lazydelta.rows.leaf_casts import Cast

VERSION, DATE_TIME, INT96 = (
    b"org.apache.spark.version",
    b"org.apache.spark.legacyDateTime",
    b"org.apache.spark.legacyINT96",
)
_ZONE = b"org.apache.spark.timeZone"
_UTC = (b"UTC", b"Etc/UTC", b"GMT", b"Z")
_GREGORIAN_SINCE_DAYS = -141_427  # 1582-10-15
_ALIKE_SINCE_US = -2_208_988_800_000_000  # 1900-01-01T00:00:00Z: from here on in every zone
_DAY_US = 86_400_000_000
_JULIAN_MARCH_OF_YEAR_0 = -719_470  # in days since 1970
_JULIAN_FOUR_YEARS = 1461  # days


class OldTimeError(Exception):
    """A column has a time whose meaning depends on the writer's zone; the argument names the column."""


class LegacyCalendar(msgspec.Struct, frozen=True):
    """What the footer of one file says."""

    has_dates: bool  # dates, and times that are INT64
    has_int96: bool
    is_utc: bool

    def holds(self, stored: pa.DataType, wanted: pa.DataType) -> bool:
        """Whether a leaf of the file may be in the hybrid calendar."""
        if kinds.is_date32(stored):
            return self.has_dates
        if not kinds.is_timestamp(stored):
            return False
        # Of those without a zone in the file only INT96 becomes a time with one.
        return self.has_dates if stored.tz is not None else self.has_int96 and wanted.tz is not None

    def cast(self, stored: pa.DataType, plain: Cast, column: str) -> Cast:
        """`plain`, with the rebasing of a leaf that this calendar holds."""
        if kinds.is_date32(stored):
            return lambda array: plain(_rebased_dates(array))
        return lambda array: _rebased_times(plain(array), column, is_utc=self.is_utc)


def legacy_calendar(footer: Mapping[bytes, bytes] | None) -> LegacyCalendar | None:
    """By the key-value metadata of a file; None for almost all."""
    if not footer or (VERSION not in footer and DATE_TIME not in footer and INT96 not in footer):
        return None
    version = footer.get(VERSION)
    found = LegacyCalendar(
        has_dates=DATE_TIME in footer or _is_before(version, (3, 0)),
        has_int96=INT96 in footer or _is_before(version, (3, 1)),
        is_utc=footer.get(_ZONE) in _UTC,
    )
    return found if found.has_dates or found.has_int96 else None


def known_bounds(bounds: pa.Array) -> pa.Array:
    """Bounds out of a marked footer, in the table's type: those before the cut-off say nothing."""
    return pc.if_else(_is_old(bounds), pa.scalar(None, bounds.type), bounds)


def gregorian_days(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days since 1970 in the hybrid calendar as those that have the same date in the Gregorian one."""
    # Years that begin in March: the day that one calendar has and the other lacks is the last of its year.
    years = (4 * (days - _JULIAN_MARCH_OF_YEAR_0) + 3) // _JULIAN_FOUR_YEARS
    return np.where(days < _GREGORIAN_SINCE_DAYS, days + 2 - years // 100 + years // 400, days)


def _rebased_dates(dates: pa.Array) -> pa.Array:
    if not pc.any(_is_old(dates)).as_py():
        return dates
    days = dates.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return _with_nulls(gregorian_days(days).astype(np.int32), dates)


def _rebased_times(times: pa.Array, column: str, *, is_utc: bool) -> pa.Array:
    if not pc.any(_is_old(times)).as_py():
        return times
    if not is_utc:
        raise OldTimeError(column)
    ticks = times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    days = ticks // _DAY_US
    return _with_nulls(ticks + (gregorian_days(days) - days) * _DAY_US, times)


def _with_nulls(values: NDArray[np.int32] | NDArray[np.int64], like: pa.Array) -> pa.Array:
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(values, mask=mask).view(like.type)


def _is_old(values: pa.Array) -> pa.Array:
    """Null where the value is."""
    if kinds.is_date32(values.type):
        return pc.less(values.view(pa.int32()), pa.scalar(_GREGORIAN_SINCE_DAYS, pa.int32()))
    return pc.less(values.view(pa.int64()), pa.scalar(_ALIKE_SINCE_US, pa.int64()))


def _is_before(version: bytes | None, release: tuple[int, int]) -> bool:
    if version is None:
        return False
    return tuple(map(int, re.findall(rb"\d+", version)[:2])) < release
