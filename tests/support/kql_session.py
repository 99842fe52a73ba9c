"""KQL over tables of Arrow in one session: what a query is translated to, without a table on disk."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.engines.kql.columns import KqlColumn, result_columns, shaped, shaped_batch
from lazydelta.engines.kql.library import install
from lazydelta.engines.kql.translate import KqlCatalog, Translated, translate
from lazydelta.engines.session import Duck, SqlOptions, close_session, open_session


class Shaped(msgspec.Struct, frozen=True):
    """What a query gave."""

    columns: tuple[KqlColumn, ...]
    batches: list[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.batches)


class KqlSession:
    """A session of DuckDB whose tables change; queries are translated once."""

    def __init__(self, session: Duck, now: dt.datetime | None = None) -> None:
        self._session, self._now = session, now
        self._schemas: dict[str, pa.Schema] = {}
        self._translated = cache(self._translate)

    def give(self, tables: Mapping[str, pa.Table]) -> None:
        """The tables from now on; of the same schemas each time."""
        for name, table in tables.items():
            self._schemas[name] = table.schema
            self._session.register(name, table)

    def kql(self, text: str) -> list[tuple[Any, ...]]:  # Any: values
        """The rows of a query."""
        translated = self._translated(text)
        values = dict(translated.values) or None
        relation = self._session.sql(translated.sql, params=values)
        columns = result_columns(relation.columns, relation.types)
        sql = shaped(translated.sql, columns, relation.types)
        return self._session.sql(sql, params=values).fetchall()

    def result(self, text: str) -> Shaped:
        """Columns and rows as a result of ours has them."""
        translated = self._translated(text)
        values = dict(translated.values) or None
        relation = self._session.sql(translated.sql, params=values)
        columns = result_columns(relation.columns, relation.types)
        read = self._session.sql(shaped(translated.sql, columns, relation.types), params=values)
        return Shaped(columns, [shaped_batch(batch, columns) for batch in read.to_arrow_reader()])

    def columns(self, text: str) -> tuple[KqlColumn, ...]:
        """Names and types of what comes out."""
        translated = self._translated(text)
        relation = self._session.sql(translated.sql, params=dict(translated.values) or None)
        return result_columns(relation.columns, relation.types)

    def sql(self, text: str) -> list[tuple[Any, ...]]:  # Any: values
        """The rows of plain SQL over the same tables."""
        return self._session.sql(text).fetchall()

    def _translate(self, text: str) -> Translated:
        translated = translate(text, KqlCatalog(self._schemas), now=self._now)
        install(self._session, translated.sql)
        return translated


@contextmanager
def kql_session(now: dt.datetime | None = None) -> Iterator[KqlSession]:
    """A session, closed at the end; `now` is the moment of `now()`."""
    session = open_session(SqlOptions())
    try:
        yield KqlSession(session, now)
    finally:
        close_session(session)
