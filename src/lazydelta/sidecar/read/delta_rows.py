"""The rows of a delta file, newest version first, although the file has them the other way round.

Contract: row groups come backwards; a version that lies in several is given in as many pieces, in the order
of its lines, and none of an older version comes between them. Only the columns asked for are read, several
row groups by one request, the next ones while the caller works; memory is a few row groups. What is not in
the order that the footer tells is `DamagedSidecarError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.delta_file import DeltaFileReader
from lazydelta.sidecar.format.memory import RowGroupKey, SidecarMemory
from lazydelta.sidecar.format.memory_in_use import WhileInUse
from lazydelta.sidecar.read.read_ahead import ReadAhead
from lazydelta.storage import Storage

VERSION, ACTION = "version", "action"
_BUNCHES_AHEAD = 1
_WHOLE_NUMBERS = ("NONE", "INT")  # logical types of Parquet
_Groups = list[tuple[int, pa.RecordBatch]]  # row groups by their numbers


class VersionRange(msgspec.Struct, frozen=True):
    """The versions of the rows of one row group, both ends included."""

    low: int
    high: int


class Step(msgspec.Struct, frozen=True):
    """Rows of one row group that are given out together: whole versions, or a piece of one."""

    row_group: int
    low: int
    high: int
    is_first: bool = True  # of its versions
    is_last: bool = True


class DeltaPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a delta file as it has them: whole versions low..high, or a piece of one."""

    step: Step
    rows: pa.RecordBatch


class DeltaSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A delta file that has proven that it stands for the commits `after` < v <= `until`."""

    name: str  # below the table's root
    size_bytes: int
    content: str  # what tells it from another file of the same name
    after: int
    until: int
    table_id: str
    schema: pa.Schema
    ranges: tuple[VersionRange, ...]  # of its row groups
    other_actions: dict[str, int]  # that are not in it, by their names in the log


class DeltaRows:
    """The rows up to `newest` of one delta file, once. `start` begins to read ahead."""

    def __init__(
        self,
        storage: Storage,
        span: DeltaSpan,
        *,
        columns: Sequence[str],
        newest: int,
        footers: SidecarMemory,
        memory: SidecarMemory,
        groups_at_once: int,
        reads_ahead: bool,
    ) -> None:
        self._storage = storage
        self._span = span
        self._names = tuple(dict.fromkeys((VERSION, ACTION, *columns)))
        self._footers = WhileInUse(footers)
        self._memory = memory
        self._steps = steps_of(span.ranges, newest)
        needed = list(dict.fromkeys(step.row_group for step in self._steps))
        bunches = [needed[at : at + groups_at_once] for at in range(0, len(needed), groups_at_once)]
        self._bunches = bunches
        self._ahead = ReadAhead(bunches, self._load, _BUNCHES_AHEAD) if reads_ahead else None

    def start(self) -> None:
        """Begin to read, where reading ahead is wanted."""
        if self._ahead is not None:
            self._ahead.start()

    def pieces(self) -> Generator[DeltaPiece, None, None]:
        """The rows, newest version first."""
        loaded = self._loaded()
        with closing(loaded):
            held: dict[int, pa.RecordBatch] = {}
            uses = Counter(step.row_group for step in self._steps)
            for step in self._steps:
                while step.row_group not in held:
                    held.update(next(loaded))
                yield DeltaPiece(step=step, rows=_rows_of(step, held[step.row_group]))
                uses[step.row_group] -= 1
                if uses[step.row_group] == 0:
                    del held[step.row_group]

    def close(self) -> None:
        """Stop what is under way."""
        if self._ahead is not None:
            self._ahead.close()

    def _loaded(self) -> Generator[_Groups, None, None]:
        if self._ahead is not None:
            yield from self._ahead.results()
            return
        for bunch in self._bunches:
            yield self._load(bunch)

    def _load(self, bunch: Sequence[int]) -> _Groups:
        known = {group: self._memory.rows(self._key(group)) for group in bunch}
        missing = [group for group, rows in known.items() if rows is None]
        known.update(self._read(missing) if missing else ())
        return [(group, rows) for group, rows in known.items() if rows is not None]

    def _read(self, bunch: Sequence[int]) -> _Groups:
        span = self._span
        where = f"{self._storage.root}/{span.name}"
        with closing(DeltaFileReader(self._storage, span.name, span.size_bytes, self._footers)) as reader:
            sizes = [reader.metadata.row_group(group).num_rows for group in bunch]
            if min(sizes) < 1:
                raise damaged("a row group has versions and no rows", where)
            read = []
            with closing(reader.batches(self._names, bunch, batch_rows=max(sizes))) as stream:
                for group, size in zip(bunch, sizes, strict=True):
                    rows = _taken(stream, size)
                    if not _is_in_order(rows, span.ranges[group]):
                        raise damaged("rows are not of the versions that the footer tells", where)
                    self._memory.keep_rows(self._key(group), rows)
                    read.append((group, rows))
            return read

    def _key(self, group: int) -> RowGroupKey:
        # A file may be written anew under its name, but not with these bytes for that commit.
        return RowGroupKey(f"{self._span.name}#{self._span.content}", group, self._names)


def version_ranges(footer: pq.FileMetaData) -> list[VersionRange] | None:
    """The versions of each row group; None where the footer does not tell, or they are not ascending."""
    at = next((n for n in range(footer.num_columns) if footer.schema.column(n).path == VERSION), None)
    if at is None or footer.schema.column(at).logical_type.type not in _WHOLE_NUMBERS:
        return None
    found: list[VersionRange] = []
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(at).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return None
        found.append(VersionRange(statistics.min, statistics.max))
    flat = [version for range_ in found for version in (range_.low, range_.high)]
    return found if flat == sorted(flat) else None


def steps_of(ranges: Sequence[VersionRange], newest: int) -> list[Step]:
    """What to give out in which order: versions descending, each one's row groups ascending."""
    steps: list[Step] = []
    for at in reversed(range(len(ranges))):
        low, high = ranges[at].low, ranges[at].high
        goes_on = at + 1 < len(ranges) and ranges[at + 1].low == high
        began_before = at > 0 and ranges[at - 1].high == low
        if goes_on and not (
            began_before and low == high
        ):  # the first row group of a version that has several
            steps.extend(_spread(ranges, at, high))
        inner = Step(at, low + began_before, high - goes_on)
        if inner.low <= inner.high:
            steps.append(inner)
    capped = (msgspec.structs.replace(step, high=min(step.high, newest)) for step in steps)
    return [step for step in capped if step.low <= step.high]


def _spread(ranges: Sequence[VersionRange], first: int, version: int) -> Iterator[Step]:
    last = first
    while last + 1 < len(ranges) and ranges[last + 1].low == version:
        last += 1
    for at in range(first, last + 1):
        yield Step(at, version, version, is_first=at == first, is_last=at == last)


def _rows_of(step: Step, rows: pa.RecordBatch) -> pa.RecordBatch:
    versions = rows.column(VERSION).to_numpy()
    start = int(np.searchsorted(versions, step.low, side="left"))
    end = int(np.searchsorted(versions, step.high, side="right"))
    return rows.slice(start, end - start)


def _taken(stream: Generator[pa.RecordBatch, None, None], row_count: int) -> pa.RecordBatch:
    """The next rows of the stream as one batch: a row group comes in one slice or in several."""
    slices: list[pa.RecordBatch] = []
    while sum(rows.num_rows for rows in slices) < row_count:
        slices.append(next(stream))
    return slices[0] if len(slices) == 1 else pa.concat_batches(slices)


def _is_in_order(rows: pa.RecordBatch, told: VersionRange) -> bool:
    column = rows.column(VERSION)
    if column.null_count:
        return False
    versions = column.to_numpy()
    return bool((versions[0], versions[-1]) == (told.low, told.high) and (np.diff(versions) >= 0).all())
