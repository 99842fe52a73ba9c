"""A scan in parts that several readers take side by side: which files are of which part.

Contract: by a checksum of the file's path and nothing else, so that every file is of exactly one part,
whatever each part's reading of the same version goes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from zlib import crc32

import pyarrow as pa

from lazydelta.log.file_rows import Batches
from lazydelta.memory_share import MemoryShare
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.rows.row_scan import RowRange, RowScan
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan


class FilesOfPart(FileScan):
    """The files of one part."""

    def __init__(self, source: RowSource, part: int, parts: int) -> None:
        super().__init__(source.snapshot, source.config, source.sidecar, source.memory)
        self._part = part
        self._parts = parts

    def batches(
        self,
        columns: Sequence[str] = DATA_FILE_COLUMNS,
        *,
        with_keys: bool = False,
        share: MemoryShare | None = None,
    ) -> Batches:
        """Those whose path falls into the part."""
        wanted = columns if "path" in columns else [*columns, "path"]
        with closing(super().batches(wanted, with_keys=with_keys, share=share)) as batches:
            for batch in batches:
                kept = batch.filter(self._is_here(batch.column("path")))
                if kept.num_rows:
                    yield kept.select(list(columns)) if wanted is not columns else kept

    def _is_here(self, paths: pa.Array) -> pa.Array:
        return pa.array([crc32(path.encode()) % self._parts == self._part for path in paths.to_pylist()])


class PartOfSource(RowSource, frozen=True, eq=False, kw_only=True):
    """A table of which one part is read."""

    part: int
    parts: int

    def files(self) -> FileScan:
        """Its files."""
        return FilesOfPart(self, self.part, self.parts)

    def rows(self, columns: Sequence[str] | None = None, *, row_range: RowRange | None = None) -> RowScan:
        """Its rows that match."""
        return RowScan(self.files(), columns, limit=self.config.limit, row_range=row_range)


def part_of(source: RowSource, part: int, parts: int) -> RowSource:
    """The source, or its part of several."""
    assert 0 <= part < parts, (part, parts)
    if parts == 1:
        return source
    fields = {name: getattr(source, name) for name in RowSource.__struct_fields__}
    return PartOfSource(**fields, part=part, parts=parts)
