"""Arrow streams of the library, taken by this very process: its host is Python, and stays as it is."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.capi.build import LIBRARY
from lazydelta.capi.request import Request
from tests.support.capi_library import library_folder
from tests.support.hypothesis_profile import BUSY_AND_SHARED
from tests.support.row_tables import readings_table

_WORDS = 5  # pointers in `struct ArrowArrayStream`
_NAMES = st.sampled_from([*Request.__struct_fields__, "id", "other"]) | st.text(max_size=3)
_VALUES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=5)
JSON = st.dictionaries(_NAMES, _VALUES | st.lists(_VALUES, max_size=2) | st.dictionaries(_NAMES, _VALUES))


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library_folder() / LIBRARY))
    loaded.delta_last_error.restype = ctypes.c_char_p
    loaded.delta_version.restype = ctypes.c_char_p
    return loaded


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield readings_table(tmp_path_factory.mktemp("streamed"), hours=4)


def test_files_as_a_stream_are_those_of_the_scan(library: ctypes.CDLL, mixed_table: Path) -> None:
    reader = _reader(library.delta_files_stream, mixed_table, {"with_stats": True, "batch_size": 5})
    columns = ["path", "size", "modification_time", "partition_values", "deletion_vector", "stats"]
    found = reader.read_all()
    assert found == pa.Table.from_batches(ld.open(mixed_table).scan().file_batches(columns))
    assert found.num_rows == 14


def test_a_stream_has_the_attributes_that_were_asked_for(library: ctypes.CDLL, mixed_table: Path) -> None:
    options = {"columns": ["size", "path"], "limit": 4, "predicate": "kind = 'plain'"}
    found = _reader(library.delta_files_stream, mixed_table, options).read_all()
    assert found.column_names == ["size", "path"]
    expected = ld.open(mixed_table).scan("kind = 'plain'", limit=4).files()
    assert found.column("path").to_pylist() == [file.path for file in expected]


def test_rows_as_a_stream_are_those_of_the_scan(library: ctypes.CDLL, readings: str) -> None:
    options = {"predicate": "value > 5", "columns": ["value", "id"], "limit": 20}
    found = _reader(library.delta_rows_stream, readings, options).read_all()
    expected = ld.open(readings).scan("value > 5", limit=20).to_arrow(["value", "id"])
    assert found.equals(expected) and found.num_rows == 20


def test_a_stream_that_is_dropped_half_way_is_released(library: ctypes.CDLL, readings: str) -> None:
    reader = _reader(library.delta_rows_stream, readings, {"batch_size": 2})
    assert reader.read_next_batch().num_rows <= 2
    del reader
    assert _reader(library.delta_rows_stream, readings, {}).read_all().num_rows == 120


def test_files_that_a_sidecar_tells_of_are_the_same(library: ctypes.CDLL, tmp_path: Path) -> None:
    table = readings_table(tmp_path, hours=4, checkpoint_at=2, sidecar=True)
    found = _reader(library.delta_files_stream, table, {"order": "asc"}).read_all()
    scan = ld.open(table).scan(order="asc")
    assert found.column("path").to_pylist() == [file.path for file in scan.files()]
    assert "sidecar" in str(scan.explain()).lower()
    seen = []
    called = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_char_p, ctypes.c_int64)
    callback = called(lambda path, size: seen.append((path.decode(), size)) is None)
    assert library.delta_scan_lazy(table.encode(), None, ctypes.c_size_t(0), callback) == 0
    assert sorted(seen) == sorted((file.path, file.size) for file in scan.files())


@given(options=st.binary(max_size=40) | st.text(max_size=40).map(str.encode) | JSON.map(_encoded))
@settings(max_examples=150, deadline=None, suppress_health_check=BUSY_AND_SHARED)
def test_whatever_the_options_are_the_answer_is_a_code(
    library: ctypes.CDLL, readings: str, options: bytes
) -> None:
    stream = (ctypes.c_void_p * _WORDS)()
    text = options.replace(b"\0", b"")
    code = library.delta_files_stream(readings.encode(), text, stream)
    assert code in {0, 2, 4}
    assert bool(library.delta_last_error()) == (code != 0)
    if code == 0:
        pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)).read_all()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [({"columns": ["nope"]}, 2, "nope"), ({"with_stats": True}, 2, "with_stats"), ({"version": 77}, 4, "77")],
)
def test_what_cannot_be_streamed_is_refused_before_a_stream_is_made(
    library: ctypes.CDLL, readings: str, options: dict[str, object], code: int, words: str
) -> None:
    stream = (ctypes.c_void_p * _WORDS)()
    text = json.dumps(options).encode()
    assert library.delta_rows_stream(readings.encode(), text, stream) == code
    assert list(stream) == [None] * _WORDS
    assert words in library.delta_last_error().decode()


def test_the_version_is_that_of_the_package(library: ctypes.CDLL) -> None:
    from importlib.metadata import version

    assert library.delta_version().decode() == version("lazydelta")


def _reader(function: ctypes._CFuncPtr, table: object, options: dict[str, object]) -> pa.RecordBatchReader:
    stream = (ctypes.c_void_p * _WORDS)()
    code = function(str(table).encode(), json.dumps(options).encode(), stream)
    assert code == 0, code
    return pa.RecordBatchReader._import_from_c(ctypes.addressof(stream))
