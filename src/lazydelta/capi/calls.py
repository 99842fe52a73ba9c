"""The Python behind each function of delta_lazy.h.

Why: C hands in text and pointers; here they become a scan, and whatever goes wrong becomes a return code.
Files go to C a batch at a time: the loop over them is C's (c/deliver.c), and runs without Python's lock.
Contract: nothing is raised into C. A scan is closed before its call returns, however it ends; a stream when
it is released.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from lazydelta.capi.guest import OPEN_STREAMS
from lazydelta.capi.request import Request, file_columns, read_request, refuse, scan_of
from lazydelta.errors import CorruptLogError, InvalidRequestError, LazyDeltaError
from lazydelta.log.file_rows import FILE_COLUMNS
from lazydelta.table_scan import Scan

OK = 0
BUG = LazyDeltaError.exit_code
PATH_COLUMNS = ("path", "size")
_STOP, _NO_MEMORY, _ZERO_BYTE = 1, 2, 3  # of `enum ld_delivery`


Pointer = Any  # of C; cffi knows to what


class Calls:
    """The functions that C calls."""

    def __init__(self, ffi: Any, lib: Any) -> None:  # Any: cffi makes them, without types
        self._ffi = ffi
        self._lib = lib

    def attach(self) -> None:
        """From now on the functions of C arrive here."""
        for function in (self.scan_lazy, self.scan_files, self.files_stream, self.rows_stream):
            name = f"ld_py_{function.__name__}"
            self._ffi.def_extern(name=name, error=BUG)(self._safely(function))

    def scan_lazy(self, table_path: Pointer, predicate: Pointer, limit: int, sink: Pointer) -> None:
        """`delta_scan_lazy`: paths and sizes."""
        where = self._text(predicate, "predicate_json")
        request = Request(predicate=where, limit=limit)
        self._deliver(self._scan(table_path, request), PATH_COLUMNS, sink)

    def scan_files(self, table_path: Pointer, options: Pointer, sink: Pointer) -> None:
        """`delta_scan_files`: everything that is known of files."""
        request = self._request(options)
        refuse(request, "columns", "a callback is given all of a file")
        self._deliver(self._scan(table_path, request), file_columns(request), sink)

    def files_stream(self, table_path: Pointer, options: Pointer, out: Pointer) -> None:
        """`delta_files_stream`: files as Arrow."""
        request = self._request(options)
        columns = file_columns(request)
        layout = _layout(columns)
        batches = self._scan(table_path, request).file_batches(columns)
        self._export(layout, _pulled(batches, layout), out)

    def rows_stream(self, table_path: Pointer, options: Pointer, out: Pointer) -> None:
        """`delta_rows_stream`: rows as Arrow."""
        request = self._request(options)
        refuse(request, "with_stats", "rows have none")
        batches = self._scan(table_path, request).batches(request.columns)
        self._export(batches.schema, _pulled(batches, batches.schema), out)

    def _safely(self, function: Callable[..., None]) -> Callable[..., int]:
        """The function with a return code in place of exceptions."""

        def call(*arguments: Any) -> int:
            try:
                function(*arguments)
            except BaseException as problem:  # noqa: BLE001 - nothing may cross into C
                return self._failed(problem)
            return OK

        return call

    def _failed(self, problem: BaseException) -> int:
        """Keep the text for `delta_last_error`; the code."""
        if isinstance(problem, LazyDeltaError):
            code, text = problem.exit_code, str(problem)
        else:
            code, text = BUG, "".join(traceback.format_exception(problem, limit=-8))
        self._lib.ld_fail(code, text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace"))
        return code

    def _request(self, options: Pointer) -> Request:
        return read_request(None if options == self._ffi.NULL else self._ffi.string(options))

    def _scan(self, table_path: Pointer, request: Request) -> Scan:
        return scan_of(self._text(table_path, "table_path"), request)

    def _text(self, pointer: Pointer, what: str) -> str:
        if pointer == self._ffi.NULL:
            return ""
        try:
            return str(self._ffi.string(pointer), "utf-8")
        except UnicodeDecodeError as problem:
            raise InvalidRequestError(f"{what} is not UTF-8: {problem}", what, "give UTF-8") from problem

    def _deliver(self, scan: Scan, columns: tuple[str, ...], sink: Pointer) -> None:
        """Hand files to the callback until it has enough."""
        array, schema = self._ffi.new("struct ArrowArray *"), self._ffi.new("struct ArrowSchema *")
        addresses = [int(self._ffi.cast("uintptr_t", pointer)) for pointer in (array, schema)]
        layout = _layout(columns)
        with closing(scan.file_batches(columns)) as batches:
            for batch in batches:
                _as(batch, layout)._export_to_c(*addresses)
                ended = self._lib.ld_deliver(array, schema, sink)
                if ended == _STOP:
                    return
                if ended != OK:
                    raise _undelivered(ended, scan.source.snapshot.storage.root)

    def _export(
        self, schema: pa.Schema, batches: Generator[pa.RecordBatch, None, None], out: Pointer
    ) -> None:
        pulled = self._told(batches)
        OPEN_STREAMS.add(pulled)
        reader = pa.RecordBatchReader.from_batches(schema, pulled)
        inner = self._ffi.new("struct ArrowArrayStream *")
        reader._export_to_c(int(self._ffi.cast("uintptr_t", inner)))
        if self._lib.ld_wrap_stream(inner, out) != 0:
            inner.release(inner)
            raise MemoryError

    def _told(self, batches: Generator[pa.RecordBatch, None, None]) -> Generator[pa.RecordBatch, None, None]:
        """The same; the thread that pulls finds the text of an error as after any other call."""
        with closing(batches):
            try:
                yield from batches
            except Exception as problem:
                self._failed(problem)
                raise


def _layout(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, FILE_COLUMNS[name]) for name in columns])


def _as(batch: pa.RecordBatch, layout: pa.Schema) -> pa.RecordBatch:
    """The batch in the one layout that C knows, whatever it was read from."""
    return batch if batch.schema.equals(layout) else batch.cast(layout)


def _pulled(batches: Any, layout: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
    """Any: an iterator of batches that is closed."""
    with closing(batches):
        for batch in batches:
            yield _as(batch, layout)


def _undelivered(ended: int, root: str) -> BaseException:
    if ended == _NO_MEMORY:
        return MemoryError("there is no memory for the name of a file")
    if ended == _ZERO_BYTE:
        return CorruptLogError(
            "the path of a file holds a zero byte", root, "C cannot spell it: use delta_files_stream"
        )
    return AssertionError(f"a batch of files has another layout: {ended}")
