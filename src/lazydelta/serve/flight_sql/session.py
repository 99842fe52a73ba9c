"""A DuckDB session in which the tables of a statement stand by all their names, and nothing else is in reach.

Contract: one session for each statement. It has a catalog and a schema for each share and schema of its
tables, so that `catalog.schema.table`, `schema.table` and `table` mean what they say. Once they stand, it is
fenced (`session_fence.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lazydelta.engines.session import Duck, SqlOptions, open_session, spelled, text_literal
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.source import RowSource
from lazydelta.serve.config import ServedTable
from lazydelta.serve.session_fence import fence

Standing = tuple[ServedTable, RowSource]
# Names that DuckDB keeps for itself.
_CATALOGS_OF_DUCKDB = frozenset({"system", "temp"})
_SCHEMAS_OF_DUCKDB = frozenset({"information_schema", "pg_catalog"})


def full_name(table: ServedTable) -> str:
    """By which a table is registered."""
    return f"{table.share}.{table.schema}.{table.name}"


def fenced_session(tables: Sequence[Standing], options: SqlOptions) -> Duck:
    """The session; the tables have no rows until somebody registers them under their full names."""
    session = open_session(options)
    try:
        for table, source in tables:
            _stand(session, table, source.schema)
        _fence(session, tables)
    except BaseException:
        session.close()
        raise
    return session


def _stand(session: Duck, table: ServedTable, schema: pa.Schema) -> None:
    """A view by the table's name over whatever is registered."""
    if table.share.lower() in _CATALOGS_OF_DUCKDB or table.schema.lower() in _SCHEMAS_OF_DUCKDB:
        raise InvalidRequestError(
            f"{full_name(table)} cannot be named in SQL: DuckDB keeps that place for itself",
            "SQL",
            "read it with Flight's own commands, or have its share and schema renamed",
        )
    catalog, place = spelled(table.share), f"{spelled(table.share)}.{spelled(table.schema)}"
    if table.share.lower() != "memory":  # the session's own
        session.execute(f"attach if not exists ':memory:' as {catalog}")
    session.execute(f"create schema if not exists {place}")
    session.register(full_name(table), schema.empty_table())
    session.execute(
        f"create view {place}.{spelled(table.name)} as select * from temp.main.{spelled(full_name(table))}"
    )


def _fence(session: Duck, tables: Sequence[Standing]) -> None:
    places = dict.fromkeys(f"{spelled(table.share)}.{spelled(table.schema)}" for table, _ in tables)
    if places:
        session.execute(f"set search_path = {text_literal(','.join(places))}")
    fence(session, [source for _, source in tables])
