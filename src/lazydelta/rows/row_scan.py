"""A scan of rows: the stages put together, each a pull-based iterator of Arrow batches.

    OrderedFileIterator → RowLoader → ResidualFilter → Limit → Materializer

Contract: no stage both filters and limits, none reorders; whoever stops pulling stops the reads below.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing

import pyarrow as pa

from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.rows.limit import limited
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.residual_filter import matching
from lazydelta.rows.selection import Selection, select
from lazydelta.scan import FileScan


class RowScan:
    """The rows of the files of a scan; can be run again."""

    def __init__(
        self, files: FileScan, columns: Sequence[str] | None = None, *, limit: int | None = None
    ) -> None:
        self.files = files
        self.limit = limit
        snapshot = files.snapshot
        self.selection: Selection = select(
            snapshot, columns, files.predicate, time_zone=files.config.time_zone
        )
        self.loader = RowLoader(snapshot.storage, self.selection, version=snapshot.version)

    @property
    def schema(self) -> pa.Schema:
        """Of what comes out."""
        return self.selection.schema

    def batches(self) -> Batches:
        """The rows, a segment at a time."""
        yield from limited(self._matching(), self.limit)

    def _matching(self) -> Batches:
        with closing(self._data_files()) as files:
            for file in files:
                for segment in self.loader.segments(file):
                    for batch in self.loader.load(segment):
                        rows = matching(batch, self.files.predicate)
                        if rows.num_rows:
                            yield rows.select(list(self.selection.output))

    def _data_files(self) -> Generator[DataFile, None, None]:
        with closing(self.files.batches(DATA_FILE_COLUMNS)) as batches:
            for batch in batches:
                yield from data_files(batch)
