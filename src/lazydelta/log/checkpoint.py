"""A checkpoint as a stream of add rows, last row group first, and as the place of protocol and metadata.

V1 (one file or many parts) and V2 (a top-level file, Parquet or JSON, that names sidecar files) look the
same from outside; V2 is recognised by content, not by name. Removes in a checkpoint are tombstones for
VACUUM and mask nothing: they are never read.
Spec: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TypeVar
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.log.file_rows import (
    DELTA_FIELDS,
    STATS_PARSED,
    Batches,
    RowFilter,
    rows_from_adds,
    rows_from_struct,
)
from lazydelta.log.footer_bounds import chunk_bounds
from lazydelta.log.lines import ACTION_DECODER, decoded_lines
from lazydelta.log.parquet_part import DamagedCheckpointError, ParquetPart, checkpoint_vanished
from lazydelta.log.prefetch import prefetch
from lazydelta.log.segment import CheckpointFiles
from lazydelta.memory_share import MemoryShare
from lazydelta.protocol.actions import ActionLine, CheckpointMetadata, Metadata, Protocol, SidecarFile
from lazydelta.protocol.names import SIDECAR_FOLDER
from lazydelta.storage import ObjectNotFoundError, Storage
from lazydelta.storage.worker_threads import WorkerThreads

# Row groups of a part that may hold a match, given the part; the rest are skipped unread.
RowGroupFilter = Callable[[ParquetPart], Sequence[int]]
Action = TypeVar("Action", Protocol, Metadata, SidecarFile, CheckpointMetadata)
_PROTOCOL_LEAF = "protocol.minReaderVersion"
_METADATA_LEAF = "metaData.id"
_VERSION_LEAF = "checkpointMetadata.version"
_CHECKPOINT_METADATA = msgspec.json.Decoder(CheckpointMetadata)


class RowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a checkpoint, and what of them."""

    columns: tuple[str, ...]
    stats_paths: tuple[tuple[str, ...], ...] = ()  # physical paths whose typed statistics are wanted
    takes_json_stats: bool = True  # where there are no typed ones; off where they are not worth their bytes
    keep_row_groups: RowGroupFilter | None = None
    keep_rows: RowFilter | None = None
    batch_rows: int = limits.BATCH_ROWS
    row_groups_per_batch: int = limits.CHECKPOINT_ROW_GROUPS_PER_BATCH
    read_ahead: bool = True  # off where a limit may stop the scan after a few rows


class CheckpointReader:
    """One checkpoint, opened lazily. `row_groups_read` and `row_groups_skipped` count as it goes."""

    def __init__(self, storage: Storage, files: CheckpointFiles, share: MemoryShare | None = None) -> None:
        self.version = files.version
        self.row_groups_read = 0
        self.row_groups_skipped = 0
        self._storage = storage
        self._share = share
        self._files = files
        self._json_lines: list[ActionLine] | None = None
        self._has_embedded_adds = False
        self._top = [
            ParquetPart(storage, file.name, file.info.size_bytes, share)
            for file in files.files
            if not file.parsed.is_json
        ]
        self._sidecars: list[ParquetPart] | None = None

    def state(self) -> tuple[Protocol | None, Metadata | None]:
        """Protocol and metadata, from the few row groups that hold them."""
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        self._open_footers()
        self._check_version()
        for line in self._json_actions():
            protocol, metadata = line.protocol or protocol, line.meta_data or metadata
        for part in self._top:
            if protocol is None:
                protocol = _single(part, "protocol", _PROTOCOL_LEAF, Protocol)
            if metadata is None:
                metadata = _single(part, "metaData", _METADATA_LEAF, Metadata)
            if protocol is not None and metadata is not None:
                break
        return protocol, metadata

    def rows(self, request: RowRequest) -> Batches:
        """The add rows, last row group first, projected; `path` canonical."""
        for part in reversed([*self._top, *self._sidecar_parts()]):
            yield from self._part_rows(part, request)
        yield from self._embedded_rows(request)

    @property
    def file_count(self) -> int:
        """Of how many files it consists."""
        return len(self._files.files) + len(self._sidecar_parts())

    def add_count(self) -> int:
        """How many files it lists: told by the footers, or counted where they do not say."""
        counts = [_add_count(part) for part in (*self._top, *self._sidecar_parts())]
        known = [count for count in counts if count is not None]
        if len(known) == len(counts) and not self._has_embedded_adds:
            return sum(known)
        with closing(self.rows(RowRequest(columns=("path",)))) as stream:
            return sum(rows.num_rows for rows in stream)

    def add_files(self) -> list[ParquetPart] | None:
        """The Parquet files that hold its adds; None where JSON holds some of them."""
        # The top-level file of a V2 checkpoint has the column, but no add in it.
        parts = [part for part in (*self._top, *self._sidecar_parts()) if _add_count(part) != 0]
        return None if self._has_embedded_adds else parts

    def statistics_paths(self) -> list[tuple[str, ...]]:
        """Physical paths of the columns that files of the checkpoint have typed statistics of.

        Of many files some are looked at: one writer wrote them all, by one schema.
        """
        found: dict[tuple[str, ...], None] = {}
        parts = [*self._top, *self._sidecar_parts()]
        for part in parts[: limits.CHECKPOINT_FOOTERS_MAX]:
            found.update(dict.fromkeys(_typed_paths(part)))
        return list(found)

    def close(self) -> None:
        """Stop reads and drop buffers."""
        for part in [*self._top, *(self._sidecars or ())]:
            part.close()

    def _check_version(self) -> None:
        """A V2 checkpoint names its version: under another's name it would be another version's files."""
        told = [*_versions_in_lines(self._json_actions(), self._files.name)]
        for part in self._top:
            told.extend(_versions_in_part(part))
        other = next((version for version in told if version != self.version), None)
        if other is not None:
            where = f"{self._storage.root}/{self._files.name}"
            raise DamagedCheckpointError(
                f"the checkpoint of version {self.version} says that it is of version {other}",
                where,
                "restore it, or delete it if older commits or another checkpoint are still there",
            )

    def _open_footers(self) -> None:
        """Read the footers of all parts side by side: any of them may hold what is looked for."""
        if len(self._top) > 1:
            with WorkerThreads(limits.COMMIT_PARALLELISM, "lazydelta-footer") as pool:
                list(pool.map(lambda part: part.metadata, self._top))

    def _part_rows(self, part: ParquetPart, request: RowRequest) -> Batches:
        _check_shape(part, is_alone=self._top == [part])
        # By path or size: an add that has only one of them is damage, and is met when its rows are read.
        groups = range(part.metadata.num_row_groups)
        all_groups = [g for g in groups if part.may_have(g, "add.path") or part.may_have(g, "add.size")]
        kept = all_groups if request.keep_row_groups is None else request.keep_row_groups(part)
        wanted = sorted(set(all_groups) & set(kept), reverse=True)
        self.row_groups_skipped += part.metadata.num_row_groups - len(wanted)
        for start in range(0, len(wanted), request.row_groups_per_batch):
            bunch = wanted[start : start + request.row_groups_per_batch]
            self.row_groups_read += len(bunch)
            columns = _columns(part, request)
            leaves = _leaves(part, bunch, columns=columns, stats_paths=request.stats_paths)
            stream = part.batches(bunch, leaves, request.batch_rows, read_ahead=request.read_ahead)
            with closing(prefetch(stream) if request.read_ahead else stream) as batches:
                for batch in batches:
                    adds = part.column(batch, "add")
                    with part.damage_named():
                        rows = rows_from_struct(adds, columns, self._storage.root, request.keep_rows)
                    if rows.num_rows:
                        yield rows

    def _sidecar_parts(self) -> list[ParquetPart]:
        if self._sidecars is None:
            self._check_version()
            found = [line.sidecar for line in self._json_actions() if line.sidecar is not None]
            for part in self._top:
                found.extend(_sidecar_actions(part))
            parts = [self._sidecar_part(sidecar) for sidecar in found]
            _check_sidecars(parts)
            self._sidecars = parts
        return self._sidecars

    def _sidecar_part(self, sidecar: SidecarFile) -> ParquetPart:
        # Sidecars lie in one folder; writers may give the bare name or a whole URI.
        base_name = unquote(sidecar.path.rpartition("/")[2])
        name = f"{SIDECAR_FOLDER}/{base_name}"
        return ParquetPart(self._storage, name, sidecar.size_in_bytes, self._share)

    def _json_actions(self) -> list[ActionLine]:
        """The actions of a JSON top-level file that are used; of the others there may be millions."""
        if self._json_lines is None:
            self._json_lines = []
            for lines in self._json_slices():
                self._has_embedded_adds |= any(line.add is not None for line in lines)
                self._json_lines.extend(line for line in lines if _is_used(line))
        return self._json_lines

    def _embedded_rows(self, request: RowRequest) -> Batches:
        """Files that a writer put into the JSON itself; read again, a slice at a time."""
        _ = self._json_actions()
        if not self._has_embedded_adds:
            return
        columns = request.columns
        if request.stats_paths and "stats" not in columns:
            columns = (*columns, "stats")
        for lines in self._json_slices():
            adds = [line.add for line in lines if line.add is not None]
            try:
                rows = rows_from_adds(adds, columns, self._storage.root)
            except (OverflowError, pa.ArrowInvalid) as damage:
                told = f"the checkpoint has a number that fits no column: {damage}"
                raise DamagedCheckpointError(told, self._files.name, "restore it") from damage
            if request.keep_rows is not None:
                rows = rows.filter(pa.array(request.keep_rows(rows, None)))
            if rows.num_rows:
                yield rows

    def _json_slices(self) -> Iterator[list[ActionLine]]:
        for file in self._files.files:
            if not file.parsed.is_json:
                continue
            where = f"{self._storage.root}/{file.name}"
            chunks = self._storage.get_stream(file.name, limits.COMMIT_CHUNK_BYTES)
            try:
                for _, lines in decoded_lines(chunks, ACTION_DECODER, where):
                    yield lines
            except ObjectNotFoundError as gone:
                raise checkpoint_vanished(where) from gone
            except CorruptLogError as damage:
                raise DamagedCheckpointError(damage.what, damage.where, damage.fix) from damage


def _is_used(line: ActionLine) -> bool:
    """Whether it tells of the table or of the checkpoint itself."""
    is_of_table = line.protocol is not None or line.meta_data is not None
    return is_of_table or line.sidecar is not None or isinstance(line.checkpoint_metadata, msgspec.Raw)


def _check_shape(part: ParquetPart, *, is_alone: bool) -> None:
    """A file without rows or without adds is damage: even an empty table has protocol and metadata."""
    if is_alone and part.metadata.num_rows == 0:
        raise part.damaged("it has no rows")
    if not part.has("add.path") and not part.has("sidecar.path"):
        raise part.damaged("it has no add.path column")


def _columns(part: ParquetPart, request: RowRequest) -> tuple[str, ...]:
    """The request's columns, and the statistics in the form this part has them: typed before JSON."""
    if not request.stats_paths:
        return request.columns
    form = STATS_PARSED if has_typed_statistics(part) else "stats"
    if form == "stats" and not request.takes_json_stats:
        return request.columns
    return request.columns if form in request.columns else (*request.columns, form)


def _leaves(
    part: ParquetPart,
    row_groups: Sequence[int],
    *,
    columns: Sequence[str],
    stats_paths: Sequence[tuple[str, ...]],
) -> list[str]:
    """The Parquet columns that answer the request in these row groups."""
    leaves = ["add.path"]
    for name in columns:
        field = f"add.{DELTA_FIELDS.get(name, name)}"
        if name == "deletion_vector":
            # By both of its names: where one alone is told the vector is damaged, and not none.
            names = (f"{field}.storageType", f"{field}.pathOrInlineDv")
            if any(part.may_have(group, name) for group in row_groups for name in names):
                leaves.append(field)
        elif name == STATS_PARSED:
            leaves.extend(_stats_leaves(part, stats_paths))
        elif name != "path" and part.has(field):
            leaves.append(field)
    return leaves


def has_typed_statistics(part: ParquetPart) -> bool:
    """Whether the file carries `stats_parsed` beside or instead of the JSON."""
    return part.has(f"add.{STATS_PARSED}.numRecords") or part.has(f"add.{STATS_PARSED}.minValues")


def _add_count(part: ParquetPart) -> int | None:
    """Rows of the part that are adds; None where its footer does not tell."""
    nulls = [part.null_count(group, "add.path") for group in range(part.metadata.num_row_groups)]
    known = [count for count in nulls if count is not None]
    return int(part.metadata.num_rows) - sum(known) if len(known) == len(nulls) else None


def _typed_paths(part: ParquetPart) -> Iterator[tuple[str, ...]]:
    schema = part.metadata.schema.to_arrow_schema()
    top = schema.field("add").type if "add" in schema.names else None
    for kind in ("minValues", "maxValues", "nullCount"):
        yield from _leaf_paths(_inside(_inside(top, STATS_PARSED), kind))


def _inside(parent: pa.DataType | None, name: str) -> pa.DataType | None:
    if parent is None or not pa.types.is_struct(parent) or parent.get_field_index(name) < 0:
        return None
    return parent.field(name).type


def _leaf_paths(parent: pa.DataType | None) -> Iterator[tuple[str, ...]]:
    for field in parent if parent is not None and pa.types.is_struct(parent) else ():
        if pa.types.is_struct(field.type):
            yield from ((field.name, *path) for path in _leaf_paths(field.type))
        else:
            yield (field.name,)


def _stats_leaves(part: ParquetPart, paths: Sequence[tuple[str, ...]]) -> list[str]:
    wanted = [f"add.{STATS_PARSED}.numRecords", f"add.{STATS_PARSED}.tightBounds"]
    for path in paths:
        dotted = ".".join(path)
        wanted.extend(
            f"add.{STATS_PARSED}.{kind}.{dotted}" for kind in ("minValues", "maxValues", "nullCount")
        )
    return [leaf for leaf in wanted if leaf in part.leaves]


def _single(part: ParquetPart, group: str, marker: str, wanted: type[Action]) -> Action | None:
    """The one action of this kind in a part, or None."""
    for row_group in range(part.metadata.num_row_groups):
        if not part.may_have(row_group, marker):
            continue
        for batch in part.batches([row_group], [group], limits.BATCH_ROWS):
            for value in _valid_values(part, part.column(batch, group)):
                return _converted(part, value, wanted)
    return None


def _valid_values(part: ParquetPart, column: pa.Array) -> list[dict[str, object]]:
    with part.damage_named():
        try:
            return list(column.filter(column.is_valid()).to_pylist(maps_as_pydicts="strict"))
        except KeyError as twice:
            raise part.damaged(f"a map has the key {twice} twice") from twice
        except (OverflowError, ValueError) as odd:  # a time that Python cannot hold, a field twice
            raise part.damaged(odd) from odd


def _converted(part: ParquetPart, value: dict[str, object], wanted: type[Action]) -> Action:
    """A row as an action; fields the writer left null take their defaults."""
    try:
        return msgspec.convert({name: field for name, field in value.items() if field is not None}, wanted)
    except msgspec.ValidationError as damage:
        raise part.damaged(damage) from damage


def _versions_in_lines(lines: Sequence[ActionLine], name: str) -> Iterator[int]:
    """What `checkpointMetadata` says in JSON."""
    for line in lines:
        if isinstance(line.checkpoint_metadata, msgspec.Raw):
            try:
                yield _CHECKPOINT_METADATA.decode(line.checkpoint_metadata).version
            except msgspec.DecodeError as damage:
                told = f"its checkpointMetadata is none: {damage}"
                raise DamagedCheckpointError(told, name, "restore it") from damage


def _versions_in_part(part: ParquetPart) -> Iterator[int]:
    """The same in Parquet: by the footer alone where it has bounds."""
    leaf = part.leaves.get(_VERSION_LEAF)
    if leaf is None:
        return
    with part.damage_named():
        bounds = [_integers(chunk_bounds(part.metadata, leaf, side)) for side in ("min", "max")]
    for row_group, told in enumerate(zip(*bounds, strict=True)):
        if not part.may_have(row_group, _VERSION_LEAF):
            continue
        if None not in told:
            yield from (bound for bound in told if bound is not None)
            continue
        for batch in part.batches([row_group], [_VERSION_LEAF], limits.BATCH_ROWS):
            for value in _valid_values(part, part.column(batch, "checkpointMetadata")):
                yield _converted(part, value, CheckpointMetadata).version


def _integers(bounds: pa.Array) -> list[int | None]:
    return list(bounds.to_pylist()) if pa.types.is_integer(bounds.type) else [None] * len(bounds)


def _check_sidecars(parts: Sequence[ParquetPart]) -> None:
    """What the checkpoint says of its sidecars can be."""
    seen: set[str] = set()
    for part in parts:
        if part.size_bytes < 0:
            raise part.damaged(f"it has {part.size_bytes:,} bytes by the checkpoint")
        if part.name in seen:
            raise part.damaged("the checkpoint names it twice")
        seen.add(part.name)


def _sidecar_actions(part: ParquetPart) -> Iterator[SidecarFile]:
    if not part.has("sidecar.path"):
        return
    for row_group in reversed(range(part.metadata.num_row_groups)):
        if part.may_have(row_group, "sidecar.path"):
            for batch in part.batches(
                [row_group], ["sidecar.path", "sidecar.sizeInBytes"], limits.BATCH_ROWS
            ):
                for value in _valid_values(part, part.column(batch, "sidecar")):
                    yield _converted(part, value, SidecarFile)
