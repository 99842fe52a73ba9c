"""One piece of work on sidecars in a process of its own: `python -m bench.sidecar_builder WORK TABLE …`.

Contract: prints one line of JSON. `local` and `full` build without Spark; `spark` builds with it on two
cores; `checkpoint` lets Delta on Spark write a checkpoint of the newest version; `verify` compares the
newest sidecar with the log. Clock, CPU and memory start after the imports and, with Spark, after the
session has started. Memory is the peak over import; with Spark it is that of the JVM and its Python workers
as a whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
import time
from typing import Any

import msgspec

from bench.peers.measure import Measurement
from lazydelta.settings import build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import Storage, open_storage

with contextlib.suppress(ImportError):
    import pandas  # noqa: F401 - Arrow imports it, where it is installed, with the first array it makes

_LOOK_EVERY_S = 0.25
WORKS = ("local", "full", "spark", "checkpoint", "verify")


def main() -> None:
    """The command line."""
    options = _parser().parse_args()
    config = SidecarConfig(folder=options.folder)
    if options.row_group_rows:
        config = msgspec.structs.replace(config, row_group_rows=options.row_group_rows)
    settings = build_settings(json.loads(options.storage_options), environment={})
    storage = open_storage(options.table, settings)
    if options.work == "verify":
        verify(storage, config)
    elif options.work in ("local", "full"):
        build_locally(storage, config, full=options.work == "full")
    else:
        on_spark(options.work, options.table, config)


def build_locally(storage: Storage, config: SidecarConfig, *, full: bool) -> None:
    """Build as `lazydelta sidecar build` does."""
    from lazydelta.upkeep.build import build_sidecar

    run = Measurement("local", "full" if full else "build")
    run.start()
    report = build_sidecar(storage, config=config, full=full)
    asked = storage.counters.snapshot()
    more = {"requests": asked.requests, "round_trips": asked.round_trips}
    run.finish(files=report.num_files, report=msgspec.to_builtins(report) | more)


def verify(storage: Storage, config: SidecarConfig) -> None:
    """Compare the newest sidecar with the log, file by file."""
    from lazydelta.upkeep.verify import verify_sidecar

    run = Measurement("local", "verify")
    run.start()
    report = verify_sidecar(storage, config=config)
    run.finish(files=None, report=msgspec.to_builtins(report), is_ok=report.is_ok)


def on_spark(work: str, table: str, config: SidecarConfig) -> None:
    """Build, or write Delta's own checkpoint, in the pipeline's own session on two cores."""
    from lazydelta.spark.checkpoint import write_checkpoint
    from lazydelta.spark.config import SparkConfig
    from lazydelta.spark.session import get_session

    began = time.perf_counter()
    spark = get_session(SparkConfig(spark={"spark.master": "local[2]"}))
    session_s = time.perf_counter() - began
    facts: dict[str, Any] = {"reader": "spark", "query": work, "session_s": session_s}
    with TreeWatch() as watch:
        if work == "checkpoint":
            storage = open_storage(table, build_settings({}, environment={}))
            facts["version"] = write_checkpoint(spark, table, storage)
        else:
            facts |= _build(spark, table, config)
    spark.stop()
    print(json.dumps(facts | watch.facts()), flush=True)


class TreeWatch:
    """Time, CPU and peak memory of this process's children while the `with` block runs."""

    def __enter__(self) -> TreeWatch:
        self._peak_bytes = 0
        self._cpu_s = self._cpu_now()
        self._clock = time.perf_counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._elapsed_s = time.perf_counter() - self._clock
        self._over.set()
        self._thread.join()
        self._cpu_s = self._cpu_now() - self._cpu_s

    def facts(self) -> dict[str, float]:
        """What was seen, under the names that local runs use."""
        return {"all_s": self._elapsed_s, "cpu_s": self._cpu_s, "peak_mb": self._peak_bytes / 1024**2}

    def _look(self) -> None:
        import psutil

        while not self._over.wait(_LOOK_EVERY_S):
            taken = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    # Forked workers share pages: each page is counted once.
                    taken += process.memory_full_info().pss
                except psutil.Error:  # it has just ended
                    continue
            self._peak_bytes = max(self._peak_bytes, taken)

    def _cpu_now(self) -> float:
        """Of this process and its children, those that have ended included."""
        import psutil

        me = psutil.Process()
        spent = time.process_time() + sum(os.times()[2:4])
        for process in me.children(recursive=True):
            try:
                spent += sum(process.cpu_times()[:4])
            except psutil.Error:
                continue
        return spent


def _build(spark: Any, table: str, config: SidecarConfig) -> dict[str, Any]:  # Any: a SparkSession
    from lazydelta.spark.checkpoint import ensure_sidecar

    report = ensure_sidecar(spark, table, config=config, full=True, spark_files_min=0)
    if report is None:
        sys.exit("Spark built no sidecar")
    return {"files": report.num_files, "report": msgspec.to_builtins(report)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.sidecar_builder", description=__doc__)
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("table")
    parser.add_argument("--folder", default=SidecarConfig().folder)
    parser.add_argument("--row-group-rows", type=int, default=0)
    parser.add_argument("--storage-options", default="{}")
    return parser


if __name__ == "__main__":
    main()
