"""Columns of files found among the columns of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.errors import CorruptDataError, UnsupportedTableError
from tests.support.data_files import DataFolder, array, field, map_of, struct


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def rows(folder: DataFolder, stored: pa.Table, **options: Any) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = folder.read(folder.write(stored), **options).to_pylist()
    return read


NESTED = pa.struct([pa.field("x-1", pa.int32()), pa.field("y-1", pa.string())])
STORED = pa.table(
    {
        "s-1": pa.array([{"x-1": 1, "y-1": "a"}, None, {"x-1": None, "y-1": "c"}], NESTED),
        "l-1": pa.array([[{"x-1": 1, "y-1": "a"}, None], None, []], pa.list_(NESTED)),
        "m-1": pa.array([[("k", {"x-1": 1, "y-1": "a"})], None, [("k", None)]], pa.map_(pa.string(), NESTED)),
        "deep-1": pa.array(
            [[[("k", [{"x-1": 1, "y-1": "a"}])]], None, []],
            pa.list_(pa.map_(pa.string(), pa.list_(NESTED))),
        ),
    }
)
# Renamed, reordered, one field dropped, one added, at every level.
RENAMED = struct(field("added", "long", physical="z-1"), field("why", "string", physical="y-1"))


def test_fields_are_renamed_dropped_and_added_inside_structs_arrays_and_maps(tmp_path: Path) -> None:
    folder = DataFolder(
        tmp_path,
        field("deep", array(map_of("string", array(RENAMED))), physical="deep-1"),
        field("map", map_of("string", RENAMED), physical="m-1"),
        field("list", array(RENAMED), physical="l-1"),
        field("struct", RENAMED, physical="s-1"),
        field("new", RENAMED, physical="new-1"),
        mode="name",
    )
    first, second, third = rows(folder, STORED)
    inner = {"added": None, "why": "a"}
    assert first == {
        "deep": [[("k", [inner])]],
        "map": [("k", inner)],
        "list": [inner, None],
        "struct": inner,
        "new": None,
    }
    assert second == dict.fromkeys(first)
    assert third == {
        "deep": [],
        "map": [("k", None)],
        "list": [],
        "struct": {"added": None, "why": "c"},
        "new": None,
    }


@pytest.mark.parametrize("names", ["kept", "swapped"])
def test_in_id_mode_ids_decide_and_names_mean_nothing(tmp_path: Path, names: str) -> None:
    """Two columns that traded names, at the top and inside: only ids tell."""
    first, second = ("a", "b") if names == "kept" else ("b", "a")
    inside = pa.struct([with_id(first, pa.int64(), 3), with_id(second, pa.int64(), 4)])
    schema = pa.schema(
        [
            with_id(first, pa.int64(), 1),
            with_id(second, pa.int64(), 2),
            with_id("s", pa.list_(inside), 5),
        ]
    )
    stored = pa.table([[1], [2], [[{first: 3, second: 4}]]], schema=schema)
    folder = DataFolder(
        tmp_path,
        field("a", "long", id=1, physical="a"),
        field("b", "long", id=2, physical="b"),
        field("s", array(struct(field("a", "long", id=3), field("b", "long", id=4))), id=5),
        field("c", "long", id=9, physical="d"),
        mode="id",
    )
    assert rows(folder, stored) == [{"a": 1, "b": 2, "s": [{"a": 3, "b": 4}], "c": None}]


def test_in_id_mode_a_file_without_ids_is_read_by_physical_names(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("a", "long", id=1, physical="p"), mode="id")
    assert rows(folder, pa.table({"p": [5], "a": [6]})) == [{"a": 5}]


def test_without_mapping_left_over_physical_names_are_ignored(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("a", "long", physical="p"))
    assert rows(folder, pa.table({"p": [5], "a": [6]})) == [{"a": 6}]


def test_case_matters_only_where_two_names_differ_by_nothing_else(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("Id", "long"), field("value", "long"))
    assert rows(folder, pa.table({"ID": [1], "Value": [2]})) == [{"Id": 1, "value": 2}]
    assert rows(folder, pa.table({"ID": [1], "Id": [3], "VALUE": [2], "Value": [4]})) == [
        {"Id": 3, "value": None}
    ]


def test_dots_in_names_are_no_paths(tmp_path: Path) -> None:
    stored = pa.table({"a": pa.array([{"b": 1}]), "a.b": [2], "a.b.c": [3]})
    folder = DataFolder(tmp_path, field("a.b", "long"))
    assert rows(folder, stored) == [{"a.b": 2}]
    folder = DataFolder(tmp_path, field("a", struct(field("b", "long"))))
    assert rows(folder, stored) == [{"a": {"b": 1}}]


def test_a_struct_of_which_the_file_has_no_field_is_null_only_where_the_file_says_so(tmp_path: Path) -> None:
    stored = pa.table({"s": pa.array([{"old": 1}, None, {"old": None}], pa.struct([("old", pa.int64())]))})
    folder = DataFolder(tmp_path, field("s", struct(field("new", "string"))))
    assert rows(folder, stored) == [{"s": {"new": None}}, {"s": None}, {"s": {"new": None}}]


def test_empty_structs_keep_their_nulls(tmp_path: Path) -> None:
    stored = pa.table({"s": pa.array([{"old": 1}, None], pa.struct([("old", pa.int64())]))})
    folder = DataFolder(tmp_path, field("s", struct()))
    assert rows(folder, stored) == [{"s": {}}, {"s": None}]


def test_of_a_struct_only_the_wanted_leaves_are_fetched(tmp_path: Path) -> None:
    big = ["x" * 50 + str(n) for n in range(20_000)]
    stored = pa.table({"s": pa.array([{"small": n, "big": text} for n, text in enumerate(big)])})
    folder = DataFolder(tmp_path, field("s", struct(field("small", "long"))))
    file = folder.write(stored, compression="none", use_dictionary=False)
    assert folder.read(file).num_rows == 20_000
    assert folder.storage.counters.snapshot().bytes_read < file.size / 2


def test_slices_of_nested_columns_are_the_rows_of_the_file(tmp_path: Path) -> None:
    stored = pa.table(
        {
            "l-1": pa.array(
                [None if n % 7 == 0 else [{"x-1": n, "y-1": str(n)}] * (n % 5) for n in range(1000)],
                pa.list_(NESTED),
            ),
            "m-1": pa.array(
                [
                    None if n % 11 == 0 else [(str(k), {"x-1": n, "y-1": None}) for k in range(n % 4)]
                    for n in range(1000)
                ],
                pa.map_(pa.string(), NESTED),
            ),
        }
    )
    folder = DataFolder(
        tmp_path,
        field("l", array(struct(field("x", "long", physical="x-1"))), physical="l-1"),
        field("m", map_of("string", struct(field("x", "long", physical="x-1"))), physical="m-1"),
        mode="name",
    )
    read = rows(folder, stored, batch_rows=37)
    for n, (ours, theirs) in enumerate(zip(read, stored.to_pylist(), strict=True)):
        assert ours["l"] == (theirs["l-1"] and [{"x": inner["x-1"]} for inner in theirs["l-1"]]), n
        assert ours["m"] == (theirs["m-1"] and [(key, {"x": v["x-1"]}) for key, v in theirs["m-1"]]), n


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array(["1"]), "long"),
        (pa.array([1]), "string"),
        (pa.array([1.5]), "long"),
        (pa.array([1.5]), "float"),
        (pa.array([1]), "double"),  # 64 bits do not fit a double: not among the widenings
        (pa.array([[1]]), "long"),
        (pa.array([{"a": 1}]), "long"),
        (pa.array([1]), array("long")),
        (pa.array([{"a": 1}]), map_of("string", "long")),
        (pa.array([1]), struct(field("a", "long"))),
        (pa.array([True]), "integer"),
        (pa.array([0], pa.date32()), "timestamp"),
        (pa.array([1], pa.time64("us")), "long"),
        (pa.array([b"x"]), "variant"),
    ],
)
def test_a_column_that_contradicts_the_schema_is_named(tmp_path: Path, stored: pa.Array, wanted: Any) -> None:
    folder = DataFolder(tmp_path, field("outer", struct(field("c", wanted))))
    with pytest.raises(CorruptDataError) as told:
        rows(folder, pa.table({"outer": pa.StructArray.from_arrays([stored], ["c"])}))
    assert "'outer.c'" in told.value.what
    assert told.value.where.endswith("/f.parquet")


def test_a_variant_is_its_two_binaries_and_a_shredded_one_is_refused(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("v", "variant"), field("vs", array("variant")))
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    value = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    stored = pa.table({"v": pa.array([value, None], kind), "vs": pa.array([[value], []], pa.list_(kind))})
    assert rows(folder, stored) == [{"v": value, "vs": [value]}, {"v": None, "vs": []}]
    assert folder.read().schema.field("v").type.field(0).name == "metadata"
    shredded = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    with pytest.raises(UnsupportedTableError, match="shredded"):
        rows(folder, pa.table({"v": pa.array([{"metadata": b"\x01\x00\x00", "typed_value": 1}], shredded)}))


def test_a_void_column_is_null_whether_or_not_the_file_has_it(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("id", "long"), field("v", "void"))
    assert rows(folder, pa.table({"id": [1]})) == [{"id": 1, "v": None}]
    assert rows(folder, pa.table({"id": [1], "v": pa.nulls(1)})) == [{"id": 1, "v": None}]
