"""The stats sidecar of a checkpoint, built without Spark: parts first, the manifest last.

Contract: killed at any step, readers see the previous sidecar or none, and the next build repairs it. Of two
builds at once one commits; the other deletes its own parts and says so, which is no error. Where an
incremental build is not possible the whole checkpoint is read, and the report says why. The table itself is
never written to.
The Spark feeder takes the place of `write_full`; everything before and after a full build is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import pyarrow as pa

from lazydelta.errors import CorruptLogError, StorageError
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.format.folder import assemble, commit_manifest, read_manifest
from lazydelta.sidecar.format.manifest import Manifest, encode_manifest
from lazydelta.sidecar.format.names import manifest_name, new_build_id
from lazydelta.sidecar.order.sort_keys import sort_order
from lazydelta.storage import ObjectNotFoundError, Storage
from lazydelta.telemetry import log_event
from lazydelta.upkeep.build_plan import BuildPlan, counted, plan_build
from lazydelta.upkeep.full_build import write_full
from lazydelta.upkeep.merge import NotIncrementalError, layout_with_older, write_incremental
from lazydelta.upkeep.part_sink import PartEntry, PartSink, delete_parts
from lazydelta.upkeep.progress import Progress, silent

_COMMIT_TRIES_MAX = 10  # of a manifest that comes and goes
Feeder = Callable[[BuildPlan, PartSink, Progress], None]


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a build did."""

    version: int  # of the checkpoint
    build: str  # of the sidecar that is there now
    kind: str  # "full", "incremental", "present", "lost race"
    reason: str
    parts_total: int
    parts_written: int
    parts_referenced: int
    rows_written: int
    bytes_written: int  # of parts and manifest
    bytes_read: int
    num_files: int
    num_row_groups: int
    manifest_bytes: int
    elapsed_ms: float


def build_sidecar(
    storage: Storage,
    *,
    config: SidecarConfig,
    version: int | None = None,
    full: bool = False,
    progress: Progress | None = None,
    feeder: Feeder = write_full,
) -> BuildReport:
    """Build the sidecar of the newest checkpoint up to `version`; `full` reads the whole checkpoint.

    `feeder` writes the parts of a full build to the sink.
    """
    tell = progress or silent
    plan = plan_build(storage, config, version, full=full)
    tell("planned", version=plan.version, files=plan.num_files, reason=plan.reason)
    if plan.present is not None:
        return _report(plan, plan.present, (), kind="present")
    if plan.previous is not None:
        try:
            plan = msgspec.structs.replace(plan, layout=layout_with_older(plan))
            return _built(plan, tell, write_incremental)
        except (NotIncrementalError, DamagedSidecarError) as obstacle:
            reason = obstacle.what if isinstance(obstacle, DamagedSidecarError) else str(obstacle)
            plan = _as_full(plan, reason)

    def everything(plan: BuildPlan, sink: PartSink, progress: Progress) -> list[PartEntry]:
        feeder(plan, sink, progress)
        return []

    return _built(plan, tell, everything)


def finish_build(
    plan: BuildPlan, written: Sequence[PartEntry], referenced: Sequence[PartEntry] = ()
) -> BuildReport:
    """Commit the parts that were written: put the manifest, or make way for the build that was first."""
    try:
        manifest = _assembled(plan, [*written, *referenced])
        _clear_the_way(plan)
    except BaseException:
        delete_parts(plan.storage, plan.config.folder, [part for part, _ in written])
        raise
    # From here on nothing is deleted on failure: the manifest may have arrived although its put failed.
    winner = _committed(plan, manifest)
    if winner.build == plan.build:
        kind = "full" if plan.previous is None else "incremental"
        log_event("sidecar built", table=plan.storage.root, version=plan.version, kind=kind)
        return _report(plan, manifest, written, kind=kind)
    # The winner may have taken over parts of ours, where both are builds of one plan by Spark.
    named = {part.file for part in winner.parts}
    unnamed = [part for part, _ in written if part.file not in named]
    delete_parts(plan.storage, plan.config.folder, unnamed)
    log_event("sidecar lost race", table=plan.storage.root, version=plan.version)
    return _report(plan, winner, (), kind="lost race")


_Write = Callable[[BuildPlan, PartSink, Progress], list[PartEntry]]


def _built(plan: BuildPlan, progress: Progress, write: _Write) -> BuildReport:
    sink = PartSink(plan, progress)
    try:
        referenced = write(plan, sink, progress)
    except BaseException:
        sink.discard()
        raise
    report = finish_build(plan, sink.written, referenced)
    progress("finished", kind=report.kind, version=report.version, parts=report.parts_total)
    return report


def _assembled(plan: BuildPlan, entries: Sequence[PartEntry]) -> Manifest:
    live = sum(part.num_live for part, _ in entries)
    if live != plan.num_files:
        raise CorruptLogError(
            f"the build holds {live} files, checkpoint {plan.version} lists {plan.num_files}",
            plan.storage.root,
            "let the writer checkpoint again, then build the sidecar again",
        )
    return assemble(
        version=plan.version,
        build=plan.build,
        layout=plan.layout,
        parts=_in_order(plan, entries),
        protocol=plan.protocol,
        metadata=plan.metadata,
        binding=plan.binding(sum(part.total_bytes for part, _ in entries)),
    )


def _as_full(plan: BuildPlan, reason: str) -> BuildPlan:
    """The same build from the checkpoint alone, under another id: names are never used twice."""
    assert plan.previous is not None
    told = f"the sidecar of version {plan.previous.version} is no ground to build upon: {reason}"
    log_event("fallback", table=plan.storage.root, reason=told)
    full = msgspec.structs.replace(plan, previous=None, tail=(), reason=told, build=new_build_id())
    return counted(full)


def _clear_the_way(plan: BuildPlan) -> None:
    """Delete the stale manifest that the plan met, unless another build has replaced it meanwhile."""
    if plan.stale_build is None:
        return
    try:
        found = read_manifest(plan.storage, plan.config.folder, plan.version)
    except ObjectNotFoundError:
        return
    except DamagedSidecarError:
        found = None
    if found is None or found.build == plan.stale_build:
        plan.storage.delete(f"{plan.config.folder}/{manifest_name(plan.version)}")


def _committed(plan: BuildPlan, manifest: Manifest) -> Manifest:
    """The manifest that stands: ours, or that of the build that was first.

    Ours may be found there after a put that was repeated because its answer got lost.
    """
    for _ in range(_COMMIT_TRIES_MAX):
        if commit_manifest(plan.storage, plan.config.folder, manifest):
            return manifest
        with suppress(ObjectNotFoundError):  # it was deleted between the two
            return read_manifest(plan.storage, plan.config.folder, plan.version)
    raise StorageError(
        "the manifest can be neither written nor read: something else has its name",
        f"{plan.storage.root}/{plan.config.folder}/{manifest_name(plan.version)}",
        "remove what is there, then build the sidecar again",
    )


def _in_order(plan: BuildPlan, entries: Sequence[PartEntry]) -> list[PartEntry]:
    """Parts by their ranges, those without one first."""
    type_name = plan.layout.order_type or "string"
    lows = values_from_text(pa.array([part.order_min for part, _ in entries], pa.string()), type_name)
    highs = values_from_text(pa.array([part.order_max for part, _ in entries], pa.string()), type_name)
    files = pa.array([part.file for part, _ in entries], pa.string())
    rows = pa.RecordBatch.from_arrays([lows, highs, files], names=["low", "high", "file"])
    return [entries[at] for at in sort_order(rows, ("low", "high", "file")).to_pylist()]


def _report(plan: BuildPlan, manifest: Manifest, written: Sequence[PartEntry], *, kind: str) -> BuildReport:
    manifest_bytes = len(encode_manifest(manifest))
    is_ours = kind in {"full", "incremental"}
    part_bytes = sum(part.size_bytes + part.stats_size_bytes for part, _ in written)
    return BuildReport(
        version=plan.version,
        build=manifest.build,
        kind=kind,
        reason=plan.reason,
        parts_total=len(manifest.parts),
        parts_written=len(written),
        parts_referenced=len(manifest.parts) - len(written) if is_ours else 0,
        rows_written=sum(part.num_rows for part, _ in written),
        bytes_written=part_bytes + (manifest_bytes if is_ours else 0),
        bytes_read=plan.storage.counters.snapshot().bytes_read,
        num_files=manifest.num_files,
        num_row_groups=manifest.num_row_groups,
        manifest_bytes=manifest_bytes,
        elapsed_ms=(time.perf_counter() - plan.started) * 1000,
    )
