"""What a build of the sidecar starts from: the checkpoint, the layout, and the sidecar to build upon.

Contract: nothing is written. The plan says whether the checkpoint's sidecar is there and valid already, which
earlier sidecar an incremental build may reference, and otherwise why the build is a full one. Of the
checkpoint only footers, protocol and metadata and, where statistics are JSON alone, a few rows are read.
"""

from __future__ import annotations

import itertools
import time
from contextlib import closing

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.log.checkpoint import CheckpointReader, RowRequest
from lazydelta.log.checksum import read_checksum
from lazydelta.log.parquet_part import DamagedCheckpointError
from lazydelta.log.segment import CheckpointFiles, LogFile, LogListing, find_segment, list_log
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.protocol.features import check_readable
from lazydelta.protocol.names import LOG_FOLDER
from lazydelta.protocol.schema import StructType, table_schema
from lazydelta.sidecar.format.binding import foreign_reason, make_binding
from lazydelta.sidecar.format.config import SidecarConfig, checked
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.format.folder import SidecarListing, list_sidecars, read_manifest
from lazydelta.sidecar.format.layout import SidecarLayout, configured_stats_paths, layout_of
from lazydelta.sidecar.format.manifest import FORMAT, Binding, Manifest, format_of
from lazydelta.sidecar.format.names import manifest_name, new_build_id
from lazydelta.sidecar.format.part_writer import PartFacts
from lazydelta.storage import ObjectNotFoundError, Storage
from lazydelta.upkeep.json_paths import json_stats_paths
from lazydelta.upkeep.schema_change import unbridgeable_change

_PREVIOUS_TRIED_MAX = 3  # earlier sidecars looked at before the build is a full one
_UNCOUNTED = -1
_SAMPLE_ROWS = 256  # of JSON statistics, to find columns that no configuration names
_Path = tuple[str, ...]


class BuildPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A build that has not begun. `storage` counts what the build reads and writes."""

    storage: Storage
    config: SidecarConfig
    version: int  # of the checkpoint
    build: str
    checkpoint: CheckpointFiles
    commit: LogFile | None  # N.json, where it is still there
    protocol: Protocol
    metadata: Metadata
    schema: StructType
    layout: SidecarLayout
    num_files: int  # that the checkpoint lists; of one of many files by its `.crc`, to build upon another
    reason: str  # why the build is what it is, for the report
    present: Manifest | None = None  # the valid sidecar of this checkpoint: nothing is to be done
    stale_build: str | None = None  # of a manifest that is in the way; "" where it cannot be read
    previous: Manifest | None = None  # an incremental build references its parts
    tail: tuple[LogFile, ...] = ()  # commits after the previous sidecar, up to the checkpoint
    started: float = 0.0  # of time.perf_counter

    def binding(self, total_bytes: int) -> Binding:
        """What ties the build to the log; `total_bytes` is the size of all data files."""
        return make_binding(
            self.storage, self.checkpoint, self.commit, num_files=self.num_files, total_bytes=total_bytes
        )

    def facts(self, number: int, binding: Binding, *, parts: int | None, is_whole_build: bool) -> PartFacts:
        """What part `number` of the build says of itself; `parts` where their count is known."""
        return PartFacts(
            version=self.version,
            build=self.build,
            number=number,
            num_files=self.num_files,
            table_id=self.metadata.id,
            binding=binding,
            parts=parts,
            is_whole_build=is_whole_build,
        )


def plan_build(
    storage: Storage, config: SidecarConfig, version: int | None = None, *, full: bool = False
) -> BuildPlan:
    """Plan the sidecar of the newest checkpoint up to `version`.

    `full` leaves earlier sidecars aside, and replaces the one of this checkpoint if there is one.
    """
    started = time.perf_counter()
    checked(config)
    storage = storage.scoped()
    segment = find_segment(storage, version)
    if segment.checkpoint is None:
        raise _no_checkpoint(storage.root, version)
    checkpoint = segment.checkpoint
    with closing(CheckpointReader(storage, checkpoint)) as reader:
        protocol, metadata = _state(reader, storage.root)
        schema = table_schema(metadata, storage.root)
        paths = _stats_paths(reader, metadata, schema)
        is_counted = reader.file_count <= limits.CHECKPOINT_FOOTERS_MAX
        num_files = reader.add_count() if is_counted else _UNCOUNTED
    plan = BuildPlan(
        storage=storage,
        config=config,
        version=checkpoint.version,
        build=new_build_id(),
        checkpoint=checkpoint,
        commit=segment.checkpoint_commit,
        protocol=protocol,
        metadata=metadata,
        schema=schema,
        layout=layout_of(metadata, schema, stats_paths=paths, time_column=config.time_column),
        num_files=num_files,
        reason="",
        started=started,
    )
    plan = _upon_what_is_there(plan, full=full)
    if plan.num_files != _UNCOUNTED:
        return plan
    told = _told_count(plan, next((crc for crc in segment.crcs if crc.version == plan.version), None))
    return counted(plan) if told is None else msgspec.structs.replace(plan, num_files=told)


def counted(plan: BuildPlan) -> BuildPlan:
    """The plan with the number of files that the checkpoint itself tells: every footer of it is read."""
    with closing(CheckpointReader(plan.storage, plan.checkpoint)) as reader:
        return msgspec.structs.replace(plan, num_files=reader.add_count())


def missing_part(manifest: Manifest, listing: SidecarListing) -> str | None:
    """The first file of the manifest that is not there in its size; None if all are."""
    for part in manifest.parts:
        files = [(part.file, part.size_bytes)]
        if part.stats_file is not None:
            files.append((part.stats_file, part.stats_size_bytes))
        for name, size_bytes in files:
            found = listing.parts.get(name)
            if found is None:
                return f"its part {name} is missing"
            if found.info.size_bytes != size_bytes:
                return f"its part {name} has {found.info.size_bytes} bytes instead of {size_bytes}"
    return None


# --- the checkpoint ------------------------------------------------------------


def _state(reader: CheckpointReader, root: str) -> tuple[Protocol, Metadata]:
    protocol, metadata = reader.state()
    if protocol is None or metadata is None:
        missing = "protocol" if protocol is None else "metaData"
        raise DamagedCheckpointError(
            f"checkpoint {reader.version} has no {missing} action", root, "let the writer checkpoint again"
        )
    check_readable(protocol, root)
    return protocol, metadata


def _stats_paths(reader: CheckpointReader, metadata: Metadata, schema: StructType) -> list[_Path]:
    """What Delta is configured to collect, what the checkpoint has typed, and what its JSON has besides."""
    typed = reader.statistics_paths()
    found = [*configured_stats_paths(metadata, schema), *typed]
    if not typed:
        request = RowRequest(
            columns=("stats",), batch_rows=_SAMPLE_ROWS, row_groups_per_batch=1, read_ahead=False
        )
        with closing(reader.rows(request)) as stream:
            rows = next(stream, None)
        for text in [] if rows is None else rows.column("stats").drop_null().to_pylist():
            found += json_stats_paths(text)
    return list(dict.fromkeys(found))


def _no_checkpoint(root: str, version: int | None) -> InvalidRequestError:
    until = "" if version is None else f" up to version {version}"
    return InvalidRequestError(
        f"the table has no checkpoint{until}, and a stats sidecar belongs to one",
        f"{root}/{LOG_FOLDER}",
        "let the writer make a checkpoint, or run `lazydelta sidecar build --checkpoint`, which uses Spark",
    )


def _told_count(plan: BuildPlan, crc: LogFile | None) -> int | None:
    """The number of files without a look into the checkpoint, where what is built is compared with it."""
    if plan.present is not None:
        return plan.present.num_files
    checksum = None if crc is None or plan.previous is None else read_checksum(plan.storage, crc)
    return None if checksum is None else checksum.num_files


# --- sidecars that are there ---------------------------------------------------


def _upon_what_is_there(plan: BuildPlan, *, full: bool) -> BuildPlan:
    listing = list_sidecars(plan.storage, plan.config.folder)
    earlier = sorted((version for version in listing.manifests if version < plan.version), reverse=True)
    first = min([plan.version, *earlier[:_PREVIOUS_TRIED_MAX]])
    log = list_log(plan.storage, first)
    if plan.version in listing.manifests:
        plan = _judged(plan, listing, log, full=full)
        if plan.present is not None:
            return plan
    if full:
        return _because(plan, "a full build was asked for")
    for version in earlier[:_PREVIOUS_TRIED_MAX]:
        manifest, problem = _usable(plan, version, listing, log)
        if manifest is not None:
            tail = tuple(log.commits[number] for number in range(version + 1, plan.version + 1))
            usable = msgspec.structs.replace(plan, previous=manifest, tail=tail)
            commits = "1 commit" if len(tail) == 1 else f"{len(tail)} commits"
            return _because(usable, f"{commits} after the sidecar of version {version}")
        plan = _because(plan, f"the sidecar of version {version} is no ground to build upon: {problem}")
    return plan if earlier else _because(plan, "no earlier sidecar")


def _judged(plan: BuildPlan, listing: SidecarListing, log: LogListing, *, full: bool) -> BuildPlan:
    """The plan with the manifest that is there: valid, or in the way."""
    _refuse_newer_format(plan)
    try:
        manifest = read_manifest(plan.storage, plan.config.folder, plan.version)
    except ObjectNotFoundError:  # somebody cleaned up meanwhile
        return plan
    except DamagedSidecarError as damage:
        return _because(msgspec.structs.replace(plan, stale_build=""), damage.what)
    problem = foreign_reason(plan.storage, manifest, log) or missing_part(manifest, listing)
    if manifest.table_id != plan.metadata.id:
        problem = f"it is of the table {manifest.table_id}, not {plan.metadata.id}"
    if problem is None and not full:
        return _because(msgspec.structs.replace(plan, present=manifest), "the sidecar is there already")
    stale = msgspec.structs.replace(plan, stale_build=manifest.build)
    return stale if problem is None else _because(stale, f"the manifest that was there is stale: {problem}")


def _usable(
    plan: BuildPlan, version: int, listing: SidecarListing, log: LogListing
) -> tuple[Manifest | None, str]:
    """An earlier sidecar to build upon, or why it is none."""
    missing = [number for number in range(version + 1, plan.version + 1) if number not in log.commits]
    if missing:
        return None, f"commit {missing[0]} is gone"
    try:
        manifest = read_manifest(plan.storage, plan.config.folder, version)
    except (DamagedSidecarError, ObjectNotFoundError) as damage:
        return None, damage.what
    problem = (
        foreign_reason(plan.storage, manifest, log)
        or missing_part(manifest, listing)
        or _other_table(plan, manifest)
    )
    return (manifest, "") if problem is None else (None, problem)


def _other_table(plan: BuildPlan, manifest: Manifest) -> str | None:
    if manifest.table_id != plan.metadata.id:
        return f"it is of the table {manifest.table_id}, not {plan.metadata.id}"
    if (manifest.order_column, manifest.order_type) != (plan.layout.order_column, plan.layout.order_type):
        return f"it is sorted by {manifest.order_column}, not by {plan.layout.order_column}"
    before = table_schema(manifest.metadata, plan.storage.root)
    return unbridgeable_change(manifest.metadata, before, plan.metadata, plan.schema)


def _refuse_newer_format(plan: BuildPlan) -> None:
    """A manifest of another format is a newer tool's: not ours to replace."""
    name = f"{plan.config.folder}/{manifest_name(plan.version)}"
    try:
        found = format_of(plan.storage.get(name))
    except (ObjectNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return
    if found > FORMAT:
        raise UnsupportedTableError(
            f"the stats sidecar of version {plan.version} has format {found}, this builder knows {FORMAT}",
            f"{plan.storage.root}/{name}",
            "use a newer lazydelta, or delete the manifest",
        )


def _because(plan: BuildPlan, reason: str) -> BuildPlan:
    """The plan with one more reason."""
    joined = "; ".join(itertools.chain([plan.reason] if plan.reason else [], [reason]))
    return msgspec.structs.replace(plan, reason=joined)
