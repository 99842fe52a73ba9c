"""Reads in Spark beside Delta's own source: `python -m bench.spark_read`.

Plans of the last hour of a million files, with Delta's snapshot cold and warm in its cache, plans of every
file of it and of a tenth as many, then whole reads of the same rows with and without deletion vectors.
Contract: one Spark application for all; the answers are counted. The exit code tells whether the promises
hold: a plan is ten times faster, cold and warm; one of ten times the files takes hardly more memory; a read
takes at most twice as long. A run of the usual size writes `docs/spark-figures.md`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from bench.bars import save_bars
from bench.ladder_tables import HOUR, LadderTable, ladder_spec, ladder_table
from bench.pages import DOCS, RESULTS, promises_kept, table_lines, verdicts
from bench.promises import Check
from bench.rows_tables import RowsSpec, RowsTable, rows_table, warm_up, with_deletion_vectors
from bench.spark_read_runs import (
    DELTA,
    OURS,
    Taken,
    delta_files,
    first_plan,
    plan_everything,
    plan_runs,
    read_runs,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN, DELETED = "plain rows", "rows with deletion vectors"
ALL_FILES, FEWER_FILES = "plan of every file", "plan of every file of a tenth as many"
FILES, READ_FILES, FILE_MB = 1_000_000, 8, 48
PLAN_TIMES_MIN, READ_TIMES_MAX, DRIVER_MB_MAX = 10.0, 2.0, 128.0
NAME = "spark-figures"
_COLUMNS = (
    "what",
    "reader",
    "caches",
    "seconds",
    "range",
    "CPU seconds",
    "partitions",
    "JVM, MB",
    "driver's Python, MB",
    "largest worker, MB",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    from lazydelta.spark.config import SparkConfig
    from lazydelta.spark.session import get_session

    table, fewer = (ladder_table(ladder_spec(files)) for files in (options.files, options.files // 10))
    rows = rows_table(RowsSpec(files=READ_FILES, file_bytes=options.file_mb << 20, devices=10_000))
    spark = get_session(SparkConfig(spark={"spark.master": "local[2]", "spark.driver.memory": "4g"}))
    runs = _plans(spark, table, fewer, options.plan_rounds)
    for name, one in ((PLAIN, rows), (DELETED, with_deletion_vectors(rows))):
        warm_up(one)
        runs += _told(read_runs(spark, name, one.path, one.rows, options.rounds))
    spark.stop()
    checks = judge(runs)
    print(f"\n{table_of(runs)}\n\n{verdicts(checks)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    saved = {"files": options.files, "runs": runs, "checks": checks}
    (RESULTS / f"{NAME}.json").write_bytes(msgspec.json.format(msgspec.json.encode(saved)))
    groups = {f"{task}, seconds": _bars(runs, task) for task in dict.fromkeys(run.task for run in runs)}
    picture = save_bars(NAME, groups)
    print(f"Saved: {picture} and what lies beside it.")
    if (options.files, options.file_mb) == (FILES, FILE_MB):
        shutil.copyfile(picture, DOCS / picture.name)
        (DOCS / f"{NAME}.md").write_text(page(runs, checks, files=options.files, rows=rows))
    return int(not all(check.passed for check in checks))


def _plans(spark: SparkSession, table: LadderTable, fewer: LadderTable, rounds: int) -> list[Taken]:
    where = HOUR.where()
    assert where is not None
    runs = _told([first_plan(spark, table.path, where)])
    # Before Delta's, which leave a JVM so large that nothing makes it grow.
    runs += _told([plan_everything(spark, fewer.path, FEWER_FILES)])
    runs += _told([plan_everything(spark, table.path, ALL_FILES)])
    runs += _told(plan_runs(spark, table.path, where, rounds))
    found = delta_files(spark, table.path, where)
    assert found == table.answers[HOUR.name], f"Delta plans {found} files of {table.answers[HOUR.name]}"
    return runs


def judge(runs: Sequence[Taken]) -> list[Check]:
    """The promises."""
    checks = []
    for state in ("cold", "warm"):
        times = seconds(runs, "plan", DELTA, state) / seconds(runs, "plan", OURS, state)
        checks.append(
            Check(
                promise=f"a plan of the last hour, {state}: {PLAN_TIMES_MIN:g} times faster than Delta's",
                passed=times >= PLAN_TIMES_MIN,
                measured=f"{times:,.1f} times",
            )
        )
    growth = _driver_mb(runs, ALL_FILES) - _driver_mb(runs, FEWER_FILES)
    checks.append(
        Check(
            promise="a plan of every file, of ten times as many: the driver's processes, JVM and Python, "
            f"grow by at most {DRIVER_MB_MAX:g} MB more",
            passed=growth <= DRIVER_MB_MAX,
            measured=f"{growth:,.0f} MB",
        )
    )
    for task in (PLAIN, DELETED):
        times = seconds(runs, task, OURS, "warm") / seconds(runs, task, DELTA, "warm")
        checks.append(
            Check(
                promise=f"{task}: at most {READ_TIMES_MAX:g} times as long as Delta's own reader",
                passed=times <= READ_TIMES_MAX,
                measured=f"{times:,.2f} times",
            )
        )
    return checks


def _driver_mb(runs: Sequence[Taken], task: str) -> float:
    """What planning takes on the driver: in the JVM, in its Python, and in the Python that Spark starts."""
    return max(run.jvm_mb + run.driver_mb + run.worker_mb for run in runs if run.task == task)


def page(runs: Sequence[Taken], checks: Sequence[Check], *, files: int, rows: RowsTable) -> str:
    """The figures for the documentation."""
    read = f"{len(rows.files)} files with {rows.rows / 1e6:,.1f} million rows"
    lines = [
        "# Reads in Spark: the figures",
        "",
        "Written by `make bench-spark-read` (`bench/spark_read.py`); do not edit. Plans are of a table of",
        f"{files:,} files, reads of {read}. Seconds are medians and belong to the",
        "machine; CPU seconds are those of all processes. Memory is resident, at its peak: of the",
        "JVM and of the driver's Python what came on top, of the largest worker all that it holds.",
        "",
        f"![Seconds]({NAME}.png)",
        "",
        table_of(runs),
        "",
        *promises_kept(checks),
    ]
    return "\n".join(lines) + "\n"


def seconds(runs: Sequence[Taken], task: str, reader: str, state: str) -> float:
    """The median of the rounds."""
    return median(run.seconds for run in runs if (run.task, run.reader, run.state) == (task, reader, state))


def table_of(runs: Sequence[Taken]) -> str:
    """The figures as a table."""
    rows = []
    for task, reader, state in dict.fromkeys((run.task, run.reader, run.state) for run in runs):
        chosen = [run for run in runs if (run.task, run.reader, run.state) == (task, reader, state)]
        taken = [run.seconds for run in chosen]
        rows.append(
            (
                task,
                reader,
                state,
                f"{median(taken):.3f}",
                f"{min(taken):.3f} to {max(taken):.3f}",
                f"{median(run.cpu_seconds for run in chosen):.2f}",
                f"{chosen[-1].partitions:,}",
                f"{max(run.jvm_mb for run in chosen):,.0f}",
                f"{max(run.driver_mb for run in chosen):,.0f}",
                f"{max(run.worker_mb for run in chosen):,.0f}",
            )
        )
    return "\n".join(table_lines(_COLUMNS, rows))


def _told(runs: Iterable[Taken]) -> list[Taken]:
    found = []
    for run in runs:
        print(f"{run.task}, {run.reader}, {run.state}: {run.seconds:.3f} s", file=sys.stderr)
        found.append(run)
    return found


def _bars(runs: Sequence[Taken], task: str) -> dict[str, float]:
    kinds = dict.fromkeys((run.reader, run.state) for run in runs if run.task == task)
    return {f"{reader}, {state}": seconds(runs, task, reader, state) for reader, state in kinds}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=FILES, help="of the table that is planned")
    parser.add_argument(
        "--file-mb", type=int, default=FILE_MB, help=f"of each of the {READ_FILES} files that are read"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of reads")
    parser.add_argument("--plan-rounds", type=int, default=2, help="of plans; Delta's take minutes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
