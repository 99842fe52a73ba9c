"""A configuration tried without serving it: read, each table opened once, each function tried.

Contract: one finding a table, by name, then one a function; an error is told in its words, without secrets.
Functions that take nothing are tried on their tables, nothing being read but their columns; of others, that
they parse and name what is served is known once the file is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.config import ServeConfig, load_config
from lazydelta.serve.config_functions import ServedFunction
from lazydelta.table import Table
from lazydelta.table import open as open_table


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one table."""

    table: str
    version: int | None = None
    error: str | None = None


class FunctionFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one function."""

    function: str
    error: str | None = None


def findings(path: str, *, environment: Mapping[str, str]) -> Iterator[Finding | FunctionFinding]:
    """Those of all tables and functions; raises where the file itself is wrong."""
    config = load_config(path, environment=environment)
    opened: dict[str, Table] = {}
    for name, table in sorted(config.tables.items()):
        try:
            opened[name] = open_table(table.url, settings=table.settings)
        except LazyDeltaError as error:
            yield Finding(table=name, error=f"{error.what}; {error.fix}")
        else:
            yield Finding(table=name, version=opened[name].version)
    for name, function in sorted(config.functions.items()):
        try:
            _try(function, config, opened)
        except LazyDeltaError as error:
            yield FunctionFinding(function=name, error=f"{error.what}; {error.fix}")
        else:
            yield FunctionFinding(function=name)


def _try(function: ServedFunction, config: ServeConfig, opened: Mapping[str, Table]) -> None:
    from lazydelta.engines.kql.run import run_kql

    is_tried = function.stored.parameters.strip("( )") == "" and all(
        name in opened for name in function.tables
    )
    if is_tried:
        sources = {name: opened[name].scan().source for name in function.tables}
        called = [config.functions[name].stored for name in function.functions]
        run_kql(f"{function.stored.name}() | take 0", sources, functions=called).close()
