"""Where a build's rows go: sorted batches in, stored parts out, and a way back while nothing is committed.

Contract: parts are put one after the other, each whole; `written` tells them for the manifest. Until the
manifest stands they belong to nobody: `discard` deletes them as far as the store lets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lazydelta.errors import StorageError
from lazydelta.sidecar.format.manifest import Binding, Part, RowGroup
from lazydelta.sidecar.format.part_writer import PartShape, store_part, write_part
from lazydelta.storage import Storage
from lazydelta.upkeep.build_plan import BuildPlan
from lazydelta.upkeep.progress import Progress

PartEntry = tuple[Part, Sequence[RowGroup]]


class PartSink:
    """Writes the parts of one build."""

    def __init__(self, plan: BuildPlan, progress: Progress) -> None:
        self.written: list[PartEntry] = []
        self._plan = plan
        self._progress = progress

    def write(
        self,
        batches: Iterator[pa.RecordBatch],
        counts: Sequence[int],
        *,
        binding: Binding,
        shape: PartShape,
        is_whole_build: bool,
    ) -> None:
        """One part for each of the counts, of that many rows."""
        plan = self._plan
        rest = _Rest(batches)
        for count in counts:
            facts = plan.facts(
                len(self.written),
                binding,
                parts=len(counts) if is_whole_build else None,
                is_whole_build=is_whole_build,
            )
            made = write_part(
                rest.take(count), layout=plan.layout, facts=facts, config=plan.config, shape=shape
            )
            # Noted before it is stored: a put that fails may have arrived.
            self.written.append((made.part, made.row_groups))
            store_part(plan.storage, plan.config, made)
            self._progress("part_written", file=made.part.file, rows=made.part.num_rows)

    def discard(self) -> None:
        """Delete the parts written so far."""
        delete_parts(self._plan.storage, self._plan.config.folder, [part for part, _ in self.written])
        self.written = []


def delete_parts(storage: Storage, folder: str, parts: Sequence[Part]) -> None:
    """Delete these parts; what the store refuses is left to the cleaner."""
    for part in parts:
        for name in (part.file, part.stats_file):
            if name is None:
                continue
            try:
                storage.delete(f"{folder}/{name}")
            except StorageError:
                continue


class _Rest:
    """A stream of batches that is taken in portions of exact size."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def take(self, row_count: int) -> Iterator[pa.RecordBatch]:
        while row_count:
            batch = next(self._batches) if self._left is None else self._left
            self._left = batch.slice(row_count) if batch.num_rows > row_count else None
            piece = batch.slice(0, row_count)
            row_count -= piece.num_rows
            yield piece
