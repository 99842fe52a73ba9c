"""Schemas that name a column twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lazydelta.errors import CorruptLogError
from lazydelta.protocol.schema import parse_schema


def field(name: str, type_: Any = "long", physical: str | None = None) -> dict[str, Any]:
    mapped = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return {"name": name, "type": type_, "nullable": True, "metadata": mapped}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


@pytest.mark.parametrize(
    "schema",
    [
        struct(field("a"), field("b"), field("a", "string")),
        struct(field("b", struct(field("a"), field("a")))),
        struct(field("b", {"type": "array", "elementType": struct(field("a"), field("a"))})),
        struct(field("b", physical="a"), field("c", physical="a")),
    ],
    ids=["columns", "fields", "elements", "physical names"],
)
def test_a_column_that_stands_there_twice_is_an_error(schema: dict[str, Any]) -> None:
    with pytest.raises(CorruptLogError, match="the column 'a' twice"):
        parse_schema(json.dumps(schema), "here")


def test_names_that_differ_by_case_are_two_columns_each_found_by_its_spelling() -> None:
    schema = parse_schema(json.dumps(struct(field("a"), field("A", "string"), field("b"))), "here")
    assert [schema.field(name) for name in ("a", "A")] == list(schema.fields[:2])
    assert schema.field("B") == schema.fields[2]


def test_one_name_at_two_levels_is_two_columns() -> None:
    schema = parse_schema(json.dumps(struct(field("a", struct(field("a"))))), "here")
    assert [path for path, _ in schema.leaves()] == [("a", "a")]
