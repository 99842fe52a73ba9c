"""Adds, removes and change files of commits as lines, in the format that the client reads."""

from __future__ import annotations

from collections.abc import Sequence

from lazydelta.errors import CorruptLogError, UnsupportedTableError
from lazydelta.protocol.actions import DeletionVector
from lazydelta.protocol.paths import canonical_path
from lazydelta.serve.file_links import FileLinks
from lazydelta.serve.sharing import lines
from lazydelta.serve.sharing.commit_actions import Change, FileAction
from lazydelta.serve.sharing.requests import DELTA
from lazydelta.serve.sharing.vectors import LinkedVectors

_KINDS = {"add": "add", "remove": "remove", "cdc": "cdf"}  # of the log -> of the parquet format


class ChangeLines:
    """Writes the changes of one table."""

    def __init__(self, form: str, links: FileLinks, *, root: str, is_partitioned: bool) -> None:
        self._form = form
        self._links = links
        self._root = root
        self._is_partitioned = is_partitioned
        self._vectors = LinkedVectors(links, root)
        self.expires_ms: int | None = None  # of the links that expire first
        self.files = 0

    def lines(self, changes: Sequence[Change], version: int, at_ms: int | None) -> bytes:
        """One line for each."""
        if not changes:
            return b""
        self.files += len(changes)
        paths = [canonical_path(change.action.path, self._root) for change in changes]
        urls, expires_ms = self._links.urls(paths, [change.action.size for change in changes])
        if self.expires_ms is None:
            self.expires_ms = expires_ms
        vectors, vector_ids = self._vectors.linked([change.action.deletion_vector for change in changes])
        found = []
        for row, change in enumerate(changes):
            values = self._values(change, version)
            if self._form == DELTA:
                line = lines.DeltaFileLine(
                    id=lines.file_id(paths[row]),
                    deletion_vector_file_id=vector_ids[row],
                    version=version,
                    timestamp=at_ms,
                    expiration_timestamp=expires_ms,
                    delta_single_action={change.kind: _action(change, urls[row], vectors[row])},
                )
                found.append(lines.delta_lines([line]))
                continue
            if change.action.deletion_vector is not None:
                raise UnsupportedTableError(
                    f"version {version} has deletion vectors, which the parquet response format cannot tell",
                    "deletionVector",
                    "ask for responseformat=delta;readerfeatures=deletionvectors",
                )
            file = lines.ParquetFile(
                url=urls[row],
                id=lines.file_id(paths[row]),
                partition_values=values,
                size=change.action.size or 0,
                stats=change.action.stats if change.kind == "add" else None,
                version=version,
                timestamp=at_ms,
                expiration_timestamp=expires_ms,
            )
            found.append(lines.parquet_lines(_KINDS[change.kind], [file]))
        return b"".join(found)

    def _values(self, change: Change, version: int) -> dict[str, str | None]:
        """Partition values; rows of a file that lacks them cannot be told whole."""
        action: FileAction = change.action
        if action.partition_values is None and self._is_partitioned:
            raise CorruptLogError(
                f"a {change.kind} of version {version} has no partition values",
                self._root,
                "ask for versions behind it: its writer left out what its rows need",
            )
        return action.partition_values or {}


def _action(
    change: Change, url: str, vector: DeletionVector | None
) -> lines.AddAction | lines.RemoveAction | lines.CdcAction:
    action: FileAction = change.action
    if change.kind == "cdc":
        return lines.CdcAction(
            path=url,
            partition_values=action.partition_values or {},
            size=action.size or 0,
            data_change=action.data_change,
            tags=action.tags,
        )
    if change.kind == "remove":
        return lines.RemoveAction(
            path=url,
            data_change=action.data_change,
            deletion_timestamp=action.deletion_timestamp,
            extended_file_metadata=action.extended_file_metadata,
            partition_values=action.partition_values,
            size=action.size,
            stats=action.stats,
            tags=action.tags,
            deletion_vector=vector,
            base_row_id=action.base_row_id,
            default_row_commit_version=action.default_row_commit_version,
        )
    return lines.AddAction(
        path=url,
        partition_values=action.partition_values or {},
        size=action.size or 0,
        modification_time=action.modification_time or 0,
        data_change=action.data_change,
        stats=action.stats,
        tags=action.tags,
        deletion_vector=vector,
        base_row_id=action.base_row_id,
        default_row_commit_version=action.default_row_commit_version,
        clustering_provider=action.clustering_provider,
    )
