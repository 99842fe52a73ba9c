"""The rows of logical files, from the kept copies, and sums by which two sets of rows are compared.

Contract: a digest does not depend on the order of rows, and digests of parts add up to that of the whole.
It has the number of rows, a sum for each column, and one that ties the columns of a row together.
"""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.chaos.live_files import LiveFiles
from bench.chaos.replay import hour_of
from bench.chaos.vectors import deleted_rows
from bench.chaos.world import HOUR_COLUMN
from tests.support.keys import Action, FileKey

DATA_COLUMNS = ("id", "value", "label", "ts")
Digest = tuple[int, ...]
NOTHING: Digest = (0,) * 7
_FILES_KEPT = 4096


class KeptRows:
    """The data files of one table; safe for several threads."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()
        self._digests: dict[tuple[FileKey, str], Digest] = {}

    def rows(self, key: FileKey, action: Action) -> pa.Table:
        """What a logical file holds, with its hour; the column `at` is the place of a row in the file."""
        table = self._whole(key[0])
        if action.get("deletionVector"):
            gone = deleted_rows(action["deletionVector"], self._kept)
            assert not gone or max(gone) < table.num_rows, key
            table = table.filter(pa.array([row not in gone for row in range(table.num_rows)], pa.bool_()))
        hour = pa.array([hour_of(action)] * table.num_rows, pa.string())
        return table.append_column(HOUR_COLUMN, hour)

    def digest(self, files: Iterable[tuple[FileKey, Action]]) -> Digest:
        """Of all rows of these."""
        return add_digests(self._digest(key, action) for key, action in files)

    def of_hour(self, live: LiveFiles, hour: str) -> pa.Table:
        """All rows of an hour."""
        tables = [self.rows(key, action) for key, action in live.of_hour(hour).items()]
        return pa.concat_tables(tables) if tables else EMPTY

    def _digest(self, key: FileKey, action: Action) -> Digest:
        known = self._digests.get((key, hour_of(action)))
        if known is None:
            known = self._digests[key, hour_of(action)] = digest_of(self.rows(key, action))
        return known

    def _whole(self, path: str) -> pa.Table:
        """Every row of a data file; files of the start are links to a few, so the inode is the key."""
        file = self._kept / path
        at = file.stat()
        with self._lock:
            found = self._tables.get((at.st_ino, at.st_size))
        if found is None:
            found = _as_kept(pq.ParquetFile(file).read())
            with self._lock:
                self._tables[at.st_ino, at.st_size] = found
                if len(self._tables) > _FILES_KEPT:
                    self._tables.popitem(last=False)
        return found


def digest_of(table: pa.Table) -> Digest:
    """The sums over these rows, each modulo 2 to the 64."""
    if table.num_rows == 0:
        return NOTHING
    ids = _whole_numbers(table["id"])
    values = (_numbers(table["value"]) * 4).astype(np.int64).view(np.uint64)
    labels, hours = _texts(table["label"]), _texts(table[HOUR_COLUMN])
    times = _whole_numbers(table["ts"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    tied = ids * np.uint64(2654435761) ^ values * np.uint64(40503) ^ labels ^ hours ^ times
    sums = [int(column.sum(dtype=np.uint64)) for column in (ids, values, labels, hours, times, tied)]
    return (table.num_rows, *sums)


def add_digests(digests: Iterable[Digest]) -> Digest:
    """Of the rows of all."""
    total = list(NOTHING)
    for digest in digests:
        total = [(left + right) % 2**64 for left, right in zip(total, digest, strict=True)]
    return tuple(total)


def _as_kept(table: pa.Table) -> pa.Table:
    columns = [table[name].cast(EMPTY.schema.field(name).type) for name in DATA_COLUMNS]
    return pa.table([*columns, pa.array(range(table.num_rows), pa.int64())], schema=_WITHOUT_HOUR)


def _whole_numbers(column: pa.ChunkedArray) -> np.ndarray:
    filled = pc.fill_null(column, -7).combine_chunks()
    return filled.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return pc.fill_null(column, -7.25).combine_chunks().to_numpy(zero_copy_only=False)


def _texts(column: pa.ChunkedArray) -> np.ndarray:
    texts = pc.fill_null(column.cast(pa.string()), "\0").combine_chunks().dictionary_encode()
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    codes = np.array([_text_code(text) for text in texts.dictionary.to_pylist()], np.uint64)
    return codes[texts.indices.to_numpy(zero_copy_only=False)]


@lru_cache(maxsize=4096)
def _text_code(text: str) -> int:
    return zlib.crc32(text.encode()) * 2654435761 + 1


_WITHOUT_HOUR = pa.schema(
    [
        ("id", pa.int64()),
        ("value", pa.float64()),
        ("label", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("at", pa.int64()),
    ]
)
EMPTY = _WITHOUT_HOUR.append(pa.field(HOUR_COLUMN, pa.string())).empty_table()
