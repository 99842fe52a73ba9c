"""Deletion vectors with links instead of names: what a client reads of them is where they are.

Spec: PROTOCOL.md of Delta, "Deletion Vector Descriptor Schema": type `p` has an absolute path.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lazydelta.errors import CorruptLogError
from lazydelta.protocol.actions import DeletionVector
from lazydelta.rows.deletion_vectors import vector_path
from lazydelta.serve.file_links import FileLinks
from lazydelta.serve.sharing.lines import file_id


class LinkedVectors:
    """Makes links to the files of deletion vectors."""

    def __init__(self, links: FileLinks, root: str) -> None:
        self._links = links
        self._root = root

    def linked(
        self, vectors: Sequence[DeletionVector | None]
    ) -> tuple[list[DeletionVector | None], list[str | None]]:
        """The vectors with their links, and an id for each file of them; those in the log stay."""
        rows = [row for row, one in enumerate(vectors) if one is not None and one.storage_type != "i"]
        found = list(vectors)
        ids: list[str | None] = [None] * len(vectors)
        if not rows:
            return found, ids
        paths = [self._path(vectors[row]) for row in rows]
        urls, _ = self._links.urls(paths, [None] * len(paths))
        for row, path, url in zip(rows, paths, urls, strict=True):
            vector = vectors[row]
            assert vector is not None
            found[row] = msgspec.structs.replace(vector, storage_type="p", path_or_inline_dv=url)
            ids[row] = file_id(path)
        return found, ids

    def _path(self, vector: DeletionVector | None) -> str:
        assert vector is not None
        try:
            return vector_path(vector, self._root)
        except ValueError as damage:
            raise CorruptLogError(
                f"a deletion vector cannot be found: {damage}", "the log", "restore the commit that names it"
            ) from damage
