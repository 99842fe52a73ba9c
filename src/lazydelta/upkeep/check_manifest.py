"""What a manifest says of itself, of the log and of its parts, as far as no part has to be opened for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from lazydelta.log.snapshot import Snapshot
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar.format.binding import foreign_reason
from lazydelta.sidecar.format.manifest import Manifest
from lazydelta.storage import Storage
from lazydelta.upkeep.inventory import Inventory, part_sizes


def check_manifest(
    storage: Storage, manifest: Manifest, inventory: Inventory, snapshot: Snapshot | None
) -> Iterator[str]:
    """Everything that is not true, in words. `snapshot` is of its version; None where the log lacks it."""
    foreign = foreign_reason(storage, manifest, inventory.log)
    if foreign is not None:
        yield f"it does not belong to this log: {foreign}"
    if snapshot is not None:
        yield from _state_problems(manifest, snapshot)
    yield from _sum_problems(manifest)
    yield from _row_group_problems(manifest)


def _state_problems(manifest: Manifest, snapshot: Snapshot) -> Iterator[str]:
    state = snapshot.state
    if manifest.table_id != state.metadata.id:
        yield f"it is of the table {manifest.table_id}, not {state.metadata.id}"
    if _protocol_meaning(manifest.protocol) != _protocol_meaning(state.protocol):
        yield "its protocol is not the one in force at its version"
    if _metadata_meaning(manifest.metadata) != _metadata_meaning(state.metadata):
        yield "its metadata is not the one in force at its version"


def _sum_problems(manifest: Manifest) -> Iterator[str]:
    parts = manifest.parts
    first = parts[0].file if parts else None
    for label, told, found in (
        ("sidecar_file", manifest.sidecar_file, first),
        ("sidecar_size_bytes", manifest.sidecar_size_bytes, sum(part_sizes(manifest).values())),
        ("num_row_groups", manifest.num_row_groups, sum(part.num_row_groups for part in parts)),
        ("num_files", manifest.num_files, sum(part.num_live for part in parts)),
    ):
        if told != found:
            yield f"{label} is {told!r}, its parts make it {found!r}"
    if len({part.file for part in parts}) < len(parts):
        yield "it names a part twice"


def _row_group_problems(manifest: Manifest) -> Iterator[str]:
    """Row groups, where they are listed, are all there, numbered in the order of the parts."""
    if not manifest.row_groups:
        return
    told = [(group.index, group.part) for group in manifest.row_groups]
    counts = Counter(group.part for group in manifest.row_groups)
    is_in_order = told == list(enumerate(sorted(group.part for group in manifest.row_groups)))
    if not is_in_order or any(counts[at] != part.num_row_groups for at, part in enumerate(manifest.parts)):
        yield "its row groups are not those of its parts in their order"


def _protocol_meaning(protocol: Protocol) -> tuple[object, ...]:
    features = (frozenset(protocol.reader_features or ()), frozenset(protocol.writer_features or ()))
    return (protocol.min_reader_version, protocol.min_writer_version, *features)


def _metadata_meaning(metadata: Metadata) -> tuple[object, ...]:
    try:
        schema = msgspec.json.decode(metadata.schema_string or "null")
    except msgspec.DecodeError:
        schema = metadata.schema_string
    return (metadata.id, schema, metadata.partition_columns, metadata.configuration)
