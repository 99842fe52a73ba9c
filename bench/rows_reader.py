"""One task over real rows in a process of its own: `python -m bench.rows_reader TASK READER TABLE …`.

Tasks: `groups` (GROUP BY), `scan` (every row, every column), `wait` (a consumer that works for a while on
each batch, over a store).
Contract: prints one line of JSON, as the other readers do. The imports are before the clock, and the table is
opened after it started, but for `wait`, which is about what comes afterwards. Rows and groups are counted, so
that readers can be compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import lazydelta as ld

# What lazydelta loads at first use is loaded before the clock, as with every other reader.
import lazydelta.engines.sql
import lazydelta.predicate.sql
import lazydelta.storage.remote
import lazydelta.table
from bench.peers.measure import Measurement

with contextlib.suppress(ImportError):
    import opentelemetry.metrics  # noqa: F401 - lazydelta looks for it when it counts

Batches = Iterable[pa.RecordBatch]
_BATCH_ROWS = 8192  # of an answer
_GROUPED = ("value", "reading", "event_time")


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    task = TASKS[options.task, options.reader]
    run = Measurement(options.reader, options.task)
    run.start()
    facts = task(options, run)
    run.finish(files=None, **facts)


def grouped_sql(key: str, origin: str) -> str:
    """The query of the GROUP BY: every column is read."""
    sums = "count(*) as n, avg(value) as mean, max(reading) as top, min(event_time) as first"
    return f"select {key}, {sums} from {origin} group by {key}"


# --- GROUP BY -------------------------------------------------------------------


def _groups_lazydelta(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    table = ld.open(options.table)
    with table.sql(grouped_sql(options.key, "t"), memory_limit=options.memory_limit) as found:
        return _counted_groups(found, run) | {"handed_over": found.handed_over is not None}


def _groups_duckdb(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as spill, duckdb.connect(":memory:") as session:
        session.execute(f"set memory_limit = '{options.memory_limit}'")
        session.execute(f"set temp_directory = '{spill}'")
        names = ", ".join(f"'{name}'" for name in _data_paths(options))
        query = grouped_sql(options.key, f"read_parquet([{names}])")
        return _counted_groups(session.sql(query).to_arrow_reader(_BATCH_ROWS), run)


def _groups_pyarrow(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    """A running group-by: each batch is summed up and merged into the groups so far."""
    key = options.key
    before: pa.Table | None = None
    with ld.open(options.table).scan().batches([key, *_GROUPED]) as batches:
        for batch in batches:
            wanted = [("value", "count"), ("value", "sum"), ("reading", "max"), ("event_time", "min")]
            found = pa.table(batch).group_by(key).aggregate(wanted)
            found = found.rename_columns([key, "n", "total", "top", "first"])
            if before is not None:
                again = [("n", "sum"), ("total", "sum"), ("top", "max"), ("first", "min")]
                found = pa.concat_tables([before, found]).group_by(key).aggregate(again)
                found = found.rename_columns([key, "n", "total", "top", "first"])
            before = found
    assert before is not None
    run.saw(before.num_rows)
    return {"groups": before.num_rows, "rows": sum(before.column("n").to_pylist())}


def _counted_groups(batches: Batches, run: Measurement) -> dict[str, Any]:
    groups = rows = 0
    for batch in batches:
        groups += batch.num_rows
        rows += int(batch.column("n").to_numpy().sum())
        run.saw(groups)
    return {"groups": groups, "rows": rows}


# --- every row ------------------------------------------------------------------


def _scan_lazydelta(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    with ld.open(options.table).scan().batches() as batches:
        return _counted_rows(batches, run)


def _scan_parquet_file(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    return _counted_rows(
        (batch for path in _data_paths(options) for batch in pq.ParquetFile(path).iter_batches()), run
    )


def _scan_dataset(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    return _counted_rows(ds.dataset(_data_paths(options), format="parquet").to_batches(), run)


def _counted_rows(batches: Batches, run: Measurement) -> dict[str, Any]:
    rows = decoded = 0
    for batch in batches:
        rows += batch.num_rows
        decoded += batch.nbytes
        run.saw(rows)
    return {"rows": rows, "decoded_bytes": decoded}


# --- waiting --------------------------------------------------------------------


def _wait_lazydelta(options: argparse.Namespace, run: Measurement) -> dict[str, Any]:
    """Seconds for which the consumer stood still, from its first `next` on."""
    table = ld.open(options.table, storage_options=json.loads(options.storage_options))
    work = {"sleeps": time.sleep, "computes": _compute}[options.work]
    waited, waits, rows = 0.0, [], 0
    with table.scan().batches(prefetch_size=options.prefetch) as batches:
        while True:
            began = time.perf_counter()
            batch = batches.next()
            waits.append(time.perf_counter() - began)
            waited += waits[-1]
            if batch is None:
                break
            rows += batch.num_rows
            run.saw(rows)
            work(options.work_ms / 1000)
    return {"rows": rows, "batches": len(waits) - 1, "waited_s": waited, "first_wait_s": waits[0]}


def _compute(seconds: float) -> None:
    """Python that keeps the interpreter busy."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _data_paths(options: argparse.Namespace) -> list[str]:
    """The data files, told by the caller's description of the table."""
    about = json.loads(Path(f"{options.table}.json").read_bytes())
    return [f"{options.table}/{name}" for name in about["files"]]


TASKS: dict[tuple[str, str], Callable[[argparse.Namespace, Measurement], dict[str, Any]]] = {
    ("groups", "lazydelta"): _groups_lazydelta,
    ("groups", "duckdb"): _groups_duckdb,
    ("groups", "pyarrow group_by"): _groups_pyarrow,
    ("scan", "lazydelta"): _scan_lazydelta,
    ("scan", "ParquetFile"): _scan_parquet_file,
    ("scan", "dataset"): _scan_dataset,
    ("wait", "lazydelta"): _wait_lazydelta,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.rows_reader")
    parser.add_argument("task", choices=sorted({task for task, _ in TASKS}))
    parser.add_argument("reader", choices=sorted({reader for _, reader in TASKS}))
    parser.add_argument("table")
    parser.add_argument("--key", default="site", help="the column to group by")
    parser.add_argument("--memory-limit", default="400MB")
    parser.add_argument("--storage-options", default="{}")
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--work", default="sleeps", choices=("sleeps", "computes"))
    parser.add_argument("--work-ms", type=float, default=30.0)
    return parser


if __name__ == "__main__":
    main()
