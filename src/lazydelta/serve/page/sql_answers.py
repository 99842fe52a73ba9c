"""The answer to a statement of SQL, event by event as its rows come.

Contract: as `serve/kusto/answers.py`: a `Head` first, once the first rows are there, so that whatever is
wrong until then has a status; what goes wrong later is told by the last event. Statements are planned and run
as those of Flight SQL are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.json_values import json_values
from lazydelta.engines.kql.columns import KqlColumn
from lazydelta.errors import LazyDeltaError
from lazydelta.serve.calls import CANCELLED, Call, call, kind_of
from lazydelta.serve.flight_sql.running import SOURCE, RunningStatement
from lazydelta.serve.flight_sql.statements import Statements
from lazydelta.serve.kusto.answers import Answer, Head
from lazydelta.serve.kusto.query_record import QueryRecord
from lazydelta.serve.page.explain import explained
from lazydelta.serve.page.faults import BUG, fault_of
from lazydelta.serve.page.query_events import QueryEvents
from lazydelta.serve.refusals import CancelledError
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

LOGGER = logging.getLogger("lazydelta.serve")
_ROWS_AT_ONCE = 2048
_ENCODER = msgspec.json.Encoder()


class _Rows:
    """The rows of one result as text, as many as the page takes."""

    def __init__(self) -> None:
        self.count = 0
        self.text_bytes = 0
        self.is_cut = False

    def texts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                part = batch.slice(start, _ROWS_AT_ONCE)
                room = limits.PAGE_RECORDS_MAX - self.count
                text = row_texts(part.slice(0, room))
                self.is_cut = (
                    part.num_rows > room or self.text_bytes + len(text) > limits.PAGE_RESULT_BYTES_MAX
                )
                if not self.is_cut or part.num_rows > room > 0:
                    self.count += min(room, part.num_rows)
                    self.text_bytes += len(text)
                    yield text
                if self.is_cut:
                    return


class SqlAnswers:
    """Answers of one server."""

    def __init__(self, served: Served, statements: Statements) -> None:
        self._served = served
        self._statements = statements

    def query(self, record: QueryRecord, client: Client, *, call_id: str | None) -> Answer:
        """The rows of a statement."""
        events = QueryEvents(began=time.monotonic())
        with call(self._served.metrics, "page", "query", call_id) as noted:
            noted.client, noted.table = client.name, SOURCE
            schema, handle = self._statements.plan(record.asked.text, client)
            with self._statements.running(handle, client, record.admit) as running:
                yield from self._written(running, schema, events, noted)

    def _written(
        self, running: RunningStatement, schema: pa.Schema, events: QueryEvents, noted: Call
    ) -> Answer:
        rows, fault = _Rows(), None
        with closing(running.batches(lambda batch: batch)) as batches:
            texts = rows.texts(batches)
            first = next(texts, b"")
            yield Head(running.admitted)
            begin = events.begin(_columns(schema), None)
            yield begin + events.rows(first) if first else begin
            try:
                for text in texts:
                    yield events.rows(text)
            except LazyDeltaError as error:
                fault = fault_of(error, self._served.config.tables.values())
                noted.status = CANCELLED if isinstance(error, CancelledError) else kind_of(error)
                LOGGER.info("a statement broke off: %s", error)
            except Exception:
                fault, noted.status = BUG, "bug"
                LOGGER.exception("a statement broke off")
        noted.rows = rows.count
        told = explained(running.result.explain())
        yield events.ended(rows.count, is_cut=rows.is_cut, fault=fault, told=told)


def row_texts(batch: pa.RecordBatch) -> bytes:
    """The rows as arrays of JSON, by commas."""
    columns = [json_values(column) for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
    return _ENCODER.encode(list(rows))[1:-1]


def _columns(schema: pa.Schema) -> Sequence[KqlColumn]:
    """Names, and types as Arrow calls them."""
    return [KqlColumn(field.name, str(field.type)) for field in schema]
