"""Parts with a column of every type on disk, and what readers ought to find in them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from lazydelta.sidecar import SidecarConfig, SidecarLayout, store_part
from tests.support import actions
from tests.support.actions import Action
from tests.unit.sidecar.samples import EVERY_TYPE, layout_for, rows_of, sorted_rows, storage_at, written

FOLDER = SidecarConfig().folder
ROWS = 3_000
LAYOUT = layout_for(
    {"_event_hour": "string", "day_no": "integer", **EVERY_TYPE}, partition_columns=["_event_hour", "day_no"]
)


def stored_part(table: Path, *, is_tiered: bool = False) -> tuple[list[Path], pa.RecordBatch]:
    """The files of a part of three row groups, and its rows."""
    rows = sorted_rows(rows_of(_adds(), LAYOUT), LAYOUT)
    part = written(rows, LAYOUT, row_group_rows=1_000, is_tiered=is_tiered)
    store_part(storage_at(table), SidecarConfig(), part)
    names = [part.part.file] + ([part.part.stats_file] if part.part.stats_file else [])
    return [table / FOLDER / name for name in names], rows


def sums(rows: pa.RecordBatch | pa.Table) -> dict[str, Any]:
    """A number per column that any engine can compute: values that are not null."""
    return {name: rows.num_rows - rows.column(name).null_count for name in rows.schema.names}


def layout() -> SidecarLayout:
    """The layout of the parts."""
    return LAYOUT


def _adds() -> list[Action]:
    dice = random.Random(7)
    return [_add(at, dice) for at in range(ROWS)]


def _add(at: int, dice: random.Random) -> Action:
    # The middle row group has no statistics at all: every encoding meets a chunk without a value.
    hour = f"{2026020100 + at // 1_000}"
    partition = {"_event_hour": hour, "day_no": str(at % 3) if at % 2 else None}
    path = f"_event_hour={hour}/part-{at:05}-{dice.randbytes(8).hex()}.parquet"
    if at // 1_000 == 1:
        return actions.add(path, partition=partition)
    has_all = at % 5 != 0
    low, high = _bounds(at, dice), _bounds(at + 1, dice)
    nulls = dict.fromkeys((*low, "list", "dict", "blob"), at) if has_all else {}
    return actions.add(
        path,
        partition=partition,
        size=dice.getrandbits(40),
        stats=actions.stats(
            at,
            low=low if has_all else {},
            high=high if has_all else {},
            nulls=_flat(nulls),
            tight_bounds=at % 2 == 0,
        ),
        deletion_vector=actions.relative_dv(offset=at) if at % 7 == 0 else None,
        **(
            {"tags": {"a": "b", "c": None}, "baseRowId": at, "defaultRowCommitVersion": 3}
            if at % 3 == 0
            else {}
        ),
    )


def _flat(nulls: dict[str, int]) -> dict[str, Any]:
    return {name: count for name, count in nulls.items() if name != "place"}


def _bounds(at: int, dice: random.Random) -> dict[str, Any]:
    moment = datetime(2026, 2, 1) + timedelta(milliseconds=at * 7919)  # noqa: DTZ001
    text = moment.isoformat(timespec="milliseconds")
    return {
        "text": f"device-{dice.randrange(1000)}é",
        "big": (1 << 53) + at,
        "whole": -at,
        "small": at,
        "tiny": at % 128,
        "ratio": at / 4,
        "real": "NaN" if at % 11 == 0 else at / 3,
        "flag": at % 2 == 0,
        "day": text[:10],
        "moment": f"{text}Z",
        "clock": text,
        "money": at / 100,
        "fine": at,
        "place": {"city": "Bern", "point": {"x": at / 2, "a.b": at}},
    }
