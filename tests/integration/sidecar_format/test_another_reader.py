"""docs/sidecar-format.md is enough to read a sidecar: a reader made from that page finds the same files.

Contract of the reader: it takes nothing from the package under test; json, zlib, gzip and pyarrow do.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta.settings import build_settings
from lazydelta.sidecar import Binding, BoundFile, Manifest, Part, RowGroup, SidecarConfig, ZoneBounds
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sidecar-format.md"
HOURS = [f"20260210{hour:02}" for hour in range(24)]


class OtherReader:
    """The live files of a local table by the sidecar of checkpoint N."""

    def __init__(self, table: Path, checkpoint: int) -> None:
        self._log = table / "_delta_log"
        self._folder = self._log / "_lazy"
        self._checkpoint = checkpoint
        self.parts_opened = 0
        body = (self._folder / f"v{checkpoint:020}.manifest.json").read_bytes()
        text = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        found = re.search(rb',"crc32":(\d+)\}$', text)
        assert found is not None and int(found[1]) == zlib.crc32(text[: found.start()])
        self.manifest: dict[str, Any] = json.loads(text)
        assert self.manifest["format"] == 1
        self._check_binding()

    def _check_binding(self) -> None:
        binding = self.manifest["binding"]
        for bound in (binding["commit"], *binding["checkpoint"]):
            body = (self._log / bound["name"]).read_bytes()
            assert len(body) == bound["size_bytes"]
            assert hashlib.sha256(body[: 64 * 1024]).hexdigest() == bound["head_sha256"]

    def live(self, hour: str) -> set[str]:
        decided: set[str] = set()
        found: set[str] = set()
        commits = sorted(self._log.glob("0*.json"), reverse=True)
        for commit in (path for path in commits if int(path.stem) > self._checkpoint):
            now = set()
            for line in map(json.loads, commit.read_text("utf-8").splitlines()):
                for kind in ("add", "remove"):
                    if kind not in line:
                        continue
                    path = unquote(line[kind]["path"])
                    now.add(path)
                    is_live = kind == "add" and path not in decided
                    if is_live and line["add"]["partitionValues"]["_event_hour"] == hour:
                        found.add(path)
            decided |= now
        return found | (self._rows(hour) - decided)

    def _rows(self, hour: str) -> set[str]:
        found: set[str] = set()
        for part in self.manifest["parts"]:
            if not (part.get("order_min") or "") <= hour <= (part.get("order_max") or ""):
                continue
            self.parts_opened += 1
            body = (self._folder / part["file"]).read_bytes()
            assert len(body) == part["size_bytes"]
            assert zlib.crc32(body[-part["footer_bytes"] :]) == part["footer_crc32"]
            rows = pq.read_table(pa.BufferReader(body)).to_pylist()
            removed = part.get("removed", [])
            spans = zip(removed[::2], removed[1::2], strict=True)
            gone = {number for first, count in spans for number in range(first, first + count)}
            found |= {
                unquote(row["path"])
                for number, row in enumerate(rows)
                if number not in gone and row["_event_hour"] == hour
            }
        return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sidecars, the second made from the first with removed rows, then a tail with removes of its own."""
    place = tmp_path_factory.mktemp("spec") / "t"
    for hour in HOURS[:18]:
        append(place, hour)
    DeltaTable(place).create_checkpoint()
    build(place)
    DeltaTable(place).delete(f"_event_hour in ('{HOURS[3]}', '{HOURS[4]}', '{HOURS[9]}')")
    for hour in (*HOURS[18:22], HOURS[4]):
        append(place, hour)
    DeltaTable(place).create_checkpoint()
    build(place)
    DeltaTable(place).delete(f"_event_hour in ('{HOURS[5]}', '{HOURS[20]}')")
    for hour in (*HOURS[22:], HOURS[5], HOURS[10]):
        append(place, hour)
    return place


def build(place: Path) -> None:
    build_sidecar(open_storage(str(place), build_settings({}, environment={})), config=SidecarConfig())


def append(place: Path, hour: str) -> None:
    rows = pa.table({"_event_hour": [hour] * 2, "device id": ["ä", "b"], "value": [1.5, float("nan")]})
    write_deltalake(place, rows, mode="append", partition_by=["_event_hour"])


def newest_checkpoint(table: Path) -> int:
    return max(int(path.name[1:21]) for path in (table / "_delta_log" / "_lazy").glob("*.manifest.json"))


@pytest.mark.parametrize("hour", HOURS)
def test_a_reader_made_from_the_page_finds_the_same_files(table: Path, hour: str) -> None:
    reader = OtherReader(table, newest_checkpoint(table))
    assert len(reader.manifest["parts"]) > 1
    assert any(part.get("removed") for part in reader.manifest["parts"])
    scan = ld.open(table).scan(f"_event_hour = '{hour}'")
    assert reader.live(hour) == {file.path for file in scan.files()}
    assert "sidecar" in str(scan.explain())


def test_such_a_reader_opens_what_it_needs(table: Path) -> None:
    reader = OtherReader(table, newest_checkpoint(table))
    assert reader.live(HOURS[1])
    assert reader.parts_opened == 1 < len(reader.manifest["parts"])


def test_every_field_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    for struct in (Manifest, Part, ZoneBounds, RowGroup, BoundFile, Binding):
        fields = [field.encode_name for field in msgspec.structs.fields(struct)]
        assert [name for name in fields if not re.search(rf"`{name}(\[\])?`", text)] == [], struct
