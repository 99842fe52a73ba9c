"""Find the column that a filter means in a table's schema.

Contract: names as `StructType.field` reads them (case apart); a path is read as nested fields first, then as
one column with dots in its name. What is not found is an error that names the closest columns.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.expression import ColumnPath, column_sql
from lazydelta.predicate.nodes import BoundColumn
from lazydelta.protocol.schema import Field, PrimitiveType, StructType

_NAMES_SHOWN_MAX = 12


def resolve_column(
    path: ColumnPath, schema: StructType, partition_columns: frozenset[str], where: str
) -> BoundColumn:
    """The column at `path`, or an `InvalidRequestError` with a hint."""
    fields = _fields(path, schema) or _fields((".".join(path),), schema)
    if not fields:
        raise InvalidRequestError(f"there is no column {column_sql(path)}", where, _hint(path, schema))
    leaf = fields[-1]
    return BoundColumn(
        path=tuple(field.name for field in fields),
        physical_path=tuple(field.physical_name for field in fields),
        type_name=leaf.type.name if isinstance(leaf.type, PrimitiveType) else "",
        is_partition=len(fields) == 1 and leaf.name in partition_columns,
        is_collated=leaf.is_collated,
        was_float=leaf.was_float,
        has_statistics=not isinstance(leaf.type, StructType),
    )


def _fields(path: ColumnPath, schema: StructType) -> list[Field]:
    """The fields along the path, outermost first; empty where it does not lead."""
    found: list[Field] = []
    inside: StructType | None = schema
    for name in path:
        field = inside.field(name) if inside is not None else None
        if field is None:
            return []
        found.append(field)
        inside = field.type if isinstance(field.type, StructType) else None
    return found


def _hint(path: ColumnPath, schema: StructType) -> str:
    names = list(dict.fromkeys(_names(schema, ())))
    wanted = column_sql(path)
    folded = {name.lower(): name for name in reversed(names)}
    close = difflib.get_close_matches(wanted.lower(), folded, n=3, cutoff=0.6)
    # The last name alone: `value` for `reading.value`.
    close += [low for low in folded if low.rsplit(".", 1)[-1] == path[-1].lower() and low not in close]
    if close:
        return "did you mean " + " or ".join(folded[low] for low in close[:3]) + "?"
    shown = ", ".join(names[:_NAMES_SHOWN_MAX]) + (", …" if len(names) > _NAMES_SHOWN_MAX else "")
    return f"the columns are {shown}" if names else "the table has no columns"


def _names(schema: StructType, parents: ColumnPath) -> Iterator[str]:
    for field in schema.fields:
        path = (*parents, field.name)
        yield column_sql(path)
        if isinstance(field.type, StructType):
            yield from _names(field.type, path)
