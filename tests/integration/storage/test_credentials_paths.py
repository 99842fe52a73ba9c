"""A log that names files outside its table, on every store and by every way of reading: nothing gets out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import LazyDeltaError
from tests.support.actions import add
from tests.support.servers import TableServer
from tests.support.table_builder import TableBuilder

# Longer than any part of a folder's random name, which errors may show.
INSIDE, OUTSIDE = [1, 2, 3], [666_777_888_999_666_777]
LOG = "_delta_log/00000000000000000000.json"


def body(ids: list[int], folder: Path) -> bytes:
    pq.write_table(pa.table({"id": ids}), folder / "body.parquet")
    return (folder / "body.parquet").read_bytes()


def log_naming(path: str, size: int, folder: Path) -> bytes:
    builder = TableBuilder(folder / "log", schema={"id": "long"}, partition_columns=())
    builder.commit(adds=[add(path, partition={}, size=size)])
    return (folder / "log" / LOG).read_bytes()


def put_beside(server: TableServer, path: str, folder: Path) -> tuple[str, str]:
    """A table whose log names `path`, and a file beside it; the table's URL and the file's root."""
    base = server.url("parent")
    outside = body(OUTSIDE, folder)
    root = server.open(base).root
    spelled = path.format(root=root)
    server.put_all(base, {"secret.parquet": outside})
    server.put_all(f"{base}/t", {LOG: log_naming(spelled, len(outside), folder)})
    return f"{base}/t", root


@pytest.mark.parametrize(
    "path",
    [
        "../secret.parquet",
        "x/../../secret.parquet",
        "%2e%2e/secret.parquet",
        "%2E%2E%2Fsecret.parquet",
        "./../secret.parquet",
        "{root}/secret.parquet",
        "{root}/t/../secret.parquet",
        "{root}/t/%2e%2e/secret.parquet",
        "%252e%252e/secret.parquet",
        "..%252fsecret.parquet",
    ],
)
def test_no_spelling_of_a_path_leads_out_of_the_table(
    table_store: TableServer, tmp_path: Path, path: str
) -> None:
    url, _ = put_beside(table_store, path, tmp_path)
    table = ld.open(url, storage_options=table_store.storage_options)
    ways: list[Any] = [
        table.to_arrow,
        lambda: table.scan().page(rows=5),
        lambda: table.sql("select sum(id) from t").fetchall(),
        lambda: table.to_pyarrow_dataset().to_table(),
        lambda: table.to_polars().collect(),
    ]
    for way in ways:
        with pytest.raises(Exception) as told:  # engines wrap the error in their own
            way()
        assert str(OUTSIDE[0]) not in str(told.value)
    assert [file.path for file in table.scan().files()], "listing files opens none of them"


def test_a_file_beside_the_table_is_read_once_its_root_is_allowed(
    table_store: TableServer, tmp_path: Path
) -> None:
    url, root = put_beside(table_store, "{root}/secret.parquet", tmp_path)
    with pytest.raises(LazyDeltaError, match=r"delta\.allowed_roots"):
        ld.open(url, storage_options=table_store.storage_options).to_arrow()
    for allowed in (root, "*", f"{root}/", [root, "/x,y"]):
        options = {**table_store.storage_options, "delta.allowed_roots": allowed}
        table = ld.open(url, storage_options=options)
        assert table.to_arrow().column("id").to_pylist() == OUTSIDE
        assert table.sql("select id from t").fetchall() == [tuple(OUTSIDE)]


def test_large_files_that_duckdb_would_read_itself_do_not_lead_out_either(tmp_path: Path) -> None:
    rows = pa.table({"id": np.random.default_rng(1).integers(0, 2**62, 2_000_000)})
    table = tmp_path / "t"
    deltalake.write_deltalake(str(table), rows)
    (file,) = table.glob("*.parquet")
    file.rename(tmp_path / file.name)
    log = table / LOG
    log.write_text(log.read_text().replace(f'"path":"{file.name}', f'"path":"../{file.name}'))
    assert [each.path for each in ld.open(str(table)).scan().files()] == [f"../{file.name}"]
    with pytest.raises(LazyDeltaError, match="not a name inside the table"):
        ld.open(str(table)).sql("select sum(id) from t").fetchall()


def test_a_settings_file_names_locations_with_their_options(
    remote_store: TableServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table on a disk whose data lies in a store."""
    base = remote_store.url("data")
    inside = body(INSIDE, tmp_path)
    remote_store.put_all(base, {"f.parquet": inside})
    root = remote_store.open(base).root
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / LOG).write_bytes(log_naming(f"{root}/f.parquet", len(inside), tmp_path))
    with pytest.raises(LazyDeltaError, match="another store than its own") as told:
        ld.open(str(tmp_path / "t")).to_arrow()
    assert root in told.value.fix
    lines = [f'{name} = "{value}"' for name, value in remote_store.storage_options.items()]
    config = tmp_path / "lazydelta.toml"
    config.write_text("\n".join([f'[locations."{root}"]', *lines]))
    monkeypatch.setenv("LAZYDELTA_CONFIG", str(config))
    assert ld.open(str(tmp_path / "t")).to_arrow().column("id").to_pylist() == INSIDE
