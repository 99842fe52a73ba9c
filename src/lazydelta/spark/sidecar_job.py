"""The Spark feeder: the parts of a full build, written by the tasks of one Spark job.

Contract: takes the place of `upkeep.full_build.write_full`, with the same rows for the same checkpoint. The
driver reads footers and a sample; rows stay on the executors, which store their parts themselves. A build
that fails or is killed leaves its parts, and the next one of the same plan takes over those that are whole
(`sidecar_resume`). Parts that the manifest does not name (attempts that failed or came second) are deleted
once it stands. Where Spark cannot do it (files listed in JSON, an order that Spark reads differently,
executors without lazydelta) the local feeder does.
Design: docs/adr/0012-statistics-decoded-by-one-decoder.md, docs/adr/0024-builds-by-spark-are-gone-on-with.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from lazydelta import errors, limits
from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.log.checkpoint import CheckpointReader, RowRequest, has_typed_statistics
from lazydelta.settings import Settings
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.folder import list_sidecars
from lazydelta.sidecar.format.part_writer import PartShape, rows_per_part
from lazydelta.sidecar.format.typed_rows import BUILD_COLUMNS, typed_rows
from lazydelta.spark.failures import explain, spark_failures
from lazydelta.spark.sidecar_frame import CheckpointFrame, keyed_rows, open_frame, sorted_rows
from lazydelta.spark.sidecar_ranges import RANGE, boundaries, with_range
from lazydelta.spark.sidecar_resume import parts_left_behind, taken_over, work_id
from lazydelta.spark.sidecar_task import (
    REPORT_COLUMN,
    PartReport,
    PartTask,
    UnsortedRowsError,
    write_parts,
)
from lazydelta.spark.table_url import literal_path, spark_url
from lazydelta.spark.ticker import ticking
from lazydelta.storage import Storage
from lazydelta.upkeep.build_plan import BuildPlan
from lazydelta.upkeep.full_build import write_full
from lazydelta.upkeep.levels import full_part_count
from lazydelta.upkeep.part_sink import PartSink
from lazydelta.upkeep.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WORKER_ERROR = re.compile(
    r"lazydelta\.[\w.]*?(?P<name>\w+): (?P<what>.*)\n  where: (?P<where>.*)\n  fix:   (?P<fix>.*)"
)


class NotForSparkError(Exception):
    """Why a checkpoint is left to the local feeder."""


class SparkFeeder:
    """A feeder that leaves checkpoints of fewer files to the local one: starting a job takes longer."""

    def __init__(
        self,
        spark: SparkSession,
        url: str,
        settings: Settings,
        *,
        files_min: int = limits.SPARK_BUILD_FILES_MIN,
    ) -> None:
        self._spark, self._url, self._settings = spark, url, settings
        self._files_min = files_min
        self._work: str | None = None  # the id of the parts that Spark wrote

    def __call__(self, plan: BuildPlan, sink: PartSink, progress: Progress) -> None:
        """Write the parts of the plan."""
        if not plan.num_files or plan.num_files < self._files_min:
            write_full(plan, sink, progress)
            return
        try:
            with ticking(self._spark, progress):
                self._write(plan, sink, progress)
        except NotForSparkError as reason:
            self.clean_up(plan.storage, plan.config, named=())
            progress("without_spark", reason=str(reason))
            write_full(plan, sink, progress)

    def clean_up(self, storage: Storage, config: SidecarConfig, named: Collection[str | None]) -> None:
        """Delete what Spark wrote beside these files; what the store refuses is left to the cleaner."""
        try:
            for name, file in list_sidecars(storage, config.folder).parts.items():
                if file.parsed.build == self._work and name not in named:
                    storage.delete(file.info.name)
        except StorageError:
            return

    def _write(self, plan: BuildPlan, sink: PartSink, progress: Progress) -> None:
        try:
            frame = _frame(self._spark, plan, url=self._url, settings=self._settings)
            shape = rows_per_part(plan.layout, _sample(plan), plan.config)
            count = full_part_count(frame.num_files, max(1, int(shape.rows * limits.SPARK_PART_FILL)))
            rows = keyed_rows(frame, plan.layout)
            firsts = boundaries(rows, frame.num_files, count)
            rows = with_range(rows, firsts)
            task = _task(plan, frame, shape, url=self._url, settings=self._settings, count=len(firsts) + 1)
            task = msgspec.structs.replace(
                task, facts=msgspec.structs.replace(task.facts, build=work_id(plan, task, firsts))
            )
            self._work = task.facts.build
            done = self._taken_over(plan, rows, task)
            progress("writing", rows=frame.num_files, parts=task.task_count, taken_over=len(done), by="spark")
            reports = [*done.values(), *_run(rows, task, without=sorted(done))]
        except spark_failures() as problem:
            raise worker_failure(problem, plan) from problem
        for report in reports:
            sink.written.append((report.part, report.row_groups))
            progress("part_written", file=report.part.file, rows=report.part.num_rows)

    def _taken_over(self, plan: BuildPlan, rows: DataFrame, task: PartTask) -> dict[int, PartReport]:
        numbers = parts_left_behind(plan.storage, task)
        return taken_over(self._spark, rows, task, numbers) if numbers else {}


def worker_failure(problem: BaseException, plan: BuildPlan) -> Exception:
    """What went wrong on an executor: our own errors come back as themselves."""
    text = str(problem)
    if UnsortedRowsError.__name__ in text:
        return NotForSparkError(f"Spark reads {plan.layout.order_column!r} differently")
    missing = re.search(r"No module named '(lazydelta|pyarrow|msgspec|numpy|obstore)", text)
    if missing is not None:
        return NotForSparkError(f"the executors have no {missing[1]}")
    found = _WORKER_ERROR.search(text)
    if found is not None:
        branch = getattr(errors, found["name"], StorageError if "storage" in found[0] else LazyDeltaError)
        return branch(found["what"], found["where"], found["fix"])
    return explain(problem, "the Spark job that builds the sidecar", plan.storage.root)


def _frame(spark: SparkSession, plan: BuildPlan, *, url: str, settings: Settings) -> CheckpointFrame:
    with closing(CheckpointReader(plan.storage, plan.checkpoint)) as reader:
        files = reader.add_files()
        if files is None:
            raise NotForSparkError("the checkpoint lists files in JSON")
        typed = {has_typed_statistics(file) for file in files}
        if len(typed) > 1:
            raise NotForSparkError("some files of the checkpoint have typed statistics, others not")
        root = spark_url(url, settings.storage_options)
        paths = [literal_path(f"{root}/{file.name}") for file in files]
    return open_frame(spark, paths, plan.layout, is_typed=True in typed)


def _sample(plan: BuildPlan) -> pa.RecordBatch:
    """Typed rows to measure a part's footer with."""
    request = RowRequest(
        columns=BUILD_COLUMNS,
        stats_paths=plan.layout.stats_paths or ((),),  # an empty path asks for numRecords alone
        row_groups_per_batch=1,
        read_ahead=False,
    )
    with (
        closing(CheckpointReader(plan.storage, plan.checkpoint)) as reader,
        closing(reader.rows(request)) as stream,
    ):
        return typed_rows(next(stream), plan.layout)


def _task(
    plan: BuildPlan, frame: CheckpointFrame, shape: PartShape, *, url: str, settings: Settings, count: int
) -> PartTask:
    facts = plan.facts(0, plan.binding(frame.total_bytes), parts=count, is_whole_build=True)
    return PartTask(
        url=url,
        settings=settings,
        config=plan.config,
        layout=plan.layout,
        facts=facts,
        shape=shape,
        task_count=count,
    )


def _run(rows: DataFrame, task: PartTask, *, without: list[int]) -> list[PartReport]:
    """Write all ranges but these."""
    if len(without) == task.task_count:
        return []

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_parts(batches, task)

    left = rows.where(~rows[RANGE].isin(without)) if without else rows
    told = sorted_rows(left, task.task_count).mapInArrow(write, f"{REPORT_COLUMN} string").collect()
    return [msgspec.json.decode(row[0], type=PartReport) for row in told]
