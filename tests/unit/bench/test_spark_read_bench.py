"""The benchmark of reads in Spark: how its promises are judged, and what its table tells."""

from __future__ import annotations

import msgspec

from bench.rows_tables import RowsTable
from bench.spark_read import ALL_FILES, DELETED, FEWER_FILES, PLAIN, judge, page, table_of
from bench.spark_read_runs import DELTA, OURS, Taken


def taken(task: str, reader: str, state: str, seconds: float, worker_mb: float = 100) -> Taken:
    return Taken(
        task=task,
        reader=reader,
        state=state,
        seconds=seconds,
        cpu_seconds=2 * seconds,
        partitions=4,
        jvm_mb=1,
        driver_mb=2,
        worker_mb=worker_mb,
    )


RUNS = [
    *(taken("plan", OURS, state, 0.5) for state in ("first", "cold", "warm")),
    *(taken("plan", OURS, "cold", seconds) for seconds in (0.4, 9.0)),
    taken("plan", DELTA, "cold", 6.0),
    taken("plan", DELTA, "warm", 4.0),
    taken(FEWER_FILES, OURS, "cold", 1.0, 80),
    taken(ALL_FILES, OURS, "cold", 3.0, 120),
    *(taken(PLAIN, reader, "warm", seconds) for reader, seconds in ((OURS, 1.9), (DELTA, 1.0))),
    *(taken(DELETED, reader, "warm", seconds) for reader, seconds in ((OURS, 2.1), (DELTA, 1.0))),
]


def test_each_promise_is_judged_by_medians() -> None:
    assert [(check.passed, check.measured) for check in judge(RUNS)] == [
        (True, "12.0 times"),
        (False, "8.0 times"),
        (True, "40 MB"),
        (True, "1.90 times"),
        (False, "2.10 times"),
    ]
    large = [msgspec.structs.replace(run, jvm_mb=300.0 * (run.task == ALL_FILES)) for run in RUNS]
    assert not judge(large)[2].passed


def test_the_table_has_a_line_for_each_reader_and_state() -> None:
    lines = table_of(RUNS).splitlines()
    assert len(lines) == 2 + 11
    assert "| plan | lazydelta | cold | 0.500 | 0.400 to 9.000 | 1.00 | 4 | 1 | 2 | 100 |" in lines
    rows = RowsTable(location="", rows=2_350_000, devices=1, data_bytes=1, files=["a", "b", "c"])
    told = page(RUNS, judge(RUNS), files=7, rows=rows)
    assert "reads of 3 files with 2.4 million rows" in told
    assert lines[0] in told
    assert "- FAILS: rows with deletion vectors" in told
