"""OrderedFileIterator: the traversal of a scan of rows, one live file after the other.

Contract, checked as the files go by: in an ordered scan each file comes strictly after the one before it, by
order value, then path as the log spells it, then deletion vector; so none comes twice. Without an order, none
comes twice among the last `limits.FILES_REMEMBERED_MAX`. It loads no rows and filters none.
With an anchor, files before its file do not come out; the anchor's file does, for the rows after it.
A limit on rows ends the traversal only where the filter is decided by partition values alone: rows of files
that match are counted by `numRecords` less those that the deletion vector lists; unknown counts as none.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.memory_share import MemoryShare
from lazydelta.predicate import BoundPredicate
from lazydelta.predicate.rows import matches
from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.rows.located_rows import FileKey, RowPosition, file_key
from lazydelta.scan import FileScan
from lazydelta.scan.config import ScanOrder
from lazydelta.scan.record_counts import NUM_RECORDS


class OrderedFileIterator:
    """The files of one run; `for` pulls them from the log, closing the generator ends the scan of files."""

    def __init__(
        self,
        scan: FileScan,
        *,
        row_limit: int | None = None,
        after: RowPosition | None = None,
        share: MemoryShare | None = None,
    ) -> None:
        """`row_limit`: no more rows are needed; heeded where that is safe. `after`: of an ordered scan.

        `share`: of memory, for the scan of files.
        """
        assert after is None or scan.config.order is not None, "an anchor needs an order"
        self._scan = scan
        self._after = after
        self._share = share
        self._row_limit = row_limit if covers_limit(scan.predicate) else None
        self._descending = scan.config.order == ScanOrder.DESC

    def __iter__(self) -> Generator[DataFile, None, None]:
        files = self._files()
        checked = self._in_order(files) if self._scan.config.order is not None else _none_twice(files)
        rows_found = 0
        with closing(files):
            for file in checked:
                rows_found += 0 if self._is_anchor(file) else file.live_rows
                yield file
                if self._row_limit is not None and rows_found >= self._row_limit:
                    return

    def _in_order(self, files: Iterator[DataFile]) -> Iterator[DataFile]:
        anchor = None if self._after is None else self._after.file_key
        for file in in_order(files, descending=self._descending):
            if anchor is not None:
                key = file_key(file)
                if (key > anchor) if self._descending else (key < anchor):
                    continue
            yield file

    def _is_anchor(self, file: DataFile) -> bool:
        """Some of its rows are not needed, nobody knows how many."""
        return self._after is not None and file_key(file) == self._after.file_key

    def _files(self) -> Generator[DataFile, None, None]:
        is_limited = self._row_limit is not None
        # Where files are judged by statistics the count comes with them, to be compared with the file.
        counts = is_limited or _reads_statistics(self._scan.predicate)
        columns = (*DATA_FILE_COLUMNS, NUM_RECORDS) if counts else DATA_FILE_COLUMNS
        with closing(self._scan.batches(columns, with_keys=True, share=self._share)) as batches:
            for batch in batches:
                yield from data_files(self._certain(batch) if is_limited else batch)

    def _certain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same with counts only for files whose rows all match."""
        predicate = self._scan.predicate
        if predicate is None:
            return batch
        match = pc.fill_null(matches(predicate, self._partitions(batch, predicate)), False)
        at = batch.schema.get_field_index(NUM_RECORDS)
        counts = pc.if_else(match, batch.column(at), pa.scalar(None, pa.int64()))
        return batch.set_column(at, NUM_RECORDS, counts)

    def _partitions(self, batch: pa.RecordBatch, predicate: BoundPredicate) -> pa.RecordBatch:
        """The typed partition values that the filter names."""
        arrays = {}
        for name in {path[0] for path in predicate.columns}:
            field = self._scan.snapshot.schema.field(name)
            assert field is not None
            assert isinstance(field.type, PrimitiveType), "Delta partitions by primitive columns alone"
            raw = raw_partition_column(batch.column("partition_values"), field.name)
            arrays[name] = parse_partition_column(raw, field.type, time_zone=self._scan.config.time_zone)
        if not arrays:  # a constant: any column will do to carry the number of rows
            return batch
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def covers_limit(predicate: BoundPredicate | None) -> bool:
    """Whether a file's rows match all or none, so that counting rows by the log is safe."""
    return predicate is None or predicate.decided_by_partitions


def _reads_statistics(predicate: BoundPredicate | None) -> bool:
    return predicate is not None and bool(predicate.stats_columns)


def in_order(files: Iterator[DataFile], *, descending: bool) -> Iterator[DataFile]:
    """The same files, each asserted to come after the one before it."""
    before: FileKey | None = None
    for file in files:
        key = file_key(file)
        if before is not None:
            first, second = (key, before) if descending else (before, key)
            # Files of one path that differ in their deletion vectors come in any order.
            assert first < second or first[:3] == second[:3], f"{file.path} comes out of order"
            if first == second:
                raise _named_twice(file)
        before = key
        yield file


def _none_twice(files: Iterator[DataFile]) -> Iterator[DataFile]:
    seen: dict[tuple[str, str | None], None] = {}
    for file in files:
        key = (file.path, file.dv_id)
        if key in seen:
            raise _named_twice(file)
        seen[key] = None
        if len(seen) > limits.FILES_REMEMBERED_MAX:
            del seen[next(iter(seen))]
        yield file


def _named_twice(file: DataFile) -> CorruptLogError:
    """Our own replay names none twice: what it read must have."""
    return CorruptLogError(
        "a checkpoint or a sidecar names the file twice",
        file.path,
        "write the checkpoint anew, or delete it if older commits or another checkpoint are still there",
    )
