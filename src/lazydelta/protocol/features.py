"""Table features: what this reader honours, and the error for what it does not.

Contract: unknown reader features are an error that names them; unknown writer features are ignored.
Catalog-managed tables are refused: their newest commits are known to the catalog alone.
Spec: PROTOCOL.md, "Table Features".
"""

from __future__ import annotations

from lazydelta.errors import UnsupportedTableError
from lazydelta.protocol.actions import Metadata, Protocol

READER_VERSION_MAX = 3
# Reader features that change which files are live or how they are described are implemented; the others
# here concern rows alone and leave the list of files as it is.
READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding-preview",
    }
)
CATALOG_FEATURES = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})


def check_readable(protocol: Protocol, where: str) -> None:
    """Raise unless this reader can honour everything the table asks of its readers."""
    if protocol.min_reader_version > READER_VERSION_MAX:
        raise UnsupportedTableError(
            f"the table needs reader version {protocol.min_reader_version}, "
            f"this reader knows {READER_VERSION_MAX}",
            where,
            "use a newer lazydelta",
        )
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version < READER_VERSION_MAX and features:
        raise UnsupportedTableError(
            f"the protocol lists reader features ({', '.join(sorted(features))}) "
            f"but reader version {protocol.min_reader_version}, which has none",
            where,
            "repair the table's protocol action",
        )
    managed = (features | set(protocol.writer_features or ())) & CATALOG_FEATURES
    if managed:
        raise UnsupportedTableError(
            f"the table is managed by a catalog (feature {', '.join(sorted(managed))}): "
            "its log alone does not say which version is the newest",
            where,
            "read it through its catalog, or drop the feature",
        )
    unknown = sorted(features - READER_FEATURES)
    if unknown:
        raise UnsupportedTableError(
            f"the table needs the reader feature{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}, "
            "which this reader does not have",
            where,
            "use a newer lazydelta, or drop the feature from the table",
        )


def has_in_commit_timestamps(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether commits carry their own time (PROTOCOL.md, "In-Commit Timestamps")."""
    enabled = (metadata.configuration.get("delta.enableInCommitTimestamps") or "").lower() == "true"
    return enabled and "inCommitTimestamp" in (protocol.writer_features or ())
