"""The files of a dataset, as pyarrow's fragments are used.

Contract: files come lazily, by partition values and statistics those that might have matching rows. `len`
goes through the whole list, and does not use up the iterator.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

import pyarrow.compute as pc

from lazydelta.engines.fragment import LazyFragment, Reopen
from lazydelta.engines.scanner import BATCH_ROWS, plan_scan
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.rows.source import RowSource


class LazyFragments:
    """An iterator of files that also has a length."""

    def __init__(
        self,
        source: RowSource,
        keep: pc.Expression | None,
        scan_filter: pc.Expression | None,
        reopen: Reopen | None = None,
    ) -> None:
        """`keep`: which files; `scan_filter`: a filter that each file's scans have besides their own."""
        if source.config.limit is not None:
            raise InvalidRequestError(
                "a limit on rows does not say which files", "get_fragments()", "scan without a limit"
            )
        self._source = source
        self._scan_filter = scan_filter
        self._reopen = reopen
        self._narrow = plan_scan(source, columns=[], keep=keep, batch_size=BATCH_ROWS).source
        self._files: Generator[LazyFragment, None, None] | None = None

    def __iter__(self) -> Generator[LazyFragment, None, None]:
        return self._found()

    def __next__(self) -> LazyFragment:
        if self._files is None:
            self._files = self._found()
        return next(self._files)

    def __len__(self) -> int:
        with closing(self._narrow.files().batches(("path",))) as batches:
            return sum(batch.num_rows for batch in batches)

    def _found(self) -> Generator[LazyFragment, None, None]:
        with closing(self._narrow.files().batches(DATA_FILE_COLUMNS)) as batches:
            for batch in batches:
                for at in range(batch.num_rows):
                    yield LazyFragment(self._source, batch.slice(at, 1), self._scan_filter, self._reopen)
