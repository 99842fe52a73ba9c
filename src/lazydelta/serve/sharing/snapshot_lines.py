"""Rows of live files as lines, in the format that the client reads.

Contract: rows as scans give them. In the delta format partition values go by physical names, as in the log,
and a deletion vector in a file of its own is told by a link (storage type `p`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lazydelta.errors import UnsupportedTableError
from lazydelta.protocol.actions import DeletionVector
from lazydelta.scan.values import values_of
from lazydelta.serve.file_links import FileLinks
from lazydelta.serve.sharing import lines
from lazydelta.serve.sharing.requests import DELTA
from lazydelta.serve.sharing.vectors import LinkedVectors


class SnapshotLines:
    """Writes the files of one version."""

    def __init__(
        self,
        form: str,
        links: FileLinks,
        *,
        root: str,
        physical: Mapping[str, str],
        version: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        self._form = form
        self._links = links
        self._vectors = LinkedVectors(links, root)
        self._physical = physical
        self._version, self._timestamp = version, timestamp
        self.expires_ms: int | None = None  # of the links that expire first

    def lines(self, rows: pa.RecordBatch) -> bytes:
        """One line for each."""
        columns = {name: values_of(rows.column(name)) for name in rows.schema.names}
        urls, expires_ms = self._links.urls(columns["path"], columns["size"])
        if self.expires_ms is None:
            self.expires_ms = expires_ms
        if self._form == DELTA:
            return self._delta(columns, urls, expires_ms)
        return self._parquet(columns, urls, expires_ms)

    # Any: as the columns have it
    def _parquet(self, columns: dict[str, list[Any]], urls: list[str], expires_ms: int) -> bytes:
        if any(vector is not None for vector in columns["deletion_vector"]):
            raise UnsupportedTableError(
                "a file has deleted rows, which the parquet response format cannot tell",
                "deletionVector",
                "ask for responseformat=delta;readerfeatures=deletionvectors",
            )
        files = [
            lines.ParquetFile(
                url=url,
                id=lines.file_id(path),
                partition_values=values or {},
                size=size,
                stats=stats,
                version=self._version,
                timestamp=self._timestamp,
                expiration_timestamp=expires_ms,
            )
            for url, path, values, size, stats in zip(
                urls,
                columns["path"],
                columns["partition_values"],
                columns["size"],
                columns["stats"],
                strict=True,
            )
        ]
        return lines.parquet_lines("file", files)

    def _delta(self, columns: dict[str, list[Any]], urls: list[str], expires_ms: int) -> bytes:
        described = [None if one is None else DeletionVector(**one) for one in columns["deletion_vector"]]
        vectors, vector_ids = self._vectors.linked(described)
        files = []
        for row, url in enumerate(urls):
            add = lines.AddAction(
                path=url,
                partition_values=self._renamed(columns["partition_values"][row] or {}),
                size=columns["size"][row],
                modification_time=columns["modification_time"][row] or 0,
                data_change=False,
                stats=columns["stats"][row],
                tags=columns["tags"][row],
                deletion_vector=vectors[row],
                base_row_id=columns["base_row_id"][row],
                default_row_commit_version=columns["default_row_commit_version"][row],
                clustering_provider=columns["clustering_provider"][row],
            )
            files.append(
                lines.DeltaFileLine(
                    id=lines.file_id(columns["path"][row]),
                    deletion_vector_file_id=vector_ids[row],
                    version=self._version,
                    timestamp=self._timestamp,
                    expiration_timestamp=expires_ms,
                    delta_single_action={"add": add},
                )
            )
        return lines.delta_lines(files)

    def _renamed(self, values: dict[str, str | None]) -> dict[str, str | None]:
        if not self._physical:
            return values
        return {self._physical.get(name, name): value for name, value in values.items()}
