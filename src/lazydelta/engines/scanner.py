"""LazyScanner: one scan of a dataset, as pyarrow's `Scanner` is used.

Why it is no subclass of that: pyarrow's own functions take a `Scanner` for a native one, and one without
native state ends the process. Contract: making one reads nothing; each method reads anew; rows come in the
order of the scan; readers and iterators that are dropped or closed stop the reads below.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.arrow_filter import Pushed, pushed_filter
from lazydelta.engines.chosen_files import scan_of_file
from lazydelta.engines.file_rows import ROW_MARK, count_of_rows, counted_rows, is_countable
from lazydelta.engines.projection import (
    Columns,
    Projection,
    columns_needed,
    projection_of,
    refused,
    with_metadata,
)
from lazydelta.errors import InvalidRequestError
from lazydelta.log.file_rows import Batches
from lazydelta.predicate import parse_where
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.row_scan import RowScan
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan, ScanReport

BATCH_ROWS = 131_072  # pyarrow's default
Filter: TypeAlias = pc.Expression | None


class TaggedRecordBatch(NamedTuple):
    """A batch and where it is from, as pyarrow's `scan_batches` gives it."""

    record_batch: pa.RecordBatch
    fragment: Any  # Any: what the scan was made from


class ScanPlan(msgspec.Struct, frozen=True, eq=False):
    """What a scan reads and what is done to it."""

    source: RowSource
    projection: Projection
    reads: tuple[str, ...]
    keep: pc.Expression | None  # what the source's own filter does not decide
    file: pa.RecordBatch | None = None  # this one alone: a row with `DATA_FILE_COLUMNS`
    pushed: Pushed = Pushed()  # what of the filter the source's own filter has

    @property
    def is_counted(self) -> bool:
        """Whether only the number of rows matters, and the log may tell it."""
        is_whole = not self.projection.reads and self.keep is None and self.file is None
        return is_whole and is_countable(self.source)


class LazyScanner:
    """The rows that match a filter, projected."""

    def __init__(
        self,
        source: RowSource,
        *,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002  # pyarrow's name
        batch_size: int = BATCH_ROWS,
        file: pa.RecordBatch | None = None,
        origin: Any = None,  # Any: the dataset or fragment, for `scan_batches`
    ) -> None:
        """`file`: read this one alone."""
        plan = plan_scan(source, columns=columns, keep=filter, batch_size=batch_size)
        self._plan = plan if file is None else msgspec.structs.replace(plan, file=file)
        self._origin = origin
        self._latest: RowScan | FileScan | None = None

    @property
    def plan(self) -> ScanPlan:
        """What it reads."""
        return self._plan

    def stop(self) -> None:
        """End the walk through the files of the latest run, from any thread; its reader ends the rest."""
        if self._latest is not None:
            self._latest.stop()

    def latest(self) -> ScanReport | None:
        """What the latest run read so far; None before the first."""
        return None if self._latest is None else self._latest.latest()

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns there are."""
        return self._plan.source.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns that come out."""
        return self._plan.projection.schema

    def to_batches(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, lazily; at most `limit`, and no more is read than that takes."""
        return self._projected(self._plan, limit)

    def scan_batches(self) -> Iterator[TaggedRecordBatch]:
        """The rows, lazily, each batch with the dataset that it is from: batches do not tell their files."""
        return (TaggedRecordBatch(batch, self._origin) for batch in self.to_batches())

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that C libraries can pull."""
        return LazyRecordBatchIterator(
            self.projected_schema, self._projected(self._plan, None), where="the dataset"
        ).to_reader()

    def to_table(self) -> pa.Table:
        """The rows in memory."""
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows; nothing is read beyond them."""
        if not isinstance(num_rows, int) or isinstance(num_rows, bool) or num_rows < 0:
            raise InvalidRequestError(
                f"num_rows is {num_rows!r}", "head()", "give a whole number of at least 0"
            )
        with closing(self._projected(self._plan, num_rows)) as batches:
            return pa.Table.from_batches(list(batches), self.projected_schema)

    def take(self, indices: Any) -> pa.Table:  # Any: an array, or what becomes one
        """The rows at these places, in the order of `indices`; reads up to the last of them."""
        wanted = np.asarray(indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64()))
        if wanted.size == 0:
            return self.projected_schema.empty_table()
        if wanted.min() < 0:
            raise InvalidRequestError(f"there is no row {wanted.min()}", "take()", "count rows from 0")
        places, back = np.unique(wanted, return_inverse=True)
        found = _at(self._projected(self._plan, int(places[-1]) + 1), places)
        rows = pa.Table.from_batches(found, self.projected_schema)
        if rows.num_rows < places.size:
            raise InvalidRequestError(
                f"there is no row {places[-1]}",
                "take()",
                "ask for fewer: count_rows() tells how many there are",
            )
        return rows.take(pa.array(back))

    def count_rows(self) -> int:
        """How many rows match; columns that the filter does not need are not read."""
        plan = self._plan
        needed = columns_needed([] if plan.keep is None else [plan.keep], plan.source.schema)
        nothing = projection_of([], plan.source.schema)
        counting = msgspec.structs.replace(plan, projection=nothing, reads=tuple(needed or [ROW_MARK]))
        if counting.is_counted:
            self._latest = files = plan.source.files()
            return count_of_rows(plan.source, files)
        return sum(batch.num_rows for batch in self._projected(counting, None))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:  # Any: capsules have no type
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _projected(self, plan: ScanPlan, limit: int | None) -> Generator[pa.RecordBatch, None, None]:
        """The rows that come out, at most `limit`."""
        missing = limit
        with closing(self._rows(plan, limit)) as batches:
            while missing is None or missing > 0:
                rows = next(batches, None)
                if rows is None:
                    return
                for batch in plan.projection.applied(rows, plan.keep):
                    part = batch if missing is None else batch.slice(0, missing)
                    missing = None if missing is None else missing - part.num_rows
                    yield part
                    if missing == 0:
                        return

    def _rows(self, plan: ScanPlan, limit: int | None) -> LazyRecordBatchIterator | Batches:
        """What is read; no more than the limit where every row read comes out."""
        source = plan.source
        if plan.keep is None and limit is not None:
            before = source.config.limit
            source = source.with_config(limit=limit if before is None else min(limit, before))
        elif plan.is_counted:
            self._latest = files = source.files()
            return counted_rows(source, files, plan.reads)
        rows = source.rows(plan.reads) if plan.file is None else scan_of_file(source, plan.file, plan.reads)
        self._latest = rows
        return rows.batches()


def plan_scan(
    source: RowSource, *, columns: Columns, keep: pc.Expression | None, batch_size: int
) -> ScanPlan:
    """What to read of the source for these columns and this filter."""
    schema = source.schema
    projection = projection_of(columns, schema)
    source = source.with_config(batch_size=batch_size)
    reads = dict.fromkeys(projection.reads)
    pushed = Pushed()
    if keep is not None:
        _check_filter(keep, schema)
        # A limit of the source counts rows before the filter is asked.
        is_limited = source.config.limit is not None
        pushed = pushed if is_limited else pushed_filter(keep, source.snapshot.schema)
        if pushed.condition is not None:
            source = narrowed(source, pushed.condition)
        if pushed.is_exact:
            keep = None
        else:
            reads |= dict.fromkeys(columns_needed([keep], schema))
    return ScanPlan(source, projection, tuple(reads) or (ROW_MARK,), keep, pushed=pushed)


def source_token(source: RowSource) -> tuple[str, ...]:
    """What a source reads, as text."""
    snapshot, config = source.snapshot, source.config
    what = (config.predicate, config.limit, config.order, config.time_zone)
    return (snapshot.storage.root, str(snapshot.version), *map(str, what))


def narrowed(source: RowSource, where: Any) -> RowSource:  # Any: a filter in any of its forms
    """The source with one condition more."""
    before = source.config.predicate
    wanted = parse_where(where)
    return source.with_config(predicate=wanted if before is None else parse_where(before) & wanted)


def _check_filter(keep: Any, schema: pa.Schema) -> None:  # Any: whatever the caller gave
    if not isinstance(keep, pc.Expression):
        raise InvalidRequestError(
            f"filter is {keep!r}"[:200], "the dataset", 'give an expression, as in pc.field("value") > 1'
        )
    columns_needed([keep], schema)  # an unknown one is an error
    try:
        with_metadata(schema).empty_table().filter(keep)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise refused(error, f"the filter {keep} does not fit the table") from error


def _at(
    batches: Generator[pa.RecordBatch, None, None], places: npt.NDArray[np.int64]
) -> list[pa.RecordBatch]:
    """The rows at these places, which are sorted."""
    found, first = [], 0
    with closing(batches):
        for batch in batches:
            inside = places[(places >= first) & (places < first + batch.num_rows)] - first
            found.append(batch.take(pa.array(inside)))
            first += batch.num_rows
    return found
