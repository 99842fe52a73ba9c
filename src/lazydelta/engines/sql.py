"""SQL over tables, run by DuckDB: filters and columns reach the scans, the rest happens in DuckDB.

Contract: every table is the version that its source pins. Joins, aggregates and windows stay within the
session's memory limit and spill; rows stream, so that whoever stops pulling stops the reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from lazydelta.engines.running_query import RunningQuery
from lazydelta.engines.session import Duck, Parameters, SqlOptions, open_session, told
from lazydelta.engines.sql_result import SqlResult
from lazydelta.engines.watch import Watch
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.source import RowSource


def run_sql(
    query: str,
    tables: Mapping[str, RowSource],
    *,
    parameters: Parameters = None,
    options: SqlOptions | None = None,
) -> SqlResult:
    """The rows of a query over these tables; statements before the last run at once."""
    checked_query(query)
    session = open_session(options or SqlOptions())
    watch = Watch()
    try:
        return answer(session, query, tables, watch, parameters=parameters)
    except BaseException:
        watch.stop()
        session.close()
        raise


def answer(
    session: Duck,
    query: str,
    tables: Mapping[str, RowSource],
    watch: Watch,
    *,
    parameters: Parameters = None,
) -> SqlResult:
    """The rows of a query over tables in a session, which is closed with them."""
    running = RunningQuery(session, query, tables, watch, parameters)
    with told(query, watch.error):
        schema = running.prepare()
    result = SqlResult(schema, running.batches(), where=_shown(query), stop=running.stop)
    result.handed_over = running.handed_over
    return result


def checked_query(query: object) -> str:
    """The query, if it is text that says something."""
    if not isinstance(query, str):
        raise InvalidRequestError(f"the query is {query!r}"[:200], "SQL", "give SQL as text")
    if not query.strip().strip(";"):
        raise InvalidRequestError("the query is empty", "SQL", "write one, as in: select count(*) from t")
    return query


def _shown(query: str) -> str:
    return " ".join(query.split())[:200]
