"""One query under way in a session of its own.

Contract: nothing runs before the first batch is pulled, but statements before the last of a script. A table
whose files DuckDB reads by itself, and cannot read, is read the usual way instead, as long as no row went
out; the usual way also knows best what is wrong with them. Whoever stops pulling, or calls `stop`, ends the
scans, the query and the session.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.handover import hand_over
from lazydelta.engines.query_plan import plan_facts
from lazydelta.engines.session import Duck, Parameters, spelled, told
from lazydelta.engines.watch import Watch
from lazydelta.engines.watched_dataset import WatchedDataset
from lazydelta.errors import CorruptDataError, LazyDeltaError
from lazydelta.rows.prefetch import PrefetchClosedError
from lazydelta.rows.source import RowSource


class RunningQuery:
    """A query, its tables and its session."""

    def __init__(
        self,
        session: Duck,
        query: str,
        tables: Mapping[str, RowSource],
        watch: Watch,
        parameters: Parameters,
    ) -> None:
        self._session = session
        self._query = query
        self._tables = tables
        self._watch = watch
        self._parameters = parameters
        self._relation: Duck = None
        self._is_stopped = False
        self.handed_over: str | None = None  # the table whose files DuckDB reads by itself

    def prepare(self) -> pa.Schema:
        """Check the query and say what columns it has."""
        for name in self._tables:
            self._register(name)
        session, query, parameters = self._session, self._query, self._parameters
        facts = plan_facts(session, query, parameters)
        if facts.has_limit:
            self._watch.hurry(row_limit=facts.row_limit)
        elif facts.counts_rows:
            self._watch.counts_only = True
        elif facts.reads_one_table:
            self.handed_over = hand_over(session, query, parameters, self._tables, self._watch)
        self._relation = self._session.sql(self._query, params=self._parameters)
        if self._relation is None:
            return pa.schema([])
        return self._relation.limit(0).to_arrow_table().schema

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows."""
        try:
            if self._relation is None:
                return
            has_begun = False
            try:
                for batch in self._run():
                    has_begun = True
                    yield batch
            except LazyDeltaError as error:
                if self.handed_over is None:
                    raise
                if has_begun:
                    raise self._of_the_files(error) from error
                self._take_back(self.handed_over)
                yield from self._run()
        finally:
            self.stop()
            self._end()

    def stop(self) -> None:
        """End the scans, then the query; from any thread, any number of times."""
        if not self._is_stopped:
            self._is_stopped = True
            self._watch.stop()
            with suppress(Exception):  # it may be over already
                self._session.interrupt()
            self._end()

    def _run(self) -> Generator[pa.RecordBatch, None, None]:
        reader = None
        try:
            with told(self._query, self._watch.error):
                reader = self._unless_stopped(self._relation.to_arrow_reader, limits.BATCH_ROWS)
            while True:
                with told(self._query, self._watch.error):
                    batch = self._unless_stopped(next, reader, None)
                if batch is None:
                    return
                if batch.num_rows:
                    yield batch
        finally:
            if reader is not None:
                reader.close()

    def _unless_stopped(self, call: Callable[..., Any], *arguments: Any) -> Any:  # Any: DuckDB's
        try:
            return call(*arguments)
        except Exception:
            if self._is_stopped:  # by another thread, which is why it failed
                raise PrefetchClosedError from None
            raise

    def _end(self) -> None:
        """Close the session, unless a thread is inside: that one does it when it comes out."""
        try:
            self._session.close()
        except Exception as error:
            if "ResourceInUse" not in type(error).__name__:
                raise

    def _register(self, name: str) -> None:
        self._session.register(name, WatchedDataset(name, self._tables[name], self._watch))

    def _take_back(self, name: str) -> None:
        """Read the table the usual way."""
        with told(self._query, self._watch.error):
            self._session.execute(f"drop view {spelled(name)}")
            self._register(name)
            self._relation = self._session.sql(self._query, params=self._parameters)

    def _of_the_files(self, error: LazyDeltaError) -> LazyDeltaError:
        if ".parquet" not in error.what:
            return error
        return CorruptDataError(
            f"a data file cannot be read: {error.what}",
            f"{self._tables[self.handed_over or ''].snapshot.storage.root}",
            "restore it from a copy, or remove it from the table and write its rows again",
        )
