"""The files of a dataset as pyarrow's fragments are used: each can be scanned by itself.

Contract: files come lazily, by partition values and statistics those that might have matching rows; their
rows are those of the whole dataset. `len` goes through the whole list, and does not use up the iterator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow.compute as pc

from lazydelta.engines.scanner import BATCH_ROWS, plan_scan
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.rows.source import RowSource


class LazyFragments:
    """An iterator of files that also has a length."""

    def __init__(self, source: RowSource, keep: pc.Expression | None) -> None:
        self._plan = plan_scan(source, columns=[], keep=keep, batch_size=BATCH_ROWS)
        self._files: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self._found()

    def __next__(self) -> Any:
        if self._files is None:
            self._files = self._found()
        return next(self._files)

    def __len__(self) -> int:
        with closing(self._plan.source.files().batches(("path",))) as batches:
            return sum(batch.num_rows for batch in batches)

    def _found(self) -> Iterator[DataFile]:
        with closing(self._plan.source.files().batches(DATA_FILE_COLUMNS)) as batches:
            for batch in batches:
                yield from data_files(batch)
