"""Queries that are typed into the page: run, looked at before they run, completed.

Contract: SQL goes the way of Flight SQL's statements, KQL that of Kusto's queries: the same fences, limits,
places and words. What the page shows of a result is bounded (`limits.PAGE_RECORDS_MAX`).
"""

from __future__ import annotations

import re
import time
import uuid

from lazydelta import limits
from lazydelta.engines.asked_filters import Filters
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.flight_sql.statements import Statements
from lazydelta.serve.kusto.answers import Answer, Answers
from lazydelta.serve.kusto.query_record import QueryRecord
from lazydelta.serve.kusto.requests import Asked
from lazydelta.serve.page.completions import completions
from lazydelta.serve.page.query_events import QueryEvents
from lazydelta.serve.page.requests import CompletionBody, QueryBody, Question
from lazydelta.serve.page.sql_answers import SqlAnswers
from lazydelta.serve.served import Served

_TABLES_MAX = 8  # whose columns are offered


class PageQueries:
    """Those of one server."""

    def __init__(self, served: Served, kql: Answers) -> None:
        self._served = served
        self._kql = kql
        self._statements = Statements(served)
        self._sql = SqlAnswers(served, self._statements)

    def close(self) -> None:
        """Let go of DuckDB."""
        self._statements.close()

    def answer(self, body: QueryBody, question: Question) -> tuple[Answer, QueryRecord]:
        """The rows of a query as events, and the record by which it is told to stop before they come."""
        record, began = self.record(body, question), time.monotonic()
        if body.language == "sql":
            return self._sql.query(record, question.client, call_id=question.id), record
        events = self._kql.query(
            record,
            question.client,
            lambda *_: QueryEvents(began=began),
            call_id=question.id,
            protocol="page",
        )
        return events, record

    def filters(self, body: QueryBody, question: Question, record: QueryRecord) -> Filters | None:
        """What the query would ask of its tables; None where that does not come out without its rows.

        `record`: by which it is told to stop. It has a few seconds: nobody asked for it.
        """

        def admitted(place: Admitted) -> None:
            record.admit(place)
            self._served.admission.hasten(place, limits.PAGE_LOOK_SECONDS)

        if body.language == "sql":
            return self._statements.asked_filters(body.text, question.client, admitted)
        return self._kql.queries.asked_filters(record.asked, question.client, admitted)

    def record(self, body: QueryBody, question: Question) -> QueryRecord:
        """The record of a query."""
        return QueryRecord(_asked(body.text), question.client)

    def candidates(self, body: CompletionBody, question: Question) -> dict[str, object]:
        """Words that may stand where the cursor is, and the one that is begun there."""
        return completions(body.language, body.before, self._columns(body, question))

    def _columns(self, body: CompletionBody, question: Question) -> dict[str, list[str]]:
        """The tables that there are; columns of those that the query names, and of the one that is shown."""
        catalog, client = self._served.catalog, question.client
        names = [table.name for table in catalog.seen_by(client)]
        named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", body.text, re.IGNORECASE)]
        wanted = (named or [name for name in names if name == body.table])[:_TABLES_MAX]
        opened = {name: catalog.open(name, client, asked_at=recently()) for name in wanted}
        return {name: list(opened[name].schema.names) if name in opened else [] for name in names}


def _asked(text: str) -> Asked:
    """As a client of Kusto would ask."""
    options = {
        "truncationmaxrecords": limits.PAGE_RECORDS_MAX,
        "truncationmaxsize": limits.PAGE_RESULT_BYTES_MAX,
    }
    return Asked(
        text=text,
        database="",
        options=options,
        parameters={},
        request_id=f"page;{uuid.uuid4()}",
        activity_id=str(uuid.uuid4()),
        application="lazydelta page",
    )


def recently() -> float:
    """Schemas may be so old: completion need not list the log for each key."""
    return time.monotonic() - 10 * limits.PAGE_NEWS_SECONDS
