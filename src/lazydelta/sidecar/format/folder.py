"""The sidecar's folder: what lies there, and the manifest, whose appearance is the commit.

Contract: manifests are put only if absent. One that does not decode, is of another format or contradicts
itself is `DamagedSidecarError`, with the reason; one that is not there stays `ObjectNotFoundError`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.log.bounded import get_small
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar.format.damage import DamagedSidecarError, damaged
from lazydelta.sidecar.format.layout import SidecarLayout
from lazydelta.sidecar.format.manifest import (
    FORMAT,
    Binding,
    Manifest,
    Part,
    RowGroup,
    decode_manifest,
    encode_manifest,
    format_of,
)
from lazydelta.sidecar.format.names import SidecarFileKind, SidecarName, manifest_name, parse_name
from lazydelta.storage import ObjectInfo, Storage


class ListedFile(msgspec.Struct, frozen=True):
    """A file of the sidecar as listed."""

    parsed: SidecarName
    info: ObjectInfo


class SidecarListing(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in the folder."""

    manifests: Mapping[int, ListedFile]  # by version, ascending
    parts: Mapping[str, ListedFile]  # by base name, both halves of a split part too
    deltas: tuple[ListedFile, ...]  # by the checkpoint's version, then by the last version in it
    temporary: tuple[ObjectInfo, ...]  # what a writer that was killed left behind
    strangers: tuple[ObjectInfo, ...]  # what is none of ours


def list_sidecars(storage: Storage, folder: str) -> SidecarListing:
    """One listing of the folder; an absent folder is empty."""
    infos = sorted(storage.list_from(folder), key=lambda info: info.name)
    ours: list[ListedFile] = []
    temporary, strangers = [], []
    for info in infos:
        name = info.name.rpartition("/")[2]
        parsed = parse_name(name)
        if parsed is not None:
            ours.append(ListedFile(parsed, info))
        elif name.startswith(".v") and name.endswith(".tmp"):
            temporary.append(info)
        else:
            strangers.append(info)
    of_kind = {kind: [f for f in ours if f.parsed.kind is kind] for kind in SidecarFileKind}
    return SidecarListing(
        manifests={file.parsed.version: file for file in of_kind[SidecarFileKind.MANIFEST]},
        parts={file.parsed.name: file for file in of_kind[SidecarFileKind.PART]},
        deltas=tuple(of_kind[SidecarFileKind.DELTA]),
        temporary=tuple(temporary),
        strangers=tuple(strangers),
    )


def read_manifest(storage: Storage, folder: str, version: int) -> Manifest:
    """The manifest of checkpoint `version`, checked for sense."""
    name = f"{folder}/{manifest_name(version)}"
    where = f"{storage.root}/{name}"
    try:
        body = get_small(storage, name, limits.MANIFEST_BYTES_MAX)
        found = format_of(body)
        if found != FORMAT:
            raise damaged(f"the manifest has format {found}, this reader knows {FORMAT}", where)
        manifest = decode_manifest(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as damage:
        raise damaged(f"the manifest cannot be read: {damage}", where) from damage
    except DamagedSidecarError:
        raise
    except CorruptLogError as damage:
        raise damaged(f"the manifest cannot be read: {damage.what}", where) from damage
    nonsense = _nonsense(manifest, version)
    if nonsense is not None:
        raise damaged(f"the manifest contradicts itself: {nonsense}", where)
    return manifest


def commit_manifest(storage: Storage, folder: str, manifest: Manifest) -> bool:
    """Put the manifest; False where another build was first."""
    return storage.put_if_absent(f"{folder}/{manifest_name(manifest.version)}", encode_manifest(manifest))


def assemble(
    *,
    version: int,
    build: str,
    layout: SidecarLayout,
    parts: Sequence[tuple[Part, Sequence[RowGroup]]],
    protocol: Protocol,
    metadata: Metadata,
    binding: Binding,
) -> Manifest:
    """The manifest of these parts, in this order; row groups are numbered anew, zone maps cut to size.

    A part whose row groups are not known (its manifest had too many to list) comes with none.
    """
    num_files = sum(part.num_live for part, _ in parts)
    assert num_files == binding.num_files, f"{num_files} live rows for {binding.num_files} files"
    entries = tuple(_with_zones_cut(part, zones_max=_zones_max(len(parts))) for part, _ in parts)
    num_row_groups = sum(part.num_row_groups for part in entries)
    row_groups = numbered_row_groups(groups for _, groups in parts)
    return Manifest(
        format=FORMAT,
        version=version,
        sidecar_file=entries[0].file if entries else None,
        sidecar_size_bytes=sum(part.size_bytes + part.stats_size_bytes for part in entries),
        num_row_groups=num_row_groups,
        num_files=num_files,
        schema_hash=layout.schema_hash,
        row_groups=row_groups if len(row_groups) == num_row_groups else (),
        table_id=metadata.id,
        build=build,
        order_column=layout.order_column,
        order_type=layout.order_type,
        parts=entries,
        protocol=protocol,
        metadata=metadata,
        binding=binding,
    )


def row_groups_by_part(manifest: Manifest) -> list[list[RowGroup]]:
    """The manifest's row groups for each of its parts; empty lists where it lists none."""
    found: list[list[RowGroup]] = [[] for _ in manifest.parts]
    for row_group in manifest.row_groups:
        found[row_group.part].append(row_group)
    return found


def row_group_places(manifest: Manifest) -> list[tuple[int, int]]:
    """Of each of the manifest's row groups: the place of its part, and its own place in there."""
    by_part = row_groups_by_part(manifest)
    return [(part, at) for part, groups in enumerate(by_part) for at in range(len(groups))]


def numbered_row_groups(of_parts: Iterable[Sequence[RowGroup]]) -> tuple[RowGroup, ...]:
    """Row groups counted over all parts; none where they are too many for a manifest."""
    flat = [(part, group) for part, groups in enumerate(of_parts) for group in groups]
    if len(flat) > limits.MANIFEST_ROW_GROUPS_MAX:
        return ()
    return tuple(
        msgspec.structs.replace(group, index=index, part=part) for index, (part, group) in enumerate(flat)
    )


def _zones_max(part_count: int) -> int:
    """Of columns; the first is the order column, without whose bounds every part would have to be opened."""
    wanted = limits.SIDECAR_ZONE_ENTRIES_MAX // max(part_count, 1)
    return max(1, min(limits.SIDECAR_ZONE_COLUMNS_MAX, wanted))


def _with_zones_cut(part: Part, *, zones_max: int) -> Part:
    """Bounds come with the most useful columns first, so the rest goes."""
    return msgspec.structs.replace(part, bounds=part.bounds[:zones_max])


def _nonsense(manifest: Manifest, version: int) -> str | None:
    if manifest.version != version:
        return f"it says version {manifest.version}"
    if manifest.num_files != sum(part.num_live for part in manifest.parts):
        return "its parts do not hold the number of files it tells"
    if len({part.file for part in manifest.parts}) < len(manifest.parts):
        return "it names a part twice"
    texts = (_part_nonsense(part) for part in manifest.parts)
    return next((text for text in texts if text is not None), None) or _row_group_nonsense(manifest)


def _row_group_nonsense(manifest: Manifest) -> str | None:
    """What would lead a reader out of a part; a range or count that is only wrong is for `sidecar verify`."""
    groups, parts = manifest.row_groups, manifest.parts
    if groups and len(groups) != manifest.num_row_groups:
        return "it lists some row groups but not all"
    if any(group.part >= len(parts) for group in groups):
        return "a row group belongs to no part"
    places = [(group.part, group.byte_offset) for group in groups]
    if places != sorted(places):  # which of its part's an entry is of is told by its place alone
        return "its row groups are not in the order of its parts"
    counts = Counter(group.part for group in groups)
    if groups and any(counts[at] != part.num_row_groups for at, part in enumerate(parts)):
        return "a part has not the row groups that are listed"
    if any(group.byte_offset + group.byte_length > parts[group.part].size_bytes for group in groups):
        return "a row group leaves its part"
    return None


def _part_nonsense(part: Part) -> str | None:
    names = [part.file] if part.stats_file is None else [part.file, part.stats_file]
    for name in names:
        parsed = parse_name(name)
        if parsed is None or parsed.kind is not SidecarFileKind.PART:
            return f"{name!r} is no part's name"
    return _size_nonsense(part) or _bounds_nonsense(part) or _removed_nonsense(part)


def _size_nonsense(part: Part) -> str | None:
    if part.footer_bytes > part.size_bytes or part.stats_footer_bytes > part.stats_size_bytes:
        return f"the footer of {part.file} is longer than the file"
    if not part.size_bytes or (part.stats_file is not None and not part.stats_size_bytes):
        return f"{part.file} is empty"
    return None


def _bounds_nonsense(part: Part) -> str | None:
    if part.num_row_groups > part.num_rows:
        return f"{part.file} has more row groups than rows"
    without = [part.order_nulls]
    without += [rows for zone in part.bounds for rows in (zone.rows_without_min, zone.rows_without_max)]
    if max(without) > part.num_rows:
        return f"more rows of {part.file} lack a bound than it has"
    if not all(zone.path for zone in part.bounds):
        return f"a bound of {part.file} is of no column"
    return None


def _removed_nonsense(part: Part) -> str | None:
    firsts, counts = part.removed[::2], part.removed[1::2]
    if len(firsts) != len(counts) or any(count < 1 for count in counts):
        return f"the removed rows of {part.file} make no ranges"
    ends = [0, *(first + count for first, count in zip(firsts, counts, strict=True))]
    if any(first < end for first, end in zip(firsts, ends, strict=False)) or ends[-1] > part.num_rows:
        return f"the removed rows of {part.file} overlap or leave it"
    return None
