"""SQL over tables, run by DuckDB: filters and columns reach the scans, the rest happens in DuckDB.

Contract: every table is the version that its source pins. Joins, aggregates and windows stay within the
session's memory limit and spill; rows stream, so that whoever stops pulling stops the reads.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.session import Duck, SqlOptions, open_session, told
from lazydelta.engines.sql_result import SqlResult
from lazydelta.engines.watched_dataset import Watch, WatchedDataset
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.source import RowSource

Parameters = Sequence[Any] | Mapping[str, Any] | None  # Any: values that DuckDB binds


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
        for name, source in tables.items():
            session.register(name, WatchedDataset(source, watch))
        return answer(session, query, watch, parameters=parameters, is_own=True)
    except BaseException:
        watch.stop()
        session.close()
        raise


def answer(
    session: Duck, query: str, watch: Watch, *, parameters: Parameters = None, is_own: bool
) -> SqlResult:
    """The rows of a query in a session, which is closed with them where it is the query's own."""
    with told(query, watch.error):
        relation = session.sql(query, params=parameters)
        schema = pa.schema([]) if relation is None else relation.limit(0).to_arrow_table().schema
    running = _Running(session, watch, is_own=is_own)
    return SqlResult(schema, running.batches(relation, query), where=_shown(query), stop=running.stop)


def checked_query(query: object) -> str:
    """The query, if it is text that says something."""
    if not isinstance(query, str):
        raise InvalidRequestError(f"the query is {query!r}"[:200], "SQL", "give SQL as text")
    if not query.strip().strip(";"):
        raise InvalidRequestError("the query is empty", "SQL", "write one, as in: select count(*) from t")
    return query


class _Running:
    """A query under way."""

    def __init__(self, session: Duck, watch: Watch, *, is_own: bool) -> None:
        self._session = session
        self._watch = watch
        self._is_own = is_own
        self._is_stopped = False

    def batches(self, relation: Duck, query: str) -> Generator[pa.RecordBatch, None, None]:
        reader = None
        try:
            if relation is None:
                return
            with told(query, self._watch.error):
                reader = relation.to_arrow_reader(limits.BATCH_ROWS)
            while True:
                with told(query, self._watch.error):
                    batch = next(reader, None)
                if batch is None:
                    return
                if batch.num_rows:
                    yield batch
        finally:
            self._watch.stop()
            if reader is not None:
                reader.close()
            self.stop()

    def stop(self) -> None:
        """End the scans, then the query; from any thread, any number of times."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._watch.stop()
        with suppress(Exception):  # it may be over already
            self._session.interrupt()
        if self._is_own:
            self._session.close()


def _shown(query: str) -> str:
    return " ".join(query.split())[:200]
