"""The four parts of the benchmark of rows, each run in a process of its own.

Contract: within a part rounds alternate the order of readers, so that a machine that slows down slows all of
them. Every answer is compared with what the table was made of; a reader that fails, miscounts or takes too
long is told as such. A peer that failed keeps the seconds it took: its answer would have come later.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.ladder_runs import Place, served
from bench.readers import Reader, last_words, printed_facts, run_once
from bench.rows_tables import FEW_GROUPS, RowsSpec, rows_table, warm_up, with_deletion_vectors
from bench.tables import REPOSITORY, cache_folder
from bench.watched import memory_fence_kb, run_watched

Say = Callable[[str], None]
MEMORY_LIMIT = "300MB"  # of DuckDB itself, in both readers; what surrounds it is measured
WORK_MS = 30.0
LIMIT_READERS = (
    Reader(name="lazydelta", kind="ours", script="rows_lazydelta.py", queries=("limit",)),
    Reader(name="lazydelta SQL", kind="ours", script="rows_lazydelta.py", queries=("limit-sql",)),
    Reader(
        name="kernel-rust",
        kind="kernel",
        script="rows_kernel_rust.py",
        environment="kernel-rust",
        queries=("limit",),
    ),
    Reader(name="delta-rs", kind="peer", script="rows_delta_rs.py", queries=("limit",)),
    Reader(name="duckdb", kind="peer", script="rows_duckdb.py", environment="duckdb", queries=("limit",)),
    Reader(name="polars", kind="peer", script="rows_polars.py", queries=("limit",)),
)
# What is compared, by part: the event the clock is stopped at.
EVENTS = {"limit": "first_s", "groups": "all_s", "scan": "all_s", "prefetch": "waited_s"}


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How large the tables are, and how often each reader runs."""

    log_files: int
    grouped: RowsSpec
    scanned: dict[str, RowsSpec]
    waited: dict[str, RowsSpec]
    rounds: int
    peer_rounds: int  # of readers that load the whole log
    timeout_s: float = 900.0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run: `facts` as the process printed them, or `failure` in words."""

    part: str
    case: str
    reader: str
    round: int
    facts: dict[str, Any] = {}
    failure: str | None = None
    failed_s: float | None = None  # a peer gave up after so many seconds


def run_limit(log: Path, scale: Scale, say: Say) -> Iterator[Run]:
    """`select * limit 100`: every reader, round by round."""
    for number in range(scale.rounds):
        for reader in _turned(LIMIT_READERS, number):
            if reader.kind == "peer" and number >= scale.peer_rounds:
                continue
            (query,) = reader.queries
            facts, failure = run_once(reader, log, query, timeout_s=scale.timeout_s)
            failed_s = facts.get("failed_s")
            failure = failure or facts.get("failed") or _differs(facts, rows_min=100)
            run = Run(
                part="limit",
                case=f"{scale.log_files:,} files",
                reader=reader.name,
                round=number,
                facts={} if failure else facts,
                failure=failure,
                failed_s=failed_s,
            )
            _tell(run, say)
            yield run


def run_groups(scale: Scale, say: Say) -> Iterator[Run]:
    """GROUP BY over plain files beside DuckDB; over deletion vectors and by pyarrow without a peer."""
    table = rows_table(scale.grouped)
    deleted = with_deletion_vectors(table)
    limit = ("--memory-limit", MEMORY_LIMIT)
    for case, key, groups in (("few groups", "site", FEW_GROUPS), ("many groups", "device", table.devices)):
        warm_up(table)
        for number in range(scale.rounds):
            for reader in _turned(("lazydelta", "duckdb"), number):
                child = _child("groups", reader, table.path, "--key", key, *limit)
                yield _measured(
                    child, scale, say, part="groups", case=case, reader=reader, number=number,
                    rows=table.rows, groups=groups,
                )  # fmt: skip
    others = (
        ("few groups, deletion vectors", "lazydelta", "site", FEW_GROUPS),
        ("many groups, deletion vectors", "lazydelta", "device", table.devices),
        ("few groups, pulled into pyarrow", "pyarrow group_by", "site", FEW_GROUPS),
    )
    for case, reader, key, groups in others:
        where = table if reader == "pyarrow group_by" else deleted
        child = _child("groups", reader, where.path, "--key", key, *limit)
        yield _measured(
            child, scale, say, part="groups", case=case, reader=reader, number=0,
            rows=where.rows, groups=groups,
        )  # fmt: skip


def run_scans(scale: Scale, say: Say) -> Iterator[Run]:
    """Every row of files of several sizes, beside pyarrow's two ways to read them."""
    for case, spec in scale.scanned.items():
        table = rows_table(spec)
        warm_up(table)
        for number in range(scale.rounds):
            for reader in _turned(("lazydelta", "ParquetFile", "dataset"), number):
                child = _child("scan", reader, table.path)
                yield _measured(
                    child, scale, say, part="scan", case=case, reader=reader, number=number, rows=table.rows
                )


def run_prefetch(scale: Scale, say: Say, *, latency_ms: float) -> Iterator[Run]:
    """A consumer that works on each segment, with and without read-ahead, behind latency."""
    with served(cache_folder() / "bench", latency_ms) as store:
        for case, spec in scale.waited.items():
            table = rows_table(spec)
            for work in ("sleeps", "computes"):
                for number in range(scale.rounds):
                    for reader, ahead in _turned((("no prefetch", 0), ("prefetch", 2)), number):
                        child = _child("wait", "lazydelta", store.url(table.path), *_store(store))
                        child += ["--prefetch", str(ahead), "--work", work, "--work-ms", str(WORK_MS)]
                        yield _measured(
                            child, scale, say, part="prefetch", case=f"{case}, the consumer {work}",
                            reader=reader, number=number, rows=table.rows,
                        )  # fmt: skip


def _store(place: Place) -> list[str]:
    return ["--storage-options", json.dumps(place.options())]


def _child(task: str, reader: str, table: Path | str, *more: str) -> list[str]:
    return [sys.executable, "-m", "bench.rows_reader", task, reader, str(table), *more]


def _measured(
    command: Sequence[str],
    scale: Scale,
    say: Say,
    *,
    part: str,
    case: str,
    reader: str,
    number: int,
    rows: int,
    groups: int | None = None,
) -> Run:
    there = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")])}
    done = run_watched(list(command), timeout_s=scale.timeout_s, memory_max_kb=memory_fence_kb(), env=there)
    facts = printed_facts(done) if not done.stopped and not done.exit_code else None
    failure = done.stopped or (last_words(done) if facts is None else None)
    failure = failure or _differs(facts or {}, rows=rows, groups=groups)
    run = Run(
        part=part,
        case=case,
        reader=reader,
        round=number,
        facts={} if failure else facts or {},
        failure=failure,
    )
    _tell(run, say)
    return run


def _differs(
    facts: dict[str, Any], *, rows: int | None = None, rows_min: int = 0, groups: int | None = None
) -> str | None:
    """What is wrong with the answer, in words."""
    found = facts.get("rows")
    if found is not None and (found < rows_min or (rows is not None and found != rows)):
        return f"counted {found:,} rows instead of {rows if rows is not None else rows_min:,}"
    if groups is not None and facts.get("groups") != groups:
        return f"found {facts.get('groups')} groups instead of {groups:,}"
    return None


def _turned(readers: Sequence[Any], number: int) -> Sequence[Any]:  # Any: whatever takes turns
    return readers if number % 2 == 0 else readers[::-1]


def _tell(run: Run, say: Say) -> None:
    took = run.failure or f"{run.facts[EVENTS[run.part]]:.3f} s, {run.facts['peak_mb']:,.0f} MB"
    say(f"  round {run.round + 1}  {run.part:<8} {run.case:<32} {run.reader:<16} {took}")
