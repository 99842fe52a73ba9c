"""A newest checkpoint that is damaged: the older one and the commits after it serve, and it is told."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError, LazyDeltaError
from tests.support.cached import UNCACHED
from tests.support.reading import keys
from tests.support.table_builder import TableBuilder

KINDS = ("v1", "v1-multipart", "v2-parquet", "v2-json", "classic-named-v2")
DAMAGES = ("truncated", "no parquet", "empty after listing", "absurd footer")


def built(folder: Path, kind: str = "v1", *, older: str | None = "v1") -> TableBuilder:
    """Versions 0 to 4, checkpoints at 1 and 3; files that are removed after each of them."""
    dice = random.Random(1)
    names = [f"{number:06}-{dice.getrandbits(512):0128x}.parquet" for number in range(1_200)]
    table = TableBuilder(folder, partition_columns=()).commit(names[:800]).commit(names[800:1_000])
    if older is not None:
        table.checkpoint(older, row_group_rows=300)
    table.commit(names[1_000:], names[5:50]).commit(["c"], names[60:70])
    table.checkpoint(kind, row_group_rows=300, table_state_at="end")
    return table.commit(["d"], names[80:90])


def damage(file: Path, how: str) -> None:
    """Damage one file of a checkpoint."""
    body = file.read_bytes()
    if how == "truncated":
        file.write_bytes(body[: len(body) // 2])
    elif how == "no parquet":
        file.write_bytes(b"this is neither JSON nor Parquet" * (len(body) // 32))
    elif how == "empty after listing":
        file.write_bytes(body[:1])
    else:
        file.write_bytes(body[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")


def files_of_newest(table: TableBuilder, *, of_sidecar: bool = False) -> list[Path]:
    """The files of checkpoint 3, or the sidecars of it."""
    if of_sidecar:
        return sorted((table.log / "_sidecars").iterdir())
    return sorted(table.log.glob(f"{3:020}.checkpoint*"))


def check_falls_back(table: TableBuilder) -> None:
    """The files are right, and the fallback is in the account of the scan."""
    scan = ld.open(table.path, storage_options=UNCACHED).scan()
    found = keys(scan.files())
    assert len(found) == len(set(found))
    assert set(found) == table.live()
    report = scan.explain()
    assert report.fallbacks_by_kind == {"checkpoint_damaged": 1}
    assert "checkpoint 3 is damaged" in report.fallbacks[0]
    assert "fallback" in str(report)


@pytest.mark.parametrize("with_crc", [True, False], ids=["met by the scan", "met at opening"])
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *(("v1", how) for how in DAMAGES),
        *((kind, "truncated") for kind in KINDS if kind not in ("v1", "v2-json")),
    ],
)
def test_a_damaged_checkpoint_is_left_for_the_older_one(
    tmp_path: Path, kind: str, how: str, *, with_crc: bool
) -> None:
    table = built(tmp_path, kind)
    if with_crc:
        table.crc()
    damage(files_of_newest(table)[-1], how)
    check_falls_back(table)


@pytest.mark.parametrize(
    ("kind", "how"), [("v2-parquet", "truncated"), ("v2-json", "no parquet"), ("v2-json", "gone")]
)
def test_a_damaged_sidecar_of_the_checkpoint_leaves_it_for_the_older_one_unless_another_came_first(
    tmp_path: Path, kind: str, how: str
) -> None:
    outcomes = []
    for which in (0, 1):
        table = built(tmp_path / str(which), kind)
        sidecar = files_of_newest(table, of_sidecar=True)[which]
        if how == "gone":
            sidecar.unlink()
        else:
            damage(sidecar, how)
        scan = ld.open(table.path, storage_options=UNCACHED).scan()
        try:
            found = keys(scan.files())
        except CorruptLogError as error:
            assert sidecar.name in error.where
            assert scan.explain().files_emitted > 1
            outcomes.append("error")
        else:
            assert sorted(found) == sorted(table.live())
            assert scan.explain().fallbacks_by_kind == {"checkpoint_damaged": 1}
            outcomes.append("older one")
    assert sorted(outcomes) == ["error", "older one"]


@pytest.mark.parametrize("how", ["named twice", "of a negative size"])
def test_a_checkpoint_that_says_what_cannot_be_of_a_sidecar_is_left_for_the_older_one(
    tmp_path: Path, how: str
) -> None:
    table = built(tmp_path, "v2-json")
    file = files_of_newest(table)[0]
    lines = file.read_text().splitlines()
    sidecar = next(line for line in lines if '"sidecar"' in line)
    if how == "named twice":
        lines.append(sidecar)
    else:
        told = json.loads(sidecar)
        told["sidecar"]["sizeInBytes"] *= -1
        lines[lines.index(sidecar)] = json.dumps(told)
    file.write_text("\n".join(lines) + "\n")
    check_falls_back(table)


@pytest.mark.parametrize(("kind", "with_crc"), [*((kind, False) for kind in KINDS), ("v1", True)])
def test_the_damage_is_the_error_where_a_commit_after_the_older_checkpoint_is_missing(
    tmp_path: Path, kind: str, *, with_crc: bool
) -> None:
    table = built(tmp_path, kind).delete_commit(2)
    if with_crc:
        table.crc()
    file = files_of_newest(table)[-1]
    damage(file, "truncated")
    with pytest.raises(CorruptLogError) as caught:
        list(ld.open(tmp_path, storage_options=UNCACHED).scan().files())
    assert file.name in caught.value.where


def test_without_an_older_checkpoint_the_commits_from_the_beginning_serve_and_without_those_it_is_the_error(
    tmp_path: Path,
) -> None:
    table = built(tmp_path, older=None)
    damage(files_of_newest(table)[0], "truncated")
    check_falls_back(table)
    table.clean_up(2)
    with pytest.raises(CorruptLogError):
        ld.open(tmp_path, storage_options=UNCACHED)


def test_with_the_fallback_off_the_damage_is_the_error(tmp_path: Path) -> None:
    table = built(tmp_path).crc()
    damage(files_of_newest(table)[0], "truncated")
    with pytest.raises(CorruptLogError):
        list(ld.open(tmp_path, storage_options=UNCACHED).scan(enable_fallback=False).files())


@pytest.mark.parametrize(("row_group", "is_first_read"), [(0, False), (2, False), (3, True)])
def test_a_damaged_row_group_falls_back_only_before_any_file_of_the_checkpoint_went_out(
    tmp_path: Path, row_group: int, *, is_first_read: bool
) -> None:
    table = built(tmp_path)
    file = files_of_newest(table)[0]
    rows = pq.read_table(file)
    pq.write_table(rows, file, row_group_size=300, write_page_checksum=True, use_dictionary=False)
    about = pq.read_metadata(file)
    chunk = next(
        about.row_group(row_group).column(index)
        for index in range(about.num_columns)
        if about.row_group(row_group).column(index).path_in_schema == "add.path"
    )
    body = bytearray(file.read_bytes())
    body[chunk.data_page_offset + chunk.total_compressed_size - 10] ^= 0xFF
    file.write_bytes(body)
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan(checkpoint_row_groups_per_batch=1)
    if is_first_read:
        assert sorted(keys(scan.files())) == sorted(table.live())
        assert scan.explain().fallbacks_by_kind == {"checkpoint_damaged": 1}
        return
    with pytest.raises(LazyDeltaError) as caught:
        list(scan.files())
    assert file.name in caught.value.where
    assert scan.explain().files_emitted > 1


def test_several_damaged_checkpoints_are_left_one_after_the_other(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, partition_columns=())
    for version in range(8):
        table.commit([f"{version}"]).checkpoint()
    table.commit(["last"]).crc()
    for version in range(1, 8):
        table.corrupt(f"{version:020}.checkpoint.parquet")
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan()
    assert sorted(keys(scan.files())) == sorted(table.live())
    assert scan.explain().fallbacks_by_kind == {"checkpoint_damaged": 7}
