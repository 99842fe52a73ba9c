"""SQL statements: planned into signed handles, streamed by them.

Contract: a statement reads the tables that its client may read, at the versions that its handle pins, within
the memory of one statement; so many run at once that they keep within the server's memory together. Nothing
is kept between planning and streaming but the handle, which the client has.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.engines.asked_filters import Filters, asked_filters
from lazydelta.engines.kql.catalog import nearest
from lazydelta.engines.query_plan import plan_facts
from lazydelta.engines.result_types import check_types
from lazydelta.engines.session import Duck
from lazydelta.engines.sql import answer
from lazydelta.engines.sql_errors import SqlContext, told
from lazydelta.engines.sql_result import SqlResult
from lazydelta.engines.watch import Watch
from lazydelta.errors import InvalidRequestError, LazyDeltaError, TableNotFoundError
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.batches import plain_schema
from lazydelta.serve.config import ServedTable
from lazydelta.serve.flight_sql.parameter_types import parameter_types
from lazydelta.serve.flight_sql.parameters import bound_values, no_values, wanted_parameters
from lazydelta.serve.flight_sql.running import SOURCE, RunningStatement
from lazydelta.serve.flight_sql.session import Standing, fenced_session, full_name
from lazydelta.serve.scans import Stream
from lazydelta.serve.served import Served
from lazydelta.serve.session_fence import check_plan
from lazydelta.serve.sign_in import Client
from lazydelta.serve.statement_bounds import nodes_of
from lazydelta.serve.statement_guard import Checked, Guard, NamedTable
from lazydelta.serve.statement_memory import check_memory
from lazydelta.serve.tickets import check_table
from lazydelta.serve.tracing import part_across

_STATEMENT, _PREPARED = b"lazydelta-statement-2 ", b"lazydelta-prepared-1 "
PREPARED_SECONDS = 24 * 3600.0  # that a prepared statement may be used


class Pinned(msgspec.Struct, frozen=True, array_like=True):
    """A table of a statement."""

    version: int
    id: str  # by the metadata of that version


class Statement(msgspec.Struct, frozen=True, array_like=True):
    """A statement that can be run."""

    client: str
    query: str
    tables: dict[str, Pinned]
    schema: bytes  # of its rows, as IPC
    parameters: bytes | None  # one row, as IPC
    expires_at: float
    id: str = ""  # no two are the same


class Prepared(msgspec.Struct, frozen=True, array_like=True):
    """A statement that waits for its parameters."""

    client: str
    query: str
    parameters: bytes | None
    expires_at: float
    id: str = ""


class Described(msgspec.Struct, frozen=True):
    """What is known of a statement without running it."""

    schema: pa.Schema
    parameters: pa.Schema


class Statements:
    """Plans and runs them."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._guard = Guard()
        self._memory = served.statement_memory

    def close(self) -> None:
        """Let go of DuckDB."""
        self._guard.close()

    def describe(self, query: str, client: Client) -> Described:
        """The columns and the parameters of a statement; parameters are taken for null."""
        checked = self._guard.check(query)
        with self._opened(checked, client) as (session, tables):
            types = parameter_types(nodes_of(checked.tree), [source.schema for _, source in tables])
            wanted = wanted_parameters(session, query, types)
            schema = _schema_of(session, query, no_values(session, query), tables)
            return Described(schema, wanted)

    def plan(self, query: str, client: Client, parameters: bytes | None = None) -> tuple[pa.Schema, bytes]:
        """The columns of a statement, and the handle that runs it."""
        checked = self._guard.check(query, parameters)
        with self._opened(checked, client) as (session, tables):
            values = bound_values(session, query, _row(parameters))
            schema = _schema_of(session, query, values, tables)
        statement = Statement(
            client.name,
            query,
            _pinned(tables),
            schema.serialize().to_pybytes(),
            parameters,
            self._served.tickets.expiry(),
            secrets.token_hex(8),
        )
        return schema, self._served.tickets.sealed(_STATEMENT, statement)

    def stream(self, handle: bytes, client: Client, *, ticket_id: str) -> tuple[pa.Schema, Stream]:
        """The columns and rows of a planned statement."""
        statement = self._served.tickets.opened(_STATEMENT, handle, Statement, client=client.name)
        schema = pa.ipc.read_schema(pa.py_buffer(statement.schema))
        return schema, self._rows(statement, client, schema, ticket_id)

    @contextmanager
    def running(
        self, handle: bytes, client: Client, on_admitted: Callable[[Admitted], None]
    ) -> Iterator[RunningStatement]:
        """A planned statement for as long as the block takes; `on_admitted` is told of its place at once."""
        statement = self._served.tickets.opened(_STATEMENT, handle, Statement, client=client.name)
        with self._running(statement, client, on_admitted=on_admitted) as running:
            yield running

    def asked_filters(
        self, query: str, client: Client, on_admitted: Callable[[Admitted], None]
    ) -> Filters | None:
        """What the statement would ask of the tables that it reads, by their names; nothing is read.

        None: that does not come out without its rows. `on_admitted` is told of its place at once.
        """
        with self._opened(self._guard.check(query), client, on_admitted) as (session, tables):
            values = bound_values(session, query, None)
            _schema_of(session, query, values, tables)
            sources = {full_name(table): source for table, source in tables}
            found = asked_filters(session, query, sources, Watch(), parameters=values)
        names = {full_name(table): table.name for table, _ in tables}
        return None if found is None else {names[name]: condition for name, condition in found.items()}

    def prepare(self, query: str, client: Client, parameters: bytes | None = None) -> bytes:
        """The handle of a prepared statement, with its parameters once they are bound."""
        expires_at = time.time() + PREPARED_SECONDS
        prepared = Prepared(client.name, query, parameters, expires_at, secrets.token_hex(8))
        return self._served.tickets.sealed(_PREPARED, prepared)

    def prepared(self, handle: bytes, client: Client) -> Prepared:
        """What `prepare` gave."""
        return self._served.tickets.opened(_PREPARED, handle, Prepared, client=client.name)

    def _rows(self, statement: Statement, client: Client, schema: pa.Schema, ticket_id: str) -> Stream:
        with self._running(statement, client, ticket_id=ticket_id) as running:
            yield from running.batches(partial(_as, schema=schema))

    @contextmanager
    def _running(
        self,
        statement: Statement,
        client: Client,
        *,
        ticket_id: str = "",
        on_admitted: Callable[[Admitted], None] = lambda _: None,
    ) -> Iterator[RunningStatement]:
        admission = self._served.admission
        with (
            part_across("scan") as trace,
            admission.admitted(client, SOURCE, ticket_id=ticket_id) as admitted,
            self._memory.share(SOURCE, client, waiting_seconds=admission.limits.waiting_seconds),
        ):
            on_admitted(admitted)
            with closing(self._result(statement, client, admitted)) as rows:
                admitted.when_stopped(rows.close)
                try:
                    yield RunningStatement(rows, admitted)
                finally:
                    trace.note(what=SOURCE, rows=admitted.rows)

    def _result(self, statement: Statement, client: Client, admitted: Admitted) -> SqlResult:
        watch = Watch()
        admitted.when_stopped(watch.stop)
        tables = self._sources(
            self._guard.check(statement.query, statement.parameters), client, statement.tables
        )
        session = fenced_session(tables, self._memory.options(SOURCE))
        try:
            admitted.when_stopped(partial(_interrupt, session))
            values = bound_values(session, statement.query, _row(statement.parameters))
            sources = {full_name(table): source for table, source in tables}
            return answer(session, statement.query, sources, watch, parameters=values)
        except BaseException:
            watch.stop()
            session.close()
            raise

    @contextmanager
    def _opened(
        self, checked: Checked, client: Client, on_admitted: Callable[[Admitted], None] = lambda _: None
    ) -> Iterator[tuple[Duck, list[Standing]]]:
        """A session in which the tables have columns, and no rows; planning is as limited as running."""
        with self._served.admission.admitted(client, SOURCE) as admitted:
            on_admitted(admitted)
            tables = self._sources(checked, client, {})
            with closing(fenced_session(tables, self._memory.options(SOURCE))) as session:
                admitted.when_stopped(partial(_interrupt, session))
                try:
                    yield session, tables
                except LazyDeltaError as error:
                    admitted.check()  # it was told to stop: that is why
                    check_memory(error, SOURCE)
                    raise
                admitted.check()  # DuckDB does not always listen

    def _sources(self, checked: Checked, client: Client, pinned: Mapping[str, Pinned]) -> list[Standing]:
        """The tables of a statement as they were pinned, or at their newest."""
        seen = self._served.catalog.seen_by(client)
        tables: list[Standing] = []
        for named in checked.tables:
            table = _found(named, seen)
            if table is None and named.name.lower() in checked.own_names and str(named) == named.name:
                continue
            if table is None:
                hint = nearest(named.name, [one.name for one in seen], "tables")
                raise TableNotFoundError(f"there is no table {str(named)[:200]!r}", "table", hint)
            if all(table is not other for other, _ in tables):
                known = pinned.get(table.name)
                version = None if known is None else known.version
                opened = self._served.catalog.open(table.name, client, version=version)
                if known is not None:
                    check_table(known.id, opened.metadata.id)
                tables.append((table, opened.scan().source))
        return tables


def _found(named: NamedTable, seen: list[ServedTable]) -> ServedTable | None:
    """The table of that name; cases do not matter where they are not needed to tell tables apart."""
    fits = [table for table in seen if _fits(named, table, str.lower)]
    exact = [table for table in fits if _fits(named, table, str)]
    if len(fits) > 1 and len(exact) != 1:
        raise InvalidRequestError(
            f"{named} may be one of several tables", "SQL", "write its name as it is listed, in quotes"
        )
    return next(iter(exact or fits), None)


def _fits(named: NamedTable, table: ServedTable, shaped: Callable[[str], str]) -> bool:
    pairs = ((named.catalog, table.share), (named.schema, table.schema), (named.name, table.name))
    return all(not asked or shaped(asked) == shaped(has) for asked, has in pairs)


def _schema_of(
    session: Duck,
    query: str,
    values: Any,  # Any: what DuckDB binds
    tables: Sequence[Standing],
) -> pa.Schema:
    """The columns of a query that only reads; what is wrong with it is told by its place."""
    facts = plan_facts(session, query, values)
    check_plan(facts)
    columns = {full_name(table): source.schema.names for table, source in tables}
    with told(SqlContext(query, columns, located=facts.problem)):
        relation = session.sql(query, params=values)
        check_types(relation)
        return plain_schema(relation.limit(0).to_arrow_table().schema)


def _interrupt(session: Duck) -> None:
    with suppress(Exception):  # it may be over already
        session.interrupt()


def _as(batch: pa.RecordBatch, *, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns that were told."""
    if batch.schema != schema:
        return batch.cast(schema)
    return batch


def _row(parameters: bytes | None) -> pa.RecordBatch | None:
    if parameters is None:
        return None
    with pa.ipc.open_stream(parameters) as reader:
        return reader.read_next_batch()


def _pinned(tables: Sequence[Standing]) -> dict[str, Pinned]:
    return {
        table.name: Pinned(source.snapshot.version, source.snapshot.state.metadata.id)
        for table, source in tables
    }
