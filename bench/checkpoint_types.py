"""The Parquet schema of checkpoints that Delta on Spark writes, as Arrow types.

Contract: pure. Column order, nesting and nullability were read off checkpoints of Delta 4.4 on Spark 4.2;
`tests/integration/test_generated_layout.py` compares them with new ones.
"""

from __future__ import annotations

import pyarrow as pa

from bench.spec import TableSpec

_STRINGS = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.field("element", pa.string()))
DV = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
        "maxRowIndex": pa.int64(),
    }
)
REMOVE = pa.struct(
    {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(),
        "partitionValues": _STRINGS,
        "size": pa.int64(),
        "deletionVector": DV,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    }
)
_BOUND_TYPES = {"device_id": pa.string(), "event_time": pa.timestamp("us"), "value": pa.float64()}
_TXN = pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()})
_FORMAT = pa.struct({"provider": pa.string(), "options": _STRINGS})
_METADATA = pa.struct(
    {
        "id": pa.string(),
        "name": pa.string(),
        "description": pa.string(),
        "format": _FORMAT,
        "schemaString": pa.string(),
        "partitionColumns": _LIST,
        "configuration": _STRINGS,
        "createdTime": pa.int64(),
    }
)
_PROTOCOL = pa.struct(
    {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": _LIST,
        "writerFeatures": _LIST,
    }
)
_DOMAIN = pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()})
_TAGGED_SIDECAR = pa.struct(
    {
        "path": pa.string(),
        "sizeInBytes": pa.int64(),
        "modificationTime": pa.int64(),
        "tags": _STRINGS,
        "sidecarType": pa.string(),
    }
)
# Delta 4.4 writes these empty columns into the top-level file.
_BACK_REFERENCE = pa.struct({"manifest": pa.string(), "pos": pa.int64()})
_TOP_ADD = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": _STRINGS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "tags": _STRINGS,
        "deletionVector": DV,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
        "clusteringProvider": pa.string(),
        "backReference": _BACK_REFERENCE,
        "amtPassthrough": pa.struct({"spec_id": pa.int32()}),
    }
)
_TOP_REMOVE = pa.struct(
    {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(),
        "partitionValues": _STRINGS,
        "size": pa.int64(),
        "tags": _STRINGS,
        "deletionVector": DV,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
        "stats": pa.string(),
        "backReference": _BACK_REFERENCE,
    }
)


def schema(spec: TableSpec) -> pa.Schema:
    """Columns of a V1 checkpoint."""
    others = {"metaData": _METADATA, "protocol": _PROTOCOL, "domainMetadata": _DOMAIN}
    return pa.schema({"txn": _TXN, "add": add_type(spec), "remove": REMOVE} | others)


def sidecar_schema(spec: TableSpec) -> pa.Schema:
    """Columns of a sidecar of a V2 checkpoint."""
    return pa.schema({"add": add_type(spec), "remove": REMOVE})


def top_level_schema() -> pa.Schema:
    """Columns of a V2 checkpoint's own file, which holds no file actions."""
    tagged = _TAGGED_SIDECAR
    about = pa.struct({"version": pa.int64(), "tags": _STRINGS})
    others = {"metaData": _METADATA, "protocol": _PROTOCOL, "domainMetadata": _DOMAIN}
    v2 = {"checkpointMetadata": about, "sidecar": tagged}
    return pa.schema({"txn": _TXN, "add": _TOP_ADD, "remove": _TOP_REMOVE} | others | v2)


def add_type(spec: TableSpec) -> pa.StructType:
    """The struct `add`, with the statistics the spec asks for."""
    fields = {
        "path": pa.string(),
        "partitionValues": _STRINGS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "tags": _STRINGS,
        "deletionVector": DV,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
        "clusteringProvider": pa.string(),
    }
    if spec.stats != "parsed":
        fields["stats"] = pa.string()
    if spec.stats != "json":
        if spec.partitioned:
            fields["partitionValues_parsed"] = partition_type(spec)
        fields["stats_parsed"] = stats_type(spec)
    return pa.struct(fields)


def stats_type(spec: TableSpec) -> pa.StructType:
    """`stats_parsed`."""
    bounds = pa.struct({name: _BOUND_TYPES.get(name, pa.int32()) for name in spec.stats_columns})
    nulls = pa.struct(dict.fromkeys(spec.stats_columns, pa.int64()))
    kind = {"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds, "nullCount": nulls}
    return pa.struct(kind | ({"tightBounds": pa.bool_()} if spec.has_dv else {}))


def partition_type(spec: TableSpec) -> pa.StructType:
    """`partitionValues_parsed`."""
    kinds = {"date": pa.date32(), "_event_hour": pa.string()}
    return pa.struct({name: kinds[name] for name in spec.partition_columns})
