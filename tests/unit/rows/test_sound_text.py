"""Texts of data files that are not UTF-8: an error that names file and column, however they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.rows.sound_text import BrokenTextError, check_texts
from tests.support.actions import add
from tests.support.table_builder import TableBuilder

BROKEN = b"caf\xe9"  # Latin-1


def texts(*values: bytes | None, kind: pa.DataType | None = None) -> pa.Array:
    """Bytes that are called texts, as a writer that does not look would."""
    stored = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind or pa.string(), len(stored), stored.buffers(), stored.null_count)


def batch(column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(len(column)), column], ["other", "text"])


def nested(column: pa.Array) -> dict[str, pa.Array]:
    offsets = pa.array([0, len(column)], pa.int32())
    listed = pa.ListArray.from_arrays(offsets, column)
    return {
        "struct": pa.StructArray.from_arrays([column], ["x"]),
        "list": listed,
        "list in a struct": pa.StructArray.from_arrays([listed], ["x"]),
        "values of a map": pa.MapArray.from_arrays(offsets, pa.array(range(len(column))), column),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1]), column),
    }


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_text_that_is_not_utf8_is_found(kind: pa.DataType) -> None:
    with pytest.raises(BrokenTextError, match="'text'"):
        check_texts(batch(texts(b"plain", None, BROKEN, kind=kind)))


@pytest.mark.parametrize("form", nested(texts(b"a", b"b")))
def test_a_nested_text_that_is_not_utf8_is_found(form: str) -> None:
    check_texts(batch(nested(texts(b"a", "ä".encode()))[form]))
    with pytest.raises(BrokenTextError, match="'text'"):
        check_texts(batch(nested(texts(b"a", BROKEN))[form]))


def test_only_the_texts_of_the_rows_count() -> None:
    column = texts(BROKEN, b"a", "ä€😀".encode(), b"", None, BROKEN)
    check_texts(batch(column.slice(1, 4)))
    check_texts(batch(column.slice(2, 0)))
    for first, count in ((0, 1), (0, 6), (5, 1), (4, 2)):
        with pytest.raises(BrokenTextError):
            check_texts(batch(column.slice(first, count)))


def test_two_texts_that_are_one_character_only_together_are_found() -> None:
    character = "ä".encode()
    with pytest.raises(BrokenTextError):
        check_texts(batch(texts(character[:1], character[1:])))


def test_nothing_and_columns_without_texts_pass() -> None:
    check_texts(batch(pa.array([], pa.string())))
    check_texts(batch(pa.nulls(3, pa.string())))
    check_texts(batch(pa.array([BROKEN])))


def test_every_way_of_reading_names_the_file(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={"id": "long", "text": "string"}, partition_columns=())
    pq.write_table(pa.table({"id": [1, 2], "text": texts(b"plain", BROKEN)}), tmp_path / "rows.parquet")
    table.commit(adds=[add("rows.parquet", partition={}, size=(tmp_path / "rows.parquet").stat().st_size)])
    opened = ld.open(str(tmp_path))
    ways: list[Any] = [
        opened.to_arrow,
        opened.to_pandas,
        lambda: opened.scan("text = 'plain'").to_arrow(),
        lambda: opened.scan().page(rows=5),
        lambda: opened.sql("select max(text) from t").fetchall(),
        lambda: opened.to_pyarrow_dataset().to_table(),
        lambda: opened.to_polars().collect(),
    ]
    for way in ways:
        with pytest.raises(Exception, match=r"(?s)rows\.parquet") as told:  # engines wrap the error in theirs
            way()
        assert "utf" in str(told.value).lower()
    assert opened.scan().to_arrow(["id"]).column("id").to_pylist() == [1, 2]
