"""The public face: open a table, scan it, ask what was done.

Contract: `open` pins one version; everything a `Table` gives belongs to that version. Nothing of the file
list is read before a scan is pulled.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec
import numpy.ma  # noqa: F401 - Arrow asks for it at the first conversion; paid here, not by the first query
import pyarrow as pa

from lazydelta.arrow_pool import prefer_lean_pool
from lazydelta.errors import InvalidRequestError
from lazydelta.log.history import CommitRecord, commit_records
from lazydelta.log.snapshot import Snapshot, open_snapshot
from lazydelta.log.time_travel import version_at
from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.protocol.schema import arrow_schema
from lazydelta.rows.page_series import PageSettings
from lazydelta.rows.source import RowSource
from lazydelta.scan import DeltaFile, LazyScanConfig, ScanReport, ScanStrategy
from lazydelta.scan.cache import PROCESS_CACHE, Owner
from lazydelta.scan.cached_opening import RememberingProvider, open_cached
from lazydelta.scan.config import ScanOrder, check_number
from lazydelta.scan.file_stats import look_up_stats
from lazydelta.scan.table_memory import TableMemory
from lazydelta.settings import Settings, build_settings, process_environment
from lazydelta.sidecar.find.discover import SidecarAwareProvider
from lazydelta.sidecar.format.memory import TakenOnce
from lazydelta.sidecar.format.names import sidecar_folder
from lazydelta.sidecar.read.reading import SidecarReading
from lazydelta.storage import Deadline, Storage, access_digest, open_storage, split_credentials, until
from lazydelta.table_queries import TableQueries
from lazydelta.table_scan import Scan

if TYPE_CHECKING:
    from lazydelta.engines.dataset import LazyDataset

with suppress(ImportError):  # Arrow loads it with its first array: paid here, too
    import_module("pandas")

prefer_lean_pool(os.environ)


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a version without reading its file list."""

    url: str
    version: int
    id: str
    name: str | None
    description: str | None
    partition_columns: list[str]
    configuration: dict[str, str | None]
    reader_version: int
    writer_version: int
    reader_features: list[str]
    writer_features: list[str]
    checkpoint_version: int | None
    checkpoint_bytes: int | None
    commits_since_checkpoint: int
    tail_bytes: int
    num_files: int | None  # from the `.crc` of the version, where there is one
    size_bytes: int | None
    checkpoint_files: int | None  # from the hint, where it counts
    notes: list[str]


class Table(TableQueries):
    """One version of one Delta table."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: Settings,
        sidecar: SidecarAwareProvider | None = None,
        memory: TableMemory | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._sidecar = sidecar
        self._memory = memory
        self._settings = settings

    @property
    def url(self) -> str:
        """The table's canonical address."""
        return self._snapshot.storage.root

    @property
    def version(self) -> int:
        """The pinned version."""
        return self._snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow."""
        return arrow_schema(self._snapshot.schema)

    @property
    def protocol(self) -> Protocol:
        """What the table asks of readers and writers."""
        return self._snapshot.state.protocol

    @property
    def metadata(self) -> Metadata:
        """Identity, partition columns and configuration."""
        return self._snapshot.state.metadata

    def scan(
        self,
        where: Any = None,  # SQL text, mapping, list or expression
        *,
        limit: int | None = None,
        strategy: ScanStrategy | str | None = None,
        order: ScanOrder | str | None = None,
        config: LazyScanConfig | None = None,
        **overrides: Any,  # further fields of LazyScanConfig, checked by it
    ) -> Scan:
        """A scan of this version. Fields given here win over those of `config`.

        With `order` ("asc" or "desc") files come by the sidecar's time column, then by path.
        """
        if where is not None and overrides.get("predicate") is not None:
            fix = "give one of them; join two conditions by and"
            raise InvalidRequestError("where and predicate are both given", "scan()", fix)
        given = {"predicate": where, "limit": limit, "strategy": strategy, "order": order}
        changes = {name: value for name, value in given.items() if value is not None} | overrides
        base = config if config is not None else self._default_config()
        if not isinstance(base, LazyScanConfig):
            raise InvalidRequestError(f"config is {base!r}", "scan()", "give a LazyScanConfig")
        unknown = sorted(set(changes) - set(LazyScanConfig.__struct_fields__))
        if unknown:
            known = ", ".join(LazyScanConfig.__struct_fields__)
            raise InvalidRequestError(f"a scan has no option {unknown[0]!r}", "scan()", f"there are: {known}")
        source = self._source(msgspec.structs.replace(base, **changes))
        return Scan(source, PageSettings(at_version=self._at, signing_key=self._settings.page_signing_key))

    def file_infos(self, predicate: Any = None) -> Iterator[DeltaFile]:
        """The live files that might match the filter, lazily."""
        return self.scan(predicate).files()

    def to_pyarrow_dataset(self, partitions: Sequence[Any] | None = None) -> LazyDataset:
        """This version as a `pyarrow.dataset.Dataset`: columns and filters of its users reach the scan.

        `partitions`, here and below: conditions (column, operator, value), all of which hold.
        """
        from lazydelta.engines.dataset import LazyDataset

        settings = msgspec.structs.replace(self._settings, page_signing_key="")  # it goes to other processes
        reopen = partial(_source_of, self.url, self.version, settings)
        return LazyDataset(self._partitions(partitions), reopen=reopen)

    def to_arrow(
        self, columns: Sequence[str] | None = None, *, partitions: Sequence[Any] | None = None
    ) -> pa.Table:
        """The rows, in memory."""
        return Scan(self._partitions(partitions)).to_arrow(columns)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        *,
        partitions: Sequence[Any] | None = None,
        types_mapper: Any = None,
    ) -> Any:
        """The rows as a `pandas.DataFrame`; `types_mapper` as pyarrow's `to_pandas` takes it."""
        return Scan(self._partitions(partitions)).to_pandas(columns, types_mapper=types_mapper)

    def to_polars(
        self, columns: Sequence[str] | None = None, *, partitions: Sequence[Any] | None = None
    ) -> Any:
        """The rows as a `polars.LazyFrame`: what it filters and selects reaches the scan."""
        return Scan(self._partitions(partitions)).to_polars(columns)

    def get_stats_for_files(
        self, paths: Iterable[str | PurePath], stat_columns: Sequence[str]
    ) -> pa.RecordBatch:
        """The statistics of these files, one row for each path: min, max and null count of these columns.

        A path that is not live at this version has `live` false, and nulls. Paths are as `DeltaFile.path` has
        them, or the same below the table's address; any iterable of them will do, also a string array.
        """
        return look_up_stats(self._source(self._default_config()).files(), paths, stat_columns)

    def history(self, limit: int | None = None) -> Iterator[CommitRecord]:
        """The commits up to this version that are still there, newest first."""
        check_number("limit", limit, 0, where="history()")
        return commit_records(self._snapshot.storage, newest=self.version, limit=limit)

    def info(self) -> TableInfo:
        """What is known of this version without reading its file list."""
        segment, state = self._snapshot.segment, self._snapshot.state
        checkpoint, checksum, hint = segment.checkpoint, state.checksum, segment.hint
        return TableInfo(
            url=self.url,
            version=self.version,
            id=state.metadata.id,
            name=state.metadata.name,
            description=state.metadata.description,
            partition_columns=state.metadata.partition_columns,
            configuration=state.metadata.configuration,
            reader_version=state.protocol.min_reader_version,
            writer_version=state.protocol.min_writer_version,
            reader_features=state.protocol.reader_features or [],
            writer_features=state.protocol.writer_features or [],
            checkpoint_version=None if checkpoint is None else checkpoint.version,
            checkpoint_bytes=None if checkpoint is None else checkpoint.size_bytes,
            commits_since_checkpoint=len(segment.commits),
            tail_bytes=segment.tail_bytes,
            num_files=None if checksum is None else checksum.num_files,
            size_bytes=None if checksum is None else checksum.table_size_bytes,
            checkpoint_files=None if hint is None else hint.num_of_add_files,
            notes=[*(fallback.text for fallback in self._snapshot.fallbacks), *state.ignored],
        )

    def __repr__(self) -> str:
        return f"lazydelta.Table({self.url!r}, version={self.version})"

    def _at(self, version: int) -> RowSource:
        """The same table at another version."""
        other = _opened(self._snapshot.storage, self._settings, version=version)
        return other._source(self._default_config())

    def _source(self, config: LazyScanConfig) -> RowSource:
        return RowSource(self._snapshot, config, self._sidecar, self._memory)

    def _partitions(self, partitions: Sequence[Any] | None) -> RowSource:
        from lazydelta.engines.frames import within_partitions

        return within_partitions(self._source(self._default_config()), partitions)

    def _queried(self) -> RowSource:
        return self._source(self._default_config())

    def _default_config(self) -> LazyScanConfig:
        settings = self._settings
        return LazyScanConfig(
            batch_size=settings.batch_size,
            remove_set_memory_limit=settings.remove_set_memory_limit,
            commit_read_parallelism=settings.commit_read_parallelism,
            checkpoint_row_groups_per_batch=settings.checkpoint_row_groups_per_batch,
            scan_timeout_seconds=settings.scan_timeout_seconds,
        )


def open(  # noqa: A001 - `lazydelta.open` is the name users meet
    url: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Any = None,
    settings: Settings | None = None,
) -> Table:
    """Open a table, pinned to its newest version, to `version`, or to what was current at `timestamp`.

    `credential_provider` is asked for credentials, and again before they run out: a callable, a credential of
    azure-identity or a session of boto3 (docs/storage.md).
    """
    if not isinstance(url, str | os.PathLike) or not isinstance(os.fspath(url), str):
        raise InvalidRequestError(f"the address is {url!r}", "open()", "give a path or a URL as text")
    if version is not None and timestamp is not None:
        raise InvalidRequestError("version and timestamp are both given", "open()", "give one of them")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 0):
        raise InvalidRequestError(f"version is {version!r}", "open()", "give a whole number of at least 0")
    if not isinstance(settings, Settings | None):
        fix = "give options as storage_options={…}"  # type: ignore[unreachable]  # not for who checks no types
        raise InvalidRequestError(f"settings is a {type(settings).__name__}", "open()", fix)
    if settings is not None and storage_options:
        fix = "give one of them: settings hold storage options, too"
        raise InvalidRequestError("settings and storage_options are both given", "open()", fix)
    chosen = settings if settings is not None else build_settings(storage_options, environment=os.environ)
    if chosen.memory_bytes:
        PROCESS_MEMORY.limit_to(chosen.memory_bytes)
    if credential_provider is not None:
        chosen = msgspec.structs.replace(chosen, credential_provider=credential_provider)
    address, chosen = split_credentials(os.fspath(url), chosen)
    storage = open_storage(address, chosen)
    return _opened(storage, chosen, version=version, timestamp=timestamp)


DeltaTable = open


def _opened(
    storage: Storage,
    chosen: Settings,
    *,
    version: int | None,
    timestamp: dt.datetime | dt.date | str | None = None,
) -> Table:
    deadline = Deadline.after(chosen.scan_timeout_seconds, is_opening=True)
    opening = until(storage.scoped(), deadline)  # an account of its own, which each scan's report begins with
    parallelism = chosen.commit_read_parallelism
    if timestamp is not None:
        version = version_at(opening, timestamp, parallelism=parallelism)
    reading = SidecarReading(
        is_enabled=chosen.sidecar_enabled,
        folder=sidecar_folder(chosen.sidecar_directory),
        row_groups_per_batch=chosen.sidecar_row_groups_per_batch,
    )
    if chosen.cache_bytes == 0:
        sidecar = SidecarAwareProvider(opening, reading, TakenOnce())
        snapshot = open_snapshot(opening, version=version, parallelism=parallelism, companion=sidecar)
        sidecar.opened(snapshot.state.metadata)
        deadline.lift()
        return Table(msgspec.structs.replace(snapshot, storage=storage), chosen, sidecar)
    memory = TableMemory(
        PROCESS_CACHE,
        Owner(storage.root, access_digest(chosen, process_environment())),
        budget_bytes=chosen.cache_bytes,
        max_staleness_seconds=chosen.max_staleness_seconds,
    )
    known = RememberingProvider(opening, reading, memory)
    snapshot = open_cached(opening, memory, known, version=version, parallelism=parallelism)
    deadline.lift()
    return Table(msgspec.structs.replace(snapshot, storage=storage), chosen, known, memory)


def _source_of(url: str, version: int, settings: Settings, config: LazyScanConfig) -> RowSource:
    """The version of a table, opened anew."""
    return open(url, version=version, settings=settings)._source(config)


class LazyDeltaScanner:
    """A table and a scan configuration in one, as the design documents spell it."""

    def __init__(
        self,
        table_url: str | os.PathLike[str],
        config: LazyScanConfig | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.table = open(table_url, storage_options=storage_options)
        self._scan = self.table.scan(config=config)

    def scan_files(self) -> Iterator[DeltaFile]:
        """Live files as they are found; stop pulling to stop reading."""
        return self._scan.files()

    def explain(self) -> ScanReport:
        """What the latest run read and skipped, and why."""
        return self._scan.explain()
