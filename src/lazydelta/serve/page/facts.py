"""What is known of a table without its file list: schema, features, properties, counts, its sidecar."""

from __future__ import annotations

from typing import Any

from lazydelta.protocol.schema import table_schema, type_text
from lazydelta.redaction import redacted
from lazydelta.serve.concealment import concealed
from lazydelta.serve.config import ServedTable
from lazydelta.sidecar.read.reading import MetadataSource
from lazydelta.table import Table

Told = dict[str, Any]  # Any: as JSON has it


def table_facts(served: ServedTable, table: Table) -> Told:
    """For the page: no addresses."""
    info = table.info()
    provider = table.scan().source.sidecar
    found = None if provider is None else provider.discover()
    return {
        "name": served.name,
        "comment": served.comment,
        "version": info.version,
        "id": info.id,
        "title": info.name,
        "description": info.description,
        "columns": [
            {"name": field.name, "type": type_text(field.type), "is_nullable": field.nullable}
            for field in table_schema(table.metadata, served.name).fields
        ],
        "partition_columns": info.partition_columns,
        "properties": {key: redacted(str(value)) for key, value in sorted(info.configuration.items())},
        "reader_version": info.reader_version,
        "writer_version": info.writer_version,
        "reader_features": info.reader_features,
        "writer_features": info.writer_features,
        "checkpoint_version": info.checkpoint_version,
        "checkpoint_bytes": info.checkpoint_bytes,
        "commits_since_checkpoint": info.commits_since_checkpoint,
        "tail_bytes": info.tail_bytes,
        "num_files": info.num_files,
        "size_bytes": info.size_bytes,
        "sidecar": None if found is None or found.source is None else _sidecar(found.source),
        "sidecar_reason": "sidecars are not used" if found is None else concealed(found.reason, [served]),
    }


def _sidecar(source: MetadataSource) -> Told:
    manifest = source.manifest
    return {
        "version": source.version,
        "tier": source.tier.value,
        "parts": len(manifest.parts),
        "row_groups": manifest.num_row_groups,
        "files": manifest.num_files,
        "bytes": manifest.sidecar_size_bytes,
        "order_column": manifest.order_column,
    }
