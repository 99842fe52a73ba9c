"""What footers tell without a manifest, beside what the manifest would have told: never more than it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.log import open_snapshot
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar import (
    Manifest,
    SidecarAwareProvider,
    SidecarConfig,
    SidecarReading,
    TakenOnce,
    list_sidecars,
    manifest_name,
    read_manifest,
)
from lazydelta.storage import Storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, stats
from tests.support.growing_table import GrowingTable
from tests.support.hypothesis_profile import examples
from tests.support.sidecar_damage import storage_of
from tests.support.table_builder import TableBuilder

SMALL = SidecarConfig(row_group_rows=3, row_groups_max=2)
NAN = float("nan")
PARTITIONS: dict[str, list[str | None]] = {
    "string": ["b", "", None, "a", "a", "é", "z" * 300, None, "c"],
    "long": ["5", "-7", None, "12", "no number", "3", "", "4", "5"],
    "double": ["1.5", "NaN", "-0.0", None, "Infinity", "-Infinity", "2.5", "0.0", "7"],
    "date": [
        "2026-02-01",
        None,
        "2025-12-31",
        "0001-01-01",
        "9999-12-31",
        "2026-02-01",
        "x",
        "",
        "2026-03-01",
    ],
    "timestamp": ["2026-02-01 10:00:00", None, "2026-02-01T10:00:00.123456Z", "2026-02-03 00:00:00"] * 2,
    "timestamp_ntz": ["2026-02-01 10:00:00", None, "2026-02-02 11:00:00.5"] * 3,
    "boolean": ["true", "false", None, "true", "false", "", "true"],
    "decimal(10,2)": ["1.50", "-7.25", None, "99999999.99", "0.00", "3.10", "4.00"],
    "integer": ["1", "2", "3", "4", "5", "6", "7"],
}


def both(storage: Storage, version: int) -> tuple[Manifest, Manifest]:
    """The manifest that was written, and the one that the footers give."""
    folder = SidecarConfig().folder
    written = read_manifest(storage, folder, version)
    storage.delete(f"{folder}/{manifest_name(version)}")
    provider = SidecarAwareProvider(storage, SidecarReading(), TakenOnce())
    snapshot = open_snapshot(storage, parallelism=1, companion=provider)
    provider.opened(snapshot.state.metadata)
    made = provider.discover().source
    assert made is not None
    assert made.tier == "footers"
    return written, made.manifest


def assert_never_more(written: Manifest, made: Manifest) -> None:
    for name in ("version", "num_files", "num_row_groups", "table_id", "build", "order_column", "binding"):
        assert getattr(made, name) == getattr(written, name)
    ours = {part.file: part for part in made.parts}
    for told in written.parts:
        part = ours[told.file]
        for name in ("size_bytes", "footer_bytes", "num_rows", "num_row_groups", "stats_file", "build"):
            assert getattr(part, name) == getattr(told, name)
        assert part.order_nulls >= told.order_nulls
        assert_within(part.order_min, told.order_min, made.order_type)
        assert_within(part.order_max, told.order_max, made.order_type)
        for zone in part.bounds:
            known = next(other for other in told.bounds if other.path == zone.path)
            assert zone.rows_without_min >= known.rows_without_min
            assert zone.rows_without_max >= known.rows_without_max
            assert zone.is_partition <= known.is_partition
    by_place = {(written.parts[g.part].file, g.byte_offset): g for g in written.row_groups}
    for group in made.row_groups:
        told_group = by_place[made.parts[group.part].file, group.byte_offset]
        assert (group.byte_length, group.num_rows) == (told_group.byte_length, told_group.num_rows)
        assert group.event_hour_nulls >= told_group.event_hour_nulls
        if group.event_hour_nulls == 0:
            assert_within(group.event_hour_min, told_group.event_hour_min, made.order_type)
            assert_within(group.event_hour_max, told_group.event_hour_max, made.order_type)


def assert_within(found: str | None, known: str | None, type_name: str | None) -> None:
    """The same value, or none told."""
    if found is not None:
        values = values_from_text(pa.array([found, known], pa.string()), type_name or "string")
        assert values[0] == values[1], (found, known)


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partition_columns_of_every_type(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path, schema={"v": "long", "p": kind}, partition_columns=("p",))
    table.commit([add(f"f{n}", partition={"p": text}) for n, text in enumerate(PARTITIONS[kind])])
    table.checkpoint()
    build_sidecar(storage_of(table), config=SMALL)
    written, made = both(storage_of(table), 0)
    assert_never_more(written, made)
    assert any(part.order_max is not None for part in made.parts), "the footers tell something"


VALUES: dict[str, list[Any]] = {
    "string": ["b", "a", None, "é", "x" * 40, "c", "d"],
    "long": [5, -7, None, 12, 3, 4, 5],
    "double": [1.5, NAN, -0.0, None, 2.5, 0.0, 7.0],
    "date": ["2026-02-01", None, "2025-12-31", "2026-02-05", "2026-02-04"],
    "timestamp": ["2026-02-01T10:00:00.000Z", None, "2026-02-03T00:00:00.123Z", "2026-02-04T00:00:00.000Z"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_columns_that_are_sorted_by_their_minimum(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path, schema={"v": kind, "w": "long"}, partition_columns=())
    values = VALUES[kind]
    files = [
        add(
            f"f{n}",
            partition={},
            stats=stats(low={} if v is None else {"v": v}, high={} if v is None or n == 3 else {"v": v}),
        )
        for n, v in enumerate(values)
    ]
    table.commit(files).checkpoint()
    config = SidecarConfig(row_group_rows=2, row_groups_max=2, time_column="v")
    build_sidecar(storage_of(table), config=config)
    written, made = both(storage_of(table), 0)
    assert made.order_column == "min.v"
    assert_never_more(written, made)


@settings(max_examples=examples(12))
@given(st.randoms(use_true_random=False))
def test_any_whole_build(dice: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        growing = GrowingTable(Path(folder), dice)
        growing.grow(dice.randint(0, 8))
        growing.checkpoint()
        storage = storage_of(growing.path)
        build_sidecar(storage, config=SMALL)
        if list_sidecars(storage, SidecarConfig().folder).parts:
            assert_never_more(*both(storage, growing.version))
