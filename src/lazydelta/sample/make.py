"""Make a sample table: data files by the hour, a commit for each hour, a checkpoint, its sidecar, a tail.

Why: whoever meets lazydelta has a table to try it on before they have installed Spark.
Contract: the same arguments give the same log and the same rows; one file is held in memory at a time. A
folder that holds anything is an error. Other readers see a plain Delta table.
"""

from __future__ import annotations

import datetime as dt
import re
import time
import uuid
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.protocol.names import LOG_FOLDER
from lazydelta.sample import log
from lazydelta.sample.telemetry import hour_name, hours_until_last, rows_of_file
from lazydelta.settings import Settings
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.progress import Progress, silent

TAIL_HOURS = 2  # commits after the checkpoint
FILES_MAX, HOURS_MAX, ROWS_MAX = 100_000, 10_000, 1_000_000


class SampleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How much is made."""

    files: int = 96
    hours: int = 48
    rows: int = 500  # of a file
    seed: int = 1


class SampleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was made."""

    table: str
    version: int
    files: int
    rows: int
    hours: int
    first_hour: str
    last_hour: str
    size_bytes: int
    checkpoint_version: int
    sidecar_version: int
    elapsed_ms: float


def make_sample(folder: Path, spec: SampleSpec, progress: Progress = silent) -> SampleReport:
    """Write the table into `folder`, which must be empty or not there."""
    started = time.perf_counter()
    _check(folder, spec)
    try:
        report = _made(folder, spec, progress)
    except OSError as problem:
        raise LazyDeltaError(
            f"the table cannot be written: {problem.strerror}",
            str(folder),
            "make room, or name another folder",
        ) from problem
    return msgspec.structs.replace(report, elapsed_ms=(time.perf_counter() - started) * 1000)


def _made(folder: Path, spec: SampleSpec, progress: Progress) -> SampleReport:
    (folder / "_delta_log").mkdir(parents=True)
    hours = hours_until_last(spec.hours)
    table = log.metadata(spec.seed, hours[0])
    first = log.CommitPlace(folder=folder, version=0, time=hours[0], seed=spec.seed)
    log.write_commit(first, "CREATE TABLE", [{"protocol": log.protocol()}, {"metaData": table}])
    checkpoint_version = max(1, spec.hours - TAIL_HOURS)
    adds: list[log.Action] = []
    for version, hour in enumerate(hours, start=1):
        written = hour + dt.timedelta(hours=1, minutes=5)
        place = log.CommitPlace(folder=folder, version=version, time=written, seed=spec.seed)
        fresh = []
        for number in range(_files_of(spec, version)):
            fresh.append(_written_file(place, hour, number, spec))
            progress("making_files", files=len(adds) + len(fresh), total=spec.files)
        adds += fresh
        log.write_commit(place, "WRITE", [{"add": action} for action in fresh])
        if version == checkpoint_version:
            log.write_checkpoint(place, table, adds)
        if version in (checkpoint_version, spec.hours):
            log.write_checksum(place, table, adds)
    built = build_sidecar(open_storage(str(folder), Settings()), config=SidecarConfig())
    return SampleReport(
        table=str(folder),
        version=spec.hours,
        files=len(adds),
        rows=len(adds) * spec.rows,
        hours=spec.hours,
        first_hour=hour_name(hours[0]),
        last_hour=hour_name(hours[-1]),
        size_bytes=sum(action["size"] for action in adds),
        checkpoint_version=checkpoint_version,
        sidecar_version=built.version,
        elapsed_ms=0.0,
    )


def _written_file(place: log.CommitPlace, hour: dt.datetime, number: int, spec: SampleSpec) -> log.Action:
    rows = rows_of_file(hour, number=number, rows=spec.rows, seed=spec.seed)
    unique = uuid.uuid5(uuid.NAMESPACE_OID, f"file {spec.seed} {place.version} {number}")
    period = hour_name(hour)
    path = f"{log.PARTITION}={period}/part-{number:05d}-{unique}.c000.snappy.parquet"
    target = place.folder / path
    target.parent.mkdir(exist_ok=True)
    with target.open("wb") as file:  # a name may look like a URL to Arrow
        pq.write_table(rows, file, compression="snappy")
    return log.add(path, period, rows, size=target.stat().st_size, time_ms=place.time_ms)


def _files_of(spec: SampleSpec, version: int) -> int:
    """Files of one hour: all hours have as many, give or take one."""
    return spec.files * version // spec.hours - spec.files * (version - 1) // spec.hours


def _check(folder: Path, spec: SampleSpec) -> None:
    bounds = {"files": FILES_MAX, "hours": HOURS_MAX, "rows": ROWS_MAX}
    for name, most in bounds.items():
        if not 1 <= getattr(spec, name) <= most:
            raise InvalidRequestError(
                f"{name} is {getattr(spec, name)}", "the sample", f"give a number from 1 to {most:,}"
            )
    if spec.files < spec.hours:
        raise InvalidRequestError(
            f"{spec.files:,} files do not fill {spec.hours:,} hours",
            "the sample",
            f"give at least {spec.hours:,} files, or at most {spec.files:,} hours",
        )
    if spec.seed < 0:
        raise InvalidRequestError(f"seed is {spec.seed}", "the sample", "give 0 or more")
    is_remote = re.match(r"[A-Za-z][\w+.-]+:/", str(folder)) is not None
    if is_remote or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InvalidRequestError(
            "a sample table needs a local folder that is empty or not there", str(folder), "name another one"
        )
    for parent in folder.absolute().parents:
        if (parent / LOG_FOLDER).exists():
            raise InvalidRequestError(
                f"the folder lies inside the table {parent}, which would call its files strangers",
                str(folder),
                "name a folder outside of tables",
            )
