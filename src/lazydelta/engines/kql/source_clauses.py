"""The clauses of a WITH by which a translated query reads its tables: KQL's columns, the rows it can need."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from lazydelta.engines.session import spelled


class SourceClause(msgspec.Struct, frozen=True):
    """One place where a table is read, or rows are made."""

    name: str  # in the query
    table: str | None  # in the catalog; None: it reads none
    columns: tuple[str, ...]
    condition: str | None = None  # SQL over the table's own columns
    body: str | None = None  # what makes the rows, where it reads no table

    @property
    def shown(self) -> str:
        """The condition with the table that it is about."""
        return f"{self.table}: {self.condition}"

    def sql(self, tables: Mapping[str, pa.Schema]) -> str:
        """The clause of a WITH."""
        if self.table is None:
            return f"{spelled(self.name)} as ({self.body})"
        schema = tables[self.table]
        columns = ", ".join(f"{_in_kql(field)} as {spelled(field.name)}" for field in schema)
        where = f" where {self.condition}" if self.condition else ""
        return f"{spelled(self.name)} as (select {columns} from {spelled(self.table)}{where})"


def with_clauses(sql: str, clauses: list[SourceClause], tables: Mapping[str, pa.Schema]) -> str:
    """The query after the clauses that it reads."""
    if not clauses:
        return sql
    for clause in clauses:  # what `union withsource` and `search` tell is the table's name
        sql = sql.replace(f"'{_escaped(clause.name)}'", f"'{_escaped(clause.table or '')}'")
    heads = ",\n     ".join(clause.sql(tables) for clause in clauses)
    return f"with {heads}\nselect * from (\n{sql}\n)"


def _escaped(name: str) -> str:
    return name.replace("'", "''")


def _in_kql(field: pa.Field) -> str:  # noqa: PLR0911  # one case per type
    """A column in the type that KQL has for it."""
    types, kind, name = pa.types, field.type, spelled(field.name)
    if types.is_string(kind) or types.is_large_string(kind):
        return f"coalesce({name}, '')"  # text is never null in KQL
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return f"coalesce(to_base64({name}), '')"
    if types.is_timestamp(kind) and kind.tz is not None:
        return f"({name} at time zone 'UTC')"
    if types.is_date(kind) or types.is_timestamp(kind):
        return f"{name}::timestamp"
    if types.is_integer(kind) and kind.bit_width < 32:
        return f"{name}::integer"
    if types.is_float32(kind) or types.is_float16(kind):
        return f"{name}::double"
    if types.is_nested(kind):
        return f"to_json({name})"
    return name
