"""Of which types a statement's parameters are likely to be, by what stands beside them.

Why: DuckDB learns them when values are bound, and drivers of JDBC want to know before. Contract: a parameter
that is compared or calculated with a column has the column's type, one that is cast has that type, a limit is
a whole number; of others nothing is claimed. Times are told in milliseconds: Arrow's JDBC driver writes
milliseconds whatever it is told, and clients may bind any unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

Node = dict[str, Any]  # Any: JSON, as DuckDB writes a statement
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}
_LITERALS = {"INTEGER": pa.int64(), "STRING": pa.string()}
_ALIKE = frozenset({"COMPARISON", "BETWEEN", "OPERATOR"})  # classes whose operands are of one type


def parameter_types(nodes: Iterable[Node], schemas: Iterable[pa.Schema]) -> dict[str, pa.DataType]:
    """The types of parameters, as far as they can be told."""
    columns = _columns(schemas)
    found: dict[str, pa.DataType] = {}
    for node in nodes:
        kind = _kind(node, columns)
        for name in _parameters(node) if kind is not None else ():
            found.setdefault(name, _in_milliseconds(kind))
    return found


def _in_milliseconds(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) else kind


def _kind(node: Node, columns: Mapping[str, pa.DataType]) -> pa.DataType | None:
    """The type that the parameters right below the node have."""
    if node.get("class") == "CAST":
        return _TYPES.get(str((node.get("type_expr") or {}).get("type_name", "")).upper())
    if node.get("type") == "LIMIT_MODIFIER":
        return pa.int64()
    if node.get("class") in _ALIKE or node.get("is_operator"):
        kinds = (_kind_of(operand, columns) for operand in _operands(node))
        return next((kind for kind in kinds if kind is not None), None)
    return None


def _kind_of(operand: Node, columns: Mapping[str, pa.DataType]) -> pa.DataType | None:
    if operand.get("class") == "COLUMN_REF":
        return columns.get(str(operand["column_names"][-1]).lower())
    if operand.get("class") == "CONSTANT":
        return _LITERALS.get(str((operand.get("literal") or {}).get("kind")))
    return None


def _parameters(node: Node) -> Iterator[str]:
    for operand in _operands(node):
        if operand.get("class") == "PARAMETER":
            yield str(operand["identifier"])


def _operands(node: Node) -> Iterator[Node]:
    for value in node.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, dict) and isinstance(child.get("expression"), dict):
                yield child["expression"]
            elif isinstance(child, dict):
                yield child


def _columns(schemas: Iterable[pa.Schema]) -> dict[str, pa.DataType]:
    """Columns by name, without those that are of several types."""
    found: dict[str, pa.DataType] = {}
    several: set[str] = set()
    for schema in schemas:
        for field in schema:
            if found.setdefault(field.name.lower(), field.type) != field.type:
                several.add(field.name.lower())
    return {name: kind for name, kind in found.items() if name not in several}
