"""Parameters of prepared statements: what a statement wants, and what a client bound.

Contract: one row of values, by their place for `?` and `$1`, by their names for `$name`. A value is bound as
it is, or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lazydelta.engines.session import Duck
from lazydelta.errors import InvalidRequestError

_DIGITS_MAX = 38  # of DuckDB's decimals; longer ones become doubles


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
    """The value, as it is; one that DuckDB would take for another is refused."""
    try:
        kind = column.type if pa.types.is_union(column.type) else _bindable(column.type)
        return column.cast(kind)[0].as_py()
    except (ValueError, OverflowError, LookupError) as problem:  # pyarrow's; of a time, of a zone
        raise InvalidRequestError(
            f"a parameter of type {str(column.type)[:100]} cannot be bound: {problem}",
            "parameters",
            "bind times to the microsecond, years up to 9999, numbers of up to 38 digits, or text and a cast",
        ) from problem


def _bindable(kind: pa.DataType) -> pa.DataType:
    """The type that holds the same values for DuckDB; raises where there is none."""
    if pa.types.is_map(kind) or pa.types.is_interval(kind):
        raise ValueError("it would be taken for a list")
    if pa.types.is_nested(kind):
        inner = [kind.field(number).type for number in range(kind.num_fields)]
        if any(_bindable(one) != one for one in inner):
            raise ValueError("inside of others, it would be rounded")
    if pa.types.is_decimal256(kind):
        return pa.decimal128(_DIGITS_MAX, kind.scale)
    if getattr(kind, "unit", None) != "ns":
        return kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")
