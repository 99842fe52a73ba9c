"""OrderedFileIterator: the live files of a scan, one at a time, in the order that the scan walks.

Why: the traversal of a scan of rows. Contract: it loads no rows, filters none and counts none; no file comes
twice; closing it ends the scan of files.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.scan import FileScan


def ordered_files(scan: FileScan) -> Generator[DataFile, None, None]:
    """The files as the scan gives them."""
    with closing(scan.batches(DATA_FILE_COLUMNS)) as batches:
        for batch in batches:
            yield from data_files(batch)
