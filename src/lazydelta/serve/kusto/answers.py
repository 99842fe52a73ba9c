"""The answer to a query, byte by byte as its rows come.

Contract: a generator that gives a `Head` first, once the first rows are there, so that whatever is wrong
until then has a status; bytes follow. What goes wrong later is told in the body, which is whole all the same.
It has one line in the access log, and one record among the queries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import closing

import msgspec

from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.batches import in_messages
from lazydelta.serve.calls import CANCELLED, Call, call, kind_of
from lazydelta.serve.kusto.completion import Ending
from lazydelta.serve.kusto.explain import explained
from lazydelta.serve.kusto.faults import BUG, Fault, fault_of
from lazydelta.serve.kusto.frames import Writer
from lazydelta.serve.kusto.queries import Queries
from lazydelta.serve.kusto.query_log import QueryLog
from lazydelta.serve.kusto.query_record import QueryRecord
from lazydelta.serve.kusto.requests import Asked, Settings
from lazydelta.serve.kusto.result_rows import ResultRows
from lazydelta.serve.kusto.running import SOURCE, RunningQuery
from lazydelta.serve.refusals import CancelledError, LimitReachedError
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

LOGGER = logging.getLogger("lazydelta.serve")
_OWN_DOING = (LimitReachedError, CancelledError)  # of the client
MakeWriter = Callable[[Asked, Settings], Writer]


class Head(msgspec.Struct, frozen=True):
    """The first rows are there."""

    admitted: Admitted


Answer = Generator[Head | bytes, None, None]


class Answers:
    """Answers of one server."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.queries = Queries(served)
        self.log = QueryLog()

    def warm(self) -> None:
        """Have ready what the first query would wait for."""
        self.queries.warm()

    def close(self) -> None:
        """Let go of what is held."""
        self.queries.close()

    def query(
        self,
        record: QueryRecord,
        client: Client,
        make: MakeWriter,
        *,
        call_id: str | None,
        protocol: str = "kusto",
    ) -> Answer:
        """The rows of a query."""
        asked, began = record.asked, time.monotonic()
        with (
            call(self._served.metrics, protocol, "query", call_id) as noted,
            self.log.running(record, lambda error: self.fault(error).text),
        ):
            noted.client, noted.table = client.name, SOURCE
            with self.queries.running(asked, client, record) as running:
                yield from self._written(running, record, make, noted, began)

    def fault(self, error: LazyDeltaError) -> Fault:
        """The error as a client may read it."""
        return fault_of(error, self._served.config.tables.values())

    def _written(
        self, running: RunningQuery, record: QueryRecord, make: MakeWriter, noted: Call, began: float
    ) -> Answer:
        result, settings = running.result, running.settings
        rows = ResultRows([column.type for column in result.columns], settings)
        writer, fault = make(record.asked, settings), None
        with closing(_texts(running, rows)) as texts:
            first = next(texts, b"")
            yield Head(running.admitted)
            begin = writer.begin(result.columns, result.visualization)
            yield begin + writer.rows(first) if first else begin
            try:
                for text in texts:
                    noted.rows = rows.rows
                    yield writer.rows(text)
            except LazyDeltaError as error:
                fault = self.fault(error)
                noted.status = CANCELLED if isinstance(error, CancelledError) else kind_of(error)
                record.fail(error, fault.text)
                level = logging.INFO if isinstance(error, _OWN_DOING) else logging.WARNING
                LOGGER.log(level, "a query broke off: %s", error)
            except Exception as error:
                fault, noted.status = BUG, "bug"
                record.fail(error, BUG.text)
                LOGGER.exception("a query broke off")
        noted.rows = record.rows = rows.rows
        record.text_bytes = rows.text_bytes
        ending = Ending(
            rows=rows.rows,
            text_bytes=rows.text_bytes,
            seconds=time.monotonic() - began,
            fault=fault,
            explained=explained(result.report()) if settings.is_explained else None,
            report=result.report(),
        )
        yield writer.end(ending)


def _texts(running: RunningQuery, rows: ResultRows) -> Generator[bytes, None, None]:
    """The rows as text, some at a time."""
    with closing(running.batches()) as batches:
        for batch in batches:
            for part in in_messages(batch, limits.SERVE_MESSAGE_BYTES):
                text, problem = rows.add(part)
                if text:
                    yield text
                if problem is not None:
                    raise problem
                if rows.is_done:
                    return
