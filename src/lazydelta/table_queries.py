"""Questions to one table: what `Table.sql`, `Table.kql` and `Table.doctor` do.

Contract: engines are imported when they are asked for, since DuckDB is an extra.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lazydelta.rows.source import RowSource

if TYPE_CHECKING:
    from lazydelta.engines.kql.result import KqlResult
    from lazydelta.engines.sql_result import SqlResult
    from lazydelta.upkeep.doctor_findings import DoctorReport


class TableQueries(ABC):
    """A table that can be asked in SQL, in KQL, and how it fares."""

    @abstractmethod
    def _queried(self) -> RowSource:
        """What the queries read."""

    def sql(
        self,
        query: str,
        *,
        parameters: Any = None,  # Any: values that DuckDB binds
        memory_limit: str | int | None = None,
    ) -> SqlResult:
        """The rows of a query in DuckDB's SQL, streamed; this table is `t`, and `this`."""
        from lazydelta.engines.session import SqlOptions
        from lazydelta.engines.sql import run_sql

        source = self._queried()
        options = SqlOptions(memory_limit=memory_limit)
        return run_sql(query, {"t": source, "this": source}, parameters=parameters, options=options)

    def kql(
        self,
        query: str,
        *,
        parameters: Mapping[str, Any] | None = None,  # Any: text, or values of Python
        memory_limit: str | int | None = None,
    ) -> KqlResult:
        """The rows of a query in KQL, streamed; this table is `t`, `this`, and has its folder's name.

        `parameters`: values of `declare query_parameters`, as text or as Python has them.
        """
        from lazydelta.engines.kql.run import run_kql
        from lazydelta.engines.session import SqlOptions

        source = self._queried()
        names = ["t", "this", folder_name(source.snapshot.storage.root)]
        options = SqlOptions(memory_limit=memory_limit)
        return run_kql(
            query, {name: source for name in names if name}, parameters=parameters, options=options
        )

    def doctor(self, where: Any = None) -> DoctorReport:  # Any: a filter, as `scan` takes it
        """What is slow about this table and what to do; with `where` also how such a query would fare.

        Requests and memory do not grow with the table: files are sampled, the newest ones.
        """
        from lazydelta.upkeep.doctor import examine

        return examine(self._queried(), where)


def folder_name(url: str) -> str:
    """The last part of a table's address, by which a query may call it; empty where there is none."""
    return PurePosixPath(unquote(urlsplit(url).path)).name
