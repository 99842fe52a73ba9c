"""Connection: a DuckDB session whose tables are Delta tables that stay current.

Why: a program that asks many queries wants names for its tables, views and tables of its own beside them, and
the newest version each time. Contract: attaching opens a table once, for its schema. Each call of `sql` or
`execute` reads every table it touches at one version, the newest at its first touch; tables it does not touch
cost nothing. A result that is still being read keeps its version and its own session: queries do not
disturb each other. Tables, views and settings made by one query are there for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lazydelta.engines.session import Duck, Parameters, SqlOptions, close_session, open_session
from lazydelta.engines.sql import answer, check_names, checked_query
from lazydelta.engines.sql_result import SqlResult
from lazydelta.engines.watch import Watch
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.source import RowSource

Opener = Callable[[], RowSource]  # the newest version, or always the same one

# Names of a session that stand for other SQL.
_DEFINED = """
    select view_name, sql from duckdb_views() where not internal
    union all
    select function_name, macro_definition from duckdb_functions()
    where not internal and macro_definition <> ''
"""


class Connection:
    """Tables by name, and SQL over them."""

    def __init__(
        self,
        tables: Mapping[str, Opener],
        options: SqlOptions | None = None,
        *,
        opener_of: Callable[[str, Any], Opener] | None = None,  # Any: a table, a scan or an address
    ) -> None:
        """`opener_of` is how `attach` understands what it is given; without it, it takes openers."""
        self._opener_of = opener_of
        self._session: Duck = open_session(options or SqlOptions())
        self._openers: dict[str, Opener] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._is_closed = False
        try:
            for name, opener in tables.items():
                self._attach(name, opener)
        except BaseException:
            self.close()
            raise

    @property
    def duckdb(self) -> Duck:
        """The DuckDB connection below, for what this one does not offer; it does not know the tables."""
        return self._session

    @property
    def tables(self) -> dict[str, pa.Schema]:
        """The attached tables and their columns, as last seen."""
        return dict(self._schemas)

    def attach(self, name: str, table: Any) -> None:  # Any: as `connect` takes it
        """Give a table a name; a name that is taken is taken over."""
        self._attach(name, table if self._opener_of is None else self._opener_of(name, table))

    def detach(self, name: str) -> None:
        """Forget a table."""
        if name not in self._openers:
            known = ", ".join(self._openers) or "none"
            raise InvalidRequestError(f"there is no table {name!r}", "detach()", f"attached: {known}")
        del self._openers[name], self._schemas[name]

    def sql(self, query: str, parameters: Parameters = None) -> SqlResult:
        """The rows of a query; statements before the last run at once."""
        checked_query(query)
        if self._is_closed:
            raise InvalidRequestError("the connection is closed", "sql()", "connect again")
        watch = Watch()
        session = self._session.cursor()
        try:
            sources = {name: self._openers[name]() for name in self._touched(session, query)}
            self._schemas |= {name: source.schema for name, source in sources.items()}
            return answer(session, query, sources, watch, parameters=parameters, known=self._schemas)
        except BaseException:
            watch.stop()
            close_session(session)
            raise

    def execute(self, query: str, parameters: Parameters = None) -> SqlResult:
        """The same as `sql`, under DuckDB's other name."""
        return self.sql(query, parameters)

    def close(self) -> None:
        """End the session, and with it the results that are still being read."""
        if not self._is_closed:
            self._is_closed = True
            close_session(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attach(self, name: str, opener: Opener) -> None:
        check_names([*self._openers, name])
        self._schemas[name] = opener().schema
        self._openers[name] = opener

    def _touched(self, session: Duck, query: str) -> list[str]:
        """Attached tables that the query may read, by itself or through views and macros; one too many does
        no harm.
        """
        text = _as_named(query)
        unseen = {name.lower(): _as_named(sql) for name, sql in session.execute(_DEFINED).fetchall()}
        while reached := [name for name in unseen if name in text]:
            text += "".join(unseen.pop(name) for name in reached)
        return [name for name in self._openers if name.lower() in text]


def _as_named(sql: str) -> str:
    """SQL in which every name stands as it is written outside of it, in small letters."""
    return f"{sql} {sql.replace(chr(34) * 2, chr(34))}".lower()
