"""The columns of a part: names, types, roles, order."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.schema import parse_schema
from lazydelta.sidecar import (
    SidecarLayout,
    configured_stats_paths,
    field_kind,
    field_path,
    layout_of,
    sort_keys,
)
from tests.support import actions
from tests.unit.sidecar.samples import EVERY_TYPE, layout_for, table_of


def roles(layout: SidecarLayout) -> dict[str, tuple[str | None, tuple[str, ...] | None]]:
    return {field.name: (field_kind(field), field_path(field)) for field in layout.schema}


def test_a_part_has_the_columns_of_the_format() -> None:
    layout = layout_for({"_event_hour": "string", "value": "double"}, partition_columns=["_event_hour"])
    assert layout.schema.names == [
        "path",
        "size",
        "modification_time",
        "_event_hour",
        "dv.storageType",
        "dv.pathOrInlineDv",
        "dv.offset",
        "dv.sizeInBytes",
        "dv.cardinality",
        "base_row_id",
        "default_row_commit_version",
        "clustering_provider",
        "tags",
        "num_records",
        "tight_bounds",
        "min.value",
        "max.value",
        "null_count.value",
    ]
    assert layout.order_column == "_event_hour"
    assert layout.order_type == "string"
    assert sort_keys(layout) == [("_event_hour", "ascending"), ("path", "ascending")]


def test_bounds_have_the_columns_own_type() -> None:
    schema = layout_for(EVERY_TYPE).schema
    assert schema.field("min.text").type == pa.string()
    assert schema.field("max.ratio").type == pa.float32()
    assert schema.field("min.money").type == pa.decimal128(10, 2)
    assert schema.field("max.moment").type == pa.timestamp("us", tz="UTC")
    assert schema.field("max.clock").type == pa.timestamp("us")
    assert schema.field("null_count.tiny").type == pa.int64()


@pytest.mark.parametrize("name", ["blob", "list", "dict"])
def test_binary_arrays_and_maps_have_a_null_count_and_no_bounds(name: str) -> None:
    names = layout_for(EVERY_TYPE).schema.names
    assert f"null_count.{name}" in names
    assert f"min.{name}" not in names


def test_nested_leaves_are_joined_by_dots_and_dots_inside_names_are_escaped() -> None:
    found = roles(layout_for({"a": {"b.c": "long", "d\\": "long"}, "a.b": "long"}))
    assert found["min.a.b\\.c"] == ("min", ("a", "b.c"))
    assert found["max.a.d\\\\"] == ("max", ("a", "d\\"))
    assert found["null_count.a\\.b"] == ("null_count", ("a.b",))


def test_names_that_collide_without_regard_to_case_get_a_prefix() -> None:
    layout = layout_for(
        {"Size": "string", "min.value": "date", "value": "long", "X": "long", "x": "long"},
        partition_columns=["Size", "min.value"],
    )
    found = roles(layout)
    assert found["size"] == (None, None)
    assert found["partition.Size"] == ("partition", ("Size",))
    assert found["min.value"] == ("partition", ("min.value",))
    assert found["raw.min.value"] == ("raw_partition", ("min.value",))
    assert found["stats.min.value"] == ("min", ("value",))
    assert found["min.X"] == ("min", ("X",))
    assert found["stats.min.x"] == ("min", ("x",))
    assert len({name.lower() for name in layout.schema.names}) == len(layout.schema.names)


def test_a_typed_partition_column_keeps_what_the_writer_wrote_beside_it() -> None:
    layout = layout_for({"day": "date", "city": "string"}, partition_columns=["day", "city"])
    assert layout.schema.field("day").type == pa.date32()
    assert layout.schema.field("raw.day").type == pa.string()
    assert "raw.city" not in layout.schema.names


def test_a_partition_column_that_cannot_be_typed_keeps_its_text() -> None:
    layout = layout_for({"odd": "decimal(5,-2)", "v": "long"}, partition_columns=["odd", "gone"])
    assert layout.schema.field("odd").type == pa.string()
    assert layout.schema.field("gone").type == pa.string()
    assert layout.order_column is None
    assert [zone.path for zone in layout.zone_columns] == [("v",)]


def test_a_mapped_tables_columns_go_by_their_physical_names() -> None:
    raw = actions.metadata({"v": "long", "date": "date"}, column_mapping="name")
    metadata = msgspec.convert(raw, Metadata)
    schema = parse_schema(metadata.schema_string, "t")
    paths = configured_stats_paths(metadata, schema)
    layout = layout_of(metadata, schema, stats_paths=paths, time_column="date")
    assert paths == [("col-v",)]
    assert "min.col-v" in layout.schema.names
    assert layout.order_column == "col-date"
    assert layout.order_path == ("col-date",)


def test_what_the_schema_no_longer_has_is_left_out() -> None:
    metadata, schema = table_of({"v": "long", "p": "long"}, partition_columns=["p"])
    layout = layout_of(metadata, schema, stats_paths=[("gone",), ("v",), ("v",), ("p",)], time_column=None)
    assert layout.stats_paths == (("v",),)


# --- the order column ----------------------------------------------------------

PARTITIONED = {"first": "long", "_event_hour": "string", "ts": "timestamp", "in": {"ner": "date"}}


@pytest.mark.parametrize(
    ("partitions", "time_column", "prop", "expected"),
    [
        (["first", "_event_hour"], None, None, "_event_hour"),
        (["first"], None, None, "first"),
        ([], None, None, None),
        (["first", "_event_hour"], "first", None, "first"),
        (["first", "_event_hour"], None, "first", "first"),
        (["first"], "ts", "first", "min.ts"),
        (["first"], None, "ts", "min.ts"),
        (["first"], None, "not there", "first"),
        ([], "in.ner", None, "min.in.ner"),
    ],
)
def test_rows_are_sorted_by_the_time_column_that_is_given_or_found(
    partitions: list[str], time_column: str | None, prop: str | None, expected: str | None
) -> None:
    configuration = {} if prop is None else {"lazydelta.time.column": prop}
    layout = layout_for(
        PARTITIONED, partition_columns=partitions, configuration=configuration, time_column=time_column
    )
    assert layout.order_column == expected
    if expected is not None:
        assert layout.order_max_column == expected.replace("min.", "max.")


def test_a_time_column_without_statistics_gets_them() -> None:
    none_indexed = {"delta.dataSkippingNumIndexedCols": "0"}
    layout = layout_for({"a": "long", "ts": "timestamp"}, configuration=none_indexed, time_column="ts")
    assert layout.stats_paths == (("ts",),)


@pytest.mark.parametrize("name", ["nowhere", "text.inside", "list", "place", "blob"])
def test_a_time_column_that_cannot_sort_is_refused_with_the_columns_there_are(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=name) as refused:
        layout_for(EVERY_TYPE, time_column=name)
    assert "text" in refused.value.where


# --- which columns have statistics -----------------------------------------------


def wide(count: int) -> dict[str, str]:
    return {f"c{number}": "long" for number in range(count)}


def test_delta_collects_statistics_of_the_first_32_leaves_that_are_no_partition_columns() -> None:
    metadata, schema = table_of({"p": "string", **wide(40)}, partition_columns=["p"])
    assert configured_stats_paths(metadata, schema) == [(f"c{number}",) for number in range(32)]


def test_nested_leaves_count_each_and_arrays_and_maps_once() -> None:
    metadata, schema = table_of(
        {"s": {"a": "long", "b": ["long"]}, "m": ("string", "long"), "z": "long"},
        configuration={"delta.dataSkippingNumIndexedCols": "3"},
    )
    assert configured_stats_paths(metadata, schema) == [("s", "a"), ("s", "b"), ("m",)]


@pytest.mark.parametrize(("setting", "count"), [("-1", 40), ("0", 0), ("5", 5), ("many", 32)])
def test_the_number_of_indexed_columns_is_the_tables_to_set(setting: str, count: int) -> None:
    metadata, schema = table_of(wide(40), configuration={"delta.dataSkippingNumIndexedCols": setting})
    assert len(configured_stats_paths(metadata, schema)) == count


def test_named_statistics_columns_win_and_a_struct_stands_for_its_leaves() -> None:
    columns = {"a": "long", "b": "long", "s": {"x": "long", "y.z": "long"}, "odd,name": "long", "T": "long"}
    metadata, schema = table_of(
        columns,
        configuration={
            "delta.dataSkippingStatsColumns": "b, s.`y.z`, `odd,name`,t, gone",
            "delta.dataSkippingNumIndexedCols": "1",
        },
    )
    assert configured_stats_paths(metadata, schema) == [("b",), ("s", "y.z"), ("odd,name",), ("T",)]
    metadata, schema = table_of(columns, configuration={"delta.dataSkippingStatsColumns": "s"})
    assert configured_stats_paths(metadata, schema) == [("s", "x"), ("s", "y.z")]


# --- the whole -------------------------------------------------------------------


def test_the_split_of_a_wide_part_loses_no_column_and_keeps_the_order_with_the_index() -> None:
    layout = layout_for({"p": "long", **EVERY_TYPE}, partition_columns=["p"], time_column="moment")
    assert {*layout.index_columns, *layout.stats_columns} == {*layout.schema.names}
    assert not {*layout.index_columns} & {*layout.stats_columns}
    assert {"path", "size", "p", "raw.p", "num_records", "dv.offset", "min.moment"} <= {*layout.index_columns}
    assert {"tight_bounds", "min.text", "null_count.list"} <= {*layout.stats_columns}


def test_zone_columns_begin_with_the_order_column_then_partitions_and_are_bounded() -> None:
    layout = layout_for(
        {"a": "long", "b": "long", **wide(60)},
        partition_columns=["a", "b"],
        configuration={"delta.dataSkippingNumIndexedCols": "-1"},
        time_column="c50",
    )
    assert [zone.path[0] for zone in layout.zone_columns[:4]] == ["c50", "a", "b", "c0"]
    assert len(layout.zone_columns) == limits.SIDECAR_ZONE_COLUMNS_MAX


def test_the_hash_follows_the_columns_and_the_order_and_nothing_else() -> None:
    one = layout_for({"a": "long", "b": "long"}, time_column="a")
    assert layout_for({"a": "long", "b": "long"}, time_column="a").schema_hash == one.schema_hash
    for other in (
        layout_for({"a": "long", "b": "long"}, time_column="b"),
        layout_for({"a": "long", "b": "integer"}, time_column="a"),
        layout_for({"a": "long"}, time_column="a"),
    ):
        assert other.schema_hash != one.schema_hash
