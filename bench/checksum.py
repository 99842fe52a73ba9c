"""Version checksum files (`.crc`) as Delta on Spark writes them for tables of many files.

Why: from the newest one a reader learns protocol and metadata without the checkpoint.
Contract: pure. For small tables Spark adds the list of all files, which is left out here.
Spec: PROTOCOL.md, "Version Checksum File".
"""

from __future__ import annotations

from bench.actions import txn_id
from bench.spec import TableSpec, compact, metadata, protocol
from bench.totals import FileTotals


def checksum(spec: TableSpec, version: int, totals: FileTotals) -> bytes:
    """The checksum of one version, given the sums at it."""
    counts = {"tableSizeBytes": totals.size_bytes, "numFiles": totals.files}
    if spec.has_dv:
        counts |= {"numDeletedRecordsOpt": totals.deleted_rows, "numDeletionVectorsOpt": totals.dv_count}
    body = {
        "txnId": txn_id(spec, version),
        **counts,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": metadata(spec),
        "protocol": protocol(spec),
        "fileSizeHistogram": totals.histogram(),
    }
    return compact(body).encode()
