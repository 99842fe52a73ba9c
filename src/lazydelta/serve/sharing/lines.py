"""Actions as lines of JSON, in both formats of the protocol.

Contract: one object a line, as PROTOCOL.md of Delta Sharing has it. In the delta format an action is as the
log has it, but for its path, and that of its deletion vector: both are links. Nothing
tells where a table lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from lazydelta.protocol.actions import DeletionVector, Metadata, Protocol
from lazydelta.serve.sharing.requests import DELTA

_ENCODER = msgspec.json.Encoder()
_Values = dict[str, str | None]


class AddAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An `add` of Delta's log."""

    path: str
    partition_values: _Values | None
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: _Values | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


class RemoveAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A `remove` of Delta's log."""

    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: _Values | None = None
    size: int | None = None
    stats: str | None = None
    tags: _Values | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


class CdcAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A `cdc` of Delta's log."""

    path: str
    partition_values: _Values
    size: int
    data_change: bool
    tags: _Values | None = None


class ParquetFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A file in the parquet format."""

    url: str
    id: str
    partition_values: _Values
    size: int
    stats: str | None = None
    version: int | None = None
    timestamp: int | None = None
    expiration_timestamp: int | None = None


class DeltaFileLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A file in the delta format."""

    id: str
    deletion_vector_file_id: str | None = None
    version: int | None = None
    timestamp: int | None = None
    expiration_timestamp: int | None = None
    delta_single_action: dict[str, AddAction | RemoveAction | CdcAction]


class EndStream(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What closes an answer."""

    refresh_token: str | None = None
    next_page_token: str | None = None
    min_url_expiration_timestamp: int | None = None
    error_message: str | None = None


def file_id(path: str) -> str:
    """The same for the same file, whoever asks."""
    return blake2b(path.encode(), digest_size=16).hexdigest()


def written(lines: Iterable[Any]) -> bytes:  # Any: what msgspec encodes
    """Lines of JSON."""
    return _ENCODER.encode_lines(list(lines))


def protocol_line(protocol: Protocol, form: str, *, version: int | None = None) -> bytes:
    """The protocol that the client must speak."""
    if form != DELTA:
        return written([{"protocol": {"minReaderVersion": 1}}])
    told = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    }
    return written([{"protocol": _without_none({"version": version, "deltaProtocol": _without_none(told)})}])


def metadata_line(
    metadata: Metadata,
    form: str,
    *,
    version: int | None = None,
    size: int | None = None,
    num_files: int | None = None,
) -> bytes:
    """The table's metadata, with what its version's checksum tells of its files."""
    own: dict[str, Any] = {  # Any: as JSON has it
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": metadata.format.provider},
        "schemaString": metadata.schema_string or '{"type":"struct","fields":[]}',
        "partitionColumns": metadata.partition_columns,
        "configuration": {key: value for key, value in metadata.configuration.items() if value is not None},
    }
    told = {"version": version, "size": size, "numFiles": num_files, "accessModes": ["url"]}
    if form == DELTA:
        own["format"]["options"] = metadata.format.options
        own["createdTime"] = metadata.created_time
        return written([{"metaData": _without_none(told | {"deltaMetadata": _without_none(own)})}])
    return written([{"metaData": _without_none(own | told)}])


def end_line(end: EndStream) -> bytes:
    """The last line."""
    return written([{"endStreamAction": end}])


def error_line(message: str) -> bytes:
    """The last line where an error comes after the first."""
    return end_line(EndStream(error_message=message))


def parquet_lines(kind: str, files: Sequence[ParquetFile]) -> bytes:
    """Files of a kind: `file`, `add`, `remove` or `cdf`."""
    return written([{kind: file} for file in files])


def delta_lines(files: Sequence[DeltaFileLine]) -> bytes:
    """Files with their actions."""
    return written([{"file": file} for file in files])


def _without_none(mapping: dict[str, Any]) -> dict[str, Any]:  # Any: as JSON has it
    return {key: value for key, value in mapping.items() if value is not None}
