"""The rows of a file that its deletion vector lists.

Why: a segment needs the deleted rows among its own, and the segments of one file share one deletion vector.
Contract: positions count from 0 in the Parquet file, ascending. A vector is read once while it is kept, even
where threads ask for it at once; what is kept are its bytes, up to a limit, and those of the last one always.
Format version, size, checksum and cardinality are checked before a position is given out: a vector that is
missing, damaged or contradicts the log is a `CorruptDataError` that names it and the data file.
Spec: PROTOCOL.md, "Deletion Vectors", "Deletion Vector File Storage Format".
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections import OrderedDict
from concurrent.futures import Future
from uuid import UUID

import numpy as np

from lazydelta import limits
from lazydelta.errors import CorruptDataError, CorruptLogError
from lazydelta.protocol.actions import DeletionVector, check_storage_type
from lazydelta.protocol.paths import canonical_path
from lazydelta.protocol.roaring import (
    EMPTY_BITMAP_ARRAY,
    Positions,
    RoaringBitmapArray,
    parse_bitmap_array,
)
from lazydelta.protocol.z85 import decode_z85
from lazydelta.rows.data_file import DataFile
from lazydelta.storage import ObjectNotFoundError, ObjectTooShortError, Storage
from lazydelta.storage.elsewhere import storage_of

FORMAT_VERSION = 1
VERSION_BYTES = 1
FRAME_BYTES = 8  # the size before the data, the checksum behind it
UUID_CHARACTERS = 20
FILES_KNOWN_MAX = 1024


class DeletionVectors:
    """The deletion vectors of one table, each read when one of its rows is asked for."""

    def __init__(
        self,
        storage: Storage,
        *,
        bytes_max: int = limits.DELETION_VECTORS_KEPT_BYTES,
    ) -> None:
        self._storage = storage
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[DeletionVector, RoaringBitmapArray] = OrderedDict()
        self._kept_bytes = 0
        self._under_way: dict[DeletionVector, Future[RoaringBitmapArray]] = {}
        self._files_known: set[str] = set()  # whose format version has been read

    def positions(self, file: DataFile, first_row: int = 0, end_row: int | None = None) -> Positions:
        """The deleted rows of the file from `first_row` to before `end_row`, or to the last."""
        if file.deletion_vector is None:
            return np.zeros(0, np.int64)
        return self._bitmap(file, file.deletion_vector).between(first_row, end_row)

    def check_rows(self, file: DataFile, row_count: int) -> None:
        """An error where the vector lists a row that the Parquet file of `row_count` rows does not have."""
        if file.deletion_vector is None:
            return
        last = self._bitmap(file, file.deletion_vector).last()
        if last is not None and last >= row_count:
            raise self._damaged(file, f"it lists row {last}, but the data file has {row_count} rows")

    def _bitmap(self, file: DataFile, vector: DeletionVector) -> RoaringBitmapArray:
        with self._lock:
            if vector in self._kept:
                self._kept.move_to_end(vector)
                return self._kept[vector]
            waiting = self._under_way.get(vector)
            mine: Future[RoaringBitmapArray] = Future()
            if waiting is None:
                self._under_way[vector] = mine
        if waiting is not None:
            return waiting.result()
        try:
            found = self._checked(file, vector)
        except BaseException as failure:
            with self._lock:
                del self._under_way[vector]
            mine.set_exception(failure)
            raise
        self._keep(vector, found)
        mine.set_result(found)
        return found

    def _keep(self, vector: DeletionVector, found: RoaringBitmapArray) -> None:
        with self._lock:
            del self._under_way[vector]
            self._kept[vector] = found
            self._kept_bytes += found.size_bytes
            while self._kept_bytes > self._bytes_max and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._kept_bytes -= oldest.size_bytes

    def _checked(self, file: DataFile, vector: DeletionVector) -> RoaringBitmapArray:
        try:
            found = parse_bitmap_array(self._data(file, vector))
        except ValueError as damage:
            raise self._damaged(file, str(damage)) from damage
        if found.cardinality != vector.cardinality:
            told = f"it lists {found.cardinality} rows, but the log says {vector.cardinality}"
            raise self._damaged(file, told)
        return found

    def _data(self, file: DataFile, vector: DeletionVector) -> bytes:
        check_storage_type(vector.storage_type, where=self._where(file))
        size, offset = vector.size_in_bytes or 0, vector.offset  # a checkpoint may have nulls
        if vector.storage_type == "i" and not vector.path_or_inline_dv and not size:
            return EMPTY_BITMAP_ARRAY  # Delta's way to write a vector without rows
        if not 0 < size <= limits.DELETION_VECTOR_BYTES_MAX:
            raise ValueError(f"the log says that it has {size} bytes")
        if vector.storage_type == "i":
            return _inline(vector.path_or_inline_dv, size)
        if offset is not None and offset < 0:
            raise ValueError(f"the log says that it begins at byte {offset}")
        try:
            return self._stored(self._path(vector), offset or VERSION_BYTES, size)
        except ObjectNotFoundError as gone:
            raise self._damaged(file, "its file is not there: VACUUM deletes those of old versions") from gone
        except ObjectTooShortError as cut:
            raise self._damaged(file, "its file ends before it does") from cut

    def _stored(self, path: str, offset: int, size: int) -> bytes:
        storage, name = storage_of(self._storage, path)
        ranges = [(offset, size + FRAME_BYTES)]
        if path not in self._files_known:
            ranges.append((0, VERSION_BYTES))
        framed, *version = storage.get_ranges(name, ranges)
        if version and version[0][0] != FORMAT_VERSION:
            raise ValueError(f"its file has the format version {version[0][0]}, not {FORMAT_VERSION}")
        with self._lock:
            if len(self._files_known) >= FILES_KNOWN_MAX:
                self._files_known.clear()
            self._files_known.add(path)
        return _unframed(framed, size)

    def _path(self, vector: DeletionVector) -> str:
        return vector_path(vector, self._storage.root)

    def _where(self, file: DataFile) -> str:
        return file.path if "://" in file.path else f"{self._storage.root}/{file.path}"

    def _damaged(self, file: DataFile, what: str) -> CorruptDataError:
        assert file.deletion_vector is not None
        return CorruptDataError(
            f"the deletion vector {self._shown(file.deletion_vector)} of a data file cannot be used: {what}",
            self._where(file),
            "restore it from a copy, or the table to a version before it; else deleted rows would come back",
        )

    def _shown(self, vector: DeletionVector) -> str:
        if vector.storage_type == "i":
            return "in the log"
        try:
            path = self._path(vector)
        except (ValueError, CorruptLogError):
            path = repr(vector.path_or_inline_dv)
        return path if vector.offset is None else f"{path} at byte {vector.offset}"


def vector_path(vector: DeletionVector, root: str) -> str:
    """The canonical path of the file that holds a vector of the table at `root`; `ValueError`: none does."""
    text = vector.path_or_inline_dv
    if vector.storage_type == "p" and text:
        return canonical_path(text, root)
    if len(text) < UUID_CHARACTERS:
        raise ValueError(f"{text!r} is too short for the name of its file")
    prefix, uuid = text[:-UUID_CHARACTERS], UUID(bytes=decode_z85(text[-UUID_CHARACTERS:]))
    return f"{prefix}/deletion_vector_{uuid}.bin" if prefix else f"deletion_vector_{uuid}.bin"


def _inline(text: str, size: int) -> bytes:
    data = decode_z85(text)
    if not 0 <= len(data) - size < 4:  # text stands for whole words of four bytes
        raise ValueError(f"the log holds {len(data)} bytes of it and says that it has {size}")
    return data[:size]


def _unframed(framed: bytes, size: int) -> bytes:
    """The data between its size and its checksum."""
    (told_size,), (checksum,) = struct.unpack_from(">I", framed), struct.unpack_from(">I", framed, 4 + size)
    if told_size != size:
        raise ValueError(f"its file says that it has {told_size} bytes, the log says {size}")
    data = framed[4 : 4 + size]
    if zlib.crc32(data) != checksum:
        raise ValueError("its checksum is wrong")
    return data
