"""One query under way in a session of its own.

Contract: nothing runs before the first batch is pulled, but statements before the last of a script. A table
whose files DuckDB reads by itself, and cannot read, is read the usual way instead, as long as no row went
out; the usual way also knows best what is wrong with them. The first rows by a column are looked for in parts
of the table first, see `top_windows`. Whoever stops pulling, or calls `stop`, ends the scans, the query and
the session. So does Ctrl-C: while DuckDB works it does not look for signals, so the main thread has another
call it, and waits where Python does look.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from contextvars import copy_context
from threading import current_thread, main_thread
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.handover import (
    Handover,
    asked_of_tables,
    hand_over,
    is_counted_by_log,
    take_back,
    why_none,
)
from lazydelta.engines.query_plan import PlanFacts, plan_facts
from lazydelta.engines.query_report import QueryReport, query_report
from lazydelta.engines.result_types import check_types
from lazydelta.engines.scanner import LazyScanner, narrowed
from lazydelta.engines.session import Duck, Parameters, close_session, give_rows_at_once
from lazydelta.engines.sql_errors import SqlContext, kind_of, told
from lazydelta.engines.top_rows import TopRows, top_rows
from lazydelta.engines.top_windows import windows
from lazydelta.engines.watch import Asked, Watch
from lazydelta.engines.watched_dataset import WatchedDataset
from lazydelta.errors import CorruptDataError, LazyDeltaError
from lazydelta.rows.prefetch import PrefetchClosedError
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.storage.worker_threads import WorkerThreads
from lazydelta.telemetry import log_event

# Errors of DuckDB that another reader of the files would not change.
_NOT_OF_FILES = ("OutOfMemory", "Outof", "Conversion", "OutOfRange", "Parser", "Binder", "Catalog")


class RunningQuery:
    """A query, its tables and its session."""

    def __init__(
        self,
        session: Duck,
        query: str,
        tables: Mapping[str, RowSource],
        watch: Watch,
        *,
        parameters: Parameters,
        known: Mapping[str, Sequence[str]],
    ) -> None:
        """`known`: every name that the query may use, with its columns; `tables` may be some of them."""
        self._context = SqlContext(query, known, watch.error)
        self._session = session
        self._query = query
        self._tables = tables
        self._watch = watch
        self._parameters = parameters
        self._relation: Duck = None
        self._schema = pa.schema([])
        self._is_stopped = False
        self._is_finished = False
        self._rows_out = self._batches_out = 0
        self._facts = PlanFacts()
        self._why_none: str | None = None
        self._handovers: dict[str, Handover] = {}
        self._fallbacks: list[str] = []
        self._asked: list[Asked] | None = None
        self._top: TopRows | None = None
        self._windows: list[str] = []
        self._looked: list[FileScan] = []  # for windows
        self._memory_limit = ""
        self._caller: WorkerThreads | None = None  # of DuckDB, for the main thread

    @property
    def handed_over(self) -> list[str]:
        """The tables whose files DuckDB reads by itself."""
        return [name for name, handover in self._handovers.items() if handover.why_not is None]

    def prepare(self) -> pa.Schema:
        """Check the query and say what columns it has."""
        with told(self._context):
            for name in self._tables:
                self._register(name)
            ((self._memory_limit,),) = self._session.execute(
                "select current_setting('memory_limit')"
            ).fetchall()
            self._facts = plan_facts(self._session, self._query, self._parameters)
        self._context = msgspec.structs.replace(self._context, located=self._facts.problem)
        with told(self._context):
            return self._prepared()

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows."""
        try:
            has_rows = self._relation is not None
            if self._is_stopped:  # looked at last: stopping drops the relation
                raise PrefetchClosedError
            if not has_rows:
                return
            try:
                yield from self._counted()
            except LazyDeltaError as error:
                if not self.handed_over or not _may_be_of_files(error):
                    raise
                if self._batches_out:
                    raise self._of_the_files(error) from error
                self._take_back(error)
                yield from self._counted()
            self._is_finished = True
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

    def report(self) -> QueryReport:
        """What was done so far."""
        return query_report(
            self._query,
            sources=self._tables,
            begun=self._watch.begun(),
            handovers=self._handovers,
            why_none=self._why_none,
            looked=self._looked,
            is_finished=self._is_finished,
            rows_emitted=self._rows_out,
            batches_emitted=self._batches_out,
            memory_limit=self._memory_limit,
            left_to_duckdb=list(self._facts.operators),
            windows=list(self._windows),
            fallbacks=list(self._fallbacks),
        )

    def _prepared(self) -> pa.Schema:
        facts, session = self._facts, self._session
        self._why_none = why_none(facts)
        if facts.may_stop_early:
            self._watch.hurry(row_limit=facts.row_limit)
            give_rows_at_once(session)
        elif self._why_none is None and facts.scans:
            self._asked = asked_of_tables(session, self._query, self._parameters, self._watch, facts)
            self._top = self._found_top()
            if self._top is None:
                self._choose_readers()
        self._relation = self._session.sql(self._query, params=self._parameters)
        if self._relation is not None:
            check_types(self._relation)
            # Of columns with one name all but the first get another.
            self._schema = self._relation.limit(0).to_arrow_table().schema
        return self._schema

    def _found_top(self) -> TopRows | None:
        """What the query wants the first rows of, if they are looked for in a part of its table first."""
        if self._asked is None or not self._facts.has_top or self._parameters:
            return None
        name = self._asked[0].table
        try:
            return top_rows(self._session, self._query, name, self._tables[name].schema)
        finally:
            self._register(name)

    def _choose_readers(self) -> None:
        """Who reads the tables of a query that goes through them to their end."""
        watch, asked = self._watch, self._asked
        if asked is None:
            self._why_none = "what the query asks of its tables does not come out without its rows"
        elif self._facts.counts_rows and is_counted_by_log(asked, self._tables):
            self._why_none = "its rows are counted by the log"
            watch.counts_only = True
        else:
            self._handovers = hand_over(
                self._session, asked, self._tables, watch, aggregates_all=self._facts.aggregates_all
            )

    def _counted(self) -> Generator[pa.RecordBatch, None, None]:
        for batch in self._run():
            self._rows_out += batch.num_rows
            self._batches_out += 1
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)

    def _run(self) -> Generator[pa.RecordBatch, None, None]:
        top, self._top = self._top, None
        found = None if top is None else self._within_windows(top)
        if found is not None:
            yield from found
            return
        if top is not None:
            with told(self._context):
                self._choose_readers()
                self._relation = self._session.sql(self._query, params=self._parameters)
        yield from self._pulled()

    def _within_windows(self, top: TopRows) -> list[pa.RecordBatch] | None:
        """The first rows, where they are found in a part of the table."""
        source = self._tables[top.table]
        assert self._asked is not None, "the order of a query is found by what it asks"
        (asked,) = self._asked
        plan = LazyScanner(source, columns=asked.columns, filter=asked.filter).plan
        tried = windows(plan.source, top, self._looked)
        while True:
            with told(self._context):
                window = self._unless_stopped(next, tried, None)
                part = source if window is None else narrowed(source, window)
                take_back(self._session, top.table, part, self._watch)
                self._relation = self._session.sql(self._query, params=self._parameters)
            if window is None:
                return None
            rows = list(self._pulled())
            count = sum(batch.num_rows for batch in rows)
            self._windows.append(f"{window} has {count:,} of the {top.rows:,} first rows")
            if count >= top.rows:
                return rows

    def _pulled(self) -> Generator[pa.RecordBatch, None, None]:
        reader, relation = None, self._relation
        if relation is None:
            raise PrefetchClosedError
        try:
            with told(self._context):
                reader = self._unless_stopped(self._called, relation.to_arrow_reader, limits.BATCH_ROWS)
            while True:
                with told(self._context):
                    batch = self._unless_stopped(self._called, next, reader, None)
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

    def _called(self, call: Callable[..., Any], *arguments: Any) -> Any:  # Any: DuckDB's
        """What DuckDB answers, unless Ctrl-C ends it."""
        if current_thread() is not main_thread():  # signals are for the main thread
            return call(*arguments)
        if self._caller is None:
            self._caller = WorkerThreads(1, thread_name_prefix="lazydelta-duckdb")
        answer = self._caller.submit(copy_context().run, call, *arguments)
        try:
            return answer.result()
        except BaseException:
            if not answer.done():  # interrupted
                self.stop()
                wait([answer])  # it comes out as soon as it hears of it, and the session can be closed
            raise

    def _end(self) -> None:
        """Close the session, unless a thread is inside: that one does it when it comes out.

        Nothing of DuckDB is held any longer: at the interpreter's exit Arrow never lets go of a reader, and
        DuckDB would list on stderr what it holds.
        """
        session = self._session
        if session is None:
            return
        try:
            close_session(session)
        except Exception as error:
            if "ResourceInUse" not in type(error).__name__:
                raise
        else:
            self._session = self._relation = None
            if self._caller is not None:
                self._caller.shutdown(wait=False)

    def _register(self, name: str) -> None:
        self._session.register(name, WatchedDataset(name, self._tables[name], self._watch))

    def _take_back(self, error: LazyDeltaError) -> None:
        """Read every table the usual way."""
        why = f"DuckDB could not read the files: {error.what}"
        log_event("files that were handed to DuckDB are read again", reason=why)
        self._fallbacks.append(why)
        with told(self._context):
            for name in self.handed_over:
                take_back(self._session, name, self._tables[name], self._watch)
                self._handovers[name] = Handover(why_not=why)
            self._relation = self._session.sql(self._query, params=self._parameters)

    def _of_the_files(self, error: LazyDeltaError) -> LazyDeltaError:
        if ".parquet" not in error.what:
            return error
        roots = [self._tables[name].snapshot.storage.root for name in self.handed_over]
        return CorruptDataError(
            f"a data file cannot be read: {error.what}",
            ", ".join(roots),
            "restore it from a copy, or remove it from the table and write its rows again",
        )


def _may_be_of_files(error: LazyDeltaError) -> bool:
    """Whether DuckDB said it, and may have met it in a file."""
    cause = error.__cause__
    return cause is not None and not kind_of(cause).startswith(_NOT_OF_FILES)
