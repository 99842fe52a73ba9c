"""Logs that say what cannot be: an error, or what they say is passed over; never a row more or less."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta.errors import CorruptLogError, LazyDeltaError
from tests.support.actions import add
from tests.support.table_builder import TableBuilder

UNCACHED = {"delta.cache.bytes": "0"}
VECTOR = {"pathOrInlineDv": "wi5b", "offset": None, "sizeInBytes": 40, "cardinality": 6}
Row = dict[str, Any]


def test_a_name_that_claims_a_huge_version_is_a_gap_at_once(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=["a"])
    (table.log / f"{30_000_000:020}.json").write_text('{"commitInfo":{}}\n')
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLogError, match="commit 1 is missing between 0 and 30000000"):
            ld.open(table.path, storage_options=UNCACHED)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_a_name_that_claims_very_many_parts_is_no_checkpoint(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=["a"]).commit(adds=["b"])
    (table.log / f"{1:020}.checkpoint.0000000001.9999999999.parquet").write_bytes(b"PAR1")
    found = ld.open(table.path, storage_options=UNCACHED).scan().files()
    assert sorted(file.path for file in found) == ["a", "b"]


def test_a_count_of_rows_below_zero_tells_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), tmp_path / "f.parquet")
    table = TableBuilder(tmp_path, schema={"id": "long"}, partition_columns=())
    size = (tmp_path / "f.parquet").stat().st_size
    table.commit([add("f.parquet", partition={}, size=size, stats='{"numRecords":-1}')])
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    for where, rows in ((None, 3), ("id >= 0", 3), ("id = 2", 1), ("id is null", 0)):
        assert opened.scan(where).to_arrow().num_rows == rows
    assert opened.scan(limit=2).to_arrow().num_rows == 2
    assert opened.sql("select count(*) from t").fetchall() == [(3,)]


def changed_checkpoint(folder: Path, change: Callable[[list[Row]], None]) -> str:
    """A table of two files that has nothing but a checkpoint, whose adds were changed."""
    write_deltalake(folder, pa.table({"id": [1, 2]}))
    write_deltalake(folder, pa.table({"id": [3]}), mode="append")
    DeltaTable(folder).create_checkpoint()
    (path,) = folder.glob("_delta_log/*.checkpoint.parquet")
    rows = pq.read_table(path)
    schema = pa.schema([_nullable(field) for field in rows.schema])
    actions = rows.to_pylist()
    change(actions)
    pq.write_table(pa.Table.from_pylist(actions, schema), path)
    for commit in folder.glob("_delta_log/*.json"):
        commit.unlink()
    return str(folder)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"deletionVector": {"storageType": None, **VECTOR}}, "a deletion vector has no storage type"),
        ({"deletionVector": {"storageType": "i", **VECTOR, "pathOrInlineDv": None}}, "or no path"),
        ({"size": None}, "an add has no size"),
    ],
)
def test_an_add_that_lacks_what_it_needs_is_damage(tmp_path: Path, values: Row, words: str) -> None:
    def change(actions: list[Row]) -> None:
        next(action for action in actions if action["add"])["add"].update(values)

    url = changed_checkpoint(tmp_path / "t", change)
    with pytest.raises(LazyDeltaError, match=words):
        ld.open(url, storage_options=UNCACHED).scan().to_arrow()


def test_a_vector_of_nulls_is_none(tmp_path: Path) -> None:
    def change(actions: list[Row]) -> None:
        nulls = dict.fromkeys(("storageType", *VECTOR))
        next(action for action in actions if action["add"])["add"].update(deletionVector=nulls)

    url = changed_checkpoint(tmp_path / "t", change)
    assert sorted(ld.open(url, storage_options=UNCACHED).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_rows_of_a_file_that_a_checkpoint_names_twice_are_an_error(tmp_path: Path, order: Any) -> None:
    def change(actions: list[Row]) -> None:
        actions.append(next(action for action in actions if action["add"]))

    url = changed_checkpoint(tmp_path / "t", change)
    with pytest.raises(CorruptLogError, match="twice"):
        list(ld.open(url, storage_options=UNCACHED).scan(order=order).batches())


def _nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(inner) for inner in kind])
    return pa.field(field.name, kind, nullable=True)
