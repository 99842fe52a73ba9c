"""Parameters of prepared statements: what a statement wants, and what a client bound.

Contract: one row of values, by their place for `?` and `$1`, by their names for `$name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lazydelta.engines.session import Duck
from lazydelta.errors import InvalidRequestError


def wanted_parameters(session: Duck, query: str, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The parameters of a statement; `types` as `parameter_types` found them, text where it found none."""
    return pa.schema([(name, types.get(name, pa.string())) for name in parameter_names(session, query)])


def parameter_names(session: Duck, query: str) -> list[str]:
    """Their names: 1, 2, … for those that have a place."""
    (statement,) = session.extract_statements(query)
    names = list(statement.named_parameters)
    return sorted(names, key=int) if _are_places(names) else sorted(names)


def bound_values(session: Duck, query: str, row: pa.RecordBatch | None) -> Any:  # Any: what DuckDB binds
    """The values for DuckDB; None where the statement has no parameters."""
    names = parameter_names(session, query)
    given = 0 if row is None else row.num_columns
    if len(names) != given:
        raise InvalidRequestError(
            f"the statement has {len(names)} parameters, and {given} were bound",
            "parameters",
            "bind one value for each",
        )
    if row is None or not names:
        return None
    values = [_value(column) for column in row.columns]
    if _are_places(names):
        return values
    by_name = dict(zip(row.schema.names, values, strict=True))
    return by_name if set(by_name) == set(names) else dict(zip(names, values, strict=True))


def no_values(session: Duck, query: str) -> Any:  # Any: what DuckDB binds
    """Null for each parameter: for what does not depend on them."""
    names = parameter_names(session, query)
    if not names:
        return None
    return [None] * len(names) if _are_places(names) else dict.fromkeys(names)


def _are_places(names: list[str]) -> bool:
    return all(name.isdigit() for name in names)


def _value(column: pa.Array) -> Any:  # Any: a value of Python
    if pa.types.is_union(column.type):
        return column[0].as_py()
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        try:
            column = column.cast(pa.timestamp("us", column.type.tz))
        except pa.ArrowInvalid as problem:
            raise InvalidRequestError(
                "a parameter has nanoseconds", "parameters", "bind microseconds"
            ) from problem
    return column[0].as_py()
