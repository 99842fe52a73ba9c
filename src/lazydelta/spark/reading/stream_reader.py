"""The streaming side of the data source: rows of files as versions add them.

Contract: offsets are versions, and files within one. A range of offsets always names the same files, so that
a batch that is run again reads the same rows. The table as it is at the start is one batch, whatever the
limits say; the versions after it keep to them. A version that the stream may not pass ends it when its turn
comes, after everything before it was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, VersionNotFoundError
from lazydelta.log.segment import LogFile
from lazydelta.spark.reading.batch_reader import FilePartition, checked_schema
from lazydelta.spark.reading.options import ReadOptions
from lazydelta.spark.reading.plan_files import plan_partitions
from lazydelta.spark.reading.spark_schema import arrow_of, conform
from lazydelta.spark.reading.spill import ChunkKeeper
from lazydelta.spark.reading.stream_commits import added_files, commit_facts, commits_since, under_names_of
from lazydelta.spark.reading.stream_offset import StreamOffset, parse_offset
from lazydelta.spark.reading.stream_rules import is_skipped, objection
from lazydelta.spark.reading.table_read import Pin, open_read
from lazydelta.storage import Storage


class LazyDeltaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One table, from one offset to the next."""

    def __init__(self, options: ReadOptions, pin: Pin | None, schema: StructType) -> None:
        self._options = options
        self._table = open_read(options, pin)
        self._of_partition = self._table.of_partition()
        self._arrow: pa.Schema = arrow_of(checked_schema(self._table, schema))
        self._newest_seen = self._table.pin.version
        self._newest_max: int | None = None  # with Trigger.AvailableNow

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name; Any: what JSON has
        """Where a new stream begins."""
        pinned, chosen = self._table.pin, self._options.startingversion
        if chosen is None:
            first = StreamOffset(version=pinned.version, is_snapshot=True, table_id=pinned.table_id)
        else:
            version = pinned.version + 1 if isinstance(chosen, str) else chosen
            if version > pinned.version + 1:
                raise VersionNotFoundError(
                    f"there is no version {version} yet, the newest is {pinned.version}",
                    self._table.root,
                    "give a startingVersion that is there, or latest",
                )
            first = StreamOffset(version=version, table_id=pinned.table_id)
        return first.as_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the next batch goes."""
        offset = self._parsed(start)
        if offset.is_snapshot:
            return offset.after(offset.version + 1).as_json()
        return self._reached(offset, limit).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch may have, by the options."""
        files, size = self._options.maxfilespertrigger, self._options.maxbytespertrigger
        if files is not None and size is not None:
            raise InvalidRequestError(
                "maxFilesPerTrigger and maxBytesPerTrigger are both given",
                self._table.root,
                "give one of them",
            )
        if size is not None:
            return ReadMaxBytes(size)
        return ReadMaxFiles(limits.STREAM_FILES_PER_BATCH if files is None else files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is all that this run will read."""
        self._see(commits_since(self._storage, self._newest_seen + 1))
        self._newest_max = self._newest_seen

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The files between two offsets, in tasks."""
        keeper = ChunkKeeper(self._options.spill, self._table.settings, where=self._table.root)
        first, last = self._parsed(start), self._parsed(end)
        newest = last.version if last.index else last.version - 1
        planned = plan_partitions(self._files(first, last), self._table.sizing, keeper)
        return [FilePartition(chunks, newest) for chunks in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if isinstance(partition, FilePartition):
            for rows in self._of_partition.read(partition.chunks, partition.version):
                yield conform(rows, self._arrow)

    def __getstate__(self) -> dict[str, object]:
        """What executors need; the table was opened for the driver."""
        return {"_of_partition": self._of_partition, "_arrow": self._arrow}

    @property
    def _storage(self) -> Storage:
        return self._table.source.snapshot.storage

    def _parsed(self, offset: dict[str, Any]) -> StreamOffset:
        found = parse_offset(offset, self._table.pin.table_id, self._table.root)
        if found.version > self._newest_seen + 1:
            self._see(commits_since(self._storage, self._newest_seen + 1))
        if found.version > self._newest_seen + 1:
            raise VersionNotFoundError(
                f"the stream has read up to version {found.version - 1}, and the table ends at "
                f"{self._newest_seen}",
                self._table.root,
                "the table was put back: start the stream anew, with a new checkpoint location",
            )
        return found

    def _see(self, commits: list[LogFile]) -> list[LogFile]:
        if commits:
            self._newest_seen = max(self._newest_seen, commits[-1].version)
        return commits

    def _reached(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        at = start
        left = _Allowance(limit)
        for commit in self._see(commits_since(self._storage, start.version)):
            if self._newest_max is not None and commit.version > self._newest_max:
                break
            facts = commit_facts(self._storage, commit.version)
            refused = objection(facts, self._options, self._table.source.snapshot)
            if refused is not None:
                if commit.version == start.version:
                    raise refused
                break  # first what comes before it
            first = start.index if commit.version == start.version else 0
            sizes = [] if is_skipped(facts, self._options) else facts.file_bytes[first:]
            taken = left.take(sizes)
            if taken < len(sizes):
                return at.after(commit.version, first + taken) if taken else at
            at = at.after(commit.version + 1)
        return at

    def _files(self, start: StreamOffset, end: StreamOffset) -> Iterator[pa.RecordBatch]:
        if start.is_snapshot:
            yield from self._snapshot_files(start.version)
            return
        for version in range(start.version, end.version + (end.index > 0)):
            facts = commit_facts(self._storage, version)
            if is_skipped(facts, self._options):
                continue
            first = start.index if version == start.version else 0
            last = end.index if version == end.version else None
            yield from added_files(self._table.source.snapshot, version, first=first, end=last)

    def _snapshot_files(self, version: int) -> Iterator[pa.RecordBatch]:
        if version == self._table.pin.version:
            yield from self._table.file_batches()
            return
        # A stream that was ended before its first batch: rows are filtered by the schema of today.
        pin = Pin(version=version, table_id=self._table.pin.table_id)
        bare = ReadOptions(path=self._options.path, storage_options=self._options.storage_options)
        then = open_read(bare, pin)
        yield from under_names_of(self._table.source.snapshot, then.source.snapshot, then.file_batches())


class _Allowance:
    """How many more files a batch may have; one is always allowed."""

    def __init__(self, limit: ReadLimit) -> None:
        self._files = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        self._bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        self._taken = 0
        if not isinstance(limit, ReadAllAvailable | ReadMaxFiles | ReadMaxBytes):
            raise InvalidRequestError(
                f"Spark asks for a limit that this source does not know: {type(limit).__name__}",
                "the stream",
                "use maxFilesPerTrigger or maxBytesPerTrigger",
            )

    def take(self, sizes: list[int]) -> int:
        """How many of these files, the first ones."""
        for at, size in enumerate(sizes):
            is_full = (self._files is not None and self._taken >= self._files) or (
                self._bytes is not None and size > self._bytes
            )
            if is_full and self._taken:
                return at
            self._taken += 1
            if self._bytes is not None:
                self._bytes -= size
        return len(sizes)
