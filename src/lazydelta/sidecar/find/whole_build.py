"""The sidecar of a checkpoint whose manifest is missing: one complete build of parts, told by their footers.

Why: a writer may die between its last part and the manifest, or somebody may delete a manifest.
Contract: every part of the build is there, the parts agree on what they say of the build, none of them needs
a part of an earlier one, and their rows add up; otherwise `DamagedSidecarError` says what is wrong. The
footers are read side by side, and few are held at once: in memory a footer is ten times its length. What
comes out is a manifest like any other; its binding is yet to be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.protocol.schema import PrimitiveType, table_schema
from lazydelta.sidecar.format.column_paths import physical_leaves
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.folder import ListedFile, SidecarListing, numbered_row_groups
from lazydelta.sidecar.format.footer_ranges import FooterRanges, OrderColumn, footer_ranges
from lazydelta.sidecar.format.layout import field_kind, field_path
from lazydelta.sidecar.format.manifest import FORMAT, Manifest, Part
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.format.names import Tier
from lazydelta.sidecar.format.part_encoding import NAN_KEY
from lazydelta.sidecar.format.part_reader import facts_of
from lazydelta.sidecar.format.part_writer import PartFacts
from lazydelta.sidecar.format.sealed_file import SealedFile
from lazydelta.sidecar.format.tier_file import TierFile
from lazydelta.storage import Storage
from lazydelta.storage.worker_threads import WorkerThreads

_PARTS_MAX = 256  # of a build whose footers are all read
_AskState = Callable[[], tuple[Protocol, Metadata]]
_TRAILER_BYTES = 8  # after the footer: its length and Parquet's mark


class PartFiles(msgspec.Struct, frozen=True):
    """The files of one part: the second only where it is split."""

    index: ListedFile
    stats: ListedFile | None = None


class _Opened(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is kept of a part's footers."""

    files: PartFiles
    facts: PartFacts
    num_rows: int
    num_row_groups: int
    footer_bytes: int
    stats_footer_bytes: int
    order: OrderColumn | None
    ranges: FooterRanges


def builds_of(listing: SidecarListing, version: int) -> dict[str, list[ListedFile]]:
    """The part files of a version by their builds, the latest written first."""
    found: dict[str, list[ListedFile]] = {}
    for file in listing.parts.values():
        if file.parsed.version == version and file.parsed.build is not None:
            found.setdefault(file.parsed.build, []).append(file)
    latest = sorted(found, key=lambda build: max(file.info.modified_ms for file in found[build]))
    return {build: found[build] for build in reversed(latest)}


def manifest_of_build(
    storage: Storage,
    folder: str,
    files: Sequence[ListedFile],
    *,
    state: _AskState,
    memory: SidecarMemory,
) -> Manifest:
    """The manifest that the build would have.

    `state` tells protocol and metadata in force at its version; it is asked once a footer is there, so that
    both can be read side by side, and from several threads.
    """
    where = f"{storage.root}/{folder}"
    parts = _paired(files, where)
    open_part = partial(_opened, storage, folder, state=state, memory=memory, newest=len(parts) - 1)
    with WorkerThreads(limits.COMMIT_PARALLELISM, thread_name_prefix="lazydelta-footer") as pool:
        opened = list(pool.map(open_part, parts))
    _check_together(opened, where)
    protocol, metadata = state()
    return _manifest(opened, protocol=protocol, metadata=metadata)


def order_type(metadata: Metadata, path: Sequence[str], root: str) -> str | None:
    """Delta's name of a column's type, by its physical path."""
    leaves = dict(physical_leaves(table_schema(metadata, root)))
    field = leaves.get(tuple(path))
    return field.type.name if field is not None and isinstance(field.type, PrimitiveType) else None


def footer_bytes(footer: pq.FileMetaData) -> int:
    """From where the footer begins to the end of the file."""
    return int(footer.serialized_size) + _TRAILER_BYTES


def _paired(files: Sequence[ListedFile], where: str) -> list[PartFiles]:
    """The parts by number, each whole, none missing in between."""
    by_number: dict[int, dict[Tier | None, ListedFile]] = {}
    for file in files:
        assert file.parsed.number is not None
        by_number.setdefault(file.parsed.number, {})[file.parsed.tier] = file
    if len(by_number) > _PARTS_MAX:
        raise damaged(f"a build without a manifest has {len(by_number)} parts, too many to open all", where)
    if sorted(by_number) != list(range(len(by_number))):
        raise damaged("a build without a manifest lacks a part", where)
    parts = []
    for number, halves in sorted(by_number.items()):
        if set(halves) == {None}:
            parts.append(PartFiles(halves[None]))
        elif set(halves) == {Tier.INDEX, Tier.STATS}:
            parts.append(PartFiles(halves[Tier.INDEX], halves[Tier.STATS]))
        else:
            raise damaged(f"part {number} of a build without a manifest lacks a half", where)
    return parts


def _opened(
    storage: Storage, folder: str, files: PartFiles, *, state: _AskState, memory: SidecarMemory, newest: int
) -> _Opened:
    with closing(_tier(storage, folder, files.index)) as index:
        footer, facts = index.metadata, facts_of(index)
        with index.damage_named():
            nan_counts = msgspec.json.decode(index.keys.get(NAN_KEY, b"{}"), type=dict[str, list[int]])
        stats_bytes = 0 if files.stats is None else _stats_footer_bytes(storage, folder, files.stats, index)
        order = _order_of(facts.order_column, index.schema, state()[1], index.where)
        ranges = footer_ranges(footer, index.schema, order, nan_counts)
    size = footer_bytes(footer)
    # Most queries ask for the newest period, which the last part holds.
    is_ahead = files.index.parsed.number == newest and size <= limits.SIDECAR_FOOTERS_AHEAD_BYTES
    memory.keep_footer(index.name, footer, size, is_ahead=is_ahead)
    return _Opened(
        files=files,
        facts=facts,
        num_rows=footer.num_rows,
        num_row_groups=footer.num_row_groups,
        footer_bytes=size,
        stats_footer_bytes=stats_bytes,
        order=order,
        ranges=ranges,
    )


def _stats_footer_bytes(storage: Storage, folder: str, file: ListedFile, index: TierFile) -> int:
    """The length of the other half's footer, once both are known to belong together."""
    with closing(_tier(storage, folder, file)) as stats:
        is_same = _row_counts(stats.metadata) == _row_counts(index.metadata)
        if not is_same or facts_of(stats) != facts_of(index):
            raise damaged("the halves of a part do not belong together", stats.where)
        return footer_bytes(stats.metadata)


def _tier(storage: Storage, folder: str, file: ListedFile) -> TierFile:
    return SealedFile(storage, f"{folder}/{file.parsed.name}", file.info.size_bytes)


def _row_counts(footer: pq.FileMetaData) -> list[int]:
    return [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]


def _check_together(opened: Sequence[_Opened], where: str) -> None:
    """Whether the parts are all of one build, and the build holds every file."""
    first = opened[0].facts
    for number, one in enumerate(opened):
        facts, name = one.facts, one.files.index.parsed
        if (facts.version, facts.build, facts.number) != (name.version, name.build, number):
            raise damaged(f"{name.name} says that it is another part", where)
        if msgspec.structs.replace(facts, number=0) != msgspec.structs.replace(first, number=0):
            raise damaged("the parts of a build without a manifest do not agree", where)
    if not first.is_whole_build:
        raise damaged("a build without a manifest needs parts of earlier builds", where)
    # More parts than planned are left by tasks that ran twice: which of them count only the manifest knew.
    if first.parts != len(opened):
        raise damaged(f"a build without a manifest has {len(opened)} parts, not {first.parts}", where)
    rows = sum(one.num_rows for one in opened)
    if rows != first.num_files or rows != first.binding.num_files:
        raise damaged(f"a build without a manifest holds {rows} of {first.num_files} files", where)


def _order_of(name: str | None, schema: pa.Schema, metadata: Metadata, where: str) -> OrderColumn | None:
    if name is None:
        return None
    if name not in schema.names:
        raise damaged(f"a part has not the column {name!r} that it is sorted by", where)
    path, kind = field_path(schema.field(name)), field_kind(schema.field(name))
    type_name = None if path is None else order_type(metadata, path, where)
    if path is None or type_name is None:
        return None
    if kind == "partition":
        return OrderColumn(path=path, type_name=type_name, low=name, high=name, is_partition=True)
    highs = [one.name for one in schema if field_kind(one) == "max" and field_path(one) == path]
    if kind != "min" or len(highs) != 1:
        return None
    return OrderColumn(path=path, type_name=type_name, low=name, high=highs[0], is_partition=False)


def _manifest(opened: Sequence[_Opened], *, protocol: Protocol, metadata: Metadata) -> Manifest:
    facts, order = opened[0].facts, opened[0].order
    parts = tuple(_part(one) for one in opened)
    return Manifest(
        format=FORMAT,
        version=facts.version,
        sidecar_file=parts[0].file,
        sidecar_size_bytes=sum(part.size_bytes + part.stats_size_bytes for part in parts),
        num_row_groups=sum(part.num_row_groups for part in parts),
        num_files=facts.num_files,
        schema_hash=facts.schema_hash,
        row_groups=numbered_row_groups(one.ranges.row_groups for one in opened),
        table_id=facts.table_id,
        build=facts.build,
        order_column=facts.order_column,
        order_type=None if order is None else order.type_name,
        parts=parts,
        protocol=protocol,
        metadata=metadata,
        binding=facts.binding,
    )


def _part(one: _Opened) -> Part:
    stats, told = one.files.stats, one.ranges
    return Part(
        file=one.files.index.parsed.name,
        build=one.facts.build,
        size_bytes=one.files.index.info.size_bytes,
        footer_bytes=one.footer_bytes,
        schema_hash=one.facts.schema_hash,
        num_rows=one.num_rows,
        num_row_groups=one.num_row_groups,
        order_min=told.whole.min,
        order_max=told.whole.max,
        order_nulls=told.whole.nulls,
        bounds=told.bounds,
        stats_file=None if stats is None else stats.parsed.name,
        stats_size_bytes=0 if stats is None else stats.info.size_bytes,
        stats_footer_bytes=one.stats_footer_bytes,
    )
