"""Random histories of a table: a description that hypothesis can shrink, and the log built from it.

Contract: `histories()` draws a `History`; `build(history, folder)` writes it. Histories are legal by
PROTOCOL.md: a file changes its deletion vector by a remove of the old key and an add of the new one in
one commit, a commit names a key once. The rows a file is said to hold travel in its `tags`, so that a
test can judge a predicate without data files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.support import actions
from tests.support.actions import absolute_dv, add, inline_dv, relative_dv, remove
from tests.support.checkpoint_writer import KINDS, STATS_FORMS
from tests.support.keys import Action, FileKey, canonical_path, dv_id
from tests.support.predicates import Predicate, judge, predicates
from tests.support.table_builder import TableBuilder

SCHEMA = actions.TELEMETRY | {"region": "string"}
PARTITION_COLUMNS = ("date", "region")

# Spellings of one file stand together; `{root}` becomes the table's folder.
PATHS: tuple[tuple[str, ...], ...] = (
    ("a.parquet",),
    ("b.parquet", "file://{root}/b.parquet", "{root}/b.parquet"),
    ("date=2026-02-08/region=x/c.parquet",),
    ("with%20space/d.parquet",),
    ("100%2525.parquet",),
    ("region=a%20b%2525%252F%C3%BC/e.parquet", "region=a%20b%2525%252Fü/e.parquet"),
    ("/elsewhere/f.parquet", "file:///elsewhere/f.parquet", "file:/elsewhere/f.parquet"),
    ("/elsewhere/a%23b.parquet", "file:///elsewhere/a%23b.parquet"),
    ("s3://bucket/shallow%20clone/g.parquet",),
    ("h.parquet",),
)
REGIONS: tuple[str | None, ...] = ("north", "", None, "a b", "100%", "ünïcode", "x/y=z", "d'or")
DATES: tuple[str | None, ...] = ("2026-02-07", "2026-02-08", "2026-02-09", None)
VECTORS: tuple[Action, ...] = (
    inline_dv(),
    relative_dv(offset=None),
    relative_dv(offset=0),
    relative_dv(offset=1),
    relative_dv("^-aqEH.-t@S}K{vb[*k^", offset=1, rows=2),
    absolute_dv("file:///elsewhere/vector.bin", offset=1),
)
_FLOATS = st.sampled_from([-2.5, -0.0, 0.0, 1.0, 1.5, 7.25, math.nan])
_COUNTS = st.integers(-3, 5)
_DEVICES = st.sampled_from(["d1", "d2", "d'3", "a", "z", "ü"])


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What one commit does to one file."""

    path: int  # index into PATHS
    spelling: int = 0
    kind: str = "add"  # "add", "remove", "update vector"
    vector: int | None = None  # of the add, or of the file removed
    old_vector: int | None = None  # of the key an update removes
    rows: tuple[tuple[float | None, int | None, str | None], ...] = ()
    partition: tuple[str | None, str | None] = ("2026-02-08", "north")
    stats: str = "full"  # "full", "wide", "none", "count only", "unparseable"
    size: int = 1000


class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One commit."""

    changes: tuple[FileChange, ...] = ()
    extra: str | None = None  # "metadata", "protocol", "unknown", "txn", "cdc"


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Commits, and the files that stand beside them in the log."""

    commits: tuple[CommitPlan, ...]
    checkpoints: tuple[dict[str, Any], ...] = ()
    compactions: tuple[tuple[int, int, bool], ...] = ()  # first, last, holds dead keys
    checksums: tuple[int, ...] = ()
    hint: str = "right"  # "right", "none", "missing version", "garbage", "oldest"
    clean_up: bool = False
    column_mapping: str | None = None


@st.composite
def histories(draw: st.DrawFn, *, commits_max: int = 7, for_delta_rs: bool = False) -> History:
    """Any history; `for_delta_rs` leaves out what delta-rs 1.6 cannot read, or reads otherwise.

    It keys files by their path as spelled, so that `/x` and `file:///x` are two, and it refuses a table
    whose `_last_checkpoint` names a version that does not exist.
    """
    plans = draw(commit_plans(commits_max=commits_max, plain_paths=for_delta_rs))
    last = len(plans) - 1
    hints = ["right", "right", "none", "garbage", "oldest"]
    return History(
        commits=plans,
        checkpoints=tuple(draw(st.lists(checkpoint_axes(last), max_size=3, unique_by=_version))),
        compactions=tuple(draw(st.lists(_ranges(last), max_size=2, unique_by=lambda item: item[:2]))),
        checksums=tuple(sorted(draw(st.sets(st.integers(0, last), max_size=3)))),
        hint=draw(st.sampled_from(hints if for_delta_rs else [*hints, "missing version"])),
        clean_up=draw(st.booleans()),
        column_mapping=draw(st.sampled_from([None, None, "name", "id"])),
    )


@st.composite
def commit_plans(draw: st.DrawFn, *, commits_max: int, plain_paths: bool = False) -> tuple[CommitPlan, ...]:
    """Commits that follow from one another."""
    live: dict[int, int | None] = {}  # file → its vector
    paths = [
        at for at, names in enumerate(PATHS) if not plain_paths or (len(names) == 1 and ":" not in names[0])
    ]
    plans = []
    for _ in range(draw(st.integers(1, commits_max))):
        touched = draw(st.lists(st.sampled_from(paths), max_size=5, unique=True))
        changes = tuple(draw(_change(number, live)) for number in touched)
        for change in changes:
            if change.kind == "remove":
                live.pop(change.path, None)
            else:
                live[change.path] = change.vector
        extra = draw(st.sampled_from([None, None, "metadata", "protocol", "unknown", "txn", "cdc"]))
        plans.append(CommitPlan(changes=changes, extra=extra))
    return tuple(plans)


@st.composite
def checkpoint_axes(draw: st.DrawFn, last: int) -> dict[str, Any]:
    """A checkpoint of any kind at any version up to `last`."""
    return {
        "version": draw(st.integers(0, last)),
        "kind": draw(st.sampled_from(KINDS)),
        "stats": draw(st.sampled_from(STATS_FORMS)),
        "parts": draw(st.integers(1, 3)),
        "sidecars": draw(st.integers(0, 3)),
        "row_group_rows": draw(st.sampled_from([1, 2, 5, 1000])),
        "table_state_at": draw(st.sampled_from(["start", "middle", "end"])),
    }


def table_predicates() -> st.SearchStrategy[Predicate]:
    """Predicates over partition columns and columns with statistics."""
    return predicates(
        {
            "region": st.sampled_from([region for region in REGIONS if region is not None]),
            "date": st.sampled_from([date(2026, 2, 7), date(2026, 2, 8), date(2026, 2, 10)]),
            "value": st.sampled_from([-2.5, 0.0, 1.0, 1.25, 7.25, 100.0]),
            "count": _COUNTS,
            "device_id": st.sampled_from(["d1", "d'3", "a", "b", "zz", "ü"]),
        }
    )


def build(history: History, folder: Path) -> TableBuilder:
    """Write the history to a folder."""
    table = TableBuilder(
        folder,
        schema=SCHEMA,
        partition_columns=PARTITION_COLUMNS,
        column_mapping=history.column_mapping,
    )
    for number, plan in enumerate(history.commits):
        _write_commit(table, plan, number)
    newest = -1
    for axes in history.checkpoints:
        table.checkpoint(hint=axes["version"] > newest, **axes)
        newest = max(newest, axes["version"])
    for first, last, dead_keys in history.compactions:
        table.compact(first, last, dead_keys=dead_keys)
    for version in history.checksums:
        table.crc(version)
    _write_hint(table, history)
    if history.clean_up and newest >= 0:
        table.clean_up(newest)
    return table


def may_hold_a_match(action: Action, predicate: Predicate, column_mapping: str | None) -> bool:
    """Whether some row of the file makes the predicate true, under any reading of its partition values."""
    physical = {name: actions.physical_name(name, column_mapping) for name in PARTITION_COLUMNS}
    values = action["partitionValues"]
    text_date = values[physical["date"]]
    day = date.fromisoformat(text_date) if text_date else None
    region = values[physical["region"]]
    readings = [region] if region != "" else ["", None]
    rows = json.loads(action["tags"]["rows"])
    return any(
        judge(
            predicate, {"date": day, "region": reading, "value": value, "count": count, "device_id": device}
        )
        is True
        for reading in readings
        for value, count, device in rows
    )


def logical_partition(action: Action, column_mapping: str | None) -> dict[str, str | None]:
    """Partition values by the names users know."""
    values = action["partitionValues"]
    return {name: values[actions.physical_name(name, column_mapping)] for name in PARTITION_COLUMNS}


def key_of(change: FileChange, root: Path) -> FileKey:
    """The key an add of this change makes."""
    vector = None if change.vector is None else VECTORS[change.vector]
    return canonical_path(PATHS[change.path][0].replace("{root}", str(root)), root), dv_id(vector)


@st.composite
def _change(draw: st.DrawFn, number: int, live: Mapping[int, int | None]) -> FileChange:
    # A blind remove, of a file that is not there, is legal and happens when two writers race.
    kinds = ["add", "remove", "update vector"] if number in live else ["add", "add", "add", "remove"]
    kind = draw(st.sampled_from(kinds))
    spelling = draw(st.integers(0, len(PATHS[number]) - 1))
    vector = live.get(number)
    if kind == "remove":
        return FileChange(path=number, spelling=spelling, kind=kind, vector=vector)
    old_vector = vector
    if kind == "update vector":
        vector = draw(st.sampled_from([choice for choice in range(len(VECTORS)) if choice != old_vector]))
    elif number not in live:
        vector = draw(st.sampled_from([None, None, None, *range(len(VECTORS))]))
    row = st.tuples(st.none() | _FLOATS, st.none() | _COUNTS, st.none() | _DEVICES)
    return FileChange(
        path=number,
        spelling=spelling,
        kind=kind,
        vector=vector,
        old_vector=old_vector,
        rows=tuple(draw(st.lists(row, min_size=1, max_size=3))),
        partition=(draw(st.sampled_from(DATES)), draw(st.sampled_from(REGIONS))),
        stats=draw(st.sampled_from(["full", "full", "wide", "none", "count only", "unparseable"])),
        size=draw(st.integers(1, 10_000)),
    )


@st.composite
def _ranges(draw: st.DrawFn, last: int) -> tuple[int, int, bool]:
    first = draw(st.integers(0, last))
    return first, draw(st.integers(first, last)), draw(st.booleans())


def _version(axes: Mapping[str, Any]) -> int:
    return int(axes["version"])


def _write_commit(table: TableBuilder, plan: CommitPlan, number: int) -> None:
    adds, removes = [], []
    for change in plan.changes:
        path = PATHS[change.path][change.spelling].replace("{root}", str(table.path))
        vector = None if change.vector is None else VECTORS[change.vector]
        if change.kind == "remove":
            removes.append(remove(path, deletion_vector=vector))
            continue
        if change.kind == "update vector":
            old = None if change.old_vector is None else VECTORS[change.old_vector]
            removes.append(
                remove(PATHS[change.path][0].replace("{root}", str(table.path)), deletion_vector=old)
            )
        adds.append(_add(change, path, vector))
    extra: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    match plan.extra:
        case "metadata":
            state["metadata"] = table.metadata | {"description": f"changed at {number}"}
        case "protocol":
            state["protocol"] = table.protocol
        case "txn":
            extra = [{"txn": {"appId": "app", "version": number, "lastUpdated": 1}}]
        case "cdc":
            extra = [
                {"cdc": {"path": "_change_data/x", "partitionValues": {}, "size": 1, "dataChange": False}}
            ]
        case "unknown":
            extra = [{"somethingNew": {"path": "a.parquet"}}]
    table.commit(adds, removes, extra_actions=extra, **state)


def _add(change: FileChange, path: str, vector: Action | None) -> Action:
    return add(
        path,
        partition=dict(zip(PARTITION_COLUMNS, change.partition, strict=True)),
        stats=_stats(change.rows, change.stats, deleted=0 if vector is None else vector["cardinality"]),
        size=change.size,
        deletion_vector=vector,
        tags={"rows": json.dumps(change.rows)},
    )


def _stats(rows: Sequence[Sequence[Any]], form: str, *, deleted: int) -> dict[str, Any] | str | None:
    # `rows` are what a reader sees; numRecords counts deleted rows too, tight bounds and null counts do not.
    records = len(rows) + deleted
    if form == "none":
        return None
    if form == "unparseable":
        return '{"numRecords":'
    if form == "count only":
        return actions.stats(records)
    names = ("value", "count", "device_id")
    columns = {name: [row[at] for row in rows if row[at] is not None] for at, name in enumerate(names)}
    low = {name: _jsonable(min(values, key=_rank)) for name, values in columns.items() if values}
    high = {name: _jsonable(max(values, key=_rank)) for name, values in columns.items() if values}
    nulls = {name: len(rows) - len(values) for name, values in columns.items()}
    if form == "wide":
        # After rows were deleted the bounds still bound, and a count between 0 and all says nothing.
        low |= {"count": -100} if "count" in low else {}
        return actions.stats(records, low=low, high=high, nulls=nulls, tight_bounds=False)
    return actions.stats(records, low=low, high=high, nulls=nulls)


def _rank(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def _jsonable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _write_hint(table: TableBuilder, history: History) -> None:
    match history.hint:
        case "none":
            table.without_hint()
        case "missing version":
            table.with_hint(version=table.version + 1000)
        case "garbage":
            table.with_hint("{ not a hint")
        case "oldest" if history.checkpoints:
            table.with_hint(version=min(axes["version"] for axes in history.checkpoints))
