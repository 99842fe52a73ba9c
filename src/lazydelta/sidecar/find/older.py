"""The sidecar of an earlier checkpoint S: with the commits S < v <= C it tells the files at checkpoint C.

Why: a writer that died after a checkpoint leaves none at C, and the one before is still there.
Contract: every commit in between is listed, and the sidecar belongs to the log at S; else no answer, and the
reason. Whether it is worth its longer tail is told by bytes, decided by whoever knows the question.
"""

from __future__ import annotations

from lazydelta.log.segment import LogSegment, list_log
from lazydelta.sidecar.format.binding import foreign_reason
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.folder import read_manifest, row_group_places
from lazydelta.sidecar.read.pruner import Pruner
from lazydelta.sidecar.read.reading import MetadataSource, MetadataTier, OlderSidecar
from lazydelta.sidecar.read.row_group_plan import plan_reads
from lazydelta.storage import Storage


def older_sidecar(storage: Storage, folder: str, segment: LogSegment, *, version: int) -> OlderSidecar:
    """The sidecar of checkpoint `version`, or `DamagedSidecarError` with the reason why it cannot serve."""
    where = f"{storage.root}/{folder}"
    log = list_log(storage, version)
    between = range(version + 1, segment.floor + 1)
    gone = next((number for number in between if number not in log.commits), None)
    if gone is not None:
        raise damaged(f"commit {gone} after it is gone", where)
    manifest = read_manifest(storage, folder, version)
    reason = foreign_reason(storage, manifest, log, table_id=manifest.metadata.id)
    if reason is not None:
        raise damaged(f"it is of another log: {reason}", where)
    source = MetadataSource(tier=MetadataTier.MANIFEST, folder=folder, manifest=manifest)
    return OlderSidecar(source=source, commits=tuple(log.commits[number] for number in between))


def bytes_through(older: OlderSidecar, pruner: Pruner | None) -> int:
    """About what it costs: the commits in between, and the row groups that the manifest does not rule out."""
    manifest = older.source.manifest
    plan = plan_reads(manifest, pruner)
    if plan.units is None:
        return older.commit_bytes + sum(manifest.parts[at].size_bytes for at in plan.parts)
    rows_read = {(unit.part, unit.row_group) for unit in plan.units}
    row_groups = sum(
        group.byte_length
        for place, group in zip(row_group_places(manifest), manifest.row_groups, strict=True)
        if place in rows_read
    )
    return older.commit_bytes + row_groups + sum(manifest.parts[at].footer_bytes for at in plan.parts)


def checkpoint_bytes(segment: LogSegment) -> int:
    """What the checkpoint would cost, its projection left aside; the hint knows about files of a V2 one."""
    told = 0 if segment.hint is None else segment.hint.size_in_bytes or 0
    return max(told, 0 if segment.checkpoint is None else segment.checkpoint.size_bytes)
