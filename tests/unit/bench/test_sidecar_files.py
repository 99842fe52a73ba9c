"""What a query over the last hour reads of a sidecar, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.growing import GrowingSpec, GrowingTable, hour_text
from bench.sidecar_files import bytes_by_name, measure_sidecar, newest_manifest, query_bytes, row_groups_since
from lazydelta.settings import build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

SPEC = GrowingSpec(files=1_000, checkpoints=2, adds_per_commit=10, commits_per_hour=10)


@pytest.fixture
def table(tmp_path: Path) -> GrowingTable:
    growing = GrowingTable(SPEC, tmp_path / "growing")
    growing.start()
    return growing


def built(table: GrowingTable) -> Path:
    """The folder of the sidecar, after a build."""
    config = SidecarConfig(row_group_rows=100)
    build_sidecar(open_storage(str(table.path), build_settings({}, environment={})), config=config)
    return table.path / config.folder


def test_a_sidecar_is_measured_as_it_lies_on_disk(table: GrowingTable) -> None:
    folder = built(table)
    facts = measure_sidecar(folder, table.version, since_hour="0")
    assert (facts.num_files, facts.parts, facts.row_groups, facts.part_rows_max) == (1_000, 1, 10, 1_000)
    assert facts.total_bytes == sum(bytes_by_name(folder).values())


def test_a_query_pays_for_manifest_footers_and_the_columns_of_row_groups_that_can_match(
    table: GrowingTable,
) -> None:
    folder = built(table)
    # An hour holds 100 files, and so does a row group.
    last = hour_text(table.newest_ms - 3_600_000)
    found = newest_manifest(folder)
    assert found is not None
    path, manifest = found
    assert row_groups_since(manifest, last) == 1
    (part,) = folder.glob("*.parquet")
    about = pq.ParquetFile(part).metadata
    columns = [about.row_group(9).column(number) for number in range(about.num_columns)]
    wanted = [c.total_compressed_size for c in columns if c.path_in_schema in ("path", "size", "_event_hour")]
    assert len(wanted) == 3
    assert query_bytes(folder, manifest, since_hour=last) == manifest.parts[0].footer_bytes + sum(wanted)
    facts = measure_sidecar(folder, table.version, since_hour=last)
    assert facts.last_hour_bytes == path.stat().st_size + query_bytes(folder, manifest, since_hour=last)


def test_a_part_that_cannot_match_costs_nothing(table: GrowingTable) -> None:
    found = newest_manifest(built(table))
    assert found is not None
    assert query_bytes(found[0].parent, found[1], since_hour="9999") == 0


def test_an_incremental_build_adds_files_and_the_newest_manifest_is_found(table: GrowingTable) -> None:
    before = bytes_by_name(built(table))
    table.grow()
    folder = built(table)
    found = newest_manifest(folder)
    assert found is not None and found[1].version == table.version
    assert set(before) < set(bytes_by_name(folder))
    assert measure_sidecar(folder, table.version, since_hour="0").num_files == table.live_files == 1_100
