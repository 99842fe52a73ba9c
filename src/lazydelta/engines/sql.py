"""SQL over tables, run by DuckDB: filters and columns reach the scans, the rest happens in DuckDB.

Contract: every table is the version that its source pins. Joins, aggregates and windows stay within the
session's memory limit and spill; rows stream, so that whoever stops pulling stops the reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa

from lazydelta.engines.running_query import RunningQuery
from lazydelta.engines.session import (
    Duck,
    Parameters,
    SqlOptions,
    checked_parameters,
    close_session,
    open_session,
)
from lazydelta.engines.sql_result import SqlResult
from lazydelta.engines.watch import Watch
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.source import RowSource

# A statement that begins a transaction, behind comments.
_BEGINS = re.compile(r"(?:/\*.*?\*/|--[^\n]*\n|[\s;])*(?:begin|start)\b", re.IGNORECASE | re.DOTALL)


def run_sql(
    query: str,
    tables: Mapping[str, RowSource],
    *,
    parameters: Parameters = None,
    options: SqlOptions | None = None,
) -> SqlResult:
    """The rows of a query over these tables; statements before the last run at once."""
    checked_query(query)
    check_names(tables)
    session = open_session(options or SqlOptions())
    watch = Watch()
    try:
        return answer(session, query, tables, watch, parameters=parameters)
    except BaseException:
        watch.stop()
        close_session(session)
        raise


def answer(
    session: Duck,
    query: str,
    tables: Mapping[str, RowSource],
    watch: Watch,
    *,
    parameters: Parameters = None,
    known: Mapping[str, pa.Schema] | None = None,
) -> SqlResult:
    """The rows of a query over tables in a session, which is closed with them.

    `known`: further tables that have names there, for what an error suggests.
    """
    for name, source in tables.items():
        check_columns(name, source.schema)
    schemas = {name: source.schema for name, source in tables.items()} | dict(known or {})
    columns = {name: schema.names for name, schema in schemas.items()}
    values = checked_parameters(parameters)
    _check_transactions(session, query)
    running = RunningQuery(session, query, tables, watch, parameters=values, known=columns)
    return SqlResult(running.prepare(), running, where=_shown(query))


def checked_query(query: object) -> str:
    """The query, if it is text that says something."""
    if not isinstance(query, str):
        raise InvalidRequestError(f"the query is {query!r}"[:200], "SQL", "give SQL as text")
    if not query.strip().strip(";"):
        raise InvalidRequestError("the query is empty", "SQL", "write one, as in: select count(*) from t")
    return query


def check_names(names: Iterable[str]) -> None:
    """Raise where two names are one to SQL, which does not tell cases apart."""
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidRequestError(f"a table's name is {name!r}", "SQL", 'give {"name": table or URL}')
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InvalidRequestError(
                f"the names {other!r} and {name!r} are the same in SQL", "SQL", "give the tables other names"
            )


def check_columns(table: str, columns: Iterable[pa.Field], within: str = "") -> None:
    """Raise where two columns are one to SQL: it would give the first for both."""
    seen: dict[str, str] = {}
    for field in columns:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise InvalidRequestError(
                f"the columns {within}{other} and {within}{field.name} of {table} are the same in SQL",
                "SQL",
                "read them with scan(…).batches([…]), which tells cases apart",
            )
        if pa.types.is_nested(field.type):
            inside = (field.type.field(at) for at in range(field.type.num_fields))
            check_columns(table, inside, f"{within}{field.name}.")


def _check_transactions(session: Duck, query: str) -> None:
    """Raise where a script leaves a transaction open: its session is not the next query's."""
    if not any(word in query.lower() for word in ("begin", "start")):
        return
    try:
        statements = session.extract_statements(query)
    except Exception:  # noqa: BLE001 - what does not parse is told when it is run
        return
    steps = [step.query for step in statements if step.type.name == "TRANSACTION"]
    if steps and _BEGINS.match(steps[-1]):
        raise InvalidRequestError(
            "the transaction would end with this query, and what it did be lost",
            _shown(query),
            "begin and commit it in one script: each query has a session of its own",
        )


def _shown(query: str) -> str:
    return " ".join(query.split())[:200]
