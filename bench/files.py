"""Data files by number: everything a log says about file i follows from i and the seed.

Why: removes in the tail name files of the checkpoint, and tests ask which files must be live; nobody has
to keep ten million descriptions for that.
Contract: pure and vectorised; widths are fixed (see `fixed_text`). Files below `spec.files` lie in the
checkpoint, older ones first, spread over days that end yesterday; the tail's files are of today.
Statistics look as Delta on Spark writes them (column order, millisecond timestamps, shortest doubles).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bench.fixed_text import Ints, Text, Words, digits, joined, looked_up, uuid_text, uuid_z85
from bench.spec import DAY_US, DEAD_FILES_FROM, TODAY_US, TableSpec

_LONGEST_FILE_US = 600_000_000
# Fifteen digits: a double keeps them, and they are its shortest text.
_VALUE_UNIT = 10**12


class Files:
    """Descriptions of the files with the given numbers, each computed when asked for."""

    def __init__(self, spec: TableSpec, numbers: Ints) -> None:
        self.spec = spec
        self.numbers = numbers.astype(np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size(self) -> Ints:
        """Bytes; few enough digits to be written as a real file when data is asked for."""
        if self.spec.data == "all":
            return 6_000 + self._hash(1, 4_000)
        return 1_000_000 + self._hash(1, 9_000_000)

    @property
    def size_digits(self) -> int:
        """The width of every size."""
        return 4 if self.spec.data == "all" else 7

    @property
    def num_records(self) -> Ints:
        """Rows in the file."""
        return 5 + self._hash(2, 5) if self.spec.data == "all" else 1_000 + self._hash(2, 9_000)

    @property
    def device_min(self) -> Ints:
        """The number in the smallest `device_id`."""
        return self._hash(3, 50_000)

    @property
    def device_max(self) -> Ints:
        """The number in the greatest `device_id`."""
        return 50_000 + self._hash(4, 50_000)

    @property
    def value_min(self) -> Ints:
        """The smallest `value` in units of 1e-12, 100 to 400; 15 digits, the last one never zero."""
        return 100 * _VALUE_UNIT + self._hash(5, 30 * _VALUE_UNIT) * 10 + 1 + self._hash(6, 9)

    @property
    def value_max(self) -> Ints:
        """The greatest `value` in the same units, 400 to 1,000, evenly spread."""
        return 400 * _VALUE_UNIT + self._hash(7, 60 * _VALUE_UNIT) * 10 + 1 + self._hash(8, 9)

    def reading_min(self, number: int) -> Ints:
        """The smallest value of one further column, 100 to 499."""
        return 100 + self._hash(1_000 + 2 * number, 400)

    def reading_max(self, number: int) -> Ints:
        """The greatest value of that column, 500 to 999."""
        return 500 + self._hash(1_001 + 2 * number, 500)

    @property
    def event_min_ms(self) -> Ints:
        """The first `event_time`, in milliseconds as the statistics have it."""
        spec, numbers = self.spec, self.numbers
        older = np.where(numbers >= DEAD_FILES_FROM, numbers - DEAD_FILES_FROM, numbers)
        older_step = spec.days * DAY_US // spec.files
        newer_step = spec.tail_minutes * 60_000_000 // (spec.tail_commits * spec.tail_adds + 1)
        start = TODAY_US - spec.days * DAY_US
        older_us = start + older * older_step
        newer_us = TODAY_US + (numbers - spec.files) * newer_step
        in_tail = (numbers >= spec.files) & (numbers < DEAD_FILES_FROM)
        return np.where(in_tail, newer_us, older_us) // 1000

    @property
    def event_max_ms(self) -> Ints:
        """The last `event_time`; never on the next day, nor in the next hour where hours partition."""
        first = self.event_min_ms
        unit = 3_600_000 if self.spec.event_hour else DAY_US // 1000
        last_of_unit = (first // unit + 1) * unit - 1
        last: Ints = np.minimum(first + self._hash(9, _LONGEST_FILE_US // 1000), last_of_unit)
        return last

    @property
    def modified_ms(self) -> Ints:
        """When the file was written: a minute after its first event."""
        return self.event_min_ms + 60_000

    @property
    def days(self) -> Ints:
        """The partition as days since 1970."""
        return self.event_min_ms // (DAY_US // 1000)

    @property
    def base_generation(self) -> Ints:
        """Deletion-vector generation in the checkpoint: 1 for every so many files, else 0."""
        every = self.spec.checkpoint_dv_every
        if not self.spec.has_dv or not every:
            return np.zeros(len(self), dtype=np.int64)
        has_one = (self._hash(10, every) == 0) & (self.numbers < self.spec.files)
        generation: Ints = has_one.astype(np.int64)
        return generation

    def date_text(self) -> Text:
        """`2026-02-10`."""
        return _day_text(self.days)

    def hour_text(self) -> Text:
        """`2026021022`: the partition `_event_hour`."""
        day = self.date_text()
        hour = digits(self.event_min_ms // 3_600_000 % 24, 2)
        return joined([day[:, 0:4], day[:, 5:7], day[:, 8:10], hour], len(self))

    def path_text(self) -> Text:
        """The path as Spark makes it."""
        parts: list[Text | bytes] = []
        if "date" in self.spec.partition_columns:
            parts += [b"date=", self.date_text(), b"/"]
        if "_event_hour" in self.spec.partition_columns:
            parts += [b"_event_hour=", self.hour_text(), b"/"]
        unique = uuid_text(self._word(11), self._word(12))
        parts += [b"part-", digits(self._hash(13, 200), 5), b"-", unique, b".c000.snappy.parquet"]
        return joined(parts, len(self))

    def dv_text(self, generation: Ints) -> Text:
        """`pathOrInlineDv` of that generation: a UUID in Z85."""
        return uuid_z85(*self.dv_words(generation))

    def dv_words(self, generation: Ints) -> tuple[Words, Words]:
        """The two words of the deletion vector file's UUID."""
        return self._word(20 + generation), self._word(40 + generation)

    def stats_text(self, *, tight: bool = True, escaped: bool = False) -> Text:
        """The statistics as JSON; `escaped` as they stand inside a commit's line."""
        parts: list[Text | bytes] = [
            b'{"numRecords":',
            self._num_records_text(),
            b',"minValues":{',
            *self._bound_text(self.device_min, self.event_min_ms, self.value_min, self.reading_min),
            b'},"maxValues":{',
            *self._bound_text(self.device_max, self.event_max_ms, self.value_max, self.reading_max),
            b'},"nullCount":{',
            ",".join(f'"{name}":0' for name in self.spec.stats_columns).encode(),
            b"}",
        ]
        if self.spec.has_dv:
            parts += [b',"tightBounds":true' if tight else b',"tightBounds":false']
        parts += [b"}"]
        if escaped:
            parts = [p.replace(b'"', b'\\"') if isinstance(p, bytes) else p for p in parts]
        return joined(parts, len(self))

    def num_records_only_text(self) -> Text:
        """What a remove keeps of the statistics, escaped."""
        return joined([b'{\\"numRecords\\":', self._num_records_text(), b"}"], len(self))

    def _bound_text(
        self, device: Ints, time_ms: Ints, value: Ints, reading: Callable[[int], Ints]
    ) -> list[Text | bytes]:
        """One side of the bounds of every column, without the braces."""
        parts: list[Text | bytes] = []
        if "device_id" in self.spec.stats_columns:
            parts += [b'"device_id":"sensor-', digits(device, 5), b'",']
        parts += [b'"event_time":"', _instant(time_ms), b'","value":']
        parts += [digits(value // _VALUE_UNIT, 3), b".", digits(value % _VALUE_UNIT, 12)]
        for number, name in enumerate(self.spec.readings):
            parts += [f',"{name}":'.encode(), digits(reading(number), 3)]
        return parts

    def _num_records_text(self) -> Text:
        return digits(self.num_records, 1 if self.spec.data == "all" else 4)

    def _hash(self, salt: int, below: int) -> Ints:
        return (self._word(salt) % np.uint64(below)).astype(np.int64)

    def _word(self, salt: int | Ints) -> Words:
        # SplitMix64 of (number, salt, seed): the same everywhere, and no state between files.
        with np.errstate(over="ignore"):
            seed = np.uint64(self.spec.seed) * np.uint64(0xD1342543DE82EF95)
            salted = np.asarray(salt).astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
            z = self.numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + salted + seed
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))


def as_double(value: Ints) -> NDArray[np.float64]:
    """The double that a value in units of 1e-12 stands for: exact operands, one rounding."""
    return value / float(_VALUE_UNIT)


def _day_text(days: Ints) -> Text:
    """`2026-02-10`, of days since 1970."""
    first, last = (int(days.min()), int(days.max())) if len(days) else (0, 0)
    return looked_up(days - first, _days_between(first, last))


@lru_cache(maxsize=16)
def _days_between(first: int, last: int) -> tuple[str, ...]:
    return tuple(str(np.datetime64(day, "D")) for day in range(first, last + 1))


def _instant(time_ms: Ints) -> Text:
    """`2026-02-10T22:15:00.125Z`."""
    of_day = time_ms % 86_400_000
    day = _day_text(time_ms // 86_400_000)
    hour, minute = digits(of_day // 3_600_000, 2), digits(of_day // 60_000 % 60, 2)
    second, milli = digits(of_day // 1000 % 60, 2), digits(of_day % 1000, 3)
    return joined([day, b"T", hour, b":", minute, b":", second, b".", milli, b"Z"], len(time_ms))
