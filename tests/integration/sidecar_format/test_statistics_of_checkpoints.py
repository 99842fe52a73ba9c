"""Typed rows of real checkpoints: both forms of statistics say the same, and parts keep what they say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.errors import LazyDeltaError
from lazydelta.log import CheckpointReader, RowRequest, find_segment
from lazydelta.protocol.schema import parse_schema
from lazydelta.sidecar import (
    BUILD_COLUMNS,
    PartReader,
    SidecarConfig,
    SidecarLayout,
    configured_stats_paths,
    layout_of,
    store_part,
    typed_rows,
)
from tests.support import actions
from tests.support.table_builder import TableBuilder
from tests.unit.sidecar.samples import sorted_rows, storage_at, written

FOLDER = Path(os.environ.get("LAZYDELTA_GOLDEN") or Path(__file__).resolve().parents[4] / "shared" / "golden")
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) if FOLDER.is_dir() else []


def table_folder(name: str) -> Path:
    nested = FOLDER / name / "delta"
    return nested if nested.is_dir() else FOLDER / name


CHECKPOINTED = [name for name in NAMES if any((table_folder(name) / "_delta_log").glob("*.checkpoint*"))]


def checkpoint_rows(table: Path) -> tuple[SidecarLayout, list[pa.RecordBatch]] | None:
    """The layout and the log's rows of the newest checkpoint, with statistics in every form it has."""
    storage = storage_at(table)
    try:
        segment = find_segment(storage)
    except LazyDeltaError:
        return None
    if segment.checkpoint is None:
        return None
    reader = CheckpointReader(storage, segment.checkpoint)
    _, metadata = reader.state()
    if metadata is None:
        return None
    schema = parse_schema(metadata.schema_string, str(table))
    paths = configured_stats_paths(metadata, schema)
    layout = layout_of(metadata, schema, stats_paths=paths, time_column=None)
    request = RowRequest(columns=(*BUILD_COLUMNS, "stats"), stats_paths=layout.stats_paths)
    return layout, list(reader.rows(request))


def values(rows: pa.RecordBatch) -> str:
    return repr(rows.to_pylist())  # NaN equals itself this way


def both_forms(table: Path) -> int:
    """Compare the forms of every batch; how many rows had both."""
    found = checkpoint_rows(table)
    compared = 0
    for batch in found[1] if found else ():
        layout = found[0] if found else None
        assert layout is not None
        names = batch.schema.names
        if "stats_parsed" not in names or batch.column("stats").null_count:
            continue
        by_json = typed_rows(batch.drop_columns(["stats_parsed"]), layout)
        by_struct = typed_rows(batch.drop_columns(["stats"]), layout)
        assert values(by_json) == values(by_struct)
        assert values(typed_rows(batch, layout)) == values(by_json)
        compared += batch.num_rows
    return compared


@pytest.mark.skipif(not NAMES, reason="the golden tables are missing")
def test_both_forms_of_statistics_in_golden_checkpoints_say_the_same() -> None:
    compared = {name: both_forms(table_folder(name)) for name in NAMES}
    assert sum(compared.values()) > 0, "no golden checkpoint has both forms"


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_a_part_of_a_golden_checkpoint_holds_what_the_checkpoint_holds(name: str, tmp_path: Path) -> None:
    found = checkpoint_rows(table_folder(name))
    assert found is not None, "the list of checkpointed tables is wrong"
    layout, batches = found
    rows = pa.concat_batches([typed_rows(batch, layout) for batch in batches])
    rows = sorted_rows(rows, layout)
    part = written(rows, layout, row_group_rows=3)
    storage = storage_at(tmp_path)
    store_part(storage, SidecarConfig(), part)
    back = pa.concat_batches(list(PartReader(storage, SidecarConfig().folder, part.part).batches()))
    assert values(back) == values(rows)
    assert back.schema.equals(layout.schema, check_metadata=True)


COLUMNS = {
    "text": "string",
    "big": "long",
    "tiny": "byte",
    "ratio": "float",
    "real": "double",
    "day": "date",
    "moment": "timestamp",
    "clock": "timestamp_ntz",
    "money": "decimal(10,2)",
    "date": "date",
}
LOW: dict[str, Any] = {
    "text": "a",
    "big": (1 << 53) + 1,
    "tiny": -128,
    "ratio": 0.1,
    "real": 0.1,
    "day": "2026-02-01",
    "moment": "2026-02-01T10:00:00.123Z",
    "clock": "2026-02-01T10:00:00.123",
    "money": 12345678.91,
}


@pytest.mark.parametrize("kind", ["v1", "v1-multipart", "v2-parquet"])
@pytest.mark.parametrize("mapping", [None, "name"])
def test_both_forms_of_statistics_say_the_same_for_every_type(
    tmp_path: Path, kind: str, mapping: str | None
) -> None:
    nulls = dict.fromkeys(LOW, 1)
    adds = [
        actions.add("full", stats=actions.stats(9, low=LOW, high=LOW, nulls=nulls, tight_bounds=False)),
        actions.add("part", stats=actions.stats(9, low={"big": 1})),
        actions.add("bare", stats={}),
    ]
    table = TableBuilder(tmp_path, schema=COLUMNS, column_mapping=mapping)
    table.commit(adds=adds).checkpoint(kind, stats="both")
    assert both_forms(tmp_path) == len(adds)


def test_both_forms_agree_whichever_the_checkpoint_has(tmp_path: Path) -> None:
    seen = []
    for form in ("json", "parsed", "both"):
        table = TableBuilder(tmp_path / form, schema=COLUMNS)
        table.commit(adds=[actions.add("f", stats=actions.stats(9, low=LOW, high=LOW))])
        table.checkpoint(stats=form)
        found = checkpoint_rows(tmp_path / form)
        assert found is not None
        layout, batches = found
        seen.append(values(typed_rows(pa.concat_batches(batches), layout)))
    assert seen[0] == seen[1] == seen[2]
    assert "9007199254740993" in seen[0]
