"""Where a plan's file lists go when they are long: in memory up to a bound, then into files of a folder.

Why: a plan of a million files would be one large object of the driver otherwise. Contract: chunks come back
in the order they came in. Files of the folder are written once, under a name of this plan alone, and belong
to whoever owns the folder.
"""

from __future__ import annotations

import uuid

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.spark.reading.file_chunks import Chunk, PackedFiles, SpilledFiles
from lazydelta.storage import Storage, open_storage


class ChunkKeeper:
    """The chunks of one plan."""

    def __init__(self, spill: str | None, settings: Settings, *, where: str) -> None:
        self._spill = spill
        self._settings = settings
        self._where = where
        self._plan = uuid.uuid4().hex
        self._storage: Storage | None = None
        self._inline_bytes = 0
        self._files = 0
        self._pending: list[tuple[int, PackedFiles]] = []  # of the file to be written next, by place
        self._pending_bytes = 0
        self.chunks: list[Chunk] = []

    def keep(self, chunk: PackedFiles) -> None:
        """One more; those that no longer fit are spilled, some megabytes at a time."""
        if self._inline_bytes + len(chunk.body) <= limits.SPARK_PLAN_INLINE_BYTES:
            self._inline_bytes += len(chunk.body)
            self.chunks.append(chunk)
            return
        self._pending.append((len(self.chunks), chunk))
        self._pending_bytes += len(chunk.body)
        self.chunks.append(chunk)
        if self._pending_bytes >= limits.SPARK_SPILL_FILE_BYTES:
            self.finish()

    def finish(self) -> None:
        """Write what waits to be written."""
        if not self._pending:
            return
        name = f"lazydelta-plan-{self._plan}/{self._files:06}.files"
        self._opened().put_if_absent(name, b"".join(chunk.body for _, chunk in self._pending))
        start = 0
        for place, chunk in self._pending:
            length = len(chunk.body)
            self.chunks[place] = SpilledFiles(name, start, length, chunk.unpacked_bytes, chunk.file_count)
            start += length
        self._files += 1
        self._pending, self._pending_bytes = [], 0

    def _opened(self) -> Storage:
        if self._storage is None:
            if self._spill is None:
                raise InvalidRequestError(
                    f"the list of files to read takes more than {limits.SPARK_PLAN_INLINE_BYTES >> 20} MiB",
                    self._where,
                    "give the option spill: a folder that driver and executors reach, for lists of files; "
                    "or a narrower where",
                )
            settings = msgspec.structs.replace(self._settings, locations={})
            self._storage = open_storage(self._spill, settings)
        return self._storage
