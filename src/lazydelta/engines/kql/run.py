"""KQL over lazy tables, run as SQL is.

Contract: the query is checked before anything is read, runs when its first batch is asked for and is pulled
from then on. What is wrong with it is a `KqlError` with its place, whoever noticed it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lazydelta.engines.asked_filters import Filters, asked_filters
from lazydelta.engines.kql.columns import KqlColumn, result_columns, shaped, shaped_batch, shaped_schema
from lazydelta.engines.kql.library import install
from lazydelta.engines.kql.result import KqlResult
from lazydelta.engines.kql.run_problems import RunContext, told_by_duckdb
from lazydelta.engines.kql.translate import KqlCatalog, StoredFunction, Translated, translate
from lazydelta.engines.running_query import RunningQuery
from lazydelta.engines.session import Duck, SqlOptions, close_session, open_session
from lazydelta.engines.sql import check_columns, check_names
from lazydelta.engines.watch import Watch
from lazydelta.rows.source import RowSource


def run_kql(
    text: str,
    tables: Mapping[str, RowSource],
    *,
    parameters: Mapping[str, Any] | None = None,  # Any: text, or what JSON has
    options: SqlOptions | None = None,
    functions: Sequence[StoredFunction] = (),
    now: dt.datetime | None = None,
    others: Iterable[str] = (),
) -> KqlResult:
    """The rows of a query over these tables, in a session of its own.

    `others`: further names that there are, for what an error suggests.
    """
    schemas = {name: source.schema for name, source in tables.items()}
    catalog = KqlCatalog(schemas, functions=functions, others=tuple(others))
    translated = translate(text, catalog, parameters=parameters, now=now)
    session = open_session(options or SqlOptions())
    watch = Watch()
    try:
        return run_translated(session, translated, tables, watch)
    except BaseException:
        watch.stop()
        close_session(session)
        raise


def run_translated(
    session: Duck, translated: Translated, sources: Mapping[str, RowSource], watch: Watch
) -> KqlResult:
    """The rows of a query in a session, which is closed with them."""
    used = {name: sources[name] for name in translated.tables}
    check_names(used)
    known = {name: source.schema.names for name, source in used.items()}
    for name, source in used.items():
        check_columns(name, source.schema)
    context = RunContext(translated.text, known)
    values = dict(translated.values) or None
    with told_by_duckdb(context):
        install(session, translated.sql)
        for name, source in used.items():
            session.register(name, source.schema.empty_table())
        relation = session.sql(translated.sql, params=values)
        columns = result_columns(relation.columns, relation.types)
        sql = shaped(translated.sql, columns, relation.types)
        running = RunningQuery(session, sql, used, watch, parameters=values, known=known)
        schema = shaped_schema(running.prepare(), columns)
    batches = _batches(running, columns, context)
    return KqlResult(schema, running, batches, translated=translated, columns=columns)


def filters_of_translated(
    session: Duck, translated: Translated, sources: Mapping[str, RowSource], watch: Watch
) -> Filters | None:
    """What the query would ask of its tables."""
    used = {name: sources[name] for name in translated.tables}
    with told_by_duckdb(RunContext(translated.text, {name: one.schema.names for name, one in used.items()})):
        install(session, translated.sql)
        return asked_filters(session, translated.sql, used, watch, parameters=dict(translated.values) or None)


def _batches(
    running: RunningQuery, columns: tuple[KqlColumn, ...], context: RunContext
) -> Generator[pa.RecordBatch, None, None]:
    with told_by_duckdb(context):
        for batch in running.batches():
            yield shaped_batch(batch, columns)
