"""What a read in Spark takes: plans and whole reads, by lazydelta and by Delta's own source.

Contract: all in one application. The clock of a plan goes from the reader's call to the number of partitions;
nothing is read of data files. Delta's plan is cold after its cache was cleared, and warm when made again;
lazydelta's is cold without its cache, and warm with it; the first of an application comes first. A read makes
every row of every column in the JVM, and counts them. CPU seconds are those of all processes together: they
hold on a machine that is busy, too. Memory is resident, at its peak over what was held before: of the JVM, of
this process, which is the driver's Python, and of the largest Python process that Spark starts.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil

from lazydelta.spark import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELTA, OURS = "Delta", "lazydelta"
BY_PYTHON = "lazydelta, native=False"  # the way of the data source
_LOOK_EVERY_S = 0.02
_MB = 1 << 20


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    task: str  # "plan" or the name of a table that was read
    reader: str
    state: str  # of caches: "first", "cold", "warm"
    seconds: float
    cpu_seconds: float
    partitions: int
    jvm_mb: float
    driver_mb: float
    worker_mb: float


class _Held(msgspec.Struct, frozen=True):
    """Bytes that processes hold."""

    jvm: int = 0
    driver: int = 0
    worker: int = 0  # the largest


class _Watched(msgspec.Struct):
    before: _Held = _Held()
    peak: _Held = _Held()
    cpu_seconds: float = 0.0


def first_plan(spark: SparkSession, table: Path, where: str) -> Taken:
    """The first plan of an application."""
    return _planned(OURS, "first", lambda: _lazily(spark, table, where, cache=False))


def plan_runs(spark: SparkSession, table: Path, where: str, rounds: int) -> Iterator[Taken]:
    """Plans of a filtered read."""
    for number in range(rounds):
        ours: list[tuple[str, str, Callable[[], DataFrame]]] = [
            (reader, state, partial(_lazily, spark, table, where, cache=state == "warm", native=native))
            for reader, native in ((OURS, None), (BY_PYTHON, False))
            for state in ("cold", "warm")
        ]
        theirs: list[tuple[str, str, Callable[[], DataFrame]]] = [
            (DELTA, state, partial(_delta, spark, table, where)) for state in ("cold", "warm")
        ]
        for reader, state, make in [*ours, *theirs] if number % 2 == 0 else [*theirs, *ours]:
            if state == "cold":
                _forget(spark)
            elif reader != DELTA:
                _partitions(make())  # what it knows from then on
            yield _planned(reader, state, make)


def plan_everything(spark: SparkSession, table: Path, task: str) -> Taken:
    """A plan without a filter: what a long file list takes."""
    _collected(spark)
    found = _planned(OURS, "cold", lambda: _lazily(spark, table, None, cache=False))
    return msgspec.structs.replace(found, task=task)


def read_runs(spark: SparkSession, name: str, table: Path, rows: int, rounds: int) -> Iterator[Taken]:
    """Whole reads, alternating; one of each before the clock."""
    makers: dict[str, Callable[[], DataFrame]] = {
        DELTA: lambda: spark.read.format("delta").load(str(table)),
        OURS: lambda: read(spark, str(table)),
        BY_PYTHON: lambda: read(spark, str(table), native=False),
    }
    for reader, make in makers.items():
        found = make().count()
        assert found == rows, f"{reader} counts {found:,} rows of {rows:,}"
        _drained(make())
    for number in range(rounds):
        for reader in list(makers)[:: 1 if number % 2 == 0 else -1]:
            with _watching() as watched:
                started = time.perf_counter()
                frame = makers[reader]()
                partitions = _partitions(frame)
                _drained(frame)
                seconds = time.perf_counter() - started
            yield _taken(name, reader, "warm", seconds=seconds, partitions=partitions, watched=watched)


def delta_files(spark: SparkSession, table: Path, where: str) -> int:
    """How many files Delta's plan has."""
    return len(_delta(spark, table, where).inputFiles())


def _planned(reader: str, state: str, make: Callable[[], DataFrame]) -> Taken:
    with _watching() as watched:
        started = time.perf_counter()
        partitions = _partitions(make())
        seconds = time.perf_counter() - started
    return _taken("plan", reader, state, seconds=seconds, partitions=partitions, watched=watched)


def _lazily(
    spark: SparkSession, table: Path, where: str | None, *, cache: bool, native: bool | None = None
) -> DataFrame:
    options = {} if cache else {"delta.cache.bytes": 0}
    return read(spark, str(table), where=where, storage_options=options, native=native)


def _delta(spark: SparkSession, table: Path, where: str) -> DataFrame:
    return spark.read.format("delta").load(str(table)).where(where)


def _forget(spark: SparkSession) -> None:
    jvm: Any = spark._jvm  # Any: objects of the JVM
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _collected(spark: SparkSession) -> None:
    """What nobody needs any more counts for nobody."""
    gc.collect()
    jvm: Any = spark._jvm  # Any: as above
    jvm.java.lang.System.gc()


def _partitions(frame: DataFrame) -> int:
    execution: Any = frame._jdf.queryExecution()  # Any: as above
    return int(execution.toRdd().getNumPartitions())


def _drained(frame: DataFrame) -> None:
    execution: Any = frame._jdf.queryExecution()  # Any: as above
    execution.toRdd().count()


def _taken(
    task: str, reader: str, state: str, *, seconds: float, partitions: int, watched: _Watched
) -> Taken:
    before, peak = watched.before, watched.peak
    return Taken(
        task=task,
        reader=reader,
        state=state,
        seconds=seconds,
        cpu_seconds=watched.cpu_seconds,
        partitions=partitions,
        jvm_mb=max(0, peak.jvm - before.jvm) / _MB,
        driver_mb=max(0, peak.driver - before.driver) / _MB,
        worker_mb=peak.worker / _MB,
    )


@contextmanager
def _watching() -> Iterator[_Watched]:
    """Processes of the application, looked at beside the run."""
    is_over = threading.Event()
    cpu_before, held = _looked()
    watched = _Watched(before=held, peak=held)

    def look() -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            _, held = _looked()
            peak = watched.peak
            watched.peak = _Held(
                max(held.jvm, peak.jvm), max(held.driver, peak.driver), max(held.worker, peak.worker)
            )

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watched
    finally:
        is_over.set()
        thread.join()
        cpu_after, _ = _looked()
        watched.cpu_seconds = max(0.0, cpu_after - cpu_before)


def _looked() -> tuple[float, _Held]:
    """CPU seconds of all processes so far, and what they hold."""
    me = psutil.Process()
    jvm = worker = 0
    own = me.cpu_times()
    seconds = own.user + own.system
    for process in me.children(recursive=True):
        try:
            with process.oneshot():
                used, held, name = process.cpu_times(), process.memory_info().rss, process.name()
        except psutil.Error:
            continue
        # Python processes that ended in between are counted by the one that started them.
        seconds += used.user + used.system + used.children_user + used.children_system
        if name.startswith("java"):
            jvm = max(jvm, held)
        elif name.startswith("python"):
            worker = max(worker, held)
    return seconds, _Held(jvm, me.memory_info().rss, worker)
