"""Names in a log, a checkpoint or a manifest never lead out of the table, however they are spelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import LazyDeltaError
from tests.support.actions import add, stats
from tests.support.deletion_vector_writer import encode_z85, stored_vectors
from tests.support.sidecar_damage import edit_manifest
from tests.support.sidecar_states import NO_CACHE, scanned, table_with_sidecar
from tests.support.table_builder import TableBuilder

SECRET = 471_147_114_711_471_147  # longer than any part of a folder's random name, which errors may show
# Each leads, if it is followed, to `secret.parquet` beside the table's folder.
SPELLINGS = (
    "../secret.parquet",
    "x/../../secret.parquet",
    "./../secret.parquet",
    "..%2Fsecret.parquet",
    "%2e%2e/secret.parquet",
    "%2E%2E%2Fsecret.parquet",
    ".%2e/secret.parquet",
    "x//../../secret.parquet",
    "..\\secret.parquet",
    "%2e%2e%5csecret.parquet",
    "%252e%252e/secret.parquet",
    "../secret.parquet%00",
    "\0../secret.parquet",
    "../" * 2000 + "secret.parquet",
    "y" * 5000 + "/../../secret.parquet",
    "file:../secret.parquet",
    "",
    ".",
    "..",
)


def write_secret(folder: Path) -> int:
    """A Parquet file outside the table; its size."""
    path = folder / "secret.parquet"
    pq.write_table(pa.table({"id": pa.array([SECRET], pa.int64())}), path)
    return path.stat().st_size


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_path_of_a_data_file_does_not_leave_the_table(tmp_path: Path, spelling: str) -> None:
    size = write_secret(tmp_path)
    table = TableBuilder(tmp_path / "table", schema={"id": "long"}, partition_columns=())
    table.commit([add(spelling, partition={}, size=size, stats=stats(1))])
    with pytest.raises(LazyDeltaError) as refusal:
        rows = ld.open(str(table.path), settings=NO_CACHE).scan().to_arrow()
        assert SECRET not in rows.column("id").to_pylist()
    assert str(SECRET) not in str(refusal.value)


@pytest.mark.parametrize("prefix", ["..", "../..", "x/../..", "/etc", "..\\..", "%2e%2e", "\0", "y" * 5000])
def test_a_deletion_vector_does_not_leave_the_table(tmp_path: Path, prefix: str) -> None:
    table, vector = table_with_vector(tmp_path)
    table.commit([vector | {"pathOrInlineDv": prefix + vector["pathOrInlineDv"]}])
    with pytest.raises(LazyDeltaError):
        ld.open(str(table.path), settings=NO_CACHE).scan().to_arrow()


def table_with_vector(folder: Path) -> tuple[Any, dict[str, Any]]:
    """A table of one file, and a commit of another vector of it, whose file lies beside the table."""
    table = TableBuilder(folder / "table", schema={"id": "long"}, partition_columns=())
    pq.write_table(pa.table({"id": [1, 2, 3]}), table.path / "f.parquet")
    size = (table.path / "f.parquet").stat().st_size
    (vector,) = stored_vectors(folder, [[0]])

    class Committer:
        path = table.path

        def commit(self, vectors: list[dict[str, Any]]) -> None:
            table.commit([add("f.parquet", partition={}, size=size, deletion_vector=vectors[0])])

    return Committer(), vector


@pytest.mark.parametrize(
    "name", ["../../secret.parquet", "..%2F..%2Fsecret.parquet", "/etc/passwd", "", "\0"]
)
def test_a_sidecar_file_of_a_checkpoint_is_looked_for_in_its_folder_only(tmp_path: Path, name: str) -> None:
    write_secret(tmp_path)
    table = TableBuilder(tmp_path / "table").commit(["a", "b"]).checkpoint("v2-json").clean_up(before=1)
    table.delete_commit(0) if (table.log / f"{0:020}.json").exists() else None
    top = table.log_file("*.checkpoint.*.json")
    lines = [json.loads(line) for line in top.read_text("utf-8").splitlines()]
    for line in lines:
        if "sidecar" in line:
            line["sidecar"]["path"] = name
    top.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    with pytest.raises(LazyDeltaError):
        list(ld.open(str(table.path), settings=NO_CACHE).scan().files())


@pytest.mark.parametrize("name", ["../x.parquet", "/etc/passwd", "%2e%2e%2fx.parquet", "\0"])
@pytest.mark.parametrize("field", ["file", "stats_file"])
def test_a_manifest_that_names_a_part_elsewhere_is_passed_over(tmp_path: Path, name: str, field: str) -> None:
    table = table_with_sidecar(tmp_path / "table")

    def elsewhere(manifest: Any) -> None:
        manifest["parts"][0][field] = name

    edit_manifest(table, elsewhere)
    report = scanned(table)  # every live file, as the builder knows them
    assert any("is no part's name" in fallback for fallback in report.fallbacks)


def test_a_hint_that_names_a_file_elsewhere_changes_nothing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "table").commit(["a"]).commit(["b"]).checkpoint()
    about = {"version": 1, "v2Checkpoint": {"path": "../../secret.parquet", "sizeInBytes": 1}, "parts": -1}
    table.with_hint(about)
    scanned(table)


def test_a_vectors_own_name_is_a_uuid_whatever_its_text_says() -> None:
    """Twenty characters of Z85 are sixteen bytes: none of them can spell a path."""
    assert len(encode_z85(b"../../etc/passwd")) == 20
