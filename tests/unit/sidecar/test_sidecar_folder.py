"""The sidecar's folder and its manifests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lazydelta import limits
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar import (
    DamagedSidecarError,
    Manifest,
    Part,
    RowGroup,
    SidecarConfig,
    ZoneBounds,
    assemble,
    commit_manifest,
    encode_manifest,
    list_sidecars,
    manifest_name,
    read_manifest,
    row_groups_by_part,
    store_part,
)
from lazydelta.storage import ObjectNotFoundError
from tests.support import actions
from tests.support.sidecar_damage import with_checksum
from tests.unit.sidecar.samples import BUILD, binding_of, layout_for, rows_of, storage_at, written

FOLDER = SidecarConfig().folder
LAYOUT = layout_for({"p": "string", "v": "long"}, partition_columns=["p"])


def part_of(count: int, number: int, *, group: int = 2, **changes: Any) -> tuple[Part, list[RowGroup]]:
    adds = [actions.add(f"{number}-{at}", partition={"p": str(at)}) for at in range(count)]
    made = written(rows_of(adds, LAYOUT), LAYOUT, row_group_rows=group, number=number)
    return msgspec.structs.replace(made.part, **changes), made.row_groups


def manifest_of(*parts: tuple[Part, list[RowGroup]]) -> Manifest:
    return assemble(
        version=7,
        build=BUILD,
        layout=LAYOUT,
        parts=parts,
        protocol=Protocol(min_reader_version=1, min_writer_version=2),
        metadata=Metadata(id="t", partition_columns=["p"]),
        binding=binding_of(sum(part.num_live for part, _ in parts)),
    )


def stored_text(tmp_path: Path, text: bytes) -> None:
    target = tmp_path / FOLDER / manifest_name(7)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text)


def test_a_manifest_is_read_back_and_committed_once(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    manifest = manifest_of(part_of(5, 0), part_of(3, 1, removed=(1, 2)))
    assert commit_manifest(storage, FOLDER, manifest)
    assert not commit_manifest(storage, FOLDER, manifest_of(part_of(1, 0)))
    assert read_manifest(storage, FOLDER, 7) == manifest
    assert manifest.num_files == 6
    assert manifest.sidecar_file == manifest.parts[0].file
    assert manifest.sidecar_size_bytes == sum(part.size_bytes for part in manifest.parts)
    assert manifest.order_column == "p"


def test_row_groups_are_numbered_over_all_parts() -> None:
    manifest = manifest_of(part_of(5, 0), part_of(3, 1))
    assert [(group.index, group.part) for group in manifest.row_groups] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 1),
    ]
    assert manifest.num_row_groups == 5
    again = row_groups_by_part(manifest)
    assert [[group.num_rows for group in groups] for groups in again] == [[2, 2, 1], [2, 1]]
    merged = manifest_of((manifest.parts[1], again[1]), (manifest.parts[0], again[0]))
    assert [(group.index, group.part) for group in merged.row_groups[:3]] == [(0, 0), (1, 0), (2, 1)]


def test_past_the_limit_only_parts_are_listed() -> None:
    part, groups = part_of(2, 0, group=2)
    many = msgspec.structs.replace(part, num_row_groups=limits.MANIFEST_ROW_GROUPS_MAX + 1)
    manifest = manifest_of((many, groups))
    assert manifest.row_groups == ()
    assert manifest.num_row_groups == limits.MANIFEST_ROW_GROUPS_MAX + 1


def test_where_one_parts_row_groups_are_unknown_none_are_listed() -> None:
    first, groups = part_of(2, 0)
    second, _ = part_of(2, 1)
    manifest = manifest_of((first, groups), (second, []))
    assert manifest.row_groups == ()
    assert manifest.num_row_groups == 2


def test_zone_maps_are_cut_so_that_the_manifest_stays_small() -> None:
    bounds = tuple(ZoneBounds(path=(f"c{n}",), type="long") for n in range(32))
    part, groups = part_of(1, 0, bounds=bounds)
    assert len(manifest_of((part, groups)).parts[0].bounds) == 32
    count = limits.SIDECAR_ZONE_ENTRIES_MAX // 10
    manifest = manifest_of(*[(part, groups)] * count)
    assert [zone.path for zone in manifest.parts[0].bounds] == [(f"c{n}",) for n in range(10)]


def test_the_order_column_is_told_of_any_number_of_parts() -> None:
    part, groups = part_of(2, 0)
    manifest = manifest_of(*[(part, groups)] * (limits.SIDECAR_ZONE_ENTRIES_MAX + 1))
    assert {zone.path for part in manifest.parts for zone in part.bounds} == {LAYOUT.zone_columns[0].path}


def test_a_long_manifest_is_packed(tmp_path: Path) -> None:
    part, _ = part_of(2, 0)
    names = [f"{part.file[:38]}.{number:05d}.parquet" for number in range(2_000)]
    manifest = manifest_of(*((msgspec.structs.replace(part, file=name), []) for name in names))
    body = encode_manifest(manifest)
    assert len(gzip.decompress(body)) > limits.MANIFEST_PLAIN_BYTES_MAX > 4 * len(body)
    assert body == encode_manifest(manifest), "the same manifest is the same bytes"
    stored_text(tmp_path, body)
    assert read_manifest(storage_at(tmp_path), FOLDER, 7) == manifest


@pytest.mark.parametrize("harm", ["cut", "followed", "flipped", "bomb", "empty"])
def test_a_packed_manifest_that_does_not_unpack_is_damaged(tmp_path: Path, harm: str) -> None:
    part, groups = part_of(2, 0)
    body = bytearray(encode_manifest(manifest_of(*[(part, groups)] * 2_000)))
    harmed: dict[str, Callable[[], bytes]] = {
        "cut": lambda: bytes(body[:-9]),
        "followed": lambda: bytes(body) + b"x",
        "flipped": lambda: bytes(body[:500] + bytes([body[500] ^ 255]) + body[501:]),
        "bomb": lambda: gzip.compress(bytes(limits.MANIFEST_BYTES_MAX + 1)),
        "empty": lambda: bytes(body[:10]),
    }
    stored_text(tmp_path, harmed[harm]())
    with pytest.raises(DamagedSidecarError, match="the manifest cannot be read"):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


def test_an_empty_table_has_a_manifest_without_parts(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    commit_manifest(storage, FOLDER, manifest_of())
    manifest = read_manifest(storage, FOLDER, 7)
    assert (manifest.num_files, manifest.parts, manifest.sidecar_file) == (0, (), None)


def test_files_that_do_not_add_up_are_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="5 live rows for 4 files"):
        assemble(
            version=7,
            build=BUILD,
            layout=LAYOUT,
            parts=[part_of(5, 0)],
            protocol=Protocol(min_reader_version=1),
            metadata=Metadata(id="t"),
            binding=binding_of(4),
        )


def test_fields_of_the_future_are_ignored(tmp_path: Path) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(2, 0))))
    raw["later"] = {"a": 1}
    raw["parts"][0]["later"] = [1]
    raw["row_groups"][0]["later"] = None
    stored_text(tmp_path, with_checksum(raw))
    assert read_manifest(storage_at(tmp_path), FOLDER, 7) == manifest_of(part_of(2, 0))


def test_the_seeds_fields_are_there_by_their_names() -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(2, 0))))
    assert {
        "version",
        "sidecar_file",
        "sidecar_size_bytes",
        "num_row_groups",
        "num_files",
        "schema_hash",
    } <= raw.keys()
    assert {
        "index",
        "byte_offset",
        "byte_length",
        "num_rows",
        "event_hour_min",
        "event_hour_max",
    } <= raw["row_groups"][0].keys()


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("format 2", {"format": 2}),
    ("version 8", {"version": 8}),
    ("number of files", {"num_files": 3}),
    ("cannot be read", {"num_files": -2}),
    ("cannot be read", {"version": 10**20}),
    ("not all", {"num_row_groups": 9}),
    ("cannot be read", {"parts": None}),
    ("cannot be read", {"binding": 5}),
]


@pytest.mark.parametrize(("reason", "change"), CHANGES)
def test_a_manifest_that_makes_no_sense_is_damage_with_the_reason(
    tmp_path: Path, reason: str, change: dict[str, Any]
) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(2, 0))))
    stored_text(tmp_path, with_checksum(raw | change))
    with pytest.raises(DamagedSidecarError, match=reason):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("no part's name", {"file": "../../../etc/passwd"}),
        ("no part's name", {"file": manifest_name(7)}),
        ("no part's name", {"stats_file": "x.parquet"}),
        ("no ranges", {"removed": [0, 0]}),
        ("no ranges", {"removed": [0]}),
        ("overlap", {"removed": [0, 2, 1, 1]}),
        ("overlap", {"removed": [4, 2]}),
        ("overlap", {"removed": [-1, 1]}),
    ],
)
def test_a_part_that_makes_no_sense_is_damage_with_the_reason(
    tmp_path: Path, reason: str, change: dict[str, Any]
) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(5, 0))))
    raw["parts"][0] |= change
    raw["num_files"] = 5 - sum(change.get("removed", [])[1::2])
    stored_text(tmp_path, with_checksum(raw))
    with pytest.raises(DamagedSidecarError, match=reason):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


ABSURD: list[tuple[str, dict[str, Any]]] = [
    *(("cannot be read", {"size_bytes": size}) for size in (-1, 10**20, "5", 1.5, None, True)),
    *(("cannot be read", {"num_rows": rows}) for rows in (-5, 2**63, [5])),
    ("cannot be read", {"footer_bytes": -8}),
    ("cannot be read", {"bounds": [{"path": ["v"], "type": "long", "rows_without_min": -1}]}),
    ("longer than the file", {"footer_bytes": 10**9}),
    ("longer than the file", {"stats_footer_bytes": 1}),
    ("is empty", {"size_bytes": 0, "footer_bytes": 0}),
    ("more row groups than rows", {"num_row_groups": 6}),
    ("lack a bound", {"order_nulls": 6}),
    ("lack a bound", {"bounds": [{"path": ["v"], "type": "long", "rows_without_max": 6}]}),
    ("number of files", {"num_rows": 10**18}),
    ("leaves its part", {"size_bytes": 900, "footer_bytes": 800}),
    ("overlap or leave", {"removed": [10**20, 1]}),
]


@pytest.mark.parametrize(("reason", "change"), ABSURD)
def test_absurd_numbers_of_a_part_are_damage(tmp_path: Path, reason: str, change: dict[str, Any]) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(5, 0))))
    raw["parts"][0] |= change
    if "removed" in change:
        raw["num_files"] = 4
    stored_text(tmp_path, with_checksum(raw))
    with pytest.raises(DamagedSidecarError, match=reason):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("cannot be read", {"byte_offset": -1}),
        ("cannot be read", {"byte_length": 10**20}),
        ("cannot be read", {"num_rows": "2"}),
        ("cannot be read", {"part": -1}),
        ("no part", {"part": 1}),
        ("leaves its part", {"byte_length": 10**9}),
    ],
)
def test_absurd_numbers_of_a_row_group_are_damage(
    tmp_path: Path, reason: str, change: dict[str, Any]
) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(5, 0))))
    raw["row_groups"][0] |= change
    stored_text(tmp_path, with_checksum(raw))
    with pytest.raises(DamagedSidecarError, match=reason):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


def test_row_groups_that_do_not_follow_their_parts_are_damage(tmp_path: Path) -> None:
    """Which row group of a part an entry is of is told by its place alone."""
    raw = json.loads(encode_manifest(manifest_of(part_of(5, 0), part_of(5, 1))))
    first, second, *others = raw["row_groups"]
    for odd in ([second, first, *others], [*others, first, second]):
        stored_text(tmp_path, with_checksum(raw | {"row_groups": odd}))
        with pytest.raises(DamagedSidecarError, match="not in the order of its parts"):
            read_manifest(storage_at(tmp_path), FOLDER, 7)


def test_a_part_named_twice_is_damage(tmp_path: Path) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(5, 0))))
    raw |= {"parts": raw["parts"] * 2, "num_files": 10, "row_groups": [], "num_row_groups": 6}
    stored_text(tmp_path, with_checksum(raw))
    with pytest.raises(DamagedSidecarError, match="names a part twice"):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


def test_a_manifest_nested_without_end_is_damage(tmp_path: Path) -> None:
    stored_text(tmp_path, b'{"later":' + b"[" * 200_000)
    with pytest.raises(DamagedSidecarError, match="cannot be read"):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"format":"1"}'])
def test_a_torn_manifest_is_damage(tmp_path: Path, text: bytes) -> None:
    stored_text(tmp_path, text)
    with pytest.raises(DamagedSidecarError, match="cannot be read"):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


def test_no_manifest_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFoundError):
        read_manifest(storage_at(tmp_path), FOLDER, 7)


def test_the_listing_tells_what_is_ours_what_was_left_behind_and_what_is_strange(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    rows = rows_of([actions.add("f", partition={"p": "x"})], LAYOUT)
    split = written(rows, LAYOUT, is_tiered=True)
    store_part(storage, SidecarConfig(), split)
    commit_manifest(storage, FOLDER, manifest_of((split.part, split.row_groups)))
    folder = tmp_path / FOLDER
    for name in ("a.txt", f".v{7:020}-{BUILD}.00000.parquet.abc.tmp", f"v{7:020}_{9:020}.delta.parquet"):
        (folder / name).write_text("x")
    listing = list_sidecars(storage, FOLDER)
    assert [*listing.manifests] == [7]
    assert {*listing.parts} == {split.part.file, split.part.stats_file}
    assert [file.parsed.until for file in listing.deltas] == [9]
    assert [info.name.rpartition("/")[2] for info in listing.strangers] == ["a.txt"]
    assert len(listing.temporary) == 1


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    listing = list_sidecars(storage_at(tmp_path), FOLDER)
    assert not listing.manifests
    assert not listing.parts


@pytest.mark.parametrize("change", [{}, {"crc32": None}, {"crc32": 1}, {"crc32": "1"}])
def test_a_manifest_that_does_not_end_with_its_checksum_is_damage(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    raw = json.loads(encode_manifest(manifest_of(part_of(5, 0))))
    del raw["crc32"]
    stored_text(tmp_path, json.dumps(raw | change, separators=(",", ":")).encode())
    with pytest.raises(DamagedSidecarError, match=r"cannot be read: .*checksum"):
        read_manifest(storage_at(tmp_path), FOLDER, 7)
