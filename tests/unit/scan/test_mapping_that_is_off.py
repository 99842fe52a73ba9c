"""A table whose fields remember a column mapping that is off: names are the columns' own everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar


@pytest.fixture
def table(tmp_path: Path) -> ld.Table:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a", "a", "b"]})
    write_deltalake(str(tmp_path), rows, partition_by=["p"])
    path = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            schema = json.loads(line["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"]):
                field["metadata"] = {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": f"col-{number}",
                }
            line["metaData"]["schemaString"] = json.dumps(schema)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ld.open(tmp_path)


@pytest.mark.parametrize(
    ("where", "ids"), [("p = 'a'", [1, 2]), ("p is null", []), ("id > 2", [3]), ("p in ('b', 'c')", [3])]
)
def test_filters_find_the_rows(table: ld.Table, where: str, ids: list[int]) -> None:
    assert sorted(table.scan(where).to_arrow(["id"])["id"].to_pylist()) == ids
    assert sorted(table.sql(f"select id from t where {where}").fetchall()) == [(one,) for one in ids]
    assert bool(list(table.scan(where).files())) == bool(ids)


@pytest.mark.parametrize("with_sidecar", [False, True])
def test_the_sidecar_goes_by_the_same_names(table: ld.Table, tmp_path: Path, *, with_sidecar: bool) -> None:
    DeltaTable(str(tmp_path)).create_checkpoint()
    if with_sidecar:
        storage = open_storage(str(tmp_path), Settings())
        assert build_sidecar(storage, config=SidecarConfig()).num_files == 2
    opened = ld.open(tmp_path)
    assert sorted(opened.scan("p = 'a'").to_arrow(["id"])["id"].to_pylist()) == [1, 2]
    assert opened.scan("id > 2").to_arrow(["p"])["p"].to_pylist() == ["b"]
    assert [file.partition_values for file in opened.scan("p = 'b'").files()] == [{"p": "b"}]
