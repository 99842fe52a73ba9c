"""A sidecar against the log it stands for: every live file once, with equal statistics; every number true.

Contract: reads the whole sidecar and the whole state of its version, in memory that grows with neither: rows
of both sides are split by a hash of their paths, on disk where they are many, and compared a partition at a
time. The log's side is the checkpoint where it is still there, else the replay of the version. Statistics are
equal if they equal one of the forms that the log has them in, JSON or typed. Differences are counted, the
first ones named.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.errors import CorruptLogError, UnsupportedTableError, VersionNotFoundError
from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.commits import ReverseCommitReader
from lazydelta.log.file_rows import RAW_PATH, STATS_PARSED, Batches
from lazydelta.log.snapshot import Snapshot, open_snapshot
from lazydelta.scan.config import LazyScanConfig
from lazydelta.scan.replay import forward_files
from lazydelta.scan.report import ScanTally
from lazydelta.scan.run import Replay
from lazydelta.scan.tripwire import FeatureTripwire
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.format.folder import row_groups_by_part
from lazydelta.sidecar.format.layout import SidecarLayout, field_path, layout_of
from lazydelta.sidecar.format.manifest import Manifest, Part, RowGroup
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.format.typed_rows import BUILD_COLUMNS, typed_rows
from lazydelta.storage import Storage
from lazydelta.telemetry import log_event
from lazydelta.upkeep.build_plan import missing_part
from lazydelta.upkeep.check_deltas import check_deltas
from lazydelta.upkeep.check_manifest import check_manifest
from lazydelta.upkeep.check_part import PartCheck, row_groups_of
from lazydelta.upkeep.compare_rows import JSON_COLUMN, PART_COLUMN, compare_rows
from lazydelta.upkeep.findings import Difference, Findings
from lazydelta.upkeep.inventory import Flaw, Inventory, ListedManifest, base_name, take_inventory
from lazydelta.upkeep.key_partitions import KeyPartitions, partition_count
from lazydelta.upkeep.progress import Progress, silent

_PROGRESS_ROWS = 100_000


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared, and what is not as it should be."""

    table: str
    version: int
    is_ok: bool
    files_checked: int  # live in the log
    rows_checked: int  # live in the sidecar
    parts_checked: int
    row_groups_checked: int
    delta_files_checked: int
    differences_total: int
    differences_by_kind: dict[str, int]
    differences: tuple[Difference, ...]  # the first ones
    notes: tuple[str, ...]
    elapsed_ms: float

    def error(self) -> CorruptLogError:
        """The verdict as an error."""
        return CorruptLogError(
            f"the stats sidecar of version {self.version} differs from the log: {self._counts}",
            self.table,
            f"run `lazydelta sidecar build --full --version {self.version}`, which replaces it",
        )

    @property
    def _counts(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in self.differences_by_kind.items())


def verify_sidecar(
    storage: Storage,
    *,
    config: SidecarConfig,
    version: int | None = None,
    progress: Progress = silent,
) -> VerifyReport:
    """Verify the sidecar of a version (the newest one when None), and every delta file of the folder."""
    started = time.perf_counter()
    inventory = take_inventory(storage, config)
    entry = _chosen(inventory, version, storage.root)
    run = _Run(storage, config, entry, progress)
    run.notes += _ahead(inventory)
    if entry.manifest is None:
        run.findings.note("manifest", base_name(entry.info), entry.problem or "")
    else:
        run.compare(entry.manifest, inventory)
    notes = list(run.notes)
    deltas = check_deltas(storage, inventory, run.findings, notes)
    report = VerifyReport(
        table=storage.root,
        version=entry.version,
        is_ok=run.findings.total == 0,
        files_checked=run.files,
        rows_checked=run.rows,
        parts_checked=run.parts,
        row_groups_checked=run.row_groups,
        delta_files_checked=deltas,
        differences_total=run.findings.total,
        differences_by_kind=dict(run.findings.counts),
        differences=tuple(run.findings.named()),
        notes=tuple(notes),
        elapsed_ms=(time.perf_counter() - started) * 1000,
    )
    log_event(
        "sidecar verified", table=storage.root, version=entry.version, differences=report.differences_total
    )
    return report


def _chosen(inventory: Inventory, version: int | None, root: str) -> ListedManifest:
    versions = [entry.version for entry in inventory.manifests]
    where = f"{root}/{inventory.folder}"
    if not versions:
        raise VersionNotFoundError(
            "the table has no stats sidecar", where, "build one with `lazydelta sidecar build`"
        )
    if version is None:
        within = [entry for entry in inventory.manifests if not _is_ahead(entry, inventory)]
        return _of_known_format(within[-1] if within else inventory.manifests[-1], where)
    if version not in versions:
        raise VersionNotFoundError(
            f"version {version} has no stats sidecar",
            where,
            f"there are sidecars of the versions {_few(versions)}",
        )
    return _of_known_format(inventory.manifests[versions.index(version)], where)


def _is_ahead(entry: ListedManifest, inventory: Inventory) -> bool:
    """Whether the log does not reach that version: it was put back to an older state."""
    return inventory.log.newest is not None and entry.version > inventory.log.newest


def _ahead(inventory: Inventory) -> list[str]:
    return [
        f"the sidecar of version {entry.version} is of no use: the log ends at {inventory.log.newest}"
        for entry in inventory.manifests
        if _is_ahead(entry, inventory)
    ]


def _of_known_format(entry: ListedManifest, where: str) -> ListedManifest:
    if entry.flaw is Flaw.FOREIGN_FORMAT:
        raise UnsupportedTableError(
            entry.problem or "",
            f"{where}/{base_name(entry.info)}",
            "use a newer lazydelta, or delete the manifest",
        )
    return entry


def _few(versions: Sequence[int]) -> str:
    shown = [str(version) for version in versions[-10:]]
    return ", ".join(shown if len(versions) <= 10 else ["…", *shown])


class _Run:
    """One verification: counts and findings as it goes."""

    def __init__(
        self, storage: Storage, config: SidecarConfig, entry: ListedManifest, progress: Progress
    ) -> None:
        self.findings = Findings()
        self.notes: list[str] = []
        self.files = self.rows = self.parts = self.row_groups = 0
        self._total_bytes = 0
        self._storage = storage
        self._config = config
        self._progress = progress
        self._name = base_name(entry.info)

    def compare(self, manifest: Manifest, inventory: Inventory) -> None:
        """Everything about one manifest."""
        snapshot = self._snapshot(manifest)
        self._about(check_manifest(self._storage, manifest, inventory, snapshot))
        count = partition_count(manifest.num_files)
        with ExitStack() as stack:
            families = _Families(stack, count, self._config.sort_memory_bytes)
            groups = row_groups_by_part(manifest)
            for number, (part, row_groups) in enumerate(zip(manifest.parts, groups, strict=True)):
                absent = missing_part(msgspec.structs.replace(manifest, parts=(part,)), inventory.listing)
                if absent is None:
                    self._read_part(number, part, row_groups, manifest, families)
                else:
                    self.findings.note("part", part.file, f"not read: {absent}")
            if snapshot is None:
                return
            paths = {path for schema in families.sides for f in schema if (path := field_path(f)) is not None}
            layout = layout_of(
                snapshot.state.metadata, snapshot.schema, stats_paths=sorted(paths), time_column=None
            )
            schema = layout.schema.append(pa.field(JSON_COLUMN, pa.string()))
            log = KeyPartitions(schema, count=count, memory_bytes=self._config.sort_memory_bytes // 2)
            stack.enter_context(closing(log))
            self._read_log(snapshot, layout, log)
            names = [part.file for part in manifest.parts]
            for number in range(count):
                compare_rows(
                    log.partition(number),
                    [side.partition(number) for side in families.sides.values()],
                    part_names=names,
                    findings=self.findings,
                    retyped=lambda rows: _typed_from_json(rows, layout),
                    once_float=_once_float(layout),
                )
                self._progress("comparing", partition=number + 1, total=count)
        self._about(_totals_problems(manifest, self.files, self._total_bytes))

    def _about(self, problems: Iterator[str]) -> None:
        for problem in problems:
            self.findings.note("manifest", self._name, problem)

    def _snapshot(self, manifest: Manifest) -> Snapshot | None:
        try:
            return open_snapshot(
                self._storage, version=manifest.version, parallelism=limits.COMMIT_PARALLELISM
            )
        except VersionNotFoundError as gone:
            self._about(iter([f"the log does not hold its version: {gone.what}"]))
            return None

    def _read_part(
        self, number: int, part: Part, row_groups: list[RowGroup], manifest: Manifest, families: _Families
    ) -> None:
        """Check a part's own numbers and hand its live rows over."""
        with closing(PartReader(self._storage, self._config.folder, part)) as reader:
            try:
                check = PartCheck(reader, row_groups, order_type=manifest.order_type, findings=self.findings)
                check.footer(manifest)
                self.parts += 1
                for index, rows, live in row_groups_of(reader):
                    check.row_group(index, rows, live)
                    self.row_groups += 1
                    self.rows += live.num_rows
                    families.add(number, live)
                    self._progress("reading_sidecar", rows=self.rows, total=manifest.num_files)
                check.end()
            except DamagedSidecarError as damage:
                self.findings.note("part", part.file, damage.what)

    def _read_log(self, snapshot: Snapshot, layout: SidecarLayout, log: KeyPartitions) -> None:
        with closing(_live_rows(snapshot, layout)) as stream:
            for rows in stream:
                self.files += rows.num_rows
                self._total_bytes += pc.sum(rows.column("size"), min_count=0).as_py()
                log.add(_with_json(rows, layout))
                if self.files // _PROGRESS_ROWS > (self.files - rows.num_rows) // _PROGRESS_ROWS:
                    self._progress("reading_log", rows=self.files)


class _Families:
    """The sidecar's rows, apart by their parts' schemas: a value is compared in its part's own type."""

    def __init__(self, stack: ExitStack, count: int, memory_bytes: int) -> None:
        self.sides: dict[pa.Schema, KeyPartitions] = {}
        self._stack = stack
        self._count = count
        self._memory_bytes = memory_bytes

    def add(self, number: int, rows: pa.Table) -> None:
        schema = rows.schema.append(pa.field(PART_COLUMN, pa.int32()))
        side = next((s for known, s in self.sides.items() if known.equals(schema, check_metadata=True)), None)
        if side is None:
            # A few schemas at most: one for each change of the table's columns that a part outlived.
            memory_bytes = self._memory_bytes // 2 >> len(self.sides)
            side = KeyPartitions(schema, count=self._count, memory_bytes=memory_bytes)
            self.sides[schema] = self._stack.enter_context(closing(side))
        for batch in rows.to_batches():
            numbers = pa.array([number] * batch.num_rows, pa.int32())
            side.add(pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema))


def _live_rows(snapshot: Snapshot, layout: SidecarLayout) -> Batches:
    """The live files of the version as rows of the log room, statistics in every form there is."""
    storage = snapshot.storage
    with closing(ReverseCommitReader(storage, limits.COMMIT_PARALLELISM, snapshot.hand_over())) as commits:
        replay = Replay(
            storage=storage,
            segment=snapshot.segment,
            damaged=snapshot.damaged,
            commits=commits,
            rows=RowRequest(columns=(*BUILD_COLUMNS, "stats"), stats_paths=layout.stats_paths),
            config=LazyScanConfig(),
            tally=ScanTally(),
            tripwire=FeatureTripwire(),
            demand=lambda: None,
        )
        yield from forward_files(replay)


def _with_json(rows: pa.RecordBatch, layout: SidecarLayout) -> pa.RecordBatch:
    """Typed rows; beside statistics that came typed the JSON is kept, for a second look."""
    json: pa.Array = pa.nulls(rows.num_rows, pa.string())
    if STATS_PARSED in rows.schema.names:
        json = rows.column("stats")
        if json.null_count < rows.num_rows:
            rows = rows.drop_columns(["stats"])
    typed = typed_rows(rows, layout)
    schema = typed.schema.append(pa.field(JSON_COLUMN, pa.string()))
    return pa.RecordBatch.from_arrays([*typed.columns, json], schema=schema)


def _once_float(layout: SidecarLayout) -> frozenset[str]:
    """The bounds of doubles that were floats."""
    widened = [column for column in layout.statistics if column.wanted.was_float]
    names = [name for column in widened for name in (column.min_column, column.max_column)]
    return frozenset(name for name in names if name is not None)


def _typed_from_json(rows: pa.Table, layout: SidecarLayout) -> pa.Table:
    """The statistics of these rows, read from the JSON; other columns are null."""
    columns = {RAW_PATH: rows.column("path"), "stats": rows.column(JSON_COLUMN)}
    table = pa.table(columns).combine_chunks()
    batches = table.to_batches()
    typed = [typed_rows(batch, layout) for batch in batches]
    return pa.Table.from_batches(typed, layout.schema)


def _totals_problems(manifest: Manifest, files: int, total_bytes: int) -> Iterator[str]:
    binding = manifest.binding
    if manifest.num_files != files:
        yield f"it tells of {manifest.num_files:,} files, the log has {files:,}"
    if (binding.num_files, binding.total_bytes) != (files, total_bytes):
        bound = f"{binding.num_files:,} files of {binding.total_bytes:,} bytes"
        yield f"it is bound to {bound}, the log has {files:,} of {total_bytes:,}"
