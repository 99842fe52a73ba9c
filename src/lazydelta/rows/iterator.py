"""LazyRecordBatchIterator: the rows of a scan, a batch at a time, read while the consumer works.

Contract: nothing is read before the first batch is asked for. One pass: iterating again after the end is an
`InvalidRequestError`, as is pulling after `close`. An error ends it, and pulling again raises the same error.
Leaving it, dropping it, `close()` (from any thread) and the interpreter's exit stop the reads. Threads may
share it: each batch goes to one of them. A forked child may not: the threads that read stay with its parent.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lazydelta.errors import InvalidRequestError
from lazydelta.log.file_rows import Batches
from lazydelta.rows.prefetch import PrefetchClosedError


class LazyRecordBatchIterator:
    """An iterator of `pa.RecordBatch`; engines take it as an Arrow stream or by `to_reader()`."""

    def __init__(
        self, schema: pa.Schema, batches: Batches, *, where: str, stop: Callable[[], None] | None = None
    ) -> None:
        """`stop` ends the reads below `batches`, from any thread."""
        self._schema = schema
        self._where = where
        self._batches = batches
        self._peeked: pa.RecordBatch | None = None
        self._index = 0
        self._total: int | None = None
        self._is_passed = False  # the end was told
        self._error: Exception | None = None
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _stopped, batches, stop)

    @classmethod
    def of_collected(
        cls, schema: pa.Schema, batches: list[pa.RecordBatch], *, where: str
    ) -> LazyRecordBatchIterator:
        """The eager twin: batches that are in memory already."""
        found = cls(schema, (batch for batch in batches), where=where)
        found._total = len(batches)
        return found

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        return self._schema

    @property
    def num_batches(self) -> int | None:
        """How many there are in all; None as long as that is not known."""
        return self._total

    @property
    def current_index(self) -> int:
        """How many were handed out: the index of the next."""
        return self._index

    def has_next(self) -> bool:
        """Whether there is another batch; reads it, if need be."""
        self._check_process()
        with self._turn:
            if self._peeked is None and not self._is_passed:
                self._peeked = self._pulled()
            return self._peeked is not None

    def next(self) -> pa.RecordBatch | None:
        """The next batch, or None at the end."""
        return next(self, None)

    def close(self) -> None:
        """Stop the reads; what was not handed out is lost."""
        self._peeked = None
        self._finalizer()

    def to_reader(self) -> pa.RecordBatchReader:
        """What is left, as a reader; it holds this iterator."""
        return pa.RecordBatchReader.from_batches(self._schema, self)

    def read_all(self) -> pa.Table:
        """What is left, in memory."""
        return pa.Table.from_batches(list(self), self._schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._is_passed:
            raise InvalidRequestError(
                "the rows were read to their end already",
                self._where,
                "ask the scan for its batches again: each iterator goes through once",
            )
        return self

    def __next__(self) -> pa.RecordBatch:
        self._check_process()
        with self._turn:
            batch = self._peeked if self._peeked is not None else self._pulled()
            self._peeked = None
            if batch is None:
                self._is_passed = True
                raise StopIteration
            self._index += 1
            return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:  # Any: capsules have no type
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self._schema)
        return f"<lazydelta.{type(self).__name__} of ({columns}), {self._index} batches handed out>"

    def _pulled(self) -> pa.RecordBatch | None:
        if self._error is not None:
            raise self._error
        if self._total is not None and self._index >= self._total:
            return None
        if not self._finalizer.alive:
            raise self._closed()
        try:
            batch = next(self._batches, None)
        except PrefetchClosedError:
            raise self._closed() from None
        except BaseException as error:
            self._error = error if isinstance(error, Exception) else None
            self._finalizer()
            raise
        if batch is None:
            self._total = self._index
            self._finalizer()
        return batch

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise InvalidRequestError(
                "the iterator is of the process that this one was forked from",
                self._where,
                "open the table in the child, or start it with spawn",
            )

    def _closed(self) -> InvalidRequestError:
        return InvalidRequestError(
            "the iterator was closed before its end", self._where, "ask the scan for its batches again"
        )


def _stopped(batches: Batches, stop: Callable[[], None] | None) -> None:
    """End the reads, then the stages above them; a stage that is being pulled elsewhere ends by itself."""
    if stop is not None:
        stop()
    with suppress(ValueError):  # it is being pulled
        batches.close()
