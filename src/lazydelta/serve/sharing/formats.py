"""In which format a client can read a table: `parquet` for plain ones, `delta` for all that it can handle.

Contract: a table whose files do not tell all (deletion vectors, column mapping, other reader features) is
never answered in the parquet format, whose clients would read wrong rows; one that a client cannot handle is
refused by the features that are missing. Features that only readers of the log need do not concern clients.
Spec: PROTOCOL.md of Delta Sharing, "responseFormat", "readerFeatures".
"""

from __future__ import annotations

from lazydelta.errors import InvalidRequestError
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.serve.sharing.requests import CAPABILITIES_HEADER, DELTA, PARQUET, Capabilities

_OF_THE_LOG = frozenset({"v2checkpoint", "vacuumprotocolcheck", "catalogmanaged", "catalogowned-preview"})
_MAPPING = "columnmapping"


def choose_format(protocol: Protocol, metadata: Metadata, client: Capabilities) -> str:
    """`parquet` or `delta`; raises where the client reads the table in neither."""
    needed = features_needed(protocol, metadata)
    if PARQUET in client.formats and not needed:
        return PARQUET
    if DELTA not in client.formats:
        raise InvalidRequestError(
            f"the table has {', '.join(sorted(needed))}, which the parquet response format cannot tell",
            CAPABILITIES_HEADER,
            f"send {CAPABILITIES_HEADER}: responseformat=delta;readerfeatures={','.join(sorted(needed))}",
        )
    missing = sorted(needed - client.reader_features)
    if missing:
        raise InvalidRequestError(
            f"the table has {', '.join(missing)}, which the client does not say it can read",
            CAPABILITIES_HEADER,
            f"use a client that sends readerfeatures={','.join(sorted(needed))}",
        )
    return DELTA


def features_needed(protocol: Protocol, metadata: Metadata) -> frozenset[str]:
    """What a reader of the files must know of, in lower case."""
    named = frozenset(name.lower() for name in protocol.reader_features or ())
    if protocol.min_reader_version == 2:
        named |= {_MAPPING}
    if (metadata.configuration.get("delta.columnMapping.mode") or "none") == "none":
        named -= {_MAPPING}
    return named - _OF_THE_LOG
