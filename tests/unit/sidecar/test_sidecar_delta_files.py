"""Delta files: the actions between checkpoints, in the order of the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol.actions import ActionLine, Metadata, Protocol
from lazydelta.sidecar import (
    BoundFile,
    DamagedSidecarError,
    DeltaFacts,
    DeltaFileReader,
    SidecarConfig,
    SidecarLayout,
    delta_name,
    delta_rows,
    delta_schema,
    store_delta_file,
    write_delta_file,
)
from tests.support import actions
from tests.support.sidecar_damage import footer_length
from tests.unit.sidecar.samples import ROOT, layout_for, storage_at

CONFIG = SidecarConfig()
LAYOUT = layout_for({"p": "date", "v": "long"}, partition_columns=["p"])
FACTS = DeltaFacts(
    checkpoint_version=3,
    after=3,
    until=5,
    table_id="t",
    commit=BoundFile(name=f"{5:020}.json", size_bytes=9, head_sha256="f" * 64),
    commit_sizes=(7, 9),
    other_actions={"commitInfo": 2},
)


def lines(*given: tuple[int, dict[str, Any]]) -> list[tuple[int, ActionLine]]:
    return [(version, msgspec.json.decode(json.dumps(body), type=ActionLine)) for version, body in given]


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": actions.add(path, partition={"p": "2026-02-01"}, **more)}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": actions.remove(path, **more)}


def stored(tmp_path: Path, batches: list[pa.RecordBatch], layout: SidecarLayout = LAYOUT) -> DeltaFileReader:
    storage = storage_at(tmp_path)
    body = write_delta_file(batches, layout=layout, facts=FACTS)
    assert store_delta_file(storage, CONFIG, FACTS, body)
    assert not store_delta_file(storage, CONFIG, FACTS, body)
    return DeltaFileReader(storage, f"{CONFIG.folder}/{delta_name(3, 5)}", len(body))


def test_actions_come_back_in_the_order_of_the_log(tmp_path: Path) -> None:
    given = lines(
        (4, {"commitInfo": {"operation": "WRITE"}}),
        (4, {"protocol": actions.protocol()}),
        (4, {"metaData": actions.metadata()}),
        (4, remove("b", deletion_vector=actions.inline_dv(), partitionValues={"p": "2026-01-01"})),
        (4, add("a%20b", stats='{"numRecords":3,"minValues":{"v":1}}')),
        (5, add("c", deletion_vector=actions.relative_dv(offset=0))),
        (5, remove("d")),
        (5, add("e")),
    )
    reader = stored(tmp_path, [delta_rows(given, LAYOUT, ROOT)])
    (rows,) = reader.batches()
    table = rows.to_pylist()
    assert [(row["version"], row["action"], row["path"]) for row in table] == [
        (4, "protocol", None),
        (4, "metaData", None),
        (4, "remove", "b"),
        (4, "add", "a%20b"),
        (5, "add", "c"),
        (5, "remove", "d"),
        (5, "add", "e"),
    ]
    assert msgspec.json.decode(table[0]["protocol"], type=Protocol) == given[1][1].protocol
    assert msgspec.json.decode(table[1]["metadata"], type=Metadata) == given[2][1].meta_data
    assert (table[2]["dv.storageType"], str(table[2]["p"]), table[2]["size"]) == ("i", "2026-01-01", None)
    assert (table[3]["num_records"], table[3]["min.v"], table[3]["size"]) == (3, 1, 1000)
    assert (table[4]["dv.offset"], table[5]["p"]) == (0, None)
    assert rows.schema.equals(delta_schema(LAYOUT), check_metadata=True)


def test_the_footer_says_what_the_file_covers_and_is_bound_to(tmp_path: Path) -> None:
    reader = stored(tmp_path, [delta_rows(lines((4, add("a"))), LAYOUT, ROOT)])
    assert reader.facts == msgspec.structs.replace(FACTS, num_rows=1, schema_hash=LAYOUT.schema_hash)


def test_a_range_without_file_actions_is_an_empty_file(tmp_path: Path) -> None:
    rows = delta_rows(lines((4, {"txn": {"appId": "x", "version": 1}})), LAYOUT, ROOT)
    assert rows.num_rows == 0
    assert list(stored(tmp_path, [rows]).batches()) == []
    assert stored(tmp_path / "b", []).facts.num_rows == 0


def test_a_tables_columns_may_have_the_names_of_a_delta_files_own(tmp_path: Path) -> None:
    layout = layout_for({"version": "string", "Action": "long"}, partition_columns=["version", "Action"])
    given = lines((4, {"add": actions.add("f", partition={"version": "x", "Action": "7"})}))
    (row,) = next(iter(stored(tmp_path, [delta_rows(given, layout, ROOT)], layout).batches())).to_pylist()
    assert (row["version"], row["action"]) == (4, "add")
    assert (row["partition.version"], row["partition.Action"], row["raw.Action"]) == ("x", 7, "7")


KINDS = st.sampled_from(["add", "remove", "protocol", "metaData", "txn"])


@given(st.lists(st.lists(KINDS, max_size=6), max_size=5))
def test_no_action_is_lost_or_moved(commits: list[list[str]]) -> None:
    bodies: dict[str, Any] = {
        "protocol": {"protocol": actions.protocol()},
        "metaData": {"metaData": actions.metadata()},
        "txn": {"txn": {"appId": "x", "version": 1}},
    }
    flat = [(version, kind) for version, kinds in enumerate(commits) for kind in kinds]
    made = {"add": add, "remove": remove}
    given = lines(
        *(
            (version, made[kind](f"f{at}") if kind in made else bodies[kind])
            for at, (version, kind) in enumerate(flat)
        )
    )
    rows = delta_rows(given, LAYOUT, ROOT).to_pylist()
    expected = [
        (version, kind, f"f{at}" if kind in made else None)
        for at, (version, kind) in enumerate(flat)
        if kind != "txn"
    ]
    assert [(row["version"], row["action"], row["path"]) for row in rows] == expected


def test_a_sealed_file_is_plain_parquet_and_one_request_reads_its_footer(tmp_path: Path) -> None:
    reader = stored(tmp_path, [delta_rows(lines((4, add("a")), (5, add("b"))), LAYOUT, ROOT)])
    path = next((tmp_path / CONFIG.folder).iterdir())
    assert pq.read_table(path).column("path").to_pylist() == ["a", "b"]
    scoped = storage_at(tmp_path).scoped()
    again = DeltaFileReader(scoped, f"{CONFIG.folder}/{path.name}", path.stat().st_size)
    assert again.facts == reader.facts
    assert scoped.counters.snapshot().requests == 1


def test_a_footer_larger_than_the_first_guess_is_checked_too(tmp_path: Path) -> None:
    every = {"delta.dataSkippingNumIndexedCols": "-1"}
    wide = layout_for({f"column_{number:05}": "long" for number in range(300)}, configuration=every)
    body = write_delta_file([delta_rows(lines((4, add("a"))), wide, ROOT)], layout=wide, facts=FACTS)
    assert footer_length(body) > 1 << 16
    assert opened(tmp_path, "wide.parquet", body).facts.num_rows == 1
    torn = bytearray(body)
    torn[len(body) - footer_length(body) + 5] ^= 1
    with pytest.raises(DamagedSidecarError, match="footer"):
        _ = opened(tmp_path, "torn.parquet", bytes(torn)).facts


def test_any_changed_byte_of_the_footer_is_damage(tmp_path: Path) -> None:
    body = write_delta_file([delta_rows(lines((4, add("a"))), LAYOUT, ROOT)], layout=LAYOUT, facts=FACTS)
    start = len(body) - footer_length(body) - 8  # where the seal begins
    for at in (
        *range(start, start + 24),
        *range(start + 24, len(body) - 16, 7),
        *range(len(body) - 16, len(body)),
    ):
        changed = bytearray(body)
        changed[at] ^= 0x10
        with pytest.raises(DamagedSidecarError):
            _ = opened(tmp_path, f"{at}.parquet", bytes(changed)).facts


def test_a_file_without_a_seal_is_damage(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": list(range(100))}), sink)
    for name, body in {"plain": sink.getvalue().to_pybytes(), "short": b"PAR1", "empty": b""}.items():
        with pytest.raises(DamagedSidecarError):
            _ = opened(tmp_path, name, body).facts


def opened(folder: Path, name: str, body: bytes) -> DeltaFileReader:
    storage = storage_at(folder)
    assert storage.put_if_absent(name, body)
    return DeltaFileReader(storage, name, len(body))


def test_a_torn_file_is_damage(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    body = write_delta_file([delta_rows(lines((4, add("a"))), LAYOUT, ROOT)], layout=LAYOUT, facts=FACTS)
    for length in (0, 10, len(body) - 1):
        name = f"torn{length}.parquet"
        storage.put_if_absent(name, body[:length])
        with pytest.raises(DamagedSidecarError):
            list(DeltaFileReader(storage, name, len(body)).batches())
        with pytest.raises(DamagedSidecarError):
            list(DeltaFileReader(storage, name, length).batches())
