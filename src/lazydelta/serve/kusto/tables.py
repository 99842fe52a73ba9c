"""Small tables that are answers by themselves: of commands, and around the rows of a query.

Contract: columns have Kusto's types; values are what JSON has for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lazydelta.engines.kql.columns import KqlColumn

# What version 1 of the protocol calls the types.
NET_TYPES = {
    "bool": "SByte",
    "datetime": "DateTime",
    "decimal": "SqlDecimal",
    "dynamic": "Object",
    "guid": "Guid",
    "int": "Int32",
    "long": "Int64",
    "real": "Double",
    "string": "String",
    "timespan": "TimeSpan",
}
Row = Sequence[Any]  # Any: values of JSON


class SmallTable(msgspec.Struct, frozen=True):
    """Columns and all rows."""

    columns: tuple[KqlColumn, ...]
    rows: Sequence[Row]


def columns(**kinds: str) -> tuple[KqlColumn, ...]:
    """By name and type."""
    return tuple(KqlColumn(name, kind) for name, kind in kinds.items())


def columns_v1(found: Sequence[KqlColumn]) -> list[dict[str, str]]:
    """As version 1 tells them."""
    return [
        {"ColumnName": one.name, "DataType": NET_TYPES[one.type], "ColumnType": one.type} for one in found
    ]


def columns_v2(found: Sequence[KqlColumn]) -> list[dict[str, str]]:
    """As version 2 tells them."""
    return [{"ColumnName": one.name, "ColumnType": one.type} for one in found]
