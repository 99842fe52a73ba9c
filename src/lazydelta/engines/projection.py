"""The `columns` argument of a pyarrow scan: names, dotted names, or expressions by name.

Contract: `reads` are the table's columns that it needs; `schema` is that of what comes out. A name that the
table does not have is refused when the scan is made, not when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from lazydelta.engines.arrow_expression import fields_of, read_expression
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.selection import METADATA_COLUMNS, unknown_column

Columns = Sequence[str] | Mapping[str, pc.Expression] | None


class Projection(msgspec.Struct, frozen=True, eq=False):
    """What comes out of a scan and what it takes."""

    schema: pa.Schema
    reads: tuple[str, ...]
    names: tuple[str, ...]
    expressions: tuple[pc.Expression, ...] | None = None  # None: the columns as they are

    def applied(self, rows: pa.RecordBatch, keep: pc.Expression | None = None) -> list[pa.RecordBatch]:
        """The rows that `keep` is true for, projected; mostly one batch."""
        if self.expressions is None:
            kept = rows if keep is None else rows.filter(keep)
            return [kept.select(list(self.names))] if kept.num_rows else []
        batches: list[pa.RecordBatch] = _evaluated(rows, keep, self.expressions, self.names).to_batches()
        return [batch for batch in batches if batch.num_rows]


def projection_of(columns: Columns, schema: pa.Schema) -> Projection:
    """The projection of these columns (None: all of them) of a table of this schema."""
    if columns is None:
        columns = schema.names
    if isinstance(columns, Mapping):
        named = [(name, _checked(expression, name)) for name, expression in columns.items()]
        return _computed(named, schema)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise InvalidRequestError(
            f"columns is {columns!r}",
            "the dataset",
            "give a list of names, or a mapping of names to expressions",
        )
    known = with_metadata(schema)
    is_plain = all(name in known.names for name in columns) and len(set(columns)) == len(columns)
    if is_plain:
        chosen = pa.schema([known.field(name) for name in columns])
        return Projection(chosen, tuple(columns), tuple(columns))
    return _computed([_named(name, known) for name in columns], schema)


def columns_needed(expressions: Iterable[pc.Expression], schema: pa.Schema) -> list[str]:
    """The columns that these expressions name; all of them where an expression does not tell."""
    known = with_metadata(schema).names
    needed: dict[str, None] = {}
    for expression in expressions:
        node = read_expression(expression)
        if node is None:
            return list(schema.names)
        needed |= dict.fromkeys(path[0] for path in fields_of(node))
    for name in needed:
        if name not in known:
            raise unknown_column(name, schema.names, "the dataset")
    return list(needed)


def with_metadata(schema: pa.Schema) -> pa.Schema:
    """The table's columns, and those that it has on request."""
    extra = [pa.field(name, kind) for name, kind in METADATA_COLUMNS.items() if name not in schema.names]
    return pa.schema([*schema, *extra])


def refused(error: Exception, what: str) -> InvalidRequestError:
    """An expression that Arrow cannot bind to the table's columns."""
    return InvalidRequestError(
        f"{what}: {error}", "the dataset", "compare columns with values of their own types, or cast them"
    )


def _computed(named: Sequence[tuple[str, pc.Expression]], schema: pa.Schema) -> Projection:
    names = tuple(name for name, _ in named)
    expressions = tuple(expression for _, expression in named)
    reads = columns_needed(expressions, schema)
    known = with_metadata(schema)
    empty = pa.schema([known.field(name) for name in reads]).empty_table()
    try:
        made = _evaluated(empty, None, expressions, names)
    except (pa.ArrowException, ValueError) as error:
        raise refused(error, f"the columns {', '.join(names)} cannot be made") from error
    return Projection(made.schema, tuple(reads), names, expressions)


def _evaluated(
    rows: pa.RecordBatch | pa.Table,
    keep: pc.Expression | None,
    expressions: Sequence[pc.Expression],
    names: Sequence[str],
) -> pa.Table:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    steps = [acero.Declaration("table_source", acero.TableSourceNodeOptions(table))]
    if keep is not None:
        steps.append(acero.Declaration("filter", acero.FilterNodeOptions(keep)))
    steps.append(acero.Declaration("project", acero.ProjectNodeOptions(list(expressions), list(names))))
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _named(name: str, schema: pa.Schema) -> tuple[str, pc.Expression]:
    """A column, or a field of a struct by its dotted path, under its last name as pyarrow has it."""
    if name in schema.names:
        return name, pc.field(name)
    path = name.removeprefix(".").split(".")
    kind = schema.field(path[0]).type if path[0] in schema.names else None
    for part in path[1:]:
        if kind is not None and pa.types.is_struct(kind) and kind.get_field_index(part) >= 0:
            kind = kind.field(part).type
        else:
            kind = None
    if kind is None:
        raise unknown_column(
            name, [told for told in schema.names if told not in METADATA_COLUMNS], "the dataset"
        )
    return path[-1], pc.field(*path)


def _checked(expression: object, name: str) -> pc.Expression:
    if isinstance(expression, pc.Expression):
        return expression
    raise InvalidRequestError(
        f"the column {name!r} is {expression!r}",
        "the dataset",
        "give a pyarrow.compute.Expression for each name",
    )
