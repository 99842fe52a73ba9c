"""The table that a run begins with: every data file is there, one logical file in ten has a deletion vector.

Why by hand: Spark would take minutes for ten thousand files. Data files are links to a few, so that they
cost nothing on a disk; on a store each is an object of its own.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.chaos.objects import Objects
from bench.chaos.replay import Replay, commit_path, json_lines
from bench.chaos.world import HOUR_COLUMN, TableSpec, hour_text
from tests.support.checkpoint_writer import CheckpointPlan, write_checkpoint
from tests.support.deletion_vector_writer import inline_vector, stored_vectors
from tests.support.keys import Action

ROWS = 20  # of a data file
TEMPLATES = 64
VECTOR_COMMITS = 8
DV_PREFIX = "_dv"  # a folder that vacuum of writers without deletion vectors passes by
FEATURES = ["deletionVectors", "v2Checkpoint"]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("value", pa.float64()),
        ("label", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)
_SPARK_TYPES = {"id": "long", "value": "double", "label": "string", "ts": "timestamp", HOUR_COLUMN: "string"}
CONFIGURATION = {
    "delta.enableDeletionVectors": "true",
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 20 seconds",
    "lazydelta.time.column": HOUR_COLUMN,
}


def make_start(folder: Path, *, hours: int, files_per_hour: int, seed: int) -> None:
    """Write the log, a checkpoint and the data files of a table to a folder."""
    dice = random.Random(seed)
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    templates = _templates(folder.parent / "templates", dice)
    adds = list(_adds(folder, templates, hours=hours, files_per_hour=files_per_hour, dice=dice))
    head = [{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}, *_table_state()]
    _write_commit(log, 0, [*head, *({"add": add} for add in adds)])
    for version in range(1, VECTOR_COMMITS + 1):
        share = adds[version :: VECTOR_COMMITS * 10]
        _write_commit(log, version, vector_actions(folder, share, dice))
    replay = Replay(folder)
    newest = replay.newest()
    hint = checkpoint_files(log, replay, CheckpointPlan(version=newest))
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def vector_actions(folder: Path, files: list[Action], dice: random.Random) -> list[dict[str, Any]]:
    """A commit that deletes some rows of files, each by a vector of its own; files of vectors go to `folder`.

    The files must have none yet, or an inline one that may grow.
    """
    rows = [dice.sample(range(ROWS), dice.randint(1, 5)) for _ in files]
    stored = stored_vectors(folder, rows, prefix=DV_PREFIX) if files else []
    lines: list[dict[str, Any]] = [{"commitInfo": {"timestamp": _now_ms(), "operation": "DELETE"}}]
    for file, vector, gone in zip(files, stored, rows, strict=True):
        chosen = vector if dice.random() < 0.5 else inline_vector(gone)
        lines.append({"remove": removed(file)})
        lines.append({"add": {**file, "deletionVector": chosen, "stats": _loose(file["stats"])}})
    return lines


def removed(file: Action) -> Action:
    """The tombstone of a file."""
    kept = {name: file[name] for name in ("path", "partitionValues", "size") if name in file}
    if file.get("deletionVector"):
        kept["deletionVector"] = file["deletionVector"]
    return {**kept, "deletionTimestamp": _now_ms(), "dataChange": True, "extendedFileMetadata": True}


def checkpoint_files(log: Path, replay: Replay, plan: CheckpointPlan) -> dict[str, Any]:
    """Write a checkpoint of the newest state to a log folder; what the hint should say."""
    state = [(kind, replay.table_state[kind]) for kind in ("protocol", "metaData")]
    files = [("add", _plain(add)) for _, add in replay.live.items()]
    return write_checkpoint(log, plan, table_state=state, files=files)


def put_start(spec: TableSpec, *, threads: int = 16) -> None:
    """The start as the table itself, and as the beginning of what is kept."""
    names = [str(path.relative_to(spec.start)) for path in spec.start.rglob("*") if path.is_file()]
    _link_all(spec.start, spec.kept, [name for name in names if "checkpoint" not in name])
    if spec.store == "local":
        _link_all(spec.start, Path(spec.url), names)
        return
    objects = Objects(spec)

    def put(name: str) -> None:
        objects.put(name, (spec.start / name).read_bytes())

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(put, sorted(names, key=lambda name: name.startswith("_delta_log"))))


def new_rows(count: int, dice: random.Random, hour: str) -> pa.Table:
    """Rows that a writer adds."""
    first = dice.randrange(10**9)
    moment = dt.datetime(2026, int(hour[4:6]), int(hour[6:8]), int(hour[8:10]), tzinfo=dt.UTC)
    columns = {
        "id": pa.array(range(first, first + count), pa.int64()),
        "value": pa.array([dice.randrange(4000) / 4 for _ in range(count)], pa.float64()),
        "label": pa.array([dice.choice(["a", "b", "ü", "", None]) for _ in range(count)], pa.string()),
        "ts": pa.array([moment + dt.timedelta(seconds=row) for row in range(count)], SCHEMA.field("ts").type),
    }
    return pa.table(columns, schema=SCHEMA)


def _templates(folder: Path, dice: random.Random) -> list[tuple[Path, str]]:
    """Data files, and the statistics of each."""
    folder.mkdir(exist_ok=True)
    made = []
    for number in range(TEMPLATES):
        table = new_rows(ROWS, dice, hour_text(number))
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        ids, values = table["id"].to_pylist(), table["value"].to_pylist()
        stats = {
            "numRecords": ROWS,
            "minValues": {"id": min(ids), "value": min(values)},
            "maxValues": {"id": max(ids), "value": max(values)},
            "nullCount": {"id": 0, "value": 0, "label": table["label"].null_count, "ts": 0},
        }
        made.append((path, json.dumps(stats)))
    return made


def _adds(
    folder: Path, templates: list[tuple[Path, str]], *, hours: int, files_per_hour: int, dice: random.Random
) -> Iterator[Action]:
    for hour in map(hour_text, range(hours)):
        below = folder / f"{HOUR_COLUMN}={hour}"
        below.mkdir()
        for number in range(files_per_hour):
            source, stats = dice.choice(templates)
            name = f"part-{number:05}-start.parquet"
            os.link(source, below / name)
            yield {
                "path": f"{HOUR_COLUMN}={hour}/{name}",
                "partitionValues": {HOUR_COLUMN: hour},
                "size": source.stat().st_size,
                "modificationTime": _now_ms(),
                "dataChange": True,
                "stats": stats,
            }


def _table_state() -> list[dict[str, Any]]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _SPARK_TYPES.items()
    ]
    metadata = {
        "id": "c4a05000-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [HOUR_COLUMN],
        "configuration": CONFIGURATION,
        "createdTime": 0,
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": FEATURES,
        "writerFeatures": FEATURES,
    }
    return [{"protocol": protocol}, {"metaData": metadata}]


def _loose(stats: str) -> str:
    """Statistics of a file some of whose rows are gone: its bounds may be wider than its rows."""
    return json.dumps({**json.loads(stats), "tightBounds": False})


def _plain(add: Action) -> Action:
    """The fields that a checkpoint has, without those that are null."""
    return {name: value for name, value in add.items() if value is not None}


def _write_commit(log: Path, version: int, lines: list[dict[str, Any]]) -> None:
    commit_path(log, version).write_bytes(commit_body(lines))


def commit_body(lines: list[dict[str, Any]]) -> bytes:
    """A commit's text."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert json_lines(body) == lines
    return body


def _link_all(source: Path, target: Path, names: list[str]) -> None:
    for name in names:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("_delta_log"):
            shutil.copyfile(source / name, path)
        else:
            os.link(source / name, path)


def _now_ms() -> int:
    return int(dt.datetime.now(dt.UTC).timestamp() * 1000)
