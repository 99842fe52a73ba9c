"""Tables for the benchmark of Kusto's protocol: a million rows, and the ladder's files with rows of an hour.

Contract: made once and kept in the cache. Of the ladder's table the files of the last hour and of the newest
commit have data; queries of the benchmark read no others.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from bench.data import write_numbered
from bench.files import Files
from bench.growing import hour_text
from bench.history import live_keys, plan
from bench.ladder_tables import ladder_spec, ladder_table, since_ms
from bench.tables import cache_folder

ROWS, _FILES = 1_000_000, 8
_HOUR_MS = 3_600_000


class SeedsTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table of the seeds' queries."""

    path: Path
    since: str  # the last hour
    until: str
    device: str  # that the newest file has


def row_table(times: int = 1) -> tuple[Path, list[Path]]:
    """So many million rows of six columns, as a Delta table and as bare Parquet files."""
    path = cache_folder() / "bench" / f"kusto-rows-{times * ROWS}"
    made = path / "_delta_log" / f"{times * _FILES - 1:020}.json"
    each = ROWS // _FILES
    for number in range(0 if made.exists() else times * _FILES):
        dice, first = np.random.default_rng(number), number * each
        moments = 1_770_000_000_000_000 + (first + np.arange(each)) * 1_000_003
        rows = {
            "id": np.arange(first, first + each),
            "moment": pa.array(moments, pa.timestamp("us", "UTC")),
            "device": pa.array([f"device-{code:03}" for code in dice.integers(0, 500, each)]),
            "value": dice.random(each),
            "code": pa.array(dice.integers(0, 1000, each), pa.int32()),
            "is_on": pa.array(dice.random(each) < 0.5),
        }
        write_deltalake(str(path), pa.table(rows), mode="append")
    files = sorted(path.glob("*.parquet"))
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == times * ROWS
    return path, files


def seeds_table(files: int) -> SeedsTable:
    """So many files with a sidecar; those of the last hour are there."""
    spec = msgspec.structs.replace(ladder_spec(files), checkpoint_dv_every=0, data="newest")
    table = ladder_table(spec).table
    numbers, generations = live_keys(spec, plan(spec))
    started = Files(spec, numbers).event_min_ms // _HOUR_MS * _HOUR_MS
    since = since_ms(1)
    wanted = started >= since
    write_numbered(spec, table.path, numbers[wanted].tolist(), generations[wanted].tolist())
    newest = Files(spec, numbers[wanted][-1:])
    path = table.path / newest.path_text().tobytes().decode()
    device = pq.read_table(path, columns=["device_id"])["device_id"][-1].as_py()
    return SeedsTable(
        path=table.path, since=hour_text(since), until=hour_text(int(started.max())), device=device
    )
