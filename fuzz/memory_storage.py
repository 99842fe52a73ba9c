"""A table in a dictionary: a folder without a disk, so that an input costs no system call.

Contract: `Storage` as a local folder is. Names are checked as there; e-tags follow from the bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from lazydelta.storage import (
    NEVER,
    Deadline,
    IoCounters,
    LocalStorage,
    ObjectInfo,
    ObjectNotFoundError,
    past_end,
)
from lazydelta.storage.names import checked_name
from lazydelta.storage.ranges import coalesce, cut

ROOT = "file:///fuzz/table"
_MODIFIED_MS = 1_770_000_000_000


class MemoryStorage(LocalStorage):
    """The files of a table by name. A subclass, because a local folder is read without threads."""

    def __init__(
        self, files: dict[str, bytes], counters: IoCounters | None = None, deadline: Deadline = NEVER
    ) -> None:
        super().__init__("/fuzz/table", ROOT, counters, deadline)
        self.files = files

    @property
    def is_quick(self) -> bool:
        """Always: nothing is quicker."""
        return True

    def scoped(self, deadline: Deadline | None = None) -> MemoryStorage:
        """The same files with counters of their own."""
        earlier = self._deadline if deadline is None else self._deadline.earlier(deadline)
        return MemoryStorage(self.files, IoCounters(self.counters), earlier)

    def list_from(self, folder: str, after: str | None = None) -> Iterator[ObjectInfo]:
        """Files directly below `folder`."""
        checked_name(folder, self.root)
        prefix = f"{folder}/"
        for name, body in list(self.files.items()):
            base = name.removeprefix(prefix)
            if name.startswith(prefix) and "/" not in base and (after is None or base > after):
                etag = f"{zlib.crc32(body):x}"
                yield ObjectInfo(name=name, size_bytes=len(body), modified_ms=_MODIFIED_MS, etag=etag)

    def get(self, name: str) -> bytes:
        """The whole file."""
        body = self.files.get(checked_name(name, self.root))
        if body is None:
            raise ObjectNotFoundError("there is no such file", name, "check the table's path")
        return body

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Many (start, length) at once."""
        spans, body = coalesce(ranges), self.get(name)
        if any(span.end > len(body) for span in spans):
            raise past_end(name)
        return cut(ranges, spans, [body[span.start : span.end] for span in spans])

    def get_stream(self, name: str, chunk_bytes: int) -> Iterator[bytes]:
        """The whole file in chunks."""
        body = self.get(name)
        for start in range(0, len(body), chunk_bytes):
            yield body[start : start + chunk_bytes]

    def put_if_absent(self, name: str, body: bytes) -> bool:
        """Keep the file unless one is there already."""
        return self.files.setdefault(checked_name(name, self.root), body) is body

    def delete(self, name: str) -> bool:
        """Drop the file."""
        return self.files.pop(checked_name(name, self.root), None) is not None
