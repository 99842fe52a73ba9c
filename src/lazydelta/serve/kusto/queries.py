"""A query of KQL, run for one client: translated, fenced, streamed.

Contract: it has a place among the scans that run and a share of the memory of statements from before it is
translated until it is closed, whoever closes it. Its SQL is behind the fences that SQL of strangers is
behind: looked at as a tree, run in a session that reaches the files of its own tables alone, its plan looked
at before anything runs. Whatever ends it early ends the reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

import msgspec
import pyarrow as pa

from lazydelta.engines.asked_filters import Filters
from lazydelta.engines.kql.result import KqlResult
from lazydelta.engines.kql.run import filters_of_translated, run_translated
from lazydelta.engines.kql.translate import KqlCatalog, Translated, translate
from lazydelta.engines.session import Duck, close_session
from lazydelta.engines.watch import Watch
from lazydelta.errors import InvalidRequestError
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.kusto.query_record import QueryRecord
from lazydelta.serve.kusto.requests import Asked, Settings, lower_options, read_settings
from lazydelta.serve.kusto.running import SOURCE, RunningQuery, told
from lazydelta.serve.kusto.seen import SeenTables, catalog_of, found_database
from lazydelta.serve.kusto.spare_sessions import SpareSessions
from lazydelta.serve.kusto.translations import Translations
from lazydelta.serve.served import Served
from lazydelta.serve.session_fence import check_operators, fence
from lazydelta.serve.sign_in import Client
from lazydelta.serve.statement_guard import Guard
from lazydelta.serve.tracing import part_across

_TYPICAL = (
    "external_table('T') | where a >= 'x' and b == 'y' | extend d = c + 1, e = strcat(a, b)"
    " | summarize n = count(), avg(c) by bin(t, 1h), a | order by n desc | project a, n | take 100"
)
_TYPICAL_COLUMNS = pa.schema(
    {"a": pa.string(), "b": pa.string(), "c": pa.float64(), "t": pa.timestamp("us", "UTC")}
)


class Queries:
    """Runs them."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._guard = Guard()
        self._sessions = SpareSessions()
        self._translations = Translations()

    def warm(self) -> None:
        """Have ready what the first query would wait for: the translation's grammar, DuckDB, a session."""
        translated = translate(_TYPICAL, KqlCatalog({"T": _TYPICAL_COLUMNS}))
        self._guard.check_translated(translated.sql)
        self._sessions.refill(self._served.statement_memory.options(SOURCE))

    def close(self) -> None:
        """Let go of DuckDB."""
        self._guard.close()
        self._sessions.close()

    def settings(self, options: dict[str, object], client: Client) -> Settings:
        """What the options say; the server's own limit of rows is one, too."""
        given = self._served.admission.limits
        found = read_settings(
            options,
            records_max=given.kusto_records,
            bytes_max=given.kusto_bytes,
            seconds=given.kusto_seconds or float("inf"),
        )
        own = given.rows if client.limits.rows is None else client.limits.rows
        if not own:
            return found
        records = own if found.records_max is None else min(own, found.records_max)
        return msgspec.structs.replace(found, records_max=records)

    @contextmanager
    def running(self, asked: Asked, client: Client, record: QueryRecord) -> Iterator[RunningQuery]:
        """The query for as long as the block takes."""
        served, settings = self._served, self.settings(dict(asked.options), client)
        admission = served.admission
        with (
            part_across("scan") as trace,
            admission.admitted(client, SOURCE) as admitted,
            served.statement_memory.share(SOURCE, client, waiting_seconds=admission.limits.waiting_seconds),
        ):
            record.admit(admitted)
            admission.hasten(admitted, settings.seconds)
            with told(admitted):
                tables = SeenTables(served, client)
                found_database(asked.database, tables)
                translated = self._translated(asked, catalog_of(served, tables, asked.text), settings)
                settings = self._with_set(asked, translated, client)
                admission.hasten(admitted, settings.seconds)
                result = self._result(translated, tables, admitted)
            with closing(result):
                admitted.when_stopped(result.close)
                try:
                    yield RunningQuery(result, admitted, settings)
                finally:
                    trace.note(what=SOURCE, rows=admitted.rows)
        self._sessions.refill(served.statement_memory.options(SOURCE))

    def asked_filters(
        self, asked: Asked, client: Client, on_admitted: Callable[[Admitted], None]
    ) -> Filters | None:
        """What the query would ask of the tables that it reads, by their names; nothing is read.

        None: that does not come out without its rows. `on_admitted` is told of its place at once.
        """
        served = self._served
        with served.admission.admitted(client, SOURCE) as admitted, told(admitted):
            on_admitted(admitted)
            tables = SeenTables(served, client)
            settings = self.settings(dict(asked.options), client)
            translated = self._translated(asked, catalog_of(served, tables, asked.text), settings)
            session = self._sessions.take(served.statement_memory.options(SOURCE))
            try:
                admitted.when_stopped(partial(_interrupt, session))
                fence(session, tables.sources.values())
                return filters_of_translated(session, translated, tables.sources, Watch())
            finally:
                close_session(session)

    def _translated(self, asked: Asked, catalog: KqlCatalog, settings: Settings) -> Translated:
        def anew() -> Translated:
            found = translate(asked.text, catalog, parameters=asked.parameters, now=settings.now)
            self._check(found)
            return found

        if settings.now is not None:
            return anew()
        return self._translations.get(asked.text, catalog, asked.parameters, anew)

    def _with_set(self, asked: Asked, translated: Translated, client: Client) -> Settings:
        """`set` statements of the query count more than the request's options."""
        return self.settings({**asked.options, **lower_options(translated.settings)}, client)

    def _check(self, translated: Translated) -> None:
        """Look at the SQL as at a stranger's: it may name its tables, and nothing else."""
        checked = self._guard.check_translated(translated.sql)
        known = {name.lower() for name in translated.tables} | checked.own_names
        for named in checked.tables:
            if str(named).lower() not in known and named.name.lower() not in known:
                raise InvalidRequestError(f"there is no table {str(named)[:200]!r}", SOURCE, "mend the query")

    def _result(self, translated: Translated, tables: SeenTables, admitted: Admitted) -> KqlResult:
        watch = Watch()
        admitted.when_stopped(watch.stop)
        session = self._sessions.take(self._served.statement_memory.options(SOURCE))
        try:
            admitted.when_stopped(partial(_interrupt, session))
            fence(session, tables.sources.values())
            result = run_translated(session, translated, tables.sources, watch)
            check_operators(result.report().run.left_to_duckdb)
        except BaseException:
            watch.stop()
            close_session(session)
            raise
        return result


def _interrupt(session: Duck) -> None:
    with suppress(Exception):  # it may be over already
        session.interrupt()
