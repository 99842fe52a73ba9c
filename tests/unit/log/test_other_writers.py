"""Checkpoints and tables as other writers lay them out: the protocol fixes the meaning, not the layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError
from tests.support.actions import add, relative_dv, stats
from tests.support.eager_twin import replay
from tests.support.peers import delta_rs_paths
from tests.support.reading import STRATEGIES, live_keys, live_paths
from tests.support.table_builder import TableBuilder

EVERY_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES)
LAYOUTS: dict[str, dict[str, Any]] = {
    "no statistics in the footer": {"write_statistics": False},
    "no dictionaries": {"use_dictionary": False},
    "zstd": {"compression": "zstd"},
    "uncompressed": {"compression": "none"},
    "version 2 pages": {"data_page_version": "2.0"},
    "tiny pages": {"data_page_size": 64},
    "one row a group": {"row_group_size": 1},
    "page index": {"write_page_index": True},
    "large strings": {},
    "columns in another order": {},
    "table columns alone": {},
}


def checkpointed(folder: Path) -> TableBuilder:
    """Thirty files with statistics in a checkpoint, one of them with a deletion vector; a short tail."""
    table = TableBuilder(folder)
    bounds = [{"count": number, "device_id": f"d{number:02}", "value": 1.0} for number in range(30)]
    files = [add(f"f{n}%20x", stats=stats(low=each, high=each)) for n, each in enumerate(bounds)]
    table.commit(files).commit([files[3] | {"deletionVector": relative_dv()}], ["f3%20x"])
    return (
        table.commit(removes=["f1%20x"]).checkpoint(stats="both", row_group_rows=7).commit(removes=["f2%20x"])
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_checkpoint_in_any_parquet_layout_reads_the_same(tmp_path: Path, layout: str) -> None:
    table = checkpointed(tmp_path)
    path = table.log_file("*.checkpoint.parquet")
    rows = pq.read_table(path)
    if layout == "large strings":
        rows = rows.cast(
            pa.schema([field.with_type(with_large_strings(field.type)) for field in rows.schema])
        )
    elif layout == "columns in another order":
        rows = rows.select(sorted(rows.column_names, reverse=True))
    elif layout == "table columns alone":
        rows = rows.select(["add", "metaData", "protocol"])
    pq.write_table(rows, path, **LAYOUTS[layout])
    for strategy in STRATEGIES:
        assert live_keys(tmp_path, strategy=strategy) == table.live(), strategy
        assert live_paths(tmp_path, strategy=strategy, where="count = 7 and device_id = 'd07'") == ["f7 x"]
        assert live_paths(tmp_path, strategy=strategy, where="count = 3") == ["f3 x"]


@EVERY_STRATEGY
def test_a_table_that_delta_rs_wrote_reads_as_delta_rs_reads_it(tmp_path: Path, strategy: str) -> None:
    folder = tmp_path / "delta-rs"
    for number in range(4):
        rows = pa.table({"id": [number, number + 10], "region": ["a b", "ü%"], "x": [0.5 * number, None]})
        deltalake.write_deltalake(str(folder), rows, partition_by=["region"], mode="append")
    table = deltalake.DeltaTable(str(folder))
    table.delete("id = 12")
    table.create_checkpoint()
    table.update(predicate="id = 1", updates={"x": "7.0"})
    table.optimize.compact()
    newest = deltalake.DeltaTable(str(folder)).version()
    for version in range(newest + 1):
        assert live_keys(folder, version=version, strategy=strategy) == set(
            replay(folder, version=version).live
        )
    assert sorted(live_paths(folder, strategy=strategy)) == delta_rs_paths(folder)
    kept = live_paths(folder, strategy=strategy, where="region = 'ü%' and id >= 13")
    assert kept
    assert set(kept) < set(live_paths(folder, strategy=strategy))


@pytest.mark.parametrize(
    "name", ["plain", "with space", "100%", "a%20b", "hash#tag", "ünï", "q?x=1", "plus+and&"]
)
@pytest.mark.parametrize("spelling", ["path", "text", "slash", "uri"])
def test_a_table_in_a_folder_of_any_name_reads_the_same_however_it_is_addressed(
    tmp_path: Path, name: str, spelling: str
) -> None:
    folder = tmp_path / name
    table = (
        TableBuilder(folder)
        .commit(["a", add(f"{folder.as_uri()}/inside%20it")])
        .checkpoint()
        .commit(["b"], ["a"])
    )
    addresses: dict[str, Path | str] = {
        "path": folder,
        "text": str(folder),
        "slash": f"{folder}/",
        "uri": folder.as_uri(),
    }
    assert live_keys(addresses[spelling]) == table.live() == {("b", None), ("inside it", None)}


def with_large_strings(kind: pa.DataType) -> pa.DataType:
    """The same type with 64-bit offsets, as Arrow implementations in other languages like them."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_large_strings(field.type)) for field in kind])
    return kind


@EVERY_STRATEGY
@pytest.mark.parametrize("form", ["parsed", "both", "json"])
def test_timestamp_bounds_far_from_now_are_read(tmp_path: Path, strategy: str, form: str) -> None:
    spans = {
        "forever": ("0001-01-01T00:00:00.000Z", "9999-12-31T00:00:00.000Z"),
        "never": ("9999-12-30T00:00:00.000Z", "9999-12-31T00:00:00.000Z"),
    }
    files = [
        add(name, stats=stats(low={"ts": low}, high={"ts": high})) for name, (low, high) in spans.items()
    ]
    table = TableBuilder(tmp_path).commit(files).checkpoint(stats=form)
    scan = ld.open(str(table.path)).scan("ts = timestamp '2026-02-08 10:00:00'", strategy=strategy)
    assert [found.path for found in scan.files()] == ["forever"]


@pytest.mark.parametrize("text", ['{"add":%s} {"txn":{}}', '{"add":%s}{"unheardOf":{}}\n\n'])
def test_two_actions_in_one_line_are_damage(tmp_path: Path, text: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    added = json.dumps({"path": "c", "size": 1, "partitionValues": {}, "modificationTime": 1})
    (table.log / f"{1:020d}.json").write_text(text % added)
    with pytest.raises(CorruptLogError, match="a line holds more than one action"):
        list(ld.open(tmp_path).scan().files())
