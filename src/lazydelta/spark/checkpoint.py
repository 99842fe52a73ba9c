"""Checkpoints and their stats sidecars, from Spark.

Why here: Delta writes checkpoints as part of a commit and tells nobody, so whoever has committed looks
whether there is a new one, and writes its sidecar.
Contract: the checkpoint comes first, then parts, then the manifest. A table without a checkpoint is left as
it is. Where there is an earlier sidecar, the driver builds upon it, at a cost that follows the change; a
whole checkpoint of many files is built by a Spark job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lazydelta import limits
from lazydelta.errors import TableNotFoundError
from lazydelta.log.segment import find_segment
from lazydelta.settings import build_settings, process_environment
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.folder import read_manifest
from lazydelta.spark.delta_table import checkpoint_newest
from lazydelta.spark.failures import explained
from lazydelta.spark.sidecar_job import SparkFeeder
from lazydelta.spark.table_url import spark_url
from lazydelta.storage import Storage, open_storage
from lazydelta.upkeep.build import BuildReport, build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from lazydelta.upkeep.progress import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ensure_sidecar(
    spark: SparkSession,
    url: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    config: SidecarConfig = SidecarConfig(),  # noqa: B008 - frozen
    checkpoint: bool = False,
    full: bool = False,
    progress: Progress | None = None,
    spark_files_min: int = limits.SPARK_BUILD_FILES_MIN,
) -> BuildReport | None:
    """Write the sidecar of the newest checkpoint unless it is there; None where there is no checkpoint.

    `checkpoint` makes Delta write one of the newest version first; `full` builds upon nothing.
    """
    tell = progress or silent
    settings = build_settings(storage_options, environment=process_environment())
    storage = open_storage(url, settings)
    if checkpoint:
        write_checkpoint(spark, url, storage, storage_options)
    segment = find_segment(storage)
    if segment.checkpoint is None:
        return None
    feeder = SparkFeeder(spark, url, settings, files_min=spark_files_min)
    report = build_sidecar(storage, config=config, full=full, progress=tell, feeder=feeder)
    if report.kind in ("full", "lost race"):
        manifest = read_manifest(storage, config.folder, report.version)
        named = {name for part in manifest.parts for name in (part.file, part.stats_file)}
        feeder.clean_up(storage, config, named=named)
    if len(segment.commits) >= config.delta_commits_min:
        write_delta_files(storage, config=config, anew=full, progress=tell)
    return report


def write_checkpoint(
    spark: SparkSession, url: str, storage: Storage, storage_options: Mapping[str, str] | None = None
) -> int:
    """Make Delta write a checkpoint of the newest version where it has none; that version."""
    segment = find_segment(storage)
    if segment.floor == segment.version:
        return segment.version  # writing it again would only change its bytes
    path = spark_url(url, storage_options)
    with explained("writing the checkpoint", storage.root):
        version = checkpoint_newest(spark, path)
    if version is None:
        raise TableNotFoundError("Spark finds no Delta table here", path, "check the address")
    return version
