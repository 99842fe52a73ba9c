"""One spelling for each file, for one path and for a column of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.errors import CorruptLogError
from lazydelta.protocol.paths import canonical_path, canonical_paths

ROOT = "file:///lake/my%20table"
PIECES = st.sampled_from(
    [
        "a",
        "%20",
        "%25",
        "%2541",
        "%C3%A9",
        "/",
        ":",
        "%3A",
        "é",
        "%",
        "%2",
        "%zz",
        "file:///",
        "/lake/my%20table/",
    ]
)


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("part-1.parquet", "part-1.parquet"),
        ("a%20b", "a b"),
        ("a+b", "a+b"),
        ("%2541", "%41"),  # decoded once, not twice
        ("/x", "file:///x"),
        ("file:/x", "file:///x"),
        ("file:///x", "file:///x"),
        ("FILE:///x", "file:///x"),
        ("/lake/my%20table/p", "p"),
        ("file:///lake/my%20table/p", "p"),
        ("/lake/my%20tables/p", "file:///lake/my tables/p"),
        ("s3a://bucket/x", "s3://bucket/x"),
    ],
)
def test_a_path_has_one_spelling(path: str, canonical: str) -> None:
    assert canonical_path(path, ROOT) == canonical
    assert canonical_paths(pa.array([path]), ROOT).to_pylist() == [canonical]


def test_an_absolute_path_takes_the_scheme_and_authority_of_the_table() -> None:
    root = "abfss://lake@acct.dfs.core.windows.net/t"
    assert canonical_path("/other/x", root) == "abfss://lake@acct.dfs.core.windows.net/other/x"
    assert canonical_path("/t/x", root) == "x"


@given(st.lists(st.lists(PIECES, min_size=1, max_size=6).map("".join), max_size=8))
def test_a_column_is_spelled_as_its_rows_are(paths: list[str]) -> None:
    try:
        expected = [canonical_path(path, ROOT) for path in paths]
    except CorruptLogError:  # pieces may make an escape that is no text
        with pytest.raises(CorruptLogError):
            canonical_paths(pa.array(paths, pa.string()), ROOT)
    else:
        assert canonical_paths(pa.array(paths, pa.string()), ROOT).to_pylist() == expected


def test_a_slice_of_a_column_is_spelled_as_its_rows_are() -> None:
    column = pa.array(["/x", "a%20b", "plain", "%25"])
    assert canonical_paths(column.slice(1, 3), ROOT).to_pylist() == ["a b", "plain", "%"]


@pytest.mark.parametrize("paths", [["%FF"], ["ok", "%FFx%20"], ["/%FF"]])
def test_a_path_that_is_not_utf_8_is_named(paths: list[str]) -> None:
    with pytest.raises(CorruptLogError, match="%FF"):
        canonical_paths(pa.array(paths), ROOT)
