"""A table's columns as Spark's types, and rows in the Arrow types that Spark takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.protocol.schema import arrow_schema, parse_schema
from lazydelta.spark import read
from lazydelta.spark.reading.spark_schema import arrow_of, conform, spark_schema


def field(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def text(*fields: dict[str, Any]) -> str:
    return json.dumps(struct(*fields))


def spark_types(schema: str, columns: list[str] | None = None) -> Any:
    names = columns or [field["name"] for field in json.loads(schema)["fields"]]
    return spark_schema(names, schema, "t")


def test_every_type_of_delta_has_its_place_in_spark_and_the_same_arrow() -> None:
    kinds = ["string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date",
             "timestamp", "timestamp_ntz", "void", "decimal(38,10)"]  # fmt: skip
    nested = {"type": "map", "keyType": "string", "valueType": struct(field("x", array("long"))),
              "valueContainsNull": False}  # fmt: skip
    schema = text(
        *(field(f"c{at}", kind) for at, kind in enumerate(kinds)), field("n", nested, nullable=False)
    )
    found = spark_types(schema)
    assert arrow_of(found).equals(arrow_schema(parse_schema(schema, "t")))
    assert not found["n"].nullable


def test_what_writers_keep_in_a_field_does_not_reach_spark_and_what_types_need_does() -> None:
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    schema = text(
        field("a", struct(field("b", "string", **mapping)), comment="words", **mapping),
        field("c", "string", **{"__COLLATIONS": {"c": "icu.UNICODE_CI"}}),
    )
    found = spark_types(schema)
    assert found["a"].metadata == {"comment": "words"}
    assert found["a"].dataType["b"].metadata == {}
    assert found["c"].dataType.simpleString() == "string collate UNICODE_CI"


def test_metadata_columns_come_by_name() -> None:
    found = spark_types(text(field("a", "long")), ["_row_id", "a", "_file_path"])
    assert found.simpleString() == "struct<_row_id:bigint,a:bigint,_file_path:string>"


@pytest.mark.parametrize("collation", ["nosuch.XX", 5])
def test_a_column_that_spark_cannot_express_is_named(collation: object) -> None:
    schema = text(field("a", "long"), field("odd", "string", **{"__COLLATIONS": {"odd": collation}}))
    with pytest.raises(UnsupportedTableError, match="'odd'") as error:
        spark_types(schema)
    assert "leave the column out" in error.value.fix
    assert spark_types(schema, ["a"]).names == ["a"]


def test_variants_at_every_level_take_sparks_shape() -> None:
    schema = text(
        field("v", "variant"),
        field("l", array("variant")),
        field("m", {"type": "map", "keyType": "string", "valueType": struct(field("x", "variant")),
                    "valueContainsNull": True}),
    )  # fmt: skip
    ours = arrow_schema(parse_schema(schema, "t"))
    one = {"metadata": b"m", "value": b"v"}
    rows = [
        {"v": one, "l": [one, None], "m": [("k", {"x": one}), ("n", None), ("o", {"x": None})]},
        {"v": None, "l": None, "m": None},
        {"v": one, "l": [], "m": []},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=ours)
    wanted = arrow_of(spark_types(schema))
    for part in (batch, batch.slice(1), batch.slice(1, 1)):
        found = conform(part, wanted)
        found.validate(full=True)
        assert found.schema.equals(wanted)
        assert found.to_pylist() == part.to_pylist()


def test_a_session_of_connect_is_told_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="Spark Connect"):
        read(object(), tmp_path)  # type: ignore[arg-type]
