"""The actions of a commit, as msgspec structs, and the rules that belong to single actions.

Contract: decoding a line keeps what readers need; fields that only writers use are not decoded at all.
`ActionLine.kinds` names every action the line holds, so that nothing unknown passes unseen. What comes by
the thousand is left out of garbage collection (`gc=False`): JSON has no cycles.
Spec: PROTOCOL.md, "Actions".
"""

from __future__ import annotations

from typing import Any

import msgspec

from lazydelta.errors import UnsupportedTableError

DV_STORAGE_TYPES = frozenset("uip")


class DeletionVector(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Where the deleted rows of a file are listed."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int = 0
    cardinality: int = 0
    offset: int | None = None

    @property
    def dv_id(self) -> str:
        """The part of a logical file's key that tells its deletion vectors apart."""
        return dv_id(self.storage_type, self.path_or_inline_dv, self.offset)


class Add(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A file that is part of the table."""

    path: str
    size: int
    partition_values: dict[str, str | None] | None = None
    modification_time: int | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


class Remove(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A file that is no longer part of the table: a tombstone."""

    path: str
    deletion_vector: DeletionVector | None = None
    partition_values: dict[str, str | None] | None = None  # writers may leave them out


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What readers and writers must be able to do."""

    min_reader_version: int
    min_writer_version: int = 1
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Format(msgspec.Struct, frozen=True):
    """The format of the data files."""

    provider: str = "parquet"
    options: dict[str, str | None] = {}


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Identity, schema and configuration of the table."""

    id: str = ""
    schema_string: str | None = None  # none: a table without columns
    partition_columns: list[str] = []
    name: str | None = None
    description: str | None = None
    format: Format = Format()
    configuration: dict[str, str | None] = {}
    created_time: int | None = None

    @property
    def mapping_mode(self) -> str:
        """How columns are found in data files: `none` (by their names), `name` or `id`."""
        return (self.configuration.get("delta.columnMapping.mode") or "none").lower()


class CommitInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Provenance of a commit. Writers put what they like here, so every field may hold anything."""

    timestamp: Any = None  # a writer's free text
    in_commit_timestamp: Any = None
    txn_id: Any = None
    operation: Any = None
    operation_parameters: Any = None
    operation_metrics: Any = None
    engine_info: Any = None
    user_name: Any = None


class SidecarFile(msgspec.Struct, frozen=True, rename="camel"):
    """A file that holds a V2 checkpoint's file actions (a checkpoint sidecar, not a stats sidecar)."""

    path: str
    size_in_bytes: int = 0
    modification_time: int = 0


class CheckpointMetadata(msgspec.Struct, frozen=True):
    """What a V2 checkpoint says of itself."""

    version: int


class ActionLine(msgspec.Struct, rename="camel", gc=False):
    """One line of a commit. Actions without effect on what readers see are kept raw."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    commit_info: CommitInfo | None = None
    sidecar: SidecarFile | None = None
    txn: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    cdc: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    domain_metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    checkpoint_metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class LastCheckpoint(msgspec.Struct, frozen=True, rename="camel"):
    """The hint in `_last_checkpoint`. It may be wrong: it counts only where the listing agrees."""

    version: int
    size: int | None = None
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None


class VersionChecksum(msgspec.Struct, frozen=True, rename="camel"):
    """What readers use of a `.crc` file."""

    metadata: Metadata | None = None
    protocol: Protocol | None = None
    txn_id: str | None = None
    num_files: int | None = None
    table_size_bytes: int | None = None


def dv_id(storage_type: str, path_or_inline_dv: str, offset: int | None) -> str:
    """`u…`, `i…` or `p…`, with `@offset` where there is one: offset 0 and no offset differ."""
    check_storage_type(storage_type, where=path_or_inline_dv)
    suffix = "" if offset is None else f"@{offset}"
    return f"{storage_type}{path_or_inline_dv}{suffix}"


def check_storage_type(storage_type: str, *, where: str) -> None:
    """Raise unless this reader knows the kind of deletion vector."""
    if storage_type not in DV_STORAGE_TYPES:
        raise UnsupportedTableError(
            f"a deletion vector has the unknown storage type {storage_type!r}", where, "use a newer lazydelta"
        )
