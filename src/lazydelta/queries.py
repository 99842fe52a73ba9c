"""SQL and KQL over one or several tables: `lazydelta.sql`, `lazydelta.kql` and `lazydelta.connect`.

Contract: a table given by its address is opened here, at its newest version; one that is given open keeps the
version it is pinned to, for `connect` too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from lazydelta.engines.connection import Connection, Opener
from lazydelta.engines.session import Parameters, SqlOptions
from lazydelta.engines.sql import run_sql
from lazydelta.engines.sql_result import SqlResult
from lazydelta.errors import InvalidRequestError
from lazydelta.table import Table
from lazydelta.table import open as open_table
from lazydelta.table_scan import Scan

if TYPE_CHECKING:
    from lazydelta.engines.kql.catalog import StoredFunction
    from lazydelta.engines.kql.result import KqlResult

Given: TypeAlias = Table | Scan | str | os.PathLike[str]


def sql(
    query: str,
    /,
    *,
    parameters: Parameters = None,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,  # Any: text, a provider, options of a location
    **tables: Given,
) -> SqlResult:
    """The rows of a query over these tables: `sql("select … from a join b using (id)", a=table, b=url)`."""
    return query_tables(
        query,
        tables,
        parameters=parameters,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        storage_options=storage_options,
    )


def query_tables(
    query: str,
    tables: Mapping[str, Given],
    *,
    parameters: Parameters = None,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> SqlResult:
    """The same with the tables in a mapping, under any names."""
    options = SqlOptions(memory_limit=memory_limit, temp_directory=temp_directory)
    sources = {name: _opener(name, given, storage_options)() for name, given in tables.items()}
    return run_sql(query, sources, parameters=parameters, options=options)


def kql(
    query: str,
    /,
    *,
    parameters: Mapping[str, Any] | None = None,  # Any: text, or values of Python
    functions: Sequence[StoredFunction] = (),
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **tables: Given,
) -> KqlResult:
    """The rows of a query in KQL over these tables: `kql("a | join (external_table('b')) on id", a=…, b=…)`.

    `parameters`: values of `declare query_parameters`; `functions`: stored functions that it may call.
    """
    return kql_tables(
        query,
        tables,
        parameters=parameters,
        functions=functions,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        storage_options=storage_options,
    )


def kql_tables(
    query: str,
    tables: Mapping[str, Given],
    *,
    parameters: Mapping[str, Any] | None = None,
    functions: Sequence[StoredFunction] = (),
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> KqlResult:
    """The same with the tables in a mapping, under any names; only those that it may name are opened."""
    from lazydelta.engines.kql.run import run_kql
    from lazydelta.engines.kql.translate import named_tables, with_named_values

    if not isinstance(query, str):
        raise InvalidRequestError(f"the query is {query!r}"[:200], "KQL", "give KQL as text")
    texts = [with_named_values(query, parameters or {}), *(function.body for function in functions)]
    named = [one for text in texts for one in named_tables(text)]
    wanted = {name: given for name, given in tables.items() if any(one.is_of(name) for one in named)}
    sources = {name: _opener(name, given, storage_options)() for name, given in wanted.items()}
    options = SqlOptions(memory_limit=memory_limit, temp_directory=temp_directory)
    return run_kql(query, sources, parameters=parameters, options=options, functions=functions, others=tables)


def connect(
    tables: Mapping[str, Given] | None = None,
    /,
    *,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Connection:
    """A DuckDB session with these tables: `connect({"telemetry": url}).sql("select … from telemetry")`.

    Tables given by their address are read at their newest version by each query.
    """
    if tables is not None and not isinstance(tables, Mapping):
        raise InvalidRequestError(f"tables is {tables!r}"[:200], "connect()", 'give {"name": table or URL}')
    openers = {name: _opener(name, given, storage_options) for name, given in (tables or {}).items()}
    return Connection(
        openers,
        SqlOptions(memory_limit=memory_limit, temp_directory=temp_directory, threads=threads),
        opener_of=lambda name, given: _opener(name, given, storage_options),
    )


def _opener(name: str, given: Given, storage_options: Mapping[str, Any] | None) -> Opener:
    """How the table is opened for a query."""
    if isinstance(given, Table):
        given = given.scan()
    if isinstance(given, Scan):
        source = given.source
        return lambda: source
    if not isinstance(given, str | os.PathLike):
        raise InvalidRequestError(
            f"the table {name!r} is {given!r}"[:200], "SQL", "give a table, a scan, a path or a URL"
        )
    address = given
    return lambda: open_table(address, storage_options=storage_options).scan().source
