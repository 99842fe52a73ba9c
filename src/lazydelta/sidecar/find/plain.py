"""The seeds' plain sidecar, `_delta_log/_sidecars/vN.parquet`: one file, columns by name, bound to nothing.

Why: tables that other pipelines wrote have it, and its statistics are typed.
Contract: it is used only where everything that is cheap to ask speaks for it: not written before the
checkpoint and its commit, as many rows as the checkpoint has adds, the same extremes of path, size and
modification time, and every partition value told exactly. What cannot be asked does not speak for it.
`DamagedSidecarError` says why not. Only footers are read.
Design: docs/adr/0013-plain-sidecars-prove-themselves.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.log.checkpoint import CheckpointReader
from lazydelta.log.file_rows import DELTA_FIELDS
from lazydelta.log.footer_bounds import leaf_positions
from lazydelta.log.parquet_part import ParquetPart
from lazydelta.log.segment import LogSegment
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.protocol.names import SIDECAR_FOLDER
from lazydelta.protocol.schema import StructType, arrow_type, table_schema
from lazydelta.sidecar.find.whole_build import footer_bytes
from lazydelta.sidecar.format.binding import bound_file
from lazydelta.sidecar.format.column_paths import Path, physical_leaves
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.folder import numbered_row_groups
from lazydelta.sidecar.format.footer_ranges import OrderColumn, footer_ranges
from lazydelta.sidecar.format.foreign_part import ForeignPart, all_may_be_nan, foreign_schema, plain_type
from lazydelta.sidecar.format.layout import FIXED_FIELDS, VECTOR_COLUMNS, SidecarLayout, layout_of
from lazydelta.sidecar.format.manifest import FORMAT, Binding, Manifest
from lazydelta.sidecar.format.tier_file import TierFile
from lazydelta.sidecar.read.reading import MetadataSource, MetadataTier
from lazydelta.storage import ObjectInfo, Storage

_NAME = re.compile(r"v(\d{1,20})\.parquet", re.ASCII)
_REQUIRED = ("path", "size", "modification_time")  # and compared with the checkpoint's
_ON_REQUEST = ("tags", "base_row_id", "default_row_commit_version", "clustering_provider")
_Extremes = tuple[object, object]


class _Plain(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The file, and what its columns stand for."""

    info: ObjectInfo
    footer: pq.FileMetaData
    found: pa.Schema
    layout: SidecarLayout
    roles: tuple[tuple[str, ...], ...]


def list_plain(storage: Storage) -> dict[int, ObjectInfo]:
    """The plain sidecars by version; checkpoints' own files in that folder sort before them."""
    found = {}
    for info in storage.list_from(SIDECAR_FOLDER, "v"):
        match = _NAME.fullmatch(info.name.rpartition("/")[2])
        if match is not None:
            found[int(match[1])] = info
    return found


def plain_source(
    storage: Storage,
    info: ObjectInfo,
    segment: LogSegment,
    checkpoint: CheckpointReader,
    *,
    protocol: Protocol,
    metadata: Metadata,
) -> MetadataSource:
    """The file as a sidecar of one part, once it has proven itself."""
    where = f"{storage.root}/{info.name}"
    if metadata.mapping_mode != "none":
        raise damaged("names of its columns may be logical or physical, and the table maps them", where)
    _check_age(info, segment, where)
    with closing(TierFile(storage, info.name, info.size_bytes)) as tier:
        footer = tier.metadata
        with tier.damage_named():
            found = footer.schema.to_arrow_schema()
    adds = checkpoint.add_files()
    if adds is None:
        raise damaged("the checkpoint keeps its files in JSON, which says nothing cheaply", where)
    _check_columns(found, adds, where)
    _check_rows(footer, adds, where)
    layout = _layout(metadata, found, storage.root)
    roles = (*_partition_roles(layout, found, where), *_statistics_roles(layout, found))
    plain = _Plain(info=info, footer=footer, found=found, layout=layout, roles=roles)
    absent = [name for name in _ON_REQUEST if not _has_fixed(found, name)]
    return MetadataSource(
        tier=MetadataTier.PLAIN,
        folder=SIDECAR_FOLDER,
        manifest=_manifest(storage, segment, plain, protocol=protocol, metadata=metadata),
        lacks=frozenset(name for name in absent if _may_have(adds, DELTA_FIELDS[name])),
    )


# --- the proof -----------------------------------------------------------------


def _check_age(info: ObjectInfo, segment: LogSegment, where: str) -> None:
    """A log that was restored or committed anew is younger than what was made from the one before."""
    assert segment.checkpoint is not None
    commit = [] if segment.checkpoint_commit is None else [segment.checkpoint_commit]
    for file in (*segment.checkpoint.files, *commit):
        if file.info.modified_ms > info.modified_ms:
            raise damaged(f"it is older than {file.parsed.name}, so perhaps of another log", where)


def _check_columns(found: pa.Schema, adds: Sequence[ParquetPart], where: str) -> None:
    for name in _REQUIRED:
        if not _has_fixed(found, name):
            raise damaged(f"it has no column {name!r} of the right type", where)
    has_vectors = all(_has_fixed(found, name) for name in VECTOR_COLUMNS)
    if not has_vectors and _may_have(adds, "deletionVector.storageType"):
        raise damaged("it tells no deletion vectors, and the checkpoint may have some", where)


def _check_rows(footer: pq.FileMetaData, adds: Sequence[ParquetPart], where: str) -> None:
    """As many rows as the checkpoint has adds, with the same extremes."""
    count = _add_count(adds)
    if count is None:
        raise damaged("the checkpoint does not tell how many files it has", where)
    if footer.num_rows != count:
        raise damaged(f"it has {footer.num_rows} files, the checkpoint {count}", where)
    for name in _REQUIRED if count else ():
        ours = _extremes(footer, name, needs_all=True)
        theirs = [_extremes(part.metadata, f"add.{DELTA_FIELDS[name]}") for part in adds]
        known = [one for one in theirs if one is not None]
        if ours is None or len(known) < len(adds):
            raise damaged(f"nothing tells whether its values of {name} are the checkpoint's", where)
        if ours != _joined(known):
            raise damaged(f"its values of {name} are not the checkpoint's", where)


def _add_count(adds: Sequence[ParquetPart]) -> int | None:
    total = 0
    for part in adds:
        for group in range(part.metadata.num_row_groups):
            nulls = part.null_count(group, "add.path")
            if nulls is None:
                return None
            total += part.metadata.row_group(group).num_rows - nulls
    return total


def _extremes(footer: pq.FileMetaData, leaf: str, *, needs_all: bool = False) -> _Extremes | None:
    """The least and the greatest value of a column; None where the footer does not tell.

    With `needs_all` some row without a value is as good as nothing told.
    """
    at = leaf_positions(footer).get(leaf)
    found: list[_Extremes] = []
    for group in (footer.row_group(index) for index in range(footer.num_row_groups)):
        told = None if at is None else group.column(at).statistics
        if told is None or not told.has_null_count or (needs_all and told.null_count):
            return None
        if told.null_count == group.num_rows:
            continue
        if not told.has_min_max:
            return None
        try:
            found.append((told.min, told.max))
        except (pa.ArrowException, ValueError):  # a text that was cut within a character
            return None
    return _joined(found) if found else None


def _joined(found: Sequence[_Extremes]) -> _Extremes:
    lows: list[Any] = [low for low, _ in found]  # Any: values of one column compare
    highs: list[Any] = [high for _, high in found]
    return min(lows), max(highs)


def _may_have(adds: Sequence[ParquetPart], field: str) -> bool:
    """Whether some file of the checkpoint may have this attribute of an add."""
    prefix = f"add.{field}"
    return any(
        part.may_have(group, leaf)
        for part in adds
        for leaf in part.leaves
        if leaf == prefix or leaf.startswith(f"{prefix}.")
        for group in range(part.metadata.num_row_groups)
    )


# --- its columns ---------------------------------------------------------------


def _has_fixed(found: pa.Schema, name: str) -> bool:
    """Whether the file has the column, in a type that holds the same values."""
    if found.get_field_index(name) < 0:
        return False
    have, wanted = plain_type(found.field(name).type), pa.schema(FIXED_FIELDS).field(name).type
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(have))
    return bool(have.equals(wanted))


def _layout(metadata: Metadata, found: pa.Schema, root: str) -> SidecarLayout:
    """What a part of the table would look like, with the statistics that the file has by their names."""
    schema = table_schema(metadata, root)
    names = set(found.names)
    paths = [
        path for dotted, path in _plain_paths(schema) if {f"min.{dotted}", f"null_count.{dotted}"} & names
    ]
    return layout_of(metadata, schema, stats_paths=paths, time_column=None)


def _plain_paths(schema: StructType) -> Iterator[tuple[str, Path]]:
    """Leaves whose dotted name can mean nothing else."""
    paths = [path for path, _ in physical_leaves(schema)]
    dotted = [".".join(path) for path in paths]
    for name, path in zip(dotted, paths, strict=True):
        is_plain = not any("." in one or "\\" in one for one in path)
        if is_plain and sum(name.lower() == other.lower() for other in dotted) == 1:
            yield name, path


def _partition_roles(layout: SidecarLayout, found: pa.Schema, where: str) -> Iterator[tuple[str, ...]]:
    """Partition columns must give back what the log says, or nobody can tell a partition from another."""
    for column in layout.partitions:
        name = column.physical_name
        have = plain_type(found.field(name).type) if found.get_field_index(name) >= 0 else pa.null()
        is_exact = pa.types.is_integer(have) or pa.types.is_date32(have) or pa.types.is_boolean(have)
        if column.column != name:
            raise damaged(f"its column {name!r} may be the partition column or its own", where)
        if pa.types.is_string(have):
            is_text = column.raw_column is None
            yield name, "partition" if is_text else "raw_partition", name
        elif is_exact and have.equals(arrow_type(column.type)):
            yield name, "partition", name
        else:
            raise damaged(f"it does not tell the partition column {name!r} as the log does", where)


def _statistics_roles(layout: SidecarLayout, found: pa.Schema) -> Iterator[tuple[str, ...]]:
    """Statistics in exactly the column's type; in another they say nothing."""
    for column in layout.statistics:
        dotted = ".".join(column.path)
        for kind, name in (
            ("min", column.min_column),
            ("max", column.max_column),
            ("null_count", column.null_count_column),
        ):
            if name != f"{kind}.{dotted}" or found.get_field_index(name) < 0:
                continue
            wanted = layout.schema.field(name).type
            if plain_type(found.field(name).type).equals(wanted):
                yield name, kind, *column.path


# --- its entry -----------------------------------------------------------------


def _manifest(
    storage: Storage, segment: LogSegment, plain: _Plain, *, protocol: Protocol, metadata: Metadata
) -> Manifest:
    assert segment.checkpoint is not None
    order = _order(plain)
    schema = foreign_schema(plain.found, plain.roles)
    told = footer_ranges(plain.footer, schema, order, all_may_be_nan(plain.footer, schema))
    part = ForeignPart(
        file=plain.info.name.rpartition("/")[2],
        build="",
        size_bytes=plain.info.size_bytes,
        footer_bytes=footer_bytes(plain.footer),
        schema_hash="",
        num_rows=plain.footer.num_rows,
        num_row_groups=plain.footer.num_row_groups,
        order_min=told.whole.min,
        order_max=told.whole.max,
        order_nulls=told.whole.nulls,
        bounds=told.bounds,
        roles=plain.roles,
    )
    has_rows = part.num_rows > 0
    checkpoint = tuple(bound_file(storage, file, with_head=False) for file in segment.checkpoint.files)
    return Manifest(
        format=FORMAT,
        version=segment.floor,
        sidecar_file=part.file,
        sidecar_size_bytes=part.size_bytes,
        num_row_groups=part.num_row_groups if has_rows else 0,
        num_files=part.num_rows,
        schema_hash="",
        row_groups=numbered_row_groups([told.row_groups]) if has_rows else (),
        table_id=metadata.id,
        build="",
        order_column=None,  # nobody promised an order of the rows
        order_type=None if order is None else order.type_name,
        parts=(part,) if has_rows else (),
        protocol=protocol,
        metadata=metadata,
        binding=Binding(commit=None, checkpoint=checkpoint, num_files=part.num_rows, total_bytes=0),
    )


def _order(plain: _Plain) -> OrderColumn | None:
    """The column that tells periods: which row groups come first, nothing more."""
    layout, named = plain.layout, {role[0] for role in plain.roles}
    low, high, path = layout.order_column, layout.order_max_column, layout.order_path
    if low is None or high is None or path is None or layout.order_type is None or not {low, high} <= named:
        return None
    is_partition = (low, "partition", *path) in plain.roles
    if low == high and not is_partition:  # the file has it as text
        return None
    return OrderColumn(path=path, type_name=layout.order_type, low=low, high=high, is_partition=is_partition)
