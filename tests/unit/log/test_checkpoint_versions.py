"""A V2 checkpoint says which version it is of; under the name of another it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError
from tests.support.cached import UNCACHED
from tests.support.reading import keys
from tests.support.table_builder import TableBuilder

KINDS = ["v2-json", "v2-parquet", "classic-named-v2"]


def misplaced(folder: Path, kind: str, *, sidecars: int) -> TableBuilder:
    """The checkpoint of version 1 under the name of version 2."""
    table = TableBuilder(folder).commit(["a"]).commit(["b"]).commit(["c"], ["a"]).commit(["d"])
    table.checkpoint(kind, version=1, hint=False, sidecars=sidecars)
    (path,) = table.log.glob(f"{1:020}.checkpoint*")
    path.rename(path.with_name(path.name.replace(f"{1:020}", f"{2:020}")))
    return table


@pytest.mark.parametrize("has_crc", [True, False])
@pytest.mark.parametrize("sidecars", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_left_for_the_commits(tmp_path: Path, kind: str, sidecars: int, has_crc: bool) -> None:
    table = misplaced(tmp_path, kind, sidecars=sidecars)
    if has_crc:
        table.crc()
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan()
    assert set(keys(scan.files())) == table.live()
    (told,) = scan.explain().fallbacks
    assert "the checkpoint of version 2 says that it is of version 1" in told


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_an_error_where_nothing_else_tells_the_version(tmp_path: Path, kind: str) -> None:
    misplaced(tmp_path, kind, sidecars=2).clean_up(before=2)
    with pytest.raises(CorruptLogError, match="says that it is of version 1"):
        list(ld.open(tmp_path, storage_options=UNCACHED).scan().files())


def test_it_is_found_in_a_file_without_statistics(tmp_path: Path) -> None:
    table = misplaced(tmp_path, "v2-parquet", sidecars=2)
    (path,) = table.log.glob("*.checkpoint*.parquet")
    pq.write_table(pq.read_table(path), path, write_statistics=False)
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan()
    assert set(keys(scan.files())) == table.live()
    assert "says that it is of version 1" in scan.explain().fallbacks[0]


@pytest.mark.parametrize("told", [{}, {"version": "1"}, {"version": None}, {"version": 2.5}, [1], 10**30])
def test_metadata_of_another_shape_is_damage(tmp_path: Path, told: object) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint("v2-json", version=1)
    (path,) = table.log.glob("*.checkpoint*.json")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines = [{"checkpointMetadata": told} if "checkpointMetadata" in line else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan()
    assert set(keys(scan.files())) == table.live()
    assert "damaged" in scan.explain().fallbacks[0]


@pytest.mark.parametrize("kind", KINDS)
def test_one_under_its_own_name_is_read(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint(kind).commit(["c"])
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan()
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().fallbacks == ()
