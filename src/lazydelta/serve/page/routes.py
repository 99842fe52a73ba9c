"""The paths of the web page, below one prefix: the page itself, and what it asks for.

Contract: every question signs in as everywhere in the server; the page and its files need no sign-in, since
they say nothing of any table.
"""

from __future__ import annotations

from functools import partial
from importlib.metadata import version as installed_version
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from lazydelta import limits
from lazydelta.serve.calls import Call
from lazydelta.serve.kusto.answers import Answers
from lazydelta.serve.kusto.response import begun
from lazydelta.serve.page.endpoint import Endpoint
from lazydelta.serve.page.facts import table_facts
from lazydelta.serve.page.map_stream import MapStreams
from lazydelta.serve.page.news import News, news
from lazydelta.serve.page.queries import PageQueries, recently
from lazydelta.serve.page.reads import Reads
from lazydelta.serve.page.requests import CompletionBody, QueryBody, Question, read_body, read_number
from lazydelta.serve.page.response import EventResponse, Events
from lazydelta.serve.page.security import HEADERS
from lazydelta.serve.page.spelling import spelled
from lazydelta.serve.page.static_files import PAGE, StaticFiles
from lazydelta.serve.page.versions import versions_of
from lazydelta.serve.served import Served

PREFIX = "/ui"
_API = PREFIX + "/api"
_TABLE = _API + "/tables/{table}"
Told = dict[str, Any]  # Any: as JSON has it


class PageApi:
    """One page."""

    def __init__(self, served: Served, kql: Answers) -> None:
        """`kql`: what answers Kusto's clients."""
        self._served = served
        self._files = StaticFiles()
        self._maps = MapStreams(served)
        self._queries = PageQueries(served, kql)
        self._reading = Reads(served, self._maps, self._queries)
        self._endpoint = Endpoint(served)

    def routes(self) -> list[BaseRoute]:
        """What an application needs to show it."""
        value, events, asked = self._endpoint.value, self._endpoint.events, self._endpoint.asked
        return [
            Route("/", _to_page),
            Route(PREFIX, _to_page),
            Route(PREFIX + "/", partial(self._static, name=PAGE)),
            Route(PREFIX + "/static/{name}", self._static),
            Route(_API + "/tables", value("tables", self._tables)),
            Route(_API + "/completions", value("completions", self._completions), methods=["POST"]),
            Route(_API + "/query", asked("query", self._query), methods=["POST"]),
            Route(_TABLE, value("table", self._table)),
            Route(_TABLE + "/versions", value("versions", self._versions)),
            Route(_TABLE + "/files", events("files", self._map)),
            Route(_TABLE + "/reads", asked("reads", self._reads), methods=["POST"]),
            Route(_TABLE + "/news", value("news", self._news)),
        ]

    def close(self) -> None:
        """Let go of what is held."""
        self._queries.close()

    async def _static(self, request: Request, name: str = "") -> Response:
        return self._files.answer(request, name or request.path_params["name"])

    def _tables(self, question: Question, _: Call) -> Told:
        tables = [
            {
                "name": one.name,
                "share": one.share,
                "schema": one.schema,
                "comment": one.comment,
                "sql_name": spelled(one.name, "sql"),
                "kql_name": spelled(one.name, "kql"),
            }
            for one in self._served.catalog.seen_by(question.client)
        ]
        return {
            "client": question.client.name,
            "is_open": self._served.sign_in.is_open,
            "version": installed_version("lazydelta"),
            "tables": tables,
        }

    def _table(self, question: Question, _: Call) -> Told:
        catalog, name, client = self._served.catalog, question.table, question.client
        with self._served.admission.admitted(client, f"facts of {name}"):
            table = catalog.open(name, client, version=read_number(question, "version"))
            return table_facts(catalog.find(name, client), table)

    def _map(self, question: Question, noted: Call) -> Events:
        return self._maps.whole(question, read_number(question, "version"), noted)

    def _versions(self, question: Question, _: Call) -> Told:
        name, client = question.table, question.client
        count = min(read_number(question, "count") or limits.PAGE_VERSIONS, limits.PAGE_VERSIONS_MAX)
        with self._served.admission.admitted(client, f"versions of {name}"):
            table = self._served.catalog.open(name, client, asked_at=recently())
            before = read_number(question, "before")
            newest = table.version if before is None else min(before - 1, table.version)
            found = versions_of(table, newest=newest, count=count)
        has_more = bool(found) and found[-1].version > 0 and len(found) == count
        return {"versions": found, "before": found[-1].version if has_more else None}

    async def _reads(self, request: Request, question: Question) -> Response:
        body = read_body(question.body, QueryBody)
        record = self._queries.record(body, question)
        return await self._endpoint.streamed(
            request,
            question,
            "reads",
            partial(self._reading.events, question, body, record),
            partial(record.cancel, "its client has gone"),
        )

    def _completions(self, question: Question, _: Call) -> Told:
        return self._queries.candidates(read_body(question.body, CompletionBody), question)

    async def _query(self, request: Request, question: Question) -> Response:
        answer, record = self._queries.answer(read_body(question.body, QueryBody), question)
        gone = partial(record.cancel, "its client has gone")
        head = await begun(answer, self._endpoint.starts, request.receive, gone)
        return EventResponse(
            answer,
            self._endpoint.pulls,
            stalled_seconds=self._served.admission.limits.stalled_seconds,
            admitted=head.admitted,
        )

    def _news(self, question: Question, _: Call) -> News:
        return news(self._served, question.table, question.client, read_number(question, "after"))


async def _to_page(_: Request) -> Response:
    return RedirectResponse(PREFIX + "/", 307, headers=HEADERS)
