"""The sidecar of a large checkpoint built by Spark on two cores: `python -m bench.spark_build`.

Contract: the checkpoint of ten million files, statistics in JSON, in one file; a session of its own with
little memory, in this machine. What is told: seconds, CPU seconds, what is read and written, how much disk
shuffles and spills take at their peak, and the resident memory of all processes together. Then manifest and
half of the parts are deleted, as if the build had been killed, and it is gone on with. The exit code tells
whether the build stays within 8 GB. A run of the usual size writes `docs/spark-build-figures.md`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from bench.many_scans import many_spec
from bench.pages import DOCS, RESULTS, promises_kept, table_lines, verdicts
from bench.promises import Check
from bench.tables import CachedTable, cached_table
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import BuildReport

FILES = 10_000_000
MEMORY_GB_MAX, CORES = 8.0, 2
NAME = "spark-build-figures"
_FOLDER = "_delta_log/_lazy_spark_build"
_LOOK_EVERY_S = 0.25
_GB, _MB = 1e9, 1e6


class Taken(msgspec.Struct, kw_only=True):
    """What a build took."""

    name: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    read_bytes: int = 0  # by all processes, of files: the checkpoint, and shuffled rows again
    written_bytes: int = 0  # of parts and manifest
    parts: int = 0
    taken_over: int = 0
    disk_bytes: int = 0  # of Spark's own folder, at its peak
    jvm_bytes: int = 0  # at its peak
    python_bytes: int = 0  # of all workers and the driver together, likewise
    all_bytes: int = 0  # of all processes together, likewise


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    table = cached_table(many_spec(options.files))
    shutil.rmtree(table.path / _FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="lazydelta-spark-build-") as scratch:
        runs = _runs(table, Path(scratch), options.driver_memory)
    shutil.rmtree(table.path / _FOLDER, ignore_errors=True)
    checks = judge(runs)
    print(f"\n{table_of(runs)}\n\n{verdicts(checks)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    saved = {"files": options.files, "runs": runs, "checks": checks}
    (RESULTS / f"{NAME}.json").write_bytes(msgspec.json.format(msgspec.json.encode(saved)))
    if options.files == FILES:
        checkpoint = sum(file.stat().st_size for file in (table.path / "_delta_log").glob("*.checkpoint*"))
        told = page(
            runs,
            checks,
            files=options.files,
            checkpoint_bytes=checkpoint,
            driver_memory=options.driver_memory,
        )
        (DOCS / f"{NAME}.md").write_text(told)
    return int(not all(check.passed for check in checks))


def _runs(table: CachedTable, scratch: Path, driver_memory: str) -> list[Taken]:
    from lazydelta.spark.config import SparkConfig
    from lazydelta.spark.session import get_session

    settings = {
        "spark.master": f"local[{CORES}]",
        "spark.driver.memory": driver_memory,
        "spark.local.dir": str(scratch),
    }
    spark = get_session(SparkConfig(spark=settings))
    runs = [_built(spark, table, scratch, "a full build")]
    folder = table.path / _FOLDER
    for manifest in folder.glob("*.manifest.json"):
        manifest.unlink()
    for number, part in enumerate(sorted(folder.glob("v*.parquet"))):
        if number % 2:
            part.unlink()
    runs.append(_built(spark, table, scratch, "again, after the manifest and half of the parts were deleted"))
    spark.stop()
    return runs


def _built(spark: object, table: CachedTable, scratch: Path, name: str) -> Taken:
    from pyspark.sql import SparkSession

    from lazydelta.spark.checkpoint import ensure_sidecar

    assert isinstance(spark, SparkSession)
    told: dict[str, dict[str, object]] = {}

    def hear(event: str, /, **fields: object) -> None:
        told[event] = fields
        if event in ("writing", "running"):
            print(event, fields, file=sys.stderr)

    with _watching(name, scratch) as taken:
        report = ensure_sidecar(
            spark, str(table.path), config=SidecarConfig(folder=_FOLDER), progress=hear, spark_files_min=0
        )
    return _counted(taken, report, told.get("writing", {}))


def _counted(taken: Taken, report: BuildReport | None, writing: dict[str, object]) -> Taken:
    assert report is not None
    assert report.kind == "full"
    assert report.parts_total == report.parts_written
    taken.parts, taken.written_bytes = report.parts_total, report.bytes_written
    taken.taken_over = int(str(writing["taken_over"]))
    return taken


def judge(runs: Sequence[Taken]) -> list[Check]:
    """The promises."""
    most = max(run.all_bytes for run in runs) / _GB
    first, resumed = runs
    return [
        Check(
            promise=f"the build stays within {MEMORY_GB_MAX:g} GB, the JVM and all Python processes together",
            passed=most <= MEMORY_GB_MAX,
            measured=f"{most:.1f} GB",
        ),
        Check(
            promise="parts that a build left without a manifest are taken over",
            passed=resumed.taken_over >= first.parts // 2,
            measured=f"{resumed.taken_over} of {first.parts} parts, in {resumed.seconds / first.seconds:.2f} "
            "of the time",
        ),
    ]


def table_of(runs: Sequence[Taken]) -> str:
    """The figures as a table."""
    columns = ("what", *(run.name for run in runs))
    rows = [
        ("seconds", *(f"{run.seconds:,.0f}" for run in runs)),
        ("CPU seconds", *(f"{run.cpu_seconds:,.0f}" for run in runs)),
        ("read from files by all processes, MB", *(f"{run.read_bytes / _MB:,.0f}" for run in runs)),
        ("parts, of those taken over", *(f"{run.parts}, {run.taken_over}" for run in runs)),
        ("parts and manifest, MB", *(f"{run.written_bytes / _MB:,.0f}" for run in runs)),
        ("disk of shuffles and spills at the peak, MB", *(f"{run.disk_bytes / _MB:,.0f}" for run in runs)),
        ("memory of the JVM at the peak, MB", *(f"{run.jvm_bytes / _MB:,.0f}" for run in runs)),
        ("of all Python processes, MB", *(f"{run.python_bytes / _MB:,.0f}" for run in runs)),
        ("of all together, MB", *(f"{run.all_bytes / _MB:,.0f}" for run in runs)),
    ]
    return "\n".join(table_lines(columns, rows))


def page(
    runs: Sequence[Taken], checks: Sequence[Check], *, files: int, checkpoint_bytes: int, driver_memory: str
) -> str:
    """The figures for the documentation."""
    lines = [
        "# A sidecar built by Spark: the figures",
        "",
        "Written by `make bench-spark-build` (`bench/spark_build.py`); do not edit. The checkpoint lists",
        f"{files:,} files in {checkpoint_bytes / _MB:,.0f} MB, statistics in JSON; Spark has {CORES} cores",
        f"and `spark.driver.memory={driver_memory}`. Seconds belong to the machine.",
        "",
        table_of(runs),
        "",
        *promises_kept(checks),
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def _watching(name: str, scratch: Path) -> Iterator[Taken]:
    """Processes and Spark's folder, looked at beside the build."""
    taken, is_over = Taken(name=name), threading.Event()
    cpu_before, read_before = _used()

    def look() -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            jvm, python = _held()
            taken.jvm_bytes = max(taken.jvm_bytes, jvm)
            taken.python_bytes = max(taken.python_bytes, python)
            taken.all_bytes = max(taken.all_bytes, jvm + python)
            taken.disk_bytes = max(taken.disk_bytes, _on_disk(scratch))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    started = time.perf_counter()
    try:
        yield taken
    finally:
        taken.seconds = time.perf_counter() - started
        is_over.set()
        thread.join()
        cpu_after, read_after = _used()
        taken.cpu_seconds, taken.read_bytes = cpu_after - cpu_before, read_after - read_before


def _processes() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _held() -> tuple[int, int]:
    """Resident bytes of Java, and of everything else."""
    java = others = 0
    for process in _processes():
        with suppress(psutil.Error):
            held = process.memory_info().rss
            if process.name().startswith("java"):
                java += held
            else:
                others += held
    return java, others


def _used() -> tuple[float, int]:
    """CPU seconds and bytes read so far by the processes that live, and by children that they have buried."""
    seconds, read = 0.0, 0
    for process in _processes():
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
            read += process.io_counters().read_chars
    return seconds, read


def _on_disk(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--driver-memory", default="4g", help="of the JVM, which is also the executor")
    return parser


if __name__ == "__main__":
    sys.exit(main())
