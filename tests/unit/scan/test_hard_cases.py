"""Healthy tables that look odd, damage that looks healthy, and requests of the wrong kind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import CorruptLogError, InvalidRequestError, StorageError, UnsupportedTableError
from lazydelta.storage import LocalStorage
from tests.support.reading import live_keys
from tests.support.table_builder import TableBuilder


def test_a_crc_that_contradicts_the_protocol_of_its_own_commit_does_not_count(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    stale = dict(table.protocol)
    newer = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["zork"],
        "writerFeatures": ["zork"],
    }
    table.commit(["b"], protocol=newer).crc(protocol=stale, txnId=None)
    with pytest.raises(UnsupportedTableError, match="zork"):
        ld.open(str(table.path))


def test_a_crc_that_contradicts_the_schema_of_its_own_commit_does_not_count(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    stale = dict(table.metadata)
    columns = [{"name": "fresh", "type": "long", "nullable": True, "metadata": {}}]
    newer = {
        **stale,
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [],
    }
    table.commit(["b"], metadata=newer).crc(metadata=stale, txnId=None)
    opened = ld.open(str(table.path))
    assert opened.schema.names == ["fresh"]
    assert "metadata differs" in " ".join(opened.info().notes)


def test_crc_files_without_protocol_cost_few_reads(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for version in range(30):
        table.commit([f"f{version}"]).crc(metadata=None, protocol=None)
    scan = ld.open(str(table.path)).scan()
    assert len(list(scan.files())) == 30
    assert scan.explain().requests <= 30 + 2 + limits.CRC_TRIES_MAX


def test_a_listing_that_missed_a_commit_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"])
    whole = LocalStorage.list_from
    calls: list[int] = []

    def torn(self: LocalStorage, folder: str, after: str | None = None) -> Any:
        calls.append(1)
        for info in whole(self, folder, after):
            if len(calls) > 2 or not info.name.endswith("1.json"):
                yield info

    monkeypatch.setattr(LocalStorage, "list_from", torn)
    assert live_keys(table.path) == table.live()
    assert len(calls) == 3


def test_a_gap_that_stays_is_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"]).delete_commit(1)
    with pytest.raises(CorruptLogError, match="commit 1 is missing"):
        ld.open(str(table.path))


def test_two_checkpoints_of_one_version_do_not_cancel_each_other(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"]).clean_up(before=1)
    classic = table.log_file("*1.checkpoint.parquet")
    twin = classic.with_name(f"{1:020d}.checkpoint.0000000001.0000000001.parquet")
    twin.write_bytes(classic.read_bytes())
    assert live_keys(table.path) == table.live()
    classic.write_bytes(b"PAR1 not any more PAR1")  # the other one of the same version serves
    assert live_keys(table.path) == table.live()


@pytest.mark.parametrize("damage", ["no rows", "no add"])
def test_a_checkpoint_that_can_hold_no_files_is_damage(tmp_path: Path, damage: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"]).crc()
    path = table.log_file("*1.checkpoint.parquet")
    content = pq.read_table(path)
    pq.write_table(content.slice(0, 0) if damage == "no rows" else content.drop_columns(["add"]), path)
    scan = ld.open(str(table.path)).scan()
    assert {(file.path, file.dv_id) for file in scan.files()} == table.live()
    assert "damaged" in " ".join(scan.explain().fallbacks)


def test_a_flipped_bit_in_a_page_with_a_checksum_is_damage(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([f"file-{n}" for n in range(500)]).checkpoint().commit(["c"]).crc()
    path = table.log_file("*0.checkpoint.parquet")
    pq.write_table(
        pq.read_table(path), path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    body = bytearray(path.read_bytes())
    at = body.index(b"file-250")
    body[at] ^= 1
    path.write_bytes(body)
    scan = ld.open(str(table.path)).scan()
    assert {(file.path, file.dv_id) for file in scan.files()} == table.live()
    assert "damaged" in " ".join(scan.explain().fallbacks)


def test_an_add_without_a_path_in_a_checkpoint_is_damage(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["c"]).crc()
    path = table.log_file("*0.checkpoint.parquet")
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["add"] is not None:
            row["add"]["path"] = None
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), path)
    scan = ld.open(str(table.path)).scan()
    assert {(file.path, file.dv_id) for file in scan.files()} == table.live()


def test_a_checkpoint_that_vanished_says_to_open_again(tmp_path: Path) -> None:
    table = (
        TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"]).crc().clean_up(before=2)
    )
    scan = ld.open(str(table.path)).scan()
    table.log_file("*.checkpoint.parquet").unlink()
    with pytest.raises(CorruptLogError, match="vanished") as gone:
        list(scan.files())
    assert "open the table again" in gone.value.fix


def test_a_number_that_fits_no_column_names_its_commit(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    table.append_to_commit(0, json.dumps({"add": {"path": "b", "size": 2**70, "partitionValues": {}}}) + "\n")
    with pytest.raises(CorruptLogError):
        list(ld.open(str(table.path)).scan().files())


def test_a_dead_link_in_place_of_the_newest_commit_is_not_passed_over(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    newest = table.log / f"{1:020d}.json"
    newest.unlink()
    newest.symlink_to(tmp_path / "nowhere")
    with pytest.raises(CorruptLogError, match="commit 1"):
        list(ld.open(str(table.path)).scan().files())


@pytest.mark.parametrize("told", [10**30, -(10**17), "soon"])
def test_history_survives_any_timestamp(tmp_path: Path, told: Any) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    path = table.log / f"{0:020d}.json"
    kept = [line for line in path.read_text().splitlines() if "commitInfo" not in line]
    path.write_text("\n".join([json.dumps({"commitInfo": {"timestamp": told}}), *kept]) + "\n")
    assert [record.version for record in ld.open(str(table.path)).history()] == [0]


def test_cancelling_an_async_scan_raises_what_cancelled_it_and_stops_the_scan(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for version in range(300):
        table.commit([f"f{version}"])

    async def hurried() -> None:
        scan = ld.open(str(table.path)).scan()
        async with asyncio.timeout(0):
            async for _ in scan.files_async():
                await asyncio.sleep(0)

    others = set(threading.enumerate())
    with pytest.raises(TimeoutError):
        asyncio.run(hurried())
    own = set(threading.enumerate()) - others
    assert not [thread for thread in own if thread.name == "lazydelta-prefetch"]


def test_a_killed_process_leaves_no_file_of_the_remove_set(tmp_path: Path) -> None:
    script = (
        "import os, signal, pyarrow as pa\n"
        "from lazydelta.scan.keys import FileKeys\n"
        "from lazydelta.scan.remove_set import RemoveSet\n"
        "removed = RemoveSet(0)\n"
        "removed.remember(FileKeys(pa.array([f'file-{n:05d}' for n in range(9000)])))\n"
        "assert removed.is_on_disk\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_nothing_is_a_storage_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path / "t").commit([f"f{n}" for n in range(9000)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such folder"))
    with pytest.raises(StorageError, match="moved to disk"):
        list(ld.open(str(table.path)).scan(remove_set_memory_limit=0).files())


@pytest.mark.parametrize("url", [None, 5, b"x", "a\0b", "", "file://"])
def test_an_address_of_the_wrong_kind_is_an_invalid_request(url: Any) -> None:
    with pytest.raises(InvalidRequestError):
        ld.open(url)


@pytest.mark.parametrize("options", [5, {5: 5}, ["a"]])
def test_storage_options_of_the_wrong_kind_are_an_invalid_request(tmp_path: Path, options: Any) -> None:
    with pytest.raises(InvalidRequestError, match="storage_options"):
        ld.open(str(tmp_path), storage_options=options)


@pytest.mark.parametrize(
    "request_",
    [{"limit": 10**30}, {"retention_guard": 5}, {"config": {"limit": 3}}],
    ids=lambda r: next(iter(r)),
)
def test_a_scan_of_the_wrong_kind_is_an_invalid_request(tmp_path: Path, request_: dict[str, Any]) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(InvalidRequestError, match=next(iter(request_))):
        ld.open(str(table.path)).scan(**request_)


@pytest.mark.parametrize("columns", [[], "path"])
def test_a_batch_has_at_least_one_column(tmp_path: Path, columns: Any) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(InvalidRequestError, match="columns"):
        ld.open(str(table.path)).scan().file_batches(columns)


def test_an_unknown_time_zone_is_refused_with_and_without_a_filter(tmp_path: Path) -> None:
    table = ld.open(str(TableBuilder(tmp_path).commit(["a"]).path))
    for where in (None, "date = '2026-02-08'"):
        with pytest.raises(InvalidRequestError, match="time zone"):
            table.scan(where, time_zone="Mars/Olympus")
